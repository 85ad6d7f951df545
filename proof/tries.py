"""One try of one fault, or of none, and what it was: caught, blamed right, said right."""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from benchmarks.simulated_pairs import Setting, run_campaign
from fabricproof.core.measure import Verdict
from fabricproof.nightly import Blame, Confirmation
from fabricproof.pairs import SuspectKind
from proof.histories import NODES, HistoryEffect, tell
from proof.library import FABRICS, PAIRS, BlameDue, FaultEntry
from proof.machine import effects
from proof.machine.effects import Injection
from proof.machine.model import ModelMachine, NoiseKind
from proof.machine.night import Conductor, ModelNight
from proof.machine.scene import Scene

#: nodes of the machine that a fault is tried on, and of a clean campaign
FAULT_NODES, CLEAN_NODES = 6, 16


@dataclass(frozen=True, kw_only=True)
class Try:
    """What one try came to.

    Attributes:
        fault: title of the fault; empty for a clean campaign.
        strength: of it.
        seed: that drew all.
        fabric: verbs or sockets.
        noise: how numbers scattered.
        verdict: the worst of the night.
        caught: whether that is a right one.
        blamed: whether whom it is right to blame was blamed, and nobody else.
        worded: whether a person was told what it is right to say.
        said: what was said, where anything was not right.
    """

    fault: str
    strength: float
    seed: int
    fabric: str
    noise: str
    verdict: str
    caught: bool
    blamed: bool
    worded: bool
    said: str = ""


@dataclass(frozen=True, kw_only=True)
class CleanCampaign:
    """What one campaign without a fault came to: how many nights ended how.

    Attributes:
        seed: that drew all.
        fabric: verbs or sockets.
        noise: how numbers scattered.
        nights: pairs that were measured.
        verdicts: verdict -> nights.
        blamed: nights in which anybody was blamed.
        second_looks: nights in which a leg was looked at twice within its job.
        confirmations: nights in which a red leg was looked at again.
        said: of the nights that did not pass.
    """

    seed: int
    fabric: str
    noise: str
    nights: int
    verdicts: dict[str, int]
    blamed: int
    second_looks: int
    confirmations: int
    said: str = ""


def _machine(fabric: str, num_nodes: int, chance: random.Random, **changes: Any) -> ModelMachine:
    noise = chance.choice(list(NoiseKind))
    names = tuple(f"n{number:02d}" for number in range(1, num_nodes + 1))
    return ModelMachine(
        fabric=changes.get("declared", FABRICS[fabric]), nodes=names, chance=chance, noise=noise
    )


def clean(fabric: str, seed: int) -> CleanCampaign:
    """Measure every pair of a machine of 16 nodes without a fault, each in a night of its own."""
    chance = random.Random(f"clean {fabric} {seed}")  # noqa: S311 - it draws noise, no secret
    machine = _machine(fabric, CLEAN_NODES, chance)
    conductor = Conductor(machine=machine)
    order = list(machine.nodes)
    chance.shuffle(order)
    try:
        nights = [conductor.night(sorted(order[i : i + 2])) for i in range(0, CLEAN_NODES, 2)]
    finally:
        conductor.end()
    verdicts: dict[str, int] = {}
    for each in nights:
        verdicts[each.result.verdict.value] = verdicts.get(each.result.verdict.value, 0) + 1
    return CleanCampaign(
        seed=seed,
        fabric=fabric,
        noise=machine.noise.value,
        nights=len(nights),
        verdicts=verdicts,
        blamed=sum(any(one.blamed for one in each.confirmations) for each in nights),
        second_looks=sum("second look" in each.everything for each in nights),
        confirmations=sum(bool(each.confirmations) for each in nights),
        said="\n".join(each.said for each in nights if each.result.verdict is not Verdict.PASS),
    )


def attempt(entry: FaultEntry, strength: float, seed: int) -> Try:
    """Try a fault at one strength, on a machine, a node, a rail and a fabric that a seed draws."""
    # One seed draws one machine and place at every strength: what differs is the strength alone.
    chance = random.Random(f"{entry.title} {seed}")  # noqa: S311 - it draws noise, no secret
    if entry.effect == PAIRS:
        return _campaign(entry, strength, seed)
    if entry.is_history:
        return _history(entry, strength, seed)
    fabric = entry.fabrics[seed % len(entry.fabrics)]
    declared = FABRICS[fabric]
    if entry.effect in effects.DECLARED:
        declared = effects.DECLARED[entry.effect](declared, strength)
    machine = _machine(fabric, FAULT_NODES, chance, declared=declared)
    node, peer = chance.sample(machine.nodes, 2)
    drawn = Injection(
        strength=strength,
        node=node,
        peer=peer,
        rail=chance.choice(machine.fabric.rails),
        machine=machine,
    )
    conductor = Conductor(
        machine=machine, changes=_changes(entry, drawn), damages=_damages(entry, drawn)
    )
    try:
        night = conductor.night(sorted((node, peer)))
    finally:
        conductor.end()
    return _judged(entry, drawn, seed, fabric, night)


def _changes(entry: FaultEntry, drawn: Injection) -> list[Callable[[Scene], None]]:
    beside = drawn.strength if entry.beside_strength is None else entry.beside_strength
    wanted = [(entry.effect, drawn.strength), (entry.beside, beside)]
    return [
        lambda scene, name=name, strength=strength: effects.SCENES[name](  # type: ignore[misc]
            scene, replace(drawn, strength=strength)
        )
        for name, strength in wanted
        if name in effects.SCENES
    ]


def _damages(
    entry: FaultEntry, drawn: Injection
) -> list[Callable[[Path, list[dict[str, Any]]], None]]:
    if entry.effect not in effects.FILES:
        return []
    return [lambda file, cases: effects.FILES[entry.effect](file, cases, drawn)]


def _judged(entry: FaultEntry, drawn: Injection, seed: int, fabric: str, night: ModelNight) -> Try:
    caught = night.result.verdict in entry.verdicts
    blamed = is_blamed_right(entry.blame, drawn, night.confirmations)
    told = f"{night.said}\n{night.everything}"
    worded = all(re.search(each, told) for each in entry.words)
    return Try(
        fault=entry.title,
        strength=drawn.strength,
        seed=seed,
        fabric=fabric,
        noise=drawn.machine.noise.value,
        verdict=night.result.verdict.value,
        caught=caught,
        blamed=caught and blamed,
        worded=caught and worded,
        said="" if caught and blamed and worded else night.said,
    )


def is_blamed_right(
    due: BlameDue, drawn: Injection, confirmations: tuple[Confirmation, ...]
) -> bool:
    """Tell whether the night blames whom it is right to blame, and nobody else."""
    blames = {
        (each.blame, each.blamed) for each in confirmations if each.blame is not Blame.UNKNOWN
    }
    pair = tuple(sorted((drawn.node, drawn.peer)))
    match due:
        case BlameDue.NONE:
            return not blames
        case BlameDue.NODE:
            return {who for _, who in blames} == {(drawn.node,)}
        case BlameDue.PAIR:
            return blames == {(Blame.PAIR, pair)}
        case BlameDue.ALL:
            return blames == {(Blame.BOTH, pair)}
        case BlameDue.PLACE:
            raise AssertionError("a campaign of pairs says so itself")


def _history(entry: FaultEntry, strength: float, seed: int) -> Try:
    """Try what only several nights show; one seed draws the same machine for each of them."""
    chance = random.Random(f"nights {seed}")  # noqa: S311 - it draws noise, no secret
    fabric = entry.fabrics[seed % len(entry.fabrics)]
    machine = _machine(fabric, NODES, chance)
    told = tell(HistoryEffect(entry.effect), strength, machine)
    caught = told.word in {each.value for each in entry.verdicts}
    blamed = caught and (told.is_in_place or entry.blame is not BlameDue.PLACE)
    worded = caught and all(re.search(each, told.said) for each in entry.words)
    return Try(
        fault=entry.title,
        strength=strength,
        seed=seed,
        fabric=fabric,
        noise=machine.noise.value,
        verdict=told.word,
        caught=caught,
        blamed=blamed,
        worded=worded,
        said="" if caught and blamed and worded else f"{told.word}: {told.said}",
    )


def _campaign(entry: FaultEntry, strength: float, seed: int) -> Try:
    """Try a fault that only a campaign of pairs can see: 64 nodes, 8 on a leaf, two rails."""
    kind = SuspectKind[entry.suspect]
    setting = Setting(
        num_nodes=64,
        per_leaf=8,
        num_faults=1,
        strength=(1 - strength, 1 - strength),
        kinds=(kind,),
    )
    came = run_campaign(setting, seed)
    caught = came.verdict in {each.value for each in entry.verdicts} and bool(came.found)
    right = caught and len(came.blamed) == 1 and bool(came.located)
    return Try(
        fault=entry.title,
        strength=strength,
        seed=seed,
        fabric="pairs",
        noise=NoiseKind.LOGNORMAL.value,
        verdict=came.verdict,
        caught=caught,
        blamed=right,
        worded=right,
        said="" if right else f"{came.faults} / {came.blamed}",
    )
