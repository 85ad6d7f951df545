"""Whether another interface moved as much as the rails: then nobody knows which path it was."""

from __future__ import annotations

from fabricproof.traffic.counters import TCP, CounterSample
from fabricproof.traffic.expected import (
    Evidence,
    Expectation,
    beside_verbs,
    due_to_send,
    packets_due,
    sent_over,
)
from fabricproof.traffic.proof import (
    MIN_RAIL_SHARE,
    MIN_SHARE,
    SLACK_BYTES,
    PathProof,
    PathState,
    proof,
)
from fabricproof.traffic.wrong_path import address_of, is_below, megabytes

#: Two interfaces whose bytes differ by no more than this are one wire counted twice (a VLAN, a
#: bridge, a bond with one busy member); a port's counters hold headers that IPoIB's do not.
SAME_WIRE = 0.10

#: Packets that a node sends beside a leg without being asked: the scheduler's, shells', monitors'.
#: Our choice: fewer are no other path.
CHATTER_PACKETS = 1000

#: The same while a pair of ranks runs one program, where its few messages would be lost in that.
#: Up to 86 packets were seen in 480 legs of two to eight ranks (mpirun's and hydra's, over the
#: management network).
CHATTER_BESIDE_A_PAIR = 100


def no_other_path_fits(evidence: Evidence, expected: Expectation) -> PathProof | None:
    """Refuse a rail's bytes as proof where another interface moved as many: which was it?

    Somebody else's traffic on the rail would otherwise hide that this run's took another path.
    """
    for node, bytes_due in due_to_send(evidence, expected).items():
        on_rails = sent_over(evidence, node, expected.rails)
        for sample in evidence.samples:
            if sample.node != node or sample.interface in {*expected.rails, "lo"}:
                continue
            moved = beside_verbs(evidence, sample)
            if moved < max(_telling_bytes(expected, bytes_due, on_rails), SLACK_BYTES):
                continue
            if bytes_due <= 0:
                continue
            if not _same_wire(evidence, expected, sample, on_rails):
                return proof(
                    PathState.UNKNOWN,
                    f"two paths fit: the benchmark says {node} sent {megabytes(bytes_due)}, "
                    f"{'+'.join(expected.rails)} sent {megabytes(on_rails)} and "
                    f"{sample.interface} {megabytes(moved)}",
                )
    return None


def no_other_path_fits_messages(evidence: Evidence, expected: Expectation) -> PathProof | None:
    """Refuse a rail's packets as proof of messages where another interface sent as many.

    Bytes and packets of the large messages would hide that the small ones, of which latency is
    made, took that other path.
    """
    bytes_due = due_to_send(evidence, expected)
    for node, due in packets_due(evidence, expected).items():
        telling = _telling_packets(expected, due, payload=bytes_due.get(node, 0) > 0)
        if telling is None:
            continue
        on_rails = sent_over(evidence, node, expected.rails, "tx_packets")
        for sample in evidence.samples:
            if sample.node != node or sample.interface in {*expected.rails, "lo", TCP}:
                continue
            packets = beside_verbs(evidence, sample, "tx_packets")
            if packets >= telling and not _same_packets(
                evidence, expected, sample, (packets, on_rails)
            ):
                return proof(
                    PathState.UNKNOWN,
                    f"two paths fit: {node} sent {due} messages one by one at least, "
                    f"{'+'.join(expected.rails)} sent {on_rails} packets and "
                    f"{sample.interface} {packets}",
                )
    return None


def _telling_packets(expected: Expectation, due: int, *, payload: bool) -> float | None:
    """Return what another interface must have sent to be a path that messages may have taken.

    Messages without payload are all alike, and all of them must have gone there.  Of a ping-pong
    the smallest sizes may have, a part of all messages; what else is due has its bytes as proof.
    """
    if not payload:
        return max(MIN_SHARE * due, CHATTER_PACKETS)
    if expected.sent_messages is None or expected.least_packets is not None:
        return None
    return max(MIN_RAIL_SHARE * due, CHATTER_BESIDE_A_PAIR)


def _same_packets(
    evidence: Evidence, expected: Expectation, sample: CounterSample, counted: tuple[int, int]
) -> bool:
    """Tell whether ``sample`` may count the rails' own packets a second time.

    Args:
        evidence: of the run.
        expected: of the run.
        sample: the other interface.
        counted: packets that it sent, and that the rails sent.
    """
    packets, on_rails = counted
    apart = _known_apart(evidence, expected, sample)
    if apart is False:
        return True
    if expected.sent_messages is None:
        return apart is None and packets == on_rails
    # Counters of one wire are read one after the other, and have their own idea of a packet: a port
    # and the interface over it; a macvlan, with an address of its own, and the card below it.
    stacked = expected.exact and ":" not in sample.interface and not is_below(evidence, sample)
    return (apart is None or stacked) and abs(packets - on_rails) <= SAME_WIRE * on_rails


def _known_apart(evidence: Evidence, expected: Expectation, sample: CounterSample) -> bool | None:
    """Return whether ``sample`` is another wire than the rails'; None where nobody can say.

    Addresses tell network interfaces apart, names the ports of devices: mlx5_0:1 and mlx5_1:1.  A
    Soft-RoCE device has the address of the interface below it.
    """
    if is_below(evidence, sample):
        return True  # what it counted of the device above is taken off already
    rails = [
        each
        for each in evidence.samples
        if each.node == sample.node and each.interface in expected.rails
    ]
    addresses = {address_of(evidence, each) for each in rails}
    own = address_of(evidence, sample)
    if own is not None and own in addresses:
        return False
    if own is not None and None not in addresses:
        return True
    if ":" in sample.interface and all(":" in each.interface for each in rails):
        return True
    return None


def _telling_bytes(expected: Expectation, bytes_due: int, on_rails: int) -> float:
    """Return what another interface must have moved to be a path that may have been taken.

    Where only the least is known the rails may show it although a part took that other path: the
    share of a rail that takes part is then enough.
    """
    if expected.least_bytes is None:
        return MIN_SHARE * bytes_due
    return min(MIN_SHARE * bytes_due, MIN_RAIL_SHARE * on_rails)


def _same_wire(
    evidence: Evidence, expected: Expectation, sample: CounterSample, on_rails: int
) -> bool:
    """Tell whether ``sample`` may count the rails' own bytes a second time.

    Where more is moved than was foretold, two cards that moved as much each may also have shared
    it; their addresses tell them apart.
    """
    apart = _known_apart(evidence, expected, sample)
    if apart is not None and (not apart or not expected.exact or is_below(evidence, sample)):
        return not apart
    return abs(sample.moved("tx_bytes") - on_rails) <= SAME_WIRE * on_rails
