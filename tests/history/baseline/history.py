"""Histories for the tests: the recorded one, and records made by hand."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from fabricproof.history.baseline.freeze import Ask
from fabricproof.history.machines import Machines
from fabricproof.history.store import Store, open_store
from fabricproof.nodes.inventory.facts import Machine
from fabricproof.nodes.inventory.store import FOLDER, write_machine

RECORDED = Path(__file__).parents[2] / "data" / "history" / "baseline"

FACTS = {
    "node": {"kernel": "6.1.0"},
    "interface ib0": {"firmware": "28.39", "state": "up", "speed_mbit_s": 200_000},
}


def recorded(folder: Path) -> tuple[Store, Machines]:
    """Open a copy of the recorded history: the store keeps an index beside what it reads."""
    perflogs = folder / "recorded"
    shutil.copytree(RECORDED, perflogs)
    return open_store(perflogs, "vcluster"), Machines.of_site(perflogs, "vcluster")


def run_id(number: int) -> str:
    return f"202611{number // 24 + 1:02d}T{number % 24:02d}0000Z-{number:06x}"


def make_record(number: int, value: float, **changes: Any) -> dict[str, Any]:
    facts: dict[str, Any] = {
        "format": 1,
        "kind": "quantity",
        "run_id": run_id(number),
        "site": "here",
        "partition": "compute",
        "fabric": "ib",
        "stack": "openmpi5",
        "stack_identity": {"digest": "51af25c1cd819af9", "mpi": "openmpi@5"},
        "suite": "osu",
        "program": "osu_bw",
        "tool_version": "7.2",
        "check": "OsuBandwidth",
        "leg": "ib0",
        "rails": ["ib0"],
        "nodes": ["n1", "n2"],
        "attributes": {"num_pairs": 1, "window_size": 64},
        "attempt": 1,
        "counts": True,
        "completed": 1.8e9 + number,
        "quantity_name": "bandwidth_4MiB",
        "quantity_unit": "MB/s",
        "quantity_message_size": 4 * 1024 * 1024,
        "quantity_value": value,
        "quantity_verdict": "PASS",
        "quantity_reason": "fine",
        "quantity_reference": 100.0,
        "quantity_lower": 90.0,
        "quantity_upper": 120.0,
        "quantity_ceiling": 120.0,
        "quantity_ceiling_name": "link",
        "quantity_origin": "physics: the link binds",
        "quantity_named": True,
        "road_state": "proven",
    }
    return {**facts, **changes}


def make_history(
    folder: Path,
    records: Iterable[Mapping[str, Any]],
    machines: Mapping[int, Mapping[str, Mapping[str, Any]]] | None = None,
) -> tuple[Store, Machines]:
    """Write a history below ``folder`` and open it.

    Args:
        folder: of the perflogs.
        records: as :func:`make_record` makes them.
        machines: run number to the facts that both nodes have from then on.
    """
    states = sorted({0: FACTS, **(machines or {})}.items())
    looks = folder / "here" / FOLDER
    lines = []
    for record in records:
        number = int(record["run_id"].rpartition("-")[2], 16)
        facts = [each for start, each in states if start <= number][-1]
        digests = {}
        for node in record["nodes"]:
            machine = Machine(node=node, facts=facts)  # type: ignore[arg-type]
            write_machine(looks, machine)
            digests[node] = machine.digest
        lines.append(json.dumps({"inventory": digests, **record}))
        with (looks / "index.jsonl").open("a") as index:
            for node, digest in digests.items():
                seen = {"time": record["run_id"], "node": node, "run_id": record["run_id"]}
                index.write(
                    json.dumps({"format": 1, **seen, "digest": digest, "reason": ""}) + "\n"
                )
    path = folder / "here" / "compute" / "records.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(lines) + "\n")
    return open_store(folder, "here"), Machines.of_site(folder, "here")


def ask(**changes: Any) -> Ask:
    facts = {"name": "spring", "frozen": "2026-11-21T21:00:00Z", "command": "typed"}
    return Ask(**{**facts, **changes})
