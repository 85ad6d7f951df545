"""What a reader must know first: what was lost between the sides, how the runs lie in time.

Beside it why a quantity has no like on the other side, and which side scatters more.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from fabricproof.core.units import at_size, counted, first_few
from fabricproof.history.compare.join import Joined, JoinedRows
from fabricproof.history.compare.model import Side, SideError, Unpaired
from fabricproof.history.stats.power import can_be_sure, number_of_labellings
from fabricproof.history.stats.shifts import Shift
from fabricproof.history.store import FIELDS, Key
from fabricproof.verdict.value import ERROR_UNIT

if TYPE_CHECKING:
    import numpy.typing as npt

    Values = npt.NDArray[np.float64]
    Rows = npt.NDArray[np.intp]


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
        raise SideError(
            f"{counted(len(shared), 'run')} on both sides: {first_few(shared, 5)}",
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


#: what stays alike when the nearest quantity of the other side is looked for, closest first
_NEAREST: tuple[tuple[str, ...], ...] = (
    ("stack", "suite", "program", "check", "leg", "quantity", "nodes"),
    ("stack", "program", "check", "leg", "quantity"),
    ("program", "leg", "quantity", "nodes"),
    ("program", "quantity"),
)

#: in which two quantities of one name may be unlike
_TELLING = tuple(name for name in FIELDS if name not in {"site", "quantity"})

#: quantities unlike in more than this are no two states of one thing
_MOST_UNLIKE = 3

NOT_MEASURED = "not measured on the other side"

#: words of what was not due: all others are of a measurement that was made, or tried
_NOT_TRIED = frozenset({"", "SKIPPED"})

#: so many failures on the second side are no single mishap
_SEVERAL = 2


@dataclass(frozen=True, kw_only=True)
class Lost:
    """Quantities that the first side has and the second tried for in vain.

    Attributes:
        rows: of the table, without any usable number on the second side, of whatever version,
            settings or build.
        often: rows of which most runs of the second side, or several, and fewer of the first, gave
            none.
        some: rows with fewer failures than that on the second side, and more than on the first.
    """

    rows: Mapping[int, str]
    often: Mapping[int, str]
    some: Mapping[int, str]


def find_lost(table: JoinedRows) -> Lost:
    """Return what was measured before and gave no usable number after: MISSING, INVALID, zero.

    A leg that ended before its first row has no unit and no settings in its record, and may have no
    nodes: then it stands for every set of nodes that the other runs measured it on.  What holds
    between legs has no bounds without a number, so that nobody can say what is better of it, and a
    sweep that was spoiled as a whole has no message size.
    """
    split = table.num_first
    usable = np.isfinite(table.values)
    failed = _failed(table, usable)
    alike = _of_like(table.keys, usable)
    rows: dict[int, str] = {}
    often: dict[int, str] = {}
    some: dict[int, str] = {}
    for row in np.flatnonzero(failed[:, split:].any(axis=1) & usable[:, :split].any(axis=1)):
        bad, good = int(failed[row, split:].sum()), int(usable[row, split:].sum())
        before, was = int(failed[row, :split].sum()), int(usable[row, :split].sum())
        like = alike[_place(table.keys[row])]
        if not good and not (like & failed[row])[split:].any():
            # Of another version, setting or build: what printed nothing may have been that.
            good = int(like[split:].sum())
        why = f"no usable number in {bad} of {bad + good} runs of the second side"
        why += f", {before} of {before + was} of the first"
        if not good:
            rows[int(row)] = why
        elif bad * (before + was) > before * (bad + good):
            (often if bad > good or bad >= _SEVERAL else some)[int(row)] = why
    return Lost(rows=rows, often=often, some=some)


def _of_like(
    keys: Sequence[Key], usable: npt.NDArray[np.bool_]
) -> dict[tuple[str, ...], npt.NDArray[np.bool_]]:
    """Return where there is a number of one home and nodes, whatever its other fields."""
    found: dict[tuple[str, ...], npt.NDArray[np.bool_]] = {}
    for key, there in zip(keys, usable, strict=True):
        place = _place(key)
        found[place] = found[place] | there if place in found else there
    return found


def _place(key: Key) -> tuple[str, ...]:
    return (*key.home, key.nodes)


def _failed(table: JoinedRows, usable: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
    """Return where a number was tried for in vain."""
    failed = np.zeros(usable.shape, dtype=bool)
    nothing: dict[tuple[str, ...], set[int]] = {}
    for row in np.flatnonzero(~usable.all(axis=1)).tolist():
        key, words = table.keys[row], table.words[row]
        if key.unit == ERROR_UNIT:
            continue  # none is a rate, too: nothing was lost
        columns = [
            at for at, word in enumerate(words) if word not in _NOT_TRIED and not usable[row, at]
        ]
        failed[row, columns] = True
        if not (key.nodes and key.unit and key.better):
            nothing.setdefault(_place(key), set()).update(columns)
    if nothing:
        for row, key in enumerate(table.keys):
            lost = {at for home in _homes(key) for at in nothing.get(home, ())}
            failed[row, [at for at in lost if not usable[row, at]]] = True
    return failed


def _homes(key: Key) -> Iterator[tuple[str, ...]]:
    """Yield what the record of a quantity may be of where there is no number of it."""
    of_all_sizes = key.quantity.removesuffix(at_size("", key.message_size))
    for name in dict.fromkeys((key.quantity, of_all_sizes)):
        for nodes in dict.fromkeys((key.nodes, "")):
            yield _place(replace(key, quantity=name, nodes=nodes))


def lost_notes(lost: Lost) -> Iterator[str]:
    """Yield what is no fair sample any more, or gave no number more often than before."""
    if lost.often:
        yield (
            f"{len(lost.often)} quantities: {next(iter(lost.often.values()))}: what is left of "
            "them is no fair sample"
        )
    if lost.some:
        yield (f"{len(lost.some)} quantities: {next(iter(lost.some.values()))}")


def unrecorded_notes(table: JoinedRows) -> Iterator[str]:
    """Yield the legs that runs of the second side have no record of, where they are several."""
    legs = list(dict.fromkeys(table.unrecorded.values()))
    if len(legs) > 1:
        yield (
            f"{len(legs)} legs without a record in runs that measured the others of the "
            f"check: {first_few(legs, 5)}"
        )


def scatter_notes(keys: Sequence[Key], shifts: Sequence[Shift]) -> Iterator[str]:
    """Yield that one side scatters more, which is neither BETTER nor WORSE.

    Args:
        keys: the quantities.
        shifts: of them.
    """
    told = [(k, s.scatter) for k, s in zip(keys, shifts, strict=True) if s.scatter is not None]
    for word, of in (
        ("more", [(key, ratio) for key, ratio in told if ratio > 1.0]),
        ("less", [(key, ratio) for key, ratio in told if ratio < 1.0]),
    ):
        if of:
            ratios = [ratio for _, ratio in of]
            yield (
                f"{len(of)} of {len(keys)} quantities scatter {word} on the second side, by the "
                f"rows of their kind together: {statistics.median(ratios):.2g} times as much as on "
                f"the first, first {of[0][0].label}; that is neither BETTER nor WORSE, and levels "
                "are judged with each side's own scatter"
            )


def unpaired(table: JoinedRows, joined: Joined, lost: Lost) -> tuple[Unpaired, ...]:
    """Return what only one side has, and why: failed there, unlike in a field, not run.

    Args:
        table: of both sides.
        joined: of :func:`fabricproof.history.compare.join.join`.
        lost: of :func:`find_lost`.
    """
    sides = ((1, joined.only_first, joined.only_second), (2, joined.only_second, joined.only_first))
    return tuple(
        Unpaired(
            key=table.keys[row],
            side=side,
            reason=lost.rows[row] if side == 1 and row in lost.rows else reason,
            unlike=() if side == 1 and row in lost.rows else fields,
        )
        for side, rows, others in sides
        for row, reason, fields in _reasons(table.keys, rows.tolist(), others.tolist(), side)
    )


def _reasons(
    keys: Sequence[Key], rows: Iterable[int], others: Iterable[int], side: int
) -> Iterator[tuple[int, str, tuple[str, ...]]]:
    indices: list[dict[tuple[object, ...], int]] = [{} for _ in _NEAREST]
    for other in others:
        for names, index in zip(_NEAREST, indices, strict=True):
            index.setdefault(_values(keys[other], names), other)
    for row in rows:
        near = next(
            (
                index[found]
                for names, index in zip(_NEAREST, indices, strict=True)
                if (found := _values(keys[row], names)) in index
            ),
            None,
        )
        fields = () if near is None else unlike_fields(keys[row], keys[near])
        if near is None or not 0 < len(fields) <= _MOST_UNLIKE:
            yield row, NOT_MEASURED, ()
        else:
            yield row, unlike(keys[row], keys[near], side), fields


def _values(key: Key, names: Iterable[str]) -> tuple[object, ...]:
    return tuple(getattr(key, name) for name in names)


def unlike(key: Key, other: Key, side: int = 1) -> str:
    """Return in what two quantities are unlike: ``build 51af against 8ed9``, first side first."""
    first, second = (key, other) if side == 1 else (other, key)
    return ", ".join(
        f"{name} {_shown(getattr(first, name))} against {_shown(getattr(second, name))}"
        for name in unlike_fields(first, second)
    )


def unlike_fields(key: Key, other: Key) -> tuple[str, ...]:
    """Return the fields in which two quantities are unlike."""
    return tuple(name for name in _TELLING if getattr(key, name) != getattr(other, name))


def _shown(value: object) -> str:
    return repr(value) if value in {"", None} else str(value)
