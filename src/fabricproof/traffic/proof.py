"""What must hold for a proof of the path: ranks in place, counters whole, bytes on the rails alone.

Where another interface moved as much as the rails, nobody knows which path it was.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from fabricproof.traffic.counters import TCP, CounterSample, is_device, reset_of
from fabricproof.traffic.expectation import (
    MIN_EVEN_SHARE,
    MIN_RAIL_SHARE,
    MIN_SHARE,
    SLACK_BYTES,
    Evidence,
    Expectation,
    PathProof,
    PathState,
    beside_verbs,
    due_to_receive,
    due_to_send,
    in_order,
    packets_due,
    proof,
    sent_over,
)
from fabricproof.traffic.wrong_path import (
    address_of,
    describe_arrival,
    describe_detour,
    is_below,
    megabytes,
)


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
    if absent:
        return _unread(sample, absent)
    if any(sample.ran_backwards(counter) for counter in due):
        return "ran backwards (wrapped or reset during the run)"
    if "ip4OutOctets" in sample.after and not (
        sample.after["tx_bytes"] or sample.after["rx_bytes"]
    ):
        # A card of another generation may count its RDMA elsewhere: never moved is never counted.
        return (
            "never moved (ip4OutOctets, ip4InOctets of irdma): they may not count this card's RDMA"
        )
    is_port = ":" in sample.interface and sample.parent is None
    if is_port and IB_COUNTER_END_BYTES in {sample.after["tx_bytes"], sample.after["rx_bytes"]}:
        return f"stand at the end of their 32 bits (reset them {reset_of(sample)})"
    return None


def _unread(sample: CounterSample, absent: Sequence[str]) -> str:
    """Return that a rail's counters are not there, and what would have them where that is known."""
    named = ", ".join(absent)
    if sample.parent is not None and {"tx_bytes", "rx_bytes"} & {*absent}:
        return (
            f"were not read ({named}): rdma_rxe of this kernel counts no bytes; take one with "
            "ports/1/counters (Linux 7.2 has them, 6.1 and 6.12 do not)"
        )
    if is_device(sample.interface) and ":" not in sample.interface:
        return (
            f"were not read ({named}): what the cxi provider moves stands in "
            f"/sys/class/cxi/{sample.interface}/device/telemetry alone, and in no interface's "
            "statistics; let jobs read it"
        )
    return f"were not read both before and after ({named})"


def bytes_took_the_rails(evidence: Evidence, expected: Expectation) -> PathProof | None:
    """Refuse a path whose rails sent less than the benchmark did."""
    for node, bytes_due in due_to_send(evidence, expected).items():
        seen = sent_over(evidence, node, expected.rails)
        if seen < MIN_SHARE * bytes_due:
            return proof(
                PathState.WRONG, describe_detour(evidence, expected, node, bytes_due, seen)
            )
    return None


def bytes_came_by_the_rails(evidence: Evidence, expected: Expectation) -> PathProof | None:
    """Refuse bytes that left by the rail and came in by another interface.

    Two rails in one network do so where any of them answers for the other's address (Linux
    Documentation/networking/ip-sysctl.rst, arp_ignore).
    """
    due = due_to_receive(evidence, expected)
    seen = {node: sent_over(evidence, node, expected.rails, "rx_bytes") for node in due}
    lacking = {node: due[node] - seen[node] for node in due if seen[node] < MIN_SHARE * due[node]}
    if expected.num_ranks < 2 or not lacking:
        return None
    node = max(lacking, key=lacking.__getitem__)
    reason, came_by = describe_arrival(evidence, expected, node, due[node], seen[node])
    return replace(proof(PathState.WRONG, reason), came_by=came_by, lacking=node)


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


def rails_shared(evidence: Evidence, expected: Expectation) -> PathProof | None:
    """Refuse a number of several rails of which one took no part, at either end.

    What left by both may come in by one: where two rails are in one network and one answers for
    the other's address, or an MPI connects both to one adapter of the other node.
    """
    if len(expected.rails) < 2 or not expected.spread:
        return None
    ways = (
        ("carried", "of {}'s traffic", "tx_bytes", due_to_send(evidence, expected)),
        ("brought", "of what {} received", "rx_bytes", due_to_receive(evidence, expected)),
    )
    for verb, whose, counter, due in ways:
        for node, bytes_due in due.items():
            total = sent_over(evidence, node, expected.rails, counter)
            # A node that only acknowledges may do so over one rail.
            if bytes_due < SLACK_BYTES or total < SLACK_BYTES:
                continue
            for rail in expected.rails:
                share = sent_over(evidence, node, [rail], counter) / total
                if share < MIN_EVEN_SHARE / len(expected.rails):
                    return proof(
                        PathState.WRONG,
                        f"{rail} {verb} {share:.1%} {whose.format(node)}: this is not a "
                        f"{len(expected.rails)}-rail number",
                    )
    return None


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
    """Tell whether ``sample`` may count the rails' own packets a second time."""
    packets, on_rails = counted
    apart = _known_apart(evidence, expected, sample)
    if apart is False:
        return True
    if expected.sent_messages is None:
        return apart is None and packets == on_rails
    # Counters of one wire are read one after the other, and have their own idea of a packet: a port
    # and the interface over it; a macvlan, with an address of its own, and the card below it.
    stacked = expected.exact and not is_device(sample.interface) and not is_below(evidence, sample)
    return (apart is None or stacked) and abs(packets - on_rails) <= SAME_WIRE * on_rails


def _known_apart(evidence: Evidence, expected: Expectation, sample: CounterSample) -> bool | None:
    """Return whether ``sample`` is another wire than the rails'; None where nobody can say.

    Addresses tell network interfaces apart, names the ports of devices: mlx5_0:1 and mlx5_1:1.  A
    Soft-RoCE device has the address of the interface below it.
    """
    if is_below(evidence, sample):
        return True  # what it counted of the device above is taken off already
    if sample.netdev is not None and sample.netdev in expected.rails:
        return False  # a Slingshot device counts all of its interface
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
    if is_device(sample.interface) and all(is_device(each.interface) for each in rails):
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
