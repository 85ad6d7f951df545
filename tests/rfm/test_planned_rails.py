"""What is planned over several rails, by socket, by distance, and without MPI."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from plans import due, install_ports, plan_of, planner, ratio, why_not

from fabricproof.job.evidence.leg_folder import as_one_path
from fabricproof.job.leg import Leg, Plan, read_plan, write_plan
from fabricproof.job.relation import Balance, Pick
from fabricproof.job.script import render_script
from fabricproof.nodes.topology.model import Pair
from fabricproof.rfm.checks.base import PairBenchmark
from fabricproof.rfm.families.places import AS_LAUNCHED, LocalityBenchmark, PlacementBenchmark
from fabricproof.rfm.families.rails import (
    DuplexBenchmark,
    RailMatrix,
    RailsBenchmark,
    expected_gain,
)
from fabricproof.rfm.families.sockets import PeerBenchmark, peer_leg, with_links
from fabricproof.rfm.legs.compare import with_twins
from fabricproof.rfm.legs.leg import LegPlanner
from fabricproof.site import Site
from fabricproof.site.schema import ReferenceSpec
from fabricproof.stacks.environment import ROOT_VARIABLE
from fabricproof.traffic import CounterSample, Evidence, Rank
from fabricproof.verdict.value import Reference, at_most


@pytest.fixture
def openmpi(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> LegPlanner:
    """The virtual cluster's Open MPI, there only in name."""
    monkeypatch.setenv(ROOT_VARIABLE, str(tmp_path))
    install_ports(tmp_path, "openmpi5", programs="osu_bw osu_bibw osu_latency")
    return planner("vcluster", "osu-mpi4py", "osu_bw", "openmpi5")


def test_each_rail_and_all_rails_are_legs_of_one_job(openmpi: LegPlanner) -> None:
    plan = plan_of(RailsBenchmark, openmpi)
    assert {name: len(leg.commands) for name, leg in due(plan).items()} == {
        "rail0": 1, "rail1": 1, "rail0+rail1": 3,
    }  # fmt: skip
    scaling, sharing = plan.relations
    what, reference = ratio(scaling)
    assert (reference.value, reference.lower) == (pytest.approx(2.0), pytest.approx(1.9))
    assert what.most is not None
    assert 2.0 < what.most < 2.4
    assert (what.over.legs, what.under.legs) == (("rail0+rail1",), ("rail0", "rail1"))
    assert isinstance(sharing.what, Balance)
    assert sharing.what.threshold_bytes is None


def test_the_threshold_that_the_site_states_is_planned(openmpi: LegPlanner) -> None:
    stated = {"sharing_threshold": "128KiB"}
    own = planner(openmpi.site, "osu-mpi4py", "osu_bw", "openmpi5", stated=stated)
    what = plan_of(RailsBenchmark, own).relations[1].what
    assert isinstance(what, Balance)
    assert what.threshold_bytes == 128 << 10


def test_rails_that_share_a_slot_are_expected_to_gain_less(openmpi: LegPlanner) -> None:
    assert expected_gain(replace(openmpi, program="osu_bibw"))[0] == pytest.approx(2.0)
    fabric = openmpi.spec.model_copy(
        update={"link": "FDR 4x", "protocol": "ib", "mtu": 4096, "pcie": "3.0x8", "shaper": None,
                "rails_share_slot": True}
    )  # fmt: skip
    site = replace(openmpi.site, fabrics=(fabric,))
    # Document 000: near the socket two rails gave 6.5 against 6.3.
    assert 1.0 < expected_gain(replace(openmpi, site=site))[0] < 1.2


def test_a_full_duplex_link_carries_twice(openmpi: LegPlanner, tmp_path: Path) -> None:
    for name in ("osu_bw", "osu_bibw"):
        (tmp_path / name).touch()
    stated = {"provisioned": False, "suites": {"osu": str(tmp_path)}}
    own = planner(openmpi.site, "osu", "osu_bw", "openmpi5", stated=stated)
    plan = plan_of(DuplexBenchmark, own)
    assert list(due(plan)) == ["rail0.forth", "rail0.both"]
    assert plan.relations[0].turns == {each: f"{each}.turn" for each in due(plan)}
    what, reference = ratio(plan.relations[0])
    assert (what.under.legs, what.over.legs) == (("rail0.forth",), ("rail0.both",))
    assert (what.scale, len(what.over.sizes)) == (1.0, 3)
    assert (reference.value, reference.lower) == (pytest.approx(2.0), pytest.approx(1.6))
    # mpi4py's port prints one direction of the two.
    assert ratio(plan_of(DuplexBenchmark, openmpi).relations[0])[0].scale == 2.0


def test_a_leg_for_each_rail_and_distance(openmpi: LegPlanner) -> None:
    pairs = (Pair(nodes=("vc1", "vc2"), hops=1), Pair(nodes=("vc1", "vc3"), hops=3))
    plan = PlacementBenchmark.of_pairs(replace(openmpi, program="osu_latency"), pairs)
    assert list(due(plan)) == ["rail0.hops1", "rail0.hops3", "rail1.hops1", "rail1.hops3"]
    assert (plan.nodes, plan.num_nodes) == (("vc1", "vc2", "vc3"), 3)
    what, reference = ratio(plan.relations[0])
    assert (what.over.legs, what.under.legs) == (("rail0.hops3",), ("rail0.hops1",))
    assert (what.over.quantity, reference.value) == ("latency", pytest.approx(1.4))
    what, reference = ratio(PlacementBenchmark.of_pairs(openmpi, pairs).relations[0])
    assert (what.over.quantity, reference.lower) == ("bandwidth", 0.9)


def test_a_reference_may_be_for_one_distance(openmpi: LegPlanner) -> None:
    spec = ReferenceSpec(
        quantity="latency", value="1.1 us", fabric="eth0", hops=1, origin="measured in March"
    )
    far = spec.model_copy(update={"hops": 3, "value": "1.9 us"})
    site = replace(openmpi.site, references=(*openmpi.site.references, spec, far))
    pairs = (Pair(nodes=("a", "b"), hops=1), Pair(nodes=("a", "c"), hops=3))
    placed = replace(openmpi, site=site, program="osu_latency")
    near, farther = PlacementBenchmark.of_pairs(placed, pairs).legs[:2]
    assert near.references["latency"].value == pytest.approx(1.1)
    assert farther.references["latency"].value == pytest.approx(1.9)
    assert placed.leg(("rail0",)).references["latency"].value == pytest.approx(1000.0)


def test_the_far_socket_is_a_witness_and_the_near_one_is_judged(openmpi: LegPlanner) -> None:
    plan = plan_of(LocalityBenchmark, openmpi)
    near, far, launched = (due(plan)[f"rail0.{each}"] for each in ("near", "far", AS_LAUNCHED))
    assert near.commands[0][:4] == ("bash", "bind.sh", "near", "rail0")
    assert near.ask == far.ask == ("two_sockets", "rail0")
    assert (near.tolerance, far.tolerance) == (openmpi.site.spec.tolerance, 0.9)
    assert near.environment["SLURM_CPU_BIND"] == "none"
    assert "SLURM_CPU_BIND" not in launched.environment
    what, _ = ratio(plan.relations[0])
    assert what.held == {"rail0.near": "near", "rail0.far": "far"}
    assert list(what.names) == ["rail0.near", "rail0.far", "rail0.as_launched"]


def test_open_mpi_4_under_its_own_launcher_is_also_tried_by_distance(openmpi: LegPlanner) -> None:
    stated = {"version": "4.1", "launcher": "mpirun"}
    own = planner(openmpi.site, "osu-mpi4py", "osu_bw", "openmpi5", stated=stated)
    leg = due(plan_of(LocalityBenchmark, own))["rail0.map_by_dist"]
    assert leg.environment["OMPI_MCA_rmaps_base_mapping_policy"] == "dist:span"
    assert leg.environment["OMPI_MCA_rmaps_dist_device"] == "rail0"
    assert leg.commands[0][2] == AS_LAUNCHED, "we do not move its ranks"


def cells(planner: LegPlanner) -> dict[str, Leg]:
    return due(plan_of(RailMatrix, planner))


def test_a_cell_gives_each_node_its_own_interface(openmpi: LegPlanner) -> None:
    leg = cells(openmpi)["rail0-rail1"]
    assert (leg.rails, leg.node_rails) == (("rail0-rail1",), ("rail0", "rail1"))
    settings = [f"OMPI_MCA_btl_tcp_if_include={rail}" for rail in ("rail0", "rail1")]
    assert leg.commands[0][1:5] == ("each_node.sh", *settings, "--")
    assert "OMPI_MCA_btl_tcp_if_include" not in leg.environment
    assert leg.ask == ("reach", "rail0", "rail1")
    assert cells(openmpi)["rail1"].node_rails == ()


def test_a_question_comes_before_the_leg_and_survives_the_plan_file(
    openmpi: LegPlanner, tmp_path: Path
) -> None:
    legs = tuple(cells(openmpi).values())
    write_plan(tmp_path, legs)
    assert read_plan(tmp_path).legs == legs
    script = render_script(legs, launch="srun -n 2", judge="true", leg_seconds_limit=30)
    function = script[script.index("leg_rail0_rail1()") :].split("\n}\n")[0]
    assert function.index('ask.sh" reach rail0 rail1 || return') < function.index("means_nothing")
    assert function.index("means_nothing") < function.index("rank.sh")
    assert "ask.sh" not in script[script.index("leg_rail0()") :].split("\n}\n")[0]


def test_interfaces_of_two_names_are_one_path() -> None:
    samples = [
        CounterSample(node=node, interface=rail, before={}, after={})
        for node in ("a", "b")
        for rail in ("rail0", "rail1")
    ]
    ranks = (Rank(rank=0, node="b"), Rank(rank=1, node="a"))
    evidence = as_one_path(Evidence(ranks=ranks, samples=tuple(samples)), "x", ("rail0", "rail1"))
    named = {(each.node, each.interface) for each in evidence.samples}
    assert named == {("b", "x"), ("b", "rail1"), ("a", "x"), ("a", "rail0")}


@pytest.mark.parametrize(
    ("program", "quantity", "over", "bound"),
    [("osu_latency", "latency", Pick.LARGEST, 3.0), ("osu_bw", "bandwidth", Pick.SMALLEST, 0.7)],
)
def test_like_rails_are_held_against_each_other_without_another_leg(
    openmpi: LegPlanner, program: str, quantity: str, over: Pick, bound: float
) -> None:
    """A rail 50 times slower than its twin passed: the site's bound was 2 ms."""
    partition = openmpi.partition.model_copy(update={"oversubscribed": False})
    own = replace(openmpi, program=program, partition=partition)
    plan = plan_of(PairBenchmark, own, net_paths="each", one_way=True)
    assert list(due(plan)) == ["rail0", "rail1", "rail0.back", "rail1.back"]
    (twins,) = plan.relations
    what, reference = ratio(twins)
    assert (twins.legs, twins.rails, twins.turns) == (("rail0", "rail1"), ("rail0", "rail1"), {})
    assert (what.over.quantity, what.over.pick) == (quantity, over)
    assert (reference.upper or reference.lower) == pytest.approx(bound)


def test_ranks_that_share_cores_may_wait_longer_and_rails_of_two_kinds_are_no_twins(
    openmpi: LegPlanner,
) -> None:
    own = replace(openmpi, program="osu_latency")
    assert own.partition.oversubscribed
    (twins,) = with_twins(own, own.plan("each")).relations
    assert ratio(twins)[1].upper == pytest.approx(12.0)
    unlike = [own.spec.rails[0], own.spec.rails[1].model_copy(update={"link": "10GbE"})]
    fabric = own.spec.model_copy(update={"rails": unlike, "shaper": None})
    own = replace(own, site=replace(own.site, fabrics=(fabric,)))
    assert with_twins(own, own.plan("each")).relations == ()
    assert Plan(legs=(own.leg(("rail0",)),)).nodes == ()


# Without MPI.


def test_a_port_is_measured_at_all_sizes_and_its_bytes_are_foretold() -> None:
    leg = peer_leg(planner("fdr-lab", "perftest", "ib_write_bw"), "mlx4_0:1")
    assert leg.commands[0][:6] == ("bash", "peer.sh", "10", "mlx4_0:1", "ib_write_bw", "-a")
    assert leg.required == ("bandwidth_8MiB",)
    assert leg.traffic.exact is not None
    assert leg.traffic.exact[1] == 0
    assert leg.references == {}, "what a site says of OSU"
    assert leg.fabric is not None
    assert (leg.fabric.link.name, leg.fabric.num_rails) == ("FDR 4x", 1)
    latency = peer_leg(planner("fdr-lab", "perftest", "ib_write_lat"), "mlx4_0:2")
    assert latency.required == ("latency_2B",)


@pytest.mark.parametrize(
    ("named", "measured", "expected_us"),
    [
        ("none", "ib_write_lat", 1.2),
        ("none", "ib_read_lat", 2.4),
        ("ib_read_lat", "ib_read_lat", 1.9),
    ],
)
def test_a_latency_of_the_site_is_one_way_unless_it_names_the_read(
    monkeypatch: pytest.MonkeyPatch, named: str, measured: str, expected_us: float
) -> None:
    def references_for(self: Site, **where: object) -> dict[str, Reference]:
        return {"latency": at_most(1.9 if where["program"] == named else 1.2, origin="site")}

    monkeypatch.setattr(Site, "references_for", references_for)
    leg = peer_leg(planner("fdr-lab", "perftest", measured), "mlx4_0:1")
    assert leg.references["latency"].value == pytest.approx(expected_us)
    assert leg.references["latency"].upper == pytest.approx(1.2 * expected_us)


def test_one_flow_is_not_granted_the_connections_of_an_mpi() -> None:
    """Open MPI's two connections may take twice a limit per flow, iperf3's one may not."""
    two = planner("vcluster", "iperf3", "iperf3", "openmpi5")
    assert two.stack.spec.connections == 2
    leg = peer_leg(two, "rail1", variant="flows8", streams=8, environment={"FRAME": "1500"})
    assert (leg.name, leg.commands[0][-2:]) == ("rail1.flows8", ("-P", "8"))
    assert leg.fabric is not None
    assert leg.fabric.num_flows == 1
    assert (leg.traffic.exact, leg.required) == (None, ("bandwidth",))
    assert leg.environment == {"FRAME": "1500"}, "no path is told to what has no MPI"
    after = with_links(two, 4)
    assert after.stack.spec.connections == 4
    assert replace(after, stack=two.stack) == two


@pytest.mark.parametrize(
    ("site", "suite", "stack", "words"),
    [
        ("vcluster", "perftest", None, "measures verbs, which fabric eth0 does not speak"),
        ("fdr-lab", "iperf3", None, "over which TCP has no address"),
        ("vcluster", "iperf3", "mpich5", "it runs once on this partition"),
        ("local", "iperf3", None, "measures between two nodes"),
    ],
)
def test_what_runs_without_mpi_runs_once_and_where_it_belongs(
    site: str, suite: str, stack: str | None, words: str
) -> None:
    assert words in why_not(PeerBenchmark, planner(site, suite, suite, stack))
    assert why_not(PeerBenchmark, planner("vcluster", "iperf3", "iperf3")) == ""
