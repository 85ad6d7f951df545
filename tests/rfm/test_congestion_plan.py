"""What is planned of congestion: who measures beside which load, and what a fair share is."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fabricproof.core.units import natural
from fabricproof.job.leg import read_plan, write_plan
from fabricproof.job.script import render_script
from fabricproof.nodes.topology import Topology, parse_topology
from fabricproof.rfm.legs.congestion import congestion_plan, minutes_of_rounds
from fabricproof.rfm.legs.leg import LegPlanner
from fabricproof.rfm.load_places import LoadPlaces, draw_places
from fabricproof.site import load_site
from fabricproof.site.schema import ReferenceSpec
from fabricproof.stacks.catalog import ROOT_VARIABLE
from fabricproof.stacks.environment import ports_folder

SITES = Path(__file__).parents[2] / "site-configs"


def tree(leaves: int = 4, per_leaf: int = 4) -> Topology:
    rows = [
        f"SwitchName=leaf{number + 1} Level=0 LinkSpeed=1 "
        f"Nodes=vc[{number * per_leaf + 1}-{(number + 1) * per_leaf}]"
        for number in range(leaves)
    ]
    rows.append(
        f"SwitchName=spine Level=1 LinkSpeed=1 Nodes=vc[1-{leaves * per_leaf}] "
        f"Switches=leaf[1-{leaves}]"
    )
    return parse_topology("\n".join(rows) + "\n")


def drawn(topology: Topology | None = None, **changes: int) -> LoadPlaces:
    topology = topology or tree()
    wanted = {"most_nodes": 16, "spines": 1, "seed": 1, **changes}
    places = draw_places(topology, topology.nodes, **wanted)
    assert isinstance(places, LoadPlaces), places
    return places


@given(seed=st.integers(0, 10**6), leaves=st.integers(2, 6), per_leaf=st.integers(2, 5))
def test_the_loads_share_the_pairs_leaves_or_none_of_them(
    seed: int, leaves: int, per_leaf: int
) -> None:
    topology = tree(leaves, per_leaf)
    places = drawn(topology, seed=seed, most_nodes=100)
    ends = [topology.leaf(node) for node in places.pair]
    assert ends[0] != ends[1]
    assert ("apart" in places.loads) == (leaves >= 4)
    for load in places.loads.values():
        assert not {*load.nodes} & {*places.group}
        assert {*load.senders} <= {*load.nodes}
    for name in {"shared", "apart"} & {*places.loads}:
        load = places.loads[name]
        half = len(load.nodes) // 2
        assert load.senders == load.nodes[:half]
        assert all(natural(one) < natural(other) for one, other in pairwise(load.nodes))
        sides = {topology.leaf(node) for node in load.nodes[:half]}
        sides |= {topology.leaf(node) for node in load.nodes[half:]}
        assert len(sides) == 2
        assert ({*ends} == sides) if name == "shared" else not {*ends} & sides
    # Of four pairs or more one is kept out of the loads: it measures with the pair.
    assert places.loads["shared"].law == (per_leaf - 1 if per_leaf > 3 else per_leaf)


@given(seed=st.integers(0, 10**6), leaves=st.integers(2, 6), per_leaf=st.integers(3, 5))
def test_an_incast_ends_beside_the_pair_and_comes_from_elsewhere(
    seed: int, leaves: int, per_leaf: int
) -> None:
    topology = tree(leaves, per_leaf)
    places = drawn(topology, seed=seed, most_nodes=100)
    assert ("incast" in places.loads) == (leaves > 2)
    if leaves > 2:
        root, *senders = places.loads["incast"].nodes
        there = topology.leaf(places.pair[1])
        assert topology.leaf(root) == there
        assert there not in {topology.leaf(node) for node in senders}
        # Rank 0, to which a gather brings all, is the first by name.
        assert all(natural(root) < natural(node) for node in senders)
        assert places.loads["incast"].law == len(senders) + 1
    else:
        assert any(each.startswith("no load incast: no two nodes") for each in places.words)


def test_an_alltoall_is_of_all_nodes_that_are_any_load() -> None:
    places = drawn()
    others = {node for name in ("shared", "apart", "incast") for node in places.loads[name].nodes}
    load = places.loads["alltoall"]
    assert (*load.nodes,) == (*sorted(others, key=natural),)
    # On an uplink meet two of each leaf, and with them the pair's own node.
    assert (load.share, load.law) == (1 / 3, None)
    assert "alltoall" not in drawn(tree(2, 2)).loads


def test_the_group_is_the_pair_and_one_more_of_each_leaf_where_enough_are_left() -> None:
    topology = tree()
    places = drawn(topology)
    assert {*places.pair} < {*places.group}
    leaves = sorted(topology.leaf(node) for node in places.group)
    assert leaves == sorted(2 * [topology.leaf(node) for node in places.pair])
    assert {*drawn(tree(4, 3)).group} == {*drawn(tree(4, 3)).pair}


def test_a_seed_draws_the_same_nodes_and_another_one_others() -> None:
    assert drawn(seed=7) == drawn(seed=7)
    assert len({drawn(seed=seed).pair for seed in range(10)}) > 3
    assert drawn(seed=7).words[0].startswith("drawn with seed 7: vc")


def test_no_more_nodes_are_taken_than_a_job_may_have() -> None:
    for most in range(4, 17):
        places = drawn(most_nodes=most)
        nodes = {*places.group, *(n for load in places.loads.values() for n in load.nodes)}
        assert len(nodes) <= most


@pytest.mark.parametrize(("spines", "most"), [(1, 3.0), (2, 2.0), (4, 1.0), (8, 1.0)])
def test_the_law_is_the_flows_of_the_busiest_link(spines: int, most: float) -> None:
    laws = [drawn(spines=spines, seed=seed).loads["shared"].law or 0 for seed in range(10)]
    assert max(laws) == most
    # Three flows on two uplinks: one and a half each, or two where two are sent the same way.
    assert {*laws} <= {3 / spines, most, 1.0}


@pytest.mark.parametrize(("spines", "most", "least"), [(1, 3.0, 3.0), (2, 3.0, 1.5), (8, 1.0, 1.0)])
def test_an_incast_takes_one_uplink_where_routing_goes_by_destination(
    spines: int, most: float, least: float
) -> None:
    laws = [drawn(spines=spines, seed=seed).loads["incast"].law or 0 for seed in range(10)]
    assert (max(laws), min(laws)) == (most, least)


def test_no_load_is_due_more_than_its_links_leave_it() -> None:
    loads = drawn().loads
    assert {name: each.share for name, each in loads.items()} == {
        "shared": 1 / 3,
        "apart": 1 / 2,
        "incast": 1 / 3,
        "alltoall": 1 / 3,
    }
    # However many uplinks there are, two senders share the link of the node they send to.
    assert drawn(spines=8).loads["incast"].share == 1 / 2


def test_without_spines_there_is_no_law_and_it_is_said() -> None:
    places = drawn(spines=0)
    assert {each.law for each in places.loads.values()} == {None}
    assert places.words[-1].startswith("nobody says how many uplinks a leaf has")


@pytest.mark.parametrize(
    ("topology", "said"),
    [(tree(1, 8), "no two leaves"), (tree(8, 1), "no two leaves"), (parse_topology(""), "no tree")],
)
def test_where_nobody_can_share_a_link_it_is_said(topology: Topology, said: str) -> None:
    found = draw_places(topology, topology.nodes, most_nodes=16, spines=1, seed=1)
    assert isinstance(found, str)
    assert said in found


@pytest.fixture
def planner(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> LegPlanner:
    monkeypatch.setenv(ROOT_VARIABLE, str(tmp_path))
    for stack in ("openmpi5", "mpich5", "intelmpi"):
        folder = ports_folder(tmp_path / stack)
        folder.mkdir(parents=True)
        for program in ("bw", "latency", "multi_lat", "gather", "alltoall"):
            (folder / f"osu_{program}.py").touch()
    (tmp_path / "intelmpi" / "bin").mkdir()
    (tmp_path / "intelmpi" / "bin" / "IMB-MPI1").touch()
    site = load_site(str(SITES / "vcluster"))
    return LegPlanner(
        site=site,
        partition=site.partitions[0].model_copy(update={"num_nodes": 16}),
        stack=site.stack("openmpi5"),
        fabric="eth0",
        suite="osu-mpi4py",
        program="osu_bw",
    )


def with_stack(planner: LegPlanner, name: str) -> LegPlanner:
    return replace(planner, stack=planner.site.stack(name))


def test_over_each_rail_a_pair_is_measured_alone_and_beside_each_load(planner: LegPlanner) -> None:
    places = drawn()
    plan = congestion_plan(planner, places)
    names = [leg.name for leg in plan.legs if not leg.in_turn]
    asides = ("alone", "shared", "apart", "incast", "alltoall")
    assert names[:10] == [
        f"rail0.{quantity}.{aside}" for quantity in ("bandwidth", "latency") for aside in asides
    ]
    assert {leg.nodes for leg in plan.legs} == {places.pair}
    loaded = plan.legs[1].load
    assert loaded is not None
    assert (loaded.nodes, loaded.num_nodes) == (places.loads["shared"].nodes, 4)
    rounds = int(loaded.commands[0][-1].split(":")[1])
    assert rounds * 2**20 / 23.4e6 == pytest.approx(600, rel=0.1)
    assert plan.legs[1].planned_seconds == 3 + 3 * planner.partition.leg_seconds
    relation = plan.relations[0]
    assert relation.owns == (*names[1:10],)
    assert [*relation.settings["judged"]] == [
        f"bandwidth_impact_{aside}" for aside in ("shared", "apart", "incast")
    ]
    shared = relation.settings["judged"]["bandwidth_impact_shared"]["reference"]
    assert (shared["value"], shared["upper"]) == (3.0, 4.5)
    assert plan.num_nodes == 10


def test_loads_of_a_collective_are_its_largest_message_for_longer_than_a_leg(
    planner: LegPlanner,
) -> None:
    legs = {leg.name: leg for leg in congestion_plan(planner, drawn()).legs}
    for aside, program, moved in (("incast", "osu_gather", 2), ("alltoall", "osu_alltoall", 7)):
        load = legs[f"rail0.bandwidth.{aside}"].load
        assert load is not None
        assert (load.program, load.nodes) == (program, drawn().loads[aside].nodes)
        size, rounds, *_ = load.commands[0][-1].split(":")
        assert size == str(2**20)
        # At the rails' own rate, which nothing exceeds.
        assert int(rounds) * moved * 2**20 / 23.4e6 > 500
    impacts = congestion_plan(planner, drawn()).relations[0].settings["impacts"]
    incast = impacts["bandwidth_impact_incast"]
    assert incast["senders"] == [*drawn().loads["incast"].senders]
    assert incast["due_mb_s"] == pytest.approx(23.5 / 3, rel=0.02)
    assert [name for name, each in impacts.items() if each["same_link"]] == [
        "bandwidth_impact_shared",
        "bandwidth_impact_incast",
    ]
    # The ports' pairs take turns: each sends half of the time.
    assert impacts["bandwidth_impact_shared"]["due_mb_s"] == incast["due_mb_s"] / 2


def test_a_collective_of_the_group_is_a_victim_where_the_stack_has_one(planner: LegPlanner) -> None:
    places = drawn()
    plan = congestion_plan(with_stack(planner, "intelmpi"), places)
    legs = {leg.name: leg for leg in plan.legs if not leg.in_turn}
    alone, beside = legs["rail0.allreduce.alone"], legs["rail0.allreduce.incast"]
    assert (alone.suite, alone.program, alone.nodes) == ("imb", "Allreduce", places.group)
    assert (alone.expected_sizes, alone.load) == ((4, 8, 16), None)
    # Its path must show, and no model of a collective judges it: it is held against itself.
    assert alone.least_bytes is not None
    assert alone.channel_leg == ""
    assert beside == replace(
        alone,
        name=beside.name,
        load=beside.load,
        limit_seconds=beside.limit_seconds,
        planned_seconds=beside.planned_seconds,
    )
    (relation, *_) = plan.relations
    assert "rail0.allreduce.alone" in relation.owns
    assert relation.settings["impacts"]["allreduce_impact_shared"]["quantity"] == "latency"
    assert not [each for each in relation.settings["judged"] if each.startswith("allreduce")]
    assert relation.settings["skipped"] == {}


def test_a_stack_without_that_collective_skips_it_and_says_why(planner: LegPlanner) -> None:
    plan = congestion_plan(planner, drawn())
    assert not [leg for leg in plan.legs if "allreduce" in leg.name]
    (label, why), *more = plan.relations[0].settings["skipped"].items()
    assert (label, more) == ("allreduce_impact", [])
    assert "do not run on Open MPI" in why


def test_a_stack_without_a_program_of_a_load_measures_beside_the_others(
    planner: LegPlanner,
) -> None:
    left_out = {"osu_gather": "it hangs", "Gather": "it hangs, too"}
    stack = planner.stack.model_copy(update={"left_out": left_out})
    plan = congestion_plan(replace(planner, stack=stack), drawn())
    assert not [leg for leg in plan.legs if leg.name.endswith(".incast")]
    settings = plan.relations[0].settings
    said = [each for each in settings["words"] if "incast" in each]
    assert said == ["no load incast: left out by the site: it hangs, too"]
    assert [*settings["judged"]] == ["bandwidth_impact_shared", "bandwidth_impact_apart"]


def test_a_reference_judges_the_collective_and_nodes_of_their_own_do_apart(
    planner: LegPlanner,
) -> None:
    planner = with_stack(planner, "intelmpi")
    stated = ReferenceSpec(
        quantity="allreduce_impact_incast", value="9 x", fabric="eth0", origin="ten nights of may"
    )
    site = replace(planner.site, references=(*planner.site.references, stated))
    partition = planner.partition.model_copy(update={"oversubscribed": False})
    own = replace(planner, site=site, partition=partition)
    judged = congestion_plan(own, drawn()).relations[0].settings["judged"]
    assert judged["allreduce_impact_incast"]["reference"]["value"] == 9.0
    assert judged["allreduce_impact_apart"]["reference"]["upper"] == 1.25
    assert "allreduce_impact_shared" not in judged


def test_latencies_are_the_kernels_and_slow_messages_are_told_of_the_same_legs(
    planner: LegPlanner,
) -> None:
    plan = congestion_plan(planner, drawn())
    alone = next(leg for leg in plan.legs if leg.name == "rail0.latency.alone")
    assert (alone.suite, alone.program) == ("fabricproof", "pingpong")
    assert alone.expected_sizes == (1, 2, 4)
    assert alone.commands[0][:2] == ("bash", "kernel.sh")
    assert alone.environment["FABRICPROOF_PROGRAM"] == "./kernel"
    impacts = plan.relations[0].settings["impacts"]
    tail = impacts["latency_p99_impact_shared"]
    assert (tail["loaded"], tail["column"]) == ("rail0.latency.shared", "latency_p99_us")
    assert {**impacts["latency_impact_shared"], "column": "latency_p99_us"} == tail


def test_nodes_of_their_own_judge_a_latency_beside_a_load_elsewhere(planner: LegPlanner) -> None:
    partition = planner.partition.model_copy(update={"oversubscribed": False})
    plan = congestion_plan(replace(planner, partition=partition), drawn())
    judged = plan.relations[0].settings["judged"]
    assert judged["latency_impact_apart"]["reference"]["upper"] == 1.25
    assert "latency_impact_shared" not in judged
    # No law holds for slow messages: they are slow by chance.
    assert not [each for each in judged if "_p9" in each]


def test_what_a_site_has_measured_stands_before_the_law(planner: LegPlanner) -> None:
    stated = ReferenceSpec(
        quantity="latency_impact_shared", value="30 x", fabric="eth0", origin="ten nights of may"
    )
    site = replace(planner.site, references=(*planner.site.references, stated))
    judged = congestion_plan(replace(planner, site=site), drawn()).relations[0].settings["judged"]
    reference = judged["latency_impact_shared"]["reference"]
    assert (reference["value"], reference["upper"]) == (30.0, 36.0)
    assert "ten nights of may" in reference["origin"]


def test_a_reference_judges_slow_messages(planner: LegPlanner) -> None:
    stated = ReferenceSpec(
        quantity="latency_p99_impact_shared", value="30 x", fabric="eth0", origin="ten nights"
    )
    site = replace(planner.site, references=(*planner.site.references, stated))
    judged = congestion_plan(replace(planner, site=site), drawn()).relations[0].settings["judged"]
    assert judged["latency_p99_impact_shared"]["reference"]["upper"] == 36.0


def test_without_any_law_nothing_is_measured(planner: LegPlanner) -> None:
    places = drawn(tree(2, 4), spines=0)
    assert congestion_plan(planner, places).reason.startswith("nobody says how many uplinks")
    told = congestion_plan(planner, drawn(spines=0)).relations[0].settings["judged"]
    assert [*told] == ["bandwidth_impact_apart"]


def test_a_stack_without_a_program_for_many_pairs_says_so(planner: LegPlanner) -> None:
    stack = planner.stack.model_copy(update={"left_out": {"osu_multi_lat": "it hangs"}})
    plan = congestion_plan(replace(planner, stack=stack), drawn())
    assert (plan.legs, plan.reason) == ((), "left out by the site: it hangs")


def test_the_script_starts_the_load_before_the_leg(planner: LegPlanner, tmp_path: Path) -> None:
    plan = congestion_plan(planner, drawn())
    write_plan(tmp_path, plan.legs, plan.relations)
    assert read_plan(tmp_path) == plan
    text = render_script(plan.legs, launch="srun", second_look="true", leg_seconds_limit=30)
    begins = text.index("leg_rail0_bandwidth_shared() {")
    body = text[begins : text.index("\n}\n", begins)]
    assert body.splitlines()[1] == "    beside load_rail0_bandwidth_shared 4 || return"
    assert body.endswith("by_itself_again $?")
    assert "FABRICPROOF_BESIDE=1" in text[text.index("load_rail0_bandwidth_shared() {") : begins]


def test_a_job_has_time_for_as_many_rounds_as_make_a_number_red(planner: LegPlanner) -> None:
    legs = congestion_plan(planner, drawn()).legs
    turns = [leg for leg in legs if leg.in_turn]
    assert len(turns) == len(legs) / 2 == 20
    seconds = sum(2 + (leg.planned_seconds or 2) for leg in turns)
    assert minutes_of_rounds(legs, 2.0) == math.ceil(7 * seconds / 60)
    # More loads, more time: none of them comes out of a limit made for other checks.
    assert minutes_of_rounds(legs, 2.0) > planner.partition.job_minutes
