"""What else differs between the sides: inventory and builds; and what hides what."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from fabricproof.core.units import by_key, first_few
from fabricproof.history.compare.model import FieldChange, Side
from fabricproof.history.machines import Machines
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

#: of a node: part and fact -> its values over the runs of a side
_Values = Mapping[tuple[str, str], frozenset[str]]


def find_changes(
    first: Side, second: Side, machines: Machines
) -> tuple[tuple[FieldChange, ...], tuple[str, ...]]:
    """Return the fields that differ between two sides, and warnings of what is not known."""
    sides = [_nodes(each, machines) for each in (first, second)]
    values = [{node: _values(states) for node, states in side.items()} for side in sides]
    changes = (*_inventory_changes(*values), *_build_changes(first, second))
    warnings: list[str] = []
    for name, side, here, there in (
        ("first", first, values[0], values[1]),
        ("second", second, values[1], values[0]),
    ):
        unseen = [run for run in side.runs if not run.inventory or None in run.inventory.values()]
        if unseen:
            warnings.append(
                f"in {len(unseen)} of {len(side.runs)} runs of the {name} side some node was not "
                "looked at, or changed meanwhile: what differs there is not known"
            )
        if only := sorted(here.keys() - there.keys()):
            warnings.append(f"on the {name} side only: {first_few(only, 8)}")
        varied = by_key(
            ((part, fact, _joined(several)), node)
            for node, of_node in here.items()
            for (part, fact), several in of_node.items()
            if len(several) > 1
        )
        warnings += [
            f"{part}: {name_of(fact)} changed within the {name} side ({told} on "
            f"{', '.join(nodes[:6])}): that side is no one state"
            for (part, fact, told), nodes in sorted(varied.items())
        ]
    found = causes(changes)
    if len(found) > 1:
        warnings.append(f"{first_few(found, 6)} changed: this comparison cannot tell them apart")
    return changes, tuple(warnings)


def _nodes(side: Side, machines: Machines) -> dict[str, list[Machine]]:
    """Return node -> the states that it was in, each once."""
    digests = dict.fromkeys(item for run in side.runs for item in run.inventory.items())
    return by_key(
        (node, machine)
        for node, digest in sorted(digests, key=lambda each: each[0])
        if (machine := machines.get(node, digest))
    )


def _values(states: Iterable[Machine]) -> _Values:
    found = by_key(
        ((part, fact), shown(fact, value))
        for machine in states
        for part, facts in machine.facts.items()
        for fact, value in facts.items()
    )
    return {place: frozenset(values) for place, values in found.items()}


def _inventory_changes(
    first: Mapping[str, _Values], second: Mapping[str, _Values]
) -> Iterator[FieldChange]:
    """Yield each fact that is not the same, nodes that it changed alike on together."""
    nodes: dict[tuple[str, str, str, str], list[str]] = {}
    partly: set[tuple[str, str, str, str]] = set()
    for node in sorted(first.keys() & second.keys()):
        here, there = first[node], second[node]
        for place in dict.fromkeys((*here, *there)):
            old, new = (side.get(place, frozenset()) for side in (here, there))
            if old != new:
                change = (*place, _joined(old), _joined(new))
                nodes.setdefault(change, []).append(node)
                if old & new:
                    partly.add(change)
    for change, where in sorted(nodes.items()):
        part, fact, old_told, new_told = change
        meaning = meaning_of(fact, old_told, new_told, ("the first side", "the second side"))
        yield FieldChange(
            part=part,
            fact=fact,
            nodes=tuple(where),
            first=old_told,
            second=new_told,
            sentence=f"{part}: {name_of(fact)} {old_told or 'not known'} -> "
            f"{new_told or 'not known'} ({first_few(where, 6)})" + f": {meaning}" * bool(meaning),
            partly=change in partly,
        )


def _joined(values: Iterable[str]) -> str:
    return ", ".join(sorted(values))


def _build_changes(first: Side, second: Side) -> Iterator[FieldChange]:
    here, there = (
        by_key(
            (stack, build or "not recorded")
            for run in side.runs
            for stack, build in run.builds.items()
        )
        for side in (first, second)
    )
    for stack in sorted(here.keys() & there.keys()):
        old, new = set(here[stack]), set(there[stack])
        if old != new:
            yield FieldChange(
                part=f"stack {stack}",
                fact="build",
                nodes=(),
                first=_joined(old),
                second=_joined(new),
                sentence=f"stack {stack}: build {_joined(old)} -> {_joined(new)}: unlike builds "
                "are compared only with --across build",
                partly=bool(old & new),
            )


def causes(changes: Sequence[FieldChange]) -> list[str]:
    """Return what changed independently, as far as facts can tell: one word for each cause.

    What varies within a side is told by itself and counts for none here.
    """
    return sorted(
        {
            f"build of {each.part.removeprefix('stack ')}"
            if each.fact == "build"
            else _ONE_CAUSE.get(each.fact, name_of(each.fact))
            for each in changes
            if each.first and each.second and not each.partly
        }
    )
