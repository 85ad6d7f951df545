"""The word of a group and the last word, from the words of their quantities.

Nothing defaults to SAME.  WORSE anywhere is WORSE everywhere above it.  SAME needs an interval
within the margin for the typical quantity of every group, no quantity that looks worse without
being proven so, and nothing lost between the sides: single quantities too noisy to say anything
alone are named, not hidden.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from fabricproof.core.units import counted, first_few
from fabricproof.history.compare.model import Compared, Group
from fabricproof.history.stats.shifts import Change, Shift

#: an UNDECIDED row that is worse by more than its margin with an adjusted p up to here is no noise
#: that SAME may be said over: at most one comparison in five without any change is held back by it
SUSPECT_P = 0.2

#: fewer on a side have no scatter
LEAST_RUNS = 2

#: runs on each side from which "every run after is worse than every run before" means something:
#: by chance 1 in 20 for three against three
_APART_RUNS = 3


@dataclass(frozen=True, kw_only=True)
class ChangeWord:
    """A word and why."""

    change: Change
    reason: str


def looks_worse(compared: Compared, margin: float) -> bool:
    """Tell whether an UNDECIDED quantity speaks against SAME.

    It is worse by more than the margin, and either hardly by chance among all (``SUSPECT_P``) or,
    of a quantity that carries a verdict, with every run after worse than every run before.
    """
    shift = compared.shift
    if shift.change is not Change.UNDECIDED or not is_worse(
        shift.ratio, compared.key.better, margin
    ):
        return False
    return shift.p <= SUSPECT_P or (compared.key.named and _apart(compared))


def is_worse(ratio: float | None, better: int, margin: float) -> bool:
    """Tell whether a ratio is off to the worse by more than a margin (in logarithms alike)."""
    if ratio is None:
        return False
    return ratio < 1 - margin if better > 0 else ratio > 1 / (1 - margin)


def _apart(compared: Compared) -> bool:
    first, second = compared.first.values(), compared.second.values()
    if min(len(first), len(second)) < _APART_RUNS:
        return False
    if compared.key.better > 0:
        return max(second) < min(first)
    return min(second) > max(first)


def note(shift: Shift, aside: Sequence[tuple[int, str]], others: str = "") -> str:
    """Return what a reader must know of a quantity: who disturbed it, scatter, what is set aside.

    Args:
        shift: of the quantity.
        aside: column and reason of each number that is not used.
        others: what others took, where that explains a change.
    """
    told = [f"no change but of what others did: {others}"] if others else []
    told += [f"{len(aside)} numbers set aside: {aside[0][1]}"] if aside else []
    return "; ".join([*told, *([scatter_word(shift)] if shift.scatter is not None else [])])


def scatter_word(shift: Shift) -> str:
    """Return ``scatters more, 2.1 times as much``; empty where that is not sure."""
    if shift.scatter is None:
        return ""
    return f"scatters {'more' if shift.scatter > 1 else 'less'}, {shift.scatter:.2g} times as much"


def group_change(
    row: Change | None,
    members: Mapping[Change, int],
    *,
    suspects: int = 0,
    lost: int = 0,
    explained: bool = False,
) -> Change:
    """Return the word of a group.

    Args:
        row: of its typical quantity, None where it has no row.
        members: how many of its quantities have which word.
        suspects: of these, UNDECIDED that look worse.
        lost: quantities of it that the second side gave no number for.
        explained: whether others explain what changed of it, or of one of its quantities.
    """
    words = {word for word, count in members.items() if count} | ({row} if row else set())
    if Change.WORSE in words:
        return Change.WORSE
    if suspects or lost or explained:
        return Change.UNDECIDED
    if Change.BETTER in words:
        return Change.BETTER
    return Change.SAME if row is Change.SAME else Change.UNDECIDED


def group_sentence(
    change: Change, row: Shift | None, members: Mapping[Change, int], suspects: int, lost: int
) -> str:
    """Return what a tired administrator reads beside the word of a group."""
    total = sum(members.values())
    parts = [
        f"{count} of {total} {word}"
        for word in (Change.WORSE, Change.BETTER)
        if (count := members.get(word, 0))
    ]
    if suspects:
        parts.append(f"{suspects} of {total} look worse and are not proven")
    if lost:
        parts.append(f"{lost} gave no number on the second side")
    noisy = members.get(Change.UNDECIDED, 0)
    if change is Change.SAME and noisy:
        parts.append(f"{noisy} of {total} too noisy alone")
    if change is Change.UNDECIDED and row is not None and not suspects and not lost:
        parts.append(needs(row))
    return "; ".join(parts) or f"all {total} quantities"


def needs(row: Shift) -> str:
    """Return ``needs 4 more runs on each side``, or that no number of runs would do."""
    if min(row.num_first, row.num_second) < LEAST_RUNS:
        return "fewer than two runs on a side: its scatter cannot be known"
    if row.more_runs is None:
        return "no number of runs up to 1000 would decide"
    return f"needs {counted(row.more_runs, 'more run')} on each side"


def overall(
    quantities: Sequence[Compared],
    groups: Sequence[Group],
    *,
    suspects: Sequence[Compared],
    gone: Sequence[str] = (),
    uncompared: Sequence[str] = (),
    explained: Sequence[str] = (),
) -> ChangeWord:
    """Return the last word.

    Args:
        quantities: all that were compared.
        groups: all rows of the table.
        suspects: quantities of :func:`looks_worse`.
        gone: quantities measured before that runs after have no number of, with the reason.
        uncompared: rails, pairs, nodes and stacks that have no like on the second side.
        explained: what others took, of each row that changed no more than that explains.
    """
    counts = Counter(each.shift.change for each in quantities)
    rows = Counter(each.shift.change for each in groups if each.shift)
    total = len(quantities)
    against = _against(suspects, gone, uncompared)
    if explained:
        told = counted(len(explained), "row")
        others = f"{told} changed by no more than others explain: first {explained[0]}"
        against = "; ".join([others, *([against] if against else [])])
    for word in (Change.WORSE, Change.BETTER):
        if not counts[word] and not rows[word]:
            continue
        if word is Change.BETTER and against:
            return ChangeWord(change=Change.UNDECIDED, reason=f"better in places, but {against}")
        return ChangeWord(change=word, reason=_mixed(word, counts, rows, total, against))
    if against:
        return ChangeWord(change=Change.UNDECIDED, reason=against)
    open_rows = [each for each in groups if each.shift and each.change is not Change.SAME]
    if not open_rows and groups:
        return ChangeWord(change=Change.SAME, reason=_same(counts, total))
    return ChangeWord(change=Change.UNDECIDED, reason=_undecided(open_rows, len(groups)))


def _mixed(
    word: Change, counts: Counter[Change], rows: Counter[Change], total: int, against: str
) -> str:
    other = Change.BETTER if word is Change.WORSE else Change.WORSE
    told = [f"{counts[word]} of {total} quantities"]
    if rows[word]:
        told.append(f"{rows[word]} of the groups as a whole")
    text = f"{' and '.join(told)} {'are' if counts[word] != 1 else 'is'} {word}"
    if counts[other] or rows[other]:
        text += f", {counts[other]} quantities are {other}"
    open_rows = rows[Change.UNDECIDED]
    if open_rows:
        text += f", {open_rows} groups are UNDECIDED"
    return text + (f"; {against}" if against else "")


def _against(suspects: Sequence[Compared], gone: Sequence[str], uncompared: Sequence[str]) -> str:
    told = []
    if uncompared:
        named = first_few(uncompared, 1)
        told.append(f"{named} was measured before and has no like after")
    if gone:
        told.append(f"{len(gone)} quantities measured before gave no number after: first {gone[0]}")
    if suspects:
        told.append(
            f"{len(suspects)} quantities look worse and are not proven so: first "
            f"{suspects[0].key.label}"
        )
    return "; ".join(told)


def _same(counts: Counter[Change], total: int) -> str:
    noisy = counts[Change.UNDECIDED]
    text = (
        "the typical quantity of every rail, pair, node, stack and program lies within the margin"
    )
    if noisy:
        text += f"; {noisy} of {total} single quantities are too noisy to say so alone"
    return text


def _undecided(open_rows: Sequence[Group], total: int) -> str:
    if not open_rows:
        return "no group has a row of its own"
    first = open_rows[0]
    assert first.shift is not None
    told = (
        f"{total - len(open_rows)} of {total} groups are the same, {len(open_rows)} cannot be told"
    )
    return f"{told}: first {first.what} of {first.where}: {needs(first.shift)}"


def more_runs(groups: Iterable[Group], suspects: Iterable[Compared] = ()) -> int | None:
    """Return how many more runs on each side would decide what is open; None: no number would.

    Rows that no number of runs decides do not count where others can be decided.
    """
    shifts = [each.shift for each in groups if each.shift and each.change is Change.UNDECIDED]
    shifts += [each.shift for each in suspects]
    numbers = [each.more_runs for each in shifts if each.more_runs]
    return max(numbers) if numbers else None
