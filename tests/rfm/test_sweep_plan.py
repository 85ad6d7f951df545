"""What a sweep plans: own choice and every algorithm in turns, owned by one relation."""

from __future__ import annotations

from pathlib import Path

import pytest

from fabricproof.core.measure import Verdict
from fabricproof.core.provenance import LegKey
from fabricproof.core.records import QuantityRecord
from fabricproof.job.leg import Plan
from fabricproof.job.relation import OwnChoice, owned_legs
from fabricproof.job.run import LegResult, RunResult
from fabricproof.nightly.confirm import LookColour, Role
from fabricproof.nightly.log import LegColour, states_of
from fabricproof.nightly.looks import LookAsked, look_at, reds_of
from fabricproof.rfm.families.sweep import FILES_VARIABLE, plan_sweep, why_no_comparison
from fabricproof.rfm.legs.leg import LegPlanner
from fabricproof.site import Site, load_site
from fabricproof.stacks.environment import ROOT_VARIABLE
from fabricproof.stacks.stack import resolve
from fabricproof.stacks.wheels import ports_folder

SITES = Path(__file__).parents[2] / "site-configs"
PLANT = {"OMPI_MCA_coll_tuned_allgather_algorithm": "1"}


@pytest.fixture
def vcluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Site:
    """The site of the virtual cluster, with stacks that are there only in name."""
    monkeypatch.setenv(ROOT_VARIABLE, str(tmp_path))
    for stack in ("openmpi4", "openmpi5", "mpich5", "intelmpi"):
        folder = ports_folder(tmp_path / stack)
        folder.mkdir(parents=True)
        for program in ("osu_allgather", "osu_alltoall", "osu_barrier", "osu_latency"):
            (folder / f"{program}.py").touch()
    return load_site(str(SITES / "vcluster"))


def planned(
    site: Site,
    *,
    stack: str = "openmpi5",
    collective: str = "allgather",
    environment: dict[str, str] | None = None,
    **partition: object,
) -> Plan:
    changed = {"num_nodes": 4, "ranks_per_node": [1, 2], "sweep_smallest": "16KiB", **partition}
    spec = site.stack(stack)
    stated = {"environment": {**spec.environment, **(environment or {})}}
    partition = site.partitions[0].model_copy(update=changed)
    planner = LegPlanner(
        site=site,
        partition=partition,
        stack=resolve(site, partition, spec.model_copy(update=stated)),
        fabric="eth0",
        suite="osu-mpi4py",
        program=f"osu_{collective}",
    )
    return plan_sweep(planner, collective)


def turns(plan: Plan) -> list[str]:
    return [leg.name.removeprefix("rail0.4x1.") for leg in plan.legs]


def test_the_own_choice_stands_before_between_and_after_all_algorithms(vcluster: Site) -> None:
    plan = planned(vcluster)
    names = turns(plan)
    assert [name for name in names if name.startswith("own")] == [
        "own.1",
        "own.2",
        "own.3",
        "own.4",
    ]
    assert names[0] == "own.1"
    assert names[-1] == "own.4"
    between = [set(part.split()) for part in " ".join(names).split("own.")[1:-1]]
    # Power of two of ranks: 3 runs; two_proc and sparbit do not.
    assert {name.split(".")[0] for name in between[0] if "alg" in name} == {
        f"alg-{number}" for number in "12345"
    }
    assert len({leg.num_nodes for leg in plan.legs}) == 1


def test_one_relation_owns_all_legs_and_no_model_judges_them(vcluster: Site) -> None:
    plan = planned(vcluster)
    (relation,) = plan.relations
    assert owned_legs(plan.relations) == {leg.name for leg in plan.legs}
    assert isinstance(relation.what, OwnChoice)
    assert relation.what.sizes == (16384, 32768, 65536)
    assert any("two_proc" in each for each in relation.what.left_out)
    assert all(not leg.channel_leg and not leg.references for leg in plan.legs)
    assert all(leg.traffic.at_least for leg in plan.legs), "the path is proven all the same"


def test_the_own_choice_is_told_nothing_and_the_others_are_forced(vcluster: Site) -> None:
    environments = dict(zip(turns(planned(vcluster)), planned(vcluster).legs, strict=True))
    assert "OMPI_MCA_coll_tuned_allgather_algorithm" not in environments["own.1"].environment
    forced = environments["alg-4.2"].environment
    assert forced["OMPI_MCA_coll_tuned_allgather_algorithm"] == "4"
    assert forced["OMPI_MCA_coll_han_allgather_dynamic_global_communicator_module"] == "3"


def _mended_by(plan: Plan) -> dict[str, str]:
    (relation,) = plan.relations
    assert isinstance(relation.what, OwnChoice)
    return relation.what.mended_by


def test_where_the_site_forces_one_the_librarys_own_choice_is_a_candidate(vcluster: Site) -> None:
    assert "auto.1" not in turns(planned(vcluster))
    plan = planned(vcluster, environment=PLANT)
    assert "auto.1" in turns(plan)
    mended_by = _mended_by(plan)
    assert mended_by["auto"] == f"take {next(iter(PLANT))} out of the stack's environment"


def test_the_row_can_name_the_variables_that_mend_it(vcluster: Site) -> None:
    mended_by = _mended_by(planned(vcluster))
    assert "OMPI_MCA_coll_tuned_allgather_algorithm=4" in mended_by["4"].split()
    strict = _mended_by(planned(vcluster, stack="mpich5"))
    assert not any("FALLBACK" in each for each in strict.values()), "other layouts would end"


def test_a_file_that_the_site_names_must_be_on_every_node(vcluster: Site) -> None:
    name = "OMPI_MCA_coll_tuned_dynamic_rules_filename"
    plan = planned(vcluster, environment={name: "/shared/rules.conf"})
    legs = dict(zip(turns(plan), plan.legs, strict=True))
    assert legs["own.1"].environment[FILES_VARIABLE] == "/shared/rules.conf"
    assert legs["alg-4.1"].environment[name] == ""


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"num_nodes": 1}, "one node"),
        ({"sweep_smallest": "1MiB"}, "judges sweeps from 1MiB up"),
        (
            {"no_sweep": "its noise decides nothing"},
            "left out by the site: its noise decides nothing",
        ),
        ({"collective": "barrier"}, "judges sweeps from 16KiB up"),
    ],
)
def test_where_there_is_nothing_to_sweep_the_reason_is_said(vcluster: Site, changes, words) -> None:
    plan = planned(vcluster, **changes)
    assert not plan.legs
    assert words in plan.reason


def test_a_job_has_time_for_its_first_look(vcluster: Site) -> None:
    plan = planned(vcluster, stack="intelmpi", collective="allgather", job_minutes=2)
    budget = 2 * 60
    assert len(plan.legs) * 2.5 < budget


def test_a_full_layout_is_swept_unless_ranks_would_share_a_core(vcluster: Site) -> None:
    full = planned(vcluster, oversubscribed=False)
    assert {leg.ranks_per_node for leg in full.legs} == {2}
    assert {leg.ranks_per_node for leg in planned(vcluster).legs} == {1}


@pytest.mark.parametrize(
    ("suite", "program", "compares"),
    [
        ("osu-mpi4py", "osu_bcast", False),
        ("osu-mpi4py", "osu_allgather", True),
        ("osu", "osu_bcast", True),
        ("imb", "Bcast", True),
        ("imb", "Barrier", True),
        ("osu", "osu_bw", False),
    ],
)
def test_the_time_of_a_root_alone_compares_nothing(suite, program, compares) -> None:
    assert (why_no_comparison(suite, program) == "") is compares


def _judged(site: Site, collective: str, **verdicts: str) -> LegResult:
    """Return what the sweep of ``collective`` came to; ``verdicts``: of each quantity."""
    (relation,) = planned(site, collective=collective).relations
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
    result = RunResult(run_id="r", legs=(other, mine))
    (red,) = reds_of(RunResult(run_id="r", legs=(mine,)))
    look = look_at(LookAsked(at=0, red=red, role=Role.SAME, nodes=("n1", "n2")), result)
    assert look.leg is mine
    assert look.colour is LookColour.RED


def test_each_collective_has_a_state_of_its_own(vcluster: Site) -> None:
    legs = (
        _judged(vcluster, "allgather", own_choice_16KiB="FAIL"),
        _judged(vcluster, "alltoall", own_choice_16KiB="PASS"),
    )
    states = states_of(RunResult(run_id="r", legs=legs), (), whole=True)
    assert {LegKey.of(key).leg: state.colour for key, state in states.items()} == {
        "rail0.4x1.allgather.algorithms": LegColour.RED,
        "rail0.4x1.alltoall.algorithms": LegColour.GREEN,
    }
