"""Relations between legs: a ratio is judged on numbers that count, and on two looks."""

from __future__ import annotations

import math
from dataclasses import asdict, replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fabricproof.benchmarks.parsers import parse_text
from fabricproof.core.errors import ConfigError
from fabricproof.core.findings import texts_of
from fabricproof.core.measure import Verdict
from fabricproof.job.leg import Leg, Plan, Relation, read_plan, write_plan
from fabricproof.job.outcome import Outcome, judge_leg
from fabricproof.job.relations.judge import JUDGES, judge_relation, judge_relations, legs_to_repeat
from fabricproof.job.relations.ratio import judge_against, value_at
from fabricproof.job.second_look import doubtful_legs
from fabricproof.verdict.value import at_least
from leg_folders import PUT_BW, leave, make_leg, slower

TWICE = at_least(1.0, unit="x", tolerance=0.05, origin="test: alike")
ONE, OTHER = make_leg(name="one"), make_leg(name="other")


def ratio(**changes: object) -> Relation:
    settings = {
        "quantity": "bandwidth", "sizes": [1 << 20, 1 << 22], "over": ["other"], "under": ["one"],
        "reference": asdict(TWICE), "most": 1.2, "hint": "look at the cable", **changes,
    }  # fmt: skip
    return Relation(
        name="likeness", kind="ratio", legs=("one", "other"), suite="osu", program="osu_put_bw",
        settings=settings,
    )  # fmt: skip


def measured(folder: Path, leg: Leg, text: str = PUT_BW, **how: object) -> Outcome:
    leave(folder, leg, text, **how)  # type: ignore[arg-type]
    return judge_leg(folder, leg)


def test_two_like_legs_have_a_ratio_of_one(tmp_path: Path) -> None:
    result = judge_relation(ratio(), [measured(tmp_path, ONE), measured(tmp_path, OTHER)])
    (judgement,) = result.report.quantities
    assert (judgement.value, judgement.unit, judgement.name) == (1.0, "x", "bandwidth_likeness")
    assert result.nodes == ("n1", "n2")


PASS, FAIL, INVALID, UNJUDGED, MISSING, *_ = Verdict
TENTH, HALF = {"text": slower(PUT_BW, 1.1)}, {"text": slower(PUT_BW, 1.5)}
STRAY, BUILT = replace(OTHER, rails=("rail1",)), replace(OTHER, library="/opt/mpi/libmpi.so.40")
SWAPPED = ratio(over=["one"], under=["other"])

Case = tuple[Relation, Leg | None, dict[str, object], Verdict, str, set[str]]

#: the relation, the other leg and what it left; the verdict, words of why, what is repeated
RATIOS: dict[str, Case] = {
    "two like legs": (ratio(), OTHER, {}, PASS, "", set()),
    "a tenth slower": (
        ratio(), OTHER, TENTH, FAIL, "below the lower bound 0.95; look at the cable",
        {"one", "other"}),
    "more than links allow": (
        SWAPPED, OTHER, HALF, INVALID, "more than links and slots allow", {"one", "other"}),
    "no reference": (ratio(reference=None), OTHER, {}, UNJUDGED, "", {"one", "other"}),
    "a leg without numbers": (  # else a ratio of two minutes would be red after one look
        ratio(), OTHER, {"status": "1\n"}, MISSING, "leg other is MISSING", {"one", "other"}),
    "another path": (ratio(), STRAY, {}, INVALID, "took another path", set()),
    "never planned": (ratio(), None, {}, MISSING, "leg other was never planned", set()),
    "a size that nobody measured": (ratio(sizes=[1 << 25]), OTHER, {}, MISSING, "", set()),
    "a kind that nobody judges": (
        replace(ratio(), kind="astrology"), OTHER, {}, MISSING, "", set()),
    "a library that nobody saw": (
        ratio(), BUILT, {}, UNJUDGED, "leg other: nobody saw which MPI library", set()),
}  # fmt: skip


@pytest.mark.parametrize("name", RATIOS)
def test_a_ratio_is_judged(name: str, tmp_path: Path) -> None:
    relation, other, left, verdict, words, again = RATIOS[name]
    outcomes = [measured(tmp_path, ONE)]
    outcomes += [measured(tmp_path, other, **left)] if other else []  # type: ignore[arg-type]
    report = judge_relation(relation, outcomes).report
    assert (report.verdict, legs_to_repeat([relation], outcomes)) == (verdict, again)
    assert words in report.quantities[0].reason


def test_the_second_look_repeats_both_legs_of_a_red_relation_though_each_passed(
    tmp_path: Path,
) -> None:
    # 6 % below its neighbour: within the tolerance of its own reference, not of the relation's.
    leave(tmp_path, ONE)
    leave(tmp_path, OTHER, slower(PUT_BW, 1.06))
    write_plan(tmp_path, [ONE, OTHER], [ratio()])
    assert read_plan(tmp_path) == Plan(legs=(ONE, OTHER), relations=(ratio(),))
    assert doubtful_legs(tmp_path) == ["one", "other"]
    leave(tmp_path, ONE, attempt=2)
    leave(tmp_path, OTHER, attempt=2)
    assert doubtful_legs(tmp_path) == []
    outcomes = [judge_leg(tmp_path, leg) for leg in (ONE, OTHER)]
    result = judge_relation(ratio(), outcomes)
    assert result.report.verdict is Verdict.PASS
    assert texts_of(result.report.findings)[0].startswith(
        "second look: passed; the first said FAIL"
    )


def test_a_relation_that_is_red_twice_stays_red(tmp_path: Path) -> None:
    for attempt in (1, 2):
        leave(tmp_path, ONE, attempt=attempt)
        leave(tmp_path, OTHER, slower(PUT_BW, 1.06), attempt=attempt)
    report = judge_relation(ratio(), [judge_leg(tmp_path, leg) for leg in (ONE, OTHER)]).report
    assert report.verdict is Verdict.FAIL
    assert "red again on the same nodes" in texts_of(report.findings)[0]


@given(value=st.floats(min_value=0.0, max_value=10.0), most=st.floats(1.0, 5.0))
def test_a_ratio_passes_only_between_its_bounds(value: float, most: float) -> None:
    settings = {"reference": asdict(TWICE), "most": most}
    verdict = judge_against("r", value, settings).verdict
    assert (verdict is Verdict.PASS) == (0.95 <= value <= most)


@pytest.mark.parametrize("combine", ["sum", "max", "min", "median"])
def test_several_legs_on_one_side_are_combined_as_asked(tmp_path: Path, combine: str) -> None:
    outcomes = [measured(tmp_path, ONE), measured(tmp_path, OTHER)]
    relation = ratio(over=["one", "other"], combine=combine, most=None)
    (judgement,) = judge_relation(relation, outcomes).report.quantities
    assert judgement.value == pytest.approx(2.0 if combine == "sum" else 1.0)


def test_a_judge_that_fails_costs_its_own_row_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(_relation: Relation, _looks: object) -> object:
        raise ZeroDivisionError("no good")

    monkeypatch.setitem(JUDGES, "broken", broken)
    outcomes = [measured(tmp_path, ONE), measured(tmp_path, OTHER)]
    relations = (replace(ratio(), name="bad", kind="broken"), ratio())
    bad, good = judge_relations(relations, outcomes)
    assert (bad.report.verdict, good.report.verdict) == (Verdict.MISSING, Verdict.PASS)
    assert "ZeroDivisionError('no good')" in bad.report.quantities[0].reason
    assert legs_to_repeat(relations, outcomes) == frozenset()


@pytest.mark.parametrize("name", ["one", "on.e", "on+e"])
def test_two_legs_that_would_share_a_folder_are_never_started(tmp_path: Path, name: str) -> None:
    """``eth0.100`` and ``eth0_100``: one would be judged by what the other left."""
    first = replace(ONE, name="one" if name == "one" else "on_e")
    with pytest.raises(ConfigError, match="cannot be told apart"):
        write_plan(tmp_path, [first, replace(OTHER, name=name)])


def test_a_relation_does_not_take_a_legs_name(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot be told apart"):
        write_plan(tmp_path, [ONE, replace(OTHER, name="likeness")], [ratio()])


def test_of_two_columns_the_one_that_is_not_judged_counts_too(tmp_path: Path) -> None:
    """IMB's PingPong: its latency is judged at the least size, its bandwidth at all others."""
    path = Path(__file__).parents[1] / "data" / "imb" / "mpi1-all.txt"
    text = path.read_text(encoding="utf-8")
    (table,) = [each for each in parse_text(text) if each.program == "PingPong"]
    one = measured(tmp_path, ONE)
    both = replace(one, attempts=(replace(one.attempts[0], table=table),))
    sizes = [int(size) for size in table.column("message_size")]
    assert [value_at(both, "latency", size) for size in sizes] == list(table.column("latency_us"))
    assert math.isnan(value_at(both, "latency", 3))
    assert math.isnan(value_at(both, "balance", sizes[1]))
    # What was judged comes first.
    size = 1 << 20
    assert value_at(both, "bandwidth", size) == value_at(one, "bandwidth", size)
