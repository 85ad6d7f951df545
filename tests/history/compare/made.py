"""A made history: runs whose numbers, nodes and inventory a test decides."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from fabricproof.core.records import append_records
from fabricproof.core.units import size_label
from fabricproof.history.compare.comparison import Asked, compare_sides
from fabricproof.history.compare.model import Comparison
from fabricproof.history.compare.sides import History, choose_side
from fabricproof.history.machines import Machines
from fabricproof.history.store import Store, open_store
from fabricproof.history.store.label_file import labels
from fabricproof.nodes.inventory.facts import Machine
from fabricproof.nodes.inventory.store import write_machine

SITE = "made"

#: where a number was measured: rail, pair, metric, message size
Where = tuple[str, tuple[str, ...], str, int]

Facts = Mapping[str, Mapping[str, str | int]]

KB, MB = 1024, 1024 * 1024


def node_facts(**changed: str | int) -> dict[str, dict[str, str | int]]:
    """Return what a node is made of; ``rail1_mtu=1400`` changes a rail, ``kernel`` the node."""
    facts: dict[str, dict[str, str | int]] = {
        "node": {"kernel": "6.1.0", "os": "Debian 12"},
        "interface rail0": {"firmware": "28.39.1002", "mtu": 1500, "speed_mbit_s": 100000},
        "interface rail1": {"firmware": "28.39.1002", "mtu": 1500, "speed_mbit_s": 100000},
    }
    for name, value in changed.items():
        rail, _, fact = name.partition("_")
        if rail in {"rail0", "rail1"}:
            facts[f"interface {rail}"][fact] = value
        elif name == "kernel":
            facts["node"]["kernel"] = value
        else:
            for part in ("interface rail0", "interface rail1"):
                facts[part][name] = value
    return facts


@dataclass
class Made:
    """A history below a folder, one run after the other."""

    perflogs: Path
    seed: int = 1
    noise: float = 0.01
    lines: list[dict[str, Any]] = field(default_factory=list)
    seen: list[dict[str, Any]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.rng = np.random.default_rng(self.seed)

    def run(
        self,
        day: int,
        *,
        hour: int = 1,
        nodes: Sequence[str] = ("n1", "n2", "n3"),
        facts: Facts | Mapping[str, Facts | None] | None = None,
        factor: Callable[[Where], float] = lambda _: 1.0,
        verdict: Callable[[Where], str] = lambda _: "PASS",
        rails: Sequence[str] = ("rail0", "rail1"),
        stacks: Mapping[str, str] | None = None,
        sizes: Iterable[int] = (8, KB, MB),
        metrics: Iterable[str] = ("bandwidth", "latency"),
        variables: Mapping[str, str] | None = None,
        **fields: Any,
    ) -> str:
        """Add a run of every pair of nodes on every rail; return its identity."""
        run_id = f"202611{day:02}T{hour:02}0000Z-{day:02}{hour:02}00"
        inventory = self._look(run_id, nodes, facts)
        drift = self.rng.normal(0, self.noise / 2)
        for stack, build in (stacks or {"openmpi5": "a" * 64}).items():
            for pair, rail, metric in itertools.product(
                itertools.combinations(nodes, 2), rails, metrics
            ):
                leg = {
                    **_leg(run_id, stack, build, rail, pair, metric, inventory),
                    **fields,
                }
                environment = {"variables": {"RAIL": rail, **(variables or {})}, "ranks": []}
                leg["environment_digest"] = f"{abs(hash(json.dumps(environment))):x}"[:12]
                self.lines.append({**leg, "kind": "environment", "environment": environment})
                for size in sizes:
                    place = (rail, pair, metric, size)
                    number = _level(metric, size) * factor(place)
                    number *= float(np.exp(drift + self.rng.normal(0, self.noise)))
                    self.lines.append(_quantity(leg, metric, size, number, verdict(place)))
        return run_id

    def _look(self, run_id: str, nodes: Sequence[str], facts: Any) -> dict[str, str | None]:
        folder = self.perflogs / SITE / ".inventory"
        found: dict[str, str | None] = {}
        for node in nodes:
            of_node = facts.get(node, node_facts()) if facts and set(facts) <= set(nodes) else facts
            if facts is not None and set(facts) <= set(nodes) and facts.get(node, "") is None:
                found[node] = None
                continue
            machine = Machine(node=node, facts=of_node or node_facts())
            write_machine(folder, machine)
            found[node] = machine.digest
        return found

    def store(self) -> Store:
        """Write what was added and open it."""
        path = self.perflogs / SITE / "compute" / "records.jsonl"
        append_records(path, self.lines)
        self.lines.clear()
        return open_store(self.perflogs, SITE)

    def history(self, store: Store, **more: Any) -> History:
        """Return what sides are chosen from."""
        return History(
            runs=store.runs,
            labels=labels(self.perflogs, SITE),
            machines=Machines(folder=self.perflogs / SITE / ".inventory"),
            **more,
        )

    def compare(self, first: str, second: str, **asked: Any) -> Comparison:
        """Compare two sides as they are called on the command line."""
        store = self.store()
        history = self.history(store)
        sides = choose_side(first, history), choose_side(second, history)
        return compare_sides(store, history, *sides, Asked(**asked))


def _leg(
    run_id: str,
    stack: str,
    build: str,
    rail: str,
    pair: tuple[str, ...],
    metric: str,
    inventory: Mapping[str, str | None],
) -> dict[str, Any]:
    return {
        "site": SITE,
        "run_id": run_id,
        "partition": "compute",
        "fabric": "ib0",
        "stack": stack,
        "stack_identity": {"digest": build, "mpi": stack},
        "suite": "osu",
        "program": "osu_bw" if metric == "bandwidth" else "osu_latency",
        "tool_version": "7.4",
        "check": "RailMatrix",
        "leg": rail,
        "rails": [rail],
        "nodes": list(pair),
        "inventory": {node: inventory[node] for node in pair},
        "attempt": 1,
        "attributes": {"num_pairs": 1},
        "counts": True,
        "completed": 0.0,
        "job_id": "1",
        "stage_folder": "",
        "road_state": "proven",
    }


def _quantity(
    leg: Mapping[str, Any], metric: str, size: int, number: float, verdict: str
) -> dict[str, Any]:
    gone = verdict == "MISSING"
    return {
        **leg,
        "kind": "quantity",
        "nodes": leg["nodes"],
        "quantity_name": f"{metric}_{size_label(size)}",
        "quantity_unit": "MB/s" if metric == "bandwidth" else "us",
        "quantity_message_size": size,
        "quantity_named": size in {8, MB},
        "quantity_value": None if gone else number,
        "quantity_verdict": verdict,
        "quantity_reason": "made so" if verdict != "PASS" else "",
    }


def _level(metric: str, size: int) -> float:
    if metric == "bandwidth":
        return 12000 * size / (size + 4096)
    return 1.5 + size / 12000


def nights(made: Made, days: Iterable[int], **run: Any) -> list[str]:
    """Add one run for each day."""
    return [made.run(day, **run) for day in days]
