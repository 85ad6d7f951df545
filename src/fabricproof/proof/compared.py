"""Two sides of simulated nights through the product's comparison: which word, and how often.

The nights are records as jobs leave them, with the numbers of
:mod:`fabricproof.proof.machine.model`; from the file of records on all is the product: store,
choice of sides, join, statistics, words.
"""

from __future__ import annotations

import itertools
import math
import random
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any

from fabricproof.core.measure import QUANTITY_KEYS
from fabricproof.core.records import append_records
from fabricproof.core.units import size_label
from fabricproof.history.compare.comparison import Asked, compare_sides
from fabricproof.history.compare.facts import Machines
from fabricproof.history.compare.model import Comparison
from fabricproof.history.compare.sides import History, choose_side
from fabricproof.history.stats.shifts import Change
from fabricproof.history.store import Store, open_store
from fabricproof.nodes.inventory.facts import Machine
from fabricproof.nodes.inventory.store import FOLDER, write_machine
from fabricproof.proof.library import FABRICS
from fabricproof.proof.machine.model import NIGHT_SCATTER, TIMES_SCATTER, ModelMachine, NoiseKind

#: nights on each side, nodes (all pairs of them are measured), and message sizes in bytes
NIGHTS, NODES, SIZES = 7, 4, (8, 4096, 64 * 1024, 4 * 1024 * 1024)

#: by how much a change slows what it touches, and from which message size on: in bytes
SLOWER, LONG_BYTES = 0.10, 64 * 1024

SITE = "model"

_BANDWIDTH, _LATENCY = "bandwidth", "latency"


class SidesChange(StrEnum):
    """What is changed between the two sides."""

    NOTHING = "nothing"
    FIRMWARE = "firmware that changes nothing"
    LONG = "firmware that slows messages of 64 KiB and more by 10 %"
    RAIL = "a rail that is 10 % slower"


#: the words that are right
RIGHT: Mapping[SidesChange, tuple[Change, ...]] = {
    SidesChange.NOTHING: (Change.SAME, Change.UNDECIDED),
    SidesChange.FIRMWARE: (Change.SAME, Change.UNDECIDED),
    SidesChange.LONG: (Change.WORSE,),
    SidesChange.RAIL: (Change.WORSE,),
}

#: rail, pair, metric, message size in bytes
Place = tuple[str, tuple[str, ...], str, int]


@dataclass(frozen=True, kw_only=True)
class SidesNight:
    """What one night measured.

    Attributes:
        numbers: place -> MB/s or us.
        firmware: of every rail.
    """

    numbers: Mapping[Place, float]
    firmware: str = "20.40.1000"


@dataclass(frozen=True, kw_only=True)
class SidesTry:
    """What one comparison came to.

    Attributes:
        change: a :class:`SidesChange`.
        seed: that drew all.
        fabric: verbs or sockets.
        noise: how numbers scattered.
        word: the last word.
        named: quantities by their word.
        said: why, where the word is not right.
    """

    change: str
    seed: int
    fabric: str
    noise: str
    word: str
    named: dict[str, int] = field(default_factory=dict)
    said: str = ""

    def record(self) -> dict[str, Any]:
        """Return it as plain data."""
        return asdict(self)


def compare_try(change: SidesChange, seed: int) -> SidesTry:
    """Compare two sides of a machine and a noise that ``seed`` draws."""
    fabric = sorted(FABRICS)[seed % len(FABRICS)]
    # One seed draws the same nights for every change: what differs is the change alone.
    chance = random.Random(f"sides {seed}")  # noqa: S311 - it draws noise, no secret
    machine = ModelMachine(
        fabric=FABRICS[fabric],
        nodes=tuple(f"n{number:02d}" for number in range(1, NODES + 1)),
        chance=chance,
        noise=chance.choice(list(NoiseKind)),
    )
    before, after = nights_of(machine, change)
    with tempfile.TemporaryDirectory() as folder:
        found = compare_nights(Path(folder), before, after)
    word = found.overall
    named = [each.shift.change.value for each in found.quantities]
    return SidesTry(
        change=change.value,
        seed=seed,
        fabric=fabric,
        noise=machine.noise.value,
        word=word.value,
        named={each: named.count(each) for each in sorted(set(named))},
        said="" if word in RIGHT[change] else f"{word.value}: {found.reason}",
    )


def nights_of(
    machine: ModelMachine, change: SidesChange, num: int = NIGHTS
) -> tuple[list[SidesNight], list[SidesNight]]:
    """Draw ``num`` nights before a change and as many after it."""
    before = [night_of(machine, SidesChange.NOTHING) for _ in range(num)]
    after = [night_of(machine, change) for _ in range(num)]
    return before, after


def night_of(machine: ModelMachine, change: SidesChange) -> SidesNight:
    """Draw one night: all pairs over each rail; what is the night's own is drawn anew."""
    machine.night = abs(machine.chance.gauss(0, NIGHT_SCATTER))
    numbers: dict[Place, float] = {}
    for metric in (_BANDWIDTH, _LATENCY):
        for rail, pair in itertools.product(
            machine.fabric.rails, itertools.combinations(machine.nodes, 2)
        ):
            leg = machine.leg_cost(pair)
            for size in SIZES:
                place = rail, pair, metric, size
                cost = (leg + machine.number_cost()) * (
                    1 if metric == _BANDWIDTH else TIMES_SCATTER
                )
                factor = math.exp(-cost) * _slower(machine, change, place)
                level = _level(machine, metric, size)
                numbers[place] = level * factor if metric == _BANDWIDTH else level / factor
    is_new = change in {SidesChange.FIRMWARE, SidesChange.LONG}
    return SidesNight(numbers=numbers, firmware="20.41.2000" if is_new else "20.40.1000")


def _slower(machine: ModelMachine, change: SidesChange, place: Place) -> float:
    rail, _, _, size = place
    touched = {
        SidesChange.LONG: size >= LONG_BYTES,
        SidesChange.RAIL: rail == machine.fabric.rails[-1],
    }
    return 1 - SLOWER if touched.get(change) else 1.0


def _level(machine: ModelMachine, metric: str, size: int) -> float:
    """Return MB/s or us of a message: what it costs before its bytes, and its bytes at the rate."""
    fabric = machine.fabric
    if metric == _BANDWIDTH:
        return size / (fabric.gap_us + size / fabric.rate_mb_s)
    return fabric.start_us + size / fabric.rate_mb_s


def compare_nights(
    perflogs: Path, before: Sequence[SidesNight], after: Sequence[SidesNight]
) -> Comparison:
    """Write nights below an empty folder as their jobs would, and compare the two sides."""
    store = write_nights(perflogs, [*before, *after])
    history = History(site=SITE, runs=store.runs, machines=Machines.of_site(perflogs, SITE))
    first, second = (
        choose_side(",".join(run_id_of(each) for each in numbers), history)
        for numbers in (range(len(before)), range(len(before), len(before) + len(after)))
    )
    return compare_sides(store, history, first, second, Asked())


def run_id_of(number: int) -> str:
    """Return the identity of the run of night ``number``, from 0."""
    return f"2026{1 + number // 28:02d}{1 + number % 28:02d}T220000Z-{number:06x}"


def write_nights(perflogs: Path, nights: Sequence[SidesNight]) -> Store:
    """Write nights below an empty folder, in that order, and open them as a history."""
    lines: list[dict[str, Any]] = []
    for number, night in enumerate(nights):
        names = sorted({node for _, pair, _, _ in night.numbers for node in pair})
        seen = {name: _machine(perflogs, name, night) for name in names}
        for (rail, pair, metric, size), value in night.numbers.items():
            lines.append(
                {
                    **_leg(number, rail, metric),
                    "nodes": list(pair),
                    "inventory": {node: seen[node] for node in pair},
                    QUANTITY_KEYS["name"]: f"{metric}_{size_label(size)}",
                    QUANTITY_KEYS["unit"]: "MB/s" if metric == _BANDWIDTH else "us",
                    QUANTITY_KEYS["message_size"]: size,
                    QUANTITY_KEYS["named"]: size in {SIZES[0], SIZES[-1]},
                    QUANTITY_KEYS["value"]: value,
                    QUANTITY_KEYS["verdict"]: "PASS",
                    QUANTITY_KEYS["reason"]: "",
                }
            )
    append_records(perflogs / SITE / "compute" / "records.jsonl", lines)
    return open_store(perflogs, SITE)


def _machine(perflogs: Path, node: str, night: SidesNight) -> str:
    rails = sorted({rail for rail, *_ in night.numbers})
    facts = {f"interface {rail}": {"firmware": night.firmware} for rail in rails}
    machine = Machine(node=node, facts=facts)
    write_machine(perflogs / SITE / FOLDER, machine)
    return machine.digest


def _leg(number: int, rail: str, metric: str) -> dict[str, Any]:
    is_rate = metric == _BANDWIDTH
    return {
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
    }
