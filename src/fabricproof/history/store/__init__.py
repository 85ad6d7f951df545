"""What every run of a site measured, read back from the plain files below ``perflogs``.

The records (``core.records``) are the truth; whatever else lies beside them is a copy that can be
thrown away and made again.  ReFrame's own perflogs and result store are not read: they say one
number a quantity, without rails, settings, attempts or the state of the path.
"""

from __future__ import annotations

from fabricproof.history.store.history import NoHistoryError, Store, open_store, start_of
from fabricproof.history.store.label_file import (
    ADMISSION_LABEL,
    CAMPAIGN_LABEL,
    LOOK_LABEL,
    labels,
    labels_of,
    no_samples,
    require_label,
    set_label,
)
from fabricproof.history.store.model import FIELDS, HOME, Key, Matrix, Run

__all__ = [
    "ADMISSION_LABEL",
    "CAMPAIGN_LABEL",
    "FIELDS",
    "HOME",
    "LOOK_LABEL",
    "Key",
    "Matrix",
    "NoHistoryError",
    "Run",
    "Store",
    "labels",
    "labels_of",
    "no_samples",
    "open_store",
    "require_label",
    "set_label",
    "start_of",
]
