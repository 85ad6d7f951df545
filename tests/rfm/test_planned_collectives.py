"""What is planned of all ranks at once: layouts, rings, algorithms in turn, campaigns."""

from __future__ import annotations

from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from plans import SITES, due, install_ports, plan_of, planner, ratio, why_not

from fabricproof.core.errors import UnavailableError
from fabricproof.core.measure import Verdict
from fabricproof.core.provenance import LegKey
from fabricproof.core.records import QuantityRecord
from fabricproof.job.leg import Plan, read_plan, write_plan
from fabricproof.job.relation import OwnChoice, owned_legs
from fabricproof.job.relations.judge import judge_ratio
from fabricproof.job.run import NODES_VARIABLE, LegResult, RunResult
from fabricproof.job.script import render_script
from fabricproof.nightly.confirm import LookColour, Role
from fabricproof.nightly.log import LegColour, states_of
from fabricproof.nightly.looks import LookAsked, look_at, reds_of
from fabricproof.pairs.campaign.nodes import Standing
from fabricproof.rfm.families import all_pairs
from fabricproof.rfm.families.collectives import (
    CollectiveBenchmark,
    RingBenchmark,
    RingPlacement,
    layouts_of,
)
from fabricproof.rfm.families.sweep import (
    FILES_VARIABLE,
    AlgorithmSweepBenchmark,
    why_no_comparison,
)
from fabricproof.rfm.legs.leg import LegPlanner
from fabricproof.rfm.staging import digest_of_program
from fabricproof.site import Site, load_site
from fabricproof.stacks.environment import ROOT_VARIABLE
from fabricproof.stacks.wheels import ports_folder

PROGRAMS = "osu_bcast osu_allgather osu_alltoall osu_barrier osu_latency"
PLANT = {"OMPI_MCA_coll_tuned_allgather_algorithm": "1"}


@pytest.fixture
def vcluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Site:
    """The site of the virtual cluster, with stacks that are there only in name."""
    monkeypatch.setenv(ROOT_VARIABLE, str(tmp_path))
    install_ports(tmp_path, "openmpi4", "openmpi5", "mpich5", "intelmpi", programs=PROGRAMS)
    (tmp_path / "intelmpi" / "bin").mkdir()
    for binary in ("IMB-MPI1", "IMB-NBC"):
        (tmp_path / "intelmpi" / "bin" / binary).touch()
    return load_site(str(SITES / "vcluster"))


def collective(
    site: Site,
    suite: str,
    program: str,
    stack: str = "mpich5",
    *,
    net_paths: str = "first",
    **changes: Any,
) -> Plan:
    changes = {"num_nodes": 4, "ranks_per_node": [1, 2], **changes}
    own = planner(site, suite, program, stack, **changes)
    return plan_of(CollectiveBenchmark, own, net_paths=net_paths)


@pytest.mark.parametrize(("most", "counts"), [(2, [2]), (6, [2, 4, 6]), (16, [2, 4, 8, 16])])
def test_nodes_double_up_to_all(vcluster: Site, most: int, counts: list[int]) -> None:
    changes = {"num_nodes": most, "ranks_per_node": [8]}
    layouts = layouts_of(vcluster.partitions[0].model_copy(update=changes))
    assert [(each.num_nodes, each.ranks_per_node) for each in layouts] == [(n, 8) for n in counts]


def test_every_layout_is_a_leg_and_the_pair_comes_first(vcluster: Site) -> None:
    plan = collective(vcluster, "osu-mpi4py", "osu_bcast")
    shapes = ["pair", "2x1", "4x1", "2x2", "4x2"]
    assert [leg.name for leg in plan.legs] == [f"rail0.{each}" for each in shapes]
    assert (plan.num_nodes, plan.ranks_per_node) == (4, 2)
    pair, *collectives = plan.legs
    assert (pair.program, pair.num_ranks, pair.channel_leg) == ("osu_latency", 2, "")
    for leg in collectives:
        assert (leg.program, leg.channel_leg) == ("osu_bcast", "rail0.pair")
        assert leg.environment == pair.environment
        assert len(leg.traffic.at_least) == leg.num_nodes
        assert leg.traffic.exact is None
        assert leg.required == ("latency_4B", "latency_64KiB")
        assert leg.model_factor == vcluster.partitions[0].collective_factor
        assert "latency" not in leg.references, "a pair's"
        assert leg.stated_alpha_us == 1000.0, "the site's latency of a pair is the least alpha"


def test_a_barrier_is_shown_by_its_packets(vcluster: Site) -> None:
    port = collective(vcluster, "osu-mpi4py", "osu_barrier").legs[-1]
    imb = collective(vcluster, "imb", "Barrier").legs[-1]
    assert (port.expected_sizes, imb.expected_sizes) == ((0,), ())
    for leg in (port, imb):
        assert leg.required == ("latency",)
        assert [packets > 0 for *_, packets in leg.traffic.at_least] == [True] * 4


def test_the_pair_is_measured_by_the_collectives_own_suite(vcluster: Site, tmp_path: Path) -> None:
    """One package makes all numbers of a job: else the stack would count as rebuilt in the run."""
    assert collective(vcluster, "imb", "Iallreduce").legs[0].program == "PingPong"
    (ports_folder(tmp_path / "mpich5") / "osu_latency.py").unlink()
    assert collective(vcluster, "imb", "Iallreduce").legs[0].program == "PingPong"


def test_no_legs_and_each_with_its_reason(vcluster: Site) -> None:
    for changed in ({"num_nodes": 1}, {"same_node": True}):
        plan = collective(vcluster, "osu-mpi4py", "osu_bcast", **changed)
        assert plan.legs == ()
        assert "one node" in plan.reason
    refused = collective(vcluster, "imb", "Bcast", "intelmpi", net_paths="all")
    assert "libfabric" in refused.reason
    plan = collective(vcluster, "osu-mpi4py", "osu_bcast", "openmpi5", net_paths="all")
    assert plan.legs[-1].name == "rail0+rail1.4x2"
    bare = {"provisioned": False, "suites": {}}
    own = planner(vcluster, "imb", "Bcast", "mpich5", stated=bare, num_nodes=4)
    plan = plan_of(CollectiveBenchmark, own, net_paths="first")
    assert plan.reason.startswith("nothing says what a message costs here")


# The rings of HPC Challenge.


@pytest.fixture
def hpcc(vcluster: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> LegPlanner:
    """The virtual cluster's distribution MPI with an hpcc, there only in name."""
    monkeypatch.setenv("PATH", str(tmp_path))
    (tmp_path / "hpcc").touch(mode=0o755)
    changes = {"num_nodes": 4, "ranks_per_node": [1, 2]}
    return planner(vcluster, "hpcc", "LatencyBandwidth", "openmpi4", **changes)


def test_all_nodes_over_one_rail_and_over_all(hpcc: LegPlanner, tmp_path: Path) -> None:
    plan = plan_of(RingBenchmark, hpcc, packed=True)
    assert list(due(plan)) == ["rail0.4x2", "rail0+rail1.4x2"]
    one = plan.legs[0]
    assert one.commands == (("bash", "hpcc.sh", str(tmp_path / "hpcc")),)
    (tmp_path / "hpcc").write_bytes(b"a build\n")
    assert digest_of_program(one) == sha256(b"a build\n").hexdigest()
    assert one.traffic.at_least == ((792_000_000, 792_000_000, 0),) * 4
    assert one.required == ("natural_ring_bandwidth", "random_ring_bandwidth")
    assert one.traffic.exact is None
    script = render_script(plan.legs, launch="srun", judge="true", leg_seconds_limit=30)
    assert one.limit_seconds > 120
    assert f"timeout -k 5 {one.limit_seconds} " in script


def test_two_rails_are_to_carry_twice_a_ring(hpcc: LegPlanner) -> None:
    """What the virtual cluster measured: 5 to 8 % below one rail, 14 to 17 % below two."""
    (relation,) = plan_of(RingBenchmark, hpcc, packed=False).relations
    what, reference = ratio(relation)
    assert relation.name == "rail0+rail1.4x1.over_one_rail"
    assert what.over.quantity == "random_ring_bandwidth"
    assert what.over.sizes == what.under.sizes == (None,)
    assert reference.lower == pytest.approx(1.6)
    assert judge_ratio("r", 2 * 0.83 / 0.95, what).verdict is Verdict.PASS
    assert judge_ratio("r", 1.5, what).verdict is Verdict.FAIL, "half a rail"
    alone = replace(hpcc, partition=hpcc.partition.model_copy(update={"num_nodes": 1}))
    plan = plan_of(RingBenchmark, alone, packed=False)
    assert (plan.legs, plan.reason) == ((), "num_nodes of partition compute is below 2")


def test_near_and_far_nodes_are_asked_for_by_name(hpcc: LegPlanner, tmp_path: Path) -> None:
    plan = RingPlacement.of_nodes(hpcc, ("vc1", "vc2"), ("vc1", "vc3"))
    assert {name: leg.nodes for name, leg in due(plan).items()} == {
        "rail0.2x1.contiguous": ("vc1", "vc2"),
        "rail0.2x1.spread": ("vc1", "vc3"),
    }
    what, reference = ratio(plan.relations[0])
    assert (what.over.legs, reference.lower) == (("rail0.2x1.spread",), pytest.approx(0.9))
    write_plan(tmp_path, plan.legs, plan.relations)
    assert read_plan(tmp_path).legs == plan.legs


# A collective's algorithms.


def sweep(
    site: Site,
    stack: str = "openmpi5",
    what: str = "allgather",
    environment: dict[str, str] | None = None,
    **changes: Any,
) -> Plan:
    changes = {"num_nodes": 4, "ranks_per_node": [1, 2], "sweep_smallest": "16KiB", **changes}
    stated = {"environment": {**site.stack(stack).environment, **(environment or {})}}
    own = planner(site, "osu-mpi4py", f"osu_{what}", stack, stated=stated, **changes)
    return plan_of(AlgorithmSweepBenchmark, own, collective=what)


def choice(plan: Plan) -> OwnChoice:
    (relation,) = plan.relations
    assert isinstance(relation.what, OwnChoice)
    return relation.what


def turns(plan: Plan) -> dict[str, Any]:
    return {leg.name.removeprefix("rail0.4x1."): leg for leg in plan.legs}


def test_the_own_choice_stands_before_between_and_after_all_algorithms(vcluster: Site) -> None:
    plan = sweep(vcluster)
    names = list(turns(plan))
    assert [name for name in names if name.startswith("own")] == [f"own.{n}" for n in range(1, 5)]
    assert (names[0], names[-1]) == ("own.1", "own.4")
    assert owned_legs(plan.relations) == {leg.name for leg in plan.legs}
    assert {leg.channel_leg for leg in plan.legs} == {""}
    assert all(leg.traffic.at_least for leg in plan.legs), "the path is proven all the same"
    assert {leg.ranks_per_node for leg in plan.legs} == {1}, "ranks would share a core"
    assert {leg.ranks_per_node for leg in sweep(vcluster, oversubscribed=False).legs} == {2}


def test_the_own_choice_is_told_nothing_and_the_others_are_forced(vcluster: Site) -> None:
    legs = turns(sweep(vcluster))
    assert not {*PLANT} & {*legs["own.1"].environment}
    forced = legs["alg-4.2"].environment
    assert forced["OMPI_MCA_coll_tuned_allgather_algorithm"] == "4"
    assert forced["OMPI_MCA_coll_han_allgather_dynamic_global_communicator_module"] == "3"


def test_where_the_site_forces_one_the_librarys_own_choice_is_a_candidate(vcluster: Site) -> None:
    assert "auto.1" not in turns(sweep(vcluster))
    plan = sweep(vcluster, environment=PLANT)
    assert "auto.1" in turns(plan)
    assert next(iter(PLANT)) in choice(plan).mended_by["auto"]


def test_the_row_can_name_the_variables_that_mend_it(vcluster: Site) -> None:
    mended_by = choice(sweep(vcluster)).mended_by
    assert "OMPI_MCA_coll_tuned_allgather_algorithm=4" in mended_by["4"].split()
    strict = choice(sweep(vcluster, "mpich5")).mended_by
    assert not any("FALLBACK" in each for each in strict.values()), "other layouts would end"


def test_a_file_that_the_site_names_must_be_on_every_node(vcluster: Site) -> None:
    name = "OMPI_MCA_coll_tuned_dynamic_rules_filename"
    legs = turns(sweep(vcluster, environment={name: "/shared/rules.conf"}))
    assert legs["own.1"].environment[FILES_VARIABLE] == "/shared/rules.conf"
    assert legs["alg-4.1"].environment[name] == ""


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"num_nodes": 1}, "one node"),
        ({"sweep_smallest": "1MiB"}, "judges sweeps from 1MiB up"),
        ({"no_sweep": "its noise decides nothing"}, "by the site: its noise decides nothing"),
        ({"what": "barrier"}, "judges sweeps from 16KiB up"),
    ],
)
def test_where_there_is_nothing_to_sweep_the_reason_is_said(vcluster: Site, changes, words) -> None:
    plan = sweep(vcluster, **changes)
    assert not plan.legs
    assert words in plan.reason


def test_a_job_has_time_for_its_first_look(vcluster: Site) -> None:
    plan = sweep(vcluster, "intelmpi", job_minutes=2)
    assert len(plan.legs) * 2.5 < 2 * 60


@pytest.mark.parametrize(
    ("suite", "program", "compares"),
    [
        ("osu-mpi4py", "osu_bcast", False),
        ("osu-mpi4py", "osu_allgather", True),
        ("osu", "osu_bcast", True),
        ("imb", "Barrier", True),
        ("osu", "osu_bw", False),
    ],
)
def test_the_time_of_a_root_alone_compares_nothing(suite, program, compares) -> None:
    assert (why_no_comparison(suite, program) == "") is compares


def test_the_first_suite_that_can_compare_is_taken(vcluster: Site) -> None:
    own = planner(vcluster, "osu", "osu_bcast", "openmpi5")
    check = SimpleNamespace(collective="bcast", suite="osu", program="osu_bcast")
    assert AlgorithmSweepBenchmark.why_not(check, own) != ""  # type: ignore[arg-type]
    assert why_not(AlgorithmSweepBenchmark, own, collective="allgather") == ""


def _judged(site: Site, what: str, **verdicts: str) -> LegResult:
    """Return what the sweep of ``what`` came to; ``verdicts``: of each quantity."""
    (relation,) = sweep(site, what=what).relations
    quantities = tuple(
        QuantityRecord(
            name=name, value=2.0, unit="x", message_size=None, verdict=Verdict(each), reason=""
        )
        for name, each in verdicts.items()
    )
    return LegResult(
        verdict=Verdict("FAIL" if "FAIL" in verdicts.values() else "PASS"),
        check="AlgorithmSweep",
        partition="compute",
        stack="openmpi5",
        fabric="eth0",
        suite=relation.suite,
        program=relation.program,
        leg=relation.name,
        relation="algorithms",
        nodes=("n1", "n2"),
        rails=relation.rails,
        quantities=quantities,
        job_id="1",
    )


def test_a_look_at_one_collective_is_not_answered_by_the_sweep_of_another(vcluster: Site) -> None:
    """Both are of one check: one is red at 16 KiB in both runs, the other elsewhere, and first."""
    other = _judged(vcluster, "allgather", own_choice_16KiB="PASS", own_choice_64KiB="FAIL")
    mine = _judged(vcluster, "alltoall", own_choice_16KiB="FAIL", own_choice_64KiB="PASS")
    (red,) = reds_of(RunResult(run_id="r", legs=(mine,)))
    asked = LookAsked(at=0, red=red, role=Role.SAME, nodes=("n1", "n2"))
    look = look_at(asked, RunResult(run_id="r", legs=(other, mine)))
    assert look.leg is mine
    assert look.colour is LookColour.RED
    green = _judged(vcluster, "alltoall", own_choice_16KiB="PASS")
    states = states_of(RunResult(run_id="r", legs=(other, green)), (), whole=True)
    assert {LegKey.of(key).leg: state.colour for key, state in states.items()} == {
        "rail0.4x1.allgather.algorithms": LegColour.RED,
        "rail0.4x1.alltoall.algorithms": LegColour.GREEN,
    }


# The nodes of a campaign.

BUSY = "busy with another user's job (later: fabricproof admit vc5 --site vcluster)"


@pytest.mark.parametrize(
    ("asked", "measured", "missing"),
    [
        ("", ["vc1", "vc2", "vc3"], {"vc4": "drained", "vc5": BUSY}),
        ("vc1,vc2", ["vc1", "vc2"], {}),
        # Asked for by name, and not to be had: it is missing, not left out.
        ("vc1,vc4", ["vc1"], {"vc4": "drained"}),
        ("vc1,vc9", ["vc1"], {"vc9": "no node of partition compute"}),
    ],
)
def test_nodes_that_were_asked_for_and_cannot_be_had_are_named(
    monkeypatch: pytest.MonkeyPatch, asked: str, measured: list[str], missing: dict[str, str]
) -> None:
    found = Standing(free=("vc1", "vc2"), busy=("vc3", "vc5"), out={"vc4": "drained"})
    monkeypatch.setattr(all_pairs, "ask_standing", lambda *_, **__: found)
    monkeypatch.setattr(all_pairs, "ask_others", lambda *_: frozenset({"vc5"}))
    monkeypatch.setattr(all_pairs, "ask_leaves", lambda *_: {})
    monkeypatch.setenv(NODES_VARIABLE, asked)
    own = planner("vcluster", "osu", "osu_bw")
    standing = all_pairs.standing_nodes(own)
    assert (sorted(standing.free), dict(standing.out)) == (measured, missing)
    if len(measured) > 1:
        return
    with pytest.raises(UnavailableError, match="no pair of nodes can be measured") as error:
        all_pairs.plan_rounds(own, all_pairs.Extent.ROUND, (("rail0",),))
    assert next(iter(missing.values())) in str(error.value)


def test_one_node_of_one_is_no_pair_and_nothing_that_is_missing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    lone = Standing(free=("vc1",), busy=(), out={})
    monkeypatch.setattr(all_pairs, "standing_nodes", lambda _: lone)
    monkeypatch.setattr(all_pairs, "ask_leaves", lambda *_: {})
    campaign = all_pairs.plan_rounds(
        planner("vcluster", "osu", "osu_bw"), all_pairs.Extent.ROUND, (("rail0",),)
    )
    assert campaign.nodes == ("vc1",)
