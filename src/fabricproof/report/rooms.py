"""What other rooms make of the history, asked for in the form in which a report wants it."""

# ruff: noqa: ARG001 - the other rooms are being built
from __future__ import annotations

from collections.abc import Mapping

from fabricproof.compare.model import Comparison
from fabricproof.errors import UnavailableError
from fabricproof.report.model import Band
from fabricproof.runner import Workplace
from fabricproof.site import Site
from fabricproof.store import Key, Matrix, Run, Store
from fabricproof.trend.model import Trend


def bands_of(
    site: Site, place: Workplace, keys: tuple[Key, ...]
) -> tuple[Mapping[Key, Band], list[str]]:
    """Return the bands of the active baseline, and what must be said of it."""
    return {}, []


def trend_of(
    site: Site, place: Workplace, store: Store, matrix: Matrix
) -> tuple[Trend | None, list[str]]:
    """Return what the history shows, None where it cannot be told, and why not."""
    return None, []


def comparison_of(
    site: Site, place: Workplace, store: Store, run: Run, words: str, against: str
) -> Comparison:
    """Return the comparison of what ``against`` names with what ``words`` names."""
    raise UnavailableError("runs cannot be compared yet", next_step="leave --before out")
