"""Checks of sockets and of verbs without MPI (iperf3, iperf, perftest), and of MPI over TCP."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from reframe.core.builtins import variable

from fabricproof.benchmarks.catalogue import meaning
from fabricproof.benchmarks.program import ProgramKind
from fabricproof.core.units import at_size
from fabricproof.job.commands import Pace, peer_job
from fabricproof.job.leg import DEFAULT_PATH, Leg, Plan
from fabricproof.job.outcomes import BACK, backward
from fabricproof.job.relation import Frames, Relation
from fabricproof.physics import bound
from fabricproof.rfm.checks.base import FabricBenchmark
from fabricproof.rfm.current import current_site
from fabricproof.rfm.legs.compare import LAST, MakeLeg, compare, joined, with_twins
from fabricproof.rfm.legs.leg import MEMORY_MB_S, LegPlanner
from fabricproof.site.roll import stack_of_looks
from fabricproof.stacks.family import NATIVE, crowd_environment, default_transport
from fabricproof.stacks.launch import Layout
from fabricproof.traffic import is_device
from fabricproof.traffic.transports import VERBS
from fabricproof.verdict.value import Reference, around, at_least, at_most

#: connections that the checks of several flows open: fewer than the 36 of source document 001,
#: enough for its limit of 9.5 of 25 Gb/s in one flow
MANY_FLOWS = 8

#: Document 001: osu_bw 1181.7 MB/s beside iperf3's 1182.5 on the same two nodes.
MPI_SHARE = at_least(
    1.0,
    unit="x",
    tolerance=0.15,
    origin="osu_bw beside iperf3 on the same nodes, 1181.7 of 1182.5 MB/s (document 001)",
)

#: values of btl_tcp_links that are tried
LINKS = (1, 2, 4)

#: what two runs of the same thing may differ by
BEST_TOLERANCE = 0.10
FLOWS_TOLERANCE = 0.20

#: what a leg sets to see the network alone, and users do not want: no shared memory on a node
_FOR_LEGS_ONLY = frozenset({"OMPI_MCA_btl", "OMPI_MCA_osc", "MPIR_CVAR_NOLOCAL", "I_MPI_FABRICS"})


def one_node(check: FabricBenchmark) -> str:
    """Return why ``check`` has no two nodes to measure between; empty where it has."""
    site = current_site()
    partition = site.partition(check.current_partition.name)
    if partition.same_node or site.fabric_spec(check.fabric).link is None:
        return f"{check.program} measures between two nodes, and this partition has one"
    return ""


def with_links(planner: LegPlanner, links: int) -> LegPlanner:
    """Return ``planner`` for ``links`` TCP connections of a pair on each rail."""
    stack = planner.stack
    environment = {**stack.spec.environment, "OMPI_MCA_btl_tcp_links": str(links)}
    spec = stack.spec.model_copy(update={"environment": environment})
    return replace(planner, stack=replace(stack, spec=spec))


def peer_leg(
    planner: LegPlanner,
    rail: str,
    *,
    variant: str = "",
    streams: int = 1,
    environment: Mapping[str, str] | None = None,
) -> Leg:
    """Return a leg of the planner's program, one of a suite without MPI, over ``rail``."""
    alone = with_links(planner, 1)  # the streams stand in the output and count by themselves
    fabric, seconds = alone.physics((rail,)), planner.partition.leg_seconds
    pace = Pace(
        rate_mb_s=bound(fabric).low_mb_s if fabric else MEMORY_MB_S,
        latency_us=alone.latency_guess_us(fabric) if fabric else 10.0,
        seconds=seconds,
    )
    job = peer_job(planner.suite, planner.program, rail, pace, streams=streams)
    is_latency = meaning(planner.suite, planner.program).kind is ProgramKind.LATENCY
    kind = "latency" if is_latency else "bandwidth"
    return Leg(
        name=rail + (f".{variant}" if variant else ""),
        rails=(rail,),
        suite=planner.suite,
        program=planner.program,
        environment={**planner.launch.environment, **(environment or {})},
        commands=job.commands,
        expected_sizes=job.sizes,
        traffic=job.traffic,
        spread=False,
        required=(at_size(kind, job.sizes[0 if is_latency else -1]),) if job.sizes else (kind,),
        references=_references(alone, (rail,)),
        tolerance=planner.site.spec.tolerance,
        curve_tolerance=planner.partition.curve_tolerance,
        fabric=alone.stated((rail,)),
    )


def _references(planner: LegPlanner, rails: tuple[str, ...]) -> dict[str, Reference]:
    """Return the site's references; what it says of any latency is one way, a read goes both."""
    found = planner.references(rails)
    if not meaning(planner.suite, planner.program).round_trip:
        return found
    of_any = replace(planner, program="any other").references(rails)
    return {
        name: replace(
            each,
            value=2 * each.value,
            lower=each.lower and 2 * each.lower,
            upper=each.upper and 2 * each.upper,
            origin=f"{each.origin}, there and back",
        )
        if each == of_any.get(name) and name.startswith("latency")
        else each
        for name, each in found.items()
    }


class PeerBenchmark(FabricBenchmark):
    """Two nodes, one program without MPI, one leg for each rail by itself.

    It runs once on a partition, on the first stack that need not be built for it, so that no
    failed build takes it along.
    """

    #: TCP connections at once
    streams = variable(int, value=1)

    tells_the_path = False

    def why_not(self) -> str:
        """Tell where the check does not belong: another stack, one machine, no verbs."""
        if reason := one_node(self):
            return reason
        site = current_site()
        verbs = site.fabric(self.fabric).framing.name in VERBS
        if self.suite == "perftest" and not verbs:
            return f"it measures verbs, which fabric {self.fabric} does not speak"
        if self.suite != "perftest" and is_device(site.fabric_spec(self.fabric).rails[0].interface):
            return f"fabric {self.fabric} is declared by its devices, over which TCP has no address"
        first = stack_of_looks(site, site.partition(self.current_partition.name))
        if self.current_environ.name == first:
            return ""
        return f"{self.program} needs no MPI: it runs once on this partition, with {first}"

    def plan(self, planner: LegPlanner) -> Plan:
        """Return one leg for each rail, and one the other way where its program sends one way."""
        legs = [peer_leg(planner, rail, streams=self.streams) for rail in planner.rails]
        plan = with_twins(planner, Plan(legs=tuple(legs)))
        if meaning(self.suite, self.program).kind is ProgramKind.BANDWIDTH:
            back = (
                backward(peer_leg(planner, rail, variant=BACK, streams=self.streams))
                for rail in planner.rails
            )
            plan = replace(plan, legs=(*plan.legs, *back))
        return plan


class FlowsBenchmark(PeerBenchmark):
    """One connection beside several over each rail: what the fabric says of its flows holds."""

    streams = MANY_FLOWS

    def plan(self, planner: LegPlanner) -> Plan:
        """Return two legs for each rail, and what the many carry over the one."""
        return joined(self._gain(planner, rail) for rail in planner.rails)

    def _gain(self, planner: LegPlanner, rail: str) -> Plan:
        fabric = with_links(planner, 1).physics((rail,))
        assert fabric is not None, "why_not leaves out a fabric without link"
        expected = bound(replace(fabric, num_flows=self.streams)).low_mb_s / bound(fabric).low_mb_s
        limit = "a limit per flow" if fabric.flow_limit_gbit_s else "no limit per flow"
        return compare(
            f"{rail}.flows_gain",
            over=[_of(planner, rail, f"flows{self.streams}", self.streams)],
            under=[_of(planner, rail, "flow1", 1)],
            reference=around(
                expected,
                unit="x",
                tolerance=FLOWS_TOLERANCE,
                origin=f"fabric.toml declares {limit}",
            ),
            sizes=None,
            hint="more: one flow does not fill the rail (flow_limit_gbit_s, or capability_gbit_s "
            "of one core); less: flows are in each other's way",
        )


def _of(planner: LegPlanner, rail: str, variant: str, streams: int) -> MakeLeg:
    return lambda _: peer_leg(planner, rail, variant=variant, streams=streams)


class FramesBenchmark(PeerBenchmark):
    """Whether each rail carries frames of the declared MTU from one node to another."""

    def plan(self, planner: LegPlanner) -> Plan:
        """Return one leg for each rail, and the size of its frames."""
        mtu = planner.spec.mtu
        if mtu is None:
            return Plan(reason=f"fabric.toml declares no mtu for {planner.fabric}")
        frame = {"FABRICPROOF_FRAME": str(mtu)}
        legs = [peer_leg(planner, rail, variant="mtu", environment=frame) for rail in planner.rails]
        relations = (
            Relation(
                name=f"{leg.rails[0]}.frames",
                what=Frames(mtu_bytes=mtu),
                legs=(leg.name,),
                suite=leg.suite,
                program=leg.program,
                rails=leg.rails,
            )
            for leg in legs
        )
        return Plan(legs=tuple(legs), relations=tuple(relations))


class TcpBenchmark(FabricBenchmark):
    """What needs TCP below the MPI."""

    def why_not(self) -> str:
        """Tell where there are no two nodes, or no TCP below this MPI."""
        if reason := one_node(self):
            return reason
        framing = current_site().fabric(self.fabric).framing.name
        if framing in {"tcp", "ipoib"}:
            return ""
        return f"fabric {self.fabric} speaks {framing} to the MPI, not TCP"


class MpiOverTcp(TcpBenchmark):
    """MPI beside iperf3 over the same rails in one job: its share of what TCP carries."""

    def plan(self, planner: LegPlanner) -> Plan:
        """Return an MPI leg and an iperf3 leg for each rail, and the share."""
        below, reason = planner.of("iperf3", "iperf3")
        if below is None:
            return Plan(reason=reason)
        return joined(self._share(planner, below, rail) for rail in planner.rails)

    def _share(self, planner: LegPlanner, below: LegPlanner, rail: str) -> Plan:
        return compare(
            f"{rail}.mpi_share",
            over=[lambda sizes: planner.leg((rail,), sizes=sizes)],
            under=[_of(below, rail, "iperf3", planner.stack.spec.connections)],
            reference=planner.references((rail,)).get("mpi_share") or MPI_SHARE,
            sizes=LAST,
            hint="the MPI, not the network below it: copies, a busy core, its buffers and windows",
        )


class LinksBenchmark(TcpBenchmark):
    """Open MPI with several TCP connections of a pair: is the number in force the best?"""

    def plan(self, planner: LegPlanner) -> Plan:
        """Return one leg over the first rail for each number, and the best over that in force."""
        family, in_force = planner.stack.family, planner.stack.spec.connections
        if family != "openmpi":
            return Plan(reason="only Open MPI's own TCP opens several connections (btl_tcp_links)")
        chosen = planner.transport or default_transport(family, "tcp", launcher=planner.launcher)
        if chosen != NATIVE:
            return Plan(reason=f"this fabric goes over {chosen}, not Open MPI's own TCP")
        origin = f"the stack's own setting, btl_tcp_links={in_force}"
        rail = planner.rails[0]
        return compare(
            f"{rail}.best_links",
            over=[_linked(planner, links) for links in LINKS if links != in_force],
            under=[_linked(planner, in_force)],
            reference=at_most(1.0, unit="x", tolerance=BEST_TOLERANCE, origin=origin),
            sizes=LAST,
            hint="set OMPI_MCA_btl_tcp_links to the best in the stack's environment or module",
            names={f"{rail}.links{links}": f"{links}:" for links in sorted({*LINKS, in_force})},
        )


def _linked(planner: LegPlanner, links: int) -> MakeLeg:
    def make(sizes: Sequence[int]) -> Leg:
        return with_links(planner, links).leg(
            planner.rails[:1],
            variant=f"links{links}",
            environment={"OMPI_MCA_btl_tcp_links": str(links)},
            sizes=sizes,
        )

    return make


class PairsBenchmark(TcpBenchmark):
    """Several pairs between two nodes over each rail: all together against the rail."""

    def plan(self, planner: LegPlanner) -> Plan:
        """Return one leg for each rail."""
        pairs = max(2, *planner.partition.ranks_per_node)
        layout = Layout(num_nodes=2, ranks_per_node=pairs)
        legs = (
            planner.leg((rail,), variant=f"pairs{pairs}", layout=layout) for rail in planner.rails
        )
        return Plan(legs=tuple(legs))


class FreePathBenchmark(FabricBenchmark):
    """An MPI that nobody tells its path: which interfaces does it take?"""

    def why_not(self) -> str:
        """Tell where there are no two nodes, and where another fabric is the one to take."""
        if reason := one_node(self):
            return reason
        site = current_site()
        rates = {
            name: bound(site.fabric(name)).low_mb_s
            for name in site.partition(self.current_partition.name).fabrics
            if site.fabric_spec(name).link is not None
        }
        fastest = max(rates, key=rates.__getitem__)
        if rates[self.fabric] >= rates[fastest]:
            return ""
        return f"left alone an MPI should take {fastest}, the fastest fabric of this partition"

    def plan(self, planner: LegPlanner) -> Plan:
        """Return one leg without any path, over what the site declares."""
        leg = planner.leg(planner.rails[:1], variant="untold")
        family = planner.stack.family
        # Ranks that must share cores still have to be told so.
        manners = crowd_environment(family) if planner.partition.oversubscribed else {}
        untold = {**planner.launch.environment, **manners}
        advice = " ".join(
            f"{name}={value}"
            for name, value in sorted(leg.environment.items())
            if name not in {*untold, *_FOR_LEGS_ONLY}
        )
        return Plan(
            legs=(
                replace(
                    leg,
                    name="untold",
                    rails=planner.rails,
                    environment=untold,
                    required=(DEFAULT_PATH,),
                    spread=False,
                    free_path=advice,
                ),
            )
        )
