"""One run's result from report, records and required checks: what is not shown is never green."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fabricproof.core.errors import ExitStatus, ParseError
from fabricproof.core.measure import Verdict, texts_of
from fabricproof.core.records import append_records
from fabricproof.job.run import BUILD_PROGRAM, SessionResult, assemble, read_report, read_run
from fabricproof.job.run.collection import cases_of, collect_again
from fabricproof.job.run.start import Workplace
from fabricproof.site import load_site

RUN = "20260101T000000Z-abcdef"


def make_case(result: str = "pass", **changes: Any) -> dict[str, Any]:
    """Return a test case as ReFrame's report has it."""
    return {
        "name": "OsuBandwidth %fabric=eth0",
        "unique_name": "OsuBandwidth_0",
        "partition": "node",
        "environ": "openmpi5",
        "fabric": "eth0",
        "suite": "osu",
        "program": "osu_bw",
        "jobid": "42",
        "result": result,
        "fail_phase": None,
        "fail_reason": None,
        "skip_reason": "",
        **changes,
    }


def make_records(verdict: str = "PASS", leg: str = "rail0", **changes: Any) -> list[dict[str, Any]]:
    """Return a leg's records: one quantity of the attempt that counts, then the leg."""
    base = {
        "run_id": RUN,
        "check": "OsuBandwidth",
        "unique_name": "OsuBandwidth_0",
        "partition": "node",
        "stack": "openmpi5",
        "suite": "osu",
        "program": "osu_bw",
        "fabric": "eth0",
        "leg": leg,
        "job_id": "42",
        **changes,
    }
    quantity = {
        **base,
        "kind": "quantity",
        "counts": True,
        "attempt": 1,
        "nodes": ["n1", "n2"],
        "quantity_name": "bandwidth_4MiB",
        "quantity_value": 47.0,
        "quantity_unit": "MB/s",
        "quantity_verdict": verdict,
        "quantity_reason": "97.0% of 48.5 MB/s",
        "quantity_named": True,
        "quantity_ceiling": 48.6,
        "quantity_reference": 48.5,
        "quantity_origin": "physics: the link binds",
        "quantity_message_size": 4194304,
    }
    return [quantity, {**base, "kind": "leg", "verdict": verdict, "findings": []}]


def _entry(**changes: str) -> dict[str, str]:
    return {
        "check": "OsuBandwidth",
        "fabric": "eth0",
        "partition": "node",
        "stack": "openmpi5",
        **changes,
    }


def _verdicts(result: SessionResult) -> list[str]:
    return [leg.verdict.value for leg in result.legs]


def test_a_passed_case_with_its_records_passes() -> None:
    result = assemble(RUN, [make_case()], make_records(), [_entry()])
    assert _verdicts(result) == ["PASS"]
    assert result.legs[0].nodes == ("n1", "n2")
    assert result.verdict is Verdict.PASS


def test_a_leg_whose_last_look_left_no_rank_has_the_nodes_of_the_one_before() -> None:
    first, _ = make_records(verdict="FAIL")
    first |= {"counts": False}
    last, leg = make_records(verdict="MISSING")
    last |= {"attempt": 2, "nodes": []}
    (found,) = assemble(RUN, [make_case()], [first, last, leg], []).legs
    assert (found.verdict, found.nodes) == (Verdict.MISSING, ("n1", "n2"))


@pytest.mark.parametrize(
    ("ended", "nodes"),
    [
        ({"nodes": ["n3", "n4"]}, ("n3", "n4")),
        ({}, ()),
        (None, ()),
    ],
)
def test_a_leg_of_which_no_rank_wrote_has_the_nodes_of_its_job(
    ended: object, nodes: tuple[str, ...]
) -> None:
    last, leg = make_records(verdict="MISSING", job_end=ended)
    last |= {"nodes": []}
    (found,) = assemble(RUN, [make_case()], [last, leg], []).legs
    assert found.nodes == nodes


def test_what_was_skipped_ran_on_no_nodes() -> None:
    last, leg = make_records(verdict="SKIPPED", job_end={"nodes": ["n3", "n4"]})
    last |= {"nodes": []}
    (found,) = assemble(RUN, [make_case()], [last, leg], []).legs
    assert found.nodes == ()


def test_a_case_that_reframe_passed_without_a_record_is_missing() -> None:
    (leg,) = assemble(RUN, [make_case()], [], []).legs
    assert leg.verdict is Verdict.MISSING
    assert leg.reason == "ended without a record"
    assert leg.check == "OsuBandwidth"


def test_a_case_that_failed_before_its_job_says_in_which_phase() -> None:
    case = make_case("fail", fail_phase="run", fail_reason="sbatch:\n  no such partition")
    (leg,) = assemble(RUN, [case], [], []).legs
    assert leg.verdict is Verdict.MISSING
    assert leg.reason == "run: sbatch: no such partition"


@pytest.mark.parametrize(
    "other",
    [
        {"job_id": "41"},
        {"unique_name": "OsuBandwidth_1"},
        {"partition": "other"},
        {"stack": "mpich5"},
    ],
)
def test_records_of_another_job_prove_nothing(other: dict[str, str]) -> None:
    (leg,) = assemble(RUN, [make_case()], make_records(**other), []).legs
    assert leg.verdict is Verdict.MISSING


def test_quantities_without_their_legs_verdict_prove_nothing() -> None:
    (leg,) = assemble(RUN, [make_case()], make_records()[:1], []).legs
    assert leg.verdict is Verdict.MISSING


def test_a_retry_is_a_job_of_its_own_and_hides_nothing() -> None:
    cases = [make_case("fail", jobid="1"), make_case(jobid="2")]
    records = make_records("FAIL", job_id="1") + make_records(job_id="2")
    result = assemble(RUN, cases, records, [])
    assert _verdicts(result) == ["FAIL", "PASS"]
    assert result.verdict is Verdict.FAIL


def test_a_job_id_that_is_a_number_in_the_report_is_the_same_job() -> None:
    assert _verdicts(assemble(RUN, [make_case(jobid=42)], make_records(), [])) == ["PASS"]


@pytest.mark.parametrize("result", ["fail", "abort", "xfail", "xpass", "skip", "something new"])
def test_a_pass_in_a_case_that_did_not_pass_is_not_green(result: str) -> None:
    case = make_case(result, fail_phase="performance", fail_reason="broken gave no value")
    (leg,) = assemble(RUN, [case], make_records(), []).legs
    assert leg.verdict is Verdict.UNJUDGED
    assert leg.reason == "ReFrame failed the check: performance: broken gave no value"


def test_a_pass_beside_a_red_leg_stays_a_pass() -> None:
    records = make_records() + make_records("FAIL", leg="rail1")
    assert _verdicts(assemble(RUN, [make_case("fail")], records, [])) == ["PASS", "FAIL"]


@pytest.mark.parametrize("verdict", ["FAIL", "INVALID", "MISSING", "UNJUDGED"])
def test_red_stays_red_although_reframe_passed_it(verdict: str) -> None:
    (leg,) = assemble(RUN, [make_case()], make_records(verdict), []).legs
    assert leg.verdict is Verdict(verdict)
    assert "97.0% of 48.5 MB/s" in leg.reason


# Skips.


def test_a_skip_with_its_reason_is_skipped() -> None:
    (leg,) = assemble(RUN, [make_case("skip", skip_reason="one rail")], [], []).legs
    assert (leg.verdict, leg.reason) == (Verdict.SKIPPED, "one rail")


@pytest.mark.parametrize("reason", ["", None])
def test_a_skip_without_a_reason_is_missing(reason: str | None) -> None:
    (leg,) = assemble(RUN, [make_case("skip", skip_reason=reason)], [], []).legs
    assert leg.verdict is Verdict.MISSING
    assert leg.reason == "skipped without a reason"


def test_a_failure_with_a_skip_reason_is_no_skip() -> None:
    (leg,) = assemble(RUN, [make_case("fail", skip_reason="one rail")], [], []).legs
    assert leg.verdict is Verdict.MISSING


def test_all_skipped_is_not_green() -> None:
    result = assemble(RUN, [make_case("skip", skip_reason="one rail")] * 2, [], [])
    assert result.verdict is Verdict.SKIPPED
    assert result.counts() == {Verdict.SKIPPED: 2}


def test_nothing_at_all_is_not_green() -> None:
    assert assemble(RUN, [], [], []).verdict is Verdict.SKIPPED


def test_a_pass_beside_skips_is_a_pass() -> None:
    cases = [make_case(), make_case("skip", skip_reason="one rail", jobid=None)]
    assert assemble(RUN, cases, make_records(), []).verdict is Verdict.PASS


# Builds.


def make_build(result: str = "pass", **changes: Any) -> dict[str, Any]:
    """Return the case of a stack's build as ReFrame's report has it."""
    return make_case(
        result,
        name="StackBuild ~site:node+openmpi5",
        unique_name="StackBuild_1",
        fixture=True,
        fabric="<undefined>",
        run_index=0,
        build_reason="",
        build_log=[],
        **changes,
    )


def _waiting(result: str = "fail_deps", **changes: Any) -> dict[str, Any]:
    dependency = ["StackBuild_1", "site:node", "openmpi5"]
    return make_case(result, jobid=None, run_index=0, dependencies_actual=[dependency], **changes)


def test_a_build_that_passed_is_nothing_judged() -> None:
    result = assemble(RUN, [make_build()], [], [])
    assert result.legs == ()
    assert result.verdict is Verdict.SKIPPED


def test_a_build_that_failed_is_missing_with_reason_and_log() -> None:
    case = make_build("fail") | {"build_reason": "no  compiler", "build_log": ["==> Error"]}
    (leg,) = assemble(RUN, [case], [], []).legs
    assert (leg.verdict, leg.program, leg.stack) == (Verdict.MISSING, BUILD_PROGRAM, "openmpi5")
    assert (leg.reason, texts_of(leg.findings)) == ("no compiler", ["==> Error"])
    assert not leg.for_want_of


@pytest.mark.parametrize("result", ["fail_deps", "skip", "abort"])
@pytest.mark.parametrize(
    ("build", "reason"),
    [
        ("fail", "stack openmpi5 was not built: run: no node"),
        ("skip", "stack openmpi5 was not built: its build was skipped"),
        ("abort", "stack openmpi5 was not built: run: no node"),
    ],
)
def test_what_waits_for_a_build_that_did_not_pass_is_missing(
    result: str, build: str, reason: str
) -> None:
    failed = make_build(build, fail_phase="run", fail_reason="no node")
    waiting = assemble(RUN, [failed, _waiting(result)], [], [_entry()]).legs[1]
    assert (waiting.verdict, waiting.reason) == (Verdict.MISSING, reason)
    assert waiting.for_want_of == "openmpi5"


def test_a_skip_of_its_own_beside_a_failed_build_stays_a_skip() -> None:
    cases = [make_build("fail"), _waiting("skip", skip_reason="one rail")]
    assert _verdicts(assemble(RUN, cases, [], [])) == ["MISSING", "SKIPPED"]


@pytest.mark.parametrize(
    "other",
    [
        {"unique_name": "StackBuild_2"},
        {"environ": "mpich5"},
        {"partition": "gpu"},
        {"run_index": 1},
    ],
)
def test_another_stacks_build_explains_nothing(other: dict[str, Any]) -> None:
    build = make_build("fail") | other
    waiting = assemble(RUN, [build, _waiting("skip")], [], []).legs[1]
    assert (waiting.verdict, waiting.reason) == (Verdict.MISSING, "skipped without a reason")


def test_a_build_does_not_stand_in_for_what_is_due() -> None:
    entry = _entry(check="StackBuild", fabric="<undefined>")
    assert _verdicts(assemble(RUN, [make_build()], [], [entry])) == ["MISSING"]


# One build throughout.


def _identified(digest: str, **changes: Any) -> list[dict[str, Any]]:
    identity = {"origin": "spack", "digest": digest, "mpi": "openmpi@5", "program": "osu@7.2"}
    return make_records(stack_identity=identity, **changes)


@pytest.mark.parametrize("verdict", ["PASS", "FAIL", "UNJUDGED"])
def test_a_stack_of_two_builds_in_one_run_is_invalid(verdict: str) -> None:
    cases = [make_case(), make_case(jobid="43")]
    records = _identified("a" * 64) + _identified("b" * 64, job_id="43", verdict=verdict)
    result = assemble(RUN, cases, records, [])
    assert _verdicts(result) == ["INVALID", "INVALID"]
    assert (
        "stack openmpi5 was not one build throughout the run: digest: aaaaaaa"
        in result.legs[0].reason
    )


def test_what_was_not_measured_on_the_two_builds_stays_as_it_is() -> None:
    skipped = make_case("skip", jobid=None, skip_reason="one rail")
    cases = [make_case(), make_case(jobid="43"), skipped]
    records = _identified("a" * 64, verdict="MISSING") + _identified("b" * 64, job_id="43")
    assert _verdicts(assemble(RUN, cases[:2], records, [])) == ["MISSING", "INVALID"]
    assert _verdicts(assemble(RUN, cases[2:], records[:1], [])) == ["SKIPPED"]


def test_one_build_is_no_reason_against_anything() -> None:
    cases = [make_case(), make_case(jobid="43")]
    records = _identified("a" * 64) + _identified("a" * 64, job_id="43")
    assert _verdicts(assemble(RUN, cases, records, [])) == ["PASS", "PASS"]


# The roll.


def test_what_is_due_and_never_ran_is_missing() -> None:
    result = assemble(RUN, [make_case()], make_records(), [_entry(), _entry(check="OsuLatency")])
    assert _verdicts(result) == ["PASS", "MISSING"]
    assert result.legs[1].check == "OsuLatency"
    assert "a required check" in result.legs[1].reason
    assert result.legs[1].reason.endswith("fabricproof site roll SITE --write")


@pytest.mark.parametrize(
    "other", [{"partition": "gpu"}, {"stack": "mpich5"}, {"fabric": "ib0"}, {"check": "Other"}]
)
def test_each_part_of_a_due_entry_counts(other: dict[str, str]) -> None:
    result = assemble(RUN, [make_case()], make_records(), [_entry(**other)])
    assert _verdicts(result) == ["PASS", "MISSING"]


def test_a_skip_for_want_of_a_fabric_does_not_stand_in_for_the_due_one() -> None:
    absent = make_case(
        "skip",
        name="OsuBandwidth %fabric=no-ethernet",
        fabric="no-ethernet",
        skip_reason="this site has no ethernet fabric",
    )
    result = assemble(RUN, [absent], [], [_entry()])
    assert _verdicts(result) == ["SKIPPED", "MISSING"]
    assert result.verdict is Verdict.MISSING


def test_a_due_check_that_was_skipped_with_a_reason_is_there() -> None:
    case = make_case("skip", skip_reason="no such program in this stack")
    assert _verdicts(assemble(RUN, [case], [], [_entry()])) == ["SKIPPED"]


# Laws.


@given(
    results=st.lists(
        st.tuples(
            st.sampled_from(["pass", "fail", "skip", "abort"]),
            st.sampled_from(["PASS", "FAIL", "INVALID", "MISSING", "UNJUDGED", None]),
        ),
        max_size=6,
    )
)
def test_green_needs_a_passed_case_with_a_passed_record_and_nothing_red(
    results: list[tuple[str, str | None]],
) -> None:
    cases, records = [], []
    for number, (result, verdict) in enumerate(results):
        cases.append(make_case(result, jobid=str(number), skip_reason="a reason"))
        records += make_records(verdict, job_id=str(number)) if verdict else []
    session = assemble(RUN, cases, records, [])
    assert len(session.legs) == len(cases)
    if session.verdict is Verdict.PASS:
        assert ("pass", "PASS") in results
        assert set(results) <= {("pass", "PASS"), ("skip", None)}


# ReFrame's report and the record files.


def test_the_cases_of_all_runs_of_a_report_are_read(tmp_path: Path) -> None:
    path = tmp_path / "report.json"
    runs = [{"testcases": [make_case("fail")]}, {"testcases": [make_case()]}]
    path.write_text(json.dumps({"runs": runs}))
    assert [case["result"] for case in read_report(path)] == ["fail", "pass"]


@pytest.mark.parametrize("text", [None, "", "{", "[]", '{"runs": 1}', '{"runs": [{}]}', "\xff"])
def test_no_readable_report_is_an_error(tmp_path: Path, text: str | None) -> None:
    path = tmp_path / "report.json"
    if text is not None:
        path.write_bytes(text.encode("latin-1"))
    with pytest.raises(ParseError, match="ReFrame left no readable report") as caught:
        read_report(path)
    assert caught.value.exit_status is ExitStatus.DATA


def test_only_this_runs_records_are_read_and_torn_ones_are_noted(tmp_path: Path) -> None:
    path = tmp_path / "records.jsonl"
    append_records(path, make_records())
    append_records(path, make_records(run_id="another"))
    with path.open("ab") as file:
        file.write(b'{"format": 1, "run_id"')
    records, notes = read_run([path], RUN)
    assert [record["kind"] for record in records] == ["quantity", "leg"]
    assert notes == [f"{path}:5: a record torn by a crash was passed over"]


def test_a_leg_that_others_of_its_job_know_of_and_nobody_finds_is_missing() -> None:
    """A crash cut the records between two whole legs, or within one."""
    both = [*make_records(), *make_records(leg="rail1")]
    two = [{**each, "legs_of_job": 2} if each["kind"] == "leg" else each for each in both]
    assert _verdicts(assemble(RUN, [make_case()], two, [])) == ["PASS", "PASS"]
    found = assemble(RUN, [make_case()], two[:2], [])
    assert _verdicts(found) == ["PASS", "MISSING"]
    assert found.legs[1].reason == "1 of the job's 2 legs have records: the others were lost"
    assert _verdicts(assemble(RUN, [make_case()], both[:3], [])) == ["PASS", "MISSING"]
    (alone,) = assemble(RUN, cases_of(both[:1]), both[:1], []).legs
    assert alone.verdict is Verdict.MISSING


def test_a_leg_knows_its_link_and_an_old_record_says_nothing_of_it() -> None:
    soft = make_records(leg="rxe0:1", link="Soft-RoCE 100 Mb/s")
    (leg,) = assemble(RUN, [make_case()], soft, []).legs
    assert (leg.link, leg.device, leg.path_name) == (
        "Soft-RoCE 100 Mb/s",
        "Soft-RoCE",
        "rxe0:1 Soft-RoCE",
    )
    for records in (make_records(), make_records(link=""), make_records(link="EDR 4x")):
        (leg,) = assemble(RUN, [make_case()], records, []).legs
        assert (leg.device, leg.path_name) == ("", "rail0")


@pytest.mark.parametrize(
    ("name", "recorded", "layout", "relation"),
    [
        ("eth0.100", {"rails": ["eth0.100"]}, "", ""),
        ("eth0.100.4x2", {"rails": ["eth0.100"], "relation": ""}, "4x2", ""),
        ("r0+r1.back", {"rails": ["r0", "r1"], "relation": ""}, "back", ""),
        ("r0.far_over_near", {"rails": ["r0"], "relation": "far_over_near"}, "", "far_over_near"),
        ("scaling", {"rails": ["r0", "r1"], "relation": "scaling"}, "", "scaling"),
        ("untold", {"rails": ["r0"], "relation": ""}, "untold", ""),
    ],
)
def test_a_leg_knows_its_rails_its_layout_and_whether_it_is_a_relation(
    name: str, recorded: dict[str, Any], layout: str, relation: str
) -> None:
    (leg,) = assemble(RUN, [make_case()], make_records(leg=name, **recorded), []).legs
    assert (leg.leg, leg.layout, leg.relation) == (name, layout, relation)
    assert leg.rails == tuple(recorded.get("rails", ()))


def test_what_left_no_record_has_the_link_that_the_site_declares(tmp_path: Path) -> None:
    folder = tmp_path / "soft"
    folder.mkdir()
    (folder / "site.toml").write_text(
        '[site]\nname = "soft"\n\n[[partitions]]\nname = "node"\nfabrics = ["roce0"]\n'
        'stacks = ["openmpi5"]\n\n[[stacks]]\nname = "openmpi5"\nfamily = "openmpi"\n'
        'version = "5.0"\nprovisioned = true\n',
        encoding="utf-8",
    )
    (folder / "fabric.toml").write_text(
        '[[fabrics]]\nname = "roce0"\nlink = "rxe 100M"\nrails = [{ interface = "rxe0:1" }]\n',
        encoding="utf-8",
    )
    place = Workplace(project=tmp_path, root=tmp_path / "work", perflogs=tmp_path / "perflogs")
    old = [{"site": "soft", **each} for each in make_records(leg="rxe0:1", fabric="roce0")]
    append_records(place.perflogs / "soft" / "node" / "records.jsonl", old)
    report = place.report_file(RUN)
    report.parent.mkdir(parents=True)
    lost = make_case("fail", fabric="roce0", jobid="43", unique_name="Other_0", name="Other")
    cases = [make_case(fabric="roce0"), lost]
    report.write_text(json.dumps({"runs": [{"testcases": cases}]}), encoding="utf-8")
    session, _ = collect_again(load_site(str(folder)), place, RUN)
    assert {leg.leg: leg.link for leg in session.legs} == {
        # older than the field: what the site was then is not known
        "rxe0:1": "",
        "": "Soft-RoCE 100 Mb/s",
    }
    assert [leg.path_name for leg in session.legs if not leg.leg] == ["Soft-RoCE"]
