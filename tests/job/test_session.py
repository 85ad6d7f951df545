"""One run's result from report, records and required checks: what is not shown is never green."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fabricproof.core.errors import ExitStatus, ParseError
from fabricproof.core.findings import texts_of
from fabricproof.core.measure import Verdict
from fabricproof.core.records import append_records
from fabricproof.job.run import (
    BUILD_PROGRAM,
    LegResult,
    RunNote,
    RunResult,
    Workplace,
    assemble,
    collect,
    read_report,
    read_run,
    selects_nothing,
    useful_words,
)
from fabricproof.site import load_site

RUN = "20260101T000000Z-abcdef"


def make_case(result: str = "pass", **changes: Any) -> dict[str, Any]:
    """Return a test case as ReFrame's report has it."""
    return {
        "name": "OsuBandwidth %fabric=eth0", "unique_name": "OsuBandwidth_0", "partition": "node",
        "environ": "openmpi5", "fabric": "eth0", "suite": "osu", "program": "osu_bw", "jobid": "42",
        "result": result, "fail_phase": None, "fail_reason": None, "skip_reason": "", **changes,
    }  # fmt: skip


def make_records(verdict: str = "PASS", leg: str = "rail0", **changes: Any) -> list[dict[str, Any]]:
    """Return a leg's records: one quantity of the attempt that counts, then the leg."""
    base = {
        "run_id": RUN, "check": "OsuBandwidth", "unique_name": "OsuBandwidth_0",
        "partition": "node", "stack": "openmpi5", "suite": "osu", "program": "osu_bw",
        "fabric": "eth0", "leg": leg, "job_id": "42", **changes,
    }  # fmt: skip
    quantity = {
        **base, "kind": "quantity", "counts": True, "attempt": 1, "nodes": ["n1", "n2"],
        "quantity_name": "bandwidth_4MiB", "quantity_value": 47.0, "quantity_unit": "MB/s",
        "quantity_verdict": verdict, "quantity_reason": "97.0% of 48.5 MB/s",
        "quantity_named": True, "quantity_ceiling": 48.6, "quantity_reference": 48.5,
        "quantity_origin": "physics: the link binds", "quantity_message_size": 4194304,
    }  # fmt: skip
    return [quantity, {**base, "kind": "leg", "verdict": verdict, "findings": []}]


def _entry(**changes: str) -> dict[str, str]:
    return {
        "check": "OsuBandwidth",
        "fabric": "eth0",
        "partition": "node",
        "stack": "openmpi5",
        **changes,
    }


def _verdicts(legs: Sequence[LegResult]) -> list[str]:
    return [leg.verdict.value for leg in legs]


def test_a_matrix_of_pairs_beside_the_legs_is_of_none_of_them() -> None:
    """A campaign of all pairs keeps its matrix with the records of its rows."""
    matrix = {"kind": "pair matrix", "run_id": RUN, "unique_name": "OsuBandwidth_0"}
    matrix |= {"partition": "node", "stack": "openmpi5", "job_id": "42"}
    (leg,) = assemble([make_case()], [*make_records(), matrix], [])
    assert leg.verdict is Verdict.PASS
    assert len(leg.quantities) == 1


def test_a_leg_whose_last_look_left_no_rank_has_the_nodes_of_the_one_before() -> None:
    first, _ = make_records(verdict="FAIL")
    first |= {"counts": False}
    last, leg = make_records(verdict="MISSING")
    last |= {"attempt": 2, "nodes": []}
    (found,) = assemble([make_case()], [first, last, leg], [])
    assert (found.verdict, found.nodes) == (Verdict.MISSING, ("n1", "n2"))


@pytest.mark.parametrize(
    ("ended", "nodes"), [({"nodes": ["n3", "n4"]}, ("n3", "n4")), ({}, ()), (None, ())]
)
def test_a_leg_of_which_no_rank_wrote_has_the_nodes_of_its_job(
    ended: object, nodes: tuple[str, ...]
) -> None:
    last, leg = make_records(verdict="MISSING", job_end=ended)
    last |= {"nodes": []}
    (found,) = assemble([make_case()], [last, leg], [])
    assert found.nodes == nodes


def make_build(result: str = "pass", **changes: Any) -> dict[str, Any]:
    """Return the case of a stack's build as ReFrame's report has it."""
    return make_case(
        result, name="StackBuild ~site:node+openmpi5", unique_name="StackBuild_1", fixture=True,
        fabric="<undefined>", run_index=0, build_reason="", build_log=[], **changes,
    )  # fmt: skip


def _waiting(result: str = "fail_deps", **changes: Any) -> dict[str, Any]:
    dependency = ["StackBuild_1", "site:node", "openmpi5"]
    return make_case(result, jobid=None, run_index=0, dependencies_actual=[dependency], **changes)


def _identified(digest: str, **changes: Any) -> list[dict[str, Any]]:
    identity = {"origin": "spack", "digest": digest, "mpi": "openmpi@5", "program": "osu@7.2"}
    return make_records(stack_identity=identity, **changes)


SKIP = make_case("skip", skip_reason="one rail")
FAILED_BUILD = make_build("fail", fail_phase="run", fail_reason="no node")
SECOND = make_case(jobid="43")
NO_ETHERNET = make_case(
    "skip",
    name="OsuBandwidth %fabric=no-ethernet",
    fabric="no-ethernet",
    skip_reason="this site has no ethernet fabric",
)
BOTH_RAILS = [*make_records(), *make_records("FAIL", leg="rail1")]

#: cases, records and what was due; the verdicts of the legs, and words of the last one's reason
RUNS: dict[str, tuple[list[Any], list[Any], list[Any], list[str], str]] = {
    "nothing at all": ([], [], [], [], ""),
    "passed without a record": ([make_case()], [], [], ["MISSING"], "ended without a record"),
    "failed before its job": (
        [make_case("fail", fail_phase="run", fail_reason="sbatch:\n  no such partition")], [], [],
        ["MISSING"], "run: sbatch: no such partition"),
    **{
        f"records of another {name}": (
            [make_case()], make_records(**{name: other}), [], ["MISSING"], "",
        )
        for name, other in {
            "job_id": "41", "unique_name": "OsuBandwidth_1", "partition": "b", "stack": "mpich5",
        }.items()
    },
    "quantities without their leg": ([make_case()], make_records()[:1], [], ["MISSING"], ""),
    "a retry is a job of its own": (
        [make_case("fail", jobid="1"), make_case(jobid="2")],
        make_records("FAIL", job_id="1") + make_records(job_id="2"), [], ["FAIL", "PASS"], ""),
    "a job id that is a number": ([make_case(jobid=42)], make_records(), [], ["PASS"], ""),
    **{
        f"a PASS in a case that is {result}": (
            [make_case(result, fail_phase="performance", fail_reason="gave no value")],
            make_records(), [], ["UNJUDGED"],
            "ReFrame failed the check: performance: gave no value",
        )
        for result in ("fail", "abort", "xfail", "xpass", "skip", "something new")
    },
    "a PASS beside a red leg": ([make_case("fail")], BOTH_RAILS, [], ["PASS", "FAIL"], ""),
    **{
        f"{verdict} although ReFrame passed it": (
            [make_case()], make_records(verdict), [], [verdict], "97.0% of 48.5 MB/s",
        )
        for verdict in ("FAIL", "INVALID", "MISSING", "UNJUDGED")
    },
    "a skip with its reason": ([SKIP], [], [], ["SKIPPED"], "one rail"),
    "all skipped": ([SKIP, SKIP], [], [], ["SKIPPED", "SKIPPED"], "one rail"),
    "a skip without a reason": (
        [make_case("skip", skip_reason="")], [], [], ["MISSING"], "skipped without a reason"),
    "a skip with none": (
        [make_case("skip", skip_reason=None)], [], [], ["MISSING"], "skipped without a reason"),
    "a failure with a skip reason": (
        [make_case("fail", skip_reason="one rail")], [], [], ["MISSING"], ""),
    "a PASS beside skips": ([make_case(), SKIP | {"jobid": None}], make_records(), [],
                            ["PASS", "SKIPPED"], ""),
    "a build that passed": ([make_build()], [], [], [], ""),
    "a build stands not in for what is due": (
        [make_build()], [], [_entry(check="StackBuild", fabric="<undefined>")], ["MISSING"], ""),
    "a skip of its own beside a failed build": (
        [FAILED_BUILD, _waiting("skip", skip_reason="one rail")], [], [], ["MISSING", "SKIPPED"],
        "one rail"),
    **{
        f"a failed build of another {name}": (
            [FAILED_BUILD | {name: other}, _waiting("skip")], [], [],
            ["MISSING", "MISSING"], "skipped without a reason",
        )
        for name, other in {
            "unique_name": "StackBuild_2", "environ": "mpich5", "partition": "gpu", "run_index": 1,
        }.items()
    },
    **{
        f"two builds in one run, the second {verdict}": (
            [make_case(), SECOND],
            _identified("a" * 64) + _identified("b" * 64, job_id="43", verdict=verdict), [],
            ["INVALID", "INVALID"],
            "stack openmpi5 was not one build throughout the run: digest: aaaaaaa",
        )
        for verdict in ("PASS", "FAIL", "UNJUDGED")
    },
    "what was not measured is of no build": (
        [make_case(), SECOND],
        _identified("a" * 64, verdict="MISSING") + _identified("b" * 64, job_id="43"), [],
        ["MISSING", "INVALID"], ""),
    "one build": (
        [make_case(), SECOND], _identified("a" * 64) + _identified("a" * 64, job_id="43"), [],
        ["PASS", "PASS"], ""),
    "due and never ran": (
        [make_case()], make_records(), [_entry(), _entry(check="OsuLatency")], ["PASS", "MISSING"],
        "fabricproof site roll SITE --write"),
    **{
        f"due on another {name}": (
            [make_case()], make_records(), [_entry(**{name: other})], ["PASS", "MISSING"],
            "a required check",
        )
        for name, other in {
            "partition": "gpu", "stack": "mpich5", "fabric": "ib0", "check": "Other",
        }.items()
    },
    "skipped for want of a fabric, and due on another": (
        [NO_ETHERNET], [], [_entry()], ["SKIPPED", "MISSING"], "a required check"),
    "due and skipped with a reason": ([SKIP], [], [_entry()], ["SKIPPED"], "one rail"),
}  # fmt: skip


@pytest.mark.parametrize("name", RUNS)
def test_a_run_is_what_was_due_what_ran_and_what_was_recorded(name: str) -> None:
    cases, records, due, verdicts, words = RUNS[name]
    legs = assemble(cases, records, due)
    assert _verdicts(legs) == verdicts
    result = RunResult(run_id=RUN, legs=legs)
    assert (result.verdict is Verdict.SKIPPED) == ({*verdicts} <= {"SKIPPED"})
    assert words in (legs[-1].reason if legs else "")


def test_a_build_that_failed_is_missing_with_reason_and_log() -> None:
    case = make_build("fail") | {"build_reason": "no  compiler", "build_log": ["==> Error"]}
    (leg,) = assemble([case], [], [])
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
    waiting = assemble([failed, _waiting(result)], [], [_entry()])[1]
    assert (waiting.verdict, waiting.reason) == (Verdict.MISSING, reason)
    assert waiting.for_want_of == "openmpi5"


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
    session = RunResult(run_id=RUN, legs=assemble(cases, records, []))
    assert len(session.legs) == len(cases)
    if session.verdict is Verdict.PASS:
        assert ("pass", "PASS") in results
        assert set(results) <= {("pass", "PASS"), ("skip", None)}


# ReFrame's report and the record files.


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
    assert _verdicts(assemble([make_case()], two, [])) == ["PASS", "PASS"]
    found = assemble([make_case()], two[:2], [])
    assert _verdicts(found) == ["PASS", "MISSING"]
    assert found[1].reason == "1 of the job's 2 legs have records: the others were lost"
    assert _verdicts(assemble([make_case()], both[:3], [])) == ["PASS", "MISSING"]


def test_a_leg_knows_its_link_and_an_old_record_says_nothing_of_it() -> None:
    soft = make_records(leg="rxe0:1", link="Soft-RoCE 100 Mb/s")
    (leg,) = assemble([make_case()], soft, [])
    assert (leg.link, leg.device, leg.path_name) == (
        "Soft-RoCE 100 Mb/s",
        "Soft-RoCE",
        "rxe0:1 Soft-RoCE",
    )
    for records in (make_records(), make_records(link=""), make_records(link="EDR 4x")):
        (leg,) = assemble([make_case()], records, [])
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
    (leg,) = assemble([make_case()], make_records(leg=name, **recorded), [])
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
    session, _ = collect(load_site(str(folder)), place, RUN)
    assert {leg.leg: leg.link for leg in session.legs} == {
        # older than the field: what the site was then is not known
        "rxe0:1": "",
        "": "Soft-RoCE 100 Mb/s",
    }
    assert [leg.path_name for leg in session.legs if not leg.leg] == ["Soft-RoCE"]


# What a run was asked for and did not select, what was refused, and how it ended.

DESCRIBED = [{"name": "OsuLatency %fabric=eth0", "tags": ["quick", "ethernet"]}]


@pytest.mark.parametrize(
    ("given", "found", "meant"),
    [
        (["-n", "OsuLatency"], [], ""),
        (["-n", "OsuLatncy", "-n", "OsuLatency"], ["-n OsuLatncy"], "did you mean OsuLatency?"),
        (["-n", "/a1b2c3", "-n", "Other@2"], [], ""),
        (["-p", "openmpi6"], ["-p openmpi6"], "did you mean openmpi5?"),
        (["-p", "^openmpi5$", "-p", "open"], [], ""),
        (["-t", "quik"], ["-t quik"], "did you mean quick?"),
        (["-t", "quick", "-t", "ether|inf"], [], ""),
    ],
)
def test_what_selects_nothing_is_named_with_what_may_be_meant(
    given: list[str], found: list[str], meant: str
) -> None:
    ran = ["OsuLatency %fabric=eth0"]
    told = selects_nothing(["-r", *given], ran, ["openmpi5", "mpich5"], DESCRIBED)
    assert [option for option, _ in told] == found
    assert all(meant in reason for _, reason in told)


def test_a_refused_submission_shows_the_line_that_says_why() -> None:
    refused = (
        "command 'sbatch rfm_job.sh' failed with exit code 1:\n--- stdout ---\n"
        "--- stdout ---\n--- stderr ---\nsbatch: warning: x\n"
        "sbatch: error: Batch job submission failed: Invalid qos specification\n\n--- stderr ---"
    )
    assert useful_words(refused) == (
        "command 'sbatch rfm_job.sh' failed with exit code 1: "
        "sbatch: error: Batch job submission failed: Invalid qos specification"
    )
    assert useful_words("a\n  b") == "a b"


def test_a_run_that_was_stopped_before_it_left_anything_is_missing() -> None:
    stopped = RunResult(run_id=RUN, stopped="interrupted", status=130)
    assert stopped.left_nothing
    assert stopped.verdict is Verdict.MISSING
    assert RunResult(run_id=RUN).verdict is Verdict.SKIPPED


@pytest.mark.parametrize(
    ("verdict", "becomes"), [("PASS", "UNJUDGED"), ("FAIL", "FAIL"), ("SKIPPED", "UNJUDGED")]
)
def test_a_doubt_takes_away_green_and_nothing_else(
    tmp_path: Path, verdict: str, becomes: str
) -> None:
    place = Workplace(project=tmp_path, root=tmp_path / "work", perflogs=tmp_path / "perflogs")
    site = load_site("vcluster")
    append_records(place.perflogs / "vcluster" / "node" / "records.jsonl", make_records(verdict))
    report = place.report_file(RUN)
    report.parent.mkdir(parents=True)
    report.write_text(json.dumps({"runs": [{"testcases": [make_case()]}]}))
    doubt = [Verdict.UNJUDGED.value, "ended with status 1"]
    note = RunNote(site="vcluster", arguments=["-r", "-n", "OsuBandwidth"], perflogs="", ended=True)
    replace(note, doubts=[doubt]).write(place, RUN)
    assert collect(site, place, RUN)[0].verdict is Verdict(becomes)
