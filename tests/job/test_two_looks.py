"""FAIL needs two looks that could each have judged the number, both red."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fabricproof.core.findings import Finding, FindingKind, texts_of
from fabricproof.core.measure import Verdict, worst
from fabricproof.job.leg import MOST_ATTEMPTS, write_plan
from fabricproof.job.outcome import judge_leg, weighed
from fabricproof.job.second_look import doubtful_legs
from fabricproof.traffic import PathProof, PathState
from fabricproof.verdict.value import Judgement, Report, missing
from leg_folders import PUT_BW, PUT_BW_SENT, leave, make_leg, rank_text, slower

NAME = "bandwidth_4MiB"
WORDS = {each.value: each for each in Verdict}


def look(word: str) -> Report:
    """Return a look: a verdict, ``unknown PASS`` where its path is not shown."""
    state = PathState.UNKNOWN if word.startswith("unknown ") else PathState.PROVEN
    verdict = WORDS[word.removeprefix("unknown ")]
    if verdict is Verdict.MISSING:
        return missing([NAME], "it hung")
    one = Judgement(
        name=NAME, value=9.0, unit="MB/s", message_size=2**22, verdict=verdict, reason=word
    )
    proof = PathProof(state=state, reason="")
    return Report(verdict=verdict, quantities=(one,), net_path=proof)


#: the looks at one number -> what it is
CASES = [
    ("PASS", "PASS"),
    ("FAIL", "FAIL"),  # one look only: the finding says so, a night looks again
    ("UNJUDGED", "UNJUDGED"),
    ("FAIL, FAIL", "FAIL"),
    ("FAIL, PASS", "PASS"),
    ("UNJUDGED, PASS", "PASS"),
    ("MISSING, PASS", "PASS"),
    ("UNJUDGED, FAIL", "UNJUDGED"),
    ("FAIL, UNJUDGED", "UNJUDGED"),
    ("unknown UNJUDGED, FAIL", "UNJUDGED"),
    ("FAIL, unknown UNJUDGED", "UNJUDGED"),
    ("UNJUDGED, UNJUDGED", "UNJUDGED"),
    ("MISSING, FAIL", "MISSING"),
    ("FAIL, MISSING", "MISSING"),
    ("MISSING, MISSING", "MISSING"),
    ("unknown FAIL, FAIL", "FAIL"),  # low over whatever path: red both times
    ("INVALID, FAIL", "FAIL"),  # an impossible number clears nothing: the last look stands
    ("FAIL, INVALID", "INVALID"),
]


@pytest.mark.parametrize(("looks", "verdict"), CASES)
def test_what_a_number_is_by_all_looks_at_it(looks: str, verdict: str) -> None:
    report = weighed([look(each) for each in looks.split(", ")])
    (one,) = report.quantities
    assert (report.verdict.value, one.verdict.value) == (verdict, verdict)


words = st.sampled_from([*WORDS, "unknown UNJUDGED", "unknown FAIL"])


@given(st.lists(words.filter(lambda each: "SKIPPED" not in each), min_size=2, max_size=2))
def test_no_red_of_one_look_and_no_green_of_none(drawn: list[str]) -> None:
    """Whatever the looks were, where none holds an impossible number."""
    verdict = weighed([look(each) for each in drawn]).verdict
    plain = [each.removeprefix("unknown ") for each in drawn]
    if verdict is Verdict.FAIL and "INVALID" not in plain:
        assert plain.count("FAIL") >= 2
    if verdict is Verdict.PASS:
        assert "PASS" in drawn


def test_numbers_are_weighed_one_by_one() -> None:
    """One is red twice, one once beside a look that was disturbed, one passed at the second."""

    def of(*verdicts: str) -> Report:
        made = [look(each).quantities[0] for each in verdicts]
        named = tuple(replace(each, name=f"n{i}") for i, each in enumerate(made))
        proof = PathProof(state=PathState.PROVEN, reason="")
        return Report(
            verdict=worst([each.verdict for each in named]), quantities=named, net_path=proof
        )

    report = weighed([of("FAIL", "UNJUDGED", "FAIL"), of("FAIL", "FAIL", "PASS")])
    assert [each.verdict.value for each in report.quantities] == ["FAIL", "UNJUDGED", "PASS"]
    assert report.findings[0].kind is FindingKind.SECOND_LOOK_RED


def test_a_point_that_the_last_look_leaves_out_is_not_missing() -> None:
    """The first look was red by it, the second took it for a switch of protocol."""
    first, (dip,) = look("FAIL"), look("FAIL").quantities
    first = replace(first, quantities=(replace(dip, name="bandwidth_1B"), *first.quantities))
    second = look("PASS").quantities[0]
    other = replace(second, name="bandwidth_64KiB", verdict=Verdict.FAIL)
    last = replace(look("PASS"), verdict=Verdict.FAIL, quantities=(other, second))
    report = weighed([first, last])
    assert [each.name for each in report.quantities] == ["bandwidth_64KiB", NAME]
    died = missing([NAME], "it hung")
    assert "bandwidth_1B" in {each.name for each in weighed([first, died]).quantities}


def test_what_was_red_once_says_both_looks() -> None:
    report = weighed([look("UNJUDGED"), look("FAIL")])
    assert report.quantities[0].reason == "UNJUDGED; red at one look alone: FAIL"
    said = f"red at one of two looks, and the other could not judge it: {NAME}"
    assert report.findings[0] == Finding(text=said)


def test_what_is_decided_in_rounds_has_had_its_looks() -> None:
    looks = [look("UNJUDGED"), look("FAIL")]
    assert weighed(looks, needs_proven_path=False, in_rounds=[NAME]).verdict is Verdict.FAIL
    assert weighed(looks, needs_proven_path=False).verdict is Verdict.UNJUDGED


# --- the same from files

LEG = make_leg()
BLIND = (
    rank_text(0, sent=PUT_BW_SENT, received=0),
    rank_text(1, sent=0, received=PUT_BW_SENT, status=None),
)


def leave_looks(folder: Path, *looks: str) -> None:
    for number, each in enumerate(looks, start=1):
        table = slower(PUT_BW, 2) if "low" in each else PUT_BW
        more = {"ranks": BLIND} if "blind" in each else {}
        leave(folder, LEG, table, attempt=number, **more)


@pytest.mark.parametrize(
    ("looks", "verdict"),
    [
        (("blind", "low"), "UNJUDGED"),
        (("low", "blind"), "UNJUDGED"),
        (("blind", "blind"), "UNJUDGED"),
        (("blind low", "low"), "FAIL"),
        (("low", "low"), "FAIL"),
        (("low", "good"), "PASS"),
    ],
)
def test_two_looks_from_files_and_no_third(
    looks: tuple[str, ...], verdict: str, tmp_path: Path
) -> None:
    write_plan(tmp_path, (LEG,))
    leave_looks(tmp_path, *looks)
    outcome = judge_leg(tmp_path, LEG)
    assert outcome.report.verdict.value == verdict
    assert not any("no second look" in each for each in texts_of(outcome.report.findings))
    assert doubtful_legs(tmp_path) == []
    leave(tmp_path, LEG, PUT_BW, attempt=3)
    assert len(judge_leg(tmp_path, LEG).attempts) == MOST_ATTEMPTS


def test_a_look_that_died_clears_no_point_of_the_curve(tmp_path: Path) -> None:
    """Only the last size is required, and was good: the one that was red is not judged again."""
    row = next(line for line in PUT_BW.splitlines() if line.startswith("65536 "))
    dip = PUT_BW.replace(row, f"{65536:<10d}{float(row.split()[1]) / 100:20.2f}")
    leave(tmp_path, LEG, dip)
    leave(tmp_path, LEG, "", attempt=2, status="1\n")
    assert judge_leg(tmp_path, LEG).report.verdict is Verdict.MISSING
