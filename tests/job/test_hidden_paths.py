"""Paths that a number of bytes alone would hide: small messages, loops, twin ports."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import pytest

from fabricproof.core.measure import Verdict
from fabricproof.job.evidence.declaration import judge_free_path
from fabricproof.job.evidence.leg_folder import RankRecord, parse_rank
from fabricproof.traffic import Evidence, Expectation, PathState, Rank, prove_path
from fabricproof.traffic.counters import TCP, CounterSample
from leg_folders import make_leg

MB = 1_000_000
NODES = ("n1", "n2")

#: osu_latency as it runs over a rail of 80 Mb/s: 287 messages, most bytes in the largest
FEW = Expectation(
    rails=("rxe0:1",),
    sent_bytes=(20 * MB, 20 * MB),
    sent_messages=(287, 287),
    num_ranks=2,
    spread=False,
)


def counted(
    interface: str,
    mb: float,
    packets: int,
    *,
    address: str | None = None,
    parent: str | None = None,
) -> list[CounterSample]:
    """Return the same counters of one interface on both nodes."""
    moved = {
        "tx_bytes": int(mb * MB),
        "rx_bytes": int(mb * MB),
        "tx_packets": packets,
        "rx_packets": packets,
    }
    return [
        CounterSample(
            node=node,
            interface=interface,
            before=dict.fromkeys(moved, 7),
            after={key: 7 + value for key, value in moved.items()},
            address=address,
            parent=parent,
        )
        for node in NODES
    ]


def segments(sent: int) -> list[CounterSample]:
    return [
        CounterSample(
            node=node,
            interface=TCP,
            before={"OutSegs": 5, "RetransSegs": 0},
            after={"OutSegs": 5 + sent, "RetransSegs": 0},
        )
        for node in NODES
    ]


def evidence(*groups: Iterable[CounterSample], ranks_per_node: int = 1) -> Evidence:
    ranks = tuple(
        Rank(rank=index * ranks_per_node + each, node=node)
        for index, node in enumerate(NODES)
        for each in range(ranks_per_node)
    )
    return Evidence(ranks=ranks, samples=tuple(each for group in groups for each in group))


def soft(mb: float, packets: int, *, below: tuple[float, int] | None = None) -> list[CounterSample]:
    """Return a Soft-RoCE device and the interface below it, which counts Ethernet's headers too."""
    wire = below or (mb + 14 * packets / MB, packets)
    return [
        *counted("rxe0:1", mb, packets, parent="rail0"),
        *counted("rail0", *wire, address="02:00:00:00:00:01"),
    ]


def management(packets: int) -> list[CounterSample]:
    return counted("mgmt0", packets * 500 / MB, packets, address="02:00:00:00:00:09")


#: IMB: it moves more than its table says
UNSEEN = replace(FEW, sent_bytes=(40 * MB,) * 2, sent_messages=None, exact=False)
PORT = counted("mlx5_0:1", 100, 30_000)
STRANGER = counted("mgmt0", 105, 90_000, address="02:00:00:00:00:09")
HIDDEN = "two paths fit: n1 sent 287 messages one by one at least"


@pytest.mark.parametrize(
    ("samples", "expected", "state", "words"),
    [
        # beside the launcher's own packets
        ([*soft(21, 20_000), *management(37)], FEW, PathState.PROVEN, ""),
        # small messages on another path are not hidden by the large ones: the management network,
        # TCP over the wire below the device, the other device
        ([*soft(20.5, 19_000), *management(240)], FEW, PathState.UNKNOWN, HIDDEN),
        (soft(20.5, 19_000, below=(21.5, 19_240)), FEW, PathState.UNKNOWN, HIDDEN),
        ([*soft(20.5, 19_000), *counted("rxe1:1", 0.1, 240, parent="rail1")], FEW,
            PathState.UNKNOWN, HIDDEN),
        # two ports that share what IMB moves unseen are not one wire
        (PORT, replace(UNSEEN, rails=("mlx5_0:1",)), PathState.PROVEN, ""),
        ([*PORT, *counted("mlx5_1:1", 100, 30_000)], replace(UNSEEN, rails=("mlx5_0:1",)),
            PathState.UNKNOWN, "mlx5_1:1 100.0 MB"),
        # a soft device has the address of the interface below it; else a management network that
        # moved about as much would pass for the same wire
        (soft(100, 90_000), UNSEEN, PathState.PROVEN, ""),
        ([*soft(100, 90_000), *STRANGER], UNSEEN, PathState.UNKNOWN, ""),
    ],
)  # fmt: skip
def test_bytes_alone_hide_no_path(
    samples: list[CounterSample], expected: Expectation, state: PathState, words: str
) -> None:
    proof = prove_path(evidence(samples), expected)
    assert proof.state is state, proof.reason
    assert words in proof.reason


@pytest.mark.parametrize(
    ("rail", "twin"),
    [
        # A macvlan and the card below it have addresses of their own.
        (("macvlan0", "02:00:00:00:00:02"), ("eth0", "02:00:00:00:00:01")),
        # A port of an adapter counts what its interface sends,
        (("eth0", "02:00:00:00:00:01"), ("mlx5_0:1", None)),
        # and some drivers' interfaces count what their port sends.
        (("irdma0:1", None), ("eth0", "02:00:00:00:00:01")),
    ],
)
def test_what_counts_the_rails_packets_once_more_is_no_other_path(
    rail: tuple[str, str | None], twin: tuple[str, str | None]
) -> None:
    pair = replace(FEW, rails=(rail[0],))
    own = counted(rail[0], 21, 20_000, address=rail[1])
    again = counted(twin[0], 21.1, 20_030, address=twin[1])
    assert prove_path(evidence(own, again), pair).state is PathState.PROVEN
    other = counted(twin[0], 0.1, 240, address=twin[1])
    assert prove_path(evidence(own, other), pair).state is PathState.UNKNOWN


def many(segments_sent: int) -> Evidence:
    """Return two ranks on each node, with as many bytes in the device as on the wire."""
    local = counted("lo", 1, 3000)
    device = soft(106, 27_000, below=(106.4, 27_000))
    return evidence(device, local, segments(segments_sent + 3000), ranks_per_node=2)


MANY = Expectation(
    rails=("rxe0:1",), sent_bytes=(100 * MB, 100 * MB), num_ranks=4, ranks_per_node=2, spread=False
)


def test_what_a_device_hands_to_itself_does_not_hide_tcp_below_it() -> None:
    assert prove_path(many(60), MANY).state is PathState.PROVEN
    hidden = prove_path(many(27_000), MANY)
    assert hidden.state is PathState.UNKNOWN
    assert "sent 27000 TCP segments over rail0" in hidden.reason


def left_alone(rank: int, wire_mb: int, parent: str) -> RankRecord:
    """Return what a rank saw whose device counts 30 MB."""
    return parse_rank(
        f"""rank {rank}
node n{rank + 1}
fact rail0 address=02:00:00:00:00:0{rank}
fact rxe0:1 parent={parent} state=4:_ACTIVE
before rail0 tx_bytes=0 rx_bytes=0 tx_packets=0 rx_packets=0
before rxe0:1 port_xmit_data=0 port_rcv_data=0 port_xmit_packets=0 port_rcv_packets=0
after rail0 tx_bytes={wire_mb}000000 rx_bytes={wire_mb}000000 tx_packets=9 rx_packets=9
after rxe0:1 port_xmit_data=7500000 port_rcv_data=7500000 port_xmit_packets=7 port_rcv_packets=7
status 0
""",
        "a rank's file",
    )


@pytest.mark.parametrize(
    ("wire_mb", "parent", "verdict"),
    [
        (31, "rail0", Verdict.PASS),
        (0, "rail0", Verdict.UNJUDGED),  # the device's word for itself
        (31, "lo", Verdict.UNJUDGED),
    ],
)
def test_left_alone_a_soft_device_does_not_prove_itself_either(
    wire_mb: int, parent: str, verdict: Verdict
) -> None:
    leg = make_leg(name="untold", rails=("rxe0:1",), free_path="UCX_NET_DEVICES=rxe0:1")
    ranks = (left_alone(0, wire_mb, parent), left_alone(1, wire_mb, parent))
    report = judge_free_path(leg, ranks, (28 * MB, 28 * MB))
    assert report.verdict is verdict, report.quantities[0].reason
