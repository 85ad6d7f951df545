"""A baseline comes last: stricter, never kinder, and for exactly what it was learnt on."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fabricproof.core.findings import texts_of
from fabricproof.core.measure import BADNESS, Verdict
from fabricproof.traffic import PathProof, PathState
from fabricproof.verdict.references import (
    for_legs,
    judge_by_baseline,
    tightened,
)
from fabricproof.verdict.value import (
    Judgement,
    Reference,
    Report,
    Source,
    at_least,
    at_most,
    judge_value,
    possible_up_to,
)
from made_baselines import LATENCY, WHERE, make_baseline, make_row

PROVEN = PathProof(state=PathState.PROVEN, reason="over it")
BASELINE = make_baseline()


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


def after(
    judgement: Judgement, net_path: PathProof | None = PROVEN, changed: str = ""
) -> Judgement:
    report = report_of(judgement, net_path=net_path)
    return judge_by_baseline(report, BASELINE, WHERE, changed).quantities[0]


def test_what_passes_physics_and_is_below_the_baseline_fails() -> None:
    """The reason is as of any reference: share, median, baseline, runs and bound."""
    found = after(judged(95.0))
    assert found.verdict is Verdict.FAIL
    assert found.reason == (
        "94.7% of 100.3 MB/s (baseline spring, 5 runs), below the lower bound 98.7"
    )
    assert (found.reference, found.lower, found.source) == (100.3, 98.7, Source.BASELINE)


def test_a_pass_says_which_baseline_judged_too() -> None:
    found = after(judged(99.5))
    assert found.verdict is Verdict.PASS
    assert found.origin == "baseline spring, 5 runs, and physics: the link binds"
    assert found.source is Source.BASELINE_AND_OTHER
    assert found.lower == 98.7


def test_a_wider_baseline_leaves_physics_as_it_is() -> None:
    """Where physics is the stricter one, nothing of the judgement changes."""
    judgement = judged(95.0)
    assert tightened(judgement, make_row(low=50.0), "spring", proven=True) is judgement


def test_a_latency_is_held_from_above() -> None:
    reference = at_most(3.0, origin="site")
    facts = {"name": "latency_8B", "unit": "us", "message_size": 8}
    assert after(judged(2.1, reference, **facts)).verdict is Verdict.PASS
    slow = after(judged(2.5, reference, **facts))
    assert slow.verdict is Verdict.FAIL
    assert (slow.upper, slow.reference) == (2.2, 2.0)


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
    after_it = tightened(before, make_row(low=low), "spring", proven=proven)
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
    wide, tight = (make_row(low=low) for low in sorted(lows))
    loose = tightened(judged(value), wide, "spring", proven=True).verdict
    strict = tightened(judged(value), tight, "spring", proven=True).verdict
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


@pytest.mark.parametrize("reference", [None, 95.0])
def test_no_bound_lies_beyond_the_ceiling(reference: float | None) -> None:
    """A median above what a link admits, of a clock that was fast, is no reference beyond it."""
    row = make_row(median=100.9, low=95.5, high=101.9)
    judgement = replace(judged(97.0, reference), ceiling=100.0)
    found = tightened(judgement, row, "spring", proven=True)
    assert found.verdict is Verdict.PASS
    assert found.upper == possible_up_to(100.0)
    assert (found.lower, found.reference) == (95.5, found.upper)


def test_what_is_impossible_is_not_called_better() -> None:
    judgement = replace(judged(110.0), verdict=Verdict.INVALID, reason="above the ceiling")
    report = judge_by_baseline(report_of(judgement), BASELINE, WHERE, "")
    assert (report.verdict, report.findings) == (Verdict.INVALID, ())


def test_better_than_the_baseline_is_a_finding() -> None:
    report = judge_by_baseline(report_of(judged(110.0)), BASELINE, WHERE, "")
    assert report.verdict is Verdict.PASS
    (said,) = texts_of(report.findings)
    assert "better than baseline spring of 2026-11-06 knows" in said
    assert said.endswith("fabricproof baseline freeze NEW last:5 --site here")


def test_the_verdict_of_the_report_follows() -> None:
    report = report_of(judged(95.0), judged(2.0, None, name="x"))
    report = judge_by_baseline(report, BASELINE, WHERE, "")
    assert report.verdict is Verdict.FAIL


PLANNED = ("partition", "fabric", "stack", "suite", "program", "check", "leg", "rails")
CHANGED = "n2: firmware of interface ib0 28.39 -> 28.41"


@pytest.mark.parametrize(
    ("ran", "changed", "said"),
    [
        ({"nodes": "n1,n3"}, "", "does not judge openmpi5 osu_bw ib0 n1 - n3"),
        ({"nodes": "n1"}, "", "never frozen for these nodes"),
        ({"tool_version": "7.3"}, "", "tool version 7.2 -> 7.3"),
        ({"settings": "num_pairs=1"}, "", "num_pairs=1 window_size=64 -> num_pairs=1"),
        ({"settings": ""}, "", "settings num_pairs=1 window_size=64 -> not known"),
        ({"build": "8ed94ed84df1"}, "", "build 51af25c1cd81 -> 8ed94ed84df1"),
        ({"build": "8ed94ed84df1"}, "", "fabricproof baseline freeze NEW last:5 --site here"),
        *(({field: "x"}, "", "never frozen") for field in PLANNED),
        ({}, CHANGED, f"spring of 2026-11-06 does not judge {WHERE.label}: {CHANGED}"),
    ],
)  # fmt: skip
def test_what_is_not_the_same_is_not_judged(ran: dict[str, str], changed: str, said: str) -> None:
    """Other nodes, another version, other settings: physics alone judges, and the leg says why."""
    report = judge_by_baseline(report_of(judged(95.0)), BASELINE, replace(WHERE, **ran), changed)
    assert report.verdict is Verdict.PASS
    assert said in texts_of(report.findings)[0]


def test_the_part_beside_a_plan_judges_as_the_whole() -> None:
    """Whatever nodes a leg may run on, and if another build is what ran."""
    for nodes, build in (("", "51af25c1cd81"), ("n1,n2", "51af25c1cd81"), ("", "another")):
        planned = replace(WHERE, build=build, nodes=nodes, tool_version="", settings="")
        part = for_legs(BASELINE, {"ib0": planned})
        ran = replace(WHERE, build=build)
        reports = [
            judge_by_baseline(report_of(judged(95.0)), each, ran, "") for each in (BASELINE, part)
        ]
        assert reports[0] == reports[1]


@pytest.mark.parametrize(
    ("attributes", "settings"),
    [({"window_size": 64, "num_pairs": 1, "binary": "x"}, WHERE.settings), ({}, "")],
)
def test_settings_are_the_words_that_it_was_frozen_with(attributes: Any, settings: str) -> None:
    assert BASELINE.settings_of(attributes) == settings


def test_a_unit_is_never_guessed() -> None:
    """A row of the same name in another unit judges nothing."""
    judgement = judged(95.0)
    baseline = make_baseline(make_row(unit="MiB/s"), LATENCY)
    found = judge_by_baseline(report_of(judgement), baseline, WHERE, "")
    assert found.quantities[0] is judgement


@pytest.mark.parametrize(
    ("nodes", "text"),
    [
        ("vc1", "vc1"),
        ("vc1,vc3", "vc1 - vc3"),
        ("vc1,vc2,vc4,vc7", "vc[1-2,4,7]"),
        ("vc1,vc3,vc4,vc7", "vc[1,3-4,7]"),
    ],
)
def test_other_nodes_have_another_name(nodes: str, text: str) -> None:
    assert replace(WHERE, nodes=nodes).pair == text
