"""Steps that begin together told as one event, with what they share and what else changed."""

from __future__ import annotations

import itertools
import math
import shlex
import statistics
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from fabricproof.history.store import Key, Run
from fabricproof.history.store.quantities import MARGINS, metric_of
from fabricproof.history.trend.common import (
    Between,
    Common,
    Names,
    ReadMachine,
    coincidences,
    common,
    name_all,
)
from fabricproof.history.trend.model import Event, FoundStep

#: what a person reads of a list of changes
_CHANGES_NAMED = 3

#: how a metric that is larger or smaller is said
_LARGER = {"latency": "longer", "cost ratio": "more"}


@dataclass(frozen=True, kw_only=True)
class Tested:
    """What steps were looked for in.

    Attributes:
        keys: of the rows.
        runs: of the columns, oldest first.
        histories: value per run of each row, None where it has none.
        margins: of each row, as a fraction.
    """

    keys: tuple[Key, ...]
    runs: tuple[Run, ...]
    histories: tuple[tuple[float | None, ...], ...]
    margins: tuple[float, ...]


def events_of(tested: Tested, steps: Sequence[FoundStep], read: ReadMachine) -> tuple[Event, ...]:
    """Return the events, newest first."""
    groups = list(_groups(steps))
    moments = sorted({0, len(tested.runs), *(at for at, _ in groups)})
    events = []
    names = name_all(tested.keys)
    for at, group in groups:
        here = moments.index(at)
        command = _next(
            tested.keys[0].site, tested.runs, moments[here - 1], at, moments[here + 1] - 1
        )
        events.append(_event(tested, names, at, group, read, command))
    return tuple(sorted(events, key=lambda event: event.run.start, reverse=True))


def _groups(steps: Sequence[FoundStep]) -> Iterator[tuple[int, list[FoundStep]]]:
    """Yield the run at which most steps may begin together, and those; then of the rest."""
    left = list(steps)
    while left:
        exact = Counter(each.step.at for each in left)
        may = {
            at: sum(each.step.earliest <= at <= each.step.latest for each in left) for at in exact
        }
        # Ties go to where most say so themselves, then to the earlier run.
        at = max(exact, key=lambda column: (may[column], exact[column], -column))
        here = [each for each in left if each.step.earliest <= at <= each.step.latest]
        yield from ((at, several) for several in _apart(here))
        left = [each for each in left if not each.step.earliest <= at <= each.step.latest]


def _apart(steps: Sequence[FoundStep]) -> Iterator[list[FoundStep]]:
    """Yield the steps, but those to the better on rails of which none grew worse by themselves.

    One cause may make a program better and another worse; that it makes one rail better and the
    other worse is less likely than two causes.
    """
    worse = [each for each in steps if each.worse]
    rails = {each.key.rails for each in worse}
    other = [each for each in steps if not each.worse and each.key.rails not in rails]
    if not worse or not other:
        yield list(steps)
        return
    yield [each for each in steps if each.worse or each.key.rails in rails]
    yield other


def _event(
    tested: Tested,
    names: Names,
    at: int,
    steps: list[FoundStep],
    read: ReadMachine,
    command: str,
) -> Event:
    steps = sorted(steps, key=lambda each: (not each.worse, -abs(math.log(each.step.ratio))))
    shared = common(names, [each.step.row for each in steps])
    between = Between(
        runs=tested.runs,
        before=max(each.step.earliest for each in steps) - 1,
        after=min(each.step.latest for each in steps),
    )
    nodes = sorted({node for each in steps for node in each.key.nodes.split(",") if node})
    changed, unknown = coincidences(between, nodes, read)
    steps = [replace(each, coincides=changed) for each in steps]
    matter = [each for each in steps if each.worse] or steps
    lasts = any(each.lasts for each in matter)
    run = tested.runs[at]
    words = [
        f"{_since(tested, at)} {_what(tested, shared, steps)} ({_how_sure(tested, shared, steps)})",
        "" if lasts else "it is over: later runs were as before",
        _alone(tested, at),
        _at_once(changed, unknown),
    ]
    return Event(
        run=run,
        steps=tuple(steps),
        where=shared.words,
        coincides=changed,
        sentence="; ".join(word for word in words if word),
        lasts=lasts,
        next_step=command,
    )


def _since(tested: Tested, at: int) -> str:
    return f"since the run of {tested.runs[at].night} UTC"


def _what(tested: Tested, shared: Common, steps: Sequence[FoundStep]) -> str:
    who = shared.words or ("everything" if _is_all(tested, steps) else _few(steps))
    return f"{who}: " + ", ".join(_amounts(steps))


def _few(steps: Sequence[FoundStep]) -> str:
    if len(steps) == 1:
        return steps[0].key.label
    return f"{steps[0].key.label} and {len(steps) - 1} more"


def _is_all(tested: Tested, steps: Sequence[FoundStep]) -> bool:
    return len(steps) > 1 and len({each.step.row for each in steps}) >= 0.8 * len(tested.keys)


def _amounts(steps: Sequence[FoundStep]) -> Iterator[str]:
    """Yield ``bandwidth 48 % less`` for each metric and direction, the median of its steps."""
    ratios: dict[tuple[str, bool], list[float]] = {}
    for each in steps:
        ratios.setdefault((metric_of(each.key), each.step.ratio > 1), []).append(each.step.ratio)
    order = list(MARGINS)
    for (metric, is_more), those in sorted(
        ratios.items(), key=lambda item: (order.index(item[0][0]), item[0][1])
    ):
        ratio = statistics.median(those)
        more = _LARGER.get(metric, "more")
        less = "shorter" if more == "longer" else "less"
        yield f"{metric} {abs(ratio - 1):.0%} {more if is_more else less}".replace("%", " %")


def _how_sure(tested: Tested, shared: Common, steps: Sequence[FoundStep]) -> str:
    count = len(steps)
    noun = "quantity" if count == 1 else "quantities"
    words = [f"{count} {noun} of {len(tested.keys)}"]
    if shared.words:
        words.append(f"{shared.changed} of the {shared.held} of {shared.words}")
    better = sum(not each.worse for each in steps)
    if better:
        words.append(f"{better} to the better" if better < count else "to the better")
    low, high = (f(each.step.p for each in steps) for f in (min, max))
    p = f"p = {low:.2g}" if f"{low:.2g}" == f"{high:.2g}" else f"p = {low:.2g} to {high:.2g}"
    return "; ".join([", ".join(words), p])


def _alone(tested: Tested, at: int) -> str:
    if at < len(tested.runs) - 1:
        return ""
    return "this is one run so far: the next will tell whether it lasts"


def _at_once(changed: Sequence[str], unknown: Sequence[str]) -> str:
    if changed:
        more = len(changed) - _CHANGES_NAMED
        some = "; ".join(changed[:_CHANGES_NAMED])
        return f"at the same time {some}" + f"; and {more} more changes" * (more > 0)
    if unknown:
        return f"whether anything else changed then is not known: {unknown[0]}"
    return "nothing else is known to have changed then"


def _next(site: str, runs: Sequence[Run], begin: int, at: int, end: int) -> str:
    """Return the command that compares the runs from ``begin`` with those from ``at`` to ``end``.

    Only up to the events before and after: what they changed is not of this one.
    """
    here = runs[begin : end + 1]
    if any(after.start < before.start for before, after in itertools.pairwise(here)):
        # A clock jumped: no range of dates names either side.
        both = (runs[begin:at], runs[at : end + 1])
        words = [",".join(run.run_id for run in side) for side in both]
        return f"fabricproof compare {shlex.join(words)} --site {shlex.quote(site)}"
    sides = (runs[begin], runs[at - 1]), (runs[at], runs[end])
    is_nightly = runs[at - 1].start.date() < runs[at].start.date()
    form = "%Y-%m-%d" if is_nightly else "%Y-%m-%dT%H:%M:%S"
    words = ["..".join(run.start.strftime(form) for run in side) for side in sides]
    return f"fabricproof compare {shlex.join(words)} --site {shlex.quote(site)}"
