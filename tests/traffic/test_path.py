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


PINGPONG = replace(ONE_RAIL, sent_messages=(10**6, 10**6))
ONE_WAY = replace(ONE_RAIL, sent_bytes=(DUE, 0))
BOTH = ("n1", "n2")


def on_both(interface: str = "rail0", **moved: int) -> tuple[CounterSample, ...]:
    return tuple(sample(node, interface, **moved) for node in BOTH)


def _spoilt(**changes: Moved) -> Evidence:
    first, *rest = RIGHT.samples
    return evidence(replace(first, **changes), *rest)


def _two(first: int, second: int) -> Evidence:
    return evidence(*on_both("rail0", tx_bytes=first), *on_both("rail1", tx_bytes=second))


def _received(first: int, second: int) -> Evidence:
    """Both nodes send evenly over two rails; the second receives so much over each."""
    return evidence(
        sample("n1", "rail0", tx_bytes=265 * MB),
        sample("n1", "rail1", tx_bytes=265 * MB),
        sample("n2", "rail0", tx_bytes=265 * MB, rx_bytes=first),
        sample("n2", "rail1", tx_bytes=265 * MB, rx_bytes=second),
    )


def _plain(interface: str = "rail0", **after: int) -> CounterSample:
    """Return what was read of an interface that counts bytes alone."""
    before = {"tx_bytes": 0, "rx_bytes": 0}
    moved = {"tx_bytes": 530 * MB, "rx_bytes": 0, **after}
    return CounterSample(node="n1", interface=interface, before=before, after=moved)


def _stopped(counter: str) -> Evidence:
    """Return a counter of 32 bits that stands at its end on the first node."""
    end = sample("n1", "mlx4_0:1", before={counter: 4 * (2**32 - 1)})
    quiet = sample("n2", "mlx4_0:1", tx_bytes=530 * MB)
    return Evidence(ranks=ranks(*BOTH), samples=(end, quiet))


#: many ranks: where they lie, and what any algorithm must move
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


#: a barrier: 2000 operations, no payload
BARRIER = replace(LEAST, least_bytes=((0, 0), (0, 0)), least_packets=(2000, 2000))


def packets(rail: int, other: int, address: str = "02:00:00:00:00:09") -> Evidence:
    samples = [
        replace(sample(node, name, tx_packets=count, tx_bytes=60 * count), address=mac)
        for node in ("n1", "n2")
        for name, count, mac in (("rail0", rail, "02:00:00:00:00:01"), ("mgmt", other, address))
    ]
    return evidence(*samples)


PROVEN, WRONG, UNKNOWN, DISTURBED = PathState
FOUR_NODES = ("n1", "n2", "n3", "n4")
FOUR_RANKS = replace(ONE_RAIL, num_ranks=4)
FEW_PACKETS = replace(AT_LEAST, least_bytes=((0, 0), (0, 0)), least_packets=(1000, 1000))
ONE_CARD = "02:00:00:00:00:01"

#: what is seen, what was meant, what is proven, in which words
PATHS: dict[str, tuple[Evidence, Expectation, PathState, str]] = {
    "bytes on the rail": (RIGHT, ONE_RAIL, PROVEN, "over rail0 n1 sent 530.0 MB, n2 sent 530.0 MB"),
    "the management network": (
        evidence(*on_both(tx_bytes=900), *on_both("mgmt", tx_bytes=530 * MB)), ONE_RAIL, WRONG,
        ("traffic took another path: the benchmark says n1 sent 500.0 MB, rail0 sent 0.0 MB, "
        "mgmt sent 530.0 MB"),
    ),
    "no interface": (evidence(*on_both()), ONE_RAIL, WRONG, "no other interface sent the rest"),
    "one direction only": (
        evidence(
            sample("n1", "rail0", tx_bytes=530 * MB),
            sample("n2", "rail0", tx_bytes=900),
            sample("n2", "mgmt", tx_bytes=530 * MB),
        ),
        ONE_RAIL, WRONG, "n2",
    ),
    "a stream in one direction owes nothing the other way": (
        evidence(sample("n1", "rail0", tx_bytes=530 * MB), sample("n2", "rail0", tx_bytes=9 * MB)),
        ONE_WAY, PROVEN, ""),
    "a stranger on the rail hides no detour": (
        evidence(*on_both(tx_bytes=900 * MB), *on_both("mgmt", tx_bytes=530 * MB)),
        ONE_RAIL, UNKNOWN,
        "two paths fit: the benchmark says n1 sent 500.0 MB, rail0 sent 900.0 MB and mgmt 530.0 MB",
    ),
    "a busy neighbour of a node that only acknowledges": (
        evidence(*RIGHT.samples[:2], sample("n2", "rail0"), sample("n2", "mgmt", tx_bytes=DUE)),
        ONE_WAY, PROVEN, ""),
    **{
        f"a counter of 32 bits that stopped: {counter}": (
            _stopped(counter), replace(ONE_RAIL, rails=("mlx4_0:1",)), UNKNOWN,
            "end of their 32 bits (reset them on n1: perfquery -R -C mlx4_0 -P 1)",
        )
        for counter in ("tx_bytes", "rx_bytes")
    },
    "both ranks on one node": (
        evidence(sample("n1", "rail0", tx_bytes=10**12), nodes=("n1", "n1")), ONE_RAIL, WRONG,
        "both ranks ran on one node (n1)"),
    "worlds of one": (
        replace(RIGHT, ranks=(Rank(rank=0, node="n1"), Rank(rank=0, node="n2"))), ONE_RAIL, WRONG,
        "world of one"),
    "a rank that did not report": (
        replace(RIGHT, ranks=ranks("n1")), ONE_RAIL, UNKNOWN,
        "ranks 0 to 1 were due, [0] reported"),
    "no rank": (replace(RIGHT, ranks=()), ONE_RAIL, UNKNOWN, ""),
    "too many ranks": (replace(RIGHT, ranks=ranks("n1", "n2", "n1")), ONE_RAIL, UNKNOWN, ""),
    "a single rank needs no second node": (
        evidence(sample("n1", "rail0"), nodes=("n1",)),
        replace(ONE_RAIL, num_ranks=1, sent_bytes=(0, 0)), PROVEN, ""),
    "a rail without counters": (
        evidence(*(each for each in RIGHT.samples if each.node == "n1")), ONE_RAIL, UNKNOWN,
        "no counters of rail0 on n2"),
    "counters not read before": (
        _spoilt(before={}), ONE_RAIL, UNKNOWN, "not read both before and after"),
    "counters not read after": (
        _spoilt(after={}), ONE_RAIL, UNKNOWN, "not read both before and after"),
    **{
        f"{counter} ran backwards": (
            _spoilt(before={"tx_bytes": 0, "rx_bytes": 0, counter: 10**15}),
            ONE_RAIL, UNKNOWN, "ran backwards",
        )
        for counter in ("tx_bytes", "rx_bytes")
    },
    "interfaces that come and go beside the rail": (
        evidence(
            *RIGHT.samples,
            CounterSample(node="n1", interface="veth9", before={"tx_bytes": 10**9}, after={}),
            CounterSample(
                node="n2", interface="docker0", before={"tx_bytes": 10**9}, after={"tx_bytes": 0}
            ),
        ),
        ONE_RAIL, PROVEN, "",
    ),
    "a ping-pong": (RIGHT, PINGPONG, PROVEN, ""),
    "small messages that went elsewhere": (
        evidence(*on_both(tx_bytes=530 * MB, tx_packets=9000)), PINGPONG, WRONG,
        "small messages took another path"),
    "packets that nobody counted": (
        evidence(_plain(), replace(_plain(), node="n2")), PINGPONG, UNKNOWN, "tx_packets"),
    "packets that nobody needs": (
        evidence(_plain(), replace(_plain(), node="n2")), ONE_RAIL, PROVEN, ""),
    "two rails that share": (_two(265 * MB, 265 * MB), TWO_RAILS, PROVEN, ""),
    "a rail that took no part": (
        _two(529 * MB, MB), TWO_RAILS, WRONG,
        "rail1 carried 0.2% of n1's traffic: this is not a 2-rail number"),
    "small messages need not spread": (
        _two(530 * MB, 0), replace(TWO_RAILS, spread=False), PROVEN, ""),
    "left by two rails, came in by one": (
        _received(529 * MB, MB), TWO_RAILS, WRONG,
        "rail1 brought 0.2% of what n2 received: this is not a 2-rail number"),
    "came in unevenly": (_received(470 * MB, 60 * MB), TWO_RAILS, PROVEN, ""),
    "acknowledgements may come in by one rail": (
        _received(30 * MB, MB), replace(TWO_RAILS, sent_bytes=(0, DUE)), PROVEN, ""),
    "acknowledgements may leave by one rail": (
        evidence(
            sample("n1", "rail0", tx_bytes=265 * MB),
            sample("n1", "rail1", tx_bytes=265 * MB),
            sample("n2", "rail0", tx_bytes=30 * MB),
            sample("n2", "rail1"),
        ),
        replace(TWO_RAILS, sent_bytes=(DUE, 0)), PROVEN, "",
    ),
    "errors rose": (
        evidence(
            sample("n1", "rail0", tx_bytes=530 * MB, symbol_error=3),
            sample("n2", "rail0", tx_bytes=530 * MB),
        ),
        ONE_RAIL, DISTURBED, "symbol_error of rail0 on n1 rose by 3",
    ),
    "errors from before the run": (
        evidence(
            sample("n1", "rail0", {"symbol_error": 10**6}, tx_bytes=530 * MB),
            sample("n2", "rail0", tx_bytes=530 * MB),
        ),
        ONE_RAIL, PROVEN, "",
    ),
    "errors read only afterwards": (
        evidence(_plain(symbol_error=10**6), sample("n2", "rail0", tx_bytes=530 * MB)), ONE_RAIL,
        PROVEN, ""),
    "errors of another interface": (
        evidence(*RIGHT.samples, sample("n1", "wlan0", rx_errors=9)), ONE_RAIL, PROVEN, ""),
    "several nodes share what their half sent": (
        evidence(
            *(sample(node, "rail0", tx_bytes=265 * MB) for node in FOUR_NODES), nodes=FOUR_NODES
        ),
        FOUR_RANKS, PROVEN, "",
    ),
    "one of several nodes did not send its share": (
        evidence(
            *(
                sample(node, "rail0", tx_bytes=MB if node == "n3" else 265 * MB)
                for node in FOUR_NODES
            ),
            nodes=FOUR_NODES,
        ),
        FOUR_RANKS, WRONG, "n3 sent 250.0 MB",
    ),
    "ranks one after the other on each node": (exchanged(530 * MB, 530 * MB), LAYOUT, PROVEN, ""),
    "ranks dealt out in turn": (
        replace(exchanged(530 * MB, 530 * MB), ranks=ranks("n1", "n2", "n1", "n2")), LAYOUT, WRONG,
        "the launcher made n1: 0, 2; n2: 1, 3"),
    "a rank on a node that it was not sent to": (
        exchanged(530 * MB, 530 * MB), replace(LAYOUT, nodes=("n1", "n3")), WRONG,
        "rank 2 ran on n2, it was sent to n1 or n3"),
    "a collective that sends and receives its cut": (
        exchanged(530 * MB, 530 * MB), AT_LEAST, PROVEN, ""),
    "a collective that received less than its cut": (
        exchanged(530 * MB, 400 * MB), AT_LEAST, WRONG,
        "must have received 500.0 MB at least, rail0 brought 400.0 MB"),
    "a collective over the management network": (
        exchanged(530 * MB, 530 * MB, interface="mgmt"), AT_LEAST, WRONG, "mgmt sent 530.0 MB"),
    "messages without payload are packets": (exchanged(2 * MB, 2 * MB), FEW_PACKETS, PROVEN, ""),
    "fewer packets than messages": (
        exchanged(2000, 2000), FEW_PACKETS, WRONG,
        "sent 1000 messages one by one, rail0 sent only 2 packets"),
    "the least of a collective on its rail alone": (carried(300 * MB, 3 * MB), LEAST, PROVEN, ""),
    "less than the least of a collective": (carried(90 * MB, 3 * MB), LEAST, WRONG, ""),
    **{
        f"{other} bytes of a collective took another path": (
            carried(200 * MB, other), LEAST, UNKNOWN, "two paths fit",
        )
        for other in (40 * MB, 99 * MB, 200 * MB, 210 * MB)
    },
    "a card of a collective that is counted twice": (
        carried(200 * MB, 200 * MB, apart=False), LEAST, PROVEN, ""),
    # IMB warms up with a whole benchmark: half of all that it moves is all that it says.
    "two cards that share what IMB moves unseen": (
        carried(530 * MB, 530 * MB), replace(ONE_RAIL, exact=False), UNKNOWN, ""),
    "one card that IMB warms up on": (
        carried(530 * MB, 530 * MB, apart=False), replace(ONE_RAIL, exact=False), PROVEN, ""),
    "nothing is due of a pair": (
        carried(0, 900 * MB), replace(ONE_RAIL, sent_bytes=(0, 0)), UNKNOWN, "path is not shown"),
    "no bytes are due of a collective": (
        carried(0, 900 * MB), replace(LEAST, least_bytes=((0, 0), (0, 0))), UNKNOWN,
        "the path is not shown"),
    "no packets are due of a collective": (
        carried(0, 900 * MB), replace(LEAST, least_bytes=((0, 0), (0, 0)), least_packets=(0, 0)),
        UNKNOWN, "the path is not shown"),
    "a barrier beside what a node says": (packets(4100, 300), BARRIER, PROVEN, ""),
    "a barrier elsewhere": (packets(300, 4100), BARRIER, WRONG, ""),
    "a stranger on the rail of a barrier": (packets(2500, 4100), BARRIER, UNKNOWN, ""),
    "packets of one card counted twice": (packets(4100, 4100, ONE_CARD), BARRIER, PROVEN, ""),
    "few barriers in a node's own chatter": (
        packets(60, 400), replace(BARRIER, least_packets=(24, 24)), PROVEN, ""),
}  # fmt: skip


@pytest.mark.parametrize("name", PATHS)
def test_a_path_is_proven_wrong_or_unknown(name: str) -> None:
    seen, expected, state, words = PATHS[name]
    proof = prove_path(seen, expected)
    assert proof.state is state, proof.reason
    assert words in proof.reason


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


@pytest.mark.parametrize(
    ("seen", "expected", "said"),
    [
        (RIGHT, ONE_RAIL, ()),
        (
            evidence(
                sample("n1", "rail0", tx_bytes=530 * MB, rx_dropped=4),
                sample("n2", "rail0", tx_bytes=530 * MB),
            ),
            ONE_RAIL,
            ("rx_dropped of rail0 on n1 rose by 4",),
        ),
        (evidence(*on_both(tx_bytes=5000 * MB)), ONE_RAIL, ("other traffic ran beside it",)),
        # Any algorithm may move more than the least, without being somebody else's traffic.
        (exchanged(5300 * MB, 5300 * MB), AT_LEAST, ()),
    ],
)
def test_what_is_no_fault_of_a_proven_path_is_said(
    seen: Evidence, expected: Expectation, said: tuple[str, ...]
) -> None:
    proof = prove_path(seen, expected)
    assert proof.state is PathState.PROVEN
    assert len(proof.findings) == len(said)
    assert all(words in found for words, found in zip(said, proof.findings, strict=True))


def test_a_proof_holds_what_each_interface_moved() -> None:
    moved = prove_path(RIGHT, ONE_RAIL).moved_bytes
    assert moved is not None
    assert moved["n1:rail0"] == 530 * MB
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
