"""What had numbers and has none now is named, and is never SAME nor "no lasting change".

Why does not matter: printed nothing, INVALID, hung before its first row, left no record, is no
longer planned.  A run in which a check ran and one of its quantities has no number lacks it.  What
comes in turn is lacking as often before.  A check that did not run at all is MISSING in its run by
the required checks.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from fabricproof.core.units import by_key, counted
from fabricproof.history.store import Key, Matrix
from fabricproof.verdict.value import ERROR_UNIT

if TYPE_CHECKING:
    import numpy.typing as npt

    Flags = npt.NDArray[np.bool_]
    Values = npt.NDArray[np.float64]

#: so many runs of its check without a number are no single mishap
SEVERAL = 2

#: runs of its check without a whole stack: of one stack by hand it takes many
_STACK_GONE_RUNS = 6

#: what the first side, too, lacks now and then must be lacking so many times more often
_TIMES = 2

#: of so many runs up to its last number a quantity must have had one in more than half
_SHOWN_BY = 6

#: beyond so many moments at which something ended the rest is counted
_MOST = 3

_CHECK = ("partition", "fabric", "check")
_SCHEDULE = (*_CHECK, "stack")


def _place(key: Key) -> tuple[str, ...]:
    return (*key.home, key.nodes)


class _Seen:
    """Which runs gave a number of each place, and in which each check ran."""

    def __init__(self, keys: Sequence[Key], values: Values, words: Sequence[Sequence[str]]) -> None:
        self.keys = keys
        self.measured: Flags = np.isfinite(values)
        told = np.full(values.shape, "", dtype="U16")
        for row, several in enumerate(words):
            told[row, : len(several)] = several
        self.tried: Flags = self.measured | ((told != "") & (told != "SKIPPED"))
        self.skipped = _any_of(_place, keys, told == "SKIPPED")

    def ran(self, names: Sequence[str]) -> dict[tuple[str, ...], Flags]:
        """Return the runs in which a check, alone or of a stack, ran."""
        return _any_of(lambda key: _named(key, names), self.keys, self.tried)


def _named(key: Key, names: Sequence[str]) -> tuple[str, ...]:
    return tuple(str(getattr(key, name)) for name in names)


def _any_of(
    name_of: Callable[[Key], tuple[str, ...]], keys: Sequence[Key], flags: Flags
) -> dict[tuple[str, ...], Flags]:
    rows = by_key((name_of(key), row) for row, key in enumerate(keys))
    return {name: np.logical_or.reduce(flags[several]) for name, several in rows.items()}


def gone_after(
    keys: Sequence[Key],
    values: Values,
    words: Sequence[Sequence[str]],
    split: int,
    apart: Collection[int],
) -> dict[int, str]:
    """Return the rows that the second side lacks in several runs, or in its last; why, in words.

    Args:
        keys: of the rows.
        values: shape (keys, runs), NaN where there is no usable number.
        words: verdict words of each row; fewer than runs where later ones have none.
        split: how many runs are of the first side, which come first.
        apart: runs that repeat what was red, and leave the rest out.
    """
    seen = _Seen(keys, values, words)
    ran = seen.ran(_SCHEDULE)
    # Another version, build or setting that only the second side has stands for the first's.
    is_new = ~seen.measured[:, :split].any(axis=1, keepdims=True)
    newer = _any_of(_place, keys, seen.measured & is_new)
    counts = np.ones(values.shape[1], dtype=bool)
    counts[list(apart)] = False
    found: dict[int, str] = {}
    for row in np.flatnonzero(seen.measured[:, :split].any(axis=1)).tolist():
        key = keys[row]
        if not key.better or key.unit == ERROR_UNIT:
            continue
        here, there = seen.measured[row] | newer[_place(key)], ran[_named(key, _SCHEDULE)] & counts
        lacks = there & ~here & ~seen.skipped[_place(key)]
        bad, good = int(lacks[split:].sum()), int(here[split:].sum())
        before, was = int(lacks[:split].sum()), int(here[:split].sum())
        runs_after = np.flatnonzero(there[split:])
        is_last = bool(len(runs_after)) and bool(lacks[split:][runs_after[-1]])
        often = bad * (before + was) > _TIMES * before * (bad + good)
        if bad and (not good or ((bad >= SEVERAL or is_last) and often)):
            found[row] = f"no number in {bad} of {bad + good} runs of the second side"
    return found


def gone_now(matrix: Matrix, rows: Iterable[int], columns: Sequence[int]) -> list[str]:
    """Return a sentence for each moment since which quantities have no number, the newest first.

    Args:
        matrix: of all runs.
        rows: of it, those that were asked for.
        columns: the runs that are looked at; those after the last of them are, too.
    """
    if not columns:
        return []
    seen = _Seen(matrix.keys, matrix.values, matrix.verdicts)
    number = _any_of(_place, matrix.keys, seen.measured)
    levels = [
        (seen.ran(_SCHEDULE), _SCHEDULE, SEVERAL),
        (seen.ran(_CHECK), _CHECK, _STACK_GONE_RUNS),
    ]
    ended: dict[int, list[tuple[int, int]]] = {}
    for row in rows:
        key = matrix.keys[row]
        for ran, names, least in levels:
            due = np.flatnonzero(ran[_named(key, names)] & ~seen.skipped[_place(key)])
            due = due[due >= columns[0]]
            there = number[_place(key)][due].tolist()
            if without := _runs_without(there, least):
                ended.setdefault(int(due[len(there) - 1 - without]), []).append((row, without))
                break
    told = [ended[last] for last in sorted(ended, reverse=True)]
    sentences = []
    for last, several in zip(sorted(ended, reverse=True), told[:_MOST], strict=False):
        row, without = several[0]
        key = matrix.keys[row]
        sentences.append(
            f"{len(several)} quantities had numbers and have none now, for example "
            f"{key.label} ({key.partition}, {key.fabric}): none since "
            f"{matrix.runs[last].night} UTC, {counted(without, 'run')} of the check ago"
        )
    if more := sum(map(len, told[_MOST:])):
        sentences.append(f"{more} more stopped coming before that")
    return sentences


def _runs_without(there: Sequence[bool], least: int) -> int:
    """Return in how many runs a quantity has not come since it last did; 0: it may come.

    What comes in turn comes in no more than half of the runs.
    """
    if not any(there) or there[-1]:
        return 0
    last = len(there) - 1 - there[::-1].index(True)
    newest = there[max(0, last + 1 - _SHOWN_BY) : last + 1]
    without = len(there) - 1 - last
    is_usual = sum(newest) >= SEVERAL and 2 * sum(newest) > len(newest)
    return without if without >= least and is_usual else 0
