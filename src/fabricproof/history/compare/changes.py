"""What else differs between the sides: inventory and builds; what hides what."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from fabricproof.core.units import by_key, first_few
from fabricproof.history.compare.facts import Machines
from fabricproof.history.compare.model import FieldChange, Side
from fabricproof.nodes.inventory.facts import IDENTITIES, Machine
from fabricproof.nodes.inventory.words import meaning_of, name_of, shown

#: facts that say one thing; two of them that change together are one cause
_ONE_CAUSE: Mapping[str, str] = {
    **dict.fromkeys(IDENTITIES, "parts replaced or moved"),
    **dict.fromkeys(
        ("rate_gbit_s", "speed_mbit_s", "width", "lanes", "lane_speed", "link"), "link rate"
    ),
    **dict.fromkeys(("state", "phys_state"), "link state"),
    **dict.fromkeys(("pcie", "pcie_best", "pcie_best_of_slot"), "PCIe link"),
}

Values = Mapping[tuple[str, str], frozenset[str]]


def find_changes(
    first: Side, second: Side, machines: Machines
) -> tuple[tuple[FieldChange, ...], tuple[str, ...]]:
    """Return the fields that differ between two sides, and warnings of what is not known."""
    here, there = (_nodes(each, machines) for each in (first, second))
    changes = (
        *_inventory_changes(here, there),
        *_build_changes(first, second),
    )
    warnings = (
        *_unseen(first, second),
        *_nodes_of_one_side(here, there),
        *_within(here, there),
        *_confounded(changes),
    )
    return changes, warnings


def _nodes(side: Side, machines: Machines) -> dict[str, list[Machine | None]]:
    """Return node -> what it was, one for each state that it was in."""
    states: dict[str, dict[str | None, Machine | None]] = {}
    for run in side.runs:
        for node, digest in run.inventory.items():
            of_node = states.setdefault(node, {})
            if digest not in of_node:
                of_node[digest] = machines.get(node, digest)
    return {node: list(each.values()) for node, each in sorted(states.items())}


def _values(machines: Iterable[Machine | None]) -> Values:
    """Return (part, fact) -> its values, over the states that a node was in."""
    found: dict[tuple[str, str], set[str]] = {}
    for machine in machines:
        if machine is None:
            continue
        for part, facts in machine.facts.items():
            for fact, value in facts.items():
                found.setdefault((part, fact), set()).add(shown(fact, value))
    return {place: frozenset(values) for place, values in found.items()}


def _inventory_changes(
    first: Mapping[str, list[Machine | None]], second: Mapping[str, list[Machine | None]]
) -> Iterator[FieldChange]:
    """Yield each fact that is not the same, nodes that it changed alike on together."""
    nodes: dict[tuple[str, str, str, str], list[str]] = {}
    partly: set[tuple[str, str, str, str]] = set()
    for node in first:
        # Of a node that nobody saw on a side nothing is known to differ.
        is_seen = any(first[node]) and any(second.get(node, ()))
        if not is_seen or first[node] == second[node]:
            continue
        here, there = _values(first[node]), _values(second[node])
        for part, fact in {**here, **there}:
            values = here.get((part, fact), frozenset()), there.get((part, fact), frozenset())
            if values[0] != values[1]:
                place = (part, fact, _joined(values[0]), _joined(values[1]))
                nodes.setdefault(place, []).append(node)
                if values[0] & values[1]:
                    partly.add(place)
    for (part, fact, old, new), where in sorted(nodes.items()):
        yield FieldChange(
            part=part,
            fact=fact,
            nodes=tuple(where),
            first=old,
            second=new,
            sentence=_sentence(part, fact, old, new, where),
            partly=(part, fact, old, new) in partly,
        )


def _joined(values: Iterable[str]) -> str:
    return ", ".join(sorted(values))


def _sentence(part: str, fact: str, old: str, new: str, nodes: Sequence[str]) -> str:
    meaning = meaning_of(fact, old, new, ("the first side", "the second side"))
    told = f"{part}: {name_of(fact)} {old or 'not known'} before, {new or 'not known'} after"
    return f"{told} ({first_few(nodes, 6)})" + f": {meaning}" * bool(meaning)


def _build_changes(first: Side, second: Side) -> Iterator[FieldChange]:
    here, there = _builds(first), _builds(second)
    for stack in sorted(here.keys() & there.keys()):
        if here[stack] != there[stack]:
            old, new = _joined(here[stack]), _joined(there[stack])
            yield FieldChange(
                part=f"stack {stack}",
                fact="build",
                nodes=(),
                first=old,
                second=new,
                sentence=f"stack {stack}: build {old} before, {new} after: unlike builds are "
                "compared only with --across build",
                partly=bool(here[stack] & there[stack]),
            )


def _builds(side: Side) -> dict[str, frozenset[str]]:
    found: dict[str, set[str]] = {}
    for run in side.runs:
        for stack, build in run.builds.items():
            found.setdefault(stack, set()).add(build or "not recorded")
    return {stack: frozenset(each) for stack, each in found.items()}


def causes(changes: Iterable[FieldChange]) -> tuple[str, ...]:
    """Return what changed independently, as far as facts can tell: one word for each cause.

    What varies within a side is told by itself and counts for none here.
    """
    found = {
        f"build of {each.part.removeprefix('stack ')}"
        if each.fact == "build"
        else _ONE_CAUSE.get(each.fact, name_of(each.fact))
        for each in changes
        if each.first and each.second and not each.partly
    }
    return tuple(sorted(found))


def _confounded(changes: Sequence[FieldChange]) -> Iterator[str]:
    found = causes(changes)
    if len(found) < 2:
        return
    named = ", ".join(found[:-1][:5]) + f" and {found[-1]}"
    more = f" (and {len(found) - 6} more)" if len(found) > 6 else ""
    both = "both" if len(found) == 2 else "all"
    yield f"{named} {both} changed{more}: this comparison cannot tell them apart"


def _within(
    first: Mapping[str, list[Machine | None]], second: Mapping[str, list[Machine | None]]
) -> Iterator[str]:
    """Yield the facts that are not one value throughout a side."""
    for side, nodes in (("first", first), ("second", second)):
        varied = by_key(
            ((part, fact, _joined(values)), node)
            for node, machines in nodes.items()
            for (part, fact), values in _values(machines).items()
            if len(values) > 1
        )
        for (part, fact, values_told), where in sorted(varied.items()):
            yield (
                f"{part}: {name_of(fact)} changed within the {side} side ({values_told} on "
                f"{', '.join(where[:6])}): that side is no one state"
            )


def _unseen(first: Side, second: Side) -> Iterator[str]:
    for name, side in (("first", first), ("second", second)):
        unseen = [run for run in side.runs if not run.inventory or None in run.inventory.values()]
        if unseen:
            yield (
                f"in {len(unseen)} of {len(side.runs)} runs of the {name} side some node was not "
                "looked at, or changed meanwhile: what differs there is not known"
            )


def _nodes_of_one_side(first: Mapping[str, object], second: Mapping[str, object]) -> Iterator[str]:
    for name, nodes in (
        ("first", sorted(first.keys() - second.keys())),
        ("second", sorted(second.keys() - first.keys())),
    ):
        if nodes:
            yield f"on the {name} side only: {first_few(nodes, 8)}"
