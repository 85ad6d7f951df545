"""Whether another interface moved as much as the rails: then nobody knows which road it was."""

from __future__ import annotations

from fabricproof.counters import TCP, CounterSample
from fabricproof.detour import is_below, megabytes
from fabricproof.due import (
    Evidence,
    Expectation,
    beside_verbs,
    due_to_send,
    packets_due,
    sent_over,
)
from fabricproof.road.proof import (
    MIN_RAIL_SHARE,
    MIN_SHARE,
    SLACK_BYTES,
    RoadProof,
    RoadState,
    proof,
)

#: Two interfaces whose bytes differ by no more than this are one wire counted twice (a VLAN, a
#: bridge, a bond with one busy member); a port's counters hold headers that IPoIB's do not.
SAME_WIRE = 0.10

#: Packets that a node sends beside a leg without being asked: the scheduler's, shells', monitors'.
#: Our choice: fewer are no other road.
CHATTER_PACKETS = 1000


def no_other_road_fits(evidence: Evidence, expected: Expectation) -> RoadProof | None:
    """Refuse a rail's bytes as proof where another interface moved as many: which was it?

    Somebody else's traffic on the rail would otherwise hide that this run's took another road.
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
                    RoadState.UNKNOWN,
                    f"two roads fit: the benchmark says {node} sent {megabytes(bytes_due)}, "
                    f"{'+'.join(expected.rails)} sent {megabytes(on_rails)} and "
                    f"{sample.interface} {megabytes(moved)}",
                )
    return None


def no_other_road_fits_messages(evidence: Evidence, expected: Expectation) -> RoadProof | None:
    """Refuse a rail's packets as proof of messages without payload where others sent as many."""
    bytes_due = due_to_send(evidence, expected)
    for node, due in packets_due(evidence, expected).items():
        if bytes_due.get(node, 0) > 0:
            continue
        addresses = _rail_addresses(evidence, expected, node)
        for sample in evidence.samples:
            if sample.node != node or sample.interface in {*expected.rails, "lo", TCP}:
                continue
            packets, on_rails = (
                beside_verbs(evidence, sample, "tx_packets"),
                sent_over(evidence, node, expected.rails, "tx_packets"),
            )
            same_wire = sample.address in addresses - {None} or (
                packets == on_rails
                and (sample.address is None or None in addresses)
                and not is_below(evidence, sample)
            )
            if packets >= max(MIN_SHARE * due, CHATTER_PACKETS) and not same_wire:
                return proof(
                    RoadState.UNKNOWN,
                    f"two roads fit: {node} sent {due} messages without payload at least, "
                    f"{'+'.join(expected.rails)} sent {on_rails} packets and "
                    f"{sample.interface} {packets}",
                )
    return None


def _rail_addresses(evidence: Evidence, expected: Expectation, node: str) -> set[str | None]:
    """Return the addresses of a node's rails, None among them where one is not known."""
    return {
        each.address
        for each in evidence.samples
        if each.node == node and each.interface in expected.rails
    }


def _telling_bytes(expected: Expectation, bytes_due: int, on_rails: int) -> float:
    """Return what another interface must have moved to be a road that may have been taken.

    Where only the least is known the rails may show it although a part took that other road: the
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
    if is_below(evidence, sample):
        return False  # what it counted of the device above is taken off already
    addresses = _rail_addresses(evidence, expected, sample.node)
    if sample.address is not None and sample.address in addresses:
        return True
    apart = sample.address is not None and None not in addresses
    if apart and not expected.exact:
        return False
    return abs(sample.moved("tx_bytes") - on_rails) <= SAME_WIRE * on_rails
