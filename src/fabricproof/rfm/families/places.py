"""Checks by place: by distance in Slurm's topology, and by the sockets of a node.

The nodes are chosen before the job is submitted, from Slurm's topology and the nodes' states of the
moment, and asked for by name: legs, quantities and references are then known beforehand, and a
rank on any other node makes its number INVALID.  The job waits until they are free.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TypeVar

from fabricproof.job.leg import Leg, Plan
from fabricproof.job.relation import Bind
from fabricproof.job.script import BIND_FILE
from fabricproof.nodes.topology import Pair, pairs_by_hops
from fabricproof.rfm.checks.base import FabricBenchmark
from fabricproof.rfm.legs.compare import LARGEST, SMALLEST, MakeLeg, compare, joined
from fabricproof.rfm.legs.leg import LegPlanner
from fabricproof.rfm.slurm_nodes import distances, require_not_due
from fabricproof.stacks.launch import Layout
from fabricproof.verdict.value import at_least, at_most

#: What one more switch may add to a latency, as a fraction of that over one: document 002 of the
#: sources has 1.03 us for its nearest and 1.85 us for its farthest pairs, over up to five switches.
SHARE_OF_A_SWITCH = 0.2

#: Latencies of two pairs may differ by this much beyond what their switches explain.
LATENCY_TOLERANCE = 0.25

#: A far pair by itself shares its links with nobody: its bandwidth is a near pair's.
BANDWIDTH_TOLERANCE = 0.10

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
    "mvapich": {"MVP_ENABLE_AFFINITY": "0", "MV2_ENABLE_AFFINITY": "0"},
    "mvapich2": {"MV2_ENABLE_AFFINITY": "0"},
    "intelmpi": {"I_MPI_PIN": "off"},
}

#: srun binds by its own rules unless told not to (srun(1): SLURM_CPU_BIND)
UNBOUND_SRUN = {"SLURM_CPU_BIND": "none"}

_Chosen = TypeVar("_Chosen")


def choose_nodes(
    planner: LegPlanner,
    choose: Callable[..., _Chosen],
    differ: Callable[[_Chosen], bool],
    alike: str,
) -> _Chosen | str:
    """Return what ``choose`` makes of topology and usable nodes, or why there is nothing to choose.

    Raises:
        UnavailableError: more nodes would make a difference: the check is due and MISSING.
    """
    known = distances(planner.partition, dry_run=planner.dry_run)
    if isinstance(known, str):
        return known
    topology, nodes = known
    chosen = choose(topology, nodes)
    if differ(chosen):
        return chosen
    reason = f"of the {len(nodes)} usable nodes {alike}"
    if not planner.dry_run:
        require_not_due(
            reason, planner.partition, topology, lambda more: differ(choose(topology, more))
        )
    return reason


class PlacementBenchmark(FabricBenchmark):
    """Pairs of nodes at every distance, each over each rail, in one job."""

    def plan(self, planner: LegPlanner) -> Plan:
        """Return a leg for each rail and distance, and the relation of far to near."""
        most, name = planner.partition.num_nodes, planner.partition.name
        if most < 3:
            return Plan(reason=f"num_nodes of partition {name} is below 3: near, far and a hub")
        pairs = choose_nodes(
            planner,
            lambda topology, nodes: pairs_by_hops(topology, nodes, max_nodes=most),
            lambda found: len(found) > 1,
            "all are equally far from each other",
        )
        return Plan(reason=pairs) if isinstance(pairs, str) else self.of_pairs(planner, pairs)

    @staticmethod
    def of_pairs(planner: LegPlanner, pairs: tuple[Pair, ...]) -> Plan:
        """Return the plan for pairs at two distances or more, the nearest first."""
        more = pairs[-1].hops - pairs[0].hops
        quantity, sizes = "bandwidth", LARGEST
        origin = "a pair alone has its links to itself"
        reference = at_least(1.0, unit="x", tolerance=BANDWIDTH_TOLERANCE, origin=origin)
        if planner.of_time:
            quantity, sizes = "latency", SMALLEST
            longer, origin = 1 + SHARE_OF_A_SWITCH * more, f"{more} switches more"
            reference = at_most(longer, unit="x", tolerance=LATENCY_TOLERANCE, origin=origin)

        def leg(rail: str, pair: Pair) -> MakeLeg:
            placed, layout = replace(planner, hops=pair.hops), Layout(nodes=pair.nodes)
            variant = f"hops{pair.hops}"
            return lambda sizes: placed.leg((rail,), variant=variant, layout=layout, sizes=sizes)

        def of_rail(rail: str) -> Plan:
            near, *between, far = (leg(rail, pair) for pair in pairs)
            return compare(
                f"{rail}.far_over_near",
                over=[far],
                under=[near],
                beside=between,
                reference=reference,
                quantity=quantity,
                sizes=sizes,
                hint="a slow or misrouted link between the switches, or a topology that is not "
                f"what is wired ({' and '.join(pairs[-1].nodes)})",
                names={
                    f"{rail}.hops{each.hops}": f"{each.hops} switch{'es' * (each.hops > 1)}"
                    for each in pairs
                },
            )

        return joined(map(of_rail, planner.rails))


class LocalityBenchmark(FabricBenchmark):
    """Over each rail: ranks beside its slot, across from it, and as the launcher puts them."""

    def plan(self, planner: LegPlanner) -> Plan:
        """Return three legs for each rail, and near over far."""
        by_dist = planner.launcher == "mpirun" and planner.stack.family == "openmpi"
        has_it = by_dist and planner.stack.version.startswith("4.")
        policies = (*Bind, AS_LAUNCHED, *((MAP_BY_DIST,) if has_it else ()))
        reference = (at_most if planner.of_time else at_least)(
            1.0,
            unit="x",
            tolerance=LOCALITY_TOLERANCE,
            origin="a slot is nearest to its own socket",
        )

        def of_rail(rail: str) -> Plan:
            near, far, *others = (
                lambda sizes, policy=policy: _bound_leg(planner, rail, policy, sizes)
                for policy in policies
            )
            return compare(
                f"{rail}.near_over_far",
                over=[near],
                under=[far],
                beside=others,
                reference=reference,
                quantity="latency" if planner.of_time else "bandwidth",
                sizes=SMALLEST if planner.of_time else LARGEST,
                hint="the slot's NUMA node is not what the firmware says, or another load sits "
                "beside the adapter",
                held={f"{rail}.{bind}": bind for bind in Bind},
                names={f"{rail}.{each}": each.replace("_", " ") for each in policies},
            )

        return joined(map(of_rail, planner.rails))


def _bound_leg(planner: LegPlanner, rail: str, policy: str, sizes: Sequence[int]) -> Leg:
    settings: Mapping[str, str] = {}
    if policy == MAP_BY_DIST:
        settings = {
            "OMPI_MCA_rmaps_base_mapping_policy": "dist:span",
            "OMPI_MCA_rmaps_dist_device": rail.partition(":")[0],
            "OMPI_MCA_hwloc_base_binding_policy": "core",
        }
    elif policy != AS_LAUNCHED:
        settings = {**UNBOUND.get(planner.stack.family, {}), **UNBOUND_SRUN}
    leg = planner.leg((rail,), variant=policy, environment=settings, sizes=sizes)
    moved = policy if policy in {*Bind} else AS_LAUNCHED
    leg = replace(
        leg,
        ask=("two_sockets", rail),
        commands=tuple(("bash", BIND_FILE, moved, rail, *argv) for argv in leg.commands),
        environment={**leg.environment, "FABRICPROOF_PROGRAM": leg.commands[0][0]},
    )
    if policy == Bind.NEAR or planner.of_time:
        return leg
    return replace(leg, tolerance=WITNESS_TOLERANCE, curve_tolerance=100.0, references={})
