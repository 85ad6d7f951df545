"""Judgements across legs without MPI: shares, the best setting, frames, paths that nobody told."""

from __future__ import annotations

from pathlib import Path

import pytest

from fabricproof.core.findings import texts_of
from fabricproof.core.measure import Verdict
from fabricproof.job.leg import Leg, Traffic
from fabricproof.job.outcome import Outcome, judge_leg
from fabricproof.job.relation import Frames, Ratio, RatioSide, Relation
from fabricproof.job.relations.judge import judge_relation
from fabricproof.verdict.value import Judgement, Reference, around, at_least
from leg_folders import GIGABIT, leave, make_leg, rank_text, speeds

REPORT = (Path(__file__).parents[1] / "data/iperf3/one-stream-report.txt").read_text()


def report(mb_s: float, *, mss: int = 1448, path: int = 1500) -> str:
    """Return a report of ``iperf3 --json`` with what the judge reads of it."""
    moved = int(mb_s * 1e6 * 2)
    streams = f'[{{"streams": [{{"pmtu": {path}}}]}}]'
    side = f'{{"bytes": {moved}, "seconds": 2.0, "bits_per_second": {mb_s * 8e6}}}'
    return (
        '{"start": {"version": "iperf 3.12", "tcp_mss_default": '
        f'{mss}, "test_start": {{"protocol": "TCP", "num_streams": 1}}}}, '
        f'"intervals": {streams}, "end": {{"sum_sent": {side}, "sum_received": {side}}}}}\n'
    )


def iperf_leg(name: str = "rail0", **changes: object) -> Leg:
    return make_leg(
        name=name, suite="iperf3", program="iperf3",
        commands=(("bash", "peer.sh", "8", "rail0", "iperf3", "-t", "2"),), expected_sizes=(),
        traffic=Traffic(), required=("bandwidth",), fabric=GIGABIT, **changes,
    )  # fmt: skip


def measured(folder: Path, leg: Leg, mb_s: float, **facts: int) -> Outcome:
    moved = int(mb_s * 1e6 * 2)
    ranks = (rank_text(0, sent=moved, received=0), rank_text(1, sent=0, received=moved))
    leave(folder, leg, report(mb_s, **facts), ranks=ranks)
    return judge_leg(folder, leg)


def share(reference: Reference, sizes: tuple[int | None, ...] = (None,)) -> Relation:
    over, under = (
        RatioSide(legs=(leg,), quantity="bandwidth", sizes=sizes) for leg in ("rail0_a", "rail0_b")
    )
    return Relation(
        name="rail0.mpi_share",
        what=Ratio(
            over=over,
            under=under,
            reference=reference,
            hint="look at the MPI",
            names={"rail0_a": "a", "rail0_b": "b"},
        ),
        legs=("rail0_a", "rail0_b"),
        suite="osu",
        program="osu_bw",
    )


AT_LEAST = at_least(1.0, unit="x", tolerance=0.15, origin="document 001")


def one(outcome: Outcome) -> Judgement:
    (judgement,) = speeds(outcome.report)
    return judgement


def test_iperf3_as_a_leg_is_proven_by_its_own_bytes_and_judged_by_physics(tmp_path: Path) -> None:
    outcome = measured(tmp_path, iperf_leg(), 117.0)
    assert outcome.report.verdict is Verdict.PASS
    assert one(outcome).name == "bandwidth"
    assert outcome.report.net_path is not None
    assert outcome.report.net_path.state == "proven"


def test_iperf3_over_another_interface_is_invalid(tmp_path: Path) -> None:
    leg = iperf_leg()
    ranks = (
        rank_text(0, sent=234_000_000, received=0, interface="mgmt0"),
        rank_text(1, sent=0, received=234_000_000, interface="mgmt0"),
    )
    leave(tmp_path, leg, report(117.0), ranks=ranks)
    judgement = one(judge_leg(tmp_path, leg))
    assert judgement.verdict is Verdict.INVALID
    assert "mgmt0 sent" in judgement.reason


def test_a_share_passes_fails_with_its_hint_and_shows_both_numbers(tmp_path: Path) -> None:
    under = measured(tmp_path, iperf_leg("rail0_b"), 117.0)
    for number, (mb_s, verdict) in enumerate(((115.0, Verdict.PASS), (80.0, Verdict.FAIL))):
        over = measured(tmp_path / str(number), iperf_leg("rail0_a"), mb_s)
        result = judge_relation(share(AT_LEAST), [over, under])
        assert one(result).verdict is verdict
        assert one(result).value == pytest.approx(mb_s / 117.0)
    assert texts_of(result.report.findings) == ["best first: b 117 MB/s, a 80 MB/s"]
    assert "look at the MPI" in one(result).reason


def test_a_share_of_a_leg_that_is_missing_is_missing(tmp_path: Path) -> None:
    over = measured(tmp_path, iperf_leg("rail0_a"), 115.0)
    under = judge_leg(tmp_path, iperf_leg("rail0_b"))
    assert one(judge_relation(share(AT_LEAST), [over, under])).verdict is Verdict.MISSING


def test_a_gain_above_what_is_declared_fails_too(tmp_path: Path) -> None:
    """Source document 001: one flow 9.5 of 25 Gb/s, and nobody had said so."""
    over = measured(tmp_path, iperf_leg("rail0_a"), 117.0)
    under = measured(tmp_path, iperf_leg("rail0_b"), 44.0)
    reference = around(1.0, unit="x", tolerance=0.2, origin="no limit per flow")
    judgement = one(judge_relation(share(reference), [over, under]))
    assert judgement.verdict is Verdict.FAIL
    assert "above the upper bound" in judgement.reason


def frames(mtu: int = 1500) -> Relation:
    return Relation(
        name="rail0.frames", what=Frames(mtu_bytes=mtu), legs=("rail0",), suite="iperf3",
        program="iperf3", rails=("rail0",),
    )  # fmt: skip


@pytest.mark.parametrize(
    ("mss", "path", "verdict"),
    [
        (1448, 1500, Verdict.PASS),
        (1460, 1500, Verdict.PASS),  # without time stamps
        (1348, 1500, Verdict.FAIL),
        (1448, 1400, Verdict.FAIL),
    ],
)
def test_frames_are_of_the_declared_size(
    tmp_path: Path, mss: int, path: int, verdict: Verdict
) -> None:
    outcome = measured(tmp_path, iperf_leg(), 117.0, mss=mss, path=path)
    judgement = one(judge_relation(frames(), [outcome]))
    passes = verdict is Verdict.PASS
    assert (judgement.verdict, judgement.unit) == (verdict, "B")
    assert judgement.value == (1500.0 if passes else 1400.0)
    said = "TCP sent frames of 1400 B over rail0, fabric.toml declares 1500"
    assert passes or said in judgement.reason


def test_the_node_with_another_mtu_is_named(tmp_path: Path) -> None:
    leg = iperf_leg()
    ranks = (
        rank_text(0, sent=234_000_000, received=0),
        rank_text(1, sent=0, received=234_000_000).replace(
            "fact rail0 mtu=1500", "fact rail0 mtu=9000"
        ),
    )
    leave(tmp_path, leg, report(117.0), ranks=ranks)
    judgement = one(judge_relation(frames(), [judge_leg(tmp_path, leg)]))
    assert judgement.verdict is Verdict.FAIL
    assert judgement.reason == "rail0 has MTU 9000 on n2; fabric.toml declares 1500"


def test_a_switch_that_drops_large_frames_is_a_failure_though_nothing_was_measured(
    tmp_path: Path,
) -> None:
    leg = iperf_leg()
    pings = "fact path frame=1500 large=0 small=2\n"
    ranks = (
        rank_text(0, sent=0, received=0, status=3).replace("before", pings + "before", 1),
        rank_text(1, sent=0, received=0),
    )
    leave(tmp_path, leg, "", ranks=ranks, status="3\n")
    outcome = judge_leg(tmp_path, leg)
    assert outcome.report.verdict is Verdict.MISSING
    judgement = one(judge_relation(frames(), [outcome]))
    assert judgement.verdict is Verdict.FAIL
    assert "frames of 1500 B do not pass between n1 and n2 over rail0" in judgement.reason


@pytest.mark.parametrize("pings", ["large=0 small=0", "large=2 small=2", "large= small=2"])
def test_pings_that_prove_nothing_leave_the_frames_missing(tmp_path: Path, pings: str) -> None:
    leg = iperf_leg()
    line = f"fact path frame=1500 {pings}\n"
    ranks = (rank_text(0, sent=0, received=0, status=3).replace("before", line + "before", 1),)
    leave(tmp_path, leg, "", ranks=ranks, status="3\n")
    judgement = one(judge_relation(frames(), [judge_leg(tmp_path, leg)]))
    assert judgement.verdict is Verdict.MISSING


def untold(folder: Path, *moved: tuple[str, int]) -> Judgement:
    """Judge osu_put_bw that was told no path and moved these bytes from the first node."""
    leg = make_leg(name="untold", rails=("rail0", "rail1"), free_path="IF=rail0")
    text = rank_text(0, sent=0, received=0)
    for name, count in moved:
        text = text.replace(
            f"after {name} tx_bytes=11000", f"after {name} tx_bytes={1000 + count}"
        ).replace(f"after {name} tx_bytes=1000 ", f"after {name} tx_bytes={1000 + count} ")
    leave(folder, leg, ranks=(text, rank_text(1, sent=0, received=0)))
    return one(judge_leg(folder, leg))


DUE = make_leg().traffic.exact[0]  # type: ignore[index]


THIRD = DUE // 3


@pytest.mark.parametrize(
    ("moved", "verdict", "words"),
    [
        ([("rail0", DUE // 2), ("rail1", DUE // 2 + 2_000_000)], Verdict.PASS, ()),
        ([("rail0", DUE), ("mgmt0", 1_000_000)], Verdict.PASS, ()),  # chatter
        (
            [("mgmt0", DUE)],
            Verdict.FAIL,
            (f"mgmt0 {DUE / 1e6:.1f} MB", "users should set IF=rail0"),
        ),
        ([("rail0", THIRD), ("rail1", THIRD), ("mgmt0", THIRD)], Verdict.FAIL, ()),
        ([], Verdict.UNJUDGED, ()),
        ([("rail0", DUE), ("mgmt0", DUE)], Verdict.UNJUDGED, ("two paths fit",)),
        # the rail shows all of it, perhaps a stranger's, and a fifth more left by another card
        ([("rail0", DUE), ("mgmt0", DUE // 5)], Verdict.UNJUDGED, ("two paths fit",)),
    ],
)
def test_an_mpi_that_was_told_no_path_must_find_the_declared_one(
    tmp_path: Path, moved: list[tuple[str, int]], verdict: Verdict, words: tuple[str, ...]
) -> None:
    judgement = untold(tmp_path, *moved)
    assert judgement.verdict is verdict, judgement.reason
    assert all(each in judgement.reason for each in words)
    if len(moved) == 3:
        assert judgement.value == pytest.approx(2 / 3, rel=0.01)
