"""Expected against observed link state."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

import pytest

from fabricproof.physics import PortState, compare_link_state

EXPECTED = PortState(
    port="n1 mlx4_0/1",
    state="ACTIVE",
    rate_gbit_s=56,
    lanes=4,
    mtu=4096,
    pcie_generation=3,
    pcie_lanes=8,
    max_payload_bytes=256,
)


def test_as_expected_is_no_issue() -> None:
    assert compare_link_state(EXPECTED, EXPECTED) == ()


def test_spelling_of_the_state_and_rounding_of_the_rate_are_no_issue() -> None:
    assert compare_link_state(EXPECTED, replace(EXPECTED, state="Active", rate_gbit_s=54.5)) == ()


@pytest.mark.parametrize(
    ("quantity", "value", "words"),
    [
        ("state", "INIT", "link state is INIT, expected ACTIVE"),
        ("rate_gbit_s", 40, "link rate is 40 Gb/s, expected 56 Gb/s: a cable"),
        ("lanes", 1, "link width is 1 lanes, expected 4 lanes: a lane"),
        ("mtu", 2048, "MTU is 2048 bytes, expected 4096 bytes"),
        ("pcie_generation", 2, "PCIe generation is 2, expected 3: the slot, riser"),
        ("pcie_lanes", 4, "PCIe width is 4 lanes, expected 8 lanes"),
        ("max_payload_bytes", 128, "PCIe MaxPayload is 128 bytes, expected 256 bytes"),
    ],
)
def test_each_quantity_that_differs_is_one_issue(quantity: str, value: Any, words: str) -> None:
    (issue,) = compare_link_state(EXPECTED, replace(EXPECTED, **{quantity: value}))
    assert (issue.port, issue.quantity) == ("n1 mlx4_0/1", quantity)
    assert words in issue.sentence


@pytest.mark.parametrize("quantity", [f.name for f in fields(PortState) if f.name != "port"])
def test_what_was_not_observed_is_an_issue_and_never_silent(quantity: str) -> None:
    (issue,) = compare_link_state(EXPECTED, replace(EXPECTED, **{quantity: None}))
    assert (issue.quantity, issue.observed) == (quantity, "not observed")


def test_what_is_not_stated_is_not_compared() -> None:
    assert compare_link_state(PortState(port="x"), EXPECTED) == ()


def test_better_than_expected_is_an_issue_of_the_site_file() -> None:
    (issue,) = compare_link_state(EXPECTED, replace(EXPECTED, rate_gbit_s=100))
    assert "the site file is behind the machine" in issue.sentence
