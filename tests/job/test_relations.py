"""What is to hold between legs: on numbers that count, and on two looks."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from looks import bandwidths, look_at, sent

from fabricproof.benchmarks.parsers import parse_text
from fabricproof.core.errors import ConfigError
from fabricproof.core.findings import texts_of
from fabricproof.core.measure import Verdict
from fabricproof.job.leg import Leg, Plan, read_plan, write_plan
from fabricproof.job.outcome import Outcome, judge_leg
from fabricproof.job.relation import Balance, Bind, Pick, Ratio, RatioSide, Relation
from fabricproof.job.relations import judge as judging
from fabricproof.job.relations.judge import (
    judge_ratio,
    judge_relation,
    judge_relations,
    legs_to_repeat,
)
from fabricproof.job.relations.measures import (
    balance_of,
    shares_of,
    threshold_bytes,
    value_at,
    why_not_held,
)
from fabricproof.job.second_look import doubtful_legs
from fabricproof.traffic import PathProof, PathState
from fabricproof.verdict.value import Report, at_least, at_most
from leg_folders import PUT_BW, leave, make_leg, slower

TWICE = at_least(1.0, unit="x", tolerance=0.05, origin="test: alike")
ONE, OTHER = make_leg(name="one"), make_leg(name="other")


def ratio(over: str = "other", under: str = "one", **changes: Any) -> Relation:
    sizes = changes.pop("sizes", (1 << 20, 1 << 22))
    sides = {
        name: RatioSide(legs=tuple(legs.split()), quantity="bandwidth", sizes=sizes)
        for name, legs in (("over", over), ("under", under))
    }
    what = Ratio(**{"reference": TWICE, "most": 1.2, "hint": "a cable", **sides, **changes})
    return Relation(
        name="likeness", what=what, legs=("one", "other"), suite="osu", program="osu_put_bw"
    )


def measured(folder: Path, leg: Leg, text: str = PUT_BW, **how: Any) -> Outcome:
    leave(folder, leg, text, **how)
    return judge_leg(folder, leg)


PASS, FAIL, INVALID, UNJUDGED, MISSING, *_ = Verdict
TENTH, HALF = {"text": slower(PUT_BW, 1.1)}, {"text": slower(PUT_BW, 1.5)}
STRAY, BUILT = replace(OTHER, rails=("rail1",)), replace(OTHER, library="/opt/mpi/libmpi.so.40")
BOTH = {"one", "other"}

#: the relation, the other leg and what it left; the verdict, words of why, what is repeated
RATIOS: dict[str, tuple[Relation, Leg | None, dict[str, Any], Verdict, str, set[str]]] = {
    "two like legs": (ratio(), OTHER, {}, PASS, "", set()),
    "a tenth slower": (ratio(), OTHER, TENTH, FAIL, "a cable", BOTH),
    "more than links allow": (ratio("one", "other"), OTHER, HALF, INVALID, "allow", BOTH),
    "no reference": (ratio(reference=None), OTHER, {}, UNJUDGED, "", BOTH),
    # else a ratio of two minutes would be red after one look
    "a leg without numbers": (ratio(), OTHER, {"status": "1\n"}, MISSING, "leg other", BOTH),
    "another path": (ratio(), STRAY, {}, INVALID, "took another path", set()),
    "never planned": (ratio(), None, {}, MISSING, "leg other was never planned", set()),
    "a size that nobody measured": (ratio(sizes=(1 << 25,)), OTHER, {}, MISSING, "", set()),
    "a library that nobody saw": (ratio(), BUILT, {}, UNJUDGED, "which MPI library", set()),
}


@pytest.mark.parametrize("name", RATIOS)
def test_a_ratio_is_judged(name: str, tmp_path: Path) -> None:
    relation, other, left, verdict, words, again = RATIOS[name]
    outcomes = [measured(tmp_path, ONE)]
    outcomes += [measured(tmp_path, other, **left)] if other else []
    report = judge_relation(relation, outcomes).report
    assert (report.verdict, legs_to_repeat([relation], outcomes)) == (verdict, again)
    assert words in report.quantities[0].reason


@pytest.mark.parametrize(("again", "verdict"), [(1.0, PASS), (1.06, FAIL)])
def test_both_legs_of_a_red_ratio_run_again_though_each_passed(
    tmp_path: Path, again: float, verdict: Verdict
) -> None:
    # 6 % below its neighbour: within the tolerance of its own reference, not of the relation's.
    leave(tmp_path, ONE)
    leave(tmp_path, OTHER, slower(PUT_BW, 1.06))
    write_plan(tmp_path, [ONE, OTHER], [ratio()])
    assert read_plan(tmp_path) == Plan(legs=(ONE, OTHER), relations=(ratio(),))
    assert doubtful_legs(tmp_path) == ["one", "other"]
    leave(tmp_path, ONE, attempt=2)
    leave(tmp_path, OTHER, slower(PUT_BW, again), attempt=2)
    assert doubtful_legs(tmp_path) == []
    outcomes = [judge_leg(tmp_path, leg) for leg in (ONE, OTHER)]
    assert judge_relation(ratio(), outcomes).report.verdict is verdict


@given(value=st.floats(min_value=0.0, max_value=10.0), most=st.floats(1.0, 5.0))
def test_a_ratio_passes_only_between_its_bounds(value: float, most: float) -> None:
    what = ratio(most=most).what
    assert isinstance(what, Ratio)
    assert (judge_ratio("r", value, what).verdict is PASS) == (0.95 <= value <= most)


@pytest.mark.parametrize(("pick", "value"), [(Pick.LARGEST, 1.0), (Pick.SMALLEST, 1 / 1.1)])
def test_of_several_legs_on_one_side_the_one_that_was_asked_for_counts(
    tmp_path: Path, pick: Pick, value: float
) -> None:
    outcomes = [measured(tmp_path, ONE), measured(tmp_path, OTHER, **TENTH)]
    both = RatioSide(legs=("one", "other"), quantity="bandwidth", sizes=(1 << 22,), pick=pick)
    relation = ratio(sizes=(1 << 22,))
    assert isinstance(relation.what, Ratio)
    relation = replace(relation, what=replace(relation.what, over=both))
    (judgement,) = judge_relation(relation, outcomes).report.quantities
    assert judgement.value == pytest.approx(value, rel=0.01)


def test_a_judge_that_fails_costs_its_own_row_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> None:
        raise ZeroDivisionError("no good")

    monkeypatch.setattr(judging, "measure", broken)
    outcomes = [measured(tmp_path, ONE), measured(tmp_path, OTHER)]
    (bad,) = judge_relations([ratio()], outcomes)
    assert bad.report.verdict is MISSING
    assert "ZeroDivisionError('no good')" in bad.report.quantities[0].reason


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
    assert value_at(both, "bandwidth", 1 << 20) == value_at(one, "bandwidth", 1 << 20)


# Latencies: distance, and a rail against its twin.


def _latency(us: float) -> Report:
    report = bandwidths({1: us, 2: us})
    return replace(
        report,
        quantities=tuple(
            replace(each, name=each.name.replace("bandwidth", "latency"), unit="us")
            for each in report.quantities
        ),
    )


def of_latency(upper: float, tolerance: float, *, twins: bool = False) -> Relation:
    over, under = (("near", "far"), ("near", "far")) if twins else (("far",), ("near",))
    side = {"quantity": "latency", "sizes": (1, 2)}
    what = Ratio(
        over=RatioSide(legs=over, **side),  # type: ignore[arg-type]
        under=RatioSide(legs=under, pick=Pick.SMALLEST, **side),  # type: ignore[arg-type]
        reference=at_most(upper, unit="x", tolerance=tolerance, origin="test"),
        names={"near": "1 switch", "far": "5 switches"},
    )
    return Relation(name="r", what=what, legs=("near", "far"), suite="osu", program="osu_latency")


@pytest.mark.parametrize(
    ("near_us", "far_us", "verdict"), [(1.03, 1.85, PASS), (1.67, 2.57, PASS), (1.03, 2.57, FAIL)]
)
def test_document_002_is_judged_by_distance(
    near_us: float, far_us: float, verdict: Verdict
) -> None:
    looks = [look_at("near", _latency(near_us)), look_at("far", _latency(far_us))]
    report = judge_relation(of_latency(1.8, 0.25), looks).report
    assert report.verdict is verdict
    assert f"1 switch {near_us} us, 5 switches {far_us} us" in texts_of(report.findings)[0]


@pytest.mark.parametrize(("slow_us", "verdict"), [(41.0, PASS), (100.0, PASS), (2000.0, FAIL)])
def test_a_rail_fifty_times_slower_than_its_twin_is_red_and_last_in_the_list(
    slow_us: float, verdict: Verdict
) -> None:
    for near, far in ((40.0, slow_us), (slow_us, 40.0)):
        looks = [look_at("near", _latency(near)), look_at("far", _latency(far))]
        report = judge_relation(of_latency(1.0, 2.0, twins=True), looks).report
        assert report.verdict is verdict
        slow = "5 switches" if far == slow_us else "1 switch"
        assert f", {slow} {slow_us:.4g} us" in texts_of(report.findings)[0]


# Near and far socket: whether a binding held.


def bound(bind: str, cpus: str, home: object = 1) -> str:
    """Return what bind.sh leaves on document 000's head node, whose HCA is on socket 1 of two."""
    return f"bind {bind}\nhome {home}\nnuma 0 0-9\nnuma 1 10-19\nran {cpus}\n"


@pytest.mark.parametrize(
    ("bind", "cpus", "says"),
    [
        (Bind.NEAR, "10", ""),
        (Bind.NEAR, "12-15", ""),
        (Bind.NEAR, "0-19", "it may run on CPUs 0-19"),
        (Bind.NEAR, "0", "the rail's own are 10-19"),
        (Bind.FAR, "0-9", ""),
        (Bind.FAR, "9-10", "the rail's own"),
        (Bind.FAR, "unknown", "no list of CPUs"),
        (Bind.FAR, "0-", "no list of CPUs"),
        (Bind.FAR, "", "nobody saw"),
    ],
)
def test_a_binding_held_or_why_not(bind: Bind, cpus: str, says: str) -> None:
    reason = why_not_held(bind, bound(bind, cpus))
    assert says in reason
    assert bool(says) == bool(reason)


@pytest.mark.parametrize(
    "text",
    ["", "bind near\n", *(bound("near", "10", home) for home in ("", -1, 7)), bound("far", "10"),
        bound("near", "10")[:-1]],
)  # fmt: skip
def test_a_rail_without_a_known_home_holds_nothing_and_neither_does_a_cut_file(text: str) -> None:
    assert why_not_held(Bind.NEAR, text)


@given(st.sets(st.integers(0, 19), min_size=1))
def test_nothing_is_near_and_far_at_once(cpus: set[int]) -> None:
    said = ",".join(map(str, sorted(cpus)))
    near, far = (why_not_held(bind, bound(bind, said)) for bind in Bind)
    assert near or far


# How messages are shared among rails.

SIZES = tuple(2**power for power in range(23))


def _rail(plateau: float, start_us: float = 1.0) -> dict[int, float]:
    return {size: size / (start_us + size / plateau) for size in SIZES}


def _two(single: dict[int, float], above: int, gain: float) -> dict[int, float]:
    return {size: value * (gain if size > above else 1) for size, value in single.items()}


#: document 000: QDR on ConnectX-3, two ports of one HCA: as one rail up to 8 KiB, then 5.8 of 3.9
QDR, QDR2 = _rail(3900), _two(_rail(3900), 8192, 5.8 / 3.9)
#: document 000, near socket: two rails gain three percent, which is no help
FDR = _rail(6300)
SLOW = {size: value * 0.8 for size, value in QDR.items()}


@pytest.mark.parametrize(
    ("singles", "together", "gain", "threshold"),
    [
        ((QDR, QDR), QDR2, 1.85, 16384),
        ((FDR, FDR), _two(FDR, 8192, 6.5 / 6.3), 1.15, None),
        ((QDR, QDR), {**QDR2, 1024: QDR[1024] * 1.8}, 1.9, 16384),  # one lucky size
        ((QDR, QDR), {**QDR2, 65536: QDR[65536]}, 1.9, 131072),  # one unlucky size
        ((QDR, SLOW), _two(QDR, 8192, 1.4), 1.5, None),  # rails that disagree raise the bar
        (({1: 1.0}, {1: 1.0}), {2: 1.0}, 2, None),  # no common size
    ],
)
def test_the_threshold(singles: Any, together: Any, gain: float, threshold: int | None) -> None:
    assert threshold_bytes(singles, together, gain) == threshold


@given(st.dictionaries(st.sampled_from(SIZES), st.floats(0.1, 3), min_size=1), st.floats(1, 3))
def test_every_size_from_the_threshold_on_gains(gains: dict[int, float], expected: float) -> None:
    one = dict.fromkeys(gains, 1.0)
    threshold = threshold_bytes([one, one], gains, expected)
    if threshold is not None:
        assert all(gain > 1 for size, gain in gains.items() if size >= threshold)


ALONE = {size: size / (10 + size / 23.5) for size in SIZES[:21]}
TOGETHER = {size: value * (1.95 if size > 65536 else 1) for size, value in ALONE.items()}

#: 10 MB of small messages on rail1 alone, then 200 MB in equal parts; rank 1 only acknowledges
RANKS = (
    sent(0, {"rail0": 2_000, "rail1": 10_000_000}, part=0),
    sent(0, {"rail0": 101_000_000, "rail1": 99_000_000}, part=2),
    sent(1, {"rail0": 900_000, "rail1": 100_000}, part=2),
)
LOPSIDED = (sent(0, {"rail0": 130_000_000, "rail1": 70_000_000}, part=2),)
#: a counter that ran back
BACK = (sent(0, {"rail0": 130_000_000, "rail1": -70_000_000}, part=2),)
AWAY = replace(
    bandwidths(TOGETHER, INVALID), net_path=PathProof(state=PathState.WRONG, reason="elsewhere")
)


def sharing(threshold: int | None) -> Balance:
    rails = ("rail0", "rail1")
    return Balance(
        singles={rail: rail for rail in rails},
        together="rail0+rail1",
        large_part=2,
        expected_gain=2.0,
        weights=dict.fromkeys(rails, 0.5),
        reference=at_least(1.0, unit="x", tolerance=0.1, origin="physics"),
        threshold_bytes=threshold,
        hint="the last rail decides",
    )


@pytest.mark.parametrize(
    ("threshold", "together", "ranks", "verdict", "says"),
    [
        (None, TOGETHER, RANKS, PASS, "0.99"),
        (None, TOGETHER, LOPSIDED, FAIL, "rail0 65.0%, rail1 35.0%; the last rail decides"),
        (None, TOGETHER, (), UNJUDGED, "less than 256KiB"),  # no counters of large messages
        (None, TOGETHER, BACK, UNJUDGED, ""),
        (None, AWAY, (), INVALID, ""),
        (128 << 10, TOGETHER, RANKS, PASS, "they help from 128KiB"),
        (8192, TOGETHER, RANKS, FAIL, "from 8KiB on: they help from 128KiB"),
        (8192, ALONE, RANKS, FAIL, "they never help"),  # red, not forgotten
    ],
)
def test_sharing_is_judged(
    threshold: int | None, together: Any, ranks: tuple[Any, ...], verdict: Verdict, says: str
) -> None:
    rails = ("rail0", "rail1")
    legs = (*rails, "rail0+rail1")
    relation = Relation(
        name="sharing", what=sharing(threshold), legs=legs, suite="osu", program="osu_bw"
    )
    report = together if together is AWAY else bandwidths(together)
    looks = [look_at(rail, bandwidths(ALONE)) for rail in rails]
    judged = judge_relation(relation, [*looks, look_at("rail0+rail1", report, ranks)]).report
    assert judged.verdict is verdict
    assert judged.quantities[0].name == "balance_sharing"
    assert says in judged.quantities[threshold is not None].reason
    found = "several rails help from 128KiB on"
    assert together is not TOGETHER or verdict is UNJUDGED or found in texts_of(judged.findings)


def test_acknowledgements_are_not_counted_as_messages_and_both_ways_both_nodes_count() -> None:
    what = sharing(None)
    look = look_at("rail0+rail1", bandwidths(TOGETHER), RANKS)
    looks = {"rail0+rail1": look}
    assert shares_of(what, looks) == {"rail0": 0.505, "rail1": 0.495}
    ranks = tuple(sent(rank, {"rail0": 5 * 10**6, "rail1": 3 * 10**6}, part=2) for rank in (0, 1))
    looks = {"rail0+rail1": look_at("rail0+rail1", bandwidths(TOGETHER), ranks)}
    assert shares_of(what, looks) == {"rail0": 0.625, "rail1": 0.375}
    assert balance_of(what, looks) == pytest.approx(0.8)
