"""Make a baseline of known-good runs.

Nothing is pooled that is unlike (builds, versions of the tool, nodes of which something was
changed), and nothing is left out in silence.
"""

from __future__ import annotations

import itertools
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import astuple, dataclass, replace
from typing import TYPE_CHECKING

from fabricproof import __version__
from fabricproof.core.errors import UnlikeError
from fabricproof.core.provenance import LegPlace
from fabricproof.core.units import by_key, stamp
from fabricproof.history.baseline.bounds import Bounds, Samples, learn
from fabricproof.history.baseline.past import (
    NotKnownGoodError,
    Number,
    Spoilt,
    legs_of,
    numbers_in,
    records_of,
    spoilt_in,
    why_not_good,
    without,
)
from fabricproof.history.compare.facts import Machines
from fabricproof.history.store.model import SETTINGS
from fabricproof.nodes.inventory.changed import Facts, changes
from fabricproof.verdict.references import Baseline, BaselineLeg, BaselineRow

if TYPE_CHECKING:
    from fabricproof.history.store import Store

#: runs that a quantity needs
AT_LEAST = 5

#: fewer have no scatter worth the name, whoever asks for it
FEWEST = 3

#: messages below this are dominated by what it costs to send one at all
SMALL_BYTES = 16 * 1024

#: significant digits of a number that was calculated, not measured
_DIGITS = 6

#: place, quantity, unit, size, direction
_Name = tuple[LegPlace, str, str, int | None, int]

#: what one leg of a run measured
_Leg = list[Number]


@dataclass(frozen=True, kw_only=True)
class Ask:
    """What is to be frozen.

    Attributes:
        frozen: now, UTC, ``2026-11-21T21:54:14Z``.
        command: what was typed.
        at_least: runs that each quantity must have.
    """

    name: str
    frozen: str
    command: str
    at_least: int = AT_LEAST


@dataclass(frozen=True, kw_only=True)
class Frozen:
    """A baseline that was made, and what it was not made of.

    Attributes:
        baseline: with what was set aside.
        left_out: quantities with too few good runs, or none, one sentence for each place.
    """

    baseline: Baseline
    left_out: tuple[str, ...]


class _Aside(list[tuple[str, Number, str]]):
    """Numbers that are not learnt from: kind of reason, number, reason."""

    def sentences(self) -> tuple[str, ...]:
        """Return one sentence for each run, place and kind of reason."""
        found = by_key(
            ((number.run_id, number.place.label, kind), (number, reason))
            for kind, number, reason in self
        )
        return tuple(
            f"{run}: {label}: {number.quantity} = {number.value:.5g} {number.unit}"
            + (f" and {len(more)} more" if more else "")
            + f": {reason}"
            for (run, label, _), ((number, reason), *more) in sorted(found.items())
        )


def freeze(
    store: Store,
    run_ids: Iterable[str],
    machines: Machines,
    ask: Ask,
) -> Frozen:
    """Return the baseline of these runs.

    Raises:
        NotKnownGoodError: too few runs, or too few good numbers in them.
        UnlikeError: two builds, two versions of a tool, or a node of which something changed.
    """
    ids = sorted(set(run_ids))
    at_least = max(ask.at_least, FEWEST)
    if len(ids) < at_least:
        raise NotKnownGoodError(
            "too few runs for a baseline",
            expected=f"at least {at_least}",
            got=str(len(ids)),
            next_step=f"more runs, or baseline freeze --at-least {FEWEST} where so few must do: "
            "the bounds are then wide",
        )
    aside = _Aside()
    measured = store.samples(ids)
    legs = list(legs_of(numbers_in(measured)))
    good = _good(legs, spoilt_in(measured), aside)
    for name in ("build", "tool_version"):
        _refuse_unlike(name, good)
    good, nodes = _of_one_inventory(good, machines, aside)
    samples, left_out = _samples(good, at_least)
    if not samples:
        raise NotKnownGoodError(
            "nothing was measured often enough to be frozen",
            expected=f"a quantity with a good number in {at_least} of {len(ids)} runs",
            got=[*left_out.values(), *aside.sentences(), "no number at all"][0],
            next_step="name runs of the same checks, or fewer: baseline freeze --at-least N",
        )
    baseline = _baseline(store, samples, nodes, aside, ask)
    silent = _not_judged(legs, baseline, left_out)
    return Frozen(
        baseline=replace(baseline, not_judged=silent),
        left_out=tuple(sorted({*left_out.values(), *silent})),
    )


def _not_judged(
    legs: Iterable[_Leg], baseline: Baseline, left_out: Mapping[str, str]
) -> tuple[str, ...]:
    """Return the legs that were measured and of which the baseline says nothing, with the reason.

    Relations between legs are none: no baseline judges them.
    """
    runs: dict[str, set[str]] = {}
    for leg in legs:
        if not all(each.relation for each in leg):
            runs.setdefault(leg[0].place.label, set()).add(leg[0].run_id)
    learnt = {place.label for place, _ in baseline.rows()}
    return tuple(
        left_out.get(label, f"{label}: no good number in any of {len(runs[label])} runs")
        for label in sorted(runs.keys() - learnt)
    )


def _good(legs: Sequence[_Leg], spoilt: Iterable[Spoilt], aside: _Aside) -> list[_Leg]:
    """Return the numbers of legs of which every number is known to be good.

    A leg that failed at its largest message is no measure of its smaller ones, nor is one that lost
    packets or ended half way: ``spoilt``, which has no number of its own.
    """
    sick: dict[tuple[str, LegPlace], Number | Spoilt] = {}
    for number in itertools.chain.from_iterable(legs):
        if number.verdict != "UNJUDGED" and why_not_good(number):
            sick.setdefault((number.run_id, number.place), number)
    for each in spoilt:
        sick.setdefault((each.run_id, each.place), each)
    found = []
    for leg in legs:
        run_id, place = leg[0].run_id, leg[0].place
        good = []
        for number in leg:
            if reason := why_not_good(number):
                aside.append((number.verdict, number, reason))
            else:
                good.append(number)
        if not good:
            continue
        beside = ((run_id, each) for each in records_of(place))
        other = next((sick[each] for each in beside if each in sick), None)
        if other is not None:
            words = f"beside a {other.verdict}"
            reason = f"{words}: {other.quantity} of the same leg"
            aside.extend((words, number, reason) for number in good)
        else:
            found.append(good)
    return found


def _refuse_unlike(name: str, good: Iterable[_Leg]) -> None:
    """Refuse a place of which two builds, or two versions of the tool, were measured."""
    newest: dict[LegPlace, Number] = {}
    for number, *_ in sorted(good, key=lambda each: each[0].run_id):
        before = newest.setdefault(without(number.place, name), number)
        was, now = (getattr(each.place, name) for each in (before, number))
        if was != now:
            words = name.replace("_", " ")
            raise UnlikeError(
                f"unlike numbers are not pooled: {number.place.label}, {words}",
                expected=f"one {words} in all runs",
                got=f"{was or 'not known'} in {before.run_id}, "
                f"{now or 'not known'} in {number.run_id}",
                next_step="freeze the runs of one",
            )


def _of_one_inventory(
    good: list[_Leg], machines: Machines, aside: _Aside
) -> tuple[list[_Leg], dict[str, Facts]]:
    """Return the numbers of nodes that somebody looked at, and what these are made of."""
    last: dict[str, tuple[str, Facts]] = {}
    found = []
    for leg in sorted(good, key=lambda each: each[0].run_id):
        number, unseen = leg[0], ""
        for node in number.nodes:
            facts = machines.facts(node, number.inventory.get(node))
            if facts is None:
                unseen = unseen or node
                continue
            before = last.get(node)
            if before is not None and before[1] != facts:
                said = ", ".join(changes(before[1], facts)[:4])
                raise UnlikeError(
                    f"{node} is not the same in all runs",
                    expected="runs between which nothing was changed",
                    got=f"{said}, between {before[0]} and {number.run_id}",
                    next_step=f"freeze the runs since {number.run_id}",
                )
            last[node] = (number.run_id, facts)
        if unseen:
            reason = f"inventory: nobody saw what {unseen} was made of"
            aside.extend(("inventory", number, reason) for number in leg)
            continue
        found.append(leg)
    return found, {node: facts for node, (_, facts) in sorted(last.items())}


def _samples(
    good: Iterable[_Leg], at_least: int
) -> tuple[dict[_Name, dict[str, Number]], dict[str, str]]:
    found: dict[_Name, dict[str, list[Number]]] = {}
    for leg in good:
        place, run_id = leg[0].place, leg[0].run_id
        for number in leg:
            name = (place, number.quantity, number.unit, number.message_size, number.better)
            found.setdefault(name, {}).setdefault(run_id, []).append(number)
    enough: dict[_Name, dict[str, Number]] = {}
    few: dict[str, list[tuple[str, int]]] = {}
    for name, runs in found.items():
        if len(runs) >= at_least:
            enough[name] = {
                run: replace(several[0], value=statistics.median(each.value for each in several))
                for run, several in sorted(runs.items())
            }
        else:
            few.setdefault(name[0].label, []).append((name[1], len(runs)))
    left_out = {
        label: f"{label}: {len(several)} quantities were measured in fewer than {at_least} good "
        f"runs ({several[0][0]} in {several[0][1]})"
        for label, several in few.items()
    }
    return enough, left_out


def _baseline(
    store: Store,
    samples: Mapping[_Name, Mapping[str, Number]],
    nodes: Mapping[str, Facts],
    aside: _Aside,
    ask: Ask,
) -> Baseline:
    asked = {}
    for name, runs in samples.items():
        last = runs[max(runs)]
        asked[name] = Samples(
            values={run: number.value for run, number in runs.items()},
            unit=name[2],
            # Noise of about one scale, which these quantities lend each other.
            kind=(name[2], name[3] is not None and name[3] < SMALL_BYTES, last.named),
            family="" if last.relation else "named" if last.named else "curve",
        )
    learnt = learn(asked)
    for name, bounds in learnt.items():
        for run, reason in bounds.aside.items():
            aside.append((f"outlier {name[1]}", samples[name][run], f"outlier: {reason}"))
    used = sorted({run for runs in samples.values() for run in runs})
    rows = by_key((name[0], _row(name, runs, learnt[name], used)) for name, runs in samples.items())
    starts = {each.run_id: stamp(each.start) for each in store.runs}
    there = {node for place in rows for node in place.nodes.split(",")}
    common, own = common_facts({name: facts for name, facts in nodes.items() if name in there})
    return Baseline(
        name=ask.name,
        site=store.site,
        frozen=ask.frozen,
        command=ask.command,
        fabricproof=__version__,
        settings=SETTINGS,
        runs={run: starts[run] for run in used},
        set_aside=aside.sentences(),
        common=common,
        nodes=own,
        groups=tuple(
            BaselineLeg(place=place, rows=tuple(sorted(rows[place], key=_order)))
            for place in sorted(rows, key=astuple)
        ),
    )


def common_facts(nodes: Mapping[str, Facts]) -> tuple[Facts, dict[str, Facts]]:
    """Return the facts that all nodes have alike, and node to its others."""
    first, *rest = nodes.values() or ({},)
    common: dict[str, dict[str, str | int]] = {
        part: {
            fact: value
            for fact, value in facts.items()
            if all(each[part].get(fact) == value for each in rest)
        }
        for part, facts in first.items()
        if all(part in each for each in rest)
    }
    own: dict[str, Facts] = {
        name: {
            part: other
            for part, each in facts.items()
            if (other := {k: v for k, v in each.items() if k not in common.get(part, {})})
            or part not in common
        }
        for name, facts in nodes.items()
    }
    return common, own


def _order(row: BaselineRow) -> tuple[object, ...]:
    return row.unit, row.message_size or 0, row.quantity


def _row(
    name: _Name, numbers: Mapping[str, Number], learnt: Bounds, runs: Iterable[str]
) -> BaselineRow:
    samples = {run: each.value for run, each in numbers.items() if run not in learnt.aside}
    return BaselineRow(
        quantity=name[1],
        unit=name[2],
        message_size=name[3],
        better=name[4],
        named=numbers[max(numbers)].named,
        median=float(f"{learnt.median:.{_DIGITS}g}"),
        spread=float(f"{learnt.spread:.{_DIGITS}g}"),
        low=learnt.low,
        high=learnt.high,
        num_runs=len(samples),
        samples=tuple(samples.get(run) for run in runs),
    )
