"""When a baseline expires: with what somebody changed, never with the fault it is to catch."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fabricproof.nodes.inventory.changed import HANDED_OUT, SYMPTOMS, changes, lasting, why_changed
from made_baselines import FACTS

FACT = st.sampled_from(["firmware", "driver", "kernel", "mtu", "model", "cable_serial", "guid"])
EXCUSE = st.sampled_from(sorted(SYMPTOMS | HANDED_OUT))
VALUE = st.one_of(st.integers(), st.text(max_size=5))


@given(fact=FACT, then=VALUE, now=VALUE)
def test_every_lasting_fact_expires_it(fact: str, then: str | int, now: str | int) -> None:
    """A changed fact is named with both values; the same value is no change."""
    found = changes({"interface ib0": {fact: then}}, {"interface ib0": {fact: now}})
    assert found == ([] if then == now else [f"{fact} of interface ib0 {then} -> {now}"])


@given(fact=EXCUSE, then=VALUE, now=VALUE)
def test_what_a_link_comes_to_is_no_excuse(fact: str, then: str | int, now: str | int) -> None:
    """A link that trained down or was shaped is judged by the baseline that knew it whole."""
    assert changes({"interface ib0": {fact: then}}, {"interface ib0": {fact: now}}) == []


def test_the_changed_field_is_named() -> None:
    now = {**FACTS, "interface ib0": {**FACTS["interface ib0"], "firmware": "28.41"}}
    assert why_changed("vc2", FACTS, now) == "vc2: firmware of interface ib0 28.39 -> 28.41"


def test_a_fact_that_nobody_read_today_is_not_taken_for_the_same() -> None:
    now = {part: dict(each) for part, each in FACTS.items()}
    del now["interface ib0"]["firmware"]
    assert "28.39 -> not known" in why_changed("n1", FACTS, now)


def test_a_card_that_came_or_went_is_told() -> None:
    assert why_changed("n1", FACTS, {"node": FACTS["node"]}) == "n1: interface ib0 is gone"
    assert why_changed("n1", {"node": FACTS["node"]}, FACTS) == "n1: interface ib0 is new"


@pytest.mark.parametrize(
    ("then", "now", "said"),
    [(None, FACTS, "was not in it"), (FACTS, None, "nobody saw"), (FACTS, FACTS, "")],
)
def test_what_nobody_knows_does_not_hold(then: object, now: object, said: str) -> None:
    reason = why_changed("n1", then, now)  # type: ignore[arg-type]
    assert (said in reason) if said else reason == ""


def test_lasting_leaves_out_symptoms_only() -> None:
    assert lasting(FACTS)["interface ib0"] == {
        "firmware": "28.39",
        "model": "ConnectX-6",
        "mtu": 4096,
    }
