"""What is planned of congestion: who measures beside whom, and what a share of a link is."""

from __future__ import annotations

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
from fabricproof.rfm.legs.congestion import LoadPlaces, congestion_plan, draw_places
from fabricproof.rfm.legs.leg import LegPlanner
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
def test_the_load_shares_the_pairs_leaves_or_none_of_them(
    seed: int, leaves: int, per_leaf: int
) -> None:
    topology = tree(leaves, per_leaf)
    places = drawn(topology, seed=seed, most_nodes=100)
    ends = [topology.leaf(node) for node in places.pair]
    assert ends[0] != ends[1]
    assert ("apart" in places.loads) == (leaves >= 4)
    for name, nodes in places.loads.items():
        assert not {*nodes} & {*places.pair}
        half = len(nodes) // 2
        assert all(natural(one) < natural(other) for one, other in pairwise(nodes))
        sides = {topology.leaf(node) for node in nodes[:half]}
        sides |= {topology.leaf(node) for node in nodes[half:]}
        assert len(sides) == 2
        assert ({*ends} == sides) if name == "shared" else not {*ends} & sides
    assert places.law == per_leaf


def test_a_seed_draws_the_same_nodes_and_another_one_others() -> None:
    assert drawn(seed=7) == drawn(seed=7)
    assert len({drawn(seed=seed).pair for seed in range(10)}) > 3
    assert drawn(seed=7).words[0].startswith("drawn with seed 7: vc")


def test_no_more_nodes_are_taken_than_a_job_may_have() -> None:
    for most in range(4, 17):
        places = drawn(most_nodes=most)
        nodes = {*places.pair, *(node for load in places.loads.values() for node in load)}
        assert len(nodes) <= most


@pytest.mark.parametrize(("spines", "laws"), [(1, {4.0}), (2, {2.0}), (4, {1.0}), (8, {1.0})])
def test_the_law_is_the_flows_of_the_busiest_link(spines: int, laws: set[float]) -> None:
    assert {drawn(spines=spines, seed=seed).law for seed in range(10)} == laws


def test_without_spines_there_is_no_law_and_it_is_said() -> None:
    places = drawn(spines=0)
    assert places.law is None
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
    folder = ports_folder(tmp_path / "openmpi5")
    folder.mkdir(parents=True)
    for program in ("osu_bw", "osu_multi_lat"):
        (folder / f"{program}.py").touch()
    site = load_site(str(SITES / "vcluster"))
    return LegPlanner(
        site=site,
        partition=site.partitions[0].model_copy(update={"num_nodes": 16}),
        stack=site.stack("openmpi5"),
        fabric="eth0",
        suite="osu-mpi4py",
        program="osu_bw",
    )


def test_over_each_rail_a_pair_is_measured_alone_and_beside_each_load(planner: LegPlanner) -> None:
    places = drawn()
    plan = congestion_plan(planner, places)
    names = [leg.name for leg in plan.legs if not leg.in_turn]
    assert names[:6] == [
        *("rail0.bandwidth.alone", "rail0.bandwidth.shared", "rail0.bandwidth.apart"),
        *("rail0.latency.alone", "rail0.latency.shared", "rail0.latency.apart"),
    ]
    assert {leg.nodes for leg in plan.legs} == {places.pair}
    loaded = plan.legs[1].load
    assert loaded is not None
    assert (loaded.nodes, loaded.num_nodes) == (places.loads["shared"], 6)
    rounds = int(loaded.commands[0][-1].split(":")[1])
    assert rounds * 2**20 / 23.4e6 == pytest.approx(600, rel=0.1)
    assert plan.legs[1].planned_seconds == 3 + 4 * planner.partition.leg_seconds
    relation = plan.relations[0]
    assert relation.owns == (*names[1:3], *names[3:6])
    assert [*relation.settings["judged"]] == ["bandwidth_impact_shared", "bandwidth_impact_apart"]
    shared = relation.settings["judged"]["bandwidth_impact_shared"]["reference"]
    assert (shared["value"], shared["upper"]) == (4.0, 6.0)
    assert plan.num_nodes == 14


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
    assert body.splitlines()[1] == "    beside load_rail0_bandwidth_shared 6 || return"
    assert body.endswith("by_itself_again $?")
    assert "FABRICPROOF_BESIDE=1" in text[text.index("load_rail0_bandwidth_shared() {") : begins]
