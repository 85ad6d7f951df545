"""What is planned of congestion: a pair alone, and beside pairs that share its links or none.

The pair and the load are drawn from Slurm's tree.  ``shared``: all pairs go from one leaf to one
other, so that they share the first's uplinks and the second's downlinks.  ``apart``: the load goes
between two further leaves, and shares no link with the pair.

The law is the fair share of the busiest link on the pair's way: with S uplinks of a leaf, each as
fast as a rail (``spines`` of ``fabric.toml``), n pairs put n / S on each where routing spreads
them, and as many as take the pair's own spine where it goes by destination, the i-th node of a leaf
over spine i mod S (Zahavi 2012; OpenSM's ``ftree``).  The larger of both is allowed.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import permutations
from typing import Any

from fabricproof.core.units import natural
from fabricproof.job.leg import CAMPAIGN_SUITE, Leg, Plan, Relation, in_turns
from fabricproof.nodes.topology import Shape, Topology
from fabricproof.pairs.campaign.plan import Mode
from fabricproof.physics import bound
from fabricproof.rfm.legs.kernel import SMALL_SIZES, kernel_settings
from fabricproof.rfm.legs.leg import LegPlanner
from fabricproof.rfm.legs.placement import LARGE_SIZES
from fabricproof.stacks.launch import Layout
from fabricproof.verdict.value import Reference, at_most

SHARED, APART = "shared", "apart"

#: Flows that share a link fairly over hours do so roughly over seconds: a pair may get a third less
#: than its share.  Our choice.
SHARE_TOLERANCE = 0.5

#: A load that shares no link costs nothing, but both numbers scatter by themselves: as for a pair
#: that is farther away (:data:`fabricproof.rfm.legs.placement.LATENCY_TOLERANCE`).
APART_TOLERANCE = 0.25

#: A message may wait for many others: its leg alone gets this part of what others get.
LATENCY_SHARE = 0.1

#: The load is ended when the leg is; by itself it ends after so long at its full rate.
LOAD_SECONDS = 600.0

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
NO_LAW = (
    "nobody says how many uplinks a leaf has (spines in fabric.toml), so that no share of them is "
    "known to be fair"
)


@dataclass(frozen=True, kw_only=True)
class LoadPlaces:
    """Who measures, and who is the load.

    Attributes:
        pair: sends from its first node to its second.
        loads: ``shared`` or ``apart`` -> its nodes: as many that send, then those that receive.
        law: how many times worse the pair's bandwidth may be beside ``shared``; None: nobody says.
        words: the same for a person.
    """

    pair: tuple[str, str]
    loads: dict[str, tuple[str, ...]]
    law: float | None
    words: tuple[str, ...]


def draw_places(
    topology: Topology, nodes: Sequence[str], *, most_nodes: int, spines: int, seed: int
) -> LoadPlaces | str:
    """Return who measures and who is the load, or why nobody knows.

    Programs pair the first half of their ranks with the second, and launchers sort nodes by name:
    what sends therefore comes before what receives.

    Args:
        topology: as Slurm tells it.
        nodes: that may be used.
        most_nodes: that may be used in all.
        spines: uplinks of each leaf; 0: nobody says.
        seed: of the draw.
    """
    if topology.shape is not Shape.TREE:
        return "Slurm knows no tree of switches here: nobody says which links two pairs share"
    leaves: dict[str, list[str]] = {}
    for node in sorted({*nodes} & {*topology.nodes}, key=natural):
        leaves.setdefault(topology.leaf(node), []).append(node)
    dice = random.Random(seed)  # noqa: S311 - a draw that can be repeated
    ways = list(permutations(leaves, 2))
    dice.shuffle(ways)
    chosen = next((each for each in ways if len(_way(leaves, each)) >= 4), None)
    if chosen is None or most_nodes < 4:
        return "no two leaves have two usable nodes each, one pair to measure and one to load"
    pairs = _drawn(dice, _way(leaves, chosen), most_nodes // 2)
    pair = pairs.pop(dice.randrange(len(pairs)))
    loads = {SHARED: _in_halves(pairs)}
    left = (most_nodes - 2 * len(pairs) - 2) // 2
    free = (_way(leaves, each) for each in ways if not {*each} & {*chosen})
    if left and (way := next(filter(None, free), ())):
        others = _drawn(dice, way, min(left, len(pairs)))
        loads[APART] = _in_halves(others)
    there = [node for node in topology.nodes if topology.leaf(node) == chosen[1]]
    law = _law(there, [pair[1], *(each[1] for each in pairs)], spines)
    words = (
        f"drawn with seed {seed}: {pair[0]} to {pair[1]} ({chosen[0]} to {chosen[1]})",
        *(f"load {name}: {_arrows(each)}" for name, each in loads.items()),
        *(() if law else (NO_LAW,)),
    )
    return LoadPlaces(pair=pair, loads=loads, law=law, words=words)


def _way(leaves: Mapping[str, Sequence[str]], ends: tuple[str, str]) -> tuple[str, ...]:
    """Return as many nodes of each leaf as can be, all senders before all receivers by name."""
    senders, receivers = (leaves[each] for each in ends)
    for count in range(min(len(senders), len(receivers)), 0, -1):
        if natural(senders[count - 1]) < natural(receivers[-count]):
            return (*senders[:count], *receivers[-count:])
    return ()


def _drawn(dice: random.Random, way: Sequence[str], most: int) -> list[tuple[str, str]]:
    half = len(way) // 2
    picked = sorted(dice.sample(range(half), min(half, most)))
    return [(way[index], way[half + index]) for index in picked]


def _in_halves(pairs: Sequence[tuple[str, str]]) -> tuple[str, ...]:
    return (*(each[0] for each in pairs), *(each[1] for each in pairs))


def _arrows(nodes: Sequence[str]) -> str:
    half = len(nodes) // 2
    return ", ".join(
        f"{one} to {other}" for one, other in zip(nodes[:half], nodes[half:], strict=True)
    )


def _law(there: Sequence[str], receivers: Sequence[str], spines: int) -> float | None:
    """Return the flows of the busiest link on the way to the first of ``receivers``."""
    if not spines:
        return None
    taken = [there.index(node) % spines for node in receivers]
    return max(1.0, len(receivers) / spines, float(taken.count(taken[0])))


def congestion_plan(planner: LegPlanner, places: LoadPlaces) -> Plan:
    """Return over each rail the pair alone and beside each load, and what these cost it."""
    latency, reason = planner.of(CAMPAIGN_SUITE, Mode.PINGPONG)
    many, none = _of_pairs(planner)
    if latency is None or many is None:
        return Plan(reason=reason or none)
    seconds = planner.partition.leg_seconds * LATENCY_SHARE
    brief = replace(
        latency, partition=planner.partition.model_copy(update={"leg_seconds": seconds})
    )
    legs: list[Leg] = []
    again: list[Leg] = []
    relations: list[Relation] = []
    for rail in planner.rails:
        loads = {name: _load(many, rail, nodes) for name, nodes in places.loads.items()}
        of_quantity = {
            "bandwidth": _victims(planner, rail, "bandwidth", places, loads),
            "latency": _victims(brief, rail, "latency", places, loads),
        }
        mine = [leg for victims in of_quantity.values() for leg in victims.values()]
        turns = {leg.name: leg.turn() for leg in mine}
        legs += mine
        again += turns.values()
        relations.append(in_turns(_impact(planner, rail, places, of_quantity), turns))
    if not any(each.settings["judged"] for each in relations):
        return Plan(reason=NO_LAW)
    return Plan(legs=(*legs, *again), relations=tuple(relations))


def _of_pairs(planner: LegPlanner) -> tuple[LegPlanner | None, str]:
    """Return the planner of a program whose ranks all send at once, in pairs, or why none is.

    A window of messages one way; else, as mpi4py's ports have only that, large ones in turn.
    """
    found, reason = planner.of("osu", "osu_mbw_mr")
    return (found, reason) if found is not None else planner.of("osu", "osu_multi_lat")


def _load(planner: LegPlanner, rail: str, nodes: tuple[str, ...]) -> Leg:
    layout = Layout(num_nodes=len(nodes), nodes=nodes)
    sizes = planner.leg((rail,), layout=layout).expected_sizes[-1:]
    return planner.leg(
        (rail,), variant="load", layout=layout, sizes=sizes, lasts_seconds=LOAD_SECONDS
    )


def _victims(
    planner: LegPlanner, rail: str, quantity: str, places: LoadPlaces, loads: dict[str, Leg]
) -> dict[str, Leg]:
    """Return the pair's leg alone, and one beside each load."""
    layout = Layout(nodes=places.pair)
    is_kernel = quantity == "latency"
    largest = () if is_kernel else planner.leg((rail,), layout=layout).expected_sizes[-LARGE_SIZES:]
    alone = planner.leg(
        (rail,),
        variant=f"{quantity}.alone",
        layout=layout,
        sizes=SMALL_SIZES if is_kernel else largest,
        environment=kernel_settings(planner) if is_kernel else None,
    )
    limit = int(LOADED_FACTOR * planner.partition.leg_seconds)
    seconds = planner.partition.leg_seconds
    times = {SHARED: places.law or len(places.loads[SHARED]) // 2 + 1}
    beside = {
        name: replace(
            alone,
            name=f"{rail}.{quantity}.{name}",
            load=load,
            limit_seconds=limit,
            planned_seconds=LOAD_START_SECONDS + seconds * times.get(name, 1),
        )
        for name, load in loads.items()
    }
    return {"alone": alone, **beside}


def _impact(
    planner: LegPlanner, rail: str, places: LoadPlaces, of_quantity: dict[str, dict[str, Leg]]
) -> Relation:
    impacts: dict[str, Any] = {}
    judged: dict[str, Any] = {}
    for name in places.loads:
        for quantity in ("bandwidth", "latency", *TAILS):
            kind = quantity.partition("_")[0]
            legs, label = of_quantity[kind], f"{quantity}_impact_{name}"
            impacts[label] = {
                "alone": legs["alone"].name,
                "loaded": legs[name].name,
                "quantity": kind,
                "sizes": list(legs["alone"].expected_sizes),
                "due_mb_s": _due(planner, rail, places, name),
                **({"column": f"{quantity}_us"} if quantity in TAILS else {}),
            }
            judged |= _judged(planner, places, legs["alone"], name, label)
    victims = [leg for legs in of_quantity.values() for leg in legs.values()]
    return Relation(
        name=f"{rail}.impact",
        kind="impact",
        legs=tuple(leg.name for leg in victims),
        suite=planner.suite,
        program=of_quantity["bandwidth"]["alone"].program,
        rails=(rail,),
        # A pair's latency alone is what OsuLatency judges, by the references of that program.
        owns=tuple(
            leg.name for leg in victims if leg.load is not None or leg.suite == CAMPAIGN_SUITE
        ),
        settings={"impacts": impacts, "judged": judged, "words": list(places.words)},
    )


def _judged(
    planner: LegPlanner, places: LoadPlaces, alone: Leg, load: str, label: str
) -> dict[str, Any]:
    """Return what one impact is judged by; nothing where it is only told."""
    reference = alone.references.get(label)
    if reference is None and not label.startswith(TAILS):  # a slow message is slow by chance
        reference = _law_of(planner, places, load, is_latency=label.startswith("latency"))
    if reference is None:
        return {}
    hint = APART_HINT if load == APART else STARVED_HINT
    return {label: {"reference": asdict(reference), "hint": hint}}


def _law_of(
    planner: LegPlanner, places: LoadPlaces, load: str, *, is_latency: bool
) -> Reference | None:
    """Return the law of one impact, None where there is none."""
    if load == APART:
        if is_latency and planner.partition.oversubscribed:
            return None  # pairs that share cores share more than links
        origin = "a load that shares no link"
        return at_most(1.0, unit="x", tolerance=APART_TOLERANCE, origin=origin)
    if is_latency or places.law is None:
        return None  # it waits for what is queued before it: nobody says how much that may be
    pairs = len(places.loads[load]) // 2 + 1
    spines = planner.spec.spines
    origin = f"fair share of {pairs} pairs on {spines} uplink{'s' if spines > 1 else ''}"
    return at_most(places.law, unit="x", tolerance=SHARE_TOLERANCE, origin=origin)


def _due(planner: LegPlanner, rail: str, places: LoadPlaces, load: str) -> float:
    """Return what each pair of a load gets of its links at the least, in MB/s."""
    fabric = planner.physics((rail,))
    if fabric is None:
        return 0.0
    pairs = len(places.loads[load]) // 2 + (load == SHARED)
    return bound(fabric).low_mb_s * min(1.0, max(1, planner.spec.spines) / pairs)
