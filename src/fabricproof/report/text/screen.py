"""A report on one screen: what is red and where, how sure, what changed, what to run next."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from fabricproof.core.measure import BADNESS, Verdict
from fabricproof.core.units import by_key, counted
from fabricproof.history.compare.model import Comparison
from fabricproof.history.stats.shifts import Change
from fabricproof.job.run import LegResult
from fabricproof.report.model import ReportData, for_people
from fabricproof.report.red import (
    RedGroup,
    folded,
    held,
    red_groups,
    told_of_admission,
    told_of_passes,
    what_next,
)
from fabricproof.report.text.drain import advise
from fabricproof.report.text.terminal import STYLES as VERDICT_STYLES

#: one screen of a terminal as administrators have them
WIDTH = 100
LINES = 40

#: an item is cut after so many lines; --all shows it whole
ITEM_LINES = 3

#: commands that are shown at most
COMMANDS = 4

#: word -> rich style; the word itself always stands there too
STYLES: Mapping[str, str] = {
    **{verdict.value: style for verdict, style in VERDICT_STYLES.items()},
    "BETTER": "green",
    "SAME": "green",
    "WORSE": "bold red",
    "UNDECIDED": "yellow",
}

#: the phase of ReFrame in which it judges numbers itself
_JUDGED_BY_REFRAME = "performance"
_LEFT_NOTHING = "measured, but left no record"


@dataclass(frozen=True, kw_only=True)
class Line:
    """One line of the screen: a first word in its own style, then the rest."""

    text: str
    word: str = ""
    style: str = ""


@dataclass(frozen=True, kw_only=True)
class Section:
    """A title and its items, the most important first."""

    title: str
    items: tuple[str, ...]


def summary(
    data: ReportData,
    records: Sequence[Mapping[str, Any]] = (),
    *,
    whole: bool = False,
    width: int = WIDTH,
    lines: int = LINES,
) -> list[Line]:
    """Return the screen, line by line.

    It fits into ``lines``, at least 25, where it is not to be ``whole``; records of kind
    ``confirmation`` say how sure a red leg is.
    """
    data = for_people(data)
    groups = groups_of(data, records)
    head = list(_headline(data))
    commands = what_next(groups, data.site, data.run.run_id)
    red = Section(title="red", items=tuple(_red(each) for each in groups))
    first, *others = sections_beside_red(data, records)
    sections = [first, red, *others]
    tail = _next(commands, whole=whole)
    filled = [each for each in sections if each.items]
    room = 10**9 if whole else lines - len(head) - len(tail)
    shown = [*head, *_fitted(filled, room, width, whole=whole), *tail]
    return [replace(each, text=held(each.text)) for each in shown]


def groups_of(data: ReportData, records: Sequence[Mapping[str, Any]]) -> list[RedGroup]:
    """Return what is red; records of kind ``confirmation`` say how sure it is."""
    confirmations = [each for each in records if each.get("kind") == "confirmation"]
    return red_groups(data.session, confirmations)


def sections_beside_red(
    data: ReportData, records: Sequence[Mapping[str, Any]]
) -> tuple[Section, ...]:
    """Return what a report says beside what is red, of a report for people: the screen and page."""
    admission = tuple(told_of_admission(data.session.legs))
    blamed = tuple(f"{each.node}: {each.reason}" for each in advise(data, records).blamed)
    changed = tuple(each.sentence for each in data.inventory_changes)
    notes = tuple(dict.fromkeys((*data.notes, *data.session.notes)))
    return (
        Section(title="admission", items=admission),
        Section(title="blamed by the evidence (report --drain has it)", items=blamed),
        Section(title="found on green legs", items=tuple(told_of_passes(data.session.legs))),
        Section(title="compared", items=tuple(_compared(data.comparison))),
        Section(title="history", items=tuple(_history(data))),
        Section(title="changed since the run before", items=changed),
        Section(title="coverage", items=tuple(_coverage(data.session.legs))),
        Section(title="notes", items=notes),
    )


def _headline(data: ReportData) -> Iterable[Line]:
    counts = data.session.counts()
    parts = [f"{counts[each]} {each}" for each in BADNESS if each in counts]
    verdict = data.session.verdict
    yield _line(f"{verdict}  {data.site}, run {data.run.run_id}, begun {data.run.night} UTC")
    yield Line(text=f"  {', '.join(parts) or 'nothing ran'}")


def _line(text: str) -> Line:
    word = text.lstrip().split(" ", maxsplit=1)[0].rstrip(":")
    return Line(text=text, word=word if word in STYLES else "", style=STYLES.get(word, ""))


def _red(group: RedGroup) -> str:
    count = f" [{len(group.legs)} legs]" if len(group.legs) > 1 else ""
    where = ", ".join(each for each in (group.net_path, folded(group.nodes)) if each)
    place = f"{where}: " if where else ""
    # How sure stands before the reason: a long reason is cut.
    sure = f" ({group.sure})" if group.sure else ""
    return f"{group.verdict} {place}{group.programs}{count}{sure}: {group.worst}"


def _compared(comparison: Comparison | None) -> Iterable[str]:
    if comparison is None:
        return
    sides = f"{comparison.second.words} against {comparison.first.words}"
    yield f"{comparison.overall} {sides}: {comparison.reason}"
    order = [Change.WORSE, Change.BETTER, Change.UNDECIDED]
    told = [each for each in comparison.groups if each.kind != "overall" and each.change in order]
    for group in sorted(told, key=lambda each: order.index(each.change)):
        if group.change is not Change.UNDECIDED:
            what = " ".join(filter(None, (group.kind, group.name, group.what)))
            yield f"{group.change} {what}: {group.sentence}"
    yield from comparison.warnings


def _history(data: ReportData) -> Iterable[str]:
    if data.trend is None:
        return
    for event in data.trend.events:
        yield f"{event.run.night}: {event.sentence}"
    yield from data.trend.warnings


def _coverage(legs: Sequence[LegResult]) -> Iterable[str]:
    due = [leg for leg in legs if leg.verdict is not Verdict.SKIPPED]
    lost = [leg for leg in due if leg.verdict is Verdict.MISSING]
    if not legs:
        yield "nothing was due, nothing was measured"
        return
    yield f"{len(due) - len(lost)} of {len(due)} due legs were measured"
    yield from _nodes(due)
    never = by_key(
        ((leg.reason, leg.fail_phase), _missed(leg)) for leg in lost if not leg.quantities
    )
    for (reason, phase), names in never.items():
        said = _LEFT_NOTHING if phase == _JUDGED_BY_REFRAME else "not measured"
        yield f"{said}: {len(names)} x {', '.join(dict.fromkeys(names))}: {reason}"
    reasons: dict[str, int] = {}
    for leg in legs:
        if leg.verdict is Verdict.SKIPPED:
            said = " ".join(filter(None, (leg.device, leg.reason)))
            reasons[said] = reasons.get(said, 0) + 1
    for reason, count in sorted(reasons.items(), key=lambda each: -each[1]):
        yield f"not due: {count} x {reason}"


def _nodes(due: Sequence[LegResult]) -> Iterable[str]:
    met: dict[str, set[str]] = {}
    for leg in due:
        if leg.verdict is not Verdict.MISSING:
            met.setdefault(leg.partition, set()).update(leg.nodes)
    for partition, nodes in met.items():
        if nodes:
            yield (
                f"{partition}: {counted(len(nodes), 'node')} took part, {folded(sorted(nodes))}; "
                "every node of it with every other: fabricproof pairs run"
            )


def _missed(leg: LegResult) -> str:
    who = f"{leg.check} ({leg.stack or 'no stack'})"
    return " ".join(filter(None, (who, leg.device)))


def _next(commands: Sequence[str], *, whole: bool) -> list[Line]:
    if not commands:
        return []
    shown = commands if whole else commands[:COMMANDS]
    lines = [Line(text="next", word="next", style="bold")]
    lines += [Line(text=f"  {each}") for each in shown]
    more = len(commands) - len(shown)
    return [*lines, Line(text=f"  and {more} more: --all", style="dim")] if more else lines


def _fitted(sections: Sequence[Section], room: int, width: int, *, whole: bool) -> list[Line]:
    """Return the sections with as many items of each as ``room`` lines allow."""
    blocks = [[_wrapped(item, width, whole=whole) for item in each.items] for each in sections]
    shown = [0] * len(sections)
    open_ones = set(range(len(sections)))
    while open_ones:
        for index in sorted(open_ones):
            shown[index] += 1
            if sum(map(_height, blocks, shown)) > room:
                shown[index] -= 1
                open_ones.discard(index)
            elif shown[index] == len(blocks[index]):
                open_ones.discard(index)
    return [
        line
        for section, items, count in zip(sections, blocks, shown, strict=True)
        for line in _section_lines(section, items, count)
    ]


def _height(items: Sequence[Sequence[Line]], shown: int) -> int:
    return 1 + sum(map(len, items[:shown])) + (shown < len(items))


def _section_lines(section: Section, items: Sequence[Sequence[Line]], shown: int) -> Iterable[Line]:
    yield Line(text=section.title, word=section.title, style="bold")
    for item in items[:shown]:
        yield from item
    more = len(items) - shown
    if more:
        words = f"  and {more} more: --all" if shown else f"  {more}: --all"
        yield Line(text=words, style="dim")


def _wrapped(item: str, width: int, *, whole: bool) -> list[Line]:
    text = " ".join(item.split())
    most = None if whole else ITEM_LINES
    lines = textwrap.wrap(
        text,
        width,
        initial_indent="  ",
        subsequent_indent="      ",
        max_lines=most,
        placeholder=" ...",
        break_on_hyphens=False,
    )
    return [_line(lines[0]), *(Line(text=each) for each in lines[1:])] if lines else []
