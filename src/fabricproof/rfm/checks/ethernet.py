"""The checks of sockets and verbs without MPI, and the Ethernet checks that compare.

Without MPI: iperf3, iperf, perftest between two nodes.  Compared are flows, MPI over TCP,
connections, frames, and a path that is not told.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, replace

from reframe.core.builtins import variable

from fabricproof.benchmarks.catalogue import meaning
from fabricproof.benchmarks.program import ProgramKind
from fabricproof.job.leg import DEFAULT_PATH, Leg, Plan, Relation, in_turns
from fabricproof.job.outcomes import BACK, backward
from fabricproof.physics import bound
from fabricproof.rfm.checks.base import FabricBenchmark
from fabricproof.rfm.current import current_site
from fabricproof.rfm.legs.leg import LegPlanner
from fabricproof.rfm.legs.peer import peer_leg, with_links
from fabricproof.site.roll import stack_of_looks
from fabricproof.stacks.family import NATIVE, crowd_environment, default_transport
from fabricproof.stacks.launch import Layout
from fabricproof.traffic import is_device
from fabricproof.traffic.transports import VERBS
from fabricproof.verdict.value import Reference, around, at_least, at_most


def only_first_stack(check: FabricBenchmark, what: str) -> str:
    """Return why ``check``, which needs no MPI, does not run here: it runs on one stack.

    On the first that need not be built for it, so that no failed build takes it along.  It runs
    once a partition and is a required check of every stack, with a verdict or a reason.
    """
    site = current_site()
    first = stack_of_looks(site, site.partition(check.current_partition.name))
    if check.current_environ.name == first:
        return ""
    return f"{what} needs no MPI: it runs once on this partition, with {first}"


class PeerBenchmark(FabricBenchmark):
    """Two nodes, one program without MPI, one leg for each rail by itself."""

    #: TCP connections at once
    streams = variable(int, value=1)

    tells_the_path = False

    def why_not(self) -> str:
        """Tell where the check does not belong: another stack, one machine, no verbs."""
        if reason := one_node(self):
            return reason
        site = current_site()
        spec = site.fabric_spec(self.fabric)
        verbs = site.fabric(self.fabric).framing.name in VERBS
        if self.suite == "perftest" and not verbs:
            return f"it measures verbs, which fabric {self.fabric} does not speak"
        if self.suite != "perftest" and is_device(spec.rails[0].interface):
            return f"fabric {self.fabric} is declared by its devices, over which TCP has no address"
        return only_first_stack(self, self.program)

    def plan(self, planner: LegPlanner) -> Plan:
        """Return one leg for each rail, and one the other way where its program sends one way."""
        forth = [peer_leg(planner, rail, streams=self.streams) for rail in planner.rails]
        if meaning(self.suite, self.program).kind is not ProgramKind.BANDWIDTH:
            return Plan(legs=tuple(forth))
        back = [
            backward(peer_leg(planner, rail, variant=BACK, streams=self.streams))
            for rail in planner.rails
        ]
        return Plan(legs=(*forth, *back))


#: connections that the checks of several flows open: fewer than the 36 of source document 001,
#: enough for its limit of 9.5 of 25 Gb/s in one flow
MANY_FLOWS = 8

#: Document 001: osu_bw 1181.7 MB/s beside iperf3's 1182.5 on the same two nodes.
MPI_SHARE, MPI_SHARE_TOLERANCE = 1.0, 0.15

#: values of btl_tcp_links that are tried
LINKS = (1, 2, 4)

#: what two runs of the same thing may differ by
BEST_TOLERANCE = 0.10
FLOWS_TOLERANCE = 0.20


def _side(leg: Leg, size: int | None = None) -> dict[str, object]:
    return {"leg": leg.name, "quantity": "bandwidth", "size": size}


def _share(
    name: str, over: Leg, under: Leg, reference: Reference, hint: str, size: int | None = None
) -> Relation:
    return over.relation(
        name,
        "share",
        [over, under],
        {
            "over": _side(over, size),
            "under": _side(under),
            "reference": asdict(reference),
            "hint": hint,
        },
    )


class FlowsBenchmark(PeerBenchmark):
    """One connection beside several over each rail: what the fabric says of its flows holds."""

    streams = MANY_FLOWS

    def plan(self, planner: LegPlanner) -> Plan:
        """Return two legs for each rail, and what the many carry over the one."""
        legs: list[Leg] = []
        again: list[Leg] = []
        relations: list[Relation] = []
        for rail in planner.rails:
            one = peer_leg(planner, rail, variant="flow1")
            many = peer_leg(planner, rail, variant=f"flows{self.streams}", streams=self.streams)
            turns = {each.name: each.turn() for each in (one, many)}
            legs += [one, many]
            again += turns.values()
            relations.append(in_turns(self._gain(planner, rail, one, many), turns))
        return Plan(legs=(*legs, *again), relations=tuple(relations))

    def _gain(self, planner: LegPlanner, rail: str, one: Leg, many: Leg) -> Relation:
        fabric = with_links(planner, 1).physics((rail,))
        assert fabric is not None, "why_not leaves out a fabric without link"
        expected = bound(replace(fabric, num_flows=self.streams)).low_mb_s / bound(fabric).low_mb_s
        limit = "a limit per flow" if fabric.flow_limit_gbit_s else "no limit per flow"
        reference = around(
            expected, unit="x", tolerance=FLOWS_TOLERANCE, origin=f"fabric.toml declares {limit}"
        )
        hint = (
            "more: one flow does not fill the rail (flow_limit_gbit_s, or capability_gbit_s of one "
            "core); less: flows are in each other's way"
        )
        return _share(f"{rail}.flows_gain", many, one, reference, hint)


class MpiOverTcp(FabricBenchmark):
    """MPI beside iperf3 over the same rails in one job: its share of what TCP carries."""

    def why_not(self) -> str:
        """Tell where there is no TCP below this MPI, or where iperf3 is not there."""
        return tcp_refusal(self)

    def plan(self, planner: LegPlanner) -> Plan:
        """Return an MPI leg and an iperf3 leg for each rail, and the share."""
        below, reason = planner.of("iperf3", "iperf3")
        if below is None:
            return Plan(reason=reason)
        streams = planner.stack.spec.connections
        legs: list[Leg] = []
        again: list[Leg] = []
        relations: list[Relation] = []
        for rail in planner.rails:
            mpi = planner.leg((rail,))
            tcp = peer_leg(below, rail, variant="iperf3", streams=streams)
            largest = mpi.expected_sizes[-1:]
            turns = {
                mpi.name: planner.leg((rail,), sizes=largest).turn(),
                tcp.name: tcp.turn(),
            }
            legs += [mpi, tcp]
            again += turns.values()
            hint = "the MPI, not the network below it: copies, a busy core, its buffers and windows"
            share = _share(
                f"{rail}.mpi_share",
                mpi,
                tcp,
                mpi.references.get("mpi_share") or _stated_share(),
                hint,
                mpi.expected_sizes[-1],
            )
            relations.append(in_turns(share, turns))
        return Plan(legs=(*legs, *again), relations=tuple(relations))


def _stated_share() -> Reference:
    return at_least(
        MPI_SHARE,
        unit="x",
        tolerance=MPI_SHARE_TOLERANCE,
        origin="osu_bw beside iperf3 on the same nodes, 1181.7 of 1182.5 MB/s (document 001)",
    )


class LinksBenchmark(FabricBenchmark):
    """Open MPI with several TCP connections of a pair: is the number in force the best?"""

    def why_not(self) -> str:
        """Tell where there is no TCP below this MPI."""
        return tcp_refusal(self)

    def plan(self, planner: LegPlanner) -> Plan:
        """Return one leg over the first rail for each number, and which does best."""
        reason = _no_links(planner)
        if reason:
            return Plan(reason=reason)
        in_force = planner.stack.spec.connections
        legs = {links: _linked(planner, links) for links in sorted({*LINKS, in_force})}
        largest = legs[in_force].expected_sizes[-1:]
        turns = {leg.name: _linked(planner, n, largest).turn() for n, leg in legs.items()}
        relation = in_turns(_best_links(legs, in_force), turns)
        return Plan(legs=(*legs.values(), *turns.values()), relations=(relation,))


def _linked(planner: LegPlanner, links: int, sizes: Sequence[int] = ()) -> Leg:
    return with_links(planner, links).leg(
        planner.rails[:1],
        variant=f"links{links}",
        environment={"OMPI_MCA_btl_tcp_links": str(links)},
        sizes=sizes,
    )


def _no_links(planner: LegPlanner) -> str:
    family = planner.stack.family
    if family != "openmpi":
        return "only Open MPI's own TCP opens several connections (btl_tcp_links)"
    chosen = planner.transport or default_transport(family, "tcp", launcher=planner.launcher)
    return "" if chosen == NATIVE else f"this fabric goes over {chosen}, not Open MPI's own TCP"


def _best_links(legs: dict[int, Leg], in_force: int) -> Relation:
    first = next(iter(legs.values()))
    origin = f"the stack's own setting, btl_tcp_links={in_force}"
    reference = at_most(1.0, unit="x", tolerance=BEST_TOLERANCE, origin=origin)
    return first.relation(
        f"{first.rails[0]}.best_links",
        "best",
        legs.values(),
        {
            "quantity": "bandwidth",
            "size": first.expected_sizes[-1],
            "tried": {str(links): leg.name for links, leg in legs.items()},
            "in_force": str(in_force),
            "advice": "set OMPI_MCA_btl_tcp_links={best} in the stack's environment or module",
            "reference": asdict(reference),
        },
    )


class PairsBenchmark(FabricBenchmark):
    """Several pairs between two nodes over each rail: all together against the rail."""

    def why_not(self) -> str:
        """Tell where there are no two nodes."""
        return tcp_refusal(self)

    def plan(self, planner: LegPlanner) -> Plan:
        """Return one leg for each rail."""
        pairs = max(2, *planner.partition.ranks_per_node)
        layout = Layout(num_nodes=2, ranks_per_node=pairs)
        return Plan(
            legs=tuple(
                planner.leg((rail,), variant=f"pairs{pairs}", layout=layout)
                for rail in planner.rails
            )
        )


class FramesBenchmark(PeerBenchmark):
    """Whether each rail carries frames of the declared MTU from one node to another."""

    def plan(self, planner: LegPlanner) -> Plan:
        """Return one leg for each rail, and the size of its frames."""
        mtu = planner.spec.mtu
        if mtu is None:
            return Plan(reason=f"fabric.toml declares no mtu for {planner.fabric}")
        legs = tuple(
            peer_leg(planner, rail, variant="mtu", environment={"FABRICPROOF_FRAME": str(mtu)})
            for rail in planner.rails
        )
        relations = tuple(
            leg.relation(f"{leg.rails[0]}.frames", "frames", [leg], {"mtu": mtu}) for leg in legs
        )
        return Plan(legs=legs, relations=relations)


class FreePathBenchmark(FabricBenchmark):
    """An MPI that nobody tells its path: which interfaces does it take?"""

    def why_not(self) -> str:
        """Tell where there are no two nodes, and where another fabric is the one to take."""
        return one_node(self) or self._slower()

    def _slower(self) -> str:
        site = current_site()
        declared = site.partition(self.current_partition.name).fabrics
        rates = {
            name: bound(site.fabric(name)).low_mb_s
            for name in declared
            if site.fabric_spec(name).link is not None
        }
        fastest = max(rates, key=rates.__getitem__)
        if rates[self.fabric] >= rates[fastest]:
            return ""
        return f"left alone an MPI should take {fastest}, the fastest fabric of this partition"

    def plan(self, planner: LegPlanner) -> Plan:
        """Return one leg without any path, over what the site declares."""
        leg = planner.leg(planner.rails[:1], variant="untold")
        told = leg.environment
        launch = planner.launch.environment
        untold = replace(
            leg,
            name="untold",
            rails=planner.rails,
            environment={**launch, **manners(planner)},
            required=(DEFAULT_PATH,),
            spread=False,
            free_path=_advice(planner, told),
        )
        return Plan(legs=(untold,))


def manners(planner: LegPlanner) -> dict[str, str]:
    """Return what lets ranks share cores, where the partition says that they must."""
    return crowd_environment(planner.stack.family) if planner.partition.oversubscribed else {}


#: what a leg sets to see the network alone, and users do not want: no shared memory on a node
_FOR_LEGS_ONLY = frozenset({"OMPI_MCA_btl", "OMPI_MCA_osc", "MPIR_CVAR_NOLOCAL", "I_MPI_FABRICS"})


def _advice(planner: LegPlanner, told: dict[str, str]) -> str:
    """Return the variables that users have to set, as they stand on a command line."""
    others = {*manners(planner), *planner.launch.environment}
    net_path = {name: value for name, value in told.items() if name not in others | _FOR_LEGS_ONLY}
    return " ".join(f"{name}={value}" for name, value in sorted(net_path.items()))


def one_node(check: FabricBenchmark) -> str:
    """Return why ``check`` has no two nodes to measure between; empty where it has."""
    site = current_site()
    partition = site.partition(check.current_partition.name)
    if partition.same_node or site.fabric_spec(check.fabric).link is None:
        return f"{check.program} measures between two nodes, and this partition has one"
    return ""


def tcp_refusal(check: FabricBenchmark) -> str:
    """Return why ``check`` has no TCP to measure on this fabric; empty where it has."""
    reason = one_node(check)
    if reason:
        return reason
    framing = current_site().fabric(check.fabric).framing.name
    if framing in {"tcp", "ipoib"}:
        return ""
    return f"fabric {check.fabric} speaks {framing} to the MPI, not TCP"
