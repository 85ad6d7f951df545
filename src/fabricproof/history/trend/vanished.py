"""Quantities that stopped coming while their check goes on: named as long as the runs show it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from fabricproof.core.units import by_key, counted
from fabricproof.history.store import Matrix

#: runs of its check and stack without a quantity, after which it counts as gone
_GONE_RUNS = 2

#: runs of its check without a whole stack: of one stack by hand it takes many
_STACK_GONE_RUNS = 6

#: so many runs of its check, up to the last with it, must show that it came in more than half
_SHOWN_BY = 6

#: beyond so many moments at which something ended the rest is counted
_MOST = 3


class _Gone(NamedTuple):
    """A quantity that ended: its last run, and how many runs of its check came after."""

    row: int
    last: int
    without: int


def vanished(matrix: Matrix, rows: Sequence[int], columns: Sequence[int]) -> Iterator[str]:
    """Yield what has no number any more while its check goes on, what ended last first.

    Args:
        matrix: of all runs.
        rows: of it, those that were asked for.
        columns: the runs that are looked at.
    """
    if not columns:
        return
    # Where a part is asked for, the runs after its end are no columns, and are what tells.
    present = np.isfinite(matrix.values)[:, columns[0] :]
    asked = set(rows)
    ended: dict[int, list[_Gone]] = {}
    told: set[int] = set()
    for names, least in (
        (("partition", "fabric", "check", "stack"), _GONE_RUNS),
        (("partition", "fabric", "check"), _STACK_GONE_RUNS),
    ):
        for several in _by(matrix, names).values():
            ran = np.flatnonzero(present[several].any(axis=0))
            for row in several:
                if row not in asked or row in told:
                    continue
                there = present[row, ran]
                if without := _runs_without(there.tolist(), least):
                    told.add(row)
                    last = columns[0] + int(ran[there][-1])
                    ended.setdefault(last, []).append(_Gone(row, last, without))
    yield from _sentences(matrix, [ended[last] for last in sorted(ended, reverse=True)])


def _by(matrix: Matrix, names: Sequence[str]) -> dict[tuple[str, ...], list[int]]:
    return by_key(
        (tuple(getattr(key, name) for name in names), row)
        for row, key in enumerate(matrix.keys)
        if key.better
    )


def _runs_without(there: Sequence[bool], least: int) -> int:
    """Return in how many runs of a check a quantity has not come since it last did; 0: it may come.

    What comes in turn comes in no more than half of the runs.
    """
    if there[-1] or not any(there):
        return 0
    first, last = there.index(True), len(there) - 1 - there[::-1].index(True)
    without, newest = len(there) - 1 - last, there[max(0, last + 1 - _SHOWN_BY) : last + 1]
    is_usual = all(2 * sum(part) > len(part) for part in (newest, there[first : last + 1]))
    return without if without >= least and len(newest) == _SHOWN_BY and is_usual else 0


def _sentences(matrix: Matrix, ended: Sequence[Sequence[_Gone]]) -> Iterator[str]:
    for several in ended[:_MOST]:
        one = several[0]
        stop = matrix.runs[one.last]
        yield (
            f"{len(several)} quantities have no number any more while their check goes on, for "
            f"example {matrix.keys[one.row].label}: none since {stop.night} ({stop.run_id}), "
            f"{counted(one.without, 'run')} of the check ago; a node that was renamed: --renamed "
            f"OLD=NEW; taken out on purpose: it is named until fewer than {_SHOWN_BY} of the runs "
            "looked at are of before its end"
        )
    if more := sum(map(len, ended[_MOST:])):
        yield f"{more} more quantities stopped coming before that while their check goes on"
