"""Relations in rounds: an interval decides, noise alone never does; the job asks for more."""

from __future__ import annotations

import math
import random
from collections.abc import Collection, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fabricproof.core.findings import texts_of
from fabricproof.core.measure import Verdict
from fabricproof.job.leg import read_plan, write_plan
from fabricproof.job.outcome import Attempt, Outcome
from fabricproof.job.outcomes import judge_legs
from fabricproof.job.relation import Ratio, RatioSide, Relation
from fabricproof.job.relations.judge import judge_relation, rounds_due
from fabricproof.job.relations.rounds import (
    LEAST,
    LEAST_RED,
    MOST_LOST,
    MOST_SECONDS,
    Decision,
    RatioStanding,
    RoundBounds,
    decide_rounds,
    rounds_to_add,
)
from fabricproof.job.script import MOST_ROUNDS
from fabricproof.job.second_look import doubtful_legs
from fabricproof.traffic.disturbance import Disturbance, DisturbanceKind, Disturbances
from fabricproof.verdict.value import at_least
from leg_folders import PUT_BW, PUT_BW_SENT, leave, make_leg, rank_text, slower

#: a far pair's latency over a near one's across two switches more (rfm.placement)
FAR = RoundBounds(upper=1.4 * 1.25)

ratios = st.lists(st.floats(0.01, 100.0), min_size=1, max_size=12)


def _measured(draw: random.Random, truth: float, scatter: float, bounds: RoundBounds) -> Decision:
    """Measure as a job does: rounds until it is decided or hopeless."""
    values: list[float] = [truth * math.exp(draw.gauss(0, scatter))]
    while more := rounds_to_add(values, 0, bounds):
        values += [truth * math.exp(draw.gauss(0, scatter)) for _ in range(more)]
    return decide_rounds(values, bounds)


def _share(
    standings: set[RatioStanding], truth: float, scatter: float, bounds: RoundBounds
) -> float:
    draw = random.Random(f"{truth} {scatter}")
    found = [_measured(draw, truth, scatter, bounds).standing for _ in range(600)]
    return sum(each in standings for each in found) / len(found)


@pytest.mark.parametrize("scatter", [0.05, 0.2, 0.5, 1.0])
def test_a_healthy_relation_is_hardly_ever_red(scatter: float) -> None:
    assert _share({RatioStanding.ABOVE}, 1.0, scatter, FAR) <= 0.002


@pytest.mark.parametrize("scatter", [0.05, 0.2, 0.5, 1.0])
def test_at_its_very_bound_it_is_red_as_rarely_as_the_law_says(scatter: float) -> None:
    # Half a percent a look on this side, and a few looks.
    assert _share({RatioStanding.ABOVE}, 1.75, scatter, FAR) <= 0.03
    assert _share({RatioStanding.INSIDE}, 1.75, scatter, FAR) <= 0.10


@pytest.mark.parametrize("scatter", [0.05, 0.2, 0.5])
def test_a_factor_of_two_beyond_the_bound_is_never_green(scatter: float) -> None:
    assert _share({RatioStanding.INSIDE}, 3.5, scatter, FAR) <= 0.01


@pytest.mark.parametrize(("scatter", "found"), [(0.05, 1.0), (0.2, 0.98), (0.4, 0.75)])
def test_a_factor_of_two_beyond_the_bound_is_found(scatter: float, found: float) -> None:
    assert _share({RatioStanding.ABOVE}, 3.5, scatter, FAR) >= found


def test_quiet_numbers_need_three_rounds_to_be_green_and_six_to_be_red() -> None:
    scaling = RoundBounds(lower=1.9, most=2.2)
    assert rounds_to_add([1.98], 0, scaling) == LEAST - 1
    assert decide_rounds([1.98, 1.99], scaling).standing is RatioStanding.OPEN
    assert decide_rounds([1.98, 1.99, 1.985], scaling).standing is RatioStanding.INSIDE
    few = [1.63, 1.62, 1.64]
    assert decide_rounds(few, scaling).standing is RatioStanding.OPEN
    assert rounds_to_add(few, 0, scaling) == LEAST_RED - len(few)
    assert decide_rounds(few * 2, scaling).standing is RatioStanding.BELOW
    assert decide_rounds([2.6, 2.61, 2.59] * 2, scaling).standing is RatioStanding.IMPOSSIBLE


def test_what_the_nightly_called_red_twice_is_open() -> None:
    # far_over_near of two looks at one healthy pair on the virtual cluster
    decision = decide_rounds([3.89, 2.21], FAR)
    assert decision.standing is RatioStanding.OPEN
    assert decision.would_tell is not None
    assert decision.would_tell >= LEAST_RED


def test_noise_beyond_hope_ends_the_rounds_and_is_no_pass() -> None:
    wild = [0.1, 9.0, 1.0, 12.0, 0.2, 3.0]
    assert rounds_to_add(wild, 0, FAR) == 0
    assert decide_rounds(wild, FAR).standing is RatioStanding.OPEN


@settings(deadline=None)
@given(ratios, st.floats(0.1, 10.0))
def test_less_than_three_rounds_never_decide(values: list[float], upper: float) -> None:
    decision = decide_rounds(values[: LEAST - 1], RoundBounds(upper=upper))
    assert decision.standing is RatioStanding.OPEN


@settings(deadline=None)
@given(ratios, st.floats(0.1, 10.0))
def test_green_lies_within_and_red_beyond(values: list[float], upper: float) -> None:
    decision = decide_rounds(values, RoundBounds(upper=upper))
    if decision.standing is RatioStanding.INSIDE:
        assert decision.high <= upper * (1 + 1e-9)
    if decision.standing is RatioStanding.ABOVE:
        assert decision.low >= upper * (1 - 1e-9)


@settings(deadline=None)
@given(ratios, st.integers(0, MOST_ROUNDS), st.floats(0.1, 10.0))
def test_a_job_never_makes_more_rounds_than_its_share(
    values: list[float], lost: int, upper: float
) -> None:
    more = rounds_to_add(values, lost, RoundBounds(upper=upper))
    assert more >= 0
    assert more == 0 or len(values) + lost + more <= MOST_ROUNDS


ONE, OTHER = make_leg(name="one"), make_leg(name="other")
TURNS = {leg.name: leg.turn() for leg in (ONE, OTHER)}
LEGS = (ONE, OTHER, *TURNS.values())


def _side(leg: str) -> RatioSide:
    return RatioSide(legs=(leg,), quantity="bandwidth", sizes=(1 << 20, 1 << 22))


RELATION = Relation(
    name="likeness",
    what=Ratio(
        over=_side("other"),
        under=_side("one"),
        reference=at_least(1.0, unit="x", tolerance=0.05, origin="test: alike"),
        most=1.2,
        hint="look at the cable",
    ),
    legs=("one", "other"),
    suite="osu",
    program="osu_put_bw",
    turns={name: leg.name for name, leg in TURNS.items()},
)


def _job(folder: Path, factors: list[float]) -> Path:
    """Leave a job whose ``other`` was slower by each factor in turn."""
    for number, factor in enumerate(factors):
        for leg, by in ((ONE, 1.0), (OTHER, factor)):
            which, attempt = (leg, 1) if number == 0 else (TURNS[leg.name], number)
            leave(folder, which, slower(PUT_BW, by), attempt=attempt)
    return folder


def test_rounds_run_in_turn_and_every_other_one_backwards(tmp_path: Path) -> None:
    write_plan(_job(tmp_path, [1.0]), LEGS, [RELATION])
    assert read_plan(tmp_path).relations == (RELATION,)
    there, back = ["one_turn", "other_turn"], ["other_turn", "one_turn"]
    assert doubtful_legs(tmp_path) == [*back, *there]


@pytest.mark.parametrize(("fit", "rounds"), [(4, 2), (3, 1), (2, 1), (1, 0), (0, 0), (-3, 0)])
def test_rounds_that_do_not_fit_in_the_jobs_time_are_not_begun(
    tmp_path: Path, fit: int, rounds: int
) -> None:
    """A job that the scheduler ends in the middle of a round would leave MISSING, not UNJUDGED."""
    write_plan(_job(tmp_path, [1.0]), LEGS, [RELATION])
    assert len(doubtful_legs(tmp_path, fit)) == 2 * rounds


def test_a_second_look_is_asked_for_however_little_time_is_left(tmp_path: Path) -> None:
    write_plan(tmp_path, LEGS, [RELATION])
    leave(tmp_path, ONE, slower(PUT_BW, 2))
    leave(tmp_path, OTHER, PUT_BW)
    assert doubtful_legs(tmp_path, 0) == ["one"]


QUIET, TENTH = [1.0, 1.001, 0.999], [1.1, 1.1, 1.11, 1.1, 1.09, 1.1]
FEW = "{} of 3 rounds", "{} more are missing; {} do not count: disturbed: others ran 2 s"


@pytest.mark.parametrize(
    ("factors", "disturbed", "verdict", "words", "due"),
    [
        (QUIET, (), "PASS", ["in 3 rounds"], 0),
        ([1.0], (), "UNJUDGED", ["1 of 3 rounds"], 4),
        (TENTH, (), "FAIL", ["below the lower bound 0.95; look at the cable"], 0),
        # what differs is unjudged with the number that would tell
        ([1.0, 1.1, 1.0, 1.12, 1.0, 1.05], (), "UNJUDGED", ["rounds like these would tell"], None),
        # disturbed rounds count neither for green nor for red
        ([1.5, *QUIET, 1.5, 1.5], (0, 4, 5), "PASS", ["in 3 rounds"], 0),
        ([1.5, *QUIET, 1.5, 1.5], (), "UNJUDGED", [], None),
        ([*TENTH, 1.3], (6,), "FAIL", [], None),
        ([1.0] * 3, (2,), "UNJUDGED", [FEW[0].format(2), FEW[1].format(1, 1)], 2),
        ([1.0] * 3, (0, 1, 2), "UNJUDGED", [FEW[0].format(0), FEW[1].format(3, 3)], 6),
    ],
)
def test_rounds_are_judged(
    tmp_path: Path,
    factors: list[float],
    disturbed: Collection[int],
    verdict: str,
    words: list[str],
    due: int | None,
) -> None:
    outcomes = _disturbed(judge_legs(_job(tmp_path, factors), LEGS), disturbed)
    report = judge_relation(RELATION, outcomes).report
    (judgement,) = report.quantities
    assert (report.verdict.name, judgement.verdict.name) == (verdict, verdict)
    assert all(each in judgement.reason for each in words), judgement.reason
    assert judgement.is_open is (verdict == "UNJUDGED")
    assert due is None or len(rounds_due([RELATION], outcomes)) == due
    starved = "starved_cores" if disturbed and verdict == "UNJUDGED" else None
    assert judgement.disturbance == starved
    said = sum("does not count: disturbed" in each for each in texts_of(report.findings))
    assert said == len(disturbed)


def test_a_relation_beside_load_ends_after_its_budget_with_the_figure(tmp_path: Path) -> None:
    """One took 336 s of a ten-minute run."""
    job = _job(tmp_path, [1.0] * MOST_LOST)
    outcomes = _disturbed(judge_legs(job, LEGS), range(MOST_LOST))
    assert rounds_due([RELATION], outcomes) == ()
    (judgement,) = judge_relation(RELATION, outcomes).report.quantities
    assert judgement.verdict is Verdict.UNJUDGED
    assert f"its budget is spent: {MOST_LOST} rounds" in judgement.reason
    assert "others ran 2 s" in judgement.reason


def test_six_rounds_are_made_however_long_and_no_more_after_its_time() -> None:
    bounds = RoundBounds(lower=0.98)
    noisy = [1.0, 0.9, 1.1, 1.0, 0.95, 1.05]
    assert rounds_to_add(noisy[:5], 0, bounds, MOST_SECONDS) > 0
    assert rounds_to_add(noisy, 0, RoundBounds(lower=0.96), 0.0) > 0
    assert rounds_to_add(noisy, 0, RoundBounds(lower=0.96), MOST_SECONDS) == 0


def test_a_round_over_another_path_is_no_green(tmp_path: Path) -> None:
    _job(tmp_path, [1.0, 1.0, 1.0])
    strays = replace(TURNS["other"], rails=("rail1",))
    outcomes = judge_legs(tmp_path, [ONE, OTHER, TURNS["one"], strays])
    assert judge_relation(RELATION, outcomes).report.verdict is Verdict.INVALID


def test_a_round_that_was_lost_does_not_count_and_is_said(tmp_path: Path) -> None:
    _job(tmp_path, [1.0, 1.0])
    leave(tmp_path, TURNS["one"], attempt=2)
    leave(tmp_path, TURNS["other"], attempt=2, status="1\n")
    report = judge_relation(RELATION, judge_legs(tmp_path, LEGS)).report
    assert report.verdict is Verdict.UNJUDGED
    assert any("does not count" in each for each in texts_of(report.findings))


@pytest.mark.parametrize(("crashed", "verdict"), [(1, "PASS"), (2, "UNJUDGED"), (3, "UNJUDGED")])
def test_rounds_that_crashed_leave_nothing_green_but_for_one(
    tmp_path: Path, crashed: int, verdict: str
) -> None:
    """What runs in turn has no row of its own: nobody else would tell of it."""
    _job(tmp_path, [1.0, 1.001, 0.999, 1.0, 1.0])
    for attempt in range(5, 5 + crashed):
        leave(tmp_path, TURNS["one"], attempt=attempt)
        leave(tmp_path, TURNS["other"], attempt=attempt, status="1\n")
    outcomes = judge_legs(tmp_path, LEGS)
    (judgement,) = judge_relation(RELATION, outcomes).report.quantities
    assert judgement.verdict.name == verdict
    said = f"in {crashed} rounds a leg left nothing, or errors rose: leg other is MISSING"
    assert (said in judgement.reason) is (crashed > 1)
    assert rounds_due([RELATION], outcomes) == ()


def test_a_round_that_the_end_of_the_job_cut_is_none_that_crashed(tmp_path: Path) -> None:
    _job(tmp_path, [1.0, 1.001, 0.999])
    for attempt in (3, 4):
        leave(tmp_path, TURNS["one"], attempt=attempt)
    assert judge_relation(RELATION, judge_legs(tmp_path, LEGS)).report.verdict is Verdict.PASS


@pytest.mark.parametrize(("flapped", "verdict"), [(1, "PASS"), (2, "UNJUDGED")])
def test_rounds_with_errors_on_their_path_leave_nothing_green_but_for_one(
    tmp_path: Path, flapped: int, verdict: str
) -> None:
    _job(tmp_path, [1.0, 1.001, 0.999, 1.0, 1.0])
    for attempt in range(5, 5 + flapped):
        leave(tmp_path, TURNS["one"], attempt=attempt)
        ranks = [
            rank_text(0, sent=PUT_BW_SENT, received=0),
            rank_text(1, sent=0, received=PUT_BW_SENT),
        ]
        errors = "tx_errors=7\nafter rail1"
        leave(
            tmp_path,
            TURNS["other"],
            attempt=attempt,
            ranks=(ranks[0].replace("tx_errors=0\nafter rail1", errors), ranks[1]),
        )
    (judgement,) = judge_relation(RELATION, judge_legs(tmp_path, LEGS)).report.quantities
    assert judgement.verdict.name == verdict
    assert ("errors rose while it ran" in judgement.reason) is (flapped > 1)


def _disturbed(outcomes: Sequence[Outcome], rounds: Collection[int]) -> list[Outcome]:
    """Return outcomes with ``other`` starved of its core in these rounds, 0 the first look."""
    share = Disturbance(kind=DisturbanceKind.STARVED_CORES, share=0.4, reason="others ran 2 s")
    others = Disturbances(found=(share,))

    def number(outcome: Outcome, attempt: Attempt) -> int:
        return attempt.number if outcome.leg.in_turn else 0

    return [
        replace(
            each,
            attempts=tuple(
                replace(one, disturbances=others)
                if each.leg.name.startswith("other") and number(each, one) in rounds
                else one
                for one in each.attempts
            ),
        )
        for each in outcomes
    ]


def test_legs_that_run_in_turn_are_neither_repeated_nor_judged_by_themselves(
    tmp_path: Path,
) -> None:
    _job(tmp_path, [1.0, 3.0, 3.0])
    write_plan(tmp_path, LEGS, [RELATION])
    assert set(doubtful_legs(tmp_path)) == {"one_turn", "other_turn"}


def test_a_round_of_nothing_among_good_ones_decides_nothing_and_all_of_them_are_red() -> None:
    bounds = RoundBounds(lower=0.98, upper=1.02)
    mixed = [1.0, 0.0, 1.0, 1.0]
    assert decide_rounds(mixed, bounds).standing is RatioStanding.OPEN
    assert rounds_to_add(mixed, 0, bounds) > 0
    assert decide_rounds([0.0] * LEAST_RED, bounds).standing is RatioStanding.BELOW
