"""Whose rail lost packets: a side of a node, a pair, or nobody; by made counts."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from itertools import permutations
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from made_machine import Machine, healthy, planned

from fabricproof.core.measure import Verdict
from fabricproof.job.evidence.error_rates import most_rate
from fabricproof.job.evidence.leg_folder import RankRecord
from fabricproof.pairs.blame.losses import Carried, Loss, Losses
from fabricproof.pairs.campaign.path import down_links
from fabricproof.pairs.campaign.record import RoundRecord
from fabricproof.site import load_site
from fabricproof.traffic.error_rates import Direction, ErrorKind, ErrorRate

SITE = load_site("vcluster")
NODES = ("vc1", "vc2", "vc3", "vc4", "vc5")
PACKETS = 3000


def _rate(source: str, destination: str, events: int) -> ErrorRate:
    return ErrorRate(
        kind=ErrorKind.RETRANSMITTED, rail="rail0", node=source, peer=destination,
        direction=Direction.OUT, events=events, packets=PACKETS, bytes=PACKETS * 1500, counters={},
    )  # fmt: skip


def _found(*rounds: Iterable[ErrorRate]) -> tuple[Loss, ...]:
    losses = Losses(SITE, "eth0", (("rail0",),))
    for number, rates in enumerate(rounds):
        for each in rates:
            losses.add(0, number, [each])
    return losses.found()


def _carried(*rates: ErrorRate) -> Carried:
    losses = Losses(SITE, "eth0", (("rail0",),))
    losses.add(0, 0, rates)
    (found,) = losses.carried()
    return found


def test_counts_bound_what_may_be_lost_even_where_nothing_was() -> None:
    clean = _carried(*_all(lambda *_: 0))
    assert (clean.events, clean.packets, clean.bytes) == (0, 20 * PACKETS, 20 * PACKETS * 1500)
    assert clean.at_most_per_million == pytest.approx(2.9957 / 60_000 * 1e6, rel=1e-3)
    twice = _carried(*_all(lambda *_: 0), *_all(lambda *_: 0))
    assert twice.at_most_per_million == pytest.approx(clean.at_most_per_million / 2)
    assert "0 of 60000 packets retransmitted, 0.09 GB: at most 49.9 per million" in clean.sentence


def test_packets_that_both_ends_count_are_counted_once() -> None:
    rates = [replace(each, kind=ErrorKind.DAMAGED) for each in _all(lambda *_: 0)]
    seen = [replace(each, node=each.peer, peer=each.node, direction=Direction.IN) for each in rates]
    once, both = _carried(*rates), _carried(*rates, *seen)
    assert (both.packets, both.bytes) == (once.packets, once.bytes)


@given(st.integers(0, 2000), st.integers(1, 10**9))
def test_the_largest_credible_rate_is_above_what_was_seen(events: int, packets: int) -> None:
    seen = events / packets * 1e6
    assert seen < most_rate(events, packets) < (seen + 3 / packets * 1e6) * 5
    assert most_rate(events, packets) < most_rate(events + 1, packets)


def _all(events: Callable[[str, str], int]) -> list[ErrorRate]:
    return [_rate(one, other, events(one, other)) for one, other in permutations(NODES, 2)]


@pytest.mark.parametrize(
    ("events", "direction"),
    [
        (lambda one, _: 9 * (one == "vc3"), "transmit"),
        (lambda _, other: 9 * (other == "vc3"), "receive"),
        (lambda one, other: 9 * ("vc3" in {one, other}), "both"),
    ],
)
def test_a_side_that_loses_with_all_its_partners_is_named(
    events: Callable[[str, str], int], direction: str
) -> None:
    (loss,) = _found(_all(events))
    assert (loss.verdict, loss.node, loss.direction) == (Verdict.FAIL, "vc3", direction)
    assert (loss.pairs, loss.measured_pairs) == (4, 4)
    assert "10 per million are allowed (TCP between two nodes)" in loss.sentence


def test_a_counter_that_was_set_back_says_nothing_but_what_it_still_shows() -> None:
    quiet = [replace(each, set_back=("RetransSegs",)) for each in _all(lambda *_: 0)]
    losses = Losses(SITE, "eth0", (("rail0",),))
    losses.add(0, 0, quiet)
    assert not losses.carried(), "what it counted before is gone: these packets rule nothing out"
    rates = _all(lambda one, _: 9 * (one == "vc3"))
    (loss,) = _found([replace(each, set_back=("RetransSegs",)) for each in rates])
    assert (loss.verdict, loss.node) == (Verdict.FAIL, "vc3")


def test_two_lossy_nodes_are_two() -> None:
    found = _found(_all(lambda one, other: 9 * (one == "vc3") + 20 * (other == "vc5")))
    named = {(loss.node, loss.direction) for loss in found}
    assert named == {("vc3", "transmit"), ("vc5", "receive")}


def test_a_pair_is_red_from_the_second_round_on() -> None:
    def one_pair(one: str, other: str) -> int:
        return 9 * ((one, other) == ("vc1", "vc4"))

    (once,) = _found(_all(one_pair))
    assert (once.verdict, once.name, once.node) == (Verdict.UNJUDGED, "vc1 - vc4 rail0", None)
    assert once.sentence.endswith("; most in one round: a burst of a moment, or this pair")
    (twice,) = _found(_all(one_pair), _all(one_pair))
    assert (twice.verdict, twice.events) == (Verdict.FAIL, 18)


@pytest.mark.parametrize(("again", "verdict"), [(1, Verdict.UNJUDGED), (2, Verdict.FAIL)])
def test_a_burst_and_what_chance_adds_at_the_next_look_is_no_bad_pair(
    again: int, verdict: Verdict
) -> None:
    """Seen live on busy cores: one of 480 ways lost 3 packets in two looks, and was FAIL."""
    (loss,) = _found([_rate("vc1", "vc4", 2)], [_rate("vc1", "vc4", again)])
    assert (loss.verdict, loss.events, loss.packets) == (verdict, 2 + again, 2 * PACKETS)
    assert ("1 of 3000 packets in its others" in loss.sentence) == (again == 1)


def test_what_was_perhaps_sent_in_vain_is_unjudged() -> None:
    rates = _all(lambda one, _: 9 * (one == "vc3"))
    (loss,) = _found([replace(each, arrivals_unknown=True) for each in rates])
    assert loss.verdict is Verdict.UNJUDGED


def test_what_the_counters_do_not_tell_is_unjudged_and_hides_no_loss() -> None:
    """Of a healthy soak the kernel may not count what was sent again in vain."""
    quiet = [replace(each, counters={"TCPDSACKRecv": 9}) for each in _all(lambda *_: 0)]
    unsure = [replace(each, may_have_arrived=9 * (each.node == "vc3")) for each in quiet]
    (loss,) = _found(unsure, unsure)
    assert (loss.verdict, loss.name, loss.events) == (Verdict.UNJUDGED, "vc3 rail0", 9 * 4 * 2)
    assert "the counters do not tell" in loss.sentence
    lossy = [replace(each, events=9 * (each.peer == "vc1")) for each in unsure]
    verdicts = {each.name: each.verdict for each in _found(lossy, lossy)}
    assert verdicts == {"vc1 rail0": Verdict.FAIL, "vc3 rail0": Verdict.UNJUDGED}


def test_a_loss_that_nobody_can_rule_out_counts_as_one() -> None:
    losses = Losses(SITE, "eth0", (("rail0",),))
    losses.add(0, 0, [replace(_rate("vc1", "vc2", 1), may_have_arrived=2)])
    (carried,) = losses.carried()
    assert carried.events == 3
    assert [side.events for side in losses.sides(0, "vc1")] == [3]


@given(st.sets(st.integers(0, 19), max_size=6))
def test_single_packets_sent_again_blame_nobody(lossy: set[int]) -> None:
    ways = list(permutations(NODES, 2))
    found = _found(_all(lambda one, other: int(ways.index((one, other)) in lossy)))
    assert not any(loss.verdict is Verdict.FAIL and loss.node is None for loss in found)
    if len(lossy) < 4:
        assert found == ()


def test_gaps_and_drops_of_tcp_are_told_elsewhere() -> None:
    rates = _all(lambda *_: 99)
    for kind in (ErrorKind.GAP, ErrorKind.DROPPED):
        assert _found([replace(each, kind=kind) for each in rates]) == ()


@pytest.mark.parametrize(
    ("rounds", "verdict"), [(1, Verdict.UNJUDGED), (9, Verdict.FAIL)], ids=["a burst", "the pair"]
)
def test_what_a_pair_lost_in_one_round_gets_a_second_look(
    climb: Callable[..., Any], rounds: int, verdict: Verdict
) -> None:
    machine = Machine(healthy)
    seen = iter(range(99))
    machine.lost = lambda a, _: 50 if a == "vc1" and next(seen) < rounds else 0
    outcome, _ = climb(machine, planned(SITE, nodes=("vc1", "vc2"), is_full=True))
    assert outcome.rounds == 2
    (loss,) = outcome.losses
    assert (loss.verdict, loss.ends) == (verdict, ("vc1", "vc2"))


# --- links that went down


def counts(
    begin: float, before: dict[str, int], after: dict[str, int], rail: str = "rail0"
) -> RoundRecord:
    rank = RankRecord(rank=0, node="vc3", before={rail: before}, after={rail: after})
    return RoundRecord(number=0, values=(), nodes={"vc3": rank}, begin=begin, end=begin + 2)


def carrier(begin: float, before: int, after: int) -> RoundRecord:
    return counts(begin, {"carrier_changes": before}, {"carrier_changes": after})


@pytest.mark.parametrize(
    ("seen", "downs"),
    [
        ([carrier(0, 2, 2), carrier(3, 2, 2)], 0),
        ([carrier(0, 2, 4), carrier(3, 4, 4)], 0),  # once: the second look at the pair decides
        ([carrier(0, 2, 3)], 0),  # it is still down
        ([carrier(0, 2, 4), carrier(3, 4, 6)], 2),
        ([carrier(0, 2, 8)], 3),
        ([carrier(0, 2, 2), carrier(3, 6, 6)], 2),  # while another rail was measured
        ([carrier(0, 2, 2), carrier(63, 8, 8)], 0),  # resumed after somebody changed a cable
        ([carrier(0, 9, 1), carrier(3, 1, 1)], 0),  # the node was started again
        ([carrier(3, 4, 6), carrier(0, 2, 4)], 2),
        ([counts(0, {"link_downed": 7}, {"link_downed": 9})], 2),
        ([counts(0, {"link_downed": 255}, {"link_downed": 0})], 0),
        ([counts(0, {}, {"carrier_changes": 9})], 0),
        ([counts(0, {"carrier_changes": 2}, {"carrier_changes": 9}, "mgmt0")], 0),
    ],
)
def test_a_link_that_went_down_twice_is_red_by_name(seen: list[RoundRecord], downs: int) -> None:
    found = down_links(seen, ["rail0", "rail1"])
    said = f"vc3 rail0: its link went down {downs} times while the campaign ran"
    assert [each.text for each in found] == [said] * bool(downs)
