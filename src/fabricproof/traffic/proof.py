"""What a proof of the path says; its tests: ranks in place, counters whole, bytes on the rails."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from fabricproof.traffic.counters import CounterSample
from fabricproof.traffic.expected import (
    Evidence,
    Expectation,
    due_to_receive,
    due_to_send,
    in_order,
    packets_due,
    sent_over,
)
from fabricproof.traffic.wrong_path import (
    bytes_over_ipoib_elsewhere,
    describe_detour,
    describe_ipoib,
    describe_shared_wire,
    describe_still_wire,
    describe_verbs,
    megabytes,
    why_tcp_may_hide,
    why_wire_is_unseen,
)

#: Share of the benchmark's own bytes that must be seen on the intended rails, in each direction.
#: Counters count whole frames, so a true path shows more than the payload, never less; 2 % is
#: left for a last frame still under way when the counter was read.
MIN_SHARE = 0.98

#: Above this multiple of the payload the rail carried somebody else's traffic as well.  Headers
#: cost 6 % at MTU 1500 (78 of 1538 bytes), small messages far more, which the slack below takes.
MAX_SHARE = 1.25

#: Bytes of slack on either side: start-up, handshakes, acknowledgements, small messages' headers.
SLACK_BYTES = 4 * 1024 * 1024

#: With several rails each must carry at least this share of what all rails carried; less is a
#: rail that took no part (ucx#9520: multi-rail that silently used one rail).
MIN_RAIL_SHARE = 0.10


class PathState(StrEnum):
    """Whether the path is proven."""

    PROVEN = "proven"
    WRONG = "wrong"
    """The traffic went elsewhere: the number is INVALID."""
    UNKNOWN = "unknown"
    """Evidence is missing: nothing is green."""
    DISTURBED = "disturbed"
    """The path is right, but errors rose while the traffic ran."""


@dataclass(frozen=True, kw_only=True)
class PathProof:
    """The finding about one run's path, in words for a person, with bytes per interface."""

    state: PathState
    reason: str
    findings: tuple[str, ...] = ()
    moved_bytes: Mapping[str, int] | None = None


def proof(state: PathState, reason: str) -> PathProof:
    """Return a finding that has nothing beside its reason."""
    return PathProof(state=state, reason=reason)


def ranks_are_apart(evidence: Evidence, expected: Expectation) -> PathProof | None:
    """Refuse ranks that are missing, worlds of their own, or all on one node."""
    seen = sorted(rank.rank for rank in evidence.ranks)
    if seen != list(range(expected.num_ranks)):
        reason = f"ranks 0 to {expected.num_ranks - 1} were due, {seen} reported"
        if set(seen) != {0}:
            return proof(PathState.UNKNOWN, reason)
        alone = (
            "every rank started as its own world of one: the launcher's PMI does not fit this MPI"
        )
        if len(seen) > 1:
            return proof(PathState.WRONG, alone)
        return proof(PathState.UNKNOWN, f"{reason}: the others were lost, or {alone}")
    if expected.num_ranks > 1 and len(evidence.nodes) < 2:
        return proof(
            PathState.WRONG,
            f"both ranks ran on one node ({evidence.nodes[0]}): its memory was measured, "
            "not a fabric",
        )
    return None


def ranks_are_where_they_belong(evidence: Evidence, expected: Expectation) -> PathProof | None:
    """Refuse ranks on another node than the one they were sent to, and crowded or idle nodes."""
    if expected.ranks_per_node is None:
        return None
    by_rank = sorted(evidence.ranks, key=lambda rank: rank.rank)
    for rank in by_rank if expected.nodes else ():
        if rank.node not in expected.nodes:
            due = " or ".join(expected.nodes)
            reason = f"rank {rank.rank} ran on {rank.node}, it was sent to {due}"
            return proof(PathState.WRONG, reason)
    order = in_order(evidence)
    for index, node in enumerate(order):
        here = [rank.rank for rank in by_rank if rank.node == node]
        first = index * expected.ranks_per_node
        if here != list(range(first, first + expected.ranks_per_node)):
            layout = "; ".join(
                f"{each}: {', '.join(str(r.rank) for r in by_rank if r.node == each)}"
                for each in order
            )
            return proof(
                PathState.WRONG,
                f"{expected.ranks_per_node} ranks on each node, one after the other, were asked "
                f"for; the launcher made {layout}",
            )
    return None


def prove_one_node(evidence: Evidence) -> PathProof:
    """Compare where the ranks ran with a site that declares one machine; no path is shown."""
    if not evidence.ranks:
        return proof(PathState.UNKNOWN, "no rank reported where it ran")
    if len(evidence.nodes) > 1:
        where = " and ".join(evidence.nodes)
        return proof(PathState.WRONG, f"the site declares one node, the ranks ran on {where}")
    return proof(PathState.PROVEN, "both ranks on this machine, as the site declares")


#: Where InfiniBand's 32-bit counters stop (IBA specification vol. 1, 16.1.3.5: they do not wrap),
#: in bytes: drivers without the extended counters show them as they are.
IB_COUNTER_END_BYTES = 4 * (2**32 - 1)


def evidence_is_whole(evidence: Evidence, expected: Expectation) -> PathProof | None:
    """Refuse a path whose counters were not read, or cannot be what was counted."""
    for node in evidence.nodes:
        there = {sample.interface: sample for sample in evidence.samples if sample.node == node}
        for rail in expected.rails:
            if rail not in there:
                return proof(
                    PathState.UNKNOWN, f"no counters of {rail} on {node}: the path is not shown"
                )
            trouble = _damage(there[rail], expected)
            if trouble is not None:
                reason = f"counters of {rail} on {node} {trouble}: the path is not shown"
                return proof(PathState.UNKNOWN, reason)
    return None


def rails_are_apart(evidence: Evidence, expected: Expectation) -> PathProof | None:
    """Refuse several Soft-RoCE devices over one interface as several rails."""
    wrong = describe_shared_wire(evidence, expected)
    return None if wrong is None else proof(PathState.WRONG, wrong)


def something_was_due(evidence: Evidence, expected: Expectation) -> PathProof | None:
    """Refuse a proof by nothing: any path carries no bytes and no messages."""
    due = sum(due_to_send(evidence, expected).values())
    due += sum(received for _, received in expected.least_bytes or ())
    due += sum(packets_due(evidence, expected).values())
    if due > 0 or expected.num_ranks == 1:
        return None
    reason = "nobody can say of any byte or message that it had to pass: the path is not shown"
    return proof(PathState.UNKNOWN, reason)


def _damage(sample: CounterSample, expected: Expectation) -> str | None:
    """Return what is wrong with a rail's counters, or None.

    Other interfaces may come and go (a container's veth): the rails alone carry the proof.
    """
    counted = expected.sent_messages or expected.least_packets
    due = ["tx_bytes", "rx_bytes"] + (["tx_packets"] if counted else [])
    absent = [counter for counter in due if not sample.has(counter)]
    if sample.parent is not None and {"tx_bytes", "rx_bytes"} & {*absent}:
        return (
            f"were not read ({', '.join(absent)}): rdma_rxe of this kernel counts no bytes; take "
            "one with ports/1/counters (Linux 7.2 has them, 6.1 and 6.12 do not)"
        )
    if absent:
        return f"were not read both before and after ({', '.join(absent)})"
    if any(sample.ran_backwards(counter) for counter in due):
        return "ran backwards (wrapped or reset during the run)"
    is_port = ":" in sample.interface and sample.parent is None
    if is_port and IB_COUNTER_END_BYTES in {sample.after["tx_bytes"], sample.after["rx_bytes"]}:
        return "stand at the end of their 32 bits (reset them: perfquery -R)"
    return None


def bytes_took_the_rails(evidence: Evidence, expected: Expectation) -> PathProof | None:
    """Refuse a path whose rails sent less than the benchmark did."""
    for node, bytes_due in due_to_send(evidence, expected).items():
        seen = sent_over(evidence, node, expected.rails)
        if seen < MIN_SHARE * bytes_due:
            return proof(
                PathState.WRONG, describe_detour(evidence, expected, node, bytes_due, seen)
            )
    return None


def sockets_carried_them(evidence: Evidence, expected: Expectation) -> PathProof | None:
    """Refuse verbs on a path of sockets: the interface below the device counts them too."""
    for node, bytes_due in due_to_send(evidence, expected).items():
        wrong = describe_verbs(evidence, expected, node, bytes_due, MIN_SHARE)
        if wrong is not None:
            return proof(PathState.WRONG, wrong)
    return None


def ipoib_carried_none(evidence: Evidence, expected: Expectation) -> PathProof | None:
    """Refuse a port's bytes that IPoIB moved, a part of them too: the port counts both."""
    for node, bytes_due in due_to_send(evidence, expected).items():
        wrong = describe_ipoib(evidence, expected, node, bytes_due, MIN_SHARE)
        elsewhere = bytes_over_ipoib_elsewhere(evidence, expected, node)
        if wrong is None or 0 < elsewhere < SLACK_BYTES:
            continue
        if 0 < elsewhere < MIN_SHARE * bytes_due:
            reason = f"{wrong}, unless a port that is no rail carried those"
            return proof(PathState.UNKNOWN, reason)
        return proof(PathState.WRONG, wrong)
    return None


def bytes_came_by_the_rails(evidence: Evidence, expected: Expectation) -> PathProof | None:
    """Refuse bytes that left by the rail and came in by another interface.

    Two rails in one network do so where any of them answers for the other's address (Linux
    Documentation/networking/ip-sysctl.rst, arp_ignore).
    """
    for node, due in due_to_receive(evidence, expected).items():
        seen = sent_over(evidence, node, expected.rails, "rx_bytes")
        if expected.num_ranks > 1 and seen < MIN_SHARE * due:
            return proof(
                PathState.WRONG,
                f"traffic took another path: {node} must have received {megabytes(due)} at least, "
                f"{'+'.join(expected.rails)} brought {megabytes(seen)}",
            )
    return None


def messages_took_the_rails(evidence: Evidence, expected: Expectation) -> PathProof | None:
    """Refuse a path whose rails sent fewer packets than messages had to be sent alone."""
    for node, due in packets_due(evidence, expected).items():
        seen = sent_over(evidence, node, expected.rails, "tx_packets")
        if seen < MIN_SHARE * due:
            return proof(
                PathState.WRONG,
                f"small messages took another path: {node} sent {due} messages one by one, "
                f"{'+'.join(expected.rails)} sent only {seen} packets",
            )
    return None


def wires_below_carried_them(evidence: Evidence, expected: Expectation) -> PathProof | None:
    """Refuse a Soft-RoCE device's word for itself: the interface below must have moved it too."""
    if expected.num_ranks == 1:
        return None
    unseen = why_wire_is_unseen(evidence, expected)
    if unseen is not None:
        return proof(PathState.UNKNOWN, unseen)
    for counter, due in (
        ("tx_bytes", due_to_send(evidence, expected)),
        ("rx_bytes", due_to_receive(evidence, expected)),
        ("tx_packets", packets_due(evidence, expected)),
    ):
        wrong = describe_still_wire(evidence, expected, counter, due, MIN_SHARE)
        if wrong is not None:
            return proof(PathState.WRONG, wrong)
    hidden = why_tcp_may_hide(evidence, expected, due_to_send(evidence, expected))
    return None if hidden is None else proof(PathState.UNKNOWN, hidden)


def rails_shared(evidence: Evidence, expected: Expectation) -> PathProof | None:
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
                    PathState.WRONG,
                    f"{rail} carried {share:.1%} of {node}'s traffic: this is not a "
                    f"{len(expected.rails)}-rail number",
                )
    return None
