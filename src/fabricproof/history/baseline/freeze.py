"""Make a baseline of known-good runs.

Nothing is pooled that is unlike (builds, versions of the tool, nodes of which something was
changed), and what is not learnt from is named with the reason.
"""

from __future__ import annotations

import functools
import statistics
from collections.abc import Iterable, Mapping
from dataclasses import astuple, dataclass, field, replace
from typing import TYPE_CHECKING, Any

from fabricproof import __version__
from fabricproof.core.errors import ExitStatus, FabricproofError, UnlikeError
from fabricproof.core.provenance import PLACE, LegPlace
from fabricproof.core.units import by_key, first_few, stamp
from fabricproof.history.baseline.bounds import Bounds, Samples, learn
from fabricproof.history.machines import Machines
from fabricproof.history.store.model import SETTINGS
from fabricproof.nodes.inventory.changed import Facts, changes
from fabricproof.verdict.references import Baseline, BaselineLeg, BaselineRow

if TYPE_CHECKING:
    from fabricproof.history.store import Store

#: runs that a quantity needs; fewer than three have no scatter worth the name
AT_LEAST, FEWEST = 5, 3

#: messages below this are dominated by what it costs to send one at all
SMALL_BYTES = 16 * 1024

#: significant digits of a number that was calculated, not measured
_DIGITS = 6

_FACTS = (
    "run_id", "attempt", "counts", "value", "verdict", "reason", "reference", "road_state",
    "inventory",
)  # fmt: skip

#: verdicts after which nothing is learnt of a leg in that run
_SPOILT = frozenset({"FAIL", "INVALID", "MISSING"})


class NotKnownGoodError(FabricproofError, ValueError):
    """The runs hold too few numbers that are known to be good."""

    exit_status = ExitStatus.DATA


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
class _Name:
    """A quantity at a place."""

    place: LegPlace
    quantity: str
    unit: str
    message_size: int | None
    better: int
    named: bool


@dataclass(kw_only=True)
class _Good:
    """What is learnt from: numbers of good legs, on nodes that somebody looked at.

    Attributes:
        numbers: quantity -> run -> its numbers.
        aside: (run, leg, kind of reason) -> a sentence for each number that is not learnt from.
        tried: leg -> the runs in which it was measured.
        nodes: node -> the newest run and what the node was made of in it.
    """

    machines: Machines
    numbers: dict[_Name, dict[str, list[float]]] = field(default_factory=dict)
    aside: dict[tuple[str, str, str], list[str]] = field(default_factory=dict)
    tried: dict[str, set[str]] = field(default_factory=dict)
    nodes: dict[str, tuple[str, Facts]] = field(default_factory=dict)
    _newest: dict[tuple[str, LegPlace], tuple[str, str]] = field(default_factory=dict)
    _seen: dict[tuple[str, str, str], str] = field(default_factory=dict)

    def set_aside(self, name: _Name, run: str, value: float, kind: str, reason: str) -> None:
        """Note that a number is not learnt from."""
        sentence = f"{name.quantity} = {value:.5g} {name.unit}"
        told = self.aside.setdefault((run, name.place.label, kind), [])
        told.append(f"{sentence}: {reason}")

    def sentences(self) -> tuple[str, ...]:
        """Return one sentence for each run, leg and kind of reason."""
        return tuple(
            f"{run}: {label}: {first}" + f"; and {len(more)} more numbers" * bool(more)
            for (run, label, _), (first, *more) in sorted(self.aside.items())
        )

    def add(self, name: _Name, run: str, value: float, inventory: str) -> None:
        """Learn from a good number.

        Raises:
            UnlikeError: another build, version of the tool, or state of a node than before.
        """
        for each in ("build", "tool_version"):
            self._refuse_unlike(each, name.place, run)
        if node := self._unseen(run, name.place.nodes, inventory):
            reason = f"inventory: nobody saw what {node} was made of"
            self.set_aside(name, run, value, "inventory", reason)
        else:
            self.numbers.setdefault(name, {}).setdefault(run, []).append(value)

    def _refuse_unlike(self, field_name: str, place: LegPlace, run: str) -> None:
        now = getattr(place, field_name)
        alike = field_name, _without(place, field_name)
        was, before = self._newest.setdefault(alike, (now, run))
        if was != now:
            words = field_name.replace("_", " ")
            raise UnlikeError(
                f"unlike numbers are not pooled: {place.label}, {words}",
                expected=f"one {words} in all runs",
                got=f"{was or 'not known'} in {before}, {now or 'not known'} in {run}",
                next_step="freeze the runs of one",
            )

    def _unseen(self, run: str, nodes: str, inventory: str) -> str:
        """Return a node that nobody looked at in this run; empty if there is none."""
        if (run, nodes, inventory) in self._seen:
            return self._seen[run, nodes, inventory]
        digests = dict(each.split("=", 1) for each in inventory.split(",") if "=" in each)
        unseen = ""
        for node in filter(None, nodes.split(",")):
            facts = self.machines.facts(node, digests.get(node))
            if facts is None:
                unseen = unseen or node
                continue
            before = self.nodes.get(node)
            if before is not None and before[1] != facts:
                told = ", ".join(changes(before[1], facts)[:4])
                raise UnlikeError(
                    f"{node} is not the same in all runs",
                    expected="runs between which nothing was changed",
                    got=f"{told}, between {before[0]} and {run}",
                    next_step=f"freeze the runs since {run}",
                )
            self.nodes[node] = run, facts
        self._seen[run, nodes, inventory] = unseen
        return unseen


@functools.lru_cache(maxsize=10_000)
def _without(place: LegPlace, *names: str) -> LegPlace:
    return replace(place, **dict.fromkeys(names, ""))


def freeze(store: Store, run_ids: Iterable[str], machines: Machines, ask: Ask) -> Baseline:
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
            next_step=f"more runs, or baseline freeze --at-least {FEWEST}, with wide bounds",
        )
    good = _good_numbers(store, ids, machines)
    enough = {name: runs for name, runs in good.numbers.items() if len(runs) >= at_least}
    few = by_key(
        (name.place.label, f"{name.quantity} in {len(runs)}")
        for name, runs in good.numbers.items()
        if len(runs) < at_least
    )
    not_judged = {
        label: f"{label}: fewer than {at_least} good runs of {first_few(several, 1)}"
        for label, several in few.items()
    }
    for label in good.tried.keys() - {name.place.label for name in good.numbers}:
        not_judged[label] = f"{label}: no good number in any of {len(good.tried[label])} runs"
    if not enough:
        raise NotKnownGoodError(
            "nothing was measured often enough to be frozen",
            expected=f"a quantity with a good number in {at_least} of {len(ids)} runs",
            got=[*not_judged.values(), *good.sentences(), "no number at all"][0],
            next_step="name runs of the same checks, or fewer: baseline freeze --at-least N",
        )
    return _baseline(store, enough, good, tuple(sorted(not_judged.values())), ask)


def _good_numbers(store: Store, ids: list[str], machines: Machines) -> _Good:
    """Return the numbers of legs of which every number is known to be good.

    A leg that failed at its largest message is no measure of its smaller ones, nor is one that lost
    packets or ended half way.  Relations between legs are left out: no baseline judges them.
    """
    good = _Good(machines=machines)
    counted = store.samples(ids, _FACTS).filter("counts").sort("run_id", maintain_order=True)
    rows = [
        row for row in counted.iter_rows(named=True) if row["attempt"] != 0 and row["unit"] != "x"
    ]
    places = {
        each: LegPlace(**dict(zip(PLACE, each, strict=True)))
        for each in {tuple(row[name] for name in PLACE) for row in rows}
    }
    sick: dict[tuple[str, LegPlace, str], Mapping[str, Any]] = {}
    for row in rows:
        if row["verdict"] in _SPOILT:
            sick.setdefault((row["run_id"], *_leg(places, row)), row)
    for row in rows:
        place, run, value = places[tuple(row[name] for name in PLACE)], row["run_id"], row["value"]
        if not row["better"] or value is None or not value > 0:
            continue
        name = _Name(
            place=place, **{each: row[each] for each in _Name.__annotations__ if each != "place"}
        )
        good.tried.setdefault(place.label, set()).add(run)
        bare, nodes = _leg(places, row)
        # A program that printed nothing told no nodes.
        other = sick.get((run, bare, nodes)) or sick.get((run, bare, ""))
        if reason := why_not_good(row):
            good.set_aside(name, run, value, row["verdict"], reason)
        elif other is not None:
            words = f"beside a {other['verdict']}"
            good.set_aside(name, run, value, words, f"{words}: {other['quantity']} of the same leg")
        else:
            good.add(name, run, value, row["inventory"] or "")
    return good


def _leg(
    places: Mapping[tuple[Any, ...], LegPlace], row: Mapping[str, Any]
) -> tuple[LegPlace, str]:
    """Return a leg without what a program that printed nothing does not tell, and its nodes."""
    place = places[tuple(row[name] for name in PLACE)]
    return _without(place, "tool_version", "settings", "nodes"), place.nodes


def why_not_good(row: Mapping[str, Any]) -> str:
    """Return why a number is not known to be good; empty if it is.

    UNJUDGED is good if only the reference was missing and the path was proven.
    """
    is_open = row["reference"] is None and row["road_state"] == "proven"
    if row["verdict"] == "PASS" or (row["verdict"] == "UNJUDGED" and is_open):
        return ""
    return f"{row['verdict']}: {row['reason'] or ''}"


def _baseline(
    store: Store,
    numbers: Mapping[_Name, Mapping[str, list[float]]],
    good: _Good,
    not_judged: tuple[str, ...],
    ask: Ask,
) -> Baseline:
    samples = {
        name: Samples(
            values={run: statistics.median(several) for run, several in runs.items()},
            unit=name.unit,
            kind=(name.unit, (name.message_size or SMALL_BYTES) < SMALL_BYTES, name.named),
            family="named" if name.named else "curve",
        )
        for name, runs in numbers.items()
    }
    learnt = learn(samples)
    for name, bounds in learnt.items():
        for run, reason in bounds.aside.items():
            value, kind = samples[name].values[run], f"outlier {name.quantity}"
            good.set_aside(name, run, value, kind, f"outlier: {reason}")
    rows = by_key((name.place, _row(name, samples[name], learnt[name])) for name in samples)
    used = {run for each in samples.values() for run in each.values}
    there = {node for place in rows for node in place.nodes.split(",")}
    common, own = common_facts(
        {name: facts for name, (_, facts) in sorted(good.nodes.items()) if name in there}
    )
    return Baseline(
        name=ask.name,
        site=store.site,
        frozen=ask.frozen,
        command=ask.command,
        fabricproof=__version__,
        settings=SETTINGS,
        runs={each.run_id: stamp(each.start) for each in store.runs if each.run_id in used},
        set_aside=good.sentences(),
        not_judged=not_judged,
        common=common,
        nodes=own,
        groups=tuple(
            BaselineLeg(place=place, rows=tuple(sorted(rows[place], key=_order)))
            for place in sorted(rows, key=astuple)
        ),
    )


def _row(name: _Name, samples: Samples, learnt: Bounds) -> BaselineRow:
    return BaselineRow(
        quantity=name.quantity,
        unit=name.unit,
        message_size=name.message_size,
        better=name.better,
        named=name.named,
        median=float(f"{learnt.median:.{_DIGITS}g}"),
        spread=float(f"{learnt.spread:.{_DIGITS}g}"),
        low=learnt.low,
        high=learnt.high,
        num_runs=len(samples.values) - len(learnt.aside),
    )


def _order(row: BaselineRow) -> tuple[object, ...]:
    return row.unit, row.message_size or 0, row.quantity


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
