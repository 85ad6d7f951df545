"""What must hold for a proof of the path: ranks in place, counters whole, bytes on the rails alone.

Each test yields what speaks against it; the first counts.  If another interface moved as much as
the rails, nobody knows which path it was.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import product

from fabricproof.traffic.counters import TCP, CounterSample, is_device
from fabricproof.traffic.expectation import (
    MIN_EVEN_SHARE,
    MIN_RAIL_SHARE,
    MIN_SHARE,
    SLACK_BYTES,
    Evidence,
    NodeTraffic,
    PathProof,
    PathState,
    RunTraffic,
    unknown,
    wrong,
)
from fabricproof.traffic.wrong_path import describe_arrival, describe_detour, megabytes


def ranks_are_apart(run: RunTraffic) -> Iterator[PathProof]:
    """Refuse ranks that are missing, worlds of their own, or all on one node."""
    due, seen = run.expected.num_ranks, sorted(rank.rank for rank in run.evidence.ranks)
    if seen != list(range(due)):
        reason = f"ranks 0 to {due - 1} were due, {seen} reported"
        alone = (
            "every rank started as its own world of one: the launcher's PMI does not fit this MPI"
        )
        if seen == [0]:
            yield unknown(f"{reason}: the others were lost, or {alone}")
        else:
            yield unknown(reason) if any(seen) or not seen else wrong(alone)
    elif due > 1 and len(run.nodes) < 2:
        where = run.nodes[0].name
        yield wrong(f"both ranks ran on one node ({where}): its memory was measured, not a fabric")


def ranks_are_where_they_belong(run: RunTraffic) -> Iterator[PathProof]:
    """Refuse ranks on another node than the one they were sent to, and crowded or idle nodes."""
    due_nodes, per_node = run.expected.nodes, run.expected.ranks_per_node
    if per_node is None:
        return
    ranks_of: dict[str, list[int]] = {node.name: [] for node in run.nodes}
    for rank in sorted(run.evidence.ranks, key=lambda rank: rank.rank):
        ranks_of[rank.node].append(rank.rank)
        if due_nodes and rank.node not in due_nodes:
            sent_to = " or ".join(due_nodes)
            yield wrong(f"rank {rank.rank} ran on {rank.node}, it was sent to {sent_to}")
    layout = "; ".join(f"{node}: {', '.join(map(str, there))}" for node, there in ranks_of.items())
    for index, ranks in enumerate(ranks_of.values()):
        if ranks != [*range(index * per_node, (index + 1) * per_node)]:
            asked = f"{per_node} ranks on each node, one after the other, were asked for"
            yield wrong(f"{asked}; the launcher made {layout}")


def prove_one_node(evidence: Evidence) -> PathProof:
    """Compare where the ranks ran with a site that declares one machine; no path is shown."""
    if not evidence.ranks:
        return unknown("no rank reported where it ran")
    if len(evidence.nodes) > 1:
        where = " and ".join(evidence.nodes)
        return wrong(f"the site declares one node, the ranks ran on {where}")
    said = "both ranks on this machine, as the site declares"
    return PathProof(state=PathState.PROVEN, reason=said)


def evidence_is_whole(run: RunTraffic) -> Iterator[PathProof]:
    """Refuse a path whose counters were not read, or cannot be what was counted.

    Other interfaces may come and go (a container's veth): the rails alone carry the proof.
    """
    for node in run.nodes:
        there = {sample.interface: sample for sample in node.rails}
        for rail in run.expected.rails:
            if rail not in there:
                yield unknown(f"no counters of {rail} on {node.name}: the path is not shown")
            elif damage := _damage(there[rail], run):
                yield unknown(f"counters of {rail} on {node.name} {damage}: the path is not shown")


def something_was_due(run: RunTraffic) -> Iterator[PathProof]:
    """Refuse a proof by nothing: any path carries no bytes and no messages."""
    if run.expected.num_ranks > 1 and not any(any(node.due.values()) for node in run.nodes):
        yield unknown("nobody can say what had to pass: the path is not shown")


#: Where InfiniBand's 32-bit counters stop (IBA specification vol. 1, 16.1.3.5: they do not wrap),
#: in bytes: drivers without the extended counters show them as they are.
IB_COUNTER_END_BYTES = 4 * (2**32 - 1)


def _damage(sample: CounterSample, run: RunTraffic) -> str:
    counted = run.expected.sent_messages or run.expected.least_packets
    due = ("tx_bytes", "rx_bytes", "tx_packets") if counted else ("tx_bytes", "rx_bytes")
    absent = [counter for counter in due if not sample.has(counter)]
    if absent:
        said = f"were not read both before and after ({', '.join(absent)})"
        if sample.parent is not None and absent[0] != "tx_packets":
            said += (
                ": rdma_rxe of this kernel counts no bytes; take one with ports/1/counters (Linux "
                "7.2 has them, 6.1 and 6.12 do not)"
            )
        elif is_device(sample.interface) and ":" not in sample.interface:
            said += (
                ": what the cxi provider moves stands in "
                f"/sys/class/cxi/{sample.interface}/device/telemetry alone; let jobs read it"
            )
        return said
    if any(map(sample.ran_backwards, due)):
        return "ran backwards (wrapped or reset during the run)"
    ends = {sample.after["tx_bytes"], sample.after["rx_bytes"]}
    if "ip4OutOctets" in sample.after and ends == {0}:
        # A card of another generation may count its RDMA elsewhere: never moved is never counted.
        return "never moved (ip4OutOctets of irdma): they may not count this card's RDMA"
    if sample.is_hardware_port and IB_COUNTER_END_BYTES in ends:
        return f"stand at the end of their 32 bits (reset them {sample.how_to_reset})"
    return ""


def bytes_took_the_rails(run: RunTraffic) -> Iterator[PathProof]:
    """Refuse a path whose rails sent less than the benchmark did."""
    for node in run.nodes:
        if node.moved() < MIN_SHARE * node.due["tx_bytes"]:
            yield wrong(describe_detour(run, node))


def bytes_came_by_the_rails(run: RunTraffic) -> Iterator[PathProof]:
    """Refuse bytes that left by the rail and came in by another interface.

    Two rails in one network do so where any of them answers for the other's address (Linux
    Documentation/networking/ip-sysctl.rst, arp_ignore).
    """
    nodes = [
        each for each in run.nodes if each.moved("rx_bytes") < MIN_SHARE * each.due["rx_bytes"]
    ]
    if run.expected.num_ranks > 1 and nodes:
        node = max(nodes, key=lambda each: each.due["rx_bytes"] - each.moved("rx_bytes"))
        reason, came_by = describe_arrival(run, node)
        yield replace(wrong(reason), came_by=came_by, lacking=node.name)


def messages_took_the_rails(run: RunTraffic) -> Iterator[PathProof]:
    """Refuse a path whose rails sent fewer packets than messages had to be sent alone."""
    for node in run.nodes:
        due, seen = node.due["tx_packets"], node.moved("tx_packets")
        if due and seen < MIN_SHARE * due:
            yield wrong(
                f"small messages took another path: {node.name} sent {due} messages one by one, "
                f"{run.rails} sent only {seen} packets"
            )


def rails_shared(run: RunTraffic) -> Iterator[PathProof]:
    """Refuse a number of several rails of which one took no part, at either end.

    What left by both may come in by one: rails in one network that answer for each other, or an MPI
    that connects both to one adapter of the other node.
    """
    num_rails = len(run.expected.rails)
    if num_rails < 2 or not run.expected.spread:
        return
    ways = (("tx_bytes", "carried", "{}'s traffic"), ("rx_bytes", "brought", "what {} received"))
    for (counter, verb, whose), node in product(ways, run.nodes):
        total = node.moved(counter)
        if min(node.due[counter], total) < SLACK_BYTES:
            continue  # a node that only acknowledges may do so over one rail
        for rail in node.rails:
            share = rail.moved(counter) / total
            if share < MIN_EVEN_SHARE / num_rails:
                said = f"{rail.interface} {verb} {share:.1%} of {whose.format(node.name)}"
                yield wrong(f"{said}: this is not a {num_rails}-rail number")


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


def no_other_path_fits(run: RunTraffic) -> Iterator[PathProof]:
    """Refuse a rail's bytes as proof where another interface moved as many: which was it?

    Somebody else's traffic on the rail would otherwise hide that this run's took another path.
    """
    for node in run.nodes:
        due, on_rails = node.due["tx_bytes"], node.moved()
        telling = MIN_SHARE * due
        if run.expected.least_bytes is not None:
            # The rails may show the least although a part took another path: the share of a rail
            # that takes part is then enough.
            telling = min(telling, MIN_RAIL_SHARE * on_rails)
        for sample in node.others if due > 0 else ():
            moved = sample.moved("tx_bytes")
            # If more is moved than was foretold, two cards may have shared it.
            stacked = run.expected.exact and sample.interface not in node.over
            if sample.interface == "lo" or moved < max(telling, SLACK_BYTES):
                continue
            if not _is_same_wire(node, sample, "tx_bytes", SAME_WIRE, stacked=stacked):
                on_both = f"{megabytes(on_rails)} and {sample.interface} {megabytes(moved)}"
                says = f"the benchmark says {node.name} sent {megabytes(due)}"
                yield unknown(f"two paths fit: {says}, {run.rails} sent {on_both}")


def no_other_path_fits_messages(run: RunTraffic) -> Iterator[PathProof]:
    """Refuse a rail's packets as proof of messages where another interface sent as many.

    The large messages would hide that the small ones, which are the latency, took that other path.
    """
    expected, is_pingpong = run.expected, run.expected.sent_messages is not None
    for node in run.nodes:
        due, payload = node.due["tx_packets"], node.due["tx_bytes"] > 0
        if not due or (payload and expected.least_packets is not None):
            continue  # bytes are the proof
        # Without payload all messages are alike, and all must have gone there.  Of a ping-pong the
        # smallest sizes may have, a part of all messages.
        telling = max(MIN_SHARE * due, CHATTER_PACKETS)
        if payload:
            telling = max(MIN_RAIL_SHARE * due, CHATTER_BESIDE_A_PAIR)
        for sample in node.others:
            packets = sample.moved("tx_packets")
            if sample.interface in {"lo", TCP} or packets < telling:
                continue
            # Counters of one wire have their own idea of a packet: a port and the interface over
            # it; a macvlan, with an address of its own, and the card below it.
            stacked = is_pingpong and expected.exact and sample.interface not in node.over
            stacked = stacked and not is_device(sample.interface)
            same = SAME_WIRE if is_pingpong else 0.0
            if not _is_same_wire(node, sample, "tx_packets", same, stacked=stacked):
                on_both = f"{node.moved('tx_packets')} packets and {sample.interface} {packets}"
                says = f"{node.name} sent {due} messages one by one at least"
                yield unknown(f"two paths fit: {says}, {run.rails} sent {on_both}")


def _is_same_wire(
    node: NodeTraffic, sample: CounterSample, counter: str, tolerance: float, *, stacked: bool
) -> bool:
    """Tell whether ``sample`` may count what the rails moved a second time.

    ``stacked``: one that is known to be another interface may lie above the rail or below it.
    """
    apart = _known_apart(node, sample)
    if apart is not None and not (apart and stacked):
        return not apart
    on_rails = node.moved(counter)
    return abs(sample.moved(counter) - on_rails) <= tolerance * on_rails


def _known_apart(node: NodeTraffic, sample: CounterSample) -> bool | None:
    """Return whether ``sample`` is another wire than the rails'; None if unknown.

    By the addresses of interfaces (a Soft-RoCE device has that of the interface below it), and by
    the names of devices: mlx5_0:1 and mlx5_1:1.
    """
    if sample.interface in node.over:
        return True  # what it counted of the device above is taken off already
    if sample.netdev is not None and sample.netdev in {each.interface for each in node.rails}:
        return False  # a Slingshot device counts all of its interface
    own, *addresses = (
        node.raw.get(each.parent or each.interface, each).address for each in (sample, *node.rails)
    )
    if own is not None and (own in addresses or None not in addresses):
        return own not in addresses
    return all(is_device(each.interface) for each in (sample, *node.rails)) or None
