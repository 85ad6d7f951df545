"""Nodes for the tests of preflight: recorded ones, and ones that are written fact by fact."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from fabricproof.nodes.inventory.facts import Machine, Value
from fabricproof.nodes.inventory.read import read_machine
from fabricproof.nodes.preflight.finding import Finding, Preflight
from fabricproof.site.schema import FabricSpec

DATA = Path(__file__).resolve().parents[2] / "data" / "inventory"

VIRTUAL = {
    "name": "eth0",
    "link": "200MbE",
    "protocol": "tcp",
    "mtu": 1500,
    "shaper": {"burst_bytes": 3200},
    "rails": [{"interface": "rail0"}, {"interface": "rail1"}],
}


def recorded(name: str, node: str) -> Machine:
    """Return a node of tests/data/inventory under another name."""
    return read_machine((DATA / f"{name}.txt").read_text(encoding="utf-8"), node)


def written(
    node: str, parts: dict[str, dict[str, Value]], unknown: tuple[str, ...] = ()
) -> Machine:
    """Return a node with these facts and no others."""
    return Machine(node=node, facts=parts, unknown=unknown)


def changed(machine: Machine, part: str, **facts: Value | None) -> Machine:
    """Return the node with some facts of a part changed; None takes one away."""
    kept = {**machine.facts[part], **facts}
    whole = {name: value for name, value in kept.items() if value is not None}
    return Machine(node=machine.node, facts={**machine.facts, part: whole}, unknown=machine.unknown)


def without(machine: Machine, part: str) -> Machine:
    """Return the node without a part."""
    kept = {name: facts for name, facts in machine.facts.items() if name != part}
    return Machine(node=machine.node, facts=kept, unknown=machine.unknown)


def fabric(**keys: Any) -> FabricSpec:
    """Return a fabric as fabric.toml declares it."""
    return FabricSpec.model_validate({"name": "f", **keys})


def of(result: Preflight, name: str, rail: str = "") -> Finding:
    """Return the one finding of that name (and rail)."""
    found = [
        each
        for each in result.findings
        if each.judgement.name == name and (not rail or each.rail == rail)
    ]
    assert len(found) == 1, [each.judgement.name for each in result.findings]
    return found[0]


def nodes(*machines: Machine) -> dict[str, Machine | None]:
    """Return node -> machine."""
    return {each.node: each for each in machines}
