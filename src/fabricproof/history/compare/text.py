"""A comparison on one screen of 80 columns and 25 lines, the answer first."""

from __future__ import annotations

import shlex
import textwrap
from collections.abc import Iterator

from fabricproof.core.project import site_option
from fabricproof.core.units import columns, counted, percent
from fabricproof.history.compare.model import Comparison, Group, Side, typed
from fabricproof.history.compare.verdict import LEAST_RUNS
from fabricproof.history.stats.shifts import Change, Shift
from fabricproof.history.store.model import metric_of

#: the screen
LINES, WIDTH = 25, 80

#: groups, quantities, and fields that differ, that are shown without ``--all``
_ROWS, _QUANTITIES, _CHANGES = 4, 2, 4

#: of a group: what is left is too noisy to be told
_NEARLY_ALL = 0.8

#: filters that ``fabricproof trend`` understands alike
_OF_TREND = frozenset({"check", "stack", "rail", "node", "program"})

#: what ``fabricproof baseline freeze`` asks for unless told otherwise
_RUNS_OF_A_BASELINE = 5

#: more runs than this are no advice
_MOST_RUNS = 30

_URGENCY = (Change.WORSE, Change.UNDECIDED, Change.BETTER, Change.SAME)


def lines(comparison: Comparison, *, whole: bool = False) -> Iterator[str]:
    """Yield a comparison for a person: at most :data:`LINES` lines, with ``whole`` everything."""
    why, command = next_step(comparison)
    end = ["", *wrapped(f"Next: {why}", 2, whole=whole), f"  {command}"]
    top = [
        *wrapped(headline(comparison), 2, whole=whole),
        *wrapped(f"  {comparison.reason}", 2, whole=whole),
        *wrapped(f"  first   {_side(comparison.first)}", 1, whole=whole),
        *wrapped(f"  second  {_side(comparison.second)}", 1, whole=whole),
        "",
        *_groups(comparison, whole=whole),
        *_quantities(comparison, whole=whole),
    ]
    yield from top
    most = 10**6 if whole else LINES - len(top) - len(end)
    yield from _beside(comparison, most, whole=whole)
    yield from end if command else end[:-1]


def wrapped(text: str, most: int, *, whole: bool) -> list[str]:
    """Return ``text`` in at most ``most`` lines of WIDTH, or in all that it takes."""
    return textwrap.wrap(
        text,
        WIDTH,
        subsequent_indent="  ",
        max_lines=None if whole else most,
        placeholder=" ...",
        break_on_hyphens=False,
    )


def headline(comparison: Comparison) -> str:
    """Return word, what, where, how much with its interval, and how sure, in one sentence."""
    word, asked = comparison.overall, comparison.asked_for
    told = f"{word} of what was asked for ({asked})" if asked else word.value
    if word is Change.SAME and comparison.slight:
        return f"{told} within the margin, but surely {comparison.slight[0]}"
    if word is Change.SAME:
        metrics = dict.fromkeys(metric_of(each.key) for each in comparison.quantities)
        within = (f"{each} within {comparison.margins[each] * 100:.3g} %" for each in metrics)
        return f"{told}: {', '.join(within)}"
    found = _telling(comparison)
    if found is None:
        return told
    name, shift = found
    told += f": {name} {_amount(shift)}" + f", p {shift.p:.2g}" * (shift.p < 1)
    open_rows = ""
    if word is Change.UNDECIDED and _has_no_scatter(comparison):
        open_rows = "; one run on a side: its scatter is not known"
    elif word is Change.UNDECIDED and comparison.more_runs:
        open_rows = f"; {counted(comparison.more_runs, 'more run')} on each side would decide"
    return told + open_rows


def _telling(comparison: Comparison) -> tuple[str, Shift] | None:
    """Return what the word rests on most: the group that holds it, else a quantity.

    The largest group of which nearly all has the word, else the one with most of it: so a rail is
    named if all its pairs lost, a pair if it lost on all rails, a node if all its pairs did.
    """
    word = comparison.overall

    def holds(group: Group) -> tuple[bool, float, float]:
        count = group.counts.get(word, 0)
        share = count / max(1, sum(group.counts.values()))
        return share >= _NEARLY_ALL, count if share >= _NEARLY_ALL else share, _off(group.shift)

    rows = [each for each in comparison.groups if each.shift and each.shift.change is word]
    several = comparison.suspects if word is Change.UNDECIDED else comparison.quantities
    single = next((each for each in several if each.shift.change is word), None)
    if single is not None and (not rows or word is Change.UNDECIDED):
        return single.key.label, single.shift
    row = max(rows, key=holds, default=None)
    return (f"{row.what} of {row.where}", row.shift) if row and row.shift else None


def _off(shift: Shift | None) -> float:
    return 0.0 if shift is None or shift.ratio is None else abs(shift.ratio - 1)


def _amount(shift: Shift) -> str:
    """Return ``-7.1 % (-8.0 % to -6.2 %)``."""
    if shift.low is None or shift.high is None:
        return percent(shift.ratio)
    return f"{percent(shift.ratio)} ({percent(shift.low)} to {percent(shift.high)})"


def _has_no_scatter(comparison: Comparison) -> bool:
    return any(len(each.runs) < LEAST_RUNS for each in (comparison.first, comparison.second))


def _side(side: Side) -> str:
    span = " to ".join(dict.fromkeys((side.runs[0].night, side.runs[-1].night)))
    return f"{side.words}: {counted(len(side.runs), 'run')}, {span} UTC"


def _groups(comparison: Comparison, *, whole: bool) -> list[str]:
    """Return the groups, the most urgent first; what is SAME is counted, not shown."""

    def urgency(group: Group) -> tuple[int, bool, float]:
        share = group.counts.get(group.change, 0) / max(1, sum(group.counts.values()))
        # A rail of which all is slow before the pairs of which a half is, because of it.
        return _URGENCY.index(group.change), share < _NEARLY_ALL, -_off(group.shift)

    several = sorted(comparison.groups, key=urgency)
    chosen = several if whole else [e for e in several if e.change is not Change.SAME][:_ROWS]
    rows: list[tuple[str, ...]] = [
        ("  WORD", "WHERE", "METRIC", "CHANGE", "INTERVAL", "UNSEEN BELOW", "")
    ]
    for each in chosen:
        shift = each.shift
        place = each.where + (f" = {', '.join(each.also)}" if each.also and whole else "")
        interval, unseen = "too few runs", "-"
        if shift and shift.low is not None and shift.high is not None:
            interval = f"{percent(shift.low)} to {percent(shift.high)}"
        if shift and shift.detectable is not None:
            unseen = f"{(shift.detectable - 1) * 100:.1f} %"
        metric = f"{each.metric} {each.band}".rstrip()
        rows.append(
            (
                f"  {each.change.value}",
                place if whole else _cut(place, 20),
                metric,
                percent(shift.ratio if shift else None),
                interval if shift else "-",
                unseen,
                each.sentence,
            )
        )
    if not whole:  # what would have been seen, and why: with --all
        rows = [row[:5] for row in rows]
    found = list(columns(rows, frozenset({3, 5}))) if chosen else []
    hidden = several[len(chosen) :]
    same = sum(each.change is Change.SAME for each in hidden)
    counts = [f"{counted(same, 'group')} SAME"] * bool(same)
    counts += [counted(len(hidden) - same, "more group")] * (len(hidden) > same)
    return [*found, *([f"  ... and {', '.join(counts)} (--all)"] if counts else [])]


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: most - 3]}..."


def _quantities(comparison: Comparison, *, whole: bool) -> list[str]:
    """Return the quantities that are WORSE, look worse or are BETTER, the surest first."""
    worse, better = (
        [each for each in comparison.quantities if each.shift.change is word]
        for word in (Change.WORSE, Change.BETTER)
    )
    told = [*worse, *comparison.suspects, *better]
    chosen = comparison.quantities if whole else told[:_QUANTITIES]
    rows = []
    for each in chosen:
        shift = each.shift
        runs = f"{shift.num_first} and {shift.num_second} runs"
        levels = f"{_value(shift.median_first)} -> {_value(shift.median_second)} {each.key.unit}"
        label = each.key.label if whole else _cut(each.key.label, 36)
        row = (f"  {shift.change.value}", label, percent(shift.ratio), levels)
        rows.append((*row, runs, each.note) if whole else row)
    rest = [f"  ... and {len(told) - len(chosen)} more quantities (--all)"]
    found = list(columns(rows, frozenset({2}))) if rows else []
    return [*([""] * bool(rows)), *found, *rest * (len(told) > len(chosen))]


def _value(number: float | None) -> str:
    if number is None:
        return "-"
    return f"{number:.0f}" if number >= 1000 else f"{number:.4g}"


def _beside(comparison: Comparison, most: int, *, whole: bool) -> list[str]:
    """Return what else differs, warnings and what was not compared, in at most so many lines."""
    said = [("  differs  ", each.sentence) for each in comparison.changes]
    if not said:
        said = [("  ", "No field of inventory and no build is known to differ.")]
    shown = said if whole else said[:_CHANGES]
    rest = len(said) - len(shown)
    told = [*shown, *(("  WARNING ", each) for each in comparison.warnings)]
    apart = comparison.not_compared
    for each in apart if whole else apart[:1]:
        side = "first" if each.side == 1 else "second"
        text = f"{each.quantities} quantities of the {side} side: {each.reason}"
        text += f" (--across {' --across '.join(each.unlike)})" if each.unlike else ""
        if more := 0 if whole else sum(other.quantities for other in apart[1:]):
            text += f"; and {more} more"
        told.append(("  not compared: ", text))
    found = [""]
    for at, (mark, text) in enumerate(told):
        part = wrapped(mark + text, 1 if at < len(shown) else 2, whole=whole)
        if len(found) + len(part) + (at < len(told) - 1 or rest > 0) > most:
            rest += len(told) - at
            break
        found += part
    return [*found, *[f"  ... and {rest} more (--all)"] * (rest > 0)]


def next_step(comparison: Comparison) -> tuple[str, str]:
    """Return why, and the command that a person should run next; empty if there is none."""
    site = site_option(comparison.site)
    if comparison.overall is Change.UNDECIDED:
        return _to_decide(comparison, site)
    if comparison.overall is Change.WORSE:
        part = {name: values for name, values in comparison.filters.items() if name in _OF_TREND}
        undo = "; then undo one of the changes above" * bool(comparison.changes)
        return f"since when it is so{undo}", " ".join(
            filter(None, ("fabricproof trend", typed(part), site))
        )
    second = comparison.second
    if comparison.filters:
        sides = shlex.join([comparison.first.words, second.words, *comparison.options])
        return (
            f"of all, not only {comparison.asked_for}",
            f"fabricproof compare {sides} {site}",
        )
    if second.baseline or len(second.runs) < _RUNS_OF_A_BASELINE:
        return "nothing", ""
    words = shlex.quote(second.words)
    return "nothing; to hold it:", f"fabricproof baseline freeze NAME {words} {site}"


def _to_decide(comparison: Comparison, site: str) -> tuple[str, str]:
    run = f"fabricproof run -t quick {site}"
    times = comparison.more_runs or 0
    if _has_no_scatter(comparison):
        return "more runs on each side: one has no scatter", run
    if comparison.disturbed == "first":
        return "nothing; others disturbed the first side: compare with one that was quiet", ""
    if comparison.disturbed:
        again = "as often as the second side has runs, once the others are gone"
        return f"{again}; then compare with those", run
    if times > _MOST_RUNS:
        more = counted(times, "more run")
        return (
            f"nothing; all of it would need {more} on each side: ask of less with --only, or let "
            "legs take longer (leg_seconds)"
        ), ""
    if times:
        return (
            f"{counted(times, 'more run')} on each side decide what is open; another look has its "
            f"own {100 * comparison.alpha:g} % of false words (docs/compare.md)"
        ), f"for i in $(seq {times}); do {run}; done"
    return "what gave no number must be measured first", run
