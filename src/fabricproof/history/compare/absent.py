"""Legs that some runs have no record of although they measured the others of their check.

A night that measures other checks, other nodes or other pairs leaves as much out, and means to.
What tells the two apart: a run that lost a leg has nothing that a whole run has not, and most of
it.  A part that comes in turn, a pair that was drawn instead, a check that was not asked for have
something else in its place, or nothing.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from fabricproof.history.store import Key

if TYPE_CHECKING:
    import numpy.typing as npt

    Flags = npt.NDArray[np.bool_]

#: so many runs without a record are no single mishap; the last run is told alone
_SEVERAL = 2

#: a leg that the first side had no record of either, now and then, must be left out so much more
_TIMES = 2


def without_record(
    keys: Sequence[Key], recorded: Flags, is_second: Sequence[bool], apart: Collection[int]
) -> Mapping[int, str]:
    """Return the rows of which runs of the second side have no record, each with its sentence.

    Args:
        keys: of the rows.
        recorded: shape (keys, runs): whether a run has a record of the row, with or without a
            number.
        is_second: of each run whether it is of the second side; those of the first come first.
        apart: runs that repeat what was red, and leave the rest out.
    """
    split = list(is_second).count(False)
    schedules: dict[tuple[str, ...], dict[tuple[str, str, str], list[int]]] = {}
    for row, key in enumerate(keys):
        legs = schedules.setdefault((key.partition, key.fabric, key.stack, key.check), {})
        legs.setdefault((key.program, key.leg, key.nodes), []).append(row)
    found: dict[int, str] = {}
    for (*_, stack, check), legs in schedules.items():
        here = np.array([recorded[rows].any(axis=0) for rows in legs.values()])
        _of_any_nodes(list(legs), here)
        lost = _lost(here, split, apart, across=stack != "*")
        ran = np.flatnonzero(here.any(axis=0))
        for (_, leg, nodes), rows, there, gone in zip(legs, legs.values(), here, lost, strict=True):
            if not nodes or not there[:split].any() or not _is_told(there, gone, split, ran[-1]):
                continue
            bad, good = int(gone[split:].sum()), int(there[split:].sum())
            said = f"{check} {leg} {keys[rows[0]].pair} ({stack})"
            said += f" in {bad} of {bad + good} runs of the second side"
            found.update(dict.fromkeys((row for row in rows if keys[row].better), said))
    return found


def _of_any_nodes(legs: Sequence[tuple[str, str, str]], here: Flags) -> None:
    """Have a record without nodes, of which nobody saw a rank, stand for all nodes of its leg."""
    for at, (_, leg, nodes) in enumerate(legs):
        if not nodes:
            here[[other for other, each in enumerate(legs) if each[1] == leg]] |= here[at]


def _lost(here: Flags, split: int, apart: Collection[int], *, across: bool) -> Flags:
    """Return which legs each run has no record of, though it is else as a run that has one.

    Args:
        here: shape (legs, runs).
        split: how many runs are of the first side.
        apart: runs that leave much out by intent.
        across: whether the other side's runs are of the same schedule.
    """
    counts = here.sum(axis=0)
    common = here.T.astype(np.float64) @ here
    # whole[run, other]: the other run has all of it, more than it, and not twice as much
    whole = (common == counts[:, None]) & (counts[None] > counts[:, None])
    whole &= 2 * counts[:, None] >= counts[None]
    whole[list(apart)] = False
    if not across:
        whole[:split, split:] = whole[split:, :split] = False
    lost: Flags = (here.astype(np.float64) @ whole.T > 0) & ~here
    return lost


def _is_told(there: Flags, gone: Flags, split: int, last: int) -> bool:
    bad, good = int(gone[split:].sum()), int(there[split:].sum())
    before, was = int(gone[:split].sum()), int(there[:split].sum())
    is_several = bad >= _SEVERAL or (last >= split and bool(gone[last]))
    return is_several and bad * (before + was) > _TIMES * before * (bad + good)
