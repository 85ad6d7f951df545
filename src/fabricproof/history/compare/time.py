"""What the order of the runs in time says about a comparison: shared runs, drift, one run."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from fabricproof.history.compare.model import Side, SideError
from fabricproof.history.stats.power import can_be_sure, number_of_labellings

if TYPE_CHECKING:
    import numpy.typing as npt

    Values = npt.NDArray[np.float64]

#: a drift is told where fewer than this share of runs without any would show it anywhere
_ALPHA = 0.05

#: an interval, without which nothing is SAME, needs so many ways to share the runs out
_FOR_SAME = 20

#: nobody is told to measure more often than this
_MOST_MORE = 1000


def refuse_overlap(first: Side, second: Side) -> None:
    """Refuse sides that share runs: a run cannot be before and after.

    Two stacks of one run are no overlap: their numbers are not the same ones.

    Raises:
        SideError: naming the runs.
    """
    if first.stack and second.stack and first.stack != second.stack:
        return
    shared = sorted({each.run_id for each in first.runs} & {each.run_id for each in second.runs})
    if shared:
        some = ", ".join(shared[:5]) + f" and {len(shared) - 5} more" * (len(shared) > 5)
        raise SideError(
            f"{len(shared)} run{'s' * (len(shared) != 1)} on both sides: {some}",
            expected=f"no run of {first.words!r} in {second.words!r}",
            next_step="narrow one side: a shorter range, or the part of a fact "
            "(rail1.mtu=1400, vc2:firmware=28.39)",
        )


def order_notes(first: Side, second: Side) -> Iterator[str]:
    """Yield what a reader must know of how the sides lie in time."""
    if not first.runs or not second.runs or (first.stack and second.stack):
        return
    if first.runs[-1].start < second.runs[0].start:
        return
    if second.runs[-1].start < first.runs[0].start:
        yield (
            f"the first side ({first.words}) is the later one: the words say what the older runs "
            "are against the newer"
        )
        return
    yield "the sides alternate in time: a drift over both cannot pass for a change between them"


def few_notes(counts: tuple[int, int], sides: tuple[Side, Side]) -> Iterator[str]:
    """Yield what one run alone cannot say."""
    for name, count, side in zip(("first", "second"), counts, sides, strict=True):
        if count == 1:
            yield (
                f"one run only on the {name} side ({side.words}): how much runs of that side "
                "differ without any change cannot be known from it; BETTER or WORSE says that this "
                "run is apart from the others, not that the next one will be"
            )


def unreachable_notes(
    counts: tuple[int, int], blocks: Sequence[int] | None, alpha: float
) -> Iterator[str]:
    """Yield which words so few runs cannot reach, however far apart they are.

    Args:
        counts: runs of the sides.
        blocks: of each run, where runs are exchanged within pairs only.
        alpha: the rate of false words.
    """
    paired = blocks is not None
    pairs = min(counts)
    sizes = ((1, 1),) * pairs if paired else (counts,)
    if not pairs or can_be_sure(sizes, alpha):
        return
    more = next(n for n in range(1, _MOST_MORE) if can_be_sure(_grown(counts, n, paired), alpha))
    same = "" if number_of_labellings(sizes) >= _FOR_SAME else ", nor SAME"
    yield (
        f"{counts[0]} runs against {counts[1]} cannot be BETTER or WORSE{same}, however far apart "
        f"they are: that takes {more} more on each side"
    )


def _grown(counts: tuple[int, int], more: int, paired: bool) -> tuple[tuple[int, int], ...]:
    if paired:
        return ((1, 1),) * (min(counts) + more)
    return ((counts[0] + more, counts[1] + more),)


def drift_notes(
    values: Values, names: Sequence[str], margins: Sequence[float], side: str
) -> Iterator[str]:
    """Yield the rows that rise or fall within one side (Mann 1945, Kendall 1975).

    A side that moves by itself has no level that another could be compared with.

    Args:
        values: shape (rows, runs) of one side, oldest first, NaN where absent.
        names: of the rows.
        margins: smallest movement over the side that is told, as a fraction.
        side: ``first`` or ``second``.
    """
    for row, name, margin in zip(values, names, margins, strict=True):
        there = row[np.isfinite(row)]
        p = trend_p(there.tolist())
        if p * len(names) > _ALPHA:
            continue
        half = len(there) // 2
        change = float(np.median(there[-half:]) / np.median(there[:half])) - 1
        if abs(change) >= margin:
            yield (
                f"{name} moves within the {side} side by itself ({change:+.1%} from its first half "
                f"to its second, p {p:.3f}): the sides are no two levels; fabricproof trend"
            )


def trend_p(numbers: Sequence[float]) -> float:
    """Return the two-sided p of Mann and Kendall's test; 1 for fewer than four numbers.

    Exact without ties up to 30 numbers (the count of inversions of a random order), the normal
    approximation with its correction for continuity beyond.

    Args:
        numbers: in the order of time.
    """
    count = len(numbers)
    if count < 4:
        return 1.0
    score = sum(
        (later > earlier) - (later < earlier)
        for index, earlier in enumerate(numbers)
        for later in numbers[index + 1 :]
    )
    pairs = count * (count - 1) // 2
    if count <= 30 and len(set(numbers)) == count:
        return min(1.0, 2 * _inversions_at_most((pairs - abs(score)) // 2, count))
    spread = math.sqrt(_variance(numbers))
    if spread == 0:
        return 1.0
    return math.erfc(max(0, abs(score) - 1) / spread / math.sqrt(2))


def _inversions_at_most(most: int, count: int) -> float:
    """Return the share of orders of ``count`` things with at most ``most`` inversions."""
    ways = [1]
    for size in range(2, count + 1):
        longer = [0] * (len(ways) + size - 1)
        for at, number in enumerate(ways):
            for more in range(size):
                longer[at + more] += number
        ways = longer
    return sum(ways[: most + 1]) / math.factorial(count)


def _variance(numbers: Sequence[float]) -> float:
    """Return the variance of the score under no trend, ties counted (Kendall 1975, section 4)."""
    count = len(numbers)
    ties = [numbers.count(each) for each in set(numbers)]
    total = count * (count - 1) * (2 * count + 5)
    return (total - sum(each * (each - 1) * (2 * each + 5) for each in ties)) / 18
