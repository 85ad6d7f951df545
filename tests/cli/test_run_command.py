"""``fabricproof run``: its statuses and its data, with a pretended ReFrame or none at all."""

from __future__ import annotations

import json
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from fabricproof.cli.measure import run as run_module
from fabricproof.core.errors import ExitStatus, UnavailableError
from fabricproof.core.measure import Verdict
from fabricproof.core.records import append_records
from fabricproof.history.store import labels
from fabricproof.job.run import collect, workplace
from fabricproof.job.run import start as runner
from fabricproof.site import load_site
from fabricproof.site.roll import write_roll

Command = Callable[..., Any]

SITE = Path(__file__).parents[1] / "rfm" / "site"
VCLUSTER = Path(__file__).parents[2] / "site-configs" / "vcluster"

CASE = {
    "name": "OsuBandwidth %fabric=eth0",
    "unique_name": "OsuBandwidth_0",
    "partition": "node",
    "environ": "fake",
    "fabric": "eth0",
    "suite": "osu",
    "program": "osu_bw",
    "jobid": "42",
    "result": "pass",
    "fail_phase": None,
    "fail_reason": None,
    "skip_reason": "",
}

ENTRY = {"check": "OsuBandwidth", "fabric": "eth0", "partition": "node", "stack": "fake"}


class Pretended:
    """A project whose ReFrame leaves what a test says, without running anything."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.site = folder / "site"
        shutil.copytree(SITE, self.site)
        self.cases: list[dict[str, Any]] | None = []
        self.records: list[dict[str, Any]] = []
        self.lines: list[str] = []
        self.status = 0
        self.arguments: list[str] = []
        self.asked: list[str] = []
        self.after_first: Callable[[], object] = lambda: None

    def leg(self, verdict: str, *, result: str = "pass") -> None:
        """Let ReFrame run one case whose one leg comes to ``verdict``."""
        identity = {
            "check": "OsuBandwidth",
            "unique_name": "OsuBandwidth_0",
            "partition": "node",
            "stack": "fake",
            "suite": "osu",
            "program": "osu_bw",
            "fabric": "eth0",
            "leg": "lo",
            "job_id": "42",
        }
        quantity = {
            "quantity_name": "bandwidth_4MiB",
            "quantity_value": 47.0,
            "quantity_unit": "MB/s",
            "quantity_message_size": 4194304,
            "quantity_verdict": verdict,
            "quantity_reason": "because",
            "quantity_ceiling": 48.6,
            "quantity_reference": 48.5,
            "quantity_origin": "physics",
            "quantity_named": True,
        }
        self.cases = [{**CASE, "result": result}]
        self.records = [
            {**identity, **quantity, "kind": "quantity", "counts": True, "nodes": ["n1", "n2"]},
            {
                **identity,
                "kind": "leg",
                "verdict": verdict,
                "findings": [{"kind": "note", "text": "a dip"}],
            },
        ]

    def reframe(
        self,
        arguments: list[str],
        environment: dict[str, str],
        on_line: Callable[[str], None],
        *,
        alive: Callable[[], bool] = lambda: True,
    ) -> int:
        """Stand in for :func:`fabricproof.job.run.start.run_reframe`."""
        self.arguments = list(arguments)
        self.asked.append(environment.get("FABRICPROOF_NODES", ""))
        for line in self.lines:
            on_line(line)
        report = Path(environment["RFM_REPORT_FILE"])
        report.parent.mkdir(parents=True, exist_ok=True)
        if self.cases is not None:
            report.write_text(json.dumps({"runs": [{"testcases": self.cases}]}))
        run_id = environment["FABRICPROOF_RUN_ID"]
        path = Path(environment["FABRICPROOF_PERFLOGS"]) / "traps" / "node" / "records.jsonl"
        append_records(path, [{**record, "run_id": run_id} for record in self.records])
        if len(self.asked) == 1:
            self.after_first()
        return self.status


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Pretended:
    pretended = Pretended(tmp_path)
    monkeypatch.setattr(run_module, "project_root", lambda: tmp_path)
    monkeypatch.setattr(run_module, "run_reframe", pretended.reframe)
    for name in ("FABRICPROOF_WORK", "FABRICPROOF_PERFLOGS", "FABRICPROOF_SITE"):
        monkeypatch.delenv(name, raising=False)
    return pretended


@pytest.mark.parametrize(
    ("verdict", "status"),
    [("PASS", 0), ("FAIL", 1), ("INVALID", 3), ("MISSING", 4), ("UNJUDGED", 5)],
)
def test_the_status_is_the_worst_verdict(
    fabricproof: Command, project: Pretended, verdict: str, status: int
) -> None:
    project.leg(verdict)
    ended = fabricproof("run", "--site", project.site)
    assert ended.status == status
    assert f"{verdict}: 1 {verdict} of 1 leg (run " in ended.out


def test_json_is_one_object_with_everything_a_machine_needs(
    fabricproof: Command, project: Pretended
) -> None:
    project.leg("FAIL")
    record = fabricproof("run", "--site", project.site, "--json").record
    assert set(record) == {"verdict", "run_id", "counts", "legs", "notes", "measured_again"}
    assert record["measured_again"] == [], "what is red is not"
    assert record["verdict"] == "FAIL"
    assert record["counts"] == {"FAIL": 1}
    (leg,) = record["legs"]
    expected = {
        "verdict": "FAIL",
        "check": "OsuBandwidth",
        "partition": "node",
        "stack": "fake",
        "suite": "osu",
        "program": "osu_bw",
        "fabric": "eth0",
        "leg": "lo",
        "nodes": ["n1", "n2"],
        "job_id": "42",
        "findings": [{"kind": "note", "text": "a dip"}],
    }
    assert {key: leg[key] for key in expected} == expected
    assert "because" in leg["reason"]
    (quantity,) = leg["quantities"]
    assert quantity["name"] == "bandwidth_4MiB"
    assert quantity["value"] == 47.0
    assert quantity["verdict"] == "FAIL"
    assert quantity["message_size"] == 4194304


def _disturbed(project: Pretended) -> None:
    """Let the run be UNJUDGED because of others."""
    project.leg("UNJUDGED")
    project.records[0]["quantity_disturbance"] = "foreign_traffic"
    _on_nodes(project)


def _on_nodes(project: Pretended) -> None:
    assert project.cases is not None
    project.cases[0]["job_nodelist"] = ["n1", "n2"]


@pytest.mark.parametrize(("then", "status"), [("PASS", 0), ("UNJUDGED", 5), ("FAIL", 1)])
def test_what_was_disturbed_is_measured_once_more_and_that_counts(
    fabricproof: Command, project: Pretended, then: str, status: int
) -> None:
    _disturbed(project)
    project.after_first = lambda: (project.leg(then), _on_nodes(project))
    ended = fabricproof("run", "--site", project.site, "-n", "OsuBandwidth", "--json")
    assert (ended.status, ended.record["verdict"]) == (status, then)
    assert project.asked == ["", "n1,n2"]
    assert "measuring again: OsuBandwidth with fake on n1,n2: lo was disturbed" in ended.err
    (again,) = ended.record["measured_again"]
    assert (again["first_verdict"], again["looks"][0]["verdict"]) == ("UNJUDGED", then)
    assert f"measured again: {then} on n1 and n2" in str(ended.record["legs"][0]["findings"])
    folder = project.folder / "perflogs" / "traps" / "node"
    assert (
        "".join(each.read_text() for each in folder.glob("*.jsonl")).count('"kind": "confirmation"')
        == 1
    )
    look = again["looks"][0]["run_id"]
    assert labels(project.folder / "perflogs", "traps") == {"night-look": (look,)}


@pytest.mark.parametrize(
    ("options", "again"),
    [
        (("-S", "OsuBandwidth.budget=1"), ["--setvar=OsuBandwidth.budget=1"]),
        (("-c", "mine.py", "-R"), ["--checkpath=mine.py", "--recursive"]),
    ],
)
def test_a_run_with_settings_of_its_own_is_measured_again_with_them(
    fabricproof: Command, project: Pretended, options: tuple[str, ...], again: list[str]
) -> None:
    _disturbed(project)
    project.after_first = lambda: (project.leg("PASS"), _on_nodes(project))
    assert fabricproof("run", "--site", project.site, *options).status == 0
    assert project.asked == ["", "n1,n2"]
    assert {*again} <= {*project.arguments}


def test_a_run_with_options_that_nobody_follows_is_not_measured_again(
    fabricproof: Command, project: Pretended
) -> None:
    _disturbed(project)
    assert fabricproof("run", "--site", project.site, "--mode=x").status == 5
    assert len(project.asked) == 1


def test_reframe_with_r_measures_nothing_again(
    fabricproof: Command, project: Pretended, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FABRICPROOF_SITE", str(project.site))
    _disturbed(project)
    assert fabricproof("reframe", "-r").status == 5
    assert len(project.asked) == 1


def test_json_leaves_no_other_word_on_standard_output(
    fabricproof: Command, project: Pretended
) -> None:
    project.leg("PASS")
    project.lines = ["[ReFrame Setup]", "[ RUN      ] OsuBandwidth", "WARNING: beware"]
    assert fabricproof("run", "--site", project.site, "--json").out.startswith("{")
    assert "WARNING: beware" in fabricproof("run", "--site", project.site).out


def test_tags_and_options_reach_reframe(fabricproof: Command, project: Pretended) -> None:
    fabricproof("run", "--site", project.site, "-t", "quick", "-t", "roce", "-p", "fake", "--vv")
    assert project.arguments == ["--run", "--tag=quick", "--tag=roce", "--prgenv=^fake$", "--vv"]


# Nothing judged.


def test_all_skipped_is_nothing_judged(fabricproof: Command, project: Pretended) -> None:
    project.cases = [{**CASE, "result": "skip", "skip_reason": "one rail only", "jobid": None}]
    ended = fabricproof("run", "--site", project.site)
    assert ended.status == 6
    assert "one rail only" in ended.out


def test_no_check_selected_is_nothing_judged(fabricproof: Command, project: Pretended) -> None:
    project.cases = None
    project.lines = ["[==========] Running 0 check(s)"]
    ended = fabricproof("run", "--site", project.site, "-x", "Osu")
    assert ended.status == 6
    assert "no check was selected by -x Osu" in ended.out
    assert fabricproof("run", "--site", project.site, "-n", "Nothing").status == 4


def test_an_option_that_reframe_does_not_know_is_a_usage_error(
    fabricproof: Command, project: Pretended
) -> None:
    project.cases = None
    project.lines = [
        "usage: reframe [-h] [-t PATTERN] [--tag PATTERN]",
        "reframe: error: unrecognized arguments: --tagg quick --sit x",
    ]
    ended = fabricproof("run", "--site", project.site, "--tagg", "quick", "--sit", "x")
    assert ended.status == 2
    assert "did you mean --tag, --site?" in ended.err
    project.lines[1] = "reframe: error: argument --tag: not allowed with argument -r"
    assert "did you mean" not in fabricproof("run", "--site", project.site, "--tag", "x").err


def test_a_name_that_no_check_fits_is_missing_beside_what_ran(
    fabricproof: Command, project: Pretended
) -> None:
    project.leg("PASS")
    run = ("run", "--site", project.site, "-n", "OsuBandwidth")
    assert fabricproof(*run).status == 0
    ended = fabricproof(*run, "-n", "OsuLatncy")
    assert ended.status == 4
    assert "-n OsuLatncy" in ended.out
    assert "no check that the other options leave has such a name" in ended.out


def test_the_name_of_a_stack_reaches_reframe_as_that_stack_alone(
    fabricproof: Command, project: Pretended
) -> None:
    project.leg("PASS")
    fabricproof("run", "--site", project.site, "-p", "fake")
    assert project.arguments == ["--run", "--prgenv=^fake$"]


def test_no_check_selected_although_some_are_due_is_missing(
    fabricproof: Command, project: Pretended
) -> None:
    write_roll(project.site, [{**ENTRY, "tags": ["quick"]}])
    project.cases = None
    project.lines = ["[==========] Running 0 check(s)"]
    assert fabricproof("run", "--site", project.site, "-t", "quick").status == 4
    assert fabricproof("run", "--site", project.site, "-t", "full").status == 6


def test_a_file_that_is_no_python_is_missing_with_its_line_and_no_traceback(
    fabricproof: Command, project: Pretended
) -> None:
    """As ReFrame 4 says it, which ends before any check; it was a report that cannot be read."""
    project.cases = None
    project.lines = [
        "ERROR: run session stopped: syntax error: invalid syntax (pairs.py, line 7)",
        "ERROR: Traceback (most recent call last):",
    ]
    ended = fabricproof("run", "--site", project.site)
    assert ended.status == 4
    assert "invalid syntax (pairs.py, line 7): no check of any file ran" in ended.out
    assert "no check was selected" not in ended.out
    assert "Traceback" not in ended.out + ended.err


def test_ten_checks_are_not_none(fabricproof: Command, project: Pretended) -> None:
    project.cases = None
    project.lines = ["[==========] Running 10 check(s)"]
    assert fabricproof("run", "--site", project.site).status == 65


# Something is wrong around the run.


def test_no_report_is_damaged_data_in_one_line(fabricproof: Command, project: Pretended) -> None:
    project.cases = None
    ended = fabricproof("run", "--site", project.site)
    assert ended.status == 65
    assert ended.err.startswith("fabricproof: ")
    assert len(ended.err.splitlines()) == 1


def test_a_due_check_that_did_not_run_is_missing(fabricproof: Command, project: Pretended) -> None:
    project.leg("PASS")
    write_roll(
        project.site,
        [{**ENTRY, "tags": ["quick"]}, {**ENTRY, "check": "OsuLatency", "tags": ["quick"]}],
    )
    ended = fabricproof("run", "--site", project.site, "--json")
    assert ended.status == 4
    assert ended.record["counts"] == {"PASS": 1, "MISSING": 1}


def test_a_check_file_that_could_not_be_loaded_is_missing(
    fabricproof: Command, project: Pretended
) -> None:
    project.leg("PASS")
    project.lines = ["WARNING: skipping test file 'checks/a.py': no module named x"]
    ended = fabricproof("run", "--site", project.site)
    assert ended.status == 4
    assert "skipping test file 'checks/a.py'" in ended.out


def test_a_failure_of_reframe_that_no_check_explains_is_not_green(
    fabricproof: Command, project: Pretended
) -> None:
    project.leg("PASS")
    project.status = 1
    ended = fabricproof("run", "--site", project.site)
    assert ended.status == 5
    assert "ended with status 1 although no check failed" in ended.out
    (report,) = (project.folder / "perflogs" / "reports").glob("*.json")
    place = workplace(project.folder)
    later, _ = collect(load_site(str(project.site)), place, report.stem)
    assert later.verdict is Verdict.UNJUDGED
    assert later.legs[-1].doubts_run
    assert later.legs[-1].reason in ended.out


def test_a_failure_of_reframe_that_a_check_explains_adds_nothing(
    fabricproof: Command, project: Pretended
) -> None:
    project.leg("FAIL", result="fail")
    project.status = 1
    record = fabricproof("run", "--site", project.site, "--json").record
    assert record["counts"] == {"FAIL": 1}


def test_an_interrupted_run_is_never_green(
    fabricproof: Command, project: Pretended, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*arguments: Any, **options: Any) -> int:
        project.reframe(*arguments, **options)
        raise KeyboardInterrupt

    project.leg("PASS")
    monkeypatch.setattr(run_module, "run_reframe", interrupted)
    ended = fabricproof("run", "--site", project.site, "--json")
    assert (ended.status, ended.record["verdict"]) == (130, "MISSING")
    assert ended.record["counts"] == {"PASS": 1, "MISSING": 1}


def test_an_interrupted_run_keeps_the_verdict_it_had_come_to(
    fabricproof: Command, project: Pretended, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*arguments: Any, **options: Any) -> int:
        project.reframe(*arguments, **options)
        raise KeyboardInterrupt

    project.leg("FAIL", result="fail")
    monkeypatch.setattr(run_module, "run_reframe", interrupted)
    ended = fabricproof("run", "--site", project.site, "--json")
    assert (ended.status, ended.record["counts"]) == (130, {"FAIL": 1})


def test_a_scheduler_that_dies_leaves_what_had_finished_and_its_own_status(
    fabricproof: Command, project: Pretended, monkeypatch: pytest.MonkeyPatch
) -> None:
    def lost(*arguments: Any, **options: Any) -> int:
        project.reframe(*arguments, **options)
        raise UnavailableError("the scheduler stopped answering during the run")

    project.leg("PASS")
    monkeypatch.setattr(run_module, "run_reframe", lost)
    ended = fabricproof("run", "--site", project.site, "--json")
    assert (ended.status, ended.record["verdict"]) == (ExitStatus.UNAVAILABLE, "MISSING")
    assert "stopped answering" in ended.err


def test_a_run_goes_on_when_nobody_reads_its_progress() -> None:
    program = (
        "import sys, time\n"
        "from fabricproof.cli.measure.run_progress import Progress\n"
        "time.sleep(0.5)\n"
        "progress = Progress(quiet=False, verbose=True)\n"
        "for number in range(3): progress.line(f'[ RUN      ] {number}')\n"
        "print('a later word'); print(len(progress.lines), progress.quiet, file=sys.stderr)\n"
    )
    ended = subprocess.run(
        ["bash", "-c", f"{sys.executable} -c {shlex.quote(program)} | exit 0"],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert ended.stderr == "3 True\n"


def test_a_torn_record_of_an_earlier_run_is_noted(fabricproof: Command, project: Pretended) -> None:
    path = project.folder / "perflogs" / "traps" / "node" / "records.jsonl"
    path.parent.mkdir(parents=True)
    path.write_text('{"format": 1, "run')
    project.leg("PASS")
    ended = fabricproof("run", "--site", project.site, "--json")
    assert ended.status == 0
    assert any("torn by a crash" in note for note in ended.record["notes"])


def test_a_damaged_record_is_an_error_with_its_line(
    fabricproof: Command, project: Pretended
) -> None:
    path = project.folder / "perflogs" / "traps" / "node" / "records.jsonl"
    path.parent.mkdir(parents=True)
    path.write_text("what is this\n")
    project.leg("PASS")
    ended = fabricproof("run", "--site", project.site)
    assert ended.status == 65
    assert "records.jsonl:1: damaged record" in ended.err


def test_a_site_without_a_roll_is_told_so(fabricproof: Command, project: Pretended) -> None:
    project.leg("PASS")
    notes = fabricproof("run", "--site", project.site, "--json").record["notes"]
    word = shlex.quote(str(Path(project.site).absolute()))
    told = "no list of required checks: an absent one is not noticed; next: "
    assert f"{told}fabricproof site roll {word} --write" in notes


def test_without_slurm_nothing_is_started(
    fabricproof: Command, project: Pretended, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runner.shutil, "which", lambda *_, **__: None)
    ended = fabricproof("run", "--site", VCLUSTER)
    assert ended.status == 69
    assert ended.err.count("\n") == 1
    assert "fabricproof vcluster up" in ended.err
    assert project.arguments == []


def test_an_unknown_site_is_named(fabricproof: Command, project: Pretended) -> None:
    ended = fabricproof("run", "--site", "nowhere")
    assert ended.status == 66
    assert "'nowhere'" in ended.err


# ``fabricproof reframe`` with -r is a run.


def test_reframe_with_r_gives_the_verdict(
    fabricproof: Command, project: Pretended, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FABRICPROOF_SITE", str(project.site))
    project.leg("FAIL")
    ended = fabricproof("reframe", "-c", "checks", "-rt", "quick")
    assert ended.status == 1
    assert project.arguments == ["-c", "checks", "-rt", "quick"]


def test_reframe_without_r_becomes_reframe(
    fabricproof: Command, project: Pretended, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FABRICPROOF_SITE", str(project.site))
    seen: dict[str, Any] = {}

    def become(program: str, arguments: list[str], environment: dict[str, str]) -> None:
        seen.update(program=program, arguments=arguments, environment=environment)

    monkeypatch.setattr(run_module.os, "execve", become)
    fabricproof("reframe", "-l", "-t", "quick")
    assert seen["arguments"][1:] == ["-l", "-t", "quick"]
    assert seen["program"].endswith("/reframe")
    assert seen["environment"]["RFM_SYSTEM"] == "traps"


#: as ReFrame 4.10.4 writes it for a check whose stack a fixture builds
PIPELINE = """\
stages:
- rfm-stage-0
- rfm-stage-1
StackBuild_1:
  stage: rfm-stage-0
  script:
  - reframe --prefix=rfm-stage/${CI_COMMIT_SHORT_SHA} -C /s.py -R --report-file=b.json -n /1 -r
  needs: []
Well_0:
  stage: rfm-stage-1
  script:
  - reframe --prefix=p -C /s.py -c /checks -R --report-file=Well_0-report.json \
--restore-session=b.json --report-junit=Well_0-report.xml -n /14c7 -r
  artifacts:
    paths:
    - Well_0-report.json
  needs:
  - StackBuild_1
"""


def test_the_jobs_of_a_pipeline_give_the_verdict(tmp_path: Path) -> None:
    pipeline = run_module.with_verdicts(PIPELINE, tmp_path)
    assert "StackBuild" not in pipeline
    assert (
        f"  - FABRICPROOF_SITE={tmp_path} fabricproof reframe -c /checks -R "
        "--report-junit=Well_0-report.xml -n /14c7 -r\n"
    ) in pipeline
    assert (
        "    - Well_0-report.xml\n  allow_failure:\n    exit_codes: [6]\n  needs: []\n" in pipeline
    )


@pytest.mark.parametrize(
    ("line", "status", "words"),
    [
        ("ERROR: invalid mode: 'x'", 78, "invalid mode: 'x'"),
        ("reframe: error: unrecognized arguments: --nodelist=n1", 2, "-J nodelist=VALUE"),
    ],
)
def test_what_reframe_refuses_is_said(
    fabricproof: Command, project: Pretended, line: str, status: int, words: str
) -> None:
    project.cases, project.lines = None, [line]
    ended = fabricproof("run", "--site", project.site)
    assert ended.status == status
    assert words in ended.err
