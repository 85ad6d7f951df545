"""What others did to a leg: their traffic and their processes, and what that excuses."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fabricproof.core.findings import texts_of
from fabricproof.core.measure import Verdict
from fabricproof.job.evidence.disturbance import (
    disturbances_of,
    starved_cores,
)
from fabricproof.job.evidence.leg_folder import parse_rank
from fabricproof.job.outcome import judge_leg
from fabricproof.job.relation import Ratio, RatioSide, Relation
from fabricproof.job.relations.judge import judge_relation
from fabricproof.traffic.disturbance import Disturbance, DisturbanceKind, Disturbances, share_taken
from fabricproof.verdict.value import Judgement, Report, at_least
from leg_folders import PUT_BW, PUT_BW_SENT, leave, make_leg, rank_text, slower

#: 6.4 GB at 118 MB/s take as long
LEG_SECONDS = 60


def _cores(when, clock, busy, idle, own, *, steal=0, waited=None, gaps=""):
    pressure = "" if waited is None else f" waited_us={round(waited * 1e6)}"
    pressure += gaps
    return (
        f"{when} node/cores busy_ticks={round(busy * 100)} idle_ticks={round(idle * 100)} "
        f"steal_ticks={round(steal * 100)} own_ticks={round(own * 100)}{pressure} "
        f"clock_us={round(clock * 1e6)}\n"
    )


def _rank(rank, *, machine="m", cpus="0-1", busy=40.0, idle=80.0, own=20.0, foreign=0, **more):
    """Return a rank's file: of a leg of :data:`LEG_SECONDS`, two ranks on two CPUs, quiet."""
    forth, back = ((PUT_BW_SENT, 0), (0, PUT_BW_SENT))[rank]
    text = rank_text(rank, sent=forth, received=back).replace("cpus 0-3", f"cpus {cpus}")
    if foreign:
        seen = 1000 + int(back * 1.05) + 10_000
        text = text.replace(f"rx_bytes={seen}", f"rx_bytes={seen + foreign}")
    text += f"machine {machine}\n" + _cores("before", 1000, 10, 10, 0, waited=0)
    return text + _cores("after", 1000 + LEG_SECONDS, 10 + busy, 10 + idle, own, **more)


def _judged(folder, ranks, *, factor=1.0, attempts=1, **leg):
    made = make_leg(**leg)
    for attempt in range(1, attempts + 1):
        leave(folder, made, slower(PUT_BW, factor), ranks=ranks, attempt=attempt)
    return judge_leg(folder, made)


def _plateau(report):
    return next(each for each in report.quantities if each.name == "bandwidth_4MiB")


#: a gigabit is 125 MB/s: half of it is somebody else's
HALF, LITTLE = (int(rate * LEG_SECONDS) for rate in (62.5e6, 10e6))
QUIET = (_rank(0), _rank(1))
BESIDE = (_rank(0), _rank(1, foreign=HALF))
CAME_IN = (QUIET[0].replace("rx_bytes=11000 ", f"rx_bytes={11_000 + int(4e9)} "), QUIET[1])
#: two CPUs for a minute: the job's 2 x 20 s, 80 s of others, and nothing idle
STARVED = tuple(_rank(each, busy=120, idle=0, waited=60.0) for each in (0, 1))
GUEST = tuple(
    _rank(rank, busy=60, idle=0, own=60, cpus="0", machine=f"m{rank}",
          gaps=" lost_us=24000 paced_us=80000")
    for rank in (0, 1)
)  # fmt: skip
NO_CLOCK = (
    rank_text(0, sent=PUT_BW_SENT, received=0),
    rank_text(1, sent=0, received=PUT_BW_SENT + 4_000_000_000),
)
FOREIGN = "disturbed: rail0 of n2 received 62.50 MB/s that nobody of "
CROWD = "others ran 80.00 s on CPU 0-1 of n1, n2 in 60.00 s"


@pytest.mark.parametrize(
    ("ranks", "factor", "attempts", "verdict", "kind", "said"),
    [
        (QUIET, 1.5, 1, Verdict.FAIL, None, "ruled out: "),
        (QUIET, 1.5, 1, Verdict.FAIL, None, "0.00 MB/s that nobody of this job"),
        (QUIET, 1.5, 1, Verdict.FAIL, None, "waited up to 0% of the time"),
        *((BESIDE, 1.5, n, Verdict.UNJUDGED, "foreign_traffic", FOREIGN) for n in (1, 2)),
        ((QUIET[0], _rank(1, foreign=LITTLE)), 2.5, 1, Verdict.FAIL, None, "too little"),
        (BESIDE, 1.0, 1, Verdict.PASS, None, "disturbed: rail0 of n2"),
        (CAME_IN, 1.5, 1, Verdict.FAIL, None, ""),  # does not excuse what goes out
        (STARVED, 1.5, 1, Verdict.UNJUDGED, "starved_cores", CROWD),
        (GUEST, 1.5, 1, Verdict.UNJUDGED, "starved_cores", ""),
        (NO_CLOCK, 1.5, 1, Verdict.FAIL, None, "not known: other traffic, waits for a core"),
    ],
)
def test_a_leg_beside_others(tmp_path, ranks, factor, attempts, verdict, kind, said):
    assert CAME_IN != QUIET
    report = _judged(tmp_path, ranks, factor=factor, attempts=attempts).report
    last = _plateau(report)
    assert (report.verdict, last.verdict, last.disturbance) == (verdict, verdict, kind)
    told = [last.reason] if kind else texts_of(report.findings)
    assert any(said in each for each in told), told


def test_bytes_that_were_lost_and_sent_again_are_no_stranger_s(tmp_path):
    ranks = [_rank(0), _rank(1)]
    # Of what rank 0 sent a third never arrived.
    sent = 1000 + int(PUT_BW_SENT * 1.05) + 10_000
    ranks[0] = ranks[0].replace(f"tx_bytes={sent}", f"tx_bytes={int(sent * 1.5)}")
    excess = sent // 2
    again = excess // 1500
    kept = [each for each in ranks[0].splitlines(keepends=True) if " node/tcp " not in each]
    tcp = f"OutSegs={again * 200} RetransSegs={again}"
    lossy = "".join(kept) + f"before node/tcp OutSegs=0 RetransSegs=0\nafter node/tcp {tcp}\n"
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    stranger = _judged(tmp_path / "a", tuple(ranks), factor=1.5).report
    assert _plateau(stranger).disturbance == "foreign_traffic"
    assert _judged(tmp_path / "b", (lossy, ranks[1]), factor=1.5).report.verdict is Verdict.FAIL


@pytest.mark.parametrize(
    ("said", "ranks"),
    [
        (
            "the job's own ranks crowd each other",
            {"busy": 120, "idle": 0, "own": 60, "waited": 60.0},
        ),
        ("a CPU was idle all the time", {"busy": 100, "idle": 60, "own": 20, "waited": 60.0}),
        ("nobody waited", {"busy": 120, "idle": 0, "own": 20, "waited": 0.0}),
    ],
)
def test_who_did_not_wait_for_others_was_not_starved(tmp_path, said, ranks):
    found = starved_cores([parse_rank(_rank(each, **ranks), said) for each in (0, 1)])
    assert [each.share for each in found] == [0.0], said
    report = _judged(tmp_path, tuple(_rank(each, **ranks) for each in (0, 1)), factor=1.5).report
    assert report.verdict is Verdict.FAIL


BUSY = {"busy": 60, "idle": 0, "own": 60}
GAPS = " lost_us={} paced_us=80000"


@pytest.mark.parametrize(
    ("ranks", "shares", "said"),
    [
        # a rank alone on its core waits as long as others ran there
        (
            [
                _rank(0, machine="a", cpus="3", **{**BUSY, "own": 45}),
                _rank(1, machine="b", cpus="3", **BUSY),
            ],
            [0.25, 0.0],
            "",
        ),
        ([_rank(0, cpus="3", busy=40, idle=0, own=40, steal=20)], [1 / 3],
            "20.00 s of it stolen by the hypervisor"),
        ([_rank(0, cpus="0", gaps=GAPS.format(36000), **BUSY)], [0.45],
            "the hypervisor took the CPU for 45% of the time in a loop"),
        # the timer's gaps explain nothing
        ([_rank(0, cpus="0", gaps=GAPS.format(2000), **BUSY)], [0.0], ""),
        # ranks whose CPUs overlap do not starve each other
        (
            [
                _rank(0, cpus="0-1", busy=120, idle=0, own=60, waited=60.0),
                _rank(1, cpus="0", waited=60.0, **BUSY),
            ],
            [0.0, 0.0],
            "",
        ),
    ],
)  # fmt: skip
def test_the_share_of_a_core_that_others_took(ranks, shares, said):
    found = starved_cores([parse_rank(each, "x") for each in ranks])
    assert sorted(each.share for each in found) == pytest.approx(sorted(shares), abs=0.01)
    assert [each.node for each in found if each.share] in ([], ["n1"])
    assert said in found[0].reason
    assert said or "hypervisor" not in found[0].reason


# --- the excuse itself


def _number(value, *, lower=None, upper=None, unit="MB/s", verdict=Verdict.FAIL):
    return Judgement(
        name="x", value=value, unit=unit, message_size=8, verdict=verdict, reason="why",
        lower=lower, upper=upper,
    )  # fmt: skip


def _report(*judgements):
    return Report(verdict=judgements[0].verdict, quantities=judgements)


def _near(kind, share, **more):
    return Disturbances(found=(Disturbance(kind=kind, share=share, reason="who", **more),))


def excused(report, near):
    objections, notes = disturbances_of(report, near)
    return report.objected(objections, *notes)


@given(
    value=st.floats(0.01, 1e6),
    lower=st.floats(0.01, 1e6),
    share=st.floats(0, 1),
    kind=st.sampled_from(DisturbanceKind),
)
def test_an_excuse_makes_nothing_green_and_needs_a_share_that_explains(value, lower, share, kind):
    verdict = Verdict.FAIL if value < lower else Verdict.PASS
    before = _report(_number(value, lower=lower, verdict=verdict))
    after = excused(before, _near(kind, share)).quantities[0]
    if verdict is Verdict.PASS:
        assert after.verdict is Verdict.PASS
    elif after.verdict is Verdict.UNJUDGED:
        # It would have been good enough: what was taken, twice over, is what is missing.
        assert share >= 0.02
        assert value >= lower * (1 - min(0.95, 2 * share)) * (1 - 1e-9)
    else:
        assert after.verdict is Verdict.FAIL


OTHER = _near(DisturbanceKind.OTHER_JOB, None)
BURST = _near(DisturbanceKind.FOREIGN_TRAFFIC, 0.3, burst_us=2600.0)


@pytest.mark.parametrize(
    ("number", "near", "verdict"),
    [
        (_number(9.0, lower=10.0, verdict=Verdict.INVALID), OTHER, Verdict.INVALID),
        # nobody knows what the other job took
        (_number(1.0, lower=10.0), OTHER, Verdict.UNJUDGED),
        # within its bounds it is red for another reason, such as errors
        (_number(11.0, lower=10.0), OTHER, Verdict.FAIL),
        # a message waits for a burst of others on the wire
        (_number(900.0, upper=100.0, unit="us"), BURST, Verdict.UNJUDGED),
        (_number(9000.0, upper=100.0, unit="us"), BURST, Verdict.FAIL),
    ],
)
def test_what_a_disturbance_excuses(number, near, verdict):
    (after,) = excused(_report(number), near).quantities
    assert after.verdict is verdict
    assert (after.disturbance is not None) is (verdict is Verdict.UNJUDGED)


@pytest.mark.parametrize(
    ("seconds", "sent_bytes", "verdict"),
    [
        (0.0, 0, Verdict.UNJUDGED),  # unknown: up to twice the mean
        (10.0, 4 * 10**8, Verdict.UNJUDGED),  # the red size took 4.5 s of 10
        (10.0, 8 * 10**8, Verdict.FAIL),  # 9 s: what was taken, all of it there, is 6.7 % of it
    ],
)
def test_what_was_taken_is_held_against_the_time_of_what_is_red(seconds, sent_bytes, verdict):
    found = (Disturbance(kind=DisturbanceKind.STARVED_CORES, share=0.06, reason="who"),)
    others = Disturbances(found=found, seconds=seconds, sent_bytes=sent_bytes)
    assert excused(_report(_number(89.0, lower=98.0)), others).verdict is verdict


def test_the_two_worst_ends_and_the_wire_add_up():
    found = [
        *(
            Disturbance(kind=DisturbanceKind.STARVED_CORES, share=share, reason="")
            for share in (0.1, 0.2, 0.3, 0.01)
        ),
        Disturbance(kind=DisturbanceKind.FOREIGN_TRAFFIC, share=0.25, reason=""),
        Disturbance(kind=DisturbanceKind.FOREIGN_TRAFFIC, share=0.15, reason=""),
    ]
    assert share_taken(found) == pytest.approx(0.75)


def test_a_relation_is_disturbed_where_one_of_its_legs_was(tmp_path):
    foreign = int(62.5e6 * LEG_SECONDS)
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    quiet = _judged(tmp_path / "a", (_rank(0), _rank(1)))
    slow = _judged(tmp_path / "b", (_rank(0), _rank(1, foreign=foreign)), factor=1.5)
    twin = replace(slow, leg=replace(slow.leg, name="twin"))
    over, under = (
        RatioSide(legs=(leg,), quantity="bandwidth", sizes=(4 * 1024 * 1024,))
        for leg in ("twin", "rail0")
    )
    even = at_least(1.0, unit="x", tolerance=0.1, origin="even")
    what = Ratio(over=over, under=under, reference=even)
    relation = Relation(name="even", what=what, legs=("rail0", "twin"), suite="", program="")
    report = judge_relation(relation, [quiet, twin]).report
    assert report.quantities[0].disturbance == "foreign_traffic"
    relation = replace(relation, what=replace(what, over=under))
    assert judge_relation(relation, [quiet, twin]).report.verdict is Verdict.PASS
