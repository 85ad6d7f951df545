"""A baseline comes last: stricter, never kinder, and for exactly what it was learnt on."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from made_baselines import (
    FACTS,
    LATENCY,
    WHERE,
    make_baseline,
    make_leg_baseline,
    make_row,
    make_seen,
)

from fabricproof.core.findings import texts_of
from fabricproof.core.measure import BADNESS, Verdict
from fabricproof.traffic import PathProof, PathState
from fabricproof.verdict.baseline.apply import LegBaseline, held, with_baseline
from fabricproof.verdict.baseline.model import BaselineNode
from fabricproof.verdict.baseline.stage import of_leg
from fabricproof.verdict.value import (
    Judgement,
    Reference,
    Report,
    Source,
    at_least,
    at_most,
    judge_value,
)

PROVEN = PathProof(state=PathState.PROVEN, reason="over it")
LEG = make_leg_baseline()


def judged(value: float, reference: float | Reference | None = 100.0, **changes: Any) -> Judgement:
    at = reference
    if isinstance(reference, float):
        at = at_least(reference, origin="physics: the link binds")
    facts: dict[str, Any] = {
        "name": "bandwidth_4MiB",
        "value": value,
        "unit": "MB/s",
        "message_size": 4 * 1024 * 1024,
        "reference": at,
    }
    return judge_value(**{**facts, **changes})


def report_of(*judgements: Judgement, net_path: PathProof | None = PROVEN) -> Report:
    worst = max((each.verdict for each in judgements), key=list(Verdict).index)
    return Report(verdict=worst, quantities=judgements, net_path=net_path)


def after(judgement: Judgement, net_path: PathProof | None = PROVEN, **seen: Any) -> Judgement:
    report = with_baseline(report_of(judgement, net_path=net_path), LEG, make_seen(**seen))
    return report.quantities[0]


def test_what_passes_physics_and_is_below_the_baseline_fails() -> None:
    """The reason says share, median, baseline, runs and bound."""
    found = after(judged(95.0))
    assert found.verdict is Verdict.FAIL
    assert found.reason == (
        "94.7% of the baseline's median 100.3 MB/s (baseline spring, 5 runs), "
        "below its lower bound 98.7"
    )
    assert (found.lower, found.origin) == (98.7, "baseline spring, 5 runs")


def test_a_pass_says_which_baseline_judged_too() -> None:
    found = after(judged(99.5))
    assert found.verdict is Verdict.PASS
    assert found.origin == "baseline spring, 5 runs, and physics: the link binds"
    assert found.source is Source.BASELINE_AND_OTHER
    assert found.lower == 98.7


def test_a_wider_baseline_leaves_physics_as_it_is() -> None:
    """Where physics is the stricter one, nothing of the judgement changes."""
    judgement = judged(95.0)
    assert held(judgement, make_row(low=50.0).limit, LEG, may_clear=True) is judgement


def test_a_latency_is_held_from_above() -> None:
    reference = at_most(3.0, origin="site")
    facts = {"name": "latency_8B", "unit": "us", "message_size": 8}
    assert after(judged(2.1, reference, **facts)).verdict is Verdict.PASS
    slow = after(judged(2.5, reference, **facts))
    assert slow.verdict is Verdict.FAIL
    assert "above its upper bound 2.2" in slow.reason


@given(
    value=st.floats(1, 200),
    reference=st.one_of(st.none(), st.floats(50, 150)),
    low=st.floats(10, 100.3),
    proven=st.booleans(),
)
def test_a_baseline_never_makes_a_verdict_kinder(
    value: float, reference: float | None, low: float, proven: bool
) -> None:
    """Only what nobody judged, on a proven path, may become a PASS."""
    before = judged(value, reference)
    after_it = held(before, make_row(low=low).limit, LEG, may_clear=proven)
    if before.verdict is Verdict.UNJUDGED and proven:
        assert after_it.verdict is (Verdict.PASS if value >= low else Verdict.FAIL)
    else:
        assert BADNESS.index(after_it.verdict) <= BADNESS.index(before.verdict)
    if after_it.lower is not None and after_it.reference is not None:
        assert after_it.lower <= after_it.reference <= (after_it.upper or float("inf"))
        if after_it.value is not None and after_it.verdict is Verdict.PASS:
            assert after_it.value >= after_it.lower


@given(value=st.floats(1, 200), lows=st.tuples(st.floats(10, 100.3), st.floats(10, 100.3)))
def test_a_tighter_baseline_never_turns_fail_into_pass(
    value: float, lows: tuple[float, float]
) -> None:
    wide, tight = (make_row(low=low).limit for low in sorted(lows))
    loose = held(judged(value), wide, LEG, may_clear=True).verdict
    strict = held(judged(value), tight, LEG, may_clear=True).verdict
    assert not (loose is Verdict.FAIL and strict is Verdict.PASS)


@pytest.mark.parametrize("verdict", [Verdict.FAIL, Verdict.INVALID, Verdict.MISSING])
def test_what_is_red_by_physics_stays_as_it_is(verdict: Verdict) -> None:
    """A number that the baseline would like is not cleared by it."""
    judgement = replace(judged(100.0), verdict=verdict, reason="physics says so")
    assert after(judgement) is judgement


def test_an_unjudged_number_needs_a_proven_path() -> None:
    unknown = PathProof(state=PathState.UNKNOWN, reason="no counters")
    assert after(judged(100.0, None)).verdict is Verdict.PASS
    assert after(judged(100.0, None), unknown).verdict is Verdict.UNJUDGED
    assert after(judged(100.0, None), None).verdict is Verdict.UNJUDGED


def test_an_unjudged_number_with_a_reference_is_not_cleared() -> None:
    """It is not judged for a reason, as of a path that is not known."""
    judgement = replace(judged(100.0), verdict=Verdict.UNJUDGED, reason="the path is not shown")
    assert after(judgement) is judgement


def test_better_than_the_baseline_is_a_finding() -> None:
    report = with_baseline(report_of(judged(110.0)), LEG, make_seen())
    assert report.verdict is Verdict.PASS
    (said,) = texts_of(report.findings)
    assert "better than baseline spring of 2026-11-06 knows" in said
    assert said.endswith("fabricproof baseline freeze NEW last:5 --site here")


def test_the_verdict_of_the_report_follows() -> None:
    report = with_baseline(report_of(judged(95.0), judged(2.0, None, name="x")), LEG, make_seen())
    assert report.verdict is Verdict.FAIL


IB0 = FACTS["interface ib0"]
NEWER = {**FACTS, "interface ib0": {**IB0, "firmware": "28.41"}}
DOWN = {**FACTS, "interface ib0": {**IB0, "rate_gbit_s": 100, "state": "?"}}
FIELDS = ("partition", "fabric", "stack", "program", "check", "leg")


#: baseline, date, node, field, both values and what to do next
EXPIRED = (
    "baseline spring of 2026-11-06 no longer holds: n2: firmware of interface ib0 28.39 -> 28.41; "
    "its numbers do not judge; next: fabricproof compare"
)


def leg_at(**place: str) -> LegBaseline:
    return of_leg(make_baseline(), replace(WHERE, **place))


@pytest.mark.parametrize(
    ("leg", "changes", "said"),
    [
        (LEG, {"nodes": ("n1", "n3")}, "says nothing of openmpi5 osu_bw ib0 n1 - n3"),
        (LEG, {"nodes": ("n1",)}, "never frozen for these nodes"),
        (LEG, {"tool_version": "7.3"}, "tool version 7.2 -> 7.3"),
        (LEG, {"attributes": {"num_pairs": 1, "window_size": 16}},
            "window_size=64 -> num_pairs=1 window_size=16"),
        (LEG, {"attributes": {}}, "settings num_pairs=1 window_size=64 -> not known"),
        (LEG, {"machines": {"n1": FACTS, "n2": None}}, "nobody saw what n2 is made of"),
        (leg_at(build="8ed94ed84df1"), {}, "build 51af25c1cd81 -> 8ed94ed84df1"),
        (leg_at(build="8ed94ed84df1"), {}, "fabricproof baseline freeze NEW last:5"),
        *((leg_at(**{field: "another"}), {}, "says nothing of") for field in FIELDS),
        (LEG, {"machines": {"n1": FACTS, "n2": NEWER}}, EXPIRED),
        (of_leg(make_baseline(nodes={"n1": BaselineNode(digests=("aa11",), facts=FACTS)}), WHERE),
            {}, "n2 was not in it"),
    ],
)  # fmt: skip
def test_what_is_not_the_same_is_not_judged(
    leg: LegBaseline, changes: dict[str, Any], said: str
) -> None:
    """Other nodes, another version, other settings: physics alone judges, and the leg says why."""
    report = with_baseline(report_of(judged(95.0)), leg, make_seen(**changes))
    assert report.verdict is Verdict.PASS
    assert said in texts_of(report.findings)[0]


def test_a_link_that_trained_down_is_judged_all_the_same() -> None:
    assert after(judged(95.0), machines={"n1": FACTS, "n2": DOWN}).verdict is Verdict.FAIL


def test_a_unit_is_never_guessed() -> None:
    """A row of the same name in another unit judges nothing."""
    judgement = judged(95.0)
    leg = make_leg_baseline(make_row(unit="MiB/s"), LATENCY)
    assert with_baseline(report_of(judgement), leg, make_seen()).quantities[0] is judgement
