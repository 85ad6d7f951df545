"""Checks of sockets and of verbs without MPI (iperf3, iperf, perftest), and of MPI over TCP."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from reframe.core.builtins import variable

from fabricproof.benchmarks.catalogue import meaning
from fabricproof.core.units import at_size
from fabricproof.job.commands import Pace, peer_job
from fabricproof.job.leg import DEFAULT_PATH, Leg, Plan
from fabricproof.job.outcomes import BACK, backward
from fabricproof.job.relation import Frames, Relation
from fabricproof.physics import bound
from fabricproof.rfm.checks.base import FabricBenchmark
from fabricproof.rfm.legs.compare import LAST, MakeLeg, compare, joined, with_twins
from fabricproof.rfm.legs.leg import LegPlanner
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


def one_node(planner: LegPlanner) -> str:
    """Return why there are no two nodes to measure between; empty where there are."""
    if planner.partition.same_node or planner.spec.link is None:
        return f"{planner.program} measures between two nodes, and this partition has one"
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
    fabric = alone.physics((rail,))
    pace = Pace(
        rate_mb_s=alone.rate_mb_s(fabric),
        latency_us=alone.latency_guess_us(fabric),
        seconds=planner.partition.leg_seconds,
    )
    job = peer_job(planner.suite, planner.program, rail, pace, streams=streams)
    kind = "latency" if planner.of_time else "bandwidth"
    due = at_size(kind, job.sizes[0 if planner.of_time else -1]) if job.sizes else kind
    return Leg(
        name=rail + (f".{variant}" if variant else ""),
        rails=(rail,),
        suite=planner.suite,
        program=planner.program,
        environment={**planner.launch.environment, **(environment or {})},
        commands=job.commands,
        expected_sizes=job.sizes,
        traffic=job.traffic,
        required=(due,),
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
    for name, each in found.items():
        if each == of_any.get(name) and name.startswith("latency"):
            found[name] = replace(
                each,
                value=2 * each.value,
                lower=each.lower and 2 * each.lower,
                upper=each.upper and 2 * each.upper,
                origin=f"{each.origin}, there and back",
            )
    return found


class PeerBenchmark(FabricBenchmark):
    """Two nodes, one program without MPI, one leg for each rail by itself.

    It runs once on a partition, on the first stack that need not be built for it, so that no
    failed build takes it along.
    """

    #: TCP connections at once
    streams = variable(int, value=1)

    tells_the_path = False

    def why_not(self, planner: LegPlanner) -> str:
        """Tell where the check does not belong: another stack, one machine, no verbs."""
        if reason := one_node(planner):
            return reason
        verbs, fabric = planner.protocol in VERBS, self.fabric
        if self.suite == "perftest" and not verbs:
            return f"it measures verbs, which fabric {fabric} does not speak"
        if self.suite != "perftest" and is_device(planner.rails[0]):
            return f"fabric {fabric} is declared by its devices, over which TCP has no address"
        first = stack_of_looks(planner.site, planner.partition)
        if planner.stack.name == first:
            return ""
        return f"{self.program} needs no MPI: it runs once on this partition, with {first}"

    def plan(self, planner: LegPlanner) -> Plan:
        """Return one leg for each rail, and one the other way where its program sends one way."""
        rails, streams = planner.rails, self.streams
        legs = tuple(peer_leg(planner, rail, streams=streams) for rail in rails)
        plan = with_twins(planner, Plan(legs=legs))
        if planner.of_time:
            return plan
        back = (peer_leg(planner, rail, variant=BACK, streams=streams) for rail in rails)
        return replace(plan, legs=(*legs, *map(backward, back)))


def _of(planner: LegPlanner, rail: str, variant: str, streams: int) -> MakeLeg:
    return lambda _: peer_leg(planner, rail, variant=variant, streams=streams)


class FlowsBenchmark(PeerBenchmark):
    """One connection beside several over each rail: what the fabric says of its flows holds."""

    streams = MANY_FLOWS

    def plan(self, planner: LegPlanner) -> Plan:
        """Return two legs for each rail, and what the many carry over the one."""

        def gain(rail: str) -> Plan:
            fabric = with_links(planner, 1).physics((rail,))
            assert fabric is not None, "why_not leaves out a fabric without link"
            many, one = bound(replace(fabric, num_flows=self.streams)), bound(fabric)
            limit = "a limit per flow" if fabric.flow_limit_gbit_s else "no limit per flow"
            return compare(
                f"{rail}.flows_gain",
                over=[_of(planner, rail, f"flows{self.streams}", self.streams)],
                under=[_of(planner, rail, "flow1", 1)],
                reference=around(
                    many.low_mb_s / one.low_mb_s,
                    unit="x",
                    tolerance=FLOWS_TOLERANCE,
                    origin=f"fabric.toml declares {limit}",
                ),
                sizes=None,
                hint="more: one flow does not fill the rail (flow_limit_gbit_s, or "
                "capability_gbit_s of one core); less: flows are in each other's way",
            )

        return joined(map(gain, planner.rails))


class FramesBenchmark(PeerBenchmark):
    """Whether each rail carries frames of the declared MTU from one node to another."""

    def plan(self, planner: LegPlanner) -> Plan:
        """Return one leg for each rail, and the size of its frames."""
        mtu = planner.spec.mtu
        if mtu is None:
            return Plan(reason=f"fabric.toml declares no mtu for {planner.fabric}")
        frame = {"FABRICPROOF_FRAME": str(mtu)}
        legs = tuple(
            peer_leg(planner, rail, variant="mtu", environment=frame) for rail in planner.rails
        )
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
        return Plan(legs=legs, relations=tuple(relations))


class TcpBenchmark(FabricBenchmark):
    """What needs TCP below the MPI."""

    def why_not(self, planner: LegPlanner) -> str:
        """Tell where there are no two nodes, or no TCP below this MPI."""
        if reason := one_node(planner):
            return reason
        if planner.protocol in {"tcp", "ipoib"}:
            return ""
        return f"fabric {self.fabric} speaks {planner.protocol} to the MPI, not TCP"


class MpiOverTcp(TcpBenchmark):
    """MPI beside iperf3 over the same rails in one job: its share of what TCP carries."""

    def plan(self, planner: LegPlanner) -> Plan:
        """Return an MPI leg and an iperf3 leg for each rail, and the share."""
        below, reason = planner.of("iperf3", "iperf3")
        if below is None:
            return Plan(reason=reason)
        connections = planner.stack.spec.connections

        def share(rail: str) -> Plan:
            return compare(
                f"{rail}.mpi_share",
                over=[lambda sizes: planner.leg((rail,), sizes=sizes)],
                under=[_of(below, rail, "iperf3", connections)],
                reference=planner.references((rail,)).get("mpi_share") or MPI_SHARE,
                sizes=LAST,
                hint="the MPI, not the network below it: copies, a busy core, its buffers and "
                "windows",
            )

        return joined(map(share, planner.rails))


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
        rail, origin = planner.rails[0], f"the stack's own setting, btl_tcp_links={in_force}"

        def linked(links: int) -> MakeLeg:
            told, variant = {"OMPI_MCA_btl_tcp_links": str(links)}, f"links{links}"

            def make(sizes: Sequence[int]) -> Leg:
                changed = with_links(planner, links)
                return changed.leg((rail,), variant=variant, environment=told, sizes=sizes)

            return make

        return compare(
            f"{rail}.best_links",
            over=[linked(links) for links in LINKS if links != in_force],
            under=[linked(in_force)],
            reference=at_most(1.0, unit="x", tolerance=BEST_TOLERANCE, origin=origin),
            sizes=LAST,
            hint="set OMPI_MCA_btl_tcp_links to the best in the stack's environment or module",
            names={f"{rail}.links{links}": f"{links}:" for links in sorted({*LINKS, in_force})},
        )


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

    def why_not(self, planner: LegPlanner) -> str:
        """Tell where there are no two nodes, and where another fabric is the one to take."""
        if reason := one_node(planner):
            return reason
        site, names = planner.site, planner.partition.fabrics
        linked = [name for name in names if site.fabric_spec(name).link is not None]
        rates = {name: bound(site.fabric(name)).low_mb_s for name in linked}
        fastest = max(rates, key=rates.__getitem__)
        if rates[self.fabric] >= rates[fastest]:
            return ""
        return f"left alone an MPI should take {fastest}, the fastest fabric of this partition"

    def plan(self, planner: LegPlanner) -> Plan:
        """Return one leg without any path, over what the site declares."""
        leg = planner.leg(planner.rails[:1], variant="untold")
        # Ranks that must share cores still have to be told so.
        crowded = planner.partition.oversubscribed
        manners = crowd_environment(planner.stack.family) if crowded else {}
        untold = {**planner.launch.environment, **manners}
        advice = " ".join(
            f"{name}={value}"
            for name, value in sorted(leg.environment.items())
            if name not in {*untold, *_FOR_LEGS_ONLY}
        )
        leg = replace(
            leg,
            name="untold",
            rails=planner.rails,
            environment=untold,
            required=(DEFAULT_PATH,),
            spread=False,
            free_path=advice,
        )
        return Plan(legs=(leg,))
