"""Near and far socket: whether a binding held, and which policy is named."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fabricproof.job.leg import Bind
from fabricproof.job.relations.comparison import advise, why_not_held

#: document 000: two sockets of ten cores; the head node's HCA is on socket 1
NUMA = {0: "0-9", 1: "10-19"}


def test_document_000_names_the_near_socket() -> None:
    advice = advise({"near": 6300.0, "far": 5600.0}, unit="MB/s", more_is_better=True)
    assert advice == "bind near: 6.3 GB/s against 5.6 GB/s (far)"


def test_document_000_rankfile_and_map_by_dist_are_as_good_as_each_other() -> None:
    values = {"rankfile": 6300.0, "map-by dist": 6290.0, "launcher": 5600.0}
    advice = advise(values, unit="MB/s", more_is_better=True)
    assert advice.startswith("bind rankfile: ")
    assert advice.endswith("5.6 GB/s (launcher); map-by dist as good")


def test_a_time_is_better_when_it_is_less() -> None:
    advice = advise({"near": 1.05, "far": 1.35}, unit="us", more_is_better=False)
    assert advice == "bind near: 1.05 us against 1.35 us (far)"


def test_policies_within_noise_are_not_told_apart() -> None:
    advice = advise({"near": 100.0, "far": 99.0}, unit="MB/s", more_is_better=True)
    assert advice == "no binding is better: near 100 MB/s, far 99 MB/s"


@pytest.mark.parametrize(
    ("bind", "cpus", "says"),
    [
        (Bind.NEAR, "10", ""),
        (Bind.NEAR, "12-15", ""),
        (Bind.NEAR, "0-19", "it may run on CPUs 0-19"),
        (Bind.NEAR, "0", "the rail's NUMA node 1 has 10-19"),
        (Bind.FAR, "0-9", ""),
        (Bind.FAR, "9-10", "the rail's own"),
        (Bind.FAR, "unknown", "no list of CPUs"),
        (Bind.FAR, "0-", "no list of CPUs: expected 0-3,8, got '0-'"),
        (Bind.FAR, "", "nobody saw"),
    ],
)
def test_a_binding_held_or_why_not(bind: Bind, cpus: str, says: str) -> None:
    reason = why_not_held(bind, cpus, 1, NUMA)
    assert says in reason
    assert bool(says) == bool(reason)


def test_nothing_holds_against_a_list_that_nobody_can_read() -> None:
    for bind in Bind:
        assert "got '0-1-2'" in why_not_held(bind, "0", 1, {1: "0-1-2"})


@pytest.mark.parametrize("home", [None, -1, 7])
def test_a_rail_without_a_known_home_holds_nothing(home: int | None) -> None:
    assert "not known" in why_not_held(Bind.NEAR, "0", home, NUMA)


@given(st.sets(st.integers(0, 19), min_size=1))
def test_nothing_is_near_and_far_at_once(cpus: set[int]) -> None:
    said = ",".join(map(str, sorted(cpus)))
    near, far = (why_not_held(bind, said, 1, NUMA) for bind in Bind)
    assert near or far
