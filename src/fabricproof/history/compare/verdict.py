"""The word of a group and the last word, from the words of their quantities.

Nothing defaults to SAME.  WORSE anywhere is WORSE everywhere above it.  SAME needs an interval
within the margin for the typical quantity of every group, no quantity that looks worse without
being proven so, and nothing lost between the sides: single quantities too noisy to say anything
alone are named, not hidden.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from fabricproof.core.units import counted
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


def looks_worse(compared: Compared, margin: float) -> bool:
    """Tell whether an UNDECIDED quantity speaks against SAME.

    It is worse by more than the margin, and either hardly by chance among all (``SUSPECT_P``) or,
    of a quantity that carries a verdict, with every run after worse than every run before.
    """
    shift, better = compared.shift, compared.key.better
    if shift.change is not Change.UNDECIDED or shift.ratio is None:
        return False
    if not (shift.ratio < 1 - margin if better > 0 else shift.ratio > 1 / (1 - margin)):
        return False
    if shift.p <= SUSPECT_P:
        return True
    first, second = compared.first.values(), compared.second.values()
    if not compared.key.named or min(len(first), len(second)) < _APART_RUNS:
        return False
    return max(second) < min(first) if better > 0 else min(second) > max(first)


def is_slight(shift: Shift, better: int, alpha: float) -> bool:
    """Tell whether a row is surely worse by less than its margin: SAME must say so."""
    if shift.ratio is None or shift.low is None or shift.high is None or shift.p > alpha:
        return False
    if shift.change in {Change.WORSE, Change.BETTER}:
        return False
    return shift.high < 1 if better > 0 else shift.low > 1


def group_change(
    row: Change | None, members: Mapping[Change, int], *, suspects: int, lost: int, excused: bool
) -> Change:
    """Return the word of a group.

    Args:
        row: of its typical quantity, None if it has no row.
        members: how many of its quantities have which word.
        suspects: of these, UNDECIDED that look worse.
        lost: quantities of it that the second side gave no number for.
        excused: whether others explain what changed of it, or of one of its quantities.
    """
    words = {word for word, count in members.items() if count} | ({row} if row else set())
    if Change.WORSE in words:
        return Change.WORSE
    if suspects or lost or excused:
        return Change.UNDECIDED
    if Change.BETTER in words:
        return Change.BETTER
    return Change.SAME if row is Change.SAME else Change.UNDECIDED


def group_sentence(
    change: Change, row: Shift | None, members: Mapping[Change, int], suspects: int, lost: int
) -> str:
    """Return what counts beside the number of a group."""
    total = sum(members.values())
    parts = [
        f"{count} of {total} {word}"
        for word in (Change.WORSE, Change.BETTER)
        if (count := members.get(word, 0))
    ]
    parts += [f"{suspects} of {total} look worse"] * bool(suspects)
    parts += [f"{lost} gave no number after"] * bool(lost)
    noisy = members.get(Change.UNDECIDED, 0)
    if change is Change.SAME and noisy:
        parts.append(f"{noisy} of {total} too noisy alone")
    if change is Change.UNDECIDED and row is not None and not suspects and not lost:
        parts.append(needs(row))
    return "; ".join(parts) or f"all {total}"


def needs(row: Shift) -> str:
    """Return ``needs 4 more runs a side``, or that no number of runs would do."""
    if min(row.num_first, row.num_second) < LEAST_RUNS:
        return "one run on a side has no scatter"
    if row.more_runs is None:
        return "no number of runs would decide"
    return f"needs {counted(row.more_runs, 'more run')} a side"


def overall(
    quantities: Sequence[Compared],
    groups: Sequence[Group],
    *,
    suspects: Sequence[Compared],
    gone: Sequence[str] = (),
    uncompared: Sequence[str] = (),
    excused: Sequence[str] = (),
    slight: Sequence[str] = (),
) -> tuple[Change, str]:
    """Return the last word, and why.

    Args:
        quantities: all that were compared.
        groups: all rows of the table.
        suspects: quantities of :func:`looks_worse`.
        gone: quantities measured before that runs after have no number of, with the reason.
        uncompared: rails, pairs, nodes and stacks that have no like on the second side.
        excused: rows that changed by no more than what others took explains.
        slight: rows of :func:`is_slight`, in words.
    """
    against = "; ".join(
        f"{text}: first {several[0]}"
        for several, text in (
            (excused, f"others explain the change of {counted(len(excused), 'row')}"),
            (uncompared, f"{len(uncompared)} measured before have no like after"),
            (gone, f"{len(gone)} quantities measured before gave no number after"),
            (
                [each.key.label for each in suspects],
                f"{len(suspects)} quantities look worse and are not proven so",
            ),
        )
        if several
    )
    counts = Counter(each.shift.change for each in quantities)
    rows = Counter(each.shift.change for each in groups if each.shift)
    total = len(quantities)
    for word, other in ((Change.WORSE, Change.BETTER), (Change.BETTER, Change.WORSE)):
        if not counts[word] and not rows[word]:
            continue
        if word is Change.BETTER and against:
            return Change.UNDECIDED, f"better in places, but {against}"
        told = [f"{counts[word]} of {total} quantities {word}"]
        told += [f"{rows[word]} groups as a whole {word}"] * bool(rows[word])
        told += [f"{counts[other]} quantities {other}"] * bool(counts[other] or rows[other])
        told += [f"{rows[Change.UNDECIDED]} groups UNDECIDED"] * bool(rows[Change.UNDECIDED])
        return word, "; ".join([", ".join(told), *([against] if against else [])])
    if against:
        return Change.UNDECIDED, against
    undecided = [each for each in groups if each.shift and each.change is not Change.SAME]
    if undecided or not groups:
        told_of = "no group has a row of its own"
        if undecided:
            first = f"{undecided[0].what} of {undecided[0].where}"
            told_of = f"{len(undecided)} of {len(groups)} groups cannot be told: first {first}"
        return Change.UNDECIDED, told_of
    noisy = counts[Change.UNDECIDED]
    reason = "every rail, pair, node, stack and program lies within the margin"
    if slight:
        reason = f"{reason}, but {len(slight)} surely changed by less: {slight[0]}"
    if noisy:
        reason += f"; {noisy} of {total} single quantities are too noisy to say so alone"
    return Change.SAME, reason


def more_runs(groups: Iterable[Group], suspects: Iterable[Compared]) -> int | None:
    """Return how many more runs on each side would decide what is open; None: no number would.

    Rows that no number of runs decides do not count if others can be decided.
    """
    shifts = [each.shift for each in groups if each.shift and each.change is Change.UNDECIDED]
    shifts += [each.shift for each in suspects]
    return max((each.more_runs for each in shifts if each.more_runs), default=None)
