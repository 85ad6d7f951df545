"""Stack against stack: only like is compared with like, and only what was really measured."""

from __future__ import annotations

from typing import Any

from report_data import quantity_of

from fabricproof.core.measure import Verdict
from fabricproof.job.run import LegResult
from fabricproof.report.text.terminal import LINES, compare_stacks, slow_stacks


def leg(stack: str, time_us: float, **changes: Any) -> LegResult:
    quantity = quantity_of(
        {
            "name": changes.pop("quantity", "latency_64KiB"),
            "value": time_us,
            "unit": "us",
            "verdict": changes.pop("judged", "PASS"),
        }
    )
    facts = {
        "verdict": Verdict.PASS,
        "check": "OsuAlltoall",
        "partition": "compute",
        "suite": "osu",
        "program": "osu_alltoall",
        "fabric": "eth0",
        "leg": "rail0.4x2",
    }
    return LegResult(stack=stack, quantities=(quantity,), **{**facts, **changes})


def test_the_slower_stack_is_named_with_its_factor() -> None:
    (line,) = slow_stacks([leg("b", 400), leg("a", 100), leg("c", 250)])
    assert line == (
        "osu_alltoall rail0.4x2 latency_64KiB: b takes 4.0 x the time of a "
        "(us: a 100; c 250; b 400)"
    )


def test_a_small_difference_is_not_told_and_is_compared() -> None:
    legs = [leg("a", 100), leg("b", 200)]
    assert slow_stacks(legs) == []
    (found,) = compare_stacks(legs)
    assert found.factor == 2


def test_unlike_things_are_not_compared() -> None:
    legs = [
        leg("a", 100),
        leg("b", 900, leg="rail0.2x2"),
        leg("b", 900, suite="osu-mpi4py"),
        leg("b", 900, quantity="latency_32KiB"),
        leg("b", 900, program="osu_allgather"),
        leg("b", 900, partition="other"),
    ]
    assert compare_stacks(legs) == []


def test_what_is_impossible_or_was_not_measured_is_not_compared() -> None:
    for word in ("INVALID", "MISSING", "UNJUDGED"):
        assert compare_stacks([leg("a", 100), leg("b", 900, judged=word)]) == []
    assert compare_stacks([leg("a", 100), leg("b", 900, judged="FAIL")])


def test_when_a_root_had_its_buffer_back_says_nothing_of_a_stack() -> None:
    port = {"suite": "osu-mpi4py", "program": "osu_bcast"}
    assert compare_stacks([leg("a", 100, **port), leg("b", 900, **port)]) == []
    everybody = {"suite": "osu-mpi4py", "program": "osu_allgather"}
    assert compare_stacks([leg("a", 100, **everybody), leg("b", 900, **everybody)])


def test_point_to_point_programs_are_left_to_their_own_checks() -> None:
    assert (
        compare_stacks([leg("a", 1, program="osu_latency"), leg("b", 9, program="osu_latency")])
        == []
    )


def sizes(*slow: float, **changes: Any) -> list[LegResult]:
    """Two stacks over several sizes: a takes 100 us at each, b takes these times."""
    return [
        leg(stack, time, quantity=f"latency_{2**size}B", **changes)
        for size, own in enumerate(slow)
        for stack, time in (("a", 100), ("b", own))
    ]


def test_a_stall_at_one_size_is_no_slow_stack_and_an_algorithm_is() -> None:
    assert slow_stacks(sizes(110, 9000, 120)) == []
    (line,) = slow_stacks(sizes(110, 900, 500))
    assert "latency_4B: b takes 5.0 x" in line


def test_one_line_for_each_collective_and_layout_and_not_too_many() -> None:
    many = [each for rail in range(LINES + 2) for each in sizes(900, 900, leg=f"rail{rail}.4x2")]
    lines = slow_stacks(many)
    assert len(lines) == LINES + 1
    assert lines[-1] == "and 2 more collectives where stacks differ"
