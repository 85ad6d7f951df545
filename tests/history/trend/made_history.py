"""Histories made of one recorded night: records.jsonl and inventories as runs leave them."""

from __future__ import annotations

import datetime
import json
import random
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from fabricproof.core.records import append_records
from fabricproof.nodes.inventory.facts import Machine
from fabricproof.nodes.inventory.store import FOLDER, INDEX_FILE, write_machine

NIGHT = Path(__file__).parents[2] / "data" / "trend" / "night.jsonl"

SITE, NODES = "vcluster", ("vc1", "vc2", "vc3")

#: the first night of every made history
FIRST = datetime.datetime(2026, 11, 1, 22, 0, tzinfo=datetime.UTC)

Record = dict[str, Any]

#: (record, night from 0) -> factor on its value; None leaves the record out
Factor = Callable[[Record, int], float | None]

#: (node, night from 0) -> Mb/s that its rail1 says it has; None: nobody looked
Speed = Callable[[str, int], int | None]


def unchanged(_record: Record, _night: int) -> float:
    """Return 1: nothing is planted."""
    return 1.0


def full_speed(_node: str, _night: int) -> int:
    """Return 200: no rail changes."""
    return 200


def rail_slower(night: int, *, rail: str = "rail1", share: float = 0.5) -> Factor:
    """Return a factor: from ``night`` (from 0) all over ``rail`` carries ``share``."""

    def factor(record: Record, now: int) -> float:
        if now < night or rail not in record["rails"]:
            return 1.0
        return share if record["quantity_unit"] == "MB/s" else 1 / share

    return factor


def run_id_of(night: int, every: datetime.timedelta) -> str:
    """Return the identity of the run of a night, from 0."""
    return f"{FIRST + night * every:%Y%m%dT%H%M%SZ}-{night:06x}"


def recorded() -> list[Record]:
    """Return the records of the one night."""
    return [json.loads(line) for line in NIGHT.read_text(encoding="utf-8").splitlines()]


def write_history(
    perflogs: Path,
    nights: int,
    *,
    seed: int,
    factor: Factor = unchanged,
    speed: Speed = full_speed,
    noise: float = 0.02,
    every: datetime.timedelta = datetime.timedelta(days=1),
    builds: Mapping[int, str] | None = None,
) -> None:
    """Write a history below ``perflogs``.

    Args:
        perflogs: empty folder.
        nights: how many runs.
        seed: of the noise.
        factor: what is planted.
        speed: what the inventory says of rail1.
        noise: standard deviation of the logarithms; a third of it common to all of a night.
        every: time between runs.
        builds: night to the digest that openmpi5 has from then on.
    """
    chance = random.Random(seed)
    template = recorded()
    for night in range(nights):
        common = chance.gauss(0, noise / 3)
        seen = {node: _look(perflogs, node, night, speed, every) for node in NODES}
        records = []
        for each in template:
            planted = factor(each, night)
            here = common + chance.gauss(0, noise)
            if planted is None:
                continue
            record = json.loads(json.dumps(each))
            record["run_id"] = run_id_of(night, every)
            record["quantity_value"] *= planted * 2.718281828**here
            record["completed"] = (FIRST + night * every).timestamp() + 60
            record["inventory"] = {node: seen.get(node) for node in record["nodes"]}
            newest = [digest for since, digest in sorted((builds or {}).items()) if since <= night]
            if newest and record["stack"] == "openmpi5":
                record["stack_identity"]["digest"] = newest[-1]
            records.append(record)
        append_records(perflogs / SITE / "compute" / "records.jsonl", records)


def _look(
    perflogs: Path, node: str, night: int, speed: Speed, every: datetime.timedelta
) -> str | None:
    rate = speed(node, night)
    if rate is None:
        return None
    machine = Machine(
        node=node,
        facts={"interface rail1": {"driver": "veth", "mtu": 1500, "shaped_to_mbit_s": rate}},
    )
    folder = perflogs / SITE / FOLDER
    write_machine(folder, machine)
    append_records(
        folder / INDEX_FILE,
        [
            {
                "time": f"{FIRST + night * every:%Y-%m-%dT%H:%M:%SZ}",
                "node": node,
                "run_id": run_id_of(night, every),
                "digest": machine.digest,
                "reason": "",
            }
        ],
    )
    return machine.digest
