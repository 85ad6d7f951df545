"""Objections: their order says nothing, nothing becomes green, and the page shows the one table."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fabricproof.core.measure import BADNESS, Verdict
from fabricproof.traffic import PathProof, PathState
from fabricproof.verdict.objections import FOREIGN, Objection, ObjectionKind, apply, of_path
from fabricproof.verdict.value import Judgement, Report

PAGE = Path(__file__).parents[2] / "docs" / "how-to-read-a-verdict.md"
BEGIN, END = "<!-- objections: tests/verdict/test_objections.py -->\n", "<!-- objections end -->\n"
SHOWN = (Verdict.PASS, Verdict.FAIL, Verdict.UNJUDGED, Verdict.MISSING, Verdict.INVALID)


def page_with_table(text: str) -> str:
    """Return the page with the table as the code has it."""
    head, rest = text.split(BEGIN)
    tail = rest.split(END)[1]
    lines = [
        f"| objection | {' | '.join(SHOWN)} | raised when |",
        f"| --- |{' --- |' * (len(SHOWN) + 1)}",
        *(
            " | ".join(
                [f"| `{kind}`", *(kind.becomes.get(each, "") for each in SHOWN), kind.means, ""]
            )
            for kind in ObjectionKind
        ),
    ]
    shown = "\n".join(each.rstrip() for each in lines)
    return f"{head}{BEGIN}\n{shown}\n\n{END}{tail}"


def _number(verdict: Verdict, name: str = "bandwidth_4MiB") -> Judgement:
    return Judgement(
        name=name, value=1.0, unit="MB/s", message_size=4, verdict=verdict, reason="as judged"
    )


objections = st.lists(
    st.builds(
        Objection,
        kind=st.sampled_from(ObjectionKind),
        reason=st.sampled_from(["a", "b"]),
        quantities=st.sampled_from([None, frozenset({"bandwidth_4MiB"}), frozenset({"other"})]),
        disturbance=st.sampled_from([None, "other_job"]),
    ),
    unique_by=lambda each: each.kind,
    max_size=6,
)


@given(st.sampled_from(Verdict), objections, st.data())
def test_the_order_of_witnesses_says_nothing(verdict, raised, data):
    number = _number(verdict)
    order = data.draw(st.permutations(raised))
    at = data.draw(st.integers(0, len(order)))
    report = Report(verdict=verdict, quantities=(number,))
    together = report.objected(raised)
    in_turn = report.objected(order[:at]).objected(order[at:])
    assert in_turn.quantities == together.quantities
    assert in_turn.verdict is together.verdict


@given(st.sampled_from(Verdict), objections)
def test_nothing_becomes_green_and_what_is_impossible_stays_so(verdict, raised):
    (after,) = apply([_number(verdict)], raised)
    if after.verdict is Verdict.PASS:
        assert verdict is Verdict.PASS
        assert after == _number(verdict)
    if verdict in {Verdict.INVALID, Verdict.SKIPPED}:
        assert after.verdict is verdict
    assert (after.value is None) is (after.verdict is Verdict.MISSING and bool(after.objections))
    assert after.disturbance is None or after.verdict is Verdict.UNJUDGED


def test_only_an_excuse_makes_red_milder():
    milder = {
        kind
        for kind in ObjectionKind
        for before, after in kind.becomes.items()
        if BADNESS.index(after) > BADNESS.index(before)
    }
    assert milder == {
        *(ObjectionKind.DISTURBED, ObjectionKind.OTHER_JOB, ObjectionKind.PAIR_UNSOUND),
    }


def test_what_is_foreign_spoils_or_leaves_no_pass():
    assert all(Verdict.PASS in kind.becomes for kind in FOREIGN)


def test_another_quantity_is_not_concerned():
    objection = Objection(
        kind=ObjectionKind.OTHER_PATH, reason="eth0", quantities=frozenset({"latency_8B"})
    )
    mine, its = apply([_number(Verdict.PASS), _number(Verdict.PASS, "latency_8B")], [objection])
    assert (mine.verdict, its.verdict) == (Verdict.PASS, Verdict.INVALID)
    assert its.objections == (ObjectionKind.OTHER_PATH,)


@pytest.mark.parametrize(
    ("state", "verdict"),
    [
        (PathState.PROVEN, Verdict.PASS),
        (PathState.WRONG, Verdict.INVALID),
        (PathState.UNKNOWN, Verdict.UNJUDGED),
        (PathState.DISTURBED, Verdict.FAIL),
    ],
)
def test_what_a_proof_of_the_path_makes_of_a_pass(state, verdict):
    (after,) = apply([_number(Verdict.PASS)], of_path(PathProof(state=state, reason="seen")))
    assert after.verdict is verdict
    assert verdict is Verdict.PASS or "seen" in after.reason


def test_without_counters_nothing_of_our_own_is_green():
    assert of_path(None) == ()
    (after,) = apply([_number(Verdict.PASS)], of_path(None, required=True))
    assert after.verdict is Verdict.UNJUDGED


def test_the_page_shows_the_table_of_the_code():
    """After a change: ``.venv/bin/python tests/verdict/test_objections.py``."""
    assert PAGE.read_text() == page_with_table(PAGE.read_text())


if __name__ == "__main__":
    PAGE.write_text(page_with_table(PAGE.read_text()))
