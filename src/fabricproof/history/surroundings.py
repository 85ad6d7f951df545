"""What others did around the runs of a history, and what of a change between two sides is theirs.

A job keeps beside its numbers what others took of the wire and of the cores of its ranks.  A side
that others disturbed more than the other side is slower, or seems mended once they are gone: where
what they took explains the change it is UNDECIDED, as a red number is UNJUDGED in a run.
"""

from __future__ import annotations

import json
import math
import zlib
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

from fabricproof.core.records import open_lines
from fabricproof.core.units import by_key
from fabricproof.traffic.disturbance import (
    CONCENTRATION,
    NOTED,
    Disturbance,
    DisturbanceKind,
    Disturbances,
    largest_of,
    share_beyond,
    share_taken,
)

if TYPE_CHECKING:
    from fabricproof.history.store import Key, Store

#: a leg of a run: its identity, and the fields of :data:`_OF_LEG`
LegOfRun = tuple[str, ...]

#: what a job writes before the numbers of an attempt, and of no other: what others did meanwhile
_ENVIRONMENT = b'"kind": "environment"'


def surroundings_of(
    several: Iterable[tuple[str, int, str]],
) -> dict[tuple[str, int], Disturbances]:
    """Return what others did around the attempts that gave some numbers, by file and line.

    Each number is given by the file and the line that it stands in, and its run.  Each file is read
    once.  What stands in no file any more is absent; what stands beside no sound environment of its
    run has nobody around it.  Neither explains anything.
    """
    wanted: dict[str, dict[int, str]] = defaultdict(dict)
    for path, line, run_id in several:
        wanted[path][line] = run_id
    found = {}
    for file, lines in wanted.items():
        try:
            for line, text in _environments(Path(file), lines):
                found[file, line] = _surroundings(text, lines[line])
        except (OSError, EOFError, zlib.error):
            continue  # put aside meanwhile, or cut
    return found


def _environments(path: Path, lines: Mapping[int, str]) -> Iterator[tuple[int, bytes]]:
    """Yield each of the lines with the environment that stands last before it."""
    last, end = b"", max(lines)
    with open_lines(path) as file:
        for number, text in enumerate(file, start=1):
            if _ENVIRONMENT in text:
                last = text
            if number in lines:
                yield number, last
            if number >= end:
                return


def _surroundings(text: bytes, run_id: str) -> Disturbances:
    try:
        record = json.loads(text)
        if record["run_id"] != run_id:
            return Disturbances()
        return Disturbances(found=tuple(map(_disturbance, record["disturbances"])))
    except (ValueError, KeyError, TypeError):
        return Disturbances()


def _disturbance(told: Mapping[str, Any]) -> Disturbance:
    """Return a disturbance of a record; ValueError or TypeError where it is none."""
    found = Disturbance(**{**told, "kind": DisturbanceKind(told["kind"])})
    share, burst = found.share, found.burst_us
    if not (share is None or _is_between(share, 1.0)) or not _is_between(burst, math.inf):
        raise ValueError(f"no share and no time: {share!r}, {burst!r}")
    return found


def _is_between(value: object, most: float) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= most


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
    store: Store,
    run_ids: Iterable[str],
    *,
    across: Collection[str] = (),
) -> dict[LegOfRun, Taken]:
    """Return what others took of each leg of these runs; what nobody looked at is not there.

    What holds between legs is of no attempt, and is not there.  Of several attempts, or legs that
    ``across`` makes one, the typical one counts.
    """
    import polars as pl  # noqa: PLC0415 - start-up time

    needed = ("run_id", "counts", "attempt", "file", "line")
    samples = store.samples(run_ids, needed)
    rows = samples.filter("counts", pl.col("attempt") > 0, pl.col("unit") != "x")
    last = pl.col("file").last(), pl.col("line").last()
    places = rows.group_by("run_id", *_OF_LEG, "attempt").agg(*last).rows()
    near = surroundings_of((file, line, run_id) for run_id, *_, file, line in places)
    found = by_key(
        ((run_id, *_names(leg, across)), _taken(near[file, line]))
        for run_id, *leg, _, file, line in places
        if (file, line) in near
    )
    return {leg: _typical(several) for leg, several in found.items()}


def _names(leg: Sequence[str], across: Collection[str]) -> Iterator[str]:
    """Yield the fields of a leg as keys of a comparison have them."""
    for name, value in zip(_OF_LEG, leg, strict=True):
        yield "*" if name in across else value


def _taken(others: Disturbances) -> Taken:
    cores, wire = (
        [each for each in others.found if each.kind is kind]
        for kind in (DisturbanceKind.STARVED_CORES, DisturbanceKind.FOREIGN_TRAFFIC)
    )
    traffic = largest_of(wire, DisturbanceKind.FOREIGN_TRAFFIC)
    return Taken(
        cores=_share(cores), wire=_share(wire), burst_us=traffic.burst_us if traffic else 0.0
    )


def _share(of_kind: Sequence[Disturbance]) -> float | None:
    if not of_kind:
        return None
    return 1.0 if any(each.share is None for each in of_kind) else share_taken(of_kind)


def _typical(several: Sequence[Taken]) -> Taken:
    return Taken(
        cores=_median([each.cores for each in several]),
        wire=_median([each.wire for each in several]),
        burst_us=median(each.burst_us for each in several),
    )


def _median(several: Sequence[float | None]) -> float | None:
    """Return the median of what more than half of them know; None where fewer do."""
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
