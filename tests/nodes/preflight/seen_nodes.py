"""Nodes for the tests of preflight: recorded ones, and ones that are written fact by fact."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

from fabricproof.core.findings import Finding
from fabricproof.nodes.inventory.facts import Machine, ReadTrouble, ReadTroubleKind, Value
from fabricproof.nodes.inventory.read import read_machine
from fabricproof.nodes.preflight.sight import Preflight
from fabricproof.site.schema import FabricSpec

DATA = Path(__file__).resolve().parents[2] / "data" / "inventory"

VIRTUAL = {
    "name": "eth0", "link": "200MbE", "protocol": "tcp", "mtu": 1500,
    "shaper": {"burst_bytes": 3200}, "rails": [{"interface": "rail0"}, {"interface": "rail1"}],
}  # fmt: skip


def recorded(name: str, node: str) -> Machine:
    """Return a node of tests/data/inventory under another name, with addresses of its own."""
    text = (DATA / f"{name}.json").read_text(encoding="utf-8")
    number = re.sub(r"\D", "", node) or "1"
    return read_machine(re.sub(r"(inet (?:\d+\.){3})\d+/", rf"\g<1>{number}/", text), node)


def written(
    node: str, parts: dict[str, dict[str, Value]], troubles: tuple[ReadTrouble, ...] = ()
) -> Machine:
    """Return a node with these facts and no others."""
    return Machine(node=node, facts=parts, troubles=troubles)


def changed(machine: Machine, part: str, **facts: Value | None) -> Machine:
    """Return the node with some facts of a part changed; None takes one away."""
    kept = {**machine.facts[part], **facts}
    whole = {name: value for name, value in kept.items() if value is not None}
    return replace(machine, facts={**machine.facts, part: whole})


def without(machine: Machine, part: str) -> Machine:
    """Return the node without a part."""
    kept = {name: facts for name, facts in machine.facts.items() if name != part}
    return replace(machine, facts=kept)


def hindered(machine: Machine, kind: ReadTroubleKind, what: str) -> Machine:
    """Return the node as a look saw it that ``what``, a section or a command, hindered."""
    cut = kind is ReadTroubleKind.CUT_OFF
    trouble = ReadTrouble(
        text=f"a trouble with {what}",
        kind=kind,
        section=what if cut else "",
        command=() if cut else tuple(what.split()),
    )
    return replace(machine, troubles=(trouble,))


def fabric(**keys: Any) -> FabricSpec:
    """Return a fabric as fabric.toml declares it."""
    return FabricSpec.model_validate({"name": "f", **keys})


def of(result: Preflight, name: str, rail: str = "") -> Finding:
    """Return the one finding of that name (and rail)."""
    found = [
        each
        for each in result.findings
        if each.quantity.name == name and (not rail or each.where.rail == rail)
    ]
    assert len(found) == 1, [each.quantity.name for each in result.findings]
    return found[0]


def nodes(*machines: Machine) -> dict[str, Machine | None]:
    """Return node -> machine."""
    return {each.node: each for each in machines}
