"""Errors as a quantity: what is counted, what may be lost, what no second look washes."""

from __future__ import annotations

import random
import re
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fabricproof.core.measure import Verdict
from fabricproof.job.evidence.error_rates import (
    limit_of,
    most_rate,
    red_from,
    visible_rate,
)
from fabricproof.job.leg import Leg
from fabricproof.job.outcome import Outcome, judge_leg, needs_second_look
from fabricproof.job.recording import describe_outcome
from fabricproof.physics import Fabric, find_link
from fabricproof.traffic.counters import TCP, CounterSample
from fabricproof.traffic.error_rates import Direction, ErrorKind, ErrorRate, added, error_rates
from fabricproof.traffic.expectation import Evidence, Rank
from fabricproof.verdict.value import Judgement, is_of_errors
from leg_folders import leave, make_leg, rank_text

LEG = make_leg()
LOST = "retransmitted_per_million_packets"

#: segments that make leg_folders' tables: 6.4 GB in frames of 1448 bytes
SEGMENTS = 4_449_000


def node_tcp(
    rank: int, *, segments: int, again: int, in_vain: int = 0, gaps: int = 0, blocks: int = 0
) -> str:
    """Return a rank's file whose node sent so many segments again, so many of them in vain."""
    sent = 6_442_450_176 if rank == 0 else 0
    text = rank_text(rank, sent=sent, received=6_442_450_176 - sent)
    kept = "".join(line + "\n" for line in text.splitlines() if "node/tcp" not in line)
    names = ("OutSegs", "RetransSegs", "TCPDSACKRecvSegs", "TCPOFOQueue", "TCPSynRetrans")
    rises = dict(zip(names, (segments, again, in_vain, gaps, 0), strict=True))
    rises["TCPDSACKRecv"] = blocks
    before = " ".join(f"{name}=7" for name in rises)
    after = " ".join(f"{name}={7 + rise}" for name, rise in rises.items())
    return f"{kept}before node/tcp {before}\nafter node/tcp {after}\n"


def lossy(
    folder: Path, again: int, *, in_vain: int = 0, blocks: int = 0, attempt: int = 1, leg: Leg = LEG
) -> None:
    leave(
        folder,
        leg,
        attempt=attempt,
        ranks=(
            node_tcp(0, segments=SEGMENTS, again=again, in_vain=in_vain, blocks=blocks),
            node_tcp(1, segments=SEGMENTS // 3, again=0, gaps=again - in_vain),
        ),
    )


def judgement(outcome: Outcome, name: str = LOST) -> Judgement:
    (found,) = (each for each in outcome.report.quantities if each.name == name)
    return found


@pytest.mark.parametrize("share", [3e-3, 3e-4, 3e-5])
def test_loss_at_full_bandwidth_is_red_with_rail_direction_and_both_ends(
    tmp_path: Path, share: float
) -> None:
    lossy(tmp_path, round(share * SEGMENTS))
    outcome = judge_leg(tmp_path, LEG)
    assert outcome.report.verdict is Verdict.FAIL
    found = outcome.report.quantities[0]
    assert (found.name, found.verdict, found.named) == (LOST, Verdict.FAIL, True)
    assert found.value == pytest.approx(share * 1e6, rel=0.01)
    assert "rail0 from n1 to n2: " in found.reason
    assert "n2 saw" in found.reason
    assert "the port of n1, that of n2 or what is between them" in found.reason
    assert needs_second_look(outcome)
    others = {each.verdict for each in outcome.report.quantities if not is_of_errors(each)}
    assert others == {Verdict.PASS}


PASS, FAIL, INVALID, UNJUDGED, MISSING, *_ = Verdict
TURNS = make_leg(in_turn=True)
LOOSE, TIGHT = (
    replace(LEG, error_limits={LOST: limit}, error_limits_origin="a cloud") for limit in (1e3, 0.0)
)
FIRST_RED = red_from(SEGMENTS, 10.0)


@pytest.mark.parametrize(
    ("leg", "looks", "verdict", "rate", "words"),
    [
        # sent again in vain was not lost
        (LEG, [(900, 899, 0)], PASS, 0.225, ""),
        # the network made two of 5000 packets and lost as many; or all were sent again in vain
        (LEG, 2 * [(5000, 0, 5000)], UNJUDGED, None, "10000 of"),
        (LEG, 2 * [(5000, 0, 5000)], UNJUDGED, None, "do not tell how many of them had arrived"),
        (LEG, 2 * [(5000, 4990, 5000)], PASS, None, ""),
        (LEG, 2 * [(5000, 1000, 1200)], FAIL, None, ""),
        # a quiet second look does not wash a lossy link
        (LEG, [(1300, 0, 0), (0, 0, 0)], FAIL, 1300 / (2 * SEGMENTS) * 1e6, ""),
        # a leg that passed runs again for a relation that did not
        (LEG, [(0, 0, 0), (1300, 0, 0)], FAIL, None, ""),
        # a round that never ended does not wash a lossy one either
        (TURNS, [(0, 0, 0), (1300, 0, 0), None], FAIL, None, ""),
        # few losses are cleared by many packets without
        (LEG, [(FIRST_RED, 0, 0)], FAIL, None, ""),
        (LEG, [(FIRST_RED, 0, 0), (0, 0, 0)], PASS, None, ""),
        # a stated limit clears and condemns
        (LOOSE, [(1300, 0, 0)], PASS, None, ""),
        (TIGHT, [(1300, 0, 0)], FAIL, None, ""),
    ],
)
def test_a_leg_with_losses_is_judged(
    tmp_path: Path,
    leg: Leg,
    looks: list[tuple[int, int, int] | None],
    verdict: Verdict,
    rate: float | None,
    words: str,
) -> None:
    for attempt, look in enumerate(looks, 1):
        if look is None:
            leave(tmp_path, leg, attempt=attempt, status=None)
        else:
            again, in_vain, blocks = look
            lossy(tmp_path, again, in_vain=in_vain, blocks=blocks, attempt=attempt, leg=leg)
    outcome = judge_leg(tmp_path, leg)
    found = judgement(outcome)
    assert (outcome.report.verdict, found.verdict) == (verdict, verdict)
    assert found.named is (verdict is not PASS)
    assert rate is None or found.value == pytest.approx(rate, rel=0.01)
    assert words in found.reason
    assert not leg.error_limits or found.origin == "site (a cloud)"
    assert outcome.takes(found)
    assert rate is None or outcome.counts(outcome.attempts[-1])


def test_without_the_count_of_what_came_twice_no_red_and_no_green(tmp_path: Path) -> None:
    ranks = tuple(
        re.sub(r" TCPDSACK\w+=7", "", node_tcp(rank, segments=SEGMENTS, again=1000))
        for rank in (0, 1)
    )
    leave(tmp_path, LEG, ranks=ranks)
    found = judgement(judge_leg(tmp_path, LEG))
    assert found.verdict is Verdict.UNJUDGED
    assert "nobody counted which of them had arrived" in found.reason


def test_a_node_whose_tcp_nobody_read_leaves_no_green(tmp_path: Path) -> None:
    whole = node_tcp(0, segments=SEGMENTS, again=0)
    blind = node_tcp(1, segments=SEGMENTS, again=0)
    blind = "".join(line + "\n" for line in blind.splitlines() if "node/tcp" not in line)
    leave(tmp_path, LEG, ranks=(whole, blind))
    outcome = judge_leg(tmp_path, LEG)
    assert outcome.report.verdict is Verdict.UNJUDGED
    found = judgement(outcome, "lost_per_million_packets")
    assert found.reason == "nobody counted what n2 lost on rail0"


def test_a_counter_that_went_back_leaves_no_green(tmp_path: Path) -> None:
    """Reset while it ran, it may have counted any number of losses before."""
    reset = node_tcp(0, segments=SEGMENTS, again=0)
    reset = reset.replace(
        "after node/tcp OutSegs=4449007 RetransSegs=7",
        "after node/tcp OutSegs=4449007 RetransSegs=3",
    )
    assert "RetransSegs=3" in reset
    other = node_tcp(1, segments=SEGMENTS // 3, again=0)
    leave(tmp_path, LEG, ranks=(reset, other))
    outcome = judge_leg(tmp_path, LEG)
    assert outcome.report.verdict is Verdict.UNJUDGED
    assert "RetransSegs of n1 went back" in judgement(outcome).reason
    assert needs_second_look(outcome)
    lossy(tmp_path, 0, attempt=2)
    assert judge_leg(tmp_path, LEG).report.verdict is Verdict.PASS


def test_records_hold_every_direction_with_its_rates(tmp_path: Path) -> None:
    lossy(tmp_path, 1300)
    records = list(describe_outcome(judge_leg(tmp_path, LEG), {}))
    (leg,) = (each for each in records if each["kind"] == "leg")
    lost = [each for each in leg["errors"] if each["kind"] == "retransmitted"]
    assert {(each["node"], each["direction"], each["events"]) for each in lost} == {
        ("n1", "out", 1300),
        ("n2", "out", 0),
    }
    first = next(each for each in lost if each["node"] == "n1")
    assert first["peer"] == "n2"
    assert first["per_million_packets"] == pytest.approx(292, rel=0.01)
    assert first["per_gigabyte"] == pytest.approx(1300 / 6.76, rel=0.01)
    judged = next(each for each in records if each.get("quantity_name") == LOST)
    assert judged["quantity_reference"] == 10.0
    assert judged["quantity_unit"] == "ppm"


# The order of packets, and those that came twice.


def out_of_order(again: int, gaps: int, blocks: int, segments: int = SEGMENTS) -> tuple[str, ...]:
    return (
        node_tcp(0, segments=segments, again=again, in_vain=0, blocks=blocks),
        node_tcp(1, segments=segments // 3, again=0, gaps=gaps),
    )


@pytest.mark.parametrize(
    ("again", "gaps", "blocks", "red"),
    [
        (0, 0, 0, ""),
        # in another order, twice: nothing was lost, and the bandwidth is full
        (0, SEGMENTS // 10, 0, "reordered"),
        (0, 0, SEGMENTS // 20, "duplicated"),
        (0, SEGMENTS // 2000, 0, ""),
        # what was lost makes gaps by itself
        (3, SEGMENTS // 10, 0, ""),
    ],
)
def test_order_and_duplicates_are_rates_with_bounds(
    tmp_path: Path, again: int, gaps: int, blocks: int, red: str
) -> None:
    leave(tmp_path, LEG, ranks=out_of_order(again, gaps, blocks))
    outcome = judge_leg(tmp_path, LEG)
    bad = {each.name for each in outcome.report.quantities if each.verdict is not PASS}
    assert bad == ({f"{red}_per_million_packets"} if red else set())
    assert outcome.report.verdict is (FAIL if red else PASS)


def test_a_site_states_what_order_its_fabric_keeps(tmp_path: Path) -> None:
    limits = {"reordered_per_million_packets": 50_000.0}
    leg = replace(LEG, error_limits=limits, error_limits_origin="adaptive routing")
    leave(tmp_path, leg, ranks=out_of_order(0, SEGMENTS // 10, 0))
    assert judge_leg(tmp_path, leg).report.verdict is PASS


@pytest.mark.parametrize(
    ("counter", "kind"),
    [
        ("out_of_sequence", ErrorKind.GAP),
        ("out_of_seq_request", ErrorKind.GAP),
        ("duplicate_request", ErrorKind.DUPLICATED),
    ],
)
def test_verbs_count_both_by_themselves(counter: str, kind: ErrorKind) -> None:
    seen = evidence(port("n1", "p:1", **{counter: 7}), port("n2", "p:1"))
    rate = of(error_rates(seen, ["p:1"]), kind, "n1")
    assert (rate.events, rate.direction) == (7, Direction.IN)
    assert limit_of(leg_over("p:1", "HDR"), kind).per_million_packets == 1000.0  # type: ignore[union-attr]


# What may be lost.


def leg_over(rail: str, link: str, **changes: object) -> Leg:
    return make_leg(rails=(rail,), fabric=Fabric(link=find_link(link)), **changes)


@pytest.mark.parametrize(
    ("leg", "kind", "limit", "origin"),
    [
        (LEG, ErrorKind.RETRANSMITTED, 10.0, "TCP between two nodes"),
        (replace(LEG, num_nodes=4), ErrorKind.RETRANSMITTED, 1000.0, "TCP among many nodes"),
        (LEG, ErrorKind.DAMAGED, 0.0, "a wire damages nothing"),
        (leg_over("mlx5_0:1", "HDR"), ErrorKind.RETRANSMITTED, 0.0, "lossless fabric"),
        (leg_over("mlx5_0:1", "100GbE"), ErrorKind.DROPPED, 0.0, "lossless fabric"),
        (leg_over("rxe0:1", "Soft-RoCE 100 Mb/s"), ErrorKind.RETRANSMITTED, 1000.0,
            "Soft-RoCE"),
        (replace(LEG, error_limits={LOST: 250.0}, error_limits_origin="a policer"),
            ErrorKind.RETRANSMITTED, 250.0, "site (a policer)"),
    ],
)  # fmt: skip
def test_what_a_fabric_may_lose(leg: Leg, kind: ErrorKind, limit: float, origin: str) -> None:
    found = limit_of(leg, kind)
    assert found is not None
    assert (found.per_million_packets, found.origin) == (limit, origin)


def test_what_tcp_drops_is_told_by_what_it_sends_again() -> None:
    assert limit_of(LEG, ErrorKind.DROPPED) is None


# The bound.


def test_one_event_on_a_lossless_fabric_is_too_many() -> None:
    assert red_from(10**9, 0.0) == 1


@pytest.mark.parametrize(("events", "mean"), [(0, 2.9957), (1, 4.7439), (10, 16.962)])
def test_the_largest_credible_rate_is_garwoods(events: int, mean: float) -> None:
    """Half of the chi square quantile of 0.95 with twice as many degrees as events and one."""
    assert most_rate(events, 10**6) == pytest.approx(mean, rel=1e-3)


def test_the_two_ways_to_compute_it_agree() -> None:
    assert most_rate(300, 10**6) == pytest.approx(most_rate(298, 10**6) + 2.1, abs=0.1)


@settings(deadline=None)
@given(st.integers(1, 10**7), st.floats(0.0, 2000.0))
def test_more_packets_show_smaller_rates_and_allow_more_events(packets: int, limit: float) -> None:
    assert red_from(2 * packets, limit) >= red_from(packets, limit)
    assert visible_rate(packets, limit) > limit


def test_a_link_that_loses_what_it_may_is_red_once_in_a_thousand_legs() -> None:
    """45,000 packets, as a quick leg sends: five or more of 10 per million, by binomial draws."""
    dice = random.Random(1936)
    critical = red_from(45_000, 10.0)
    assert critical == 5
    legs = 20_000
    red = 0
    for _ in range(legs):
        at, events = 0.0, -1
        while at < 0.45:
            at += dice.expovariate(1.0)
            events += 1
        red += events >= critical
    assert red / legs < 0.0015


# What is counted.


def evidence(*samples: CounterSample) -> Evidence:
    nodes = sorted({each.node for each in samples})
    ranks = tuple(Rank(rank=rank, node=node) for rank, node in enumerate(nodes))
    return Evidence(ranks=ranks, samples=samples)


def port(node: str, interface: str, **moved: int) -> CounterSample:
    full = {
        "tx_packets": 10_000, "rx_packets": 5_000, "tx_bytes": 10**7, "rx_bytes": 10**6, **moved,
    }  # fmt: skip
    return CounterSample(node=node, interface=interface, before=dict.fromkeys(full, 0), after=full)


def of(rates: tuple[ErrorRate, ...], kind: ErrorKind, node: str) -> ErrorRate:
    (found,) = (each for each in rates if (each.kind, each.node) == (kind, node))
    return found


def test_the_largest_of_several_witnesses_counts_and_not_their_sum() -> None:
    seen = evidence(
        port("n1", "mlx5_0:1", packet_seq_err=4, local_ack_timeout_err=1),
        port("n2", "mlx5_0:1", out_of_sequence=5, symbol_error=2),
    )
    rates = error_rates(seen, ["mlx5_0:1"])
    lost = of(rates, ErrorKind.RETRANSMITTED, "n1")
    assert (lost.events, lost.packets, lost.direction) == (4, 10_000, Direction.OUT)
    assert lost.way == "mlx5_0:1 from n1 to n2"
    assert of(rates, ErrorKind.GAP, "n2").way == "mlx5_0:1 from n1 to n2"
    damaged = of(rates, ErrorKind.DAMAGED, "n2")
    assert (damaged.events, damaged.packets) == (2, 5_000)


def test_tcp_counts_segments_of_the_rails_alone() -> None:
    """What stayed on the node or went by another interface was not the rail's to lose."""
    tcp = port("n1", TCP, OutSegs=12_000, RetransSegs=20, TCPDSACKRecvSegs=5, TCPSynRetrans=3)
    seen = evidence(
        tcp, port("n1", "rail0"), port("n1", "lo", tx_packets=1_000),
        port("n1", "mgmt0", tx_packets=500), port("n2", "rail0"), port("n3", "rail0"),
    )  # fmt: skip
    lost = of(error_rates(seen, ["rail0"]), ErrorKind.RETRANSMITTED, "n1")
    assert (lost.events, lost.packets, lost.beside) == (12, 10_520, 500)
    assert lost.way == "rail0 from n1 to the others"


@pytest.mark.parametrize(
    ("counters", "lost", "unsure"),
    [
        ({"TCPDSACKRecvSegs": 2, "TCPDSACKRecv": 2}, 3, 0),
        # one block names several segments
        ({"TCPDSACKRecvSegs": 4, "TCPDSACKRecv": 1}, 1, 0),
        # a connection of which the kernel calls all duplicates dubious, after one too many
        ({"TCPDSACKRecvSegs": 0, "TCPDSACKRecv": 5}, 0, 5),
        ({"TCPDSACKRecvSegs": 0, "TCPDSACKRecv": 8}, 0, 5),
        ({"TCPDSACKRecvSegs": 1, "TCPDSACKRecv": 2, "TCPDSACKOfoRecv": 1}, 2, 2),
        # a kernel that counts blocks alone
        ({"TCPDSACKRecv": 1, "TCPDSACKOfoRecv": 2}, 2, 0),
    ],
)
def test_what_the_other_end_got_twice_was_not_lost(
    counters: dict[str, int], lost: int, unsure: int
) -> None:
    """Five segments sent again; a soak of long connections blamed a healthy pair."""
    tcp = port("n1", TCP, OutSegs=12_000, RetransSegs=5, TCPSynRetrans=0, **counters)
    seen = evidence(tcp, port("n1", "rail0"), port("n2", "rail0"))
    rate = of(error_rates(seen, ["rail0"]), ErrorKind.RETRANSMITTED, "n1")
    assert (rate.events, rate.may_have_arrived) == (lost, unsure)
    (twice,) = added([rate, rate])[:1]
    assert (twice.events, twice.may_have_arrived) == (2 * lost, 2 * unsure)


def test_a_port_counter_that_went_back_is_named() -> None:
    wrapped = replace(port("n1", "p:1", packet_seq_err=0), before={"packet_seq_err": 4_000_000_000})
    (lost,) = error_rates(evidence(wrapped, port("n2", "p:1")), ["p:1"])
    assert (lost.events, lost.set_back) == (0, ("packet_seq_err",))


def test_two_attempts_add_up() -> None:
    once = error_rates(evidence(port("n1", "p:1", packet_seq_err=4), port("n2", "p:1")), ["p:1"])
    both = added([*once, *once])
    lost = of(both, ErrorKind.RETRANSMITTED, "n1")
    assert (lost.events, lost.packets, dict(lost.counters)) == (8, 20_000, {"packet_seq_err": 8})
    assert len(both) == len(once)
