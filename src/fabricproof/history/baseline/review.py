"""Whether a baseline holds for the machines and builds as they are today."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from fabricproof.core.units import by_key
from fabricproof.history.compare.facts import Machines, last_known
from fabricproof.nodes.inventory.changed import why_changed
from fabricproof.verdict.references import Baseline

if TYPE_CHECKING:
    from fabricproof.history.store import Store


@dataclass(frozen=True, kw_only=True)
class BaselineCoverage:
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


def standing(baseline: Baseline, machines: Machines, store: Store | None) -> BaselineCoverage:
    """Return whether ``baseline`` holds for nodes and stacks as they were last seen."""
    last = last_known(run.builds for run in store.runs) if store else {}
    newest = {node: seen.digest for node, seen in machines.newest().items()}
    return BaselineCoverage(
        nodes={
            name: why_changed(name, baseline.facts_of(name), machines.facts(name, newest.get(name)))
            for name in baseline.nodes
        },
        builds={
            stack: f"{stack}: build {', '.join(builds)} -> {now}"
            if (now := last.get(stack)) and now not in builds
            else ""
            for stack, builds in builds_of(baseline).items()
        },
    )


def builds_of(baseline: Baseline) -> dict[str, list[str]]:
    """Return stack to the builds that a baseline has numbers of."""
    return by_key(sorted({(each.place.stack, each.place.build) for each in baseline.groups}))
