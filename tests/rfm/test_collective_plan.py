"""What a check of a collective plans: layouts as legs of one job, beside a pair's own latency."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from fabricproof.job.leg import Plan
from fabricproof.rfm.families.collectives import layouts_of, node_counts, plan_collective
from fabricproof.rfm.legs.leg import LegPlanner
from fabricproof.site import Site, load_site
from fabricproof.stacks.environment import ROOT_VARIABLE
from fabricproof.stacks.stack import resolve
from fabricproof.stacks.wheels import ports_folder

SITES = Path(__file__).parents[2] / "site-configs"


@pytest.fixture
def vcluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Site:
    """The site of the virtual cluster, with stacks that are there only in name."""
    monkeypatch.setenv(ROOT_VARIABLE, str(tmp_path))
    for stack in ("openmpi5", "mpich5", "intelmpi"):
        folder = ports_folder(tmp_path / stack)
        folder.mkdir(parents=True)
        for program in ("osu_bcast", "osu_barrier", "osu_latency"):
            (folder / f"{program}.py").touch()
    (tmp_path / "intelmpi" / "bin").mkdir()
    for binary in ("IMB-MPI1", "IMB-NBC"):
        (tmp_path / "intelmpi" / "bin" / binary).touch()
    return load_site(str(SITES / "vcluster"))


def planned(
    site: Site,
    suite: str,
    program: str,
    *,
    stack: str = "mpich5",
    rails: tuple[str, ...] = ("rail0",),
    **partition: object,
) -> Plan:
    changed = site.partitions[0].model_copy(
        update={"num_nodes": 4, "ranks_per_node": [1, 2], **partition}
    )
    planner = LegPlanner(
        site=site,
        partition=changed,
        stack=resolve(site, changed, site.stack(stack)),
        fabric="eth0",
        suite=suite,
        program=program,
    )
    return plan_collective(planner, rails)


@pytest.mark.parametrize(
    ("most", "counts"), [(1, ()), (2, (2,)), (4, (2, 4)), (6, (2, 4, 6)), (16, (2, 4, 8, 16))]
)
def test_nodes_double_up_to_all(most: int, counts: tuple[int, ...]) -> None:
    assert node_counts(most) == counts


def test_every_layout_is_a_leg_and_the_pair_comes_first(vcluster: Site) -> None:
    plan = planned(vcluster, "osu-mpi4py", "osu_bcast")
    assert [leg.name for leg in plan.legs] == [
        "rail0.pair",
        "rail0.2x1",
        "rail0.4x1",
        "rail0.2x2",
        "rail0.4x2",
    ]
    assert (plan.num_nodes, plan.ranks_per_node) == (4, 2)
    pair, *collectives = plan.legs
    assert (pair.program, pair.num_ranks, pair.channel_leg) == ("osu_latency", 2, "")
    for leg in collectives:
        assert (leg.program, leg.channel_leg) == ("osu_bcast", "rail0.pair")
        assert leg.environment == pair.environment
        assert leg.traffic.at_least
        assert len(leg.traffic.at_least) == leg.num_nodes
        assert leg.traffic.exact is None
        assert leg.required == ("latency_4B", "latency_64KiB")
        assert leg.expected_sizes[0] == 4
        assert leg.model_factor == vcluster.partitions[0].collective_factor
        assert "latency" not in leg.references, "a pair's"


def test_the_sites_latency_of_a_pair_is_the_least_alpha(vcluster: Site) -> None:
    plan = planned(vcluster, "osu-mpi4py", "osu_bcast")
    assert {leg.stated_alpha_us for leg in plan.legs[1:]} == {1000.0}


def test_a_barrier_is_shown_by_its_packets(vcluster: Site) -> None:
    port = planned(vcluster, "osu-mpi4py", "osu_barrier").legs[-1]
    imb = planned(vcluster, "imb", "Barrier").legs[-1]
    assert (port.expected_sizes, imb.expected_sizes) == ((0,), ())
    for leg in (port, imb):
        assert leg.required == ("latency",)
        assert [packets > 0 for *_, packets in leg.traffic.at_least] == [True] * 4


def test_the_pair_is_measured_by_the_collectives_own_suite(vcluster: Site, tmp_path: Path) -> None:
    """One package makes all numbers of a job: else the stack would count as rebuilt in the run."""
    assert planned(vcluster, "imb", "Iallreduce").legs[0].program == "PingPong"
    (ports_folder(tmp_path / "mpich5") / "osu_latency.py").unlink()
    assert planned(vcluster, "imb", "Iallreduce").legs[0].program == "PingPong"


def test_a_stack_that_measures_no_pair_has_no_collective(vcluster: Site) -> None:
    bare = replace(
        vcluster,
        stacks=tuple(
            each.model_copy(update={"provisioned": False, "suites": {}}) for each in vcluster.stacks
        ),
    )
    planner = LegPlanner(
        site=bare,
        partition=bare.partitions[0].model_copy(update={"num_nodes": 4}),
        stack=resolve(
            bare, bare.partitions[0].model_copy(update={"num_nodes": 4}), bare.stack("mpich5")
        ),
        fabric="eth0",
        suite="imb",
        program="Bcast",
    )
    plan = plan_collective(planner, ("rail0",))
    assert plan.legs == ()
    assert plan.reason.startswith("nothing says what a message costs here")


def test_one_node_has_no_fabric_between(vcluster: Site) -> None:
    for changed in ({"num_nodes": 1}, {"same_node": True}):
        plan = planned(vcluster, "osu-mpi4py", "osu_bcast", **changed)
        assert plan.legs == ()
        assert "one node" in plan.reason


def test_all_rails_are_refused_where_the_stack_has_no_way_to(vcluster: Site) -> None:
    rails = ("rail0", "rail1")
    assert "libfabric" in planned(vcluster, "imb", "Bcast", stack="intelmpi", rails=rails).reason
    plan = planned(vcluster, "osu-mpi4py", "osu_bcast", stack="openmpi5", rails=rails)
    assert plan.legs[-1].name == "rail0+rail1.4x2"


def test_layouts_follow_the_partition(vcluster: Site) -> None:
    partition = vcluster.partitions[0].model_copy(update={"num_nodes": 3, "ranks_per_node": [8]})
    assert [(each.num_nodes, each.ranks_per_node) for each in layouts_of(partition)] == [
        (2, 8),
        (3, 8),
    ]
