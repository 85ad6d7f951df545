"""Whether the rails moved what the benchmark says it moved."""

from __future__ import annotations

from fabricproof.traffic.expected import (
    Evidence,
    Expectation,
    due_to_receive,
    due_to_send,
    packets_due,
    sent_over,
)
from fabricproof.traffic.proof import (
    MIN_RAIL_SHARE,
    MIN_SHARE,
    SLACK_BYTES,
    RoadProof,
    RoadState,
    proof,
)
from fabricproof.traffic.wrong_path import (
    bytes_over_ipoib_elsewhere,
    describe_detour,
    describe_ipoib,
    describe_still_wire,
    describe_verbs,
    megabytes,
    why_tcp_may_hide,
    why_wire_is_unseen,
)


def bytes_took_the_rails(evidence: Evidence, expected: Expectation) -> RoadProof | None:
    """Refuse a road whose rails sent less than the benchmark did."""
    for node, bytes_due in due_to_send(evidence, expected).items():
        seen = sent_over(evidence, node, expected.rails)
        if seen < MIN_SHARE * bytes_due:
            return proof(
                RoadState.WRONG, describe_detour(evidence, expected, node, bytes_due, seen)
            )
    return None


def sockets_carried_them(evidence: Evidence, expected: Expectation) -> RoadProof | None:
    """Refuse verbs on a road of sockets: the interface below the device counts them too."""
    for node, bytes_due in due_to_send(evidence, expected).items():
        wrong = describe_verbs(evidence, expected, node, bytes_due, MIN_SHARE)
        if wrong is not None:
            return proof(RoadState.WRONG, wrong)
    return None


def ipoib_carried_none(evidence: Evidence, expected: Expectation) -> RoadProof | None:
    """Refuse a port's bytes that IPoIB moved, a part of them too: the port counts both."""
    for node, bytes_due in due_to_send(evidence, expected).items():
        wrong = describe_ipoib(evidence, expected, node, bytes_due, MIN_SHARE)
        elsewhere = bytes_over_ipoib_elsewhere(evidence, expected, node)
        if wrong is None or 0 < elsewhere < SLACK_BYTES:
            continue
        if 0 < elsewhere < MIN_SHARE * bytes_due:
            reason = f"{wrong}, unless a port that is no rail carried those"
            return proof(RoadState.UNKNOWN, reason)
        return proof(RoadState.WRONG, wrong)
    return None


def bytes_came_by_the_rails(evidence: Evidence, expected: Expectation) -> RoadProof | None:
    """Refuse bytes that left by the rail and came in by another interface.

    Two rails in one network do so where any of them answers for the other's address (Linux
    Documentation/networking/ip-sysctl.rst, arp_ignore).
    """
    for node, due in due_to_receive(evidence, expected).items():
        seen = sent_over(evidence, node, expected.rails, "rx_bytes")
        if expected.num_ranks > 1 and seen < MIN_SHARE * due:
            return proof(
                RoadState.WRONG,
                f"traffic took another road: {node} must have received {megabytes(due)} at least, "
                f"{'+'.join(expected.rails)} brought {megabytes(seen)}",
            )
    return None


def messages_took_the_rails(evidence: Evidence, expected: Expectation) -> RoadProof | None:
    """Refuse a road whose rails sent fewer packets than messages had to be sent alone."""
    for node, due in packets_due(evidence, expected).items():
        seen = sent_over(evidence, node, expected.rails, "tx_packets")
        if seen < MIN_SHARE * due:
            return proof(
                RoadState.WRONG,
                f"small messages took another road: {node} sent {due} messages one by one, "
                f"{'+'.join(expected.rails)} sent only {seen} packets",
            )
    return None


def wires_below_carried_them(evidence: Evidence, expected: Expectation) -> RoadProof | None:
    """Refuse a Soft-RoCE device's word for itself: the interface below must have moved it too."""
    if expected.num_ranks == 1:
        return None
    unseen = why_wire_is_unseen(evidence, expected)
    if unseen is not None:
        return proof(RoadState.UNKNOWN, unseen)
    for counter, due in (
        ("tx_bytes", due_to_send(evidence, expected)),
        ("rx_bytes", due_to_receive(evidence, expected)),
        ("tx_packets", packets_due(evidence, expected)),
    ):
        wrong = describe_still_wire(evidence, expected, counter, due, MIN_SHARE)
        if wrong is not None:
            return proof(RoadState.WRONG, wrong)
    hidden = why_tcp_may_hide(evidence, expected, due_to_send(evidence, expected))
    return None if hidden is None else proof(RoadState.UNKNOWN, hidden)


def rails_shared(evidence: Evidence, expected: Expectation) -> RoadProof | None:
    """Refuse a number of several rails of which one took no part."""
    if len(expected.rails) < 2 or not expected.spread:
        return None
    for node, bytes_due in due_to_send(evidence, expected).items():
        total = sent_over(evidence, node, expected.rails)
        # A node that only acknowledges may do so over one rail.
        if bytes_due < SLACK_BYTES or total < SLACK_BYTES:
            continue
        for rail in expected.rails:
            share = sent_over(evidence, node, [rail]) / total
            if share < MIN_RAIL_SHARE:
                return proof(
                    RoadState.WRONG,
                    f"{rail} carried {share:.1%} of {node}'s traffic: this is not a "
                    f"{len(expected.rails)}-rail number",
                )
    return None
