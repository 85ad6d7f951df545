"""The unattended run: one at a time, red confirmed elsewhere, told only on a change."""

from __future__ import annotations

from fabricproof.nightly.conduct import Budget, Confirmer, keep
from fabricproof.nightly.confirm import Blame, Confirmation, LookColour, LookResult, record
from fabricproof.nightly.display import render_night, write_reports
from fabricproof.nightly.lock import night_lock
from fabricproof.nightly.log import log_file, now, read_log
from fabricproof.nightly.looks import settled
from fabricproof.nightly.night import NightMeans, NightOutcome, alive, spend, what_was_sent
from fabricproof.nightly.notify import channels
from fabricproof.nightly.retention import prune, what_was_removed

#: What other rooms may import beside this package itself.
FRONT: dict[str, str] = {"admission": "whether users get a repaired node back"}

__all__ = [
    "Blame",
    "Budget",
    "Confirmation",
    "Confirmer",
    "LookColour",
    "LookResult",
    "NightMeans",
    "NightOutcome",
    "alive",
    "channels",
    "keep",
    "log_file",
    "night_lock",
    "now",
    "prune",
    "read_log",
    "record",
    "render_night",
    "settled",
    "spend",
    "what_was_removed",
    "what_was_sent",
    "write_reports",
]
