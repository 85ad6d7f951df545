"""Legs that were tried in the newest runs and gave no number.

Runs without a number are no columns of what trend tests: they would be a green for what was not
measured.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from fabricproof.history.store import Key, Matrix

#: runs of its check without a number, after which a quantity counts as silent
SILENT_RUNS = 2


class _Home(NamedTuple):
    """What is tried as one: a leg of a check of a stack, in a partition and over a fabric."""

    partition: str
    fabric: str
    check: str
    stack: str
    leg: str


def without_numbers(matrix: Matrix, rows: Sequence[int]) -> Iterator[str]:
    """Yield a sentence for each leg whose newest runs were tried and gave no number.

    Args:
        matrix: of all runs.
        rows: of it, those that were asked for.
    """
    of_leg: dict[_Home, list[int]] = {}
    for row in rows:
        of_leg.setdefault(_home(matrix.keys[row]), []).append(row)
    several = _several(of_leg)
    for home, mine in of_leg.items():
        # A program that printed nothing left its quantities without unit and settings: in rows of
        # their own, of which nobody knows what is better.
        numbers = [row for row in mine if matrix.keys[row].better]
        tried, measured = _tried_in(matrix, mine), _measured_in(matrix, numbers)
        newest = [column for column in tried if not measured or column > measured[-1]]
        if len(newest) >= SILENT_RUNS and len(measured) >= SILENT_RUNS:
            where = ", ".join([home.stack, *(getattr(home, name) for name in several)])
            yield (
                f"WORSE: {home.check} {home.leg} ({where}) gave no usable number in the newest "
                f"{len(newest)} runs that tried, since {matrix.runs[newest[0]].night}"
            )


def _home(key: Key) -> _Home:
    return _Home(key.partition, key.fabric, key.check, key.stack, key.leg)


def _several(homes: Iterable[_Home]) -> list[str]:
    """Return what must be named, since there is more than one of it."""
    known = list(homes)
    names = ("partition", "fabric")
    return [name for name in names if len({getattr(each, name) for each in known}) > 1]


def _tried_in(matrix: Matrix, rows: Sequence[int]) -> list[int]:
    """Return the columns in which any of the rows has a word."""
    words = [matrix.verdicts[row] for row in rows] if matrix.verdicts else []
    columns = range(len(matrix.runs))
    return [at for at in columns if any(each[at] not in {"", "SKIPPED"} for each in words)]


def _measured_in(matrix: Matrix, rows: Sequence[int]) -> list[int]:
    """Return the columns in which any of the rows has a usable number."""
    found: list[int] = np.flatnonzero(np.isfinite(matrix.values[rows]).any(axis=0)).tolist()
    return found
