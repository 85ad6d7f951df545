"""Steps that begin together told as one event: what they share and what else changed then."""

from __future__ import annotations

import itertools
import math
import shlex
import statistics
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from fabricproof.core.project import site_option
from fabricproof.core.units import by_key, first_few
from fabricproof.history.machines import Machines, changed_builds, last_known
from fabricproof.history.store import Key, Run
from fabricproof.history.store.model import MARGINS, metric_of
from fabricproof.history.trend.model import Event, FoundStep
from fabricproof.nodes.inventory.differences import Difference
from fabricproof.nodes.inventory.words import name_of, shown

#: how much of the changed a name holds and how much of the name changed, at once (their harmonic
#: mean): below this a name explains too little
_LEAST_FIT = 0.5

#: share of the changed that a name must hold: if all rails changed, none of them is to blame
_LEAST_HELD = 0.7

#: a second name must fit better by this, or one is enough
_MUCH_BETTER = 0.05

#: fields of a key that may be to blame, and pairs of them
KINDS = ("rails", "nodes", "fabric", "stack", "program")
_DOUBLES = (("rails", "nodes"), ("rails", "stack"), ("nodes", "stack"))

#: how a metric that is larger is said, if not "more"
_LARGER = {"latency": ("longer", "shorter")}

#: what a person reads of a list of changes
_CHANGES_NAMED = 3

#: a name and the quantities that have it
_Named = tuple[str, frozenset[int]]


@dataclass(frozen=True, kw_only=True)
class Tested:
    """What steps were looked for in.

    Attributes:
        runs: of the columns, oldest first.
        histories: value per run of each row, None if it has none.
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
    names = {kind: names_of(tested.keys, kind) for kind in KINDS}
    events = []
    for at, group in groups:
        here = moments.index(at)
        # Only up to the events before and after: what they changed is not of this one.
        span = (moments[here - 1], at, moments[here + 1])
        events.append(_event(tested, names, span, group, machines))
    return tuple(sorted(events, key=lambda event: event.run.start, reverse=True))


def _groups(steps: Sequence[FoundStep]) -> Iterator[tuple[int, list[FoundStep]]]:
    """Yield the steps that may begin with one run.

    Those to the better on rails of which none grew worse by themselves stand apart: that one cause
    makes one rail better and the other worse is less likely than two causes.
    """
    left = list(steps)
    while left:
        exact = Counter(each.step.at for each in left)
        may = {
            at: sum(each.step.earliest <= at <= each.step.latest for each in left) for at in exact
        }
        # Ties go to where most say so themselves, then to the earlier run.
        at = max(exact, key=lambda column: (may[column], exact[column], -column))
        here = [each for each in left if each.step.earliest <= at <= each.step.latest]
        left = [each for each in left if not each.step.earliest <= at <= each.step.latest]
        rails = {each.key.rails for each in here if each.worse}
        parts = by_key((not rails or each.worse or each.key.rails in rails, each) for each in here)
        yield from ((at, parts[known]) for known in (True, False) if known in parts)


def names_of(keys: Sequence[Key], kind: str) -> list[_Named]:
    """Return every rail, node, stack ... that some quantities have and others have not."""
    rows = by_key(
        (word, at) for at, key in enumerate(keys) for word in getattr(key, kind).split(",")
    )
    return [
        (word, frozenset(those))
        for word, those in rows.items()
        if word and len(set(those)) < len(keys)
    ]


def common(names: Mapping[str, Sequence[_Named]], changed: Iterable[int]) -> _Named:
    """Return the name, or the two (``rail1 of vc2``), that best tell the changed from all others.

    With it the quantities that have it; empty if no name does.
    """
    those = frozenset(changed)

    def fit(name: _Named) -> float:
        both = len(name[1] & those)
        held = both >= _LEAST_HELD * len(those)
        return 2 * both / (len(name[1]) + len(those)) if held else 0.0

    holding = {kind: [name for name in several if fit(name)] for kind, several in names.items()}
    doubles = (
        (f"{one} of {other}", rows & more)
        for kinds in _DOUBLES
        for (one, rows), (other, more) in itertools.product(*(holding[kind] for kind in kinds))
    )
    nothing = ("", frozenset[int]())
    single = max(itertools.chain(*holding.values()), key=fit, default=nothing)
    double = max(doubles, key=fit, default=nothing)
    best = double if fit(double) > fit(single) + _MUCH_BETTER else single
    return best if fit(best) >= _LEAST_FIT else nothing


def _event(
    tested: Tested,
    names: Mapping[str, Sequence[_Named]],
    span: tuple[int, int, int],
    steps: list[FoundStep],
    machines: Machines,
) -> Event:
    at = span[1]
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
    others = [each.others for each in matter]
    doubt = "" if sure else "not sure yet for who looks after every run: more runs will tell"
    if all(others) and not sure:
        doubt = f"{others[0]}, which explains it"
    if at == len(tested.runs) - 1:
        doubt = "this is one run so far: the next will tell whether it lasts"
    if changed:
        beside = f"at the same time {first_few(changed, _CHANGES_NAMED, between='; ')}"
    elif unknown:
        beside = f"whether anything else changed then is not known: {unknown[0]}"
    else:
        beside = "nothing else is known to have changed then"
    sentence = (
        f"since the run of {tested.runs[at].night} UTC {_what(tested, shared, steps)} "
        f"({_how_sure(tested, shared, holds, steps)})"
    )
    over = "" if lasts else "it is over: later runs were as before"
    return Event(
        run=tested.runs[at],
        steps=tuple(steps),
        where=shared,
        coincides=changed,
        sentence="; ".join(filter(None, (sentence, over, beside, doubt))),
        lasts=lasts,
        sure=sure,
        next_step=_next(tested, span),
    )


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
    changes = by_key((_said(each), node) for each, where in found.items() for node in where)
    told = [f"{part} of {first_few(where)}: {change}" for (part, change), where in changes.items()]
    builds = changed_builds(*(last_known(run.builds for run in side) for side in (runs, later)))
    told += [f"stack {stack}: build {was} -> {now}" for stack, was, now in builds]
    unknown = [
        f"what {node} was made of before or after is not known"
        for node in nodes
        if node not in before or node not in after
    ]
    unknown += [f"{node} is made of something else, but: {why}" for node, why in lost.items()]
    return tuple(told), tuple(unknown)


def _said(difference: Difference) -> tuple[str, str]:
    fact, values = difference.fact, (difference.first, difference.second)
    if not fact:
        return difference.part, "is there " + ("before" if values[0] else "after")
    sides = ["not known" if each is None else shown(fact, each) for each in values]
    return difference.part, f"{name_of(fact)} {' -> '.join(sides)}"


def _what(tested: Tested, shared: str, steps: Sequence[FoundStep]) -> str:
    """Return ``rail1: bandwidth 48 % less``: who, and the median of each metric and direction."""
    who = steps[0].key.label + f" and {len(steps) - 1} more" * (len(steps) > 1)
    if len(steps) > 1 and len({each.step.row for each in steps}) >= 0.8 * len(tested.keys):
        who = "everything"
    ratios = by_key(((metric_of(each.key), each.step.ratio > 1), each.step.ratio) for each in steps)
    order = list(MARGINS)
    amounts = []
    for metric, is_more in sorted(ratios, key=lambda each: (order.index(each[0]), each[1])):
        words = _LARGER.get(metric, ("more", "less"))
        off = 100 * abs(statistics.median(ratios[metric, is_more]) - 1)
        amounts.append(f"{metric} {off:.0f} % {words[0] if is_more else words[1]}")
    return f"{shared or who}: {', '.join(amounts)}"


def _how_sure(
    tested: Tested, shared: str, holds: frozenset[int], steps: Sequence[FoundStep]
) -> str:
    count = len(steps)
    words = [f"{count} {'quantity' if count == 1 else 'quantities'} of {len(tested.keys)}"]
    if shared:
        changed = len(holds & {each.step.row for each in steps})
        words.append(f"{changed} of the {len(holds)} of {shared}")
    if better := sum(not each.worse for each in steps):
        words.append(f"{better} to the better" if better < count else "to the better")
    p = " to ".join(dict.fromkeys(f"{f(each.step.p for each in steps):.2g}" for f in (min, max)))
    return f"{', '.join(words)}; p = {p}"


def _next(tested: Tested, span: tuple[int, int, int]) -> str:
    """Return the command that compares the runs before an event with those since."""
    begin, at, end = span
    site = site_option(tested.keys[0].site)
    sides = tested.runs[begin:at], tested.runs[at:end]
    starts = [run.start for run in (*sides[0], *sides[1])]
    if starts != sorted(starts):
        # A clock jumped: no range of dates names either side.
        words = [",".join(run.run_id for run in side) for side in sides]
    else:
        is_nightly = sides[0][-1].start.date() < sides[1][0].start.date()
        form = "%Y-%m-%d" if is_nightly else "%Y-%m-%dT%H:%M:%S"
        words = ["..".join(side[each].start.strftime(form) for each in (0, -1)) for side in sides]
    return f"fabricproof compare {shlex.join(words)} {site}"
