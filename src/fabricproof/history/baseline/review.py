"""Whether a baseline holds for the machines and builds as they are today."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from fabricproof.history.compare.facts import Machines, last_known
from fabricproof.verdict.baseline import Baseline, why_not

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
    newest = machines.newest()
    nodes = {}
    for name, node in baseline.nodes.items():
        seen = newest.get(name)
        digest = seen.digest if seen else None
        nodes[name] = why_not(
            name, node.facts, machines.facts(name, digest), same_digest=digest in node.digests
        )
    last = last_known(run.builds for run in store.runs) if store else {}
    builds = {}
    for stack, build in baseline.builds.items():
        now = last.get(stack, "")
        unlike = now and now not in build.split(", ")
        builds[stack] = f"{stack}: build {build} -> {now}" if unlike else ""
    return BaselineCoverage(nodes=nodes, builds=builds)
