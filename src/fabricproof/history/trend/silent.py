"""Legs that were tried in the newest runs and gave no number.

Runs without a number are no columns of what trend tests: they would be a green for what was not
measured.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from itertools import accumulate, pairwise
from typing import NamedTuple

import numpy as np

from fabricproof.core.units import by_key
from fabricproof.history.store import Key, Matrix

#: runs of its check without a number, after which a quantity counts as silent
SILENT_RUNS = 2

#: runs of its partition without a leg, after which it may be planned no more
_GIVEN_UP_RUNS = 6

#: words of what nobody tried for
_NOT_TRIED = frozenset({"", "SKIPPED"})

#: and of what is no failure of the leg: others disturbed it, or too few rounds left it open
_NO_FAILURE = _NOT_TRIED | {"PASS", "UNJUDGED"}


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
        is_alarm: it failed, and somebody would try it still.
    """

    sentence: str
    is_alarm: bool


def without_numbers(matrix: Matrix, rows: Sequence[int]) -> Iterator[Silence]:
    """Yield each leg whose newest runs were tried and gave no number.

    Args:
        matrix: of all runs.
        rows: of it, those that were asked for.
    """
    of_leg = _by_home(matrix, rows)
    of_site = _by_home(matrix, range(len(matrix.keys)))
    several = _several(of_leg)
    breadths: dict[str, list[int]] = {}
    for home, mine in of_leg.items():
        measured = _measured_in(matrix, mine)
        if len(measured) < SILENT_RUNS:
            continue
        ends = measured[-1], _last_like(matrix, mine, of_site[home])
        newest = _columns_after(matrix, mine, ends, _NOT_TRIED)
        if len(newest) < SILENT_RUNS:
            continue
        names = (home.stack, *(getattr(home, name) for name in several))
        where = ", ".join(filter(None, names))
        said = f"{home.check} {home.leg} ({where}) gave no usable number in the"
        since = matrix.runs[newest[0]].night
        failed = len(_columns_after(matrix, mine, ends, _NO_FAILURE))
        if home.partition not in breadths:
            breadths[home.partition] = _breadths(matrix, home.partition, of_site)
        without = _runs_without(breadths[home.partition], _columns(matrix, mine, {""}))
        if without:
            yield Silence(
                f"{said} last {len(newest)} runs that tried, since {since}, and the {without} runs "
                "after them did not try: is it still planned?",
                is_alarm=False,
            )
        elif failed < SILENT_RUNS:
            yield Silence(
                f"{said} newest {len(newest)} runs that tried, since {since}; it was FAIL, INVALID "
                f"or MISSING in {failed} of them, and their reports say why",
                is_alarm=False,
            )
        else:
            yield Silence(
                f"WORSE: {said} newest {len(newest)} runs that tried, since {since}", is_alarm=True
            )


def _runs_without(breadths: Sequence[int], due: Sequence[int]) -> int:
    """Return how many runs of a partition have left a leg out since it was due; 0: it may come.

    A run weighs as the legs that it had: six of one check in an afternoon are no six nights.  A
    check that runs once a week is due again after six nights without it.

    Args:
        breadths: legs that each run had.
        due: the runs in which this one was due.
    """
    had = list(accumulate(breadths))
    own = sum(breadths[column] for column in due) / len(due)
    without = had[-1] - had[due[-1]]
    longest = max((had[later] - had[earlier] for earlier, later in pairwise(due)), default=0)
    if round(without / own) < _GIVEN_UP_RUNS or without <= 2 * longest:
        return 0
    return sum(each > 0 for each in breadths[due[-1] + 1 :])


def _breadths(matrix: Matrix, partition: str, of_site: Mapping[_Home, Sequence[int]]) -> list[int]:
    """Return how many legs of a partition each run had."""
    found = [0] * len(matrix.runs)
    for home, rows in of_site.items():
        if home.partition == partition:
            for column in _columns(matrix, rows, {""}):
                found[column] += 1
    return found


def _by_home(matrix: Matrix, rows: Iterable[int]) -> dict[_Home, list[int]]:
    return by_key((_home(matrix.keys[row]), row) for row in rows)


def _home(key: Key) -> _Home:
    return _Home(key.partition, key.fabric, key.check, key.stack, key.leg)


def _several(homes: Iterable[_Home]) -> list[str]:
    """Return what must be named, since there is more than one of it."""
    known = list(homes)
    names = ("partition", "fabric")
    return [name for name in names if len({getattr(each, name) for each in known} - {""}) > 1]


def _columns_after(
    matrix: Matrix, rows: Sequence[int], ends: tuple[int, int], passed_over: Container[str]
) -> list[int]:
    """Return the columns behind the last number in which any of the rows has another word.

    ``ends``: the last number of these rows, and of any nodes.  Where nobody saw a rank, it may
    have been these nodes, unless the leg gave a number on others since.
    """
    own, anywhere = ends
    named = [row for row in rows if matrix.keys[row].nodes]
    nameless = [row for row in rows if not matrix.keys[row].nodes]
    after = {each for each in _columns(matrix, named, passed_over) if each > own}
    after |= {each for each in _columns(matrix, nameless, passed_over) if each > anywhere}
    return sorted(after)


def _columns(matrix: Matrix, rows: Sequence[int], passed_over: Container[str]) -> list[int]:
    """Return the columns in which any of the rows has another word than these."""
    words = {matrix.verdicts[row] for row in rows} if matrix.verdicts else set()
    columns = range(len(matrix.runs))
    return [at for at in columns if any(each[at] not in passed_over for each in words)]


def _measured_in(matrix: Matrix, rows: Sequence[int]) -> list[int]:
    """Return the columns in which any of the rows has a usable number.

    A program that printed nothing left its quantities without unit and settings: in rows of their
    own, of which nobody knows what is better.
    """
    numbers = [row for row in rows if matrix.keys[row].better]
    found: list[int] = np.flatnonzero(np.isfinite(matrix.values[numbers]).any(axis=0)).tolist()
    return found


def _last_like(matrix: Matrix, rows: Sequence[int], leg: Sequence[int]) -> int:
    """Return the last column in which a leg gave any number of the quantities of these rows."""
    asked = {matrix.keys[row].quantity for row in rows}
    return _measured_in(matrix, [row for row in leg if matrix.keys[row].quantity in asked])[-1]
