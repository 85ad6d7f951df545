"""Whether a baseline still holds today, and what differs between two."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from fabricproof.history.baseline.past import Machines, Number, numbers
from fabricproof.verdict.baseline.apply import why_not
from fabricproof.verdict.baseline.model import Baseline, Place, Row

if TYPE_CHECKING:
    from fabricproof.history.store import Store


@dataclass(frozen=True, kw_only=True)
class Standing:
    """Where a baseline still judges.

    Attributes:
        nodes: node to why it does not hold for it; empty where it does.
        builds: stack to why it does not hold for it; empty where it does.
    """

    nodes: Mapping[str, str]
    builds: Mapping[str, str]

    @property
    def holds(self) -> bool:
        """Whether it holds for every node and stack that it has numbers of."""
        return not any((*self.nodes.values(), *self.builds.values()))

    @property
    def reasons(self) -> tuple[str, ...]:
        """Why it does not, one clause each."""
        return tuple(each for each in (*self.nodes.values(), *self.builds.values()) if each)


def standing(baseline: Baseline, machines: Machines, store: Store | None) -> Standing:
    """Return whether ``baseline`` holds for nodes and stacks as they were last seen.

    Args:
        baseline: which.
        machines: the site's inventories.
        store: the site's history; None where nothing was measured yet.
    """
    newest = machines.newest()
    nodes = {}
    for name, node in baseline.nodes.items():
        seen = newest.get(name)
        digest = seen.digest if seen else None
        nodes[name] = why_not(
            name, node.facts, machines.facts(name, digest), same_digest=digest in node.digests
        )
    last = _last_builds(store) if store else {}
    builds = {}
    for stack, build in baseline.builds.items():
        now = last.get(stack, "")
        unlike = now and now not in build.split(", ")
        builds[stack] = f"{stack}: build {build} -> {now}" if unlike else ""
    return Standing(nodes=nodes, builds=builds)


def _last_builds(store: Store) -> dict[str, str]:
    found: dict[str, str] = {}
    for run in store.runs:
        found |= {stack: build for stack, build in run.builds.items() if build}
    return found


@dataclass(frozen=True, kw_only=True)
class Unlike:
    """A quantity in two baselines, or in a baseline and a run.

    Attributes:
        place: where it was measured.
        quantity: ``bandwidth_1MiB``.
        unit: of the numbers.
        better: 1 or -1.
        named: whether it carries a verdict.
        first: median on the first side; None where it is not there.
        second: likewise.
        low: bounds of the first side; None where it is not there.
        high: likewise.
        second_low: bounds of the second side; None where it is no baseline or not there.
        second_high: likewise.
    """

    place: Place
    quantity: str
    unit: str
    better: int
    named: bool
    first: float | None
    second: float | None
    low: float | None = None
    high: float | None = None
    second_low: float | None = None
    second_high: float | None = None

    @property
    def ratio(self) -> float | None:
        """Second over first; None where a side has none."""
        if self.first is None or self.second is None:
            return None
        return self.second / self.first

    @property
    def outside(self) -> bool:
        """Whether the second is beyond the first's bound on the bad side."""
        if self.second is None or self.low is None or self.high is None:
            return False
        return self.second < self.low if self.better > 0 else self.second > self.high


_Name = tuple[Place, str, str]


def differences(first: Baseline, second: Baseline) -> list[Unlike]:
    """Return every quantity of either, the worst change first, then what one side lacks."""
    here, there = _rows(first), _rows(second)
    found = [
        Unlike(
            place=name[0],
            quantity=name[1],
            unit=name[2],
            better=(row := here.get(name) or there[name]).better,
            named=row.named,
            first=here[name].median if name in here else None,
            second=there[name].median if name in there else None,
            low=here[name].low if name in here else None,
            high=here[name].high if name in here else None,
            second_low=there[name].low if name in there else None,
            second_high=there[name].high if name in there else None,
        )
        for name in sorted({*here, *there}, key=str)
    ]
    return sorted(found, key=_worst_first)


def against_run(baseline: Baseline, store: Store, run_id: str) -> list[Unlike]:
    """Return every quantity of the baseline beside what one run measured, the worst first."""
    measured: dict[_Name, Number] = {
        (each.place, each.quantity, each.unit): each
        for each in numbers(store, [run_id], trusting=True)
        if each.verdict != "INVALID"
    }
    found = [
        Unlike(
            place=name[0],
            quantity=name[1],
            unit=name[2],
            better=row.better,
            named=row.named,
            first=row.median,
            second=measured[name].value if name in measured else None,
            low=row.low,
            high=row.high,
        )
        for name, row in _rows(baseline).items()
    ]
    return sorted(found, key=_worst_first)


def _rows(baseline: Baseline) -> dict[_Name, Row]:
    return {(place, row.quantity, row.unit): row for place, row in baseline.rows()}


def _worst_first(each: Unlike) -> tuple[object, ...]:
    ratio = each.ratio
    if ratio is None:
        return (2, 0.0, str(each.place), each.quantity)
    return (not each.outside, ratio if each.better > 0 else 1 / ratio, str(each.place))
