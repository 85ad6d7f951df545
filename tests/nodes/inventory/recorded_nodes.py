"""The recorded nodes of tests/data/inventory."""

from __future__ import annotations

import json
from pathlib import Path

from fabricproof.nodes.inventory.facts import Machine, Value
from fabricproof.nodes.inventory.read import read_machine

DATA = Path(__file__).resolve().parents[2] / "data" / "inventory"
NAMES = sorted(path.stem for path in DATA.glob("*.json"))


def text(name: str) -> str:
    return (DATA / f"{name}.json").read_text(encoding="utf-8")


def machine(name: str, node: str | None = None) -> Machine:
    said = text(name)
    return read_machine(said, node or json.loads(said)["host"]["name"])


def fact(one: Machine, part: str, name: str) -> Value | None:
    return one.facts[part].get(name)
