"""Name the path that the bytes took instead: by TCP below a verbs device, beside it, or by verbs.

An interface below a Soft-RoCE device counts the device's packets as its own; IPoIB's bytes are in
its port's counters.  Neither may pass for the other.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from fabricproof.traffic.counters import TCP, CounterSample, is_device
from fabricproof.traffic.expectation import (
    MIN_SHARE,
    SLACK_BYTES,
    NodeTraffic,
    PathProof,
    RunTraffic,
    unknown,
    wrong,
)

#: octets of an IPoIB hardware address (RFC 4391, 9.1.1: 20; all of Ethernet's have 6)
_IPOIB_OCTETS = 20

#: TCP's segments over a Soft-RoCE rail that are no path of messages (an MPI's start-up), our choice
FEW_SEGMENTS = 100
#: the most that one carries, in bytes: a jumbo frame (no standard; 9000 by custom)
SEGMENT_BYTES = 9000
#: Segments that may hold this share of what was due are another path; as of a rail that takes part.
TELLING_SHARE = 0.10


def megabytes(count: int) -> str:
    """Return bytes in MB (10^6) for a person, with one decimal."""
    return f"{count / 1e6:.1f} MB"


def describe_detour(run: RunTraffic, node: NodeTraffic) -> str:
    """Return where the bytes went that the rails did not show, as far as counters tell."""
    due, seen = node.due["tx_bytes"], node.moved()
    carried = f"{run.rails} sent {megabytes(seen)}"
    says = f"the benchmark says {node.name} sent {megabytes(due)}, {carried}"
    sent = {each.interface: each.moved("tx_bytes") for each in node.others}
    took = max(sent, key=sent.__getitem__, default="")
    if sent.get(took, 0) < (due - seen) / 2:
        return f"traffic took another path: {says} and no other interface sent the rest"
    says += f", {took} sent {megabytes(sent[took])}"
    if is_device(took) or not all(map(is_device, run.expected.rails)):
        return f"traffic took another path: {says}"
    device = node.over.get(took, "").partition(":")[0]
    under = f" (the interface under {device})" if device else ""
    return f"traffic went over TCP on {took}{under}: UCX or libfabric fell back; {says}"


def describe_arrival(run: RunTraffic, node: NodeTraffic) -> tuple[str, str]:
    """Return where the bytes came in that the rails did not bring, and the interface if known."""
    due, seen = node.due["rx_bytes"], node.moved("rx_bytes")
    says = (
        f"traffic took another path: {node.name} must have received {megabytes(due)} at least, "
        f"{run.rails} brought {megabytes(seen)}"
    )
    away = [each for each in node.others if each.interface not in {TCP, "lo"}]
    brought = {each.interface: each.moved("rx_bytes") for each in away}
    took = max(brought, key=brought.__getitem__, default="")
    if brought.get(took, 0) < MIN_SHARE * (due - seen):
        return says, ""
    return f"{says}, {took} {megabytes(brought[took])}", took


def rails_are_apart(run: RunTraffic) -> Iterator[PathProof]:
    """Refuse several Soft-RoCE devices over one interface as several rails."""
    for node in run.nodes:
        over: dict[str, str] = {}
        for port in node.soft_rails:
            first = over.setdefault(port.parent or port.interface, port.interface)
            if first != port.interface:
                yield wrong(
                    f"{len(run.expected.rails)} rails, but {first} and {port.interface} on "
                    f"{node.name} are two devices over one interface ({port.parent})"
                )


def wires_below_carried_them(run: RunTraffic) -> Iterator[PathProof]:
    """Refuse a Soft-RoCE device's word for itself: the interface below must have moved it too.

    The device counts what it hands to itself as well (Linux drivers/infiniband/sw/rxe/rxe_net.c,
    rxe_loopback); over lo its packets never left the node.
    """
    if run.expected.num_ranks == 1:
        return
    soft = [(node, port) for node in run.nodes for port in node.soft_rails]
    for node, port in soft:
        if unseen := _why_wire_is_unseen(node, port):
            yield unknown(f"{unseen}: the path is not shown")
    for node, port in soft:
        below = node.raw.get(str(port.parent), port)
        for counter, due in node.due.items():
            part = due * port.moved(counter) / (node.moved(counter) or math.inf)
            if part > 0 and below.has(counter) and below.moved(counter) < MIN_SHARE * part:
                yield wrong(
                    f"traffic took no wire: {port.interface.partition(':')[0]} on {node.name} "
                    f"counts {counter} {port.moved(counter)}, {below.interface} below it only "
                    f"{below.moved(counter)} of {part:.0f} due: both ends may be one machine"
                )
    for node in run.nodes:
        yield from _tcp_may_hide(run, node)


def _why_wire_is_unseen(node: NodeTraffic, port: CounterSample) -> str:
    below, where = node.raw.get(port.parent or ""), f"{port.interface} on {node.name}"
    if not port.parent:
        return f"{where} does not say over which interface it is"
    if port.parent == "lo":
        return f"{where} is over lo, which leaves no node"
    if below is None or not (below.has("tx_bytes") and below.has("rx_bytes")):
        return f"no counters of {port.parent} below {where}"
    if below.ran_backwards("tx_bytes") or below.ran_backwards("rx_bytes"):
        reset = "ran backwards (wrapped or reset during the run)"
        return f"counters of {port.parent} below {where} {reset}"
    return ""


def _tcp_may_hide(run: RunTraffic, node: NodeTraffic) -> Iterator[PathProof]:
    """Refuse what a Soft-RoCE rail seems to have moved if TCP may have.

    With several ranks on a node the device counts what it hands to itself, and the wire below shows
    as many bytes if TCP took it.  TCP's segments that no other interface shows went over that wire.
    """
    wires = {str(port.parent) for port in node.soft_rails}
    num_ranks = [rank.node for rank in run.evidence.ranks].count(node.name)
    left = 0
    for each in node.others:
        if each.interface == TCP:
            left += each.moved("OutSegs")
        elif not is_device(each.interface) and each.interface not in wires:
            left -= each.moved("tx_packets")
    is_telling = left * SEGMENT_BYTES >= TELLING_SHARE * node.due["tx_bytes"]
    if num_ranks > 1 and wires and left > FEW_SEGMENTS and is_telling:
        yield unknown(
            f"two paths fit: {node.name} runs several ranks, whose messages to each other its "
            f"device counts too, and sent {left} TCP segments over {'+'.join(wires)}"
        )


def ipoib_carried_none(run: RunTraffic) -> Iterator[PathProof]:
    """Refuse a port's bytes that IPoIB moved, a part of them too: the port counts both.

    So does a Slingshot device what its Ethernet interface moves.
    """
    if not all(map(is_device, run.expected.rails)):
        return
    for node in run.nodes:
        due, on_rails = node.due["tx_bytes"], node.moved()
        netdevs = {each.netdev for each in node.rails}
        moved = {
            each.interface: sent
            for each in node.others
            if (_is_ipoib(each) or each.interface in netdevs)
            and (sent := each.moved("tx_bytes")) > 0
        }
        by_tcp = sum(moved.values())
        if not moved or on_rails - by_tcp >= MIN_SHARE * due:
            continue
        is_port = any(":" in rail for rail in run.expected.rails)
        names, kind = "+".join(moved), "IPoIB" if is_port else f"the interface of {run.rails}"
        reason = (
            f"traffic went over TCP on {names} ({kind}): UCX or libfabric fell back; the benchmark "
            f"says {node.name} sent {megabytes(due)}, {run.rails} sent {megabytes(on_rails)}, of "
            f"which {names} {megabytes(by_tcp)}"
        )
        # Nobody reads which port an IPoIB interface is of: if ports that are no rails moved as
        # much, all of it may be theirs.
        ipoib = sum(max(0, each.moved("tx_bytes")) for each in node.others if _is_ipoib(each))
        ports = sum(each.moved("tx_bytes") for each in node.others if each.is_hardware_port)
        if not 0 < ipoib <= ports or ipoib >= max(SLACK_BYTES, MIN_SHARE * due):
            yield wrong(reason)
        elif ipoib >= SLACK_BYTES:
            yield unknown(f"{reason}, unless a port that is no rail carried those")


def _is_ipoib(sample: CounterSample) -> bool:
    return sample.address is not None and len(sample.address.split(":")) == _IPOIB_OCTETS
