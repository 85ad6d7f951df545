"""A stack that Spack builds, through real ReFrame: what a build that fails does to what waits."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pretended_build import make_built
from reframe_sessions import HouseRun, run_builds

from fabricproof.cli.measure.run_progress import Progress
from fabricproof.core.errors import ConfigError
from fabricproof.core.provenance import differences, identity_of
from fabricproof.core.records import read_records
from fabricproof.rfm import build
from fabricproof.site import load_site
from fabricproof.stacks.spack.environment import layout_for
from fabricproof.stacks.spack.proof import write_built

STACKS = ("good", "bad", "passed_over", "moving", "plain")
DUE = [
    {"check": check, "fabric": "eth0", "partition": "node", "stack": stack, "tags": ["trap"]}
    for check in ("Well", "NoSuch")
    for stack in STACKS
]


@pytest.fixture(scope="module")
def builds(tmp_path_factory: pytest.TempPathFactory) -> HouseRun:
    return run_builds(tmp_path_factory.mktemp("builds"), ["-t", "trap|moving"], DUE)


@pytest.fixture(scope="module")
def one_check(builds: HouseRun) -> HouseRun:
    """A run of one check on one stack, in the same place, with everything built."""
    return run_builds(builds.project, ["-n", "^Well", "-p", "good"])


def _leg(run: HouseRun, check: str, stack: str) -> dict[str, Any]:
    (leg,) = [each for each in run.legs(check) if each["stack"] == stack]
    return leg


def _records(run: HouseRun, check: str, stack: str) -> list[dict[str, Any]]:
    run_id = run.record["run_id"]
    path = run.project / "perflogs" / "builds" / "node" / f"{run_id}.jsonl"
    return [
        each
        for each in read_records(path)
        if (each["run_id"], each["check"], each["stack"]) == (run_id, check, stack)
    ]


def test_a_check_runs_what_was_built_for_it(builds: HouseRun) -> None:
    leg = _leg(builds, "Well", "good")
    assert leg["verdict"] == "PASS"
    assert leg["suite"] == "osu"


def test_a_check_whose_ranks_load_another_mpi_is_invalid_and_says_which(builds: HouseRun) -> None:
    leg = _leg(builds, "Strayed", "good")
    assert leg["verdict"] == "INVALID"
    assert "loads MPI library /usr/lib/libmpi.so.40, the stack was built with" in leg["reason"]


def test_the_record_holds_the_library_that_each_rank_loads(builds: HouseRun) -> None:
    found = {
        check: {
            rank["library"]
            for record in _records(builds, check, "good")
            if record["kind"] == "environment"
            for rank in record["environment"]["ranks"]
        }
        for check in ("Well", "Strayed")
    }
    mine = builds.project / "stacks" / "good" / "mpi" / "lib" / "libmpi.so.40"
    assert found == {"Well": {str(mine)}, "Strayed": {"/usr/lib/libmpi.so.40"}}


def test_each_stack_is_built_once_for_all_checks(builds: HouseRun) -> None:
    assert sorted(builds.built) == ["bad", "good", "moving", "moving"], "one is Rebuilds' own"


def test_a_stack_of_another_kind_needs_no_build(builds: HouseRun) -> None:
    assert _leg(builds, "Well", "plain")["verdict"] == "PASS"
    assert "plain" not in builds.built


def test_a_build_that_failed_is_a_line_of_its_own_with_reason_and_log(builds: HouseRun) -> None:
    leg = _leg(builds, "StackBuild", "bad")
    assert leg["verdict"] == "MISSING"
    assert leg["reason"].startswith("osu-micro-benchmarks was not built: expected mpicc")
    assert leg["findings"][-1]["text"] == "==> Error: make: *** [all] Error 2"


@pytest.mark.parametrize("check", ["Well", "Rebuilds"])
def test_what_waits_for_a_failed_build_is_missing_and_says_why(
    builds: HouseRun, check: str
) -> None:
    leg = _leg(builds, check, "bad")
    assert leg["verdict"] == "MISSING"
    assert leg["reason"].startswith("stack bad was not built: osu-micro-benchmarks was not built")


def test_reframe_by_itself_has_no_reason_for_what_waits(builds: HouseRun) -> None:
    (case,) = [
        case
        for case in builds.reports[0]["runs"][0]["testcases"]
        if case["name"] == "Well %fabric=eth0" and case["environ"] == "passed_over"
    ]
    assert (case["result"], case["skip_reason"], case["fail_reason"]) == ("skip", "", None)


def test_a_skipped_build_makes_no_silent_skips(builds: HouseRun) -> None:
    assert _leg(builds, "StackBuild", "passed_over")["verdict"] == "MISSING"
    leg = _leg(builds, "Well", "passed_over")
    assert (leg["verdict"], leg["reason"]) == (
        "MISSING",
        "stack passed_over was not built: its build was skipped",
    )


def test_builds_that_passed_are_no_legs(builds: HouseRun) -> None:
    built = {leg["stack"] for leg in builds.legs("StackBuild")}
    assert built == {"bad", "passed_over"}


def test_what_is_due_and_waits_is_there_and_what_is_due_and_unknown_is_not(
    builds: HouseRun,
) -> None:
    assert all(len([leg for leg in builds.legs("Well") if leg["stack"] == s]) == 1 for s in STACKS)
    lost = {leg["stack"] for leg in builds.legs("NoSuch") if "a required check" in leg["reason"]}
    assert lost == set(STACKS)


def test_what_this_site_does_not_have_is_skipped_without_a_build(one_check: HouseRun) -> None:
    cases = one_check.reports[0]["runs"][0]["testcases"]
    deps = {case["name"]: case["dependencies_actual"] for case in cases}
    assert deps["Well %fabric=no-infiniband"] == []
    assert len(deps["Well %fabric=eth0"]) == 1


def test_one_check_by_name_builds_its_stack_and_no_other(one_check: HouseRun) -> None:
    cases = {case["environ"] for case in one_check.reports[0]["runs"][0]["testcases"]}
    assert cases == {"good"}
    assert one_check.status == 0
    assert one_check.built == ["good"]


def test_a_run_in_which_only_builds_passed_judged_nothing(builds: HouseRun) -> None:
    run = run_builds(builds.project, ["-n", "^Other", "-p", "good"])
    results = {
        (case["name"].split(" ")[0], case["result"])
        for case in run.reports[0]["runs"][0]["testcases"]
    }
    assert ("StackBuild", "pass") in results
    assert run.status == 6
    assert run.record["verdict"] == "SKIPPED"


def test_a_restored_session_that_cannot_restore_a_failed_build_is_not_green(
    builds: HouseRun,
) -> None:
    run_id = builds.record["run_id"]
    report = builds.project / "perflogs" / "reports" / f"{run_id}.json"
    with pytest.raises(ConfigError, match="could not restore testcase"):
        run_builds(builds.project, [f"--restore-session={report}", "--failed"])


# Provenance.


def test_every_record_says_which_build_was_measured(builds: HouseRun) -> None:
    records = _records(builds, "Well", "good")
    assert {each["kind"] for each in records} == {"environment", "quantity", "leg"}
    for each in records:
        identity = identity_of(each)
        assert identity is not None
        assert identity.digest == "a" * 64
        assert identity.mpi == "openmpi@5.0"
        assert identity.program == "osu-micro-benchmarks@7.2"
        assert (identity.compiler, identity.target) == ("gcc@12.2.0", "x86_64_v3")


def test_so_does_every_row_of_the_perflog(builds: HouseRun) -> None:
    path = builds.project / "perflogs" / "builds" / "node" / "Well.log"
    header, *rows = [line.split("|") for line in path.read_text().splitlines()]
    shown = [dict(zip(header, row, strict=True)) for row in rows]
    of_good = [row for row in shown if row["environ"] == "good"]
    assert {row["stack_digest"] for row in of_good} == {"a" * 12}
    assert {row["stack_program"] for row in of_good} == {"osu-micro-benchmarks@7.2"}


def test_a_declared_stack_has_an_identity_of_its_own(builds: HouseRun) -> None:
    identity = identity_of(_records(builds, "Well", "plain")[0])
    assert identity is not None
    assert (identity.origin, identity.mpi) == ("declared", "openmpi@0")
    assert len(identity.digest) == 64


def test_a_stack_that_was_rebuilt_during_the_run_is_invalid_everywhere(builds: HouseRun) -> None:
    for check in ("Well", "Rebuilds"):
        leg = _leg(builds, check, "moving")
        assert leg["verdict"] == "INVALID", _leg(builds, "Rebuilds", "moving")["reason"]
        assert (
            "not one build throughout the run: digest: aaaaaaaaaaaa against bbbbbbbbbbbb"
            in leg["reason"]
        )
    assert builds.status == 3


def test_a_reference_of_another_build_does_not_apply_and_is_said(builds: HouseRun) -> None:
    leg = _leg(builds, "Well", "good")
    assert leg["quantities"][-1]["reference"] == pytest.approx(1100)
    (said,) = [each for each in leg["findings"] if "0badc0de" in each["text"]]
    assert "was measured with build 0badc0de, this is aaaaaaaaaaaa" in said["text"]


def test_a_reference_of_this_build_is_the_most_specific(builds: HouseRun) -> None:
    (record,) = [
        each
        for each in _records(builds, "Well", "moving")
        if each["kind"] == "quantity" and each["quantity_named"] and each["counts"]
    ]
    assert record["quantity_reference"] == pytest.approx(1050)


# The build's own words.


@contextlib.contextmanager
def _stage(folder: Path, **files: str) -> Iterator[Path]:
    for name, text in files.items():
        (folder / f"build.{name}").write_text(text)
    yield folder


@pytest.mark.parametrize(
    ("files", "reason"),
    [
        (
            {"status": "69\n", "err": "==> Error\nfabricproof: no Spack: expected spack on PATH\n"},
            "no Spack: expected spack on PATH",
        ),
        ({"status": "2\n", "err": "Error: No such option\n"}, "No such option"),
        ({"status": "137\n", "err": ""}, "the build ended with status 137: it said nothing"),
        ({"status": "1\n", "out": "half\n"}, "the build ended with status 1: half"),
        ({"err": "==> Installing\n"}, "the build was cut off before its end"),
        ({}, "the build was cut off before its end"),
        ({"status": "0\n"}, "the build ended well and left no record of what it built"),
    ],
)
def test_the_reason_is_the_builds_own_else_how_it_ended(
    tmp_path: Path, files: dict[str, str], reason: str
) -> None:
    with _stage(tmp_path, **files) as folder:
        assert build.reason_of(folder) == reason


def test_the_log_is_the_end_of_what_spack_said_without_the_reason(tmp_path: Path) -> None:
    lines = [f"line {number}" for number in range(50)]
    with _stage(tmp_path, err="\n".join([*lines, "fabricproof: it failed", ""])) as folder:
        assert build.log_of(folder) == lines[-build.LOG_LINES :]


def test_a_long_build_says_on_the_terminal_how_far_it_is(
    capsys: pytest.CaptureFixture[str],
) -> None:
    line = build.progress_line("openmpi", 61.2, "ucx: compiling (3 of 46 done)")
    Progress(quiet=False).line(line)
    assert capsys.readouterr().out == (
        "[    BUILD ] (openmpi, 61 s) ucx: compiling (3 of 46 done)\n"
    )


def test_the_build_is_started_by_this_python_for_this_site(tmp_path: Path) -> None:
    *_, command, _ = build.build_commands("openmpi", tmp_path)
    assert f"-m fabricproof.cli stack build openmpi --site {tmp_path}" in command


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        (
            'Lmod has detected the following error: unknown:\n\n  "openmpi5"\n',
            'it does not load: Lmod has detected the following error: unknown: "openmpi5"',
        ),
        ("", "it does not load: its job said nothing"),
        ("x" * 1000, f"it does not load: {'x' * 160}"),
    ],
)
def test_a_stack_of_the_sites_own_that_does_not_load_says_why(said: str, reason: str) -> None:
    assert build.loading_reason(said) == reason


def test_what_is_built_is_read_from_where_the_build_leaves_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, builds: HouseRun
) -> None:
    from fabricproof.stacks.stack import resolve  # noqa: PLC0415

    monkeypatch.setenv("FABRICPROOF_STACKS", str(tmp_path))
    site = load_site(str(builds.project / "site"))
    assert resolve(site, site.partitions[0], site.stack("good")).built is None
    assert resolve(site, site.partitions[0], site.stack("good")).identity("osu").mpi == "not built"
    built = make_built("good", tmp_path)
    write_built(layout_for("builds", site.folder).built("good"), built)
    assert resolve(site, site.partitions[0], site.stack("good")).built == built
    assert resolve(site, site.partitions[0], site.stack("plain")).built is None
    assert json.dumps(
        resolve(site, site.partitions[0], site.stack("good")).identity("osu").record()
    )


def test_a_library_that_is_replaced_in_place_is_another_stack(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from fabricproof.stacks.stack import resolve  # noqa: PLC0415 - as above

    monkeypatch.setenv("FABRICPROOF_STACKS", str(tmp_path / "stacks"))
    site = load_site(str(Path(__file__).parent / "spack_site"))
    stack = site.stack("good")
    built = make_built("good", tmp_path / "good")
    write_built(layout_for("builds", site.folder).built("good"), built)
    seen = [resolve(site, site.partitions[0], stack).identity("osu")]
    for content in (b"one", b"another"):
        Path(built.library).parent.mkdir(exist_ok=True)
        Path(built.library).write_bytes(content)
        seen.append(resolve(site, site.partitions[0], stack).identity("osu"))
    assert len({each.library for each in seen}) == 3
    assert [each.library == "" for each in seen] == [True, False, False]
    (unlike,) = differences(seen[1], seen[2])
    assert unlike.startswith("library: ")
