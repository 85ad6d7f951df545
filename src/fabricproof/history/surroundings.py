"""What others did around the runs of a history, and what of a change between two sides is theirs.

A job keeps beside its numbers what others took of the wire and of the cores of its ranks.  A side
that others disturbed more than the other side is slower, or seems mended once they are gone: where
what they took explains the change it is UNDECIDED, as a red number is UNJUDGED in a run.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import TYPE_CHECKING

from fabricproof.traffic.disturbance import CONCENTRATION, NOTED, share_beyond

if TYPE_CHECKING:
    from fabricproof.history.store import Key, Store

#: a leg of a run: its identity, and the fields of :data:`_OF_LEG`
LegOfRun = tuple[str, ...]

#: how a leg is found again: fields of a key
_OF_LEG = ("check", "leg", "stack", "nodes", "fabric", "partition", "program")

#: so many quiet runs of a disturbed side tell by themselves whether it is slow
_LEAST_QUIET = 3


@dataclass(frozen=True, kw_only=True)
class Taken:
    """What others took of one leg of one run.

    Attributes:
        cores: the share of the leg's time, both ends of a message added: 0 to 2; the whole where
            nobody can say how much.  None where nobody read it.
        wire: likewise of its rails, 0 to 1.
        burst_us: how long one burst of that traffic holds the wire.
    """

    cores: float | None = None
    wire: float | None = None
    burst_us: float = 0.0

    def share(self, kinds: Iterable[str]) -> float:
        """Return the share of these kinds together: ``cores``, ``wire``."""
        return sum(getattr(self, kind) or 0.0 for kind in kinds)


def taken_from(
    store: Store, run_ids: Iterable[str], *, across: Collection[str] = ()
) -> dict[LegOfRun, Taken]:
    """Return what others took of each leg of these runs.

    What holds between legs is of no attempt, and is not there.  Of several attempts, or legs that
    ``across`` makes one, the typical one counts.
    """
    import polars as pl  # noqa: PLC0415 - start-up time

    columns = ("cores_share", "wire_share", "burst_us")
    rows = store.samples(run_ids, ("run_id", "counts", "attempt", *columns))
    rows = rows.filter("counts", pl.col("attempt") > 0, pl.col("unit") != "x")
    attempts = rows.group_by("run_id", *_OF_LEG, "attempt").agg(pl.col(columns).last())
    stars = [pl.lit("*").alias(name) for name in across if name in _OF_LEG]
    legs = attempts.with_columns(stars).group_by("run_id", *_OF_LEG).agg(
        *(
            pl.when(2 * pl.col(name).count() > pl.len()).then(pl.col(name).median()).alias(name)
            for name in columns[:2]
        ),
        pl.col("burst_us").median().fill_null(0.0),
    )  # fmt: skip
    return {
        tuple(leg): Taken(cores=cores, wire=wire, burst_us=burst_us)
        for *leg, cores, wire, burst_us in legs.iter_rows()
    }


def _typical(several: Sequence[Taken]) -> Taken:
    return Taken(
        cores=_median([each.cores for each in several]),
        wire=_median([each.wire for each in several]),
        burst_us=median(each.burst_us for each in several),
    )


def _median(several: Sequence[float | None]) -> float | None:
    """Return the median of what more than half of them know; None if fewer do."""
    known = [each for each in several if each is not None]
    return median(known) if 2 * len(known) > len(several) else None


def around_quantity(
    taken: Mapping[LegOfRun, Taken], key: Key, run_ids: Iterable[str]
) -> list[Taken]:
    """Return what others took of a quantity in each run."""
    leg = tuple(str(getattr(key, name)) for name in _OF_LEG)
    return [taken.get((run_id, *leg), Taken()) for run_id in run_ids]


def around_group(members: Sequence[Sequence[Taken]]) -> list[Taken]:
    """Return what others typically took of some quantities in each run."""
    return [_typical(of_run) for of_run in zip(*members, strict=True)]


@dataclass(frozen=True, kw_only=True)
class _Run:
    """One run of a side: what others took, all together, and the number."""

    share: float
    taken: Taken
    number: float


@dataclass(frozen=True, kw_only=True)
class Beside:
    """What others took of the runs of two sides, by the kinds that were read on both."""

    first: tuple[_Run, ...]
    second: tuple[_Run, ...]
    num_nodes: int = 2

    def explains(self, ratio: float, better: int, margin: float, *, in_us: bool = False) -> bool:
        """Tell whether what others took of one side, beyond the other, may be all of a change.

        Where runs of the slow side that were as quiet as the other side are slow too, it is not.

        Args:
            ratio: of the second side to the first.
            better: 1 where more of the quantity is better, -1 for a time.
            margin: the smallest change that matters, as a fraction.
            in_us: whether the numbers are times, of which it is known how long a burst holds them.
        """
        if ratio == 1:
            return False  # no side is the slow one
        is_worse = (ratio < 1) == (better > 0)
        slow, quick = (self.second, self.first) if is_worse else (self.first, self.second)
        more, less = _shares(slow), _shares(quick)
        # More than scatter: three in four of the quick runs were disturbed less.
        if (
            more - less < NOTED
            or more <= sorted(each.share for each in quick)[-1 - len(quick) // 4]
        ):
            return False
        off = ratio if is_worse else 1 / ratio
        usual = median(each.number for each in quick)
        quiet = [each.number for each in slow if each.share < less + NOTED]
        if len(quiet) >= _LEAST_QUIET and not _is_within(median(quiet) / usual, better, margin):
            return False
        # What the slow side would be without the others, at most.
        alone = 1 - share_beyond(more, less)
        if better > 0:
            return _is_within(off / alone, better, margin)
        waits = self._waits_us(slow, quick) / median(each.number for each in slow) if in_us else 0
        return _is_within(off * (alone - waits), better, margin)

    def _waits_us(self, slow: Sequence[_Run], quick: Sequence[_Run]) -> float:
        more, less = (median(each.taken.wire or 0.0 for each in side) for side in (slow, quick))
        burst_us = median(each.taken.burst_us for each in slow)
        return CONCENTRATION * max(0.0, more - less) * burst_us * max(1, self.num_nodes - 1)

    @property
    def disturbed(self) -> str:
        """Which side others took more of: ``first`` or ``second``."""
        return "second" if _shares(self.second) > _shares(self.first) else "first"

    def said(self, second: str = "on the second side", first: str = "on the first") -> str:
        """Return what was taken, in words; ``second`` and ``first``: how the sides are called."""
        shares = (
            f"{_shares(self.second):.0%} of its time {second}, {_shares(self.first):.0%} {first}"
        )
        return f"others took {shares}"


def _shares(side: Sequence[_Run]) -> float:
    return median(each.share for each in side)


def _is_within(ratio: float, better: int, margin: float) -> bool:
    return ratio >= 1 - margin if better > 0 else ratio <= 1 / (1 - margin)


def beside(
    seen: Sequence[Taken], numbers: Sequence[float | None], num_first: int, num_nodes: int = 2
) -> Beside | None:
    """Return what others took of the runs of two sides.

    None where of no kind more than half of the runs of each side are known.

    Args:
        seen: of each run, those of the first side first.
        numbers: of each run; None or NaN where it has none.
        num_first: how many runs are of the first side.
        num_nodes: that took part.
    """
    runs = list(zip(seen, numbers, strict=True))
    sides = [
        [(taken, each) for taken, each in part if each is not None and math.isfinite(each)]
        for part in (runs[:num_first], runs[num_first:])
    ]
    kinds = [
        kind
        for kind in ("cores", "wire")
        if all(_median([getattr(taken, kind) for taken, _ in part]) is not None for part in sides)
    ]
    if not kinds:
        return None
    first, second = (
        tuple(
            _Run(share=taken.share(kinds), taken=taken, number=number)
            for taken, number in part
            if all(getattr(taken, kind) is not None for kind in kinds)
        )
        for part in sides
    )
    return Beside(first=first, second=second, num_nodes=num_nodes) if first and second else None
