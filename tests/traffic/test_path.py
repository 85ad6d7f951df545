"""The proof of the path, against evidence that is whole and evidence that is bad on purpose."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fabricproof.traffic import (
    MIN_RAIL_SHARE,
    SLACK_BYTES,
    CounterSample,
    Evidence,
    Expectation,
    PathState,
    Rank,
    megabytes,
    prove_path,
)

MB = 1_000_000
DUE = 500 * MB

Moved = dict[str, int]


def sample(node: str, interface: str, before: Moved | None = None, **moved: int) -> CounterSample:
    start = {"tx_bytes": 7, "rx_bytes": 11, "tx_packets": 13, **(before or {})}
    start |= {name: start.get(name, 0) for name in moved}
    return CounterSample(
        node=node,
        interface=interface,
        before=start,
        after={name: value + moved.get(name, 0) for name, value in start.items()},
    )


def ranks(*nodes: str) -> tuple[Rank, ...]:
    return tuple(Rank(rank=rank, node=node) for rank, node in enumerate(nodes))


def evidence(*samples: CounterSample, nodes: tuple[str, ...] = ("n1", "n2")) -> Evidence:
    return Evidence(ranks=ranks(*nodes), samples=tuple(heard(each, samples) for each in samples))


def heard(sample: CounterSample, samples: tuple[CounterSample, ...]) -> CounterSample:
    """Return a sample that says nothing of what it received with what the others sent there."""
    if sample.moved("rx_bytes") or not sample.has("rx_bytes"):
        return sample
    others = (each for each in samples if each.node != sample.node)
    brought = sum(each.moved("tx_bytes") for each in others if each.interface == sample.interface)
    after = {**sample.after, "rx_bytes": sample.after["rx_bytes"] + max(0, brought)}
    return replace(sample, after=after)


ONE_RAIL = Expectation(rails=("rail0",), sent_bytes=(DUE, DUE), num_ranks=2, spread=False)
TWO_RAILS = Expectation(rails=("rail0", "rail1"), sent_bytes=(DUE, DUE), num_ranks=2, spread=True)

RIGHT = evidence(
    sample("n1", "rail0", tx_bytes=530 * MB, tx_packets=10**6),
    sample("n1", "mgmt", tx_bytes=MB),
    sample("n2", "rail0", tx_bytes=530 * MB, tx_packets=10**6),
    sample("n2", "mgmt", tx_bytes=MB),
)


def test_bytes_on_the_rail_prove_the_path() -> None:
    proof = prove_path(RIGHT, ONE_RAIL)
    assert proof.state is PathState.PROVEN
    assert proof.reason == "over rail0 n1 sent 530.0 MB, n2 sent 530.0 MB"
    assert proof.moved_bytes is not None
    assert proof.moved_bytes["n1:rail0"] == 530 * MB
    assert proof.findings == ()


def test_traffic_over_the_management_network_is_caught_and_the_network_named() -> None:
    seen = evidence(
        sample("n1", "rail0", tx_bytes=900),
        sample("n1", "mgmt", tx_bytes=530 * MB),
        sample("n2", "rail0", tx_bytes=900),
        sample("n2", "mgmt", tx_bytes=530 * MB),
    )
    proof = prove_path(seen, ONE_RAIL)
    assert proof.state is PathState.WRONG
    assert proof.reason == (
        "traffic took another path: the benchmark says n1 sent 500.0 MB, rail0 sent 0.0 MB, "
        "mgmt sent 530.0 MB"
    )


def test_traffic_that_no_interface_saw_is_caught() -> None:
    still = evidence(sample("n1", "rail0"), sample("n2", "rail0"))
    proof = prove_path(still, ONE_RAIL)
    assert proof.state is PathState.WRONG
    assert "no other interface sent the rest" in proof.reason


def test_only_one_direction_on_the_rail_is_not_enough() -> None:
    seen = evidence(
        sample("n1", "rail0", tx_bytes=530 * MB),
        sample("n2", "rail0", tx_bytes=900),
        sample("n2", "mgmt", tx_bytes=530 * MB),
    )
    proof = prove_path(seen, ONE_RAIL)
    assert proof.state is PathState.WRONG
    assert "n2" in proof.reason


def test_a_stream_in_one_direction_owes_nothing_the_other_way() -> None:
    seen = evidence(
        sample("n1", "rail0", tx_bytes=530 * MB), sample("n2", "rail0", tx_bytes=9 * MB)
    )
    assert prove_path(seen, replace(ONE_RAIL, sent_bytes=(DUE, 0))).state is PathState.PROVEN


def test_a_strangers_traffic_on_the_rail_hides_no_detour() -> None:
    seen = evidence(
        sample("n1", "rail0", tx_bytes=900 * MB),
        sample("n1", "mgmt", tx_bytes=530 * MB),
        sample("n2", "rail0", tx_bytes=900 * MB),
        sample("n2", "mgmt", tx_bytes=530 * MB),
    )
    proof = prove_path(seen, ONE_RAIL)
    assert proof.state is PathState.UNKNOWN
    assert proof.reason == (
        "two paths fit: the benchmark says n1 sent 500.0 MB, rail0 sent 900.0 MB and mgmt 530.0 MB"
    )


@pytest.mark.parametrize(
    ("name", "moved", "address"),
    [
        ("mgmt", 480 * MB, None),  # too little to be this run
        ("lo", 900 * MB, None),  # leads to no other node
        ("rail0.100", 530 * MB, None),  # the same frames, counted in two places
        ("bond0", 900 * MB, "02:00:00:00:00:01"),  # the same card
    ],
)
def test_an_interface_that_cannot_be_the_path_raises_no_doubt(
    name: str, moved: int, address: str | None
) -> None:
    rail = replace(RIGHT.samples[0], address="02:00:00:00:00:01")
    other = replace(sample("n1", name, tx_bytes=moved), address=address)
    seen = evidence(rail, *RIGHT.samples[1:], other)
    assert prove_path(seen, ONE_RAIL).state is PathState.PROVEN


def test_a_busy_neighbour_of_a_node_that_only_acknowledges_raises_no_doubt() -> None:
    seen = evidence(*RIGHT.samples[:2], sample("n2", "rail0"), sample("n2", "mgmt", tx_bytes=DUE))
    assert prove_path(seen, replace(ONE_RAIL, sent_bytes=(DUE, 0))).state is PathState.PROVEN


@pytest.mark.parametrize("counter", ["tx_bytes", "rx_bytes"])
def test_a_counter_of_32_bits_that_stopped_shows_no_path(counter: str) -> None:
    stopped = sample("n1", "mlx4_0:1", before={counter: 4 * (2**32 - 1)})
    quiet = sample("n2", "mlx4_0:1", tx_bytes=530 * MB)
    seen = Evidence(ranks=ranks("n1", "n2"), samples=(stopped, quiet))
    proof = prove_path(seen, replace(ONE_RAIL, rails=("mlx4_0:1",)))
    assert proof.state is PathState.UNKNOWN
    assert "end of their 32 bits (reset them on n1: perfquery -R -C mlx4_0 -P 1)" in proof.reason


def test_both_ranks_on_one_node_measured_its_memory() -> None:
    seen = evidence(sample("n1", "rail0", tx_bytes=10**12), nodes=("n1", "n1"))
    proof = prove_path(seen, ONE_RAIL)
    assert proof.state is PathState.WRONG
    assert "both ranks ran on one node (n1)" in proof.reason


def test_worlds_of_one_are_named() -> None:
    twice = Evidence(
        ranks=(Rank(rank=0, node="n1"), Rank(rank=0, node="n2")),
        samples=RIGHT.samples,
    )
    proof = prove_path(twice, ONE_RAIL)
    assert proof.state is PathState.WRONG
    assert "world of one" in proof.reason


def test_a_rank_that_did_not_report_is_not_called_a_wrong_path() -> None:
    alone = Evidence(ranks=ranks("n1"), samples=RIGHT.samples)
    proof = prove_path(alone, ONE_RAIL)
    assert proof.state is PathState.UNKNOWN
    assert "ranks 0 to 1 were due, [0] reported" in proof.reason


@pytest.mark.parametrize("seen", [(), ("n1", "n2", "n1")])
def test_no_rank_or_too_many_is_unknown(seen: tuple[str, ...]) -> None:
    proof = prove_path(Evidence(ranks=ranks(*seen), samples=RIGHT.samples), ONE_RAIL)
    assert proof.state is PathState.UNKNOWN


def test_a_single_rank_needs_no_second_node() -> None:
    one = replace(ONE_RAIL, num_ranks=1, sent_bytes=(0, 0))
    seen = evidence(sample("n1", "rail0"), nodes=("n1",))
    assert prove_path(seen, one).state is PathState.PROVEN


def test_a_rail_without_counters_is_unknown() -> None:
    seen = evidence(*(each for each in RIGHT.samples if each.node == "n1"))
    proof = prove_path(seen, ONE_RAIL)
    assert proof.state is PathState.UNKNOWN
    assert "no counters of rail0 on n2" in proof.reason


def _spoilt(**changes: dict[str, int]) -> Evidence:
    first, *rest = RIGHT.samples
    return evidence(replace(first, **changes), *rest)


@pytest.mark.parametrize("side", ["before", "after"])
def test_counters_read_once_only_are_unknown(side: str) -> None:
    proof = prove_path(_spoilt(**{side: {}}), ONE_RAIL)
    assert proof.state is PathState.UNKNOWN
    assert "not read both before and after" in proof.reason


@pytest.mark.parametrize("counter", ["tx_bytes", "rx_bytes"])
def test_counters_that_ran_backwards_are_unknown(counter: str) -> None:
    before = {"tx_bytes": 0, "rx_bytes": 0, counter: 10**15}
    proof = prove_path(_spoilt(before=before), ONE_RAIL)
    assert proof.state is PathState.UNKNOWN
    assert "ran backwards" in proof.reason


def test_an_interface_that_came_and_went_beside_the_rail_does_not_matter() -> None:
    gone = CounterSample(node="n1", interface="veth9", before={"tx_bytes": 10**9}, after={})
    reset = CounterSample(
        node="n2", interface="docker0", before={"tx_bytes": 10**9}, after={"tx_bytes": 0}
    )
    proof = prove_path(evidence(*RIGHT.samples, gone, reset), ONE_RAIL)
    assert proof.state is PathState.PROVEN


def test_small_messages_that_went_elsewhere_are_caught() -> None:
    pingpong = replace(ONE_RAIL, sent_messages=(10**6, 10**6))
    assert prove_path(RIGHT, pingpong).state is PathState.PROVEN
    few = evidence(
        sample("n1", "rail0", tx_bytes=530 * MB, tx_packets=9000),
        sample("n2", "rail0", tx_bytes=530 * MB, tx_packets=9000),
    )
    proof = prove_path(few, pingpong)
    assert proof.state is PathState.WRONG
    assert "small messages took another path" in proof.reason


def test_packets_that_were_not_counted_are_unknown() -> None:
    plain = {"tx_bytes": 0, "rx_bytes": 0}
    done = {"tx_bytes": 530 * MB, "rx_bytes": 0}
    seen = evidence(
        *(
            CounterSample(node=node, interface="rail0", before=plain, after=done)
            for node in ("n1", "n2")
        )
    )
    assert prove_path(seen, ONE_RAIL).state is PathState.PROVEN
    proof = prove_path(seen, replace(ONE_RAIL, sent_messages=(1, 1)))
    assert proof.state is PathState.UNKNOWN
    assert "tx_packets" in proof.reason


def _two(first: int, second: int) -> Evidence:
    return evidence(
        *(
            sample(node, rail, tx_bytes=amount)
            for node in ("n1", "n2")
            for rail, amount in (("rail0", first), ("rail1", second))
        )
    )


def test_two_rails_that_share_are_proven() -> None:
    assert prove_path(_two(265 * MB, 265 * MB), TWO_RAILS).state is PathState.PROVEN


def test_a_rail_that_took_no_part_is_caught() -> None:
    proof = prove_path(_two(529 * MB, MB), TWO_RAILS)
    assert proof.state is PathState.WRONG
    assert proof.reason == "rail1 carried 0.2% of n1's traffic: this is not a 2-rail number"


@pytest.mark.parametrize("num_rails", [4, 8, 16, 32])
@pytest.mark.parametrize("part", [1.0, 0.7])
def test_many_rails_have_small_shares_and_one_of_none_is_caught(
    num_rails: int, part: float
) -> None:
    """A tenth was asked of each: of eight rails one of 70 % was INVALID, and all of sixteen."""
    rails = tuple(f"rail{number}" for number in range(num_rails))
    many = replace(TWO_RAILS, rails=rails)
    last, each = int(part * 530 * MB / num_rails), 560 * MB // num_rails
    for amount, state in ((last, PathState.PROVEN), (each // 10, PathState.WRONG)):
        moved = {rail: amount if rail == rails[-1] else each for rail in rails}
        seen = evidence(
            *(sample(node, rail, tx_bytes=moved[rail]) for node in ("n1", "n2") for rail in rails)
        )
        assert prove_path(seen, many).state is state


def _received(first: int, second: int) -> Evidence:
    """Both nodes send evenly over two rails; the second receives so much over each."""
    return evidence(
        sample("n1", "rail0", tx_bytes=265 * MB),
        sample("n1", "rail1", tx_bytes=265 * MB),
        sample("n2", "rail0", tx_bytes=265 * MB, rx_bytes=first),
        sample("n2", "rail1", tx_bytes=265 * MB, rx_bytes=second),
    )


def test_what_left_by_two_rails_and_came_in_by_one_is_caught() -> None:
    proof = prove_path(_received(529 * MB, MB), TWO_RAILS)
    assert proof.state is PathState.WRONG
    said = "rail1 brought 0.2% of what n2 received: this is not a 2-rail number"
    assert proof.reason == said
    assert prove_path(_received(470 * MB, 60 * MB), TWO_RAILS).state is PathState.PROVEN


def test_acknowledgements_may_all_come_in_by_one_rail() -> None:
    one_way = replace(TWO_RAILS, sent_bytes=(0, DUE))
    assert prove_path(_received(30 * MB, MB), one_way).state is PathState.PROVEN


def test_small_messages_need_not_spread() -> None:
    assert prove_path(_two(530 * MB, 0), replace(TWO_RAILS, spread=False)).state is (
        PathState.PROVEN
    )


def test_acknowledgements_may_all_take_one_rail() -> None:
    seen = evidence(
        sample("n1", "rail0", tx_bytes=265 * MB),
        sample("n1", "rail1", tx_bytes=265 * MB),
        sample("n2", "rail0", tx_bytes=30 * MB),
        sample("n2", "rail1"),
    )
    assert prove_path(seen, replace(TWO_RAILS, sent_bytes=(DUE, 0))).state is PathState.PROVEN


def test_rising_errors_disturb_a_right_path() -> None:
    noisy = evidence(
        sample("n1", "rail0", tx_bytes=530 * MB, symbol_error=3),
        sample("n2", "rail0", tx_bytes=530 * MB),
    )
    proof = prove_path(noisy, ONE_RAIL)
    assert proof.state is PathState.DISTURBED
    assert proof.reason == "symbol_error of rail0 on n1 rose by 3"


def test_errors_from_before_the_run_do_not_count() -> None:
    old = evidence(
        sample("n1", "rail0", {"symbol_error": 10**6}, tx_bytes=530 * MB),
        sample("n2", "rail0", tx_bytes=530 * MB),
    )
    assert prove_path(old, ONE_RAIL).state is PathState.PROVEN


def test_a_counter_read_only_afterwards_did_not_rise() -> None:
    late = CounterSample(
        node="n1",
        interface="rail0",
        before={"tx_bytes": 0, "rx_bytes": 0},
        after={"tx_bytes": 530 * MB, "rx_bytes": 0, "symbol_error": 10**6},
    )
    assert late.moved("symbol_error") == 0
    seen = evidence(late, sample("n2", "rail0", tx_bytes=530 * MB))
    assert prove_path(seen, ONE_RAIL).state is PathState.PROVEN


def test_errors_of_another_interface_are_not_the_rails() -> None:
    seen = evidence(*RIGHT.samples, sample("n1", "wlan0", rx_errors=9))
    assert prove_path(seen, ONE_RAIL).state is PathState.PROVEN


def test_drops_are_named_and_are_no_fault() -> None:
    seen = evidence(
        sample("n1", "rail0", tx_bytes=530 * MB, rx_dropped=4),
        sample("n2", "rail0", tx_bytes=530 * MB),
    )
    proof = prove_path(seen, ONE_RAIL)
    assert proof.state is PathState.PROVEN
    assert proof.findings == ("rx_dropped of rail0 on n1 rose by 4",)


def test_somebody_elses_traffic_is_named() -> None:
    seen = evidence(
        sample("n1", "rail0", tx_bytes=5000 * MB), sample("n2", "rail0", tx_bytes=5000 * MB)
    )
    proof = prove_path(seen, ONE_RAIL)
    assert proof.state is PathState.PROVEN
    assert "other traffic ran beside it" in proof.findings[0]


def test_several_nodes_share_what_their_half_sent() -> None:
    four = replace(ONE_RAIL, num_ranks=4)
    nodes = ("n1", "n2", "n3", "n4")
    half = [sample(node, "rail0", tx_bytes=265 * MB) for node in nodes]
    assert prove_path(evidence(*half, nodes=nodes), four).state is PathState.PROVEN
    half[2] = sample("n3", "rail0", tx_bytes=MB)
    proof = prove_path(evidence(*half, nodes=nodes), four)
    assert proof.state is PathState.WRONG
    assert "n3 sent 250.0 MB" in proof.reason


def test_megabytes_are_decimal() -> None:
    assert megabytes(1_234_567) == "1.2 MB"


BYTES = st.integers(min_value=0, max_value=4 * DUE)


@given(BYTES, BYTES, BYTES)
def test_more_bytes_on_the_wrong_path_never_prove_the_right_one(
    rail: int, mgmt: int, more: int
) -> None:
    def state(elsewhere: int) -> PathState:
        seen = evidence(
            *(
                each
                for node in ("n1", "n2")
                for each in (
                    sample(node, "rail0", tx_bytes=rail),
                    sample(node, "mgmt", tx_bytes=elsewhere),
                )
            )
        )
        return prove_path(seen, ONE_RAIL).state

    if state(mgmt) is PathState.WRONG:
        assert state(mgmt + more) is PathState.WRONG
    if state(0) is PathState.PROVEN and max(DUE, SLACK_BYTES) <= mgmt < 0.9 * rail:
        assert state(mgmt) is PathState.UNKNOWN


@given(BYTES, BYTES, st.integers(min_value=1, max_value=50))
def test_more_bytes_everywhere_never_make_a_proven_path_wrong(
    first: int, second: int, factor: int
) -> None:
    if prove_path(_two(first, second), TWO_RAILS).state is PathState.PROVEN:
        more = prove_path(_two(first * factor, second * factor), TWO_RAILS)
        assert more.state is PathState.PROVEN


@given(st.integers(min_value=0, max_value=DUE // 2 - SLACK_BYTES))
def test_half_the_bytes_never_prove_a_path(rail: int) -> None:
    seen = evidence(sample("n1", "rail0", tx_bytes=rail), sample("n2", "rail0", tx_bytes=rail))
    assert prove_path(seen, ONE_RAIL).state is PathState.WRONG


@given(st.integers(min_value=0, max_value=100))
def test_a_two_rail_number_has_two_rails(percent: int) -> None:
    total = 540 * MB
    second = total * percent // 100
    state = prove_path(_two(total - second, second), TWO_RAILS).state
    fair = MIN_RAIL_SHARE * 100 <= percent <= 100 - MIN_RAIL_SHARE * 100
    assert (state is PathState.PROVEN) == fair


# Many ranks: where they lie, and what any algorithm must move.

FOUR = ("n1", "n1", "n2", "n2")
LAYOUT = replace(ONE_RAIL, num_ranks=4, ranks_per_node=2)
AT_LEAST = replace(LAYOUT, sent_bytes=(0, 0), exact=False, least_bytes=((DUE, DUE), (DUE, DUE)))


def exchanged(sent: int, received: int, interface: str = "rail0") -> Evidence:
    return evidence(
        *(
            sample(node, name, tx_bytes=tx, rx_bytes=rx, tx_packets=tx // 1000)
            for node in ("n1", "n2")
            for name, tx, rx in (
                (interface, sent, received),
                ("mgmt" if interface == "rail0" else "rail0", 900, 900),
            )
        ),
        nodes=FOUR,
    )


def test_ranks_one_after_the_other_on_each_node_are_right() -> None:
    assert prove_path(exchanged(530 * MB, 530 * MB), LAYOUT).state is PathState.PROVEN


def test_ranks_dealt_out_in_turn_are_another_layout_than_asked_for() -> None:
    seen = replace(exchanged(530 * MB, 530 * MB), ranks=ranks("n1", "n2", "n1", "n2"))
    proof = prove_path(seen, LAYOUT)
    assert proof.state is PathState.WRONG
    assert "the launcher made n1: 0, 2; n2: 1, 3" in proof.reason


def test_a_rank_on_a_node_that_it_was_not_sent_to_is_named() -> None:
    pinned = replace(LAYOUT, nodes=("n1", "n3"))
    proof = prove_path(exchanged(530 * MB, 530 * MB), pinned)
    assert proof.state is PathState.WRONG
    assert proof.reason == "rank 2 ran on n2, it was sent to n1 or n3"


def test_a_collective_must_send_and_receive_at_least_its_cut() -> None:
    assert prove_path(exchanged(530 * MB, 530 * MB), AT_LEAST).state is PathState.PROVEN
    # Any algorithm may move more than the least, without being somebody else's traffic.
    assert prove_path(exchanged(5300 * MB, 5300 * MB), AT_LEAST).findings == ()
    too_few = prove_path(exchanged(530 * MB, 400 * MB), AT_LEAST)
    assert too_few.state is PathState.WRONG
    assert "must have received 500.0 MB at least, rail0 brought 400.0 MB" in too_few.reason


def test_a_collective_over_the_management_network_is_caught() -> None:
    proof = prove_path(exchanged(530 * MB, 530 * MB, interface="mgmt"), AT_LEAST)
    assert proof.state is PathState.WRONG
    assert "mgmt sent 530.0 MB" in proof.reason


def test_messages_without_payload_must_be_packets_on_the_rail() -> None:
    barrier = replace(AT_LEAST, least_bytes=((0, 0), (0, 0)), least_packets=(1000, 1000))
    assert prove_path(exchanged(2 * MB, 2 * MB), barrier).state is PathState.PROVEN
    proof = prove_path(exchanged(2000, 2000), barrier)
    assert proof.state is PathState.WRONG
    assert "sent 1000 messages one by one, rail0 sent only 2 packets" in proof.reason


#: a collective: at least so much from and to each node, in truth more
LEAST = replace(ONE_RAIL, sent_bytes=(0, 0), exact=False, least_bytes=((100 * MB, 100 * MB),) * 2)


def carried(rail: int, other: int, *, apart: bool = True) -> Evidence:
    """Return what two nodes show whose ``rail0`` and ``mgmt`` moved so many bytes each way."""
    samples = [
        replace(
            sample(node, name, tx_bytes=moved, rx_bytes=moved),
            address=f"02:00:00:00:00:0{number}" if apart else "02:00:00:00:00:01",
        )
        for node in ("n1", "n2")
        for number, (name, moved) in enumerate((("rail0", rail), ("mgmt", other)))
    ]
    return evidence(*samples)


def test_a_collective_of_which_only_the_least_is_known_is_proven_by_its_rail_alone() -> None:
    assert prove_path(carried(300 * MB, 3 * MB), LEAST).state is PathState.PROVEN
    assert prove_path(carried(90 * MB, 3 * MB), LEAST).state is PathState.WRONG


@pytest.mark.parametrize("other", [40 * MB, 99 * MB, 200 * MB, 210 * MB])
def test_a_part_of_a_collective_that_took_another_path_leaves_its_path_unknown(other: int) -> None:
    """The rail shows the least that any algorithm moves, and the rest went elsewhere."""
    proof = prove_path(carried(200 * MB, other), LEAST)
    assert proof.state is PathState.UNKNOWN
    assert "two paths fit" in proof.reason


def test_a_card_that_is_counted_twice_is_no_other_path_for_a_collective() -> None:
    assert prove_path(carried(200 * MB, 200 * MB, apart=False), LEAST).state is PathState.PROVEN


def test_two_cards_that_share_what_imb_moves_unseen_are_not_one_wire() -> None:
    """IMB warms up with a whole benchmark: half of all that it moves is all that it says."""
    warm = replace(ONE_RAIL, exact=False)
    assert prove_path(carried(530 * MB, 530 * MB), warm).state is PathState.UNKNOWN
    assert prove_path(carried(530 * MB, 530 * MB, apart=False), warm).state is PathState.PROVEN


@pytest.mark.parametrize(
    "nothing",
    [
        replace(ONE_RAIL, sent_bytes=(0, 0)),
        replace(LEAST, least_bytes=((0, 0), (0, 0))),
        replace(LEAST, least_bytes=((0, 0), (0, 0)), least_packets=(0, 0)),
    ],
)
def test_a_run_of_which_nothing_must_be_seen_proves_no_path(nothing: Expectation) -> None:
    proof = prove_path(carried(0, 900 * MB), nothing)
    assert proof.state is PathState.UNKNOWN
    assert "the path is not shown" in proof.reason


#: a barrier: 2000 operations, no payload
BARRIER = replace(LEAST, least_bytes=((0, 0), (0, 0)), least_packets=(2000, 2000))


def packets(rail: int, other: int, address: str = "02:00:00:00:00:09") -> Evidence:
    samples = [
        replace(sample(node, name, tx_packets=count, tx_bytes=60 * count), address=mac)
        for node in ("n1", "n2")
        for name, count, mac in (
            ("rail0", rail, "02:00:00:00:00:01"),
            ("mgmt", other, address),
        )
    ]
    return evidence(*samples)


@pytest.mark.parametrize(
    ("rail", "other", "state"),
    [
        (4100, 300, PathState.PROVEN),  # what a node says beside it
        (300, 4100, PathState.WRONG),
        (2500, 4100, PathState.UNKNOWN),  # a stranger on the rail, the barrier elsewhere?
    ],
)
def test_a_barrier_is_proven_by_packets_that_no_other_interface_sent(
    rail: int, other: int, state: PathState
) -> None:
    assert prove_path(packets(rail, other), BARRIER).state is state


def test_packets_of_one_card_counted_twice_are_one_path() -> None:
    seen = packets(4100, 4100, address="02:00:00:00:00:01")
    assert prove_path(seen, BARRIER).state is PathState.PROVEN


def test_few_barriers_are_not_lost_in_a_nodes_own_chatter() -> None:
    few = replace(BARRIER, least_packets=(24, 24))
    assert prove_path(packets(60, 400), few).state is PathState.PROVEN


def test_bytes_that_left_by_the_rail_and_came_in_by_another_are_caught() -> None:
    """Two rails in one network: n2's rail1 answers for rail0's address (ARP flux)."""
    seen = evidence(
        sample("n1", "rail0", tx_bytes=530 * MB, rx_bytes=9 * MB),
        sample("n2", "rail0", tx_bytes=9 * MB, rx_bytes=900),
        sample("n2", "rail1", tx_bytes=900, rx_bytes=530 * MB),
    )
    proof = prove_path(seen, replace(ONE_RAIL, sent_bytes=(DUE, 0)))
    assert proof.state is PathState.WRONG
    assert proof.reason == (
        "traffic took another path: n2 must have received 500.0 MB at least, rail0 brought 0.0 MB, "
        "rail1 530.0 MB"
    )
    assert (proof.lacking, proof.came_by) == ("n2", "rail1")
