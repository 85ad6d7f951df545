"""What past runs took, and what they teach."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fabricproof.history.cost.history import (
    DEFAULT_SESSION_SECONDS,
    PastRuns,
    learn,
    read_history,
    without_waiting,
)
from planned import make_case, make_job, make_run, reported_case, write_leg, write_report

RUN = "20261120T180000Z-000001"
LATER = "20261120T190000Z-000002"


def test_a_past_job_has_its_attempts_and_nodes(tmp_path: Path) -> None:
    write_report(tmp_path, RUN, [reported_case()])
    write_leg(tmp_path, RUN)
    write_leg(tmp_path, RUN, attempts=2)
    (run,) = read_history(tmp_path, "vcluster", lambda _: False).runs
    (job,) = run.jobs
    assert (job.attempts, job.nodes, job.seconds) == ((1, 2), 2, 6.5)
    assert run.seconds == 9.5


def test_what_is_judged_across_legs_ran_nothing(tmp_path: Path) -> None:
    write_report(tmp_path, RUN, [reported_case()])
    write_leg(tmp_path, RUN)
    write_leg(tmp_path, RUN, leg="scaling", attempts=0)
    (run,) = read_history(tmp_path, "vcluster", lambda _: False).runs
    assert run.jobs[0].attempts == (1,)


@pytest.mark.parametrize("change", [{"verdict": "MISSING"}, {"job_state": "TIMEOUT"}])
def test_a_job_that_did_not_end_well_has_no_attempts(
    tmp_path: Path, change: dict[str, str]
) -> None:
    write_report(tmp_path, RUN, [reported_case()])
    write_leg(tmp_path, RUN)
    write_leg(tmp_path, RUN, **change)
    (run,) = read_history(tmp_path, "vcluster", lambda _: False).runs
    assert run.jobs[0].attempts == ()


def test_other_sites_dry_runs_and_damage_are_passed_over(tmp_path: Path) -> None:
    write_report(tmp_path, RUN, [reported_case(system="local")])
    write_report(tmp_path, LATER, [reported_case(job_submit_time=None)])
    write_report(tmp_path, "torn", []).write_text('{"runs": [')
    found = read_history(tmp_path, "vcluster", lambda _: False)
    assert found.runs == ()
    assert len(found.notes) == 1
    assert "torn.json" in found.notes[0]


def test_a_damaged_record_file_is_a_note_and_teaches_nothing(tmp_path: Path) -> None:
    write_report(tmp_path, RUN, [reported_case()])
    write_leg(tmp_path, RUN)
    path = tmp_path / "vcluster" / "compute" / "records.jsonl"
    path.write_text("no record\n" + path.read_text())
    found = read_history(tmp_path, "vcluster", lambda _: False)
    assert found.runs[0].jobs[0].attempts == ()
    assert "damaged record" in found.notes[0]


def test_a_build_of_a_run_is_kept_by_stack(tmp_path: Path) -> None:
    build = reported_case("StackBuild", fixture=True, job_completion_time_unix=400.5)
    del build["fabric"]
    write_report(tmp_path, RUN, [build, reported_case()])
    (run,) = read_history(tmp_path, "vcluster", lambda _: False).runs
    assert run.builds == {"openmpi5": 300.0}
    assert len(run.jobs) == 1


def test_a_job_behind_another_did_not_take_what_it_waited() -> None:
    jobs = [make_job(RUN, str(at), submitted=100.0, ended=100.0 + 6 * at) for at in (1, 2, 3)]
    alone, shared = (
        without_waiting([make_run(RUN, *jobs)], lambda _, is_serial=is_serial: is_serial)[0].jobs
        for is_serial in (True, False)
    )
    assert [job.seconds for job in alone] == [6.0, 6.0, 6.0]
    assert [job.seconds for job in shared] == [6.0, 12.0, 18.0]


def test_the_job_ahead_may_be_another_runs() -> None:
    first = make_run(RUN, make_job(RUN, "1", submitted=100.0, ended=150.0))
    second = make_run(LATER, make_job(LATER, "2", submitted=101.0, ended=156.0))
    assert without_waiting([first, second], lambda _: True)[1].jobs[0].seconds == 6.0


@given(st.lists(st.tuples(st.floats(0, 1e4), st.floats(0, 1e3)), min_size=1, max_size=20))
def test_jobs_in_a_row_never_take_longer_than_their_span(times: list[tuple[float, float]]) -> None:
    jobs = [
        make_job(RUN, str(at), submitted=start, ended=start + length)
        for at, (start, length) in enumerate(times)
    ]
    (run,) = without_waiting([make_run(RUN, *jobs)], lambda _: True)
    span = max(job.ended for job in jobs) - min(job.submitted for job in jobs)
    assert sum(job.seconds for job in run.jobs) <= span + 1e-6


def taught(*seconds: float, **changes: object) -> PastRuns:
    jobs = [
        make_job(RUN, str(at), seconds=each, **changes) for at, each in enumerate(seconds, start=1)
    ]
    return PastRuns(runs=(make_run(RUN, *jobs),))


def test_what_the_model_does_not_know_is_learnt_for_each_leg() -> None:
    lessons = learn(taught(6.0, 7.0, 8.0), [make_case()], serial=False)
    lesson = lessons.of(make_case())
    assert lesson is not None
    assert lesson.overhead_seconds == pytest.approx((7.0 - 4.0) / 2)
    assert (lesson.jobs, lesson.circle) == (3, "this check on this stack")


def test_one_stalled_job_teaches_nothing() -> None:
    calm = learn(taught(6.0, 6.0, 6.0), [make_case()], serial=False).of(make_case())
    stalled = learn(taught(6.0, 6.0, 600.0), [make_case()], serial=False).of(make_case())
    assert calm is not None
    assert stalled is not None
    assert stalled.overhead_seconds == calm.overhead_seconds


def test_a_second_look_counts_as_a_launch_and_as_a_rate() -> None:
    history = taught(9.0, 9.0, attempts=(2, 1))
    lesson = learn(history, [make_case()], serial=False).of(make_case())
    assert lesson is not None
    assert lesson.overhead_seconds == pytest.approx((9.0 - 3 * 2.0) / 3)
    assert lesson.second_looks == 0.5


def test_a_stack_never_seen_learns_from_the_check_and_a_check_from_the_suite() -> None:
    cases = [make_case(), make_case(stack="mpich"), make_case(check="OsuPut", stack="mpich")]
    lessons = learn(taught(6.0, 6.0), cases, serial=False)
    circles = [lesson.circle for case in cases if (lesson := lessons.of(case))]
    assert circles == ["this check on this stack", "this check", "this suite"]


def test_what_is_not_planned_any_more_or_ran_otherwise_teaches_nothing() -> None:
    assert learn(taught(6.0, 6.0), [make_case(check="Other")], serial=False).jobs == 0
    assert learn(taught(6.0, 6.0, suite="imb"), [make_case()], serial=False).jobs == 0
    assert learn(taught(6.0, 6.0, attempts=(1,)), [make_case()], serial=False).jobs == 0
    assert learn(taught(6.0), [make_case()], serial=False).of(make_case()) is None


def test_what_reframe_takes_around_the_jobs_is_learnt_where_they_run_in_a_row() -> None:
    history = taught(6.0, 6.0)
    assert learn(history, [make_case()], serial=True).session_seconds == pytest.approx(4.0)
    assert learn(history, [make_case()], serial=False).session_seconds == DEFAULT_SESSION_SECONDS


def test_a_run_that_built_says_nothing_of_what_reframe_takes() -> None:
    history = PastRuns(runs=(make_run(RUN, make_job(RUN, "1"), seconds=900, openmpi=800.0),))
    assert learn(history, [make_case()], serial=True).sessions == 0


def test_only_older_runs_are_before_a_run() -> None:
    history = PastRuns(runs=(make_run(RUN), make_run(LATER)))
    assert [run.run_id for run in history.before(LATER).runs] == [RUN]
