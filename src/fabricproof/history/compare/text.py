"""A comparison on one screen, for a tired administrator."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence

from fabricproof.core.project import site_option
from fabricproof.core.units import columns, counted, percent
from fabricproof.history.compare.model import Compared, Comparison, Group, Side, grouped, typed
from fabricproof.history.compare.verdict import LEAST_RUNS, scatter_word
from fabricproof.history.stats.shifts import Change, Shift
from fabricproof.history.store.model import metric_of

#: rows of one kind of group, and quantities, that are shown without ``--all``
_ROWS, _QUANTITIES, _CHANGES, _REASONS = 3, 5, 6, 4

#: of a group: what is left is too noisy to be told
_NEARLY_ALL = 0.8

#: filters that ``fabricproof trend`` understands alike
_OF_TREND = frozenset({"check", "stack", "rail", "node", "program"})

#: what ``fabricproof baseline freeze`` asks for unless told otherwise
_RUNS_OF_A_BASELINE = 5

#: more runs than this are no advice
_MOST_RUNS = 30


def lines(comparison: Comparison, *, whole: bool = False) -> Iterator[str]:
    """Yield a comparison for a person, the answer first."""
    yield headline(comparison)
    yield f"  {comparison.reason}"
    if comparison.asked_for:
        yield f"  only {comparison.asked_for} was asked for: nothing is said of the rest"
    yield from _sides(comparison)
    yield from _differs(comparison, whole=whole)
    yield from _groups(comparison, whole=whole)
    yield from _quantities(comparison, whole=whole)
    yield from _not_compared(comparison, whole=whole)
    yield ""
    yield f"Next: {next_step(comparison)}"


def headline(comparison: Comparison) -> str:
    """Return word, what, where, how much with its interval, and how sure, in one sentence."""
    word = comparison.overall
    if word is Change.SAME:
        within = ", ".join(
            f"{metric} within {comparison.margins[metric] * 100:.3g} %"
            for metric in dict.fromkeys(metric_of(each.key) for each in comparison.quantities)
        )
        places = "on every rail, pair, node, stack and program"
        return f"{_said(comparison)}: {within}, {places}"
    told = _telling(comparison)
    if told is None:
        return _said(comparison)
    name, shift, better = told
    told_of = f"{name} {_amount(shift, better)}{_sureness(shift)}"
    return f"{_said(comparison)}: {told_of}{_all_that_is_open(comparison)}"


def _said(comparison: Comparison) -> str:
    """Return the word; with a filter, that it is of a part."""
    word, asked = comparison.overall.value, comparison.asked_for
    return f"{word} of what was asked for ({asked})" if asked else word


def _telling(comparison: Comparison) -> tuple[str, Shift, int] | None:
    """Return what the word rests on most: the group that holds it, else a quantity."""
    word = comparison.overall
    row = _holding(comparison)
    several = comparison.suspects if word is Change.UNDECIDED else comparison.quantities
    found = next((each for each in several if each.shift.change is word), None)
    if found is not None and (row is None or word is Change.UNDECIDED):
        return found.key.label, found.shift, found.key.better
    if row is not None and row.shift is not None:
        return f"{row.what} of {row.where}", row.shift, row.better
    return None


def _holding(comparison: Comparison) -> Group | None:
    """Return the largest group of which nearly all has the word, else the one with most of it.

    So a rail is named where all its pairs lost, a pair where it lost on all rails, a node where
    all its pairs did.
    """
    rows = [each for each in comparison.groups if each.shift]
    rows = [each for each in rows if each.shift and each.shift.change is comparison.overall]

    def holds(group: Group) -> tuple[bool, float, float]:
        count = group.counts.get(comparison.overall, 0)
        share = count / max(1, sum(group.counts.values()))
        return share >= _NEARLY_ALL, count if share >= _NEARLY_ALL else share, _off(group.shift)

    return max(rows, key=holds, default=None)


def _off(shift: Shift | None) -> float:
    return 0.0 if shift is None or shift.ratio is None else abs(shift.ratio - 1)


def _amount(shift: Shift, better: int) -> str:
    """Return ``-7.1 % (-8.0 to -6.2 %) is worse``; latencies are worse where they rise."""
    if shift.ratio is None:
        return "has no number on one side"
    up = shift.ratio > 1
    word = "better" if up == (better > 0) else "worse"
    text = percent(shift.ratio)
    if shift.low is not None and shift.high is not None:
        text += f" ({percent(shift.low)} to {percent(shift.high)})"
    if shift.ratio == 1 or shift.change is Change.UNDECIDED:
        return text
    return f"{text}, which is {word}"


def _sureness(shift: Shift) -> str:
    told = f"; p {shift.p:.2g} over all quantities together" if shift.p < 1 else ""
    if shift.change is Change.UNDECIDED and shift.detectable is not None:
        told += f"; a change below {_visible(shift)} would not have been seen"
    return told


def _all_that_is_open(comparison: Comparison) -> str:
    """Return how many runs decide all of it: what the row that is named needs may be far less."""
    more = comparison.more_runs
    if comparison.overall is not Change.UNDECIDED:
        return ""
    if _has_no_scatter(comparison):
        return "; one run on a side: its scatter cannot be known"
    if not more:
        return ""
    return f"; all that is open needs {counted(more, 'more run')} on each side"


def _has_no_scatter(comparison: Comparison) -> bool:
    sides = comparison.first, comparison.second
    return any(len(each.runs) < LEAST_RUNS for each in sides if not each.baseline)


def _visible(shift: Shift) -> str:
    return "-" if shift.detectable is None else f"{(shift.detectable - 1) * 100:.1f} %"


def _sides(comparison: Comparison) -> Iterator[str]:
    yield ""
    yield f"  first   {_side(comparison.first)}"
    yield f"  second  {_side(comparison.second)}"


def _side(side: Side) -> str:
    count = len(side.runs)
    told = f"{side.words}: {counted(count, 'run')}"
    if not side.runs:
        return told
    first, last = side.runs[0], side.runs[-1]
    return f"{told}, {first.night}" + (f" to {last.night}" if count > 1 else "") + " UTC"


def _differs(comparison: Comparison, *, whole: bool) -> Iterator[str]:
    yield ""
    if comparison.changes:
        yield "What else differs between the sides:"
        most = len(comparison.changes) if whole else _CHANGES
        yield from (f"  {each.sentence}" for each in comparison.changes[:most])
        yield from _rest(len(comparison.changes) - most, "fields")
    else:
        yield "No field of inventory and no build is known to differ between the sides."
    most = len(comparison.warnings) if whole else _CHANGES
    yield from (f"  WARNING {each}" for each in comparison.warnings[:most])
    yield from _rest(len(comparison.warnings) - most, "warnings")


def _rest(count: int, what: str) -> Iterator[str]:
    if count > 0:
        yield f"  ... and {count} more {what} (--all)"


def _groups(comparison: Comparison, *, whole: bool) -> Iterator[str]:
    rows: list[tuple[str, ...]] = [
        ("", "WORD", "WHERE", "METRIC", "CHANGE", "INTERVAL", "VISIBLE FROM", "")
    ]
    left = 0
    for kind in dict.fromkeys(each.kind for each in comparison.groups):
        several = sorted((each for each in comparison.groups if each.kind == kind), key=_urgency)
        most = len(several) if whole else _ROWS
        rows += [_group(each, whole=whole) for each in several[:most]]
        left += max(0, len(several) - most)
    yield ""
    yield from columns(rows, frozenset({4, 6}))
    yield from _rest(left, "groups")


def _urgency(group: Group) -> tuple[int, float]:
    order = (Change.WORSE, Change.BETTER, Change.UNDECIDED, Change.SAME)
    return order.index(group.change), -_off(group.shift)


def _group(group: Group, *, whole: bool) -> tuple[str, ...]:
    place = group.where + (f" = {', '.join(group.also)}" if group.also and whole else "")
    return ("", group.change.value, place, group.what, *_numbers(group.shift), group.sentence)


def _numbers(shift: Shift | None) -> tuple[str, str, str]:
    if shift is None or shift.ratio is None:
        return "-", "-", "-"
    interval = "too few runs"
    if shift.low is not None and shift.high is not None:
        interval = f"{percent(shift.low)} to {percent(shift.high)}"
    return percent(shift.ratio), interval, _visible(shift)


def _quantities(comparison: Comparison, *, whole: bool) -> Iterator[str]:
    if whole:
        chosen: dict[str, Sequence[Compared]] = {"": comparison.quantities}
    else:
        chosen = {
            "Worse:": _of(comparison, Change.WORSE),
            "Looks worse, not proven:": comparison.suspects,
            "Better:": _of(comparison, Change.BETTER),
        }
    for title, several in chosen.items():
        if not several:
            continue
        yield ""
        yield title or "All quantities:"
        most = len(several) if whole else _QUANTITIES
        yield from columns([_quantity(each) for each in several[:most]], frozenset({2, 4, 6}))
        yield from _rest(len(several) - most, "quantities")


def _of(comparison: Comparison, word: Change) -> Sequence[Compared]:
    return [each for each in comparison.quantities if each.shift.change is word]


def _quantity(each: Compared) -> tuple[str, ...]:
    shift, unit = each.shift, each.key.unit
    return (
        "",
        shift.change.value,
        percent(shift.ratio),
        _numbers(shift)[1],
        f"{_value(shift.median_first)} -> {_value(shift.median_second)} {unit}",
        each.key.label,
        f"{shift.num_first} and {shift.num_second} runs"
        + f", {scatter_word(shift)}" * (shift.scatter is not None),
    )


def _value(number: float | None) -> str:
    if number is None:
        return "-"
    return f"{number:.0f}" if number >= 1000 else f"{number:.4g}"


def _not_compared(comparison: Comparison, *, whole: bool) -> Iterator[str]:
    if not comparison.unpaired:
        return
    yield ""
    yield f"Not compared: {len(comparison.unpaired)} quantities of one side only"
    reasons = grouped(comparison.unpaired)
    most = len(reasons) if whole else _REASONS
    for side, reason, unlike, count in reasons[:most]:
        of = f"{'first' if side == 1 else 'second'} side"
        across = "".join(f" --across {name}" for name in unlike[:3])
        hint = f"  (if that is the question:{across})" if across else ""
        yield f"  {count} of the {of}: {reason}{hint}"
    left = sum(count for *_, count in reasons[most:])
    yield from _rest(left, "quantities")


def next_step(comparison: Comparison) -> str:
    """Return the command that a person should run next, and what it is for."""
    site = f" {site_option(comparison.site)}"
    if comparison.overall is Change.WORSE:
        undo = "; then undo one of the changes above" * bool(comparison.changes)
        part = _for_trend(comparison)
        return f"fabricproof trend{part}{site}   (since when it is so{undo})"
    if comparison.overall is not Change.UNDECIDED and comparison.filters:
        sides = _both(comparison)
        return f"fabricproof compare {sides}{site}   (of all, not only {comparison.asked_for})"
    if comparison.overall is not Change.UNDECIDED:
        return _to_hold(comparison.second, site)
    return _to_decide(comparison, site)


def _to_hold(second: Side, site: str) -> str:
    if second.baseline:
        return "nothing"
    if len(second.runs) < _RUNS_OF_A_BASELINE:
        return f"nothing   (a baseline of the second side takes {_RUNS_OF_A_BASELINE} runs)"
    words = shlex.quote(second.words)
    return f"nothing; to hold it: fabricproof baseline freeze NAME {words}{site}"


def _both(comparison: Comparison) -> str:
    return shlex.join([comparison.first.words, comparison.second.words, *comparison.options])


def _for_trend(comparison: Comparison) -> str:
    return "".join(
        f" {typed(name, values)}"
        for name, values in comparison.filters.items()
        if name in _OF_TREND
    )


def _to_decide(comparison: Comparison, site: str) -> str:
    times = comparison.more_runs or 0
    if _has_no_scatter(comparison):
        return f"fabricproof run -t quick{site}   # more runs on each side: one has no scatter"
    if comparison.disturbed:
        if comparison.disturbed == "first":
            return "nothing   (others disturbed the first side: compare with one that was quiet)"
        return (
            f"fabricproof run -t quick{site}   # as often as the second side has runs, once the"
            " others are gone; then compare with those"
        )
    if times > _MOST_RUNS:
        return (
            f"nothing   (all of it would need {counted(times, 'more run')} on each side: ask of"
            " less with --only, or let legs take longer: leg_seconds)"
        )
    if times:
        return (
            f"for i in $(seq {times}); do fabricproof run -t quick{site}; done"
            f"   # {counted(times, 'more run')} on each side decide what is open; another look has"
            f" its own {100 * comparison.alpha:g} % of false words: docs/compare.md, where looks"
            " share one"
        )
    return f"fabricproof run -t quick{site}   # what gave no number must be measured first"
