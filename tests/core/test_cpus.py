"""Lists of CPUs as the kernel prints them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fabricproof.core.hostlist import cpus_of


@pytest.mark.parametrize(("text", "cpus"), [("0-2,5", {0, 1, 2, 5}), ("7", {7}), ("", set())])
def test_lists_of_cpus(text: str, cpus: set[int]) -> None:
    assert cpus_of(text) == cpus


@pytest.mark.parametrize(
    "text",
    [
        *("a", "unknown", "0-", "-3", "0,,1", "0-1-2", "0 1", "0\n"),
        *("9" * 5000, "0-" + "9" * 5000, "0-999999999"),
    ],
)
def test_no_list_of_cpus(text: str) -> None:
    assert cpus_of(text) is None


@given(st.sets(st.integers(0, 300)))
def test_lists_are_read_whole(cpus: set[int]) -> None:
    assert cpus_of(",".join(map(str, sorted(cpus)))) == cpus


@given(st.integers(0, 500), st.integers(0, 500))
def test_spans_hold_both_ends(first: int, length: int) -> None:
    found = cpus_of(f"{first}-{first + length}")
    assert found is not None
    assert len(found) == length + 1
