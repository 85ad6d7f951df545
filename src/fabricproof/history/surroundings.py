"""What others did around the runs of a history, and what of a change between two sides is theirs.

A job keeps beside its numbers what others took of the wire and of the cores of its ranks.  A side
that others disturbed more than the other side is slower, or seems mended once they are gone: where
what they took explains the change it is UNDECIDED, as a red number is UNJUDGED in a run.
"""

from __future__ import annotations

import math
import zlib
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

from fabricproof.core.records import open_lines, parse_json
from fabricproof.job.evidence.disturbance import (
    CONCENTRATION,
    NOBODY,
    NOTED,
    Surroundings,
    share_beyond,
    share_taken,
)
from fabricproof.traffic.disturbance import Disturbance, DisturbanceKind, strongest

if TYPE_CHECKING:
    from fabricproof.history.store import Key, Store

#: a leg of a run: run, check, leg, stack, nodes
LegOfRun = tuple[str, str, str, str, str]

#: what a job writes before the numbers of an attempt, and of no other: what others did meanwhile
_ENVIRONMENT = b'"kind": "environment"'


def surroundings_of(
    several: Iterable[tuple[str, int, str]],
) -> dict[tuple[str, int], Surroundings]:
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


def _surroundings(text: bytes, run_id: str) -> Surroundings:
    try:
        record = parse_json(text)
        if record["run_id"] != run_id:
            return NOBODY
        return Surroundings(found=tuple(map(_disturbance, record["disturbances"])))
    except (ValueError, KeyError, TypeError):
        return NOBODY


def _disturbance(told: Mapping[str, Any]) -> Disturbance:
    """Return a disturbance of a record; ValueError or TypeError where it is none."""
    found = Disturbance(**{**told, "kind": DisturbanceKind(told["kind"])})
    share, burst = found.share, found.burst_us
    if not (share is None or _is_between(share, 1.0)) or not _is_between(burst, math.inf):
        raise ValueError(f"no share and no time: {share!r}, {burst!r}")
    return found


def _is_between(value: object, most: float) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= most


@dataclass(frozen=True, kw_only=True)
class Taken:
    """What others took of one leg of one run.

    Attributes:
        share: of the leg's time, 0 to 1 and more where cores and wire add up; all of it where
            nobody can say how much.
        wire: the share that was traffic on its rails, 0 to 1.
        burst_us: how long one burst of that traffic holds the wire.
    """

    share: float
    wire: float = 0.0
    burst_us: float = 0.0


def taken_from(store: Store, run_ids: Iterable[str]) -> dict[LegOfRun, Taken]:
    """Return what others took of each leg of these runs; of what nobody looked at there is nothing.

    What holds between legs is of no attempt, and is not there.
    """
    import polars as pl  # noqa: PLC0415 - start-up time

    legs = ["run_id", "check", "leg", "stack", "nodes"]
    needed = ("run_id", "counts", "attempt", "file", "line")
    samples = store.samples(run_ids, needed)
    rows = samples.filter("counts", pl.col("attempt") > 0, pl.col("unit") != "x")
    places = rows.group_by(legs).agg(pl.col("file").last(), pl.col("line").last()).rows()
    near = surroundings_of((file, line, leg[0]) for *leg, file, line in places)
    return {
        tuple(leg): _taken(near[file, line].found)
        for *leg, file, line in places
        if near.get((file, line), NOBODY).found
    }


def _taken(found: Sequence[Disturbance]) -> Taken:
    if any(each.share is None for each in found):
        return Taken(share=1.0)
    traffic = strongest(found, DisturbanceKind.FOREIGN_TRAFFIC)
    if traffic is None or not traffic.counts:
        return Taken(share=share_taken(found))
    return Taken(share=share_taken(found), wire=traffic.share or 0.0, burst_us=traffic.burst_us)


@dataclass(frozen=True, kw_only=True)
class Beside:
    """What others typically took of one quantity on each side, and what it is of."""

    first: Taken
    second: Taken
    num_nodes: int = 2

    def explains(
        self, ratio: float, better: int, margin: float, levels: tuple[float, float]
    ) -> bool:
        """Tell whether what others took of one side, beyond the other, may be all of a change.

        Args:
            ratio: of the second side to the first.
            better: 1 where more of the quantity is better, -1 for a time.
            margin: the smallest change that matters, as a fraction.
            levels: typical value of the first side and of the second, in its unit.
        """
        is_worse = (ratio < 1) == (better > 0)
        slow, quick = (self.second, self.first) if is_worse else (self.first, self.second)
        if slow.share - quick.share < NOTED:
            return False
        off = ratio if is_worse else 1 / ratio
        # What the slow side would be without the others, at most.
        alone = 1 - share_beyond(slow.share, quick.share)
        if better > 0:
            return off / alone >= 1 - margin
        waits_us = CONCENTRATION * max(0.0, slow.wire - quick.wire) * slow.burst_us
        queued = waits_us * max(1, self.num_nodes - 1) / levels[is_worse]
        return off * (alone - queued) <= 1 / (1 - margin)

    def said(self, second: str = "on the second side", first: str = "on the first") -> str:
        """Return what was taken, in words; ``second`` and ``first``: how the sides are called."""
        return (
            f"others took {_percent(self.second)} of its time {second}, "
            f"{_percent(self.first)} {first}"
        )


def _percent(taken: Taken) -> str:
    return f"{min(1.0, taken.share):.0%}"


def beside(
    taken: Mapping[LegOfRun, Taken],
    key: Key,
    run_ids: Sequence[str],
    usable: Sequence[bool],
    num_first: int,
) -> Beside | None:
    """Return what others typically took of a quantity; None where nobody saw it on either side.

    Args:
        taken: of :func:`taken_from`.
        key: the quantity.
        run_ids: of the columns, those of the first side first.
        usable: for each column, whether it has a number.
        num_first: how many columns are of the first side.
    """
    leg = key.check, key.leg, key.stack, key.nodes
    seen = [
        taken.get((run_id, *leg)) if there else None
        for run_id, there in zip(run_ids, usable, strict=True)
    ]
    first, second = (
        [each for each in part if each is not None] for part in (seen[:num_first], seen[num_first:])
    )
    if not first or not second:
        return None
    return Beside(
        first=_typical(first), second=_typical(second), num_nodes=key.nodes.count(",") + 1
    )


def _typical(several: Sequence[Taken]) -> Taken:
    return Taken(
        share=median(each.share for each in several),
        wire=median(each.wire for each in several),
        burst_us=median(each.burst_us for each in several),
    )


def typical(several: Sequence[Beside]) -> Beside:
    """Return what others typically took of the quantities of a group."""
    return Beside(
        first=_typical([each.first for each in several]),
        second=_typical([each.second for each in several]),
        num_nodes=max(each.num_nodes for each in several),
    )
