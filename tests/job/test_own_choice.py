"""The sweep of algorithms as a relation that owns its legs."""

from dataclasses import replace
from pathlib import Path

import pytest

from fabricproof.core.findings import texts_of
from fabricproof.core.measure import Verdict
from fabricproof.core.units import size_label
from fabricproof.job.leg import row_leg
from fabricproof.job.outcome import Attempt, Outcome
from fabricproof.job.relation import OwnChoice, Relation
from fabricproof.job.relations.judge import judge_relation, legs_to_repeat
from fabricproof.traffic import PathProof, PathState
from fabricproof.tuning import Bar
from fabricproof.verdict.objections import Objection, ObjectionKind
from fabricproof.verdict.value import Judgement, Report, missing

SIZES = (16384, 65536)
PROVEN = PathProof(state=PathState.PROVEN, reason="all bytes on rail0")
SERIES = {"own": 3, "1": 2, "4": 2}


def relation() -> Relation:
    series = {
        name: tuple(f"{name}.{turn + 1}" for turn in range(turns)) for name, turns in SERIES.items()
    }
    names = tuple(leg for legs in series.values() for leg in legs)
    what = OwnChoice(
        series=series,
        labels={"1": "1 linear", "4": "4 ring"},
        sizes=SIZES,
        left_out=("left out: 6 two_proc: needs two ranks",),
        bar=Bar(sure_factor=1.25, loss_limit=1.5, false_alarms=0.01),
        mended_by={"1": "set A=1 in the environment", "4": "set A=4 in the environment"},
    )
    return Relation(
        name="rail0.4x1.algorithms",
        what=what,
        legs=names,
        suite="osu",
        program="osu_allgather",
        rails=("rail0",),
        owns=names,
    )


def report(
    times: dict[int, float], net_path: PathProof = PROVEN, verdict=Verdict.UNJUDGED
) -> Report:
    return Report(
        verdict=verdict,
        quantities=tuple(
            Judgement(
                name=f"latency_{size_label(size)}",
                value=time,
                unit="us",
                message_size=size,
                verdict=verdict,
                reason="no reference says what it should be",
            )
            for size, time in times.items()
        ),
        net_path=net_path,
    )


def attempt(look: Report, number: int = 1) -> Attempt:
    return Attempt(number=number, folder=Path("legs"), status=0, table=None, ranks=(), report=look)


def outcomes(own: float, *, other: float = 1000.0, **changed: Report) -> list[Outcome]:
    """Return the legs of a sweep; ``own`` and ``other`` in us at 16KiB, three times it at 64KiB."""
    base = {"own": own, "1": 2 * other, "4": other}
    found = []
    for name, turns in SERIES.items():
        for turn in range(turns):
            leg = row_leg(f"{name}.{turn + 1}", "osu", "osu_allgather", ("rail0",))
            time = base[name] * (1 + 0.01 * turn)
            look = changed.get(f"{name}_{turn + 1}", report({16384: time, 65536: 3 * time}))
            found.append(Outcome(leg=leg, attempts=(attempt(look),), report=look))
    return found


def judged(own: float, **changed) -> Outcome:
    return judge_relation(relation(), outcomes(own, **changed))


def test_an_own_choice_as_good_as_the_best_passes_at_every_size():
    result = judged(1010.0)
    assert result.report.verdict is Verdict.PASS
    assert [each.name for each in result.report.quantities] == [
        "own_choice_16KiB",
        "own_choice_64KiB",
    ]
    assert "left out: 6 two_proc: needs two ranks" in texts_of(result.report.findings)
    assert result.report.net_path == PROVEN


def test_an_own_choice_that_takes_three_times_as_long_fails_and_names_the_winner():
    result = judged(3000.0)
    assert result.report.verdict is Verdict.FAIL
    worst = result.report.quantities[0]
    assert worst.value == pytest.approx(3.0, rel=0.02)
    assert "4 ring" in worst.reason
    assert "surely 2." in worst.reason
    assert worst.reason.endswith("; set A=4 in the environment")


def test_a_loss_below_the_limit_passes_and_is_told():
    result = judged(1400.0)
    assert result.report.verdict is Verdict.PASS
    assert any(
        "4 ring" in finding and "1.4" in finding and "set A=4" in finding
        for finding in texts_of(result.report.findings)
    )


def test_a_red_sweep_runs_the_own_choice_and_the_winner_again_and_nobody_else():
    wanted = legs_to_repeat([relation()], outcomes(3000.0))
    assert wanted == {"own.1", "own.2", "own.3", "4.1", "4.2"}
    assert legs_to_repeat([relation()], outcomes(1000.0)) == frozenset()


def _again(before: list[Outcome], own: float) -> list[Outcome]:
    """Return the legs after a second look at the own choice and at ring."""
    after = []
    for each, second in zip(before, outcomes(own), strict=True):
        if each.leg.name.startswith("1."):
            after.append(each)
        else:
            both = (*each.attempts, attempt(second.report, 2))
            after.append(replace(each, attempts=both))
    return after


def test_red_twice_is_red_and_a_second_look_takes_a_stall_back():
    assert judge_relation(relation(), _again(outcomes(3000.0), 3000.0)).report.verdict is (
        Verdict.FAIL
    )
    cleared = judge_relation(relation(), _again(outcomes(3000.0), 1000.0))
    # What differs threefold between two looks is no finding about the algorithm.
    assert cleared.report.verdict is not Verdict.FAIL
    assert not any(each.verdict is Verdict.FAIL for each in cleared.report.quantities)


GONE = missing(["latency_16KiB"], "the benchmark failed, exit status 1: algo #3 has fallback")
FAST = {16384: 10.0, 65536: 20.0}
ELSEWHERE = PathProof(state=PathState.WRONG, reason="rail0 carried nothing")


@pytest.mark.parametrize(
    ("spoilt", "said"),
    [
        ({"4_2": GONE}, "fallback"),
        (dict.fromkeys(("4_1", "4_2"), report(FAST, ELSEWHERE)), "rail0 carried nothing"),
        (dict.fromkeys(("4_1", "4_2"), report(FAST, verdict=Verdict.INVALID)), ""),
    ],
    ids=["an error", "another path", "an impossible time"],
)
def test_an_algorithm_that_proved_nothing_cannot_win(spoilt: dict[str, Report], said: str) -> None:
    result = judged(1000.0, **spoilt).report
    assert result.verdict is Verdict.PASS
    assert all("1 linear" in each.reason for each in result.quantities)
    told = [each for each in texts_of(result.findings) if said in each]
    assert any("4 ring" in each for each in told) or not said


ALL_GONE = dict.fromkeys(("1_1", "1_2", "4_1", "4_2"), GONE)


@pytest.mark.parametrize(
    ("spoilt", "verdict"),
    [
        ({"own_2": missing(["latency_16KiB"], "the leg was cut off")}, Verdict.MISSING),
        ({"own_2": report({16384: 1.0}, ELSEWHERE)}, Verdict.INVALID),
        (
            {"own_2": report({16384: 1.0}, PathProof(state=PathState.UNKNOWN, reason="no"))},
            Verdict.UNJUDGED,
        ),
        ({"own_2": report(FAST, verdict=Verdict.INVALID)}, Verdict.INVALID),
        ({"own_2": report({65536: 3000.0})}, Verdict.MISSING),
        (ALL_GONE, Verdict.UNJUDGED),  # nothing to hold the own choice against
    ],
)
def test_without_a_time_that_counts_nothing_is_green(spoilt, verdict):
    assert judged(1000.0, **spoilt).report.verdict is verdict


@pytest.mark.parametrize("spoilt", [GONE, report(FAST, ELSEWHERE)])
def test_an_algorithm_that_the_sweep_refused_mends_nothing(spoilt: Report) -> None:
    """Of a series with one bad leg the other one's times are left: a luckier draw."""
    result = judged(3000.0, **{"4_2": spoilt}).report
    assert all("1 linear" in each.reason for each in result.quantities)


def test_an_algorithm_mends_nothing_at_a_size_that_one_look_lacks() -> None:
    result = judged(3000.0, **{"4_2": report({65536: 3000.0})}).report
    assert ["4 ring" in each.reason for each in result.quantities] == [False, True]


def _unseen(reason: str) -> Objection:
    return Objection(kind=ObjectionKind.LIBRARY_UNSEEN, reason=reason)


def _blind(legs: list[Outcome], name: str, unseen: str) -> list[Outcome]:
    return [
        replace(each, attempts=(replace(each.attempts[0], objections=(_unseen(unseen),)),))
        if each.leg.name == name
        else each
        for each in legs
    ]


@pytest.mark.parametrize("times", [{16384: 1010.0, 65536: 3030.0}, {16384: 9.0, 65536: 27.0}])
def test_times_of_a_library_that_nobody_saw_are_neither_good_nor_bad(times):
    """The legs of a sweep are not judged by themselves: nothing else would say so."""
    unseen = "nobody saw which MPI library rank 0 loads: no ldd on the node"
    blind = _blind(outcomes(1010.0, own_1=report(times)), "own.1", unseen)
    result = judge_relation(relation(), blind).report
    assert result.verdict is Verdict.UNJUDGED
    assert unseen in result.quantities[0].reason


def test_an_algorithm_measured_with_a_library_that_nobody_saw_cannot_win():
    blind = _blind(outcomes(3000.0), "4.1", "nobody saw which")
    told = texts_of(judge_relation(relation(), blind).report.findings)
    assert any("not comparable: 4 ring: nobody saw which" in each for each in told)
