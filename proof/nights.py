"""Nights of a machine that does not exist, as records: what histories are made of.

The numbers are those of :mod:`proof.machine.model`, the records those of jobs.
"""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from fabricproof.core.measure import QUANTITY_KEYS
from fabricproof.core.records import append_records
from fabricproof.core.units import size_label
from fabricproof.history.store import Store, open_store
from fabricproof.nodes.inventory.facts import Machine
from fabricproof.nodes.inventory.store import FOLDER, write_machine
from fabricproof.traffic.disturbance import Disturbance, DisturbanceKind
from proof.machine.model import NIGHT_SCATTER, TIMES_SCATTER, ModelMachine

#: message sizes in bytes; the first and the last carry a verdict
SIZES = (8, 4096, 64 * 1024, 4 * 1024 * 1024)

#: by how much less than the link a large message may carry without a FAIL, as in the model's site
PHYSICS_TOLERANCE = 0.10

#: standard deviation of the logarithms of what takes after the night before
TOGETHER_SCATTER = 0.03

SITE = "model"
BANDWIDTH, LATENCY = "bandwidth", "latency"

#: rail, pair, metric, message size in bytes
Place = tuple[str, tuple[str, ...], str, int]
Touches = Callable[[Place], bool]


@dataclass(frozen=True, kw_only=True)
class Slow:
    """What is wrong in a night.

    Attributes:
        by: a share of the rate, and of the speed of a small message.
        touches: which numbers are slow.
    """

    by: float = 0.0
    touches: Touches = lambda _: False

    def factor(self, place: Place) -> float:
        """Return what the speed of a place is multiplied by."""
        return 1 - self.by if self.touches(place) else 1.0

    def fails(self, place: Place) -> bool:
        """Tell whether physics alone makes a FAIL of it."""
        is_plateau = place[2:] == (BANDWIDTH, SIZES[-1])
        return is_plateau and self.by > PHYSICS_TOLERANCE and self.touches(place)


NOTHING_WRONG = Slow()


@dataclass(frozen=True, kw_only=True)
class MadeNight:
    """What one night measured.

    Attributes:
        numbers: place -> MB/s or us.
        failed: places of which physics made a FAIL.
        silent: a rail whose legs gave no number; empty for none.
        firmware: of every rail.
        others: what share of the time of every leg other processes took, 0 to 1.
    """

    numbers: Mapping[Place, float]
    failed: frozenset[Place] = frozenset()
    silent: str = ""
    firmware: str = "20.40.1000"
    others: float = 0.0


def night_of(
    machine: ModelMachine,
    slow: Slow = NOTHING_WRONG,
    *,
    scatter: float = 1.0,
    again: bool = False,
) -> MadeNight:
    """Draw one night: all pairs over each rail.

    Args:
        machine: of the model; what is the night's own is drawn anew.
        slow: what is wrong.
        scatter: how many times as much numbers scatter as the model's do.
        again: it is another look in the night before: that night's own stays.
    """
    if not again:
        machine.night = abs(machine.chance.gauss(0, NIGHT_SCATTER))
    numbers: dict[Place, float] = {}
    for metric, rail, pair in itertools.product(
        (BANDWIDTH, LATENCY), machine.fabric.rails, itertools.combinations(machine.nodes, 2)
    ):
        leg = machine.leg_cost(pair)
        of_metric = scatter if metric == BANDWIDTH else scatter * TIMES_SCATTER
        for size in SIZES:
            place = rail, pair, metric, size
            factor = math.exp(-(leg + machine.number_cost()) * of_metric) * slow.factor(place)
            level = _level(machine, metric, size)
            numbers[place] = level * factor if metric == BANDWIDTH else level / factor
    return MadeNight(numbers=numbers, failed=frozenset(filter(slow.fails, numbers)))


def together(nights: Sequence[MadeNight], lag: float, chance: random.Random) -> list[MadeNight]:
    """Return nights whose numbers also move by 3 %, each after what it was the night before.

    Args:
        nights: in the order of time.
        lag: correlation of one night with the next.
        chance: what draws.
    """
    moved: dict[Place, float] = {}
    found = []
    for night in nights:
        for place in night.numbers:
            new = chance.gauss(0, TOGETHER_SCATTER)
            old = moved.get(place)
            moved[place] = new if old is None else lag * old + math.sqrt(1 - lag**2) * new
        numbers = {place: each * math.exp(moved[place]) for place, each in night.numbers.items()}
        found.append(replace(night, numbers=numbers))
    return found


def _level(machine: ModelMachine, metric: str, size: int) -> float:
    """Return MB/s or us of a message: what it costs before its bytes, and its bytes at the rate."""
    fabric = machine.fabric
    if metric == BANDWIDTH:
        return size / (fabric.gap_us + size / fabric.rate_mb_s)
    return fabric.start_us + size / fabric.rate_mb_s


#: sizes of which a job says that they are due
_NAMED = frozenset({SIZES[0], SIZES[-1]})

#: what a program that printed nothing leaves out of the record of what was due (a run with a rail
#: down, 2026-11-26)
_UNPRINTED: dict[str, Any] = {
    "attributes": {},
    "tool_version": None,
    QUANTITY_KEYS["unit"]: "",
    QUANTITY_KEYS["message_size"]: None,
}


def run_id_of(number: int) -> str:
    """Return the identity of the run of night ``number``, from 0."""
    return f"2026{1 + number // 28:02d}{1 + number % 28:02d}T220000Z-{number:06x}"


def write_nights(perflogs: Path, nights: Sequence[MadeNight]) -> Store:
    """Write nights below an empty folder, in that order, and open them as a history."""
    lines: list[dict[str, Any]] = []
    for number, night in enumerate(nights):
        names = sorted({node for _, pair, _, _ in night.numbers for node in pair})
        seen = {name: _machine(perflogs, name, night) for name in names}
        for place, value in night.numbers.items():
            if night.others and place[3] == SIZES[0]:
                lines.append(_environment(_record(number, night, place, value), night.others))
            if place[0] == night.silent and place[3] not in _NAMED:
                continue
            inventory = {node: seen[node] for node in place[1]}
            lines.append(_record(number, night, place, value) | {"inventory": inventory})
    append_records(perflogs / SITE / "compute" / "records.jsonl", lines)
    return open_store(perflogs, SITE)


def _environment(quantity: Mapping[str, Any], others: float) -> dict[str, Any]:
    """Return what a job keeps of the attempt of a number, of which what others took matters."""
    taken = Disturbance(kind=DisturbanceKind.STARVED_CORES, share=others, reason="others ran")
    same = ("site", "run_id", "partition", "stack", "check", "job_id", "leg", "attempt")
    attempt = {name: quantity[name] for name in same}
    return {**attempt, "kind": "environment", "disturbances": [asdict(taken)]}


def _machine(perflogs: Path, node: str, night: MadeNight) -> str:
    rails = sorted({rail for rail, *_ in night.numbers})
    facts = {f"interface {rail}": {"firmware": night.firmware} for rail in rails}
    machine = Machine(node=node, facts=facts)
    write_machine(perflogs / SITE / FOLDER, machine)
    return machine.digest


def _record(number: int, night: MadeNight, place: Place, value: float) -> dict[str, Any]:
    rail, pair, metric, size = place
    is_rate, is_silent = metric == BANDWIDTH, rail == night.silent
    verdict = "MISSING" if is_silent else "FAIL" if place in night.failed else "PASS"
    return {
        # All keys that a job writes: a line without one is read one by one, many times as long.
        **dict.fromkeys(QUANTITY_KEYS.values()),
        "kind": "quantity",
        "site": SITE,
        "run_id": run_id_of(number),
        "partition": "compute",
        "fabric": "model",
        "stack": "openmpi5",
        "stack_identity": {"digest": "a" * 64, "mpi": "openmpi5"},
        "suite": "osu",
        "program": "osu_bw" if is_rate else "osu_latency",
        "tool_version": "7.4",
        "check": "OsuBandwidth" if is_rate else "OsuLatency",
        "leg": rail,
        "rails": [rail],
        "attempt": 1,
        "attributes": {"num_pairs": 1},
        "counts": True,
        "completed": 0.0,
        "job_id": str(number),
        "stage_folder": "",
        "road_state": "proven",
        "environment_digest": "0" * 12,
        "nodes": list(pair),
        QUANTITY_KEYS["name"]: f"{metric}_{size_label(size)}",
        QUANTITY_KEYS["unit"]: "MB/s" if is_rate else "us",
        QUANTITY_KEYS["message_size"]: size,
        QUANTITY_KEYS["named"]: size in _NAMED,
        QUANTITY_KEYS["value"]: None if is_silent else value,
        QUANTITY_KEYS["verdict"]: verdict,
        QUANTITY_KEYS["reason"]: "" if verdict == "PASS" else "as physics has it",
        **(_UNPRINTED if is_silent else {}),
    }
