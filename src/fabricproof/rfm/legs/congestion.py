"""What is planned of congestion: a pair and a small group alone, and beside loads on other nodes.

The nodes of all, and which links they share: :mod:`fabricproof.rfm.load_places`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from fabricproof.job.leg import CAMPAIGN_SUITE, Leg, Plan, Relation, in_turns
from fabricproof.job.rounds import LEAST_RED
from fabricproof.pairs.campaign.plan import Mode
from fabricproof.physics import bound
from fabricproof.rfm.legs.collective import channel_planner, collective_leg
from fabricproof.rfm.legs.kernel import SMALL_SIZES, kernel_settings
from fabricproof.rfm.legs.leg import LegPlanner
from fabricproof.rfm.legs.placement import LARGE_SIZES
from fabricproof.rfm.legs.sweep import programs_of
from fabricproof.rfm.load_places import (
    ALLTOALL,
    APART,
    INCAST,
    NO_LAW,
    LoadPlaces,
    PlacedLoad,
)
from fabricproof.stacks.launch import Layout
from fabricproof.verdict.value import Reference, at_most

#: loads of a collective -> its name; its large messages are the load.  Rank 0 is a gather's root.
COLLECTIVE_LOADS = {INCAST: "gather", ALLTOALL: "alltoall"}

#: the victim that is a collective: its largest message is this, as small as those of a solver's dot
#: products (GPCNeT's has 8 B)
VICTIM, VICTIM_MAX_SIZE = "allreduce", "16"

#: Flows that share a link fairly over hours do so roughly over seconds: a pair may get a third less
#: than its share.  Our choice.
SHARE_TOLERANCE = 0.5

#: A load that shares no link costs nothing, but both numbers scatter by themselves: as for a pair
#: that is farther away (:data:`fabricproof.rfm.legs.placement.LATENCY_TOLERANCE`).
APART_TOLERANCE = 0.25

#: A message may wait for many others: its leg alone gets this part of what others get.
LATENCY_SHARE = 0.1

#: what mpi4py's ports have for many pairs, and the part of the time that each of them sends in it
PAIRS_IN_TURN, IN_TURN = "osu_multi_lat", 0.5

#: The load is ended when the leg is; by itself it ends after so long at its full rate.
LOAD_SECONDS = 600.0

#: what starting the ranks of a leg takes
START_SECONDS = 2.0

#: Until the load moves bytes, and until it is gone: seen on the virtual cluster.
LOAD_START_SECONDS = 3.0

#: slow messages, as far as the kernel has enough of them, by the columns of its table
TAILS = ("latency_p95", "latency_p99")

#: beside a load a leg may take this many times a leg's usual time
LOADED_FACTOR = 20

STARVED_HINT = (
    "it gets less than its share of the links between the leaves: what the load sends goes first, "
    "or there are fewer uplinks than fabric.toml says (spines)"
)
APART_HINT = "the load shares no link with it, by Slurm's topology: is that what is wired?"


def congestion_plan(planner: LegPlanner, places: LoadPlaces) -> Plan:
    """Return over each rail pair and group alone and beside each load, and what these cost them."""
    latency, reason = planner.of(CAMPAIGN_SUITE, Mode.PINGPONG)
    many, none = _of_pairs(planner)
    if latency is None or many is None:
        return Plan(reason=reason or none)
    brief = _changed(latency, leg_seconds=planner.partition.leg_seconds * LATENCY_SHARE)
    makers = {name: _of_all(planner, each) for name, each in COLLECTIVE_LOADS.items()}
    lost = {name: each for name, each in makers.items() if isinstance(each, str)}
    places = _without(places, lost)
    group = _of_all(brief, VICTIM)
    legs: list[Leg] = []
    again: list[Leg] = []
    relations: list[Relation] = []
    for rail in planner.rails:
        loads = {
            name: _load(makers.get(name, many), rail, each.nodes)
            for name, each in places.loads.items()
        }
        alone = {
            "bandwidth": _pair_alone(planner, rail, "bandwidth", places.pair),
            "latency": _pair_alone(brief, rail, "latency", places.pair),
            **({} if isinstance(group, str) else {VICTIM: _group_alone(group, rail, places.group)}),
        }
        victims = {
            name: _beside(leg, planner if name == "bandwidth" else brief, places, loads)
            for name, leg in alone.items()
        }
        mine = [leg for each in victims.values() for leg in each.values()]
        turns = {leg.name: leg.turn() for leg in mine}
        legs += mine
        again += turns.values()
        skipped = {f"{VICTIM}_impact": group} if isinstance(group, str) else {}
        relation = _impact(planner, rail, places, victims, skipped)
        relations.append(in_turns(relation, turns))
    if not any(each.settings["judged"] for each in relations):
        return Plan(reason=NO_LAW)
    return Plan(legs=(*legs, *again), relations=tuple(relations))


def minutes_of_rounds(legs: Sequence[Leg], leg_seconds: float) -> int:
    """Return how long the least number of rounds for a red takes, and one more, in minutes.

    ``leg_seconds``: what a leg takes that says nothing itself.
    """
    seconds = [START_SECONDS + (leg.planned_seconds or leg_seconds) for leg in legs if leg.in_turn]
    return math.ceil((LEAST_RED + 1) * sum(seconds) / 60)


def _without(places: LoadPlaces, lost: dict[str, str]) -> LoadPlaces:
    """Return the places without the loads that the stack has no program for, and why."""
    said = tuple(each for each in places.words if each.partition(":")[0].split()[-1] not in lost)
    return replace(
        places,
        loads={name: each for name, each in places.loads.items() if name not in lost},
        words=(*said, *(f"no load {name}: {why}" for name, why in lost.items())),
    )


@dataclass(frozen=True, kw_only=True)
class CollectivePlanners:
    """The planner of a collective, and the one of what a message costs, which sizes its effort."""

    collective: LegPlanner
    channel: LegPlanner

    def leg(self, rail: str, nodes: tuple[str, ...], max_size: str, lasts_seconds: float) -> Leg:
        """Return a leg with a rank on each of ``nodes``, judged by no model."""
        leg = collective_leg(
            _changed(self.collective, collective_max_size=max_size),
            self.channel,
            (rail,),
            Layout(num_nodes=len(nodes), nodes=nodes),
            lasts_seconds=lasts_seconds,
        )
        return replace(leg, channel_leg="")


def _changed(planner: LegPlanner, **changes: object) -> LegPlanner:
    return replace(planner, partition=planner.partition.model_copy(update=changes))


def _of_all(planner: LegPlanner, collective: str) -> CollectivePlanners | str:
    """Return the planners of a collective, or why there are none."""
    reason = ""
    for suite, program in programs_of(collective):
        found, reason = planner.of(suite, program)
        channel, reason = channel_planner(found) if found is not None else (None, reason)
        if found is not None and channel is not None:
            return CollectivePlanners(collective=found, channel=channel)
    return reason


def _of_pairs(planner: LegPlanner) -> tuple[LegPlanner | None, str]:
    """Return the planner of a program whose ranks all send at once, in pairs, or why none is.

    A window of messages one way; else, as mpi4py's ports have only that, large ones in turn.
    """
    found, reason = planner.of("osu", "osu_mbw_mr")
    return (found, reason) if found is not None else planner.of("osu", PAIRS_IN_TURN)


def _load(planner: LegPlanner | CollectivePlanners | str, rail: str, nodes: tuple[str, ...]) -> Leg:
    assert not isinstance(planner, str), "such a load was taken out"
    if isinstance(planner, CollectivePlanners):
        size = planner.collective.partition.max_message_size
        return planner.leg(rail, nodes, size, LOAD_SECONDS)
    layout = Layout(num_nodes=len(nodes), nodes=nodes)
    sizes = planner.leg((rail,), layout=layout).expected_sizes[-1:]
    return planner.leg(
        (rail,), variant="load", layout=layout, sizes=sizes, lasts_seconds=LOAD_SECONDS
    )


def _pair_alone(planner: LegPlanner, rail: str, quantity: str, pair: tuple[str, str]) -> Leg:
    layout = Layout(nodes=pair)
    is_kernel = quantity == "latency"
    largest = () if is_kernel else planner.leg((rail,), layout=layout).expected_sizes[-LARGE_SIZES:]
    return planner.leg(
        (rail,),
        variant=f"{quantity}.alone",
        layout=layout,
        sizes=SMALL_SIZES if is_kernel else largest,
        environment=kernel_settings(planner) if is_kernel else None,
    )


def _group_alone(planners: CollectivePlanners, rail: str, group: tuple[str, ...]) -> Leg:
    leg = planners.leg(rail, group, VICTIM_MAX_SIZE, 0.0)
    return replace(leg, name=f"{rail}.{VICTIM}.alone")


def _beside(
    alone: Leg, planner: LegPlanner, places: LoadPlaces, loads: dict[str, Leg]
) -> dict[str, Leg]:
    """Return a victim's leg alone, and one beside each load."""
    seconds = planner.partition.leg_seconds
    times = {
        name: 1.0 if name == APART else each.law or 1 / each.share
        for name, each in places.loads.items()
    }
    beside = {
        name: replace(
            alone,
            name=f"{alone.name.removesuffix('alone')}{name}",
            load=load,
            limit_seconds=int(LOADED_FACTOR * seconds),
            planned_seconds=LOAD_START_SECONDS + seconds * times[name],
        )
        for name, load in loads.items()
    }
    return {"alone": alone, **beside}


def _impact(
    planner: LegPlanner,
    rail: str,
    places: LoadPlaces,
    victims: dict[str, dict[str, Leg]],
    skipped: dict[str, str],
) -> Relation:
    impacts: dict[str, Any] = {}
    judged: dict[str, Any] = {}
    for name, load in places.loads.items():
        for quantity in (*victims, *TAILS):
            legs = victims["latency" if quantity in TAILS else quantity]
            label = f"{quantity}_impact_{name}"
            impacts[label] = {
                "alone": legs["alone"].name,
                "loaded": legs[name].name,
                "quantity": "bandwidth" if quantity == "bandwidth" else "latency",
                "sizes": list(legs["alone"].expected_sizes),
                "due_mb_s": _due(planner, rail, load, legs[name]),
                "senders": list(load.senders),
                "same_link": load.law is not None and quantity == "bandwidth",
                **({"column": f"{quantity}_us"} if quantity in TAILS else {}),
            }
            stated = victims["bandwidth"]["alone"].references | legs["alone"].references
            reference = stated.get(label) or _law_of(planner, load, name, quantity)
            if reference is not None:
                hint = APART_HINT if name == APART else STARVED_HINT
                judged[label] = {"reference": asdict(reference), "hint": hint}
    measured = [leg for legs in victims.values() for leg in legs.values()]
    pairs = victims["bandwidth"]["alone"]
    return pairs.relation(
        f"{rail}.impact",
        "impact",
        measured,
        {
            "impacts": impacts,
            "judged": judged,
            "skipped": skipped,
            "words": list(places.words),
        },
        # A pair's bandwidth alone is what OsuBw judges, by the references of that program.
        owns=[leg for leg in measured if leg is not pairs],
    )


def _law_of(planner: LegPlanner, load: PlacedLoad, name: str, quantity: str) -> Reference | None:
    """Return the law of one impact, None where there is none."""
    if quantity in TAILS:
        return None  # a slow message is slow by chance
    if name == APART:
        if quantity != "bandwidth" and planner.partition.oversubscribed:
            return None  # ranks that share cores share more than links
        origin = "a load that shares no link"
        return at_most(1.0, unit="x", tolerance=APART_TOLERANCE, origin=origin)
    if quantity != "bandwidth" or load.law is None:
        return None  # it waits for what is queued before it: nobody says how much that may be
    return at_most(load.law, unit="x", tolerance=SHARE_TOLERANCE, origin=load.origin)


def _due(planner: LegPlanner, rail: str, load: PlacedLoad, beside: Leg) -> float:
    """Return what each sender of a load gets of its links at the least, in MB/s."""
    fabric = planner.physics((rail,))
    if fabric is None or beside.load is None:
        return 0.0
    part = IN_TURN if beside.load.program == PAIRS_IN_TURN else 1.0
    return bound(fabric).low_mb_s * load.share * part
