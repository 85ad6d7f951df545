"""The errors of all legs together: what no leg alone can tell, and nothing twice."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from fabricproof.core.measure import Verdict
from fabricproof.core.records import QuantityRecord
from fabricproof.job.evidence.error_rates import red_from
from fabricproof.job.run import LegResult
from fabricproof.job.run.join import pooled_errors

PACKETS = 45_000


def _leg(events: int, *, limit: float = 10.0, verdict: str = "PASS", **changes: Any) -> LegResult:
    rate = {
        "kind": "retransmitted", "rail": "rail0", "node": "vc1", "peer": "vc2", "direction": "out",
        "events": events, "packets": PACKETS, "beside": 0, "arrivals_unknown": False,
        "set_back": (),
        **changes,
    }  # fmt: skip
    quantity = {
        "nodes": ["vc1", "vc2"], "quantity_name": "retransmitted_per_million_packets",
        "quantity_value": events / PACKETS * 1e6, "quantity_unit": "ppm",
        "quantity_verdict": verdict, "quantity_reference": limit,
        "quantity_origin": "TCP between two nodes", "quantity_named": False,
    }  # fmt: skip
    return LegResult(
        verdict=Verdict(verdict), check="OsuBandwidth", partition="compute", stack="openmpi5",
        suite="osu", program="osu_bw", fabric="eth0", leg="rail0",
        quantities=(QuantityRecord.read(quantity),), errors=(rate,),
    )  # fmt: skip


def test_what_no_leg_can_tell_all_of_them_do() -> None:
    assert red_from(PACKETS, 10.0) > 2
    (found,) = pooled_errors([_leg(2)] * 20)
    assert found.verdict is Verdict.FAIL
    assert (found.leg, found.nodes, found.check) == (
        "rail0.all_legs",
        ("vc1", "vc2"),
        "OsuBandwidth",
    )
    assert "rail0 from vc1 to vc2: 40 of 900000 packets retransmitted in 20 legs" in found.reason
    assert found.quantities[0].verdict is Verdict.FAIL


def test_the_side_that_counts_what_comes_in_names_the_sender_first() -> None:
    (found,) = pooled_errors([_leg(2, direction="in")] * 20)
    assert "rail0 from vc2 to vc1: " in found.reason


@pytest.mark.parametrize("events", [0, 1])
def test_a_rate_within_what_is_allowed_is_no_finding(events: int) -> None:
    """One of 45,000 in every other leg is 11 per million: no proof of more than 10."""
    assert pooled_errors([_leg(events), _leg(0)] * 10) == ()


def test_other_pairs_other_ways_and_other_rails_are_not_one() -> None:
    others: list[dict[str, Any]]
    others = [{"peer": "vc3"}, {"direction": "in"}, {"rail": "rail1"}, {"node": "vc4"}]
    for other in others:
        assert pooled_errors([_leg(4), _leg(4, **other)]) == ()
    assert len(pooled_errors([_leg(4)] * 4)) == 1


def test_each_leg_brings_the_limit_it_was_judged_by() -> None:
    legs = [_leg(4)] * 4
    assert pooled_errors([*legs, _leg(0, limit=1000.0)]) == ()


@pytest.mark.parametrize("verdict", ["FAIL", "UNJUDGED"])
def test_what_a_leg_says_itself_is_not_said_again(verdict: str) -> None:
    assert pooled_errors([*[_leg(2)] * 20, _leg(9, verdict=verdict)]) == ()


@pytest.mark.parametrize(
    ("sure", "unsure", "verdict"),
    [(0, 2, Verdict.UNJUDGED), (1, 1, Verdict.UNJUDGED), (2, 2, Verdict.FAIL)],
)
def test_what_had_perhaps_arrived_makes_no_red_and_no_green(
    sure: int, unsure: int, verdict: Verdict
) -> None:
    (found,) = pooled_errors([_leg(sure, may_have_arrived=unsure)] * 20)
    assert (found.verdict, found.quantities[0].verdict) == (verdict, verdict)
    assert ("do not tell" in found.reason) == (verdict is Verdict.UNJUDGED)
    assert " 40 of 900000 packets " in found.reason
    assert pooled_errors([_leg(0, may_have_arrived=unsure), _leg(0)]) == ()


@pytest.mark.parametrize(
    "doubt",
    [
        {"arrivals_unknown": True},
        {"set_back": ("RetransSegs",)},
        {"beside": PACKETS + 1},
        {"peer": ""},
    ],
)
def test_doubtful_counts_prove_nothing(doubt: dict[str, Any]) -> None:
    assert pooled_errors([_leg(4, **doubt)] * 20) == ()


def test_a_wrong_path_and_old_records_bring_nothing() -> None:
    assert pooled_errors([replace(_leg(4), verdict=Verdict.INVALID)] * 20) == ()
    assert pooled_errors([replace(_leg(4), errors=())] * 20) == ()
    assert pooled_errors([replace(_leg(4), quantities=())] * 20) == ()


@pytest.mark.parametrize(("more", "found"), [(-1, 0), (0, 1)])
def test_the_first_number_that_is_no_chance_is_red(more: int, found: int) -> None:
    events = red_from(20 * PACKETS, 10.0) + more
    each, rest = divmod(events, 20)
    legs = [_leg(each + (index < rest)) for index in range(20)]
    assert len(pooled_errors(legs)) == found
