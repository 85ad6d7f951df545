"""What is planned by place: by distance in Slurm's topology, and by the sockets of a node.

The nodes are chosen before the job is submitted, from Slurm's topology and the nodes' states of the
moment, and asked for by name: legs, quantities and references are then known beforehand, and a
rank on any other node makes its number INVALID.  The job waits until they are free.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace

from fabricproof.benchmarks.catalogue import meaning
from fabricproof.benchmarks.program import ProgramKind
from fabricproof.job.leg import Bind, Leg, Plan, Relation, in_turns
from fabricproof.job.script import BIND_FILE
from fabricproof.nodes.topology import Pair
from fabricproof.rfm.legs.leg import LegPlanner
from fabricproof.stacks.launch import Layout
from fabricproof.verdict.value import Reference, at_least, at_most

#: What one more switch may add to a latency, as a fraction of that over one: document 002 of the
#: sources has 1.03 us for its nearest and 1.85 us for its farthest pairs, over up to five switches.
SHARE_OF_A_SWITCH = 0.2

#: Latencies of two pairs may differ by this much beyond what their switches explain.
LATENCY_TOLERANCE = 0.25

#: A far pair by itself shares its links with nobody: its bandwidth is a near pair's.
BANDWIDTH_TOLERANCE = 0.10

#: sizes whose median ratio counts: the smallest for latency, the largest for bandwidth
SMALL_SIZES, LARGE_SIZES = 11, 3

DISTANCE_HINT = (
    "a slow or misrouted link between the switches, or a topology that is not what is wired"
)


def placement_plan(planner: LegPlanner, pairs: tuple[Pair, ...]) -> Plan:
    """Return the plan for pairs at two distances or more, the nearest first."""
    legs: list[Leg] = []
    again: list[Leg] = []
    relations: list[Relation] = []
    for rail in planner.rails:
        mine = [_leg(planner, rail, pair) for pair in pairs]
        relation = _far_over_near(planner, rail, mine, pairs)
        sizes = relation.settings["sizes"]
        turns = {
            leg.name: _leg(planner, rail, pair, sizes).turn()
            for leg, pair in ((mine[0], pairs[0]), (mine[-1], pairs[-1]))
        }
        legs += mine
        again += turns.values()
        relations.append(in_turns(relation, turns))
    return Plan(legs=(*legs, *again), relations=tuple(relations))


def _leg(planner: LegPlanner, rail: str, pair: Pair, sizes: Sequence[int] = ()) -> Leg:
    placed = replace(planner, hops=pair.hops)
    layout = Layout(nodes=pair.nodes)
    return placed.leg((rail,), variant=f"hops{pair.hops}", layout=layout, sizes=sizes)


def _far_over_near(
    planner: LegPlanner, rail: str, legs: list[Leg], pairs: tuple[Pair, ...]
) -> Relation:
    near, far = legs[0], legs[-1]
    kind = meaning(planner.suite, planner.program).kind
    is_bandwidth = kind is ProgramKind.BANDWIDTH
    reference = _equal() if is_bandwidth else _with_switches(pairs[-1].hops - pairs[0].hops)
    return near.relation(
        f"{rail}.far_over_near",
        "ratio" if is_bandwidth else "hops",
        legs,
        {
            **_over(far, near, reference, is_bandwidth=is_bandwidth),
            "hops": {leg.name: pair.hops for leg, pair in zip(legs, pairs, strict=True)},
            "hint": f"{DISTANCE_HINT} ({' and '.join(pairs[-1].nodes)})",
        },
    )


def _over(over: Leg, under: Leg, reference: Reference, *, is_bandwidth: bool) -> dict[str, object]:
    # Of two legs of one program: what is read, at which sizes, and what their ratio should be.
    sizes = over.expected_sizes
    return {
        "quantity": "bandwidth" if is_bandwidth else "latency",
        "sizes": list(sizes[-LARGE_SIZES:] if is_bandwidth else sizes[:SMALL_SIZES]),
        "over": [over.name],
        "under": [under.name],
        "reference": asdict(reference),
    }


def _with_switches(more: int) -> Reference:
    return at_most(
        1 + SHARE_OF_A_SWITCH * more,
        unit="x",
        tolerance=LATENCY_TOLERANCE,
        origin=f"{more} switches more",
    )


def _equal() -> Reference:
    return at_least(
        1.0, unit="x", tolerance=BANDWIDTH_TOLERANCE, origin="a pair alone has its links to itself"
    )


#: Near may be this much worse than far before it is red: two runs differ by as much.
LOCALITY_TOLERANCE = 0.05

#: The far leg is there to be compared.  It is asked to be possible and on its path, not to be
#: good: document 000 has 18 % less from the far socket.
WITNESS_TOLERANCE = 0.9

AS_LAUNCHED = "as_launched"

#: Open MPI's own way to the near socket, by the distance that hwloc tells (mpirun(1) of 4.1,
#: ``--map-by dist``; document 000 of the sources used it). Open MPI 5 has it no more.
MAP_BY_DIST = "map_by_dist"

#: what keeps each family from binding its ranks by itself (Open MPI 4.1 and 5.0 documentation,
#: hwloc_base_binding_policy; Intel MPI developer reference, I_MPI_PIN; MVAPICH user guide,
#: MVP_ENABLE_AFFINITY).  MPICH's hydra binds nothing unless told to.
UNBOUND: Mapping[str, Mapping[str, str]] = {
    "openmpi": {
        "OMPI_MCA_hwloc_base_binding_policy": "none",
        "PRTE_MCA_hwloc_default_binding_policy": "none",
    },
    "mpich": {},
    "mvapich": {"MVP_ENABLE_AFFINITY": "0", "MV2_ENABLE_AFFINITY": "0"},
    "intelmpi": {"I_MPI_PIN": "off"},
}

#: srun binds by its own rules unless told not to (srun(1): SLURM_CPU_BIND)
UNBOUND_SRUN = {"SLURM_CPU_BIND": "none"}

SOCKET_HINT = (
    "the slot's NUMA node is not what the firmware says, or another load sits beside the adapter"
)


def locality_plan(planner: LegPlanner) -> Plan:
    """Return three legs for each rail, and near over far."""
    legs: list[Leg] = []
    again: list[Leg] = []
    relations: list[Relation] = []
    for rail in planner.rails:
        mine = {policy: bound_leg(planner, rail, policy) for policy in policies(planner)}
        relation = near_over_far(planner, rail, mine)
        turns = {
            mine[bind].name: bound_leg(planner, rail, bind, relation.settings["sizes"]).turn()
            for bind in Bind
        }
        legs += mine.values()
        again += turns.values()
        relations.append(in_turns(relation, turns))
    return Plan(legs=(*legs, *again), relations=tuple(relations))


def policies(planner: LegPlanner) -> tuple[str, ...]:
    """Return the policies to compare: near, far, as launched, and what the launcher has beside."""
    by_dist = planner.launcher == "mpirun" and planner.stack.family == "openmpi"
    has_it = by_dist and planner.stack.version.startswith("4.")
    return (*Bind, AS_LAUNCHED, *((MAP_BY_DIST,) if has_it else ()))


def _settings(planner: LegPlanner, rail: str, policy: str) -> Mapping[str, str]:
    if policy == MAP_BY_DIST:
        return {
            "OMPI_MCA_rmaps_base_mapping_policy": "dist:span",
            "OMPI_MCA_rmaps_dist_device": rail.partition(":")[0],
            "OMPI_MCA_hwloc_base_binding_policy": "core",
        }
    return {} if policy == AS_LAUNCHED else {**UNBOUND[planner.stack.family], **UNBOUND_SRUN}


def bound_leg(planner: LegPlanner, rail: str, policy: str, sizes: Sequence[int] = ()) -> Leg:
    """Return the leg over ``rail`` whose ranks run by one of :func:`policies`."""
    settings = _settings(planner, rail, policy)
    leg = planner.leg((rail,), variant=policy, environment=settings, sizes=sizes)
    moved = policy if policy in {*Bind} else AS_LAUNCHED
    leg = replace(
        leg,
        ask=("two_sockets", rail),
        commands=tuple(("bash", BIND_FILE, moved, rail, *argv) for argv in leg.commands),
        environment={**leg.environment, "FABRICPROOF_PROGRAM": leg.commands[0][0]},
    )
    if policy == Bind.NEAR or _kind(planner) is not ProgramKind.BANDWIDTH:
        return leg
    return replace(leg, tolerance=WITNESS_TOLERANCE, curve_tolerance=100.0, references={})


def _kind(planner: LegPlanner) -> ProgramKind:
    return meaning(planner.suite, planner.program).kind


def near_over_far(planner: LegPlanner, rail: str, legs: Mapping[str, Leg]) -> Relation:
    """Return the relation between the legs of one rail."""
    near, far = legs[Bind.NEAR], legs[Bind.FAR]
    is_bandwidth = _kind(planner) is ProgramKind.BANDWIDTH
    make = at_least if is_bandwidth else at_most
    reference = make(
        1.0, unit="x", tolerance=LOCALITY_TOLERANCE, origin="a slot is nearest to its own socket"
    )
    return near.relation(
        f"{rail}.near_over_far",
        "locality",
        legs.values(),
        {
            **_over(near, far, reference, is_bandwidth=is_bandwidth),
            "policies": {policy.replace("_", " "): leg.name for policy, leg in legs.items()},
            "bound": {legs[bind].name: bind.value for bind in Bind},
            "hint": SOCKET_HINT,
        },
    )
