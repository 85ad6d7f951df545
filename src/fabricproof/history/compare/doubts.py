"""What a reader must know first: how the runs lie in time, and what they are too few for."""

from __future__ import annotations

import itertools
import statistics
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from fabricproof.history.compare.model import Side
from fabricproof.history.compare.table import MAY_DIFFER, Frame, error_notes
from fabricproof.history.stats.power import can_be_sure
from fabricproof.history.stats.shifts import Shift

if TYPE_CHECKING:
    import numpy.typing as npt

#: nobody is told to measure more often than this
_MOST_MORE = 1000

#: runs on both sides together from which it is asked whether nights resemble each other, the
#: orders of runs that it is asked against, and how rare it must be among these
_LEAST_FOR_ORDER, _ORDERS, _RARE = 8, 400, 0.05

#: no correlation is taken for more
_MOST = 0.95


def doubts(
    table: Frame, joined: Frame, shifts: Sequence[Shift], sides: tuple[Side, Side], alpha: float
) -> Iterator[str]:
    """Yield what is to be known of the numbers of two sides, beside what differs."""
    yield from error_notes(table)
    counts = table.num_first, len(table.run_ids) - table.num_first
    for name, count, side in zip(("first", "second"), counts, sides, strict=True):
        if count == 1:
            yield (
                f"one run only on the {name} side ({side.words}): its scatter is not known; BETTER "
                "or WORSE says that this run is apart, not that the next one will be"
            )
    yield from unreachable_notes(counts, alpha)
    yield from _order_notes(*sides)
    if lag := lag_of(joined):
        yield (
            f"consecutive runs resemble each other (correlation {lag:.1f}): sides one after the "
            f"other differ by that alone, and count as {(1 - lag) / (1 + lag):.0%} as many runs; "
            "let the sides alternate"
        )
    for word, ratios in (
        ("more", [each.scatter for each in shifts if each.scatter and each.scatter > 1]),
        ("less", [each.scatter for each in shifts if each.scatter and each.scatter < 1]),
    ):
        if ratios:
            yield (
                f"{len(ratios)} of {len(shifts)} quantities scatter {word} on the second side, "
                f"{statistics.median(ratios):.2g} times as much: neither BETTER nor WORSE"
            )
    if across := [name for name in MAY_DIFFER if getattr(joined.keys[0], name) == "*"]:
        yield f"numbers of unlike {', '.join(sorted(across))} stand against each other"
    if aside := [why for several in table.set_aside.values() for why in several]:
        yield f"{len(aside)} numbers set aside as no measurements, first: {aside[0]}"


def unreachable_notes(counts: tuple[int, int], alpha: float) -> Iterator[str]:
    """Yield that so few runs cannot reach a word, however far apart they are."""
    if not min(counts) or can_be_sure(counts, alpha):
        return
    first, second = counts
    more = next(n for n in range(1, _MOST_MORE) if can_be_sure((first + n, second + n), alpha))
    yield (
        f"{first} runs against {second} cannot be BETTER or WORSE, however far apart they are: "
        f"that takes {more} more on each side"
    )


def _order_notes(first: Side, second: Side) -> Iterator[str]:
    if second.runs[-1].start < first.runs[0].start:
        yield f"the first side ({first.words}) is the later one: words are of the older runs"
    elif first.runs[-1].start >= second.runs[0].start:
        yield "the sides alternate in time: a drift over both cannot pass for a change"


def lag_of(table: Frame) -> float:
    """Return how much a run resembles the next; 0 where the sides alternate in time."""
    first, second = table.run_ids[: table.num_first], table.run_ids[table.num_first :]
    is_apart = max(first) < min(second) or max(second) < min(first)
    return resemblance(table.values, table.num_first) if is_apart else 0.0


def resemblance(values: npt.NDArray[np.float64], num_first: int) -> float:
    """Return how much a run resembles the next of its side; 0 if no more than by chance.

    The correlation of neighbours, over all rows around the median of each side, against random
    orders of the runs of each side: under "no memory" these are as likely as the real one.
    """
    if values.shape[1] < _LEAST_FOR_ORDER:
        return 0.0
    logs, parts = np.log(values), []
    for part in (logs[:, :num_first], logs[:, num_first:]):
        there = np.isfinite(part)
        total = np.where(there, part, 0.0).sum(axis=1) / np.maximum(there.sum(axis=1), 1)
        off = np.where(there, part - total[:, None], 0.0)
        # Rows of one scale: a noisy one does not decide for all.
        norm = np.sqrt((off**2).sum(axis=1, keepdims=True))
        parts.append(off / np.where(norm > 0, norm, 1.0))
    # Runs by runs: what a pair of neighbours contributes does not depend on the order of others.
    products = [part.T @ part for part in parts]
    total_square = sum(float(np.trace(each)) for each in products)
    if not total_square:
        return 0.0

    def correlation(orders: Sequence[npt.NDArray[np.intp]]) -> float:
        pairs = zip(products, orders, strict=True)
        return sum(float(each[o[:-1], o[1:]].sum()) for each, o in pairs) / total_square

    lengths = [each.shape[0] for each in products]
    here = correlation([np.arange(each) for each in lengths])
    chance = np.random.default_rng(1)
    by_chance = [
        correlation([chance.permutation(each) for each in lengths])
        for _ in itertools.repeat(None, _ORDERS)
    ]
    rarer = sum(each >= here for each in by_chance) + 1
    if here <= 0 or rarer > _RARE * (_ORDERS + 1):
        return 0.0
    # What the mean of a side takes from it (Kendall 1954, doi:10.1093/biomet/41.3-4.403).
    return float(min(here + (1 + 3 * here) / (sum(lengths) / 2), _MOST))
