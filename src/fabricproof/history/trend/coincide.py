"""What else changed between two runs: fields of the inventory, builds of stacks."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from fabricproof.core.errors import FabricproofError
from fabricproof.history.store import Run
from fabricproof.nodes.inventory.compare import Difference, compare
from fabricproof.nodes.inventory.facts import Machine, Value
from fabricproof.nodes.inventory.words import name_of, shown

#: (node, digest) -> what the node was made of; raises FabricproofError where that is lost
ReadMachine = Callable[[str, str], Machine]

#: what a whole table of nodes with the same change is cut to
_NODES_NAMED = 4


@dataclass(frozen=True, kw_only=True)
class Between:
    """The last run before a change and the first after it, among the runs that were looked at.

    Attributes:
        runs: oldest first.
        before: index of the last run that was surely before.
        after: index of the first run that was surely after.
    """

    runs: Sequence[Run]
    before: int
    after: int


def coincidences(
    between: Between, nodes: Sequence[str], read: ReadMachine
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return what changed, one sentence each, and what nobody knows.

    Args:
        between: where to look.
        nodes: that matter; theirs stand first.
        read: where inventories are kept.
    """
    known = {node for run in between.runs for node in run.inventory}
    order = sorted(known | set(nodes), key=lambda node: (node not in nodes, node))
    changes: dict[tuple[str, str, str], list[str]] = {}
    unknown: list[str] = []
    for node in order:
        pair = _digests(between, node)
        if pair is None:
            if node in nodes:
                unknown.append(f"what {node} was made of before or after is not known")
            continue
        if pair[0] == pair[1]:
            continue
        try:
            found = compare(read(node, pair[0]), read(node, pair[1]), ("before", "after"))
        except FabricproofError as error:
            unknown.append(f"{node} is made of something else, but: {error}")
            continue
        for each in found:
            changes.setdefault(_said(each), []).append(node)
    told = [
        f"{part} of {_names(where)}: {fact} {change}"
        for (part, fact, change), where in changes.items()
    ]
    return (*told, *_builds(between)), tuple(unknown)


def _digests(between: Between, node: str) -> tuple[str, str] | None:
    """Return what a node was before and after; None where one of both is not known."""
    before = (run.inventory.get(node) for run in reversed(between.runs[: between.before + 1]))
    after = (run.inventory.get(node) for run in between.runs[between.after :])
    first, second = (next((each for each in side if each), None) for side in (before, after))
    return (first, second) if first and second else None


def _said(difference: Difference) -> tuple[str, str, str]:
    if not difference.fact:
        return difference.part, "", "is there " + ("before" if difference.first else "after")
    sides = [_value(difference.fact, each) for each in (difference.first, difference.second)]
    return difference.part, name_of(difference.fact), " -> ".join(sides)


def _value(fact: str, value: Value | None) -> str:
    return "not known" if value is None else shown(fact, value)


def _names(nodes: Sequence[str]) -> str:
    some = ", ".join(nodes[:_NODES_NAMED])
    return some + f" and {len(nodes) - _NODES_NAMED} more" * (len(nodes) > _NODES_NAMED)


def _builds(between: Between) -> Iterator[str]:
    before, after = (
        _last_build(side)
        for side in (between.runs[: between.before + 1], between.runs[between.after :][::-1])
    )
    for stack in sorted({*before} & {*after}):
        if before[stack] != after[stack]:
            yield f"stack {stack}: build {before[stack]} -> {after[stack]}"


def _last_build(runs: Sequence[Run]) -> Mapping[str, str]:
    return {stack: build for run in runs for stack, build in run.builds.items() if build}
