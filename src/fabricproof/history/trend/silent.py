"""Legs that were tried in the newest runs and gave no number.

Runs without a number are no columns of what trend tests: they would be a green for what was not
measured.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from fabricproof.history.store import Key, Matrix

#: runs of its check without a number, after which a quantity counts as silent
SILENT_RUNS = 2

#: runs of its partition without a leg, after which it may be planned no more
_GIVEN_UP_RUNS = 6


class _Home(NamedTuple):
    """What is tried as one: a leg of a check of a stack, in a partition and over a fabric."""

    partition: str
    fabric: str
    check: str
    stack: str
    leg: str


class Silence(NamedTuple):
    """A leg that gave no number when it was tried last.

    Attributes:
        sentence: which leg, how often it was tried in vain, and since when.
        is_over: nobody has tried it any more for so long that it is no alarm of today.
    """

    sentence: str
    is_over: bool


def without_numbers(matrix: Matrix, rows: Sequence[int]) -> Iterator[Silence]:
    """Yield each leg whose newest runs were tried and gave no number.

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
            names = (home.stack, *(getattr(home, name) for name in several))
            where = ", ".join(filter(None, names))
            said = f"{home.check} {home.leg} ({where}) gave no usable number in the"
            since = matrix.runs[newest[0]].night
            without = _runs_without(matrix, mine, home.partition)
            yield Silence(
                f"{said} last {len(newest)} runs that tried, since {since}, and the {without} runs "
                "after them did not try: is it still planned?"
                if without
                else f"WORSE: {said} newest {len(newest)} runs that tried, since {since}",
                is_over=bool(without),
            )


def _runs_without(matrix: Matrix, rows: Sequence[int], partition: str) -> int:
    """Return how many runs of a partition have left a leg out since it was due; 0: it may come.

    A check that runs once a week is due again after six nights without it.
    """
    others = [row for row, key in enumerate(matrix.keys) if key.partition == partition]
    number = {column: at for at, column in enumerate(_columns(matrix, others, {""}))}
    due = [number[column] for column in _columns(matrix, rows, {""})]
    without = len(number) - 1 - due[-1]
    longest = max((later - earlier for earlier, later in pairwise(due)), default=0)
    return without if without >= _GIVEN_UP_RUNS and without > 2 * longest else 0


def _home(key: Key) -> _Home:
    return _Home(key.partition, key.fabric, key.check, key.stack, key.leg)


def _several(homes: Iterable[_Home]) -> list[str]:
    """Return what must be named, since there is more than one of it."""
    known = list(homes)
    names = ("partition", "fabric")
    return [name for name in names if len({getattr(each, name) for each in known} - {""}) > 1]


def _tried_in(matrix: Matrix, rows: Sequence[int]) -> list[int]:
    """Return the columns in which a number of any of the rows was tried for."""
    return _columns(matrix, rows, {"", "SKIPPED"})


def _columns(matrix: Matrix, rows: Sequence[int], passed_over: Container[str]) -> list[int]:
    """Return the columns in which any of the rows has another word than these."""
    words = {matrix.verdicts[row] for row in rows} if matrix.verdicts else set()
    columns = range(len(matrix.runs))
    return [at for at in columns if any(each[at] not in passed_over for each in words)]


def _measured_in(matrix: Matrix, rows: Sequence[int]) -> list[int]:
    """Return the columns in which any of the rows has a usable number."""
    found: list[int] = np.flatnonzero(np.isfinite(matrix.values[rows]).any(axis=0)).tolist()
    return found
