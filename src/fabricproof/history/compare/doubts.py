"""What a reader must know first: how the runs lie in time, and what they are too few for.

Beside it why a quantity has no like on the other side, and which side scatters more.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from fabricproof.core.units import counted, first_few
from fabricproof.history.compare.join import Joined, JoinedRows
from fabricproof.history.compare.model import Side, SideError, Unpaired
from fabricproof.history.stats.power import can_be_sure, number_of_labellings
from fabricproof.history.stats.shifts import Shift
from fabricproof.history.store import FIELDS, Key

if TYPE_CHECKING:
    import numpy.typing as npt

    Values = npt.NDArray[np.float64]
    Rows = npt.NDArray[np.intp]


#: an interval, without which nothing is SAME, needs so many ways to share the runs out
_FOR_SAME = 20

#: nobody is told to measure more often than this
_MOST_MORE = 1000


def refuse_overlap(first: Side, second: Side) -> None:
    """Refuse sides that share runs: a run cannot be before and after.

    Raises:
        SideError: naming the runs.
    """
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
    if not first.runs or not second.runs:
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


def unreachable_notes(counts: tuple[int, int], alpha: float) -> Iterator[str]:
    """Yield which words so few runs cannot reach, however far apart they are."""
    if not min(counts) or can_be_sure(counts, alpha):
        return
    first, second = counts
    more = next(n for n in range(1, _MOST_MORE) if can_be_sure((first + n, second + n), alpha))
    same = "" if number_of_labellings(counts) >= _FOR_SAME else ", nor SAME"
    yield (
        f"{first} runs against {second} cannot be BETTER or WORSE{same}, however far apart "
        f"they are: that takes {more} more on each side"
    )


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


def scatter_notes(keys: Sequence[Key], shifts: Sequence[Shift]) -> Iterator[str]:
    """Yield that one side scatters more, which is neither BETTER nor WORSE."""
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


def unpaired(table: JoinedRows, joined: Joined) -> tuple[Unpaired, ...]:
    """Return what only one side has, and why: failed there, unlike in a field, not run."""
    sides = ((1, joined.only_first, joined.only_second), (2, joined.only_second, joined.only_first))
    return tuple(
        Unpaired(key=table.keys[row], side=side, reason=reason, unlike=fields)
        for side, rows, others in sides
        for row, reason, fields in _reasons(table, rows.tolist(), others.tolist(), side)
    )


def _reasons(
    table: JoinedRows, rows: Iterable[int], others: Iterable[int], side: int
) -> Iterator[tuple[int, str, tuple[str, ...]]]:
    keys = table.keys
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
            yield row, table.gone.get(row, NOT_MEASURED), ()
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
