"""From cases and lessons to totals, levels and the comparison with a run."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fabricproof.history.cost.history import DEFAULT_START_SECONDS, Lesson, Lessons
from fabricproof.history.cost.outlook import (
    LEAST_JOB_SECONDS,
    Estimate,
    add_up,
    compare,
    estimate,
    left_out,
    look_ahead,
    off_by,
    refusals,
    select,
    serialised_by,
)
from planned import make_case, make_job, make_partition, make_path, make_run

NOTHING_LEARNT = Lessons(by_circle={})


def lessons(overhead: float, second_looks: float = 0.0) -> Lessons:
    lesson = Lesson(
        overhead_seconds=overhead, second_looks=second_looks, jobs=9, circle="this site"
    )
    return Lessons(by_circle={("site",): lesson}, jobs=9)


def test_without_history_each_start_has_the_stated_default() -> None:
    case = make_case(net_paths=(make_path("rail0", 2.0, starts=2),))
    found = estimate(case, NOTHING_LEARNT)
    assert found.leg_seconds == (2.0 + 2 * DEFAULT_START_SECONDS,)
    assert found.lesson is None


def test_what_was_learnt_is_added_to_each_leg_and_second_looks_on_top() -> None:
    found = estimate(make_case(), lessons(1.0, second_looks=0.5))
    assert found.leg_seconds == (3.0, 3.0)
    assert found.seconds == 9.0
    assert found.node_seconds == 18.0


def test_no_leg_takes_less_than_nothing() -> None:
    found = estimate(make_case(), lessons(-50.0))
    assert found.leg_seconds == (0.0, 0.0)
    assert found.seconds == LEAST_JOB_SECONDS


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"access": ["--partition=compute", "--licenses=fabric:1"]}, "licence fabric:1"),
        ({"access": ["-L fabric:1"]}, "licence fabric:1"),
        ({"max_jobs": 1}, "max_jobs = 1"),
        ({"access": ["--partition=licences"]}, ""),
    ],
)
def test_what_lets_one_job_run_at_a_time_is_named(changes: dict[str, Any], reason: str) -> None:
    assert serialised_by(make_partition(**changes)) == reason


def costed(count: int, **changes: Any) -> tuple[float, float]:
    chosen = [estimate(make_case(), lessons(1.0)) for _ in range(count)]
    partition = make_partition(**changes)
    return add_up(chosen, {"compute": partition}, 5.0).wall_seconds


def test_jobs_one_at_a_time_add_up_and_others_are_a_range() -> None:
    assert costed(8, max_jobs=1) == (8 * 6.0 + 5, 8 * 6.0 + 5)
    assert costed(8, max_jobs=4) == (2 * 6.0 + 5, 8 * 6.0 + 5)
    assert costed(1, max_jobs=4) == (6.0 + 5, 6.0 + 5)


def test_nothing_costs_nothing() -> None:
    assert costed(0) == (0.0, 0.0)


@given(st.lists(st.floats(0.1, 500), min_size=1, max_size=9), st.integers(1, 20))
def test_the_expectation_is_never_below_the_longest_job(seconds: list[float], at_once: int) -> None:
    cases = [make_case(net_paths=(make_path("rail0", each),)) for each in seconds]
    found = [estimate(case, lessons(0.0)) for case in cases]
    cost = add_up(found, {"compute": make_partition(max_jobs=at_once)}, 0.0)
    least, most = cost.wall_seconds
    assert max(each.seconds for each in found) <= least <= most + 1e-9


def test_the_upper_bound_is_every_job_at_its_limit() -> None:
    cost = add_up(
        [estimate(make_case(limit_seconds=limit), NOTHING_LEARNT) for limit in (300, 600)],
        {"compute": make_partition()},
        0.0,
    )
    assert (cost.limit_seconds, cost.limit_node_seconds) == (900, 1800)


def test_what_is_left_out_is_named() -> None:
    small = make_case(net_paths=(make_path("rail0"),))
    other = make_case(
        check="OsuPut", stack="mpich", net_paths=(make_path("rail1", sizes=(1, 2, 4, 8)),)
    )
    lost = left_out([small], [small, other])
    assert (lost.checks, lost.stacks, lost.net_paths) == (("OsuPut",), ("mpich",), ("eth0:rail1",))
    assert (lost.sizes, lost.jobs) == ((8,), 1)
    assert left_out([small], [small]).is_nothing


def test_tags_select_as_reframe_does() -> None:
    cases = [make_case(), make_case(check="OsuPut", tags=("full", "infiniband"))]
    assert [case.check for case in select(cases, ["ethernet", "quick"])] == ["OsuBandwidth"]
    assert select(cases, ["^net"]) == []
    assert len(select(cases, [])) == 2


def test_reasons_come_with_the_most_frequent_first() -> None:
    cases = [make_case(skipped=reason) for reason in ("b", "a", "b")] + [make_case()]
    assert list(refusals(cases, lambda case: case.skipped)) == ["b", "a"]


class Site:
    partitions = (make_partition(max_jobs=1),)


def outlook(cases: list[Any], *tags: str) -> Any:
    return look_ahead(Site(), cases, tags, lessons(1.0))  # type: ignore[arg-type]


def test_levels_are_those_of_the_same_selection() -> None:
    cases = [
        make_case(),
        make_case(check="OsuPut", tags=("ethernet", "full")),
        make_case(check="Verbs", tags=("full", "infiniband", "quick")),
        make_case(check="Gone", skipped="no such program"),
        make_case(check="Lost", lost="not installed"),
    ]
    found = outlook(cases, "quick", "ethernet")
    assert [each.case.check for each in found.estimates] == ["OsuBandwidth"]
    levels = {level.name: level for level in found.levels}
    assert levels["quick"].leaves_out.checks == ("OsuPut",)
    assert levels["full"].leaves_out.is_nothing
    assert levels["full"].cost.jobs == 2
    assert [case.check for case in found.skipped] == ["Gone"]
    assert [case.check for case in found.lost] == ["Lost"]
    assert set(found.technologies) == {"ethernet"}


def test_tonight_is_the_largest_level_that_fits() -> None:
    long = make_case(
        check="Endless", tags=("full",), net_paths=(make_path("rail0", 1e6),), limit_seconds=1e7
    )
    assert outlook([make_case()]).tonight().name == "quick"
    more = make_case(check="OsuPut", tags=("nightly", "full"))
    assert outlook([make_case(), more]).tonight().name == "nightly"
    assert outlook([make_case(), more, long]).tonight().name == "nightly"
    assert outlook([long]).tonight().name == "full"
    assert outlook([]).tonight() is None


def expected(**changes: Any) -> Estimate:
    return estimate(make_case(**changes), lessons(1.0))


def test_a_run_is_held_against_what_was_expected_of_its_jobs() -> None:
    put = make_case(check="OsuPut").key
    run = make_run(
        "r",
        make_job("r", "1", seconds=8.0),
        make_job("r", "2", seconds=3.0, key=put, attempts=()),
        make_job("r", "3", key=("Gone", "eth0", "compute", "mpich")),
        seconds=20.0,
        openmpi=400.0,
    )
    found = compare(
        run, [expected(), expected(check="OsuPut"), expected(check="New")], session_seconds=4
    )
    assert [(row.check, row.measured_seconds) for row in found.checks] == [
        ("OsuBandwidth", 8.0),
        ("OsuPut", 3.0),
    ]
    assert found.checks[0].expected_node_seconds == 12.0
    assert found.checks[0].measured_node_seconds == 16.0
    assert found.expected_seconds == 4 + 2 * 6.0
    assert found.off_by == pytest.approx(-0.2)
    assert found.unplanned == ("Gone on mpich over eth0",)
    assert (found.unfinished, found.building_seconds) == (1, 400.0)


def test_nothing_measured_is_off_by_nothing() -> None:
    assert off_by(5.0, 0.0) == 0


def test_no_job_outlives_its_time_limit() -> None:
    endless = make_case(net_paths=(make_path("rail0", 1e6),), limit_seconds=300.0)
    assert estimate(endless, Lessons(by_circle={})).seconds == 300.0
