"""The proof of the road: did the bytes go where the number says they went?

Every node's interface counters are read before and after a run.  A benchmark that says it moved
N bytes over rail 0 while rail 0's counters stood still measured something else.  This module
compares; it reads nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from fabricproof.counters import TCP, CounterSample, read_rises
from fabricproof.detour import (
    bytes_over_ipoib_elsewhere,
    describe_detour,
    describe_ipoib,
    describe_shared_wire,
    describe_still_wire,
    describe_verbs,
    is_below,
    megabytes,
    why_wire_is_unseen,
)
from fabricproof.due import (
    Evidence,
    Expectation,
    Rank,
    beside_verbs,
    due_to_receive,
    due_to_send,
    in_order,
    packets_due,
    sent_over,
)

__all__ = [
    "MAX_SHARE",
    "MIN_RAIL_SHARE",
    "MIN_SHARE",
    "SLACK_BYTES",
    "CounterSample",
    "Evidence",
    "Expectation",
    "Rank",
    "RoadProof",
    "RoadState",
    "megabytes",
    "prove_one_node",
    "prove_road",
]

#: Share of the benchmark's own bytes that must be seen on the intended rails, in each direction.
#: Counters count whole frames, so a true road shows more than the payload, never less; 2 % is
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

#: Two interfaces whose bytes differ by no more than this are one wire counted twice (a VLAN, a
#: bridge, a bond with one busy member); a port's counters hold headers that IPoIB's do not.
SAME_WIRE = 0.10

#: Packets that a node sends beside a leg without being asked: the scheduler's, shells', monitors'.
#: Our choice: fewer are no other road.
CHATTER_PACKETS = 1000

#: Where InfiniBand's 32-bit counters stop (IBA specification vol. 1, 16.1.3.5: they do not wrap),
#: in bytes: drivers without the extended counters show them as they are.
IB_COUNTER_END_BYTES = 4 * (2**32 - 1)


class RoadState(StrEnum):
    """Whether the road is proven."""

    PROVEN = "proven"
    WRONG = "wrong"
    """The traffic went elsewhere: the number is INVALID."""
    UNKNOWN = "unknown"
    """Evidence is missing: nothing is green."""
    DISTURBED = "disturbed"
    """The road is right, but errors rose while the traffic ran."""


@dataclass(frozen=True, kw_only=True)
class RoadProof:
    """The finding about one run's road, in words for a person, with bytes per interface."""

    state: RoadState
    reason: str
    findings: tuple[str, ...] = ()
    moved_bytes: Mapping[str, int] | None = None


def prove_road(evidence: Evidence, expected: Expectation) -> RoadProof:
    """Compare what the counters saw with what the benchmark says it moved.

    Never raises: evidence that is not there or makes no sense is a finding of its own.
    """
    for test in (
        _ranks_are_apart,
        _ranks_are_where_they_belong,
        _evidence_is_whole,
        _rails_are_apart,
        _something_was_due,
        _bytes_took_the_rails,
        _sockets_carried_them,
        _ipoib_carried_none,
        _bytes_came_by_the_rails,
        _messages_took_the_rails,
        _wires_below_carried_them,
        _rails_shared,
        _no_other_road_fits,
        _no_other_road_fits_messages,
    ):
        verdict = test(evidence, expected)
        if verdict is not None:
            return verdict
    return _quiet_or_disturbed(evidence, expected)


def prove_one_node(evidence: Evidence) -> RoadProof:
    """Compare where the ranks ran with a site that declares one machine; no road is shown."""
    if not evidence.ranks:
        return _proof(RoadState.UNKNOWN, "no rank reported where it ran")
    if len(evidence.nodes) > 1:
        where = " and ".join(evidence.nodes)
        return _proof(RoadState.WRONG, f"the site declares one node, the ranks ran on {where}")
    return _proof(RoadState.PROVEN, "both ranks on this machine, as the site declares")


def _ranks_are_apart(evidence: Evidence, expected: Expectation) -> RoadProof | None:
    seen = sorted(rank.rank for rank in evidence.ranks)
    if seen != list(range(expected.num_ranks)):
        reason = f"ranks 0 to {expected.num_ranks - 1} were due, {seen} reported"
        if set(seen) != {0}:
            return _proof(RoadState.UNKNOWN, reason)
        alone = (
            "every rank started as its own world of one: the launcher's PMI does not fit this MPI"
        )
        if len(seen) > 1:
            return _proof(RoadState.WRONG, alone)
        return _proof(RoadState.UNKNOWN, f"{reason}: the others were lost, or {alone}")
    if expected.num_ranks > 1 and len(evidence.nodes) < 2:
        return _proof(
            RoadState.WRONG,
            f"both ranks ran on one node ({evidence.nodes[0]}): its memory was measured, "
            "not a fabric",
        )
    return None


def _ranks_are_where_they_belong(evidence: Evidence, expected: Expectation) -> RoadProof | None:
    """Refuse ranks on another node than the one they were sent to, and crowded or idle nodes."""
    if expected.ranks_per_node is None:
        return None
    by_rank = sorted(evidence.ranks, key=lambda rank: rank.rank)
    for rank in by_rank if expected.nodes else ():
        if rank.node not in expected.nodes:
            due = " or ".join(expected.nodes)
            reason = f"rank {rank.rank} ran on {rank.node}, it was sent to {due}"
            return _proof(RoadState.WRONG, reason)
    order = in_order(evidence)
    for index, node in enumerate(order):
        here = [rank.rank for rank in by_rank if rank.node == node]
        first = index * expected.ranks_per_node
        if here != list(range(first, first + expected.ranks_per_node)):
            layout = "; ".join(
                f"{each}: {', '.join(str(r.rank) for r in by_rank if r.node == each)}"
                for each in order
            )
            return _proof(
                RoadState.WRONG,
                f"{expected.ranks_per_node} ranks on each node, one after the other, were asked "
                f"for; the launcher made {layout}",
            )
    return None


def _evidence_is_whole(evidence: Evidence, expected: Expectation) -> RoadProof | None:
    for node in evidence.nodes:
        there = {sample.interface: sample for sample in evidence.samples if sample.node == node}
        for rail in expected.rails:
            if rail not in there:
                return _proof(
                    RoadState.UNKNOWN, f"no counters of {rail} on {node}: the road is not shown"
                )
            trouble = _damage(there[rail], expected)
            if trouble is not None:
                reason = f"counters of {rail} on {node} {trouble}: the road is not shown"
                return _proof(RoadState.UNKNOWN, reason)
    return None


def _rails_are_apart(evidence: Evidence, expected: Expectation) -> RoadProof | None:
    """Refuse several Soft-RoCE devices over one interface as several rails."""
    wrong = describe_shared_wire(evidence, expected)
    return None if wrong is None else _proof(RoadState.WRONG, wrong)


def _something_was_due(evidence: Evidence, expected: Expectation) -> RoadProof | None:
    """Refuse a proof by nothing: any road carries no bytes and no messages."""
    due = sum(due_to_send(evidence, expected).values())
    due += sum(received for _, received in expected.least_bytes or ())
    due += sum(packets_due(evidence, expected).values())
    if due > 0 or expected.num_ranks == 1:
        return None
    reason = "nobody can say of any byte or message that it had to pass: the road is not shown"
    return _proof(RoadState.UNKNOWN, reason)


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


def _bytes_came_by_the_rails(evidence: Evidence, expected: Expectation) -> RoadProof | None:
    """Refuse bytes that left by the rail and came in by another interface.

    Two rails in one network do so where any of them answers for the other's address (Linux
    Documentation/networking/ip-sysctl.rst, arp_ignore).
    """
    for node, due in due_to_receive(evidence, expected).items():
        seen = sent_over(evidence, node, expected.rails, "rx_bytes")
        if expected.num_ranks > 1 and seen < MIN_SHARE * due:
            return _proof(
                RoadState.WRONG,
                f"traffic took another road: {node} must have received {megabytes(due)} at least, "
                f"{'+'.join(expected.rails)} brought {megabytes(seen)}",
            )
    return None


def _bytes_took_the_rails(evidence: Evidence, expected: Expectation) -> RoadProof | None:
    for node, bytes_due in due_to_send(evidence, expected).items():
        seen = sent_over(evidence, node, expected.rails)
        if seen < MIN_SHARE * bytes_due:
            return _proof(
                RoadState.WRONG, describe_detour(evidence, expected, node, bytes_due, seen)
            )
    return None


def _messages_took_the_rails(evidence: Evidence, expected: Expectation) -> RoadProof | None:
    for node, due in packets_due(evidence, expected).items():
        seen = sent_over(evidence, node, expected.rails, "tx_packets")
        if seen < MIN_SHARE * due:
            return _proof(
                RoadState.WRONG,
                f"small messages took another road: {node} sent {due} messages one by one, "
                f"{'+'.join(expected.rails)} sent only {seen} packets",
            )
    return None


def _sockets_carried_them(evidence: Evidence, expected: Expectation) -> RoadProof | None:
    """Refuse verbs on a road of sockets: the interface below the device counts them too."""
    for node, bytes_due in due_to_send(evidence, expected).items():
        wrong = describe_verbs(evidence, expected, node, bytes_due, MIN_SHARE)
        if wrong is not None:
            return _proof(RoadState.WRONG, wrong)
    return None


def _ipoib_carried_none(evidence: Evidence, expected: Expectation) -> RoadProof | None:
    """Refuse a port's bytes that IPoIB moved, a part of them too: the port counts both."""
    for node, bytes_due in due_to_send(evidence, expected).items():
        wrong = describe_ipoib(evidence, expected, node, bytes_due, MIN_SHARE)
        elsewhere = bytes_over_ipoib_elsewhere(evidence, expected, node)
        if wrong is None or 0 < elsewhere < SLACK_BYTES:
            continue
        if 0 < elsewhere < MIN_SHARE * bytes_due:
            reason = f"{wrong}, unless a port that is no rail carried those"
            return _proof(RoadState.UNKNOWN, reason)
        return _proof(RoadState.WRONG, wrong)
    return None


def _wires_below_carried_them(evidence: Evidence, expected: Expectation) -> RoadProof | None:
    """Refuse a Soft-RoCE device's word for itself: the interface below must have moved it too."""
    if expected.num_ranks == 1:
        return None
    unseen = why_wire_is_unseen(evidence, expected)
    if unseen is not None:
        return _proof(RoadState.UNKNOWN, unseen)
    for counter, due in (
        ("tx_bytes", due_to_send(evidence, expected)),
        ("rx_bytes", due_to_receive(evidence, expected)),
        ("tx_packets", packets_due(evidence, expected)),
    ):
        wrong = describe_still_wire(evidence, expected, counter, due, MIN_SHARE)
        if wrong is not None:
            return _proof(RoadState.WRONG, wrong)
    return None


def _rails_shared(evidence: Evidence, expected: Expectation) -> RoadProof | None:
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
                return _proof(
                    RoadState.WRONG,
                    f"{rail} carried {share:.1%} of {node}'s traffic: this is not a "
                    f"{len(expected.rails)}-rail number",
                )
    return None


def _no_other_road_fits(evidence: Evidence, expected: Expectation) -> RoadProof | None:
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
                return _proof(
                    RoadState.UNKNOWN,
                    f"two roads fit: the benchmark says {node} sent {megabytes(bytes_due)}, "
                    f"{'+'.join(expected.rails)} sent {megabytes(on_rails)} and "
                    f"{sample.interface} {megabytes(moved)}",
                )
    return None


def _no_other_road_fits_messages(evidence: Evidence, expected: Expectation) -> RoadProof | None:
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
                return _proof(
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


def _quiet_or_disturbed(evidence: Evidence, expected: Expectation) -> RoadProof:
    rises = read_rises(evidence.samples, expected.rails)
    moved = {
        f"{sample.node}:{sample.interface}": sample.moved("tx_bytes")
        for sample in evidence.samples
        if sample.interface != TCP
    }
    seen = ", ".join(
        f"{node} sent {megabytes(sent_over(evidence, node, expected.rails))}"
        for node in evidence.nodes
    )
    state, reason = RoadState.PROVEN, f"over {'+'.join(expected.rails)} {seen}"
    if rises.errors:
        state, reason = RoadState.DISTURBED, "; ".join(rises.errors)
    elif rises.doubts:
        state = RoadState.UNKNOWN
        reason = f"whether errors rose is not known: {'; '.join(rises.doubts)}"
    return RoadProof(
        state=state,
        reason=reason,
        findings=(*rises.notes, *_foreign_traffic(evidence, expected)),
        moved_bytes=moved,
    )


def _foreign_traffic(evidence: Evidence, expected: Expectation) -> list[str]:
    due = sum(expected.sent_bytes)
    seen = sum(sent_over(evidence, node, expected.rails) for node in evidence.nodes)
    if not expected.exact or seen <= MAX_SHARE * due + SLACK_BYTES:
        return []
    text = f"the rails carried {megabytes(seen)} where the benchmark moved {megabytes(due)}"
    return [f"{text}: other traffic ran beside it"]


def _proof(state: RoadState, reason: str) -> RoadProof:
    return RoadProof(state=state, reason=reason)
