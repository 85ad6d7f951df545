"""Latencies by hop count: the line through them, and document 002's numbers."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fabricproof.nodes.topology.model import latency_words, switch_us


@pytest.mark.parametrize(
    ("nearest_us", "farthest_us", "each_us"), [(1.03, 1.85, 0.205), (1.67, 2.57, 0.225)]
)
def test_document_002_a_switch_costs_a_fifth_of_a_microsecond(
    nearest_us: float, farthest_us: float, each_us: float
) -> None:
    """Gordon: 1.03 to 1.85 us on rail 0, 1.67 to 2.57 on rail 1, over up to five switches."""
    assert switch_us({1: nearest_us, 5: farthest_us}) == pytest.approx(each_us)
    assert latency_words({1: 1.03, 5: 1.85}) == (
        "1 switch 1.03 us, 5 switches 1.85 us: 0.21 us for each switch"
    )


def test_a_far_pair_that_is_faster_is_called_doubtful() -> None:
    assert "noise or a wrong topology" in latency_words({1: 2.0, 3: 1.5})


def test_one_distance_tells_no_cost() -> None:
    assert switch_us({1: 1.0}) is None
    assert latency_words({1: 1.0}) == "1 switch 1 us"


@given(st.floats(0.1, 100), st.floats(0, 10), st.sets(st.integers(1, 9), min_size=2))
def test_a_line_is_found_again(start_us: float, each_us: float, hops: set[int]) -> None:
    line = {count: start_us + count * each_us for count in hops}
    assert switch_us(line) == pytest.approx(each_us, abs=1e-6)
