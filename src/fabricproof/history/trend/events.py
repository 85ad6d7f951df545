"""Steps that begin together told as one event, with what they share and what else changed.

They share a rail, a node or a stack.
"""

from __future__ import annotations

import itertools
import math
import shlex
import statistics
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from fabricproof.core.project import site_option
from fabricproof.core.units import by_key, first_few
from fabricproof.history.compare.facts import Machines, changed_builds, last_known
from fabricproof.history.store import Key, Run
from fabricproof.history.store.model import MARGINS, metric_of
from fabricproof.history.trend.model import Event, FoundStep
from fabricproof.nodes.inventory.differences import Difference
from fabricproof.nodes.inventory.words import name_of, shown


def coincidences(
    runs: Sequence[Run], later: Sequence[Run], nodes: Sequence[str], machines: Machines
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return what changed, one sentence each, and what nobody knows.

    Args:
        runs: that were surely before, oldest first.
        later: that were surely after, oldest first.
        nodes: that matter; theirs stand first.
        machines: the inventories.
    """
    later = later[::-1]  # the first counts, not the newest
    before, after = (last_known(run.inventory for run in side) for side in (runs, later))
    order = sorted(before.keys() & after.keys(), key=lambda node: (node not in nodes, node))
    found, lost = machines.changed(before, {node: after[node] for node in order})
    changes: dict[tuple[str, str, str], list[str]] = {}
    for difference, where in found.items():
        changes.setdefault(_said(difference), []).extend(where)
    told = [
        f"{part} of {first_few(where)}: {fact} {change}"
        for (part, fact, change), where in changes.items()
    ]
    builds = changed_builds(*(last_known(run.builds for run in side) for side in (runs, later)))
    told += [f"stack {stack}: build {was} -> {now}" for stack, was, now in builds]
    unknown = [
        f"what {node} was made of before or after is not known"
        for node in nodes
        if node not in before or node not in after
    ]
    unknown += [f"{node} is made of something else, but: {why}" for node, why in lost.items()]
    return tuple(told), tuple(unknown)


def _said(difference: Difference) -> tuple[str, str, str]:
    if not difference.fact:
        return difference.part, "", "is there " + ("before" if difference.first else "after")
    fact, values = difference.fact, (difference.first, difference.second)
    sides = ["not known" if each is None else shown(fact, each) for each in values]
    return difference.part, name_of(difference.fact), " -> ".join(sides)


#: how much of the changed a name holds and how much of the name changed, at once (their harmonic
#: mean): below this a name explains too little
_LEAST_FIT = 0.5

#: share of the changed that a name must hold: where all rails changed, none of them is to blame
_LEAST_HELD = 0.7

#: a second name must fit better by this, or one is enough
_MUCH_BETTER = 0.05

_KINDS: Mapping[str, Callable[[Key], Iterable[str]]] = {
    "rail": lambda key: key.rails.split(",") if key.rails else (),
    "node": lambda key: key.nodes.split(",") if key.nodes else (),
    "fabric": lambda key: (key.fabric,),
    "stack": lambda key: (key.stack,),
    "program": lambda key: (key.program,),
}


#: by kind, name and the indices of the quantities that have it
Names = Mapping[str, Mapping[str, frozenset[int]]]


def name_all(keys: Sequence[Key]) -> Names:
    """Return every rail, node, stack ... that some quantities have and others have not."""
    found: dict[str, dict[str, frozenset[int]]] = {}
    for kind, words_of in _KINDS.items():
        rows = by_key((word, at) for at, key in enumerate(keys) for word in words_of(key))
        found[kind] = {
            word: frozenset(those)
            for word, those in rows.items()
            if word and len(set(those)) < len(keys)
        }
    return found


def common(names: Names, changed: Iterable[int]) -> tuple[str, frozenset[int]]:
    """Return the name, or the two (``rail1 of vc2``), that best tell the changed from all others.

    With it the quantities that have it; empty where no name does.
    """
    those = frozenset(changed)
    holding = {
        kind: [(word, rows) for word, rows in of_kind.items() if _fit(rows, those)]
        for kind, of_kind in names.items()
    }
    doubles = [
        (f"{one} of {other}", rows & more)
        for kinds in (("rail", "node"), ("rail", "stack"), ("node", "stack"))
        for (one, rows), (other, more) in itertools.product(*(holding[kind] for kind in kinds))
    ]
    nothing = ("", frozenset[int]())
    single, double = (
        max(several, key=lambda name: _fit(name[1], those), default=nothing)
        for several in (list(itertools.chain.from_iterable(holding.values())), doubles)
    )
    best = double if _fit(double[1], those) > _fit(single[1], those) + _MUCH_BETTER else single
    return best if _fit(best[1], those) >= _LEAST_FIT else nothing


def _fit(rows: frozenset[int], changed: frozenset[int]) -> float:
    """Return the harmonic mean of how much of the changed is held and how much of it changed."""
    both = len(rows & changed)
    return 2 * both / (len(rows) + len(changed)) if both >= _LEAST_HELD * len(changed) else 0.0


#: what a person reads of a list of changes
_CHANGES_NAMED = 3

#: of an event in the newest run
_ALONE = "this is one run so far: the next will tell whether it lasts"

#: of an event that is told and not called
_NOT_SURE = "not sure yet for who looks after every run: more runs will tell"

#: how a metric that is larger or smaller is said
_LARGER = {"latency": "longer", "cost ratio": "more"}


@dataclass(frozen=True, kw_only=True)
class Tested:
    """What steps were looked for in.

    Attributes:
        runs: of the columns, oldest first.
        histories: value per run of each row, None where it has none.
        margins: of each row, as a fraction.
    """

    keys: tuple[Key, ...]
    runs: tuple[Run, ...]
    histories: tuple[tuple[float | None, ...], ...]
    margins: tuple[float, ...]


def events_of(tested: Tested, steps: Sequence[FoundStep], machines: Machines) -> tuple[Event, ...]:
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
        events.append(_event(tested, names, at, group, machines, command))
    return tuple(sorted(events, key=lambda event: event.run.start, reverse=True))


def _groups(steps: Sequence[FoundStep]) -> Iterator[tuple[int, list[FoundStep]]]:
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
    machines: Machines,
    command: str,
) -> Event:
    steps = sorted(steps, key=lambda each: (not each.worse, -abs(math.log(each.step.ratio))))
    shared, holds = common(names, (each.step.row for each in steps))
    nodes = sorted({node for each in steps for node in each.key.nodes.split(",") if node})
    changed, unknown = coincidences(
        tested.runs[: max(each.step.earliest for each in steps)],
        tested.runs[min(each.step.latest for each in steps) :],
        nodes,
        machines,
    )
    matter = [each for each in steps if each.worse] or steps
    lasts = any(each.lasts for each in matter)
    sure = any(each.step.sure for each in matter if each.lasts == lasts)
    run = tested.runs[at]
    since = f"since the run of {run.night} UTC"
    words = [
        f"{since} {_what(tested, shared, steps)} ({_how_sure(tested, shared, holds, steps)})",
        "" if lasts else "it is over: later runs were as before",
        _ALONE if at == len(tested.runs) - 1 else "" if sure else _unsure(matter),
        _at_once(changed, unknown),
    ]
    return Event(
        run=run,
        steps=tuple(steps),
        where=shared,
        coincides=changed,
        sentence="; ".join(word for word in words if word),
        lasts=lasts,
        sure=sure,
        next_step=command,
    )


def _unsure(steps: Sequence[FoundStep]) -> str:
    others = [each.others for each in steps]
    return f"{others[0]}, which explains it" if all(others) else _NOT_SURE


def _what(tested: Tested, shared: str, steps: Sequence[FoundStep]) -> str:
    who = steps[0].key.label + f" and {len(steps) - 1} more" * (len(steps) > 1)
    if len(steps) > 1 and len({each.step.row for each in steps}) >= 0.8 * len(tested.keys):
        who = "everything"
    return f"{shared or who}: " + ", ".join(_amounts(steps))


def _amounts(steps: Sequence[FoundStep]) -> Iterator[str]:
    """Yield ``bandwidth 48 % less`` for each metric and direction, the median of its steps."""
    ratios = by_key(((metric_of(each.key), each.step.ratio > 1), each.step.ratio) for each in steps)
    order = list(MARGINS)
    for (metric, is_more), those in sorted(
        ratios.items(), key=lambda item: (order.index(item[0][0]), item[0][1])
    ):
        ratio = statistics.median(those)
        more = _LARGER.get(metric, "more")
        less = "shorter" if more == "longer" else "less"
        yield f"{metric} {abs(ratio - 1):.0%} {more if is_more else less}".replace("%", " %")


def _how_sure(
    tested: Tested, shared: str, holds: frozenset[int], steps: Sequence[FoundStep]
) -> str:
    count = len(steps)
    noun = "quantity" if count == 1 else "quantities"
    words = [f"{count} {noun} of {len(tested.keys)}"]
    if shared:
        changed = len(holds & {each.step.row for each in steps})
        words.append(f"{changed} of the {len(holds)} of {shared}")
    better = sum(not each.worse for each in steps)
    if better:
        words.append(f"{better} to the better" if better < count else "to the better")
    low, high = (f(each.step.p for each in steps) for f in (min, max))
    p = f"p = {low:.2g}" if f"{low:.2g}" == f"{high:.2g}" else f"p = {low:.2g} to {high:.2g}"
    return "; ".join([", ".join(words), p])


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
        return f"fabricproof compare {shlex.join(words)} {site_option(site)}"
    sides = (runs[begin], runs[at - 1]), (runs[at], runs[end])
    is_nightly = runs[at - 1].start.date() < runs[at].start.date()
    form = "%Y-%m-%d" if is_nightly else "%Y-%m-%dT%H:%M:%S"
    words = ["..".join(run.start.strftime(form) for run in side) for side in sides]
    return f"fabricproof compare {shlex.join(words)} {site_option(site)}"
