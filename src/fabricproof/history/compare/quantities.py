"""The margins of a comparison as somebody asked for them."""

from __future__ import annotations

from collections.abc import Sequence

from fabricproof.core.errors import ConfigError
from fabricproof.history.compare.errors import SideError
from fabricproof.history.store import quantities


def parse_margins(texts: Sequence[str]) -> dict[str, float]:
    """Return the margins with those of ``bandwidth=3%`` or ``latency=0.05`` in place.

    Raises:
        SideError: an unknown metric, or no fraction between 0 and 1.
    """
    try:
        return quantities.parse_margins(texts)
    except ConfigError as error:
        raise SideError(error.problem, expected=error.expected, got=error.got) from None
