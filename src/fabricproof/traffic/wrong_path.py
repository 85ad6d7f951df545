"""Name the path that the bytes took instead: by TCP below a verbs device, beside it, or by verbs.

An interface below a Soft-RoCE device counts the device's packets as its own; IPoIB's bytes are in
its port's counters.  So that neither passes for the other, what is one's own is told apart first.
"""

from __future__ import annotations

from collections.abc import Mapping

from fabricproof.traffic.counters import TCP, CounterSample, is_device
from fabricproof.traffic.expectation import (
    MIN_SHARE,
    SLACK_BYTES,
    Evidence,
    Expectation,
    PathProof,
    PathState,
    beside_verbs,
    due_to_receive,
    due_to_send,
    packets_due,
    proof,
    sent_over,
)

#: octets of an IPoIB hardware address (RFC 4391, 9.1.1: 20; all of Ethernet's have 6)
_IPOIB_OCTETS = 20

#: TCP's segments over a Soft-RoCE rail that are no path of messages (an MPI's start-up), our choice
FEW_SEGMENTS = 100
#: the most that one carries: a jumbo frame (no standard; 9000 by custom)
SEGMENT_BYTES = 9000
#: Segments that may hold this share of what was due are another path; as of a rail that takes part.
TELLING_SHARE = 0.10
#: what a node's TCP calls them (Linux /proc/net/snmp)
TCP_SEGMENTS = "OutSegs"


def megabytes(count: int) -> str:
    """Return bytes in MB (10^6) for a person, with one decimal."""
    return f"{count / 1e6:.1f} MB"


def is_verbs(expected: Expectation) -> bool:
    """Tell whether the path is ports of HCAs; over interfaces it is sockets."""
    return all(map(is_device, expected.rails))


def is_below(evidence: Evidence, sample: CounterSample) -> bool:
    """Tell whether ``sample`` is the interface below a Soft-RoCE device of its node."""
    return bool(_ports_over(evidence, sample.node, sample.interface))


def address_of(evidence: Evidence, sample: CounterSample) -> str | None:
    """Return the hardware address of an interface, for a Soft-RoCE device of the one below it."""
    below = _wire_of(evidence, sample) if sample.parent else None
    return sample.address if below is None else below.address


def _ports_over(evidence: Evidence, node: str, interface: str) -> list[CounterSample]:
    return [
        each
        for each in evidence.samples
        if each.node == node and each.parent and each.parent == interface
    ]


def describe_detour(
    evidence: Evidence, expected: Expectation, node: str, bytes_due: int, seen: int
) -> str:
    """Return where the bytes went that the rails did not show, as far as counters tell."""
    rails = "+".join(expected.rails)
    others = {
        sample.interface: beside_verbs(evidence, sample)
        for sample in evidence.samples
        if sample.node == node and sample.interface not in expected.rails
    }
    took = max(others, key=others.__getitem__, default=None)
    says = f"the benchmark says {node} sent {megabytes(bytes_due)}, {rails} sent {megabytes(seen)}"
    if took is None or others[took] < (bytes_due - seen) / 2:
        return f"traffic took another path: {says} and no other interface sent the rest"
    says += f", {took} sent {megabytes(others[took])}"
    if is_device(took) or not is_verbs(expected):
        return f"traffic took another path: {says}"
    above = _ports_over(evidence, node, took)
    under = f" (the interface under {_device(above[0])})" if above else ""
    return f"traffic went over TCP on {took}{under}: UCX or libfabric fell back; {says}"


def describe_arrival(
    evidence: Evidence, expected: Expectation, node: str, bytes_due: int, seen: int
) -> tuple[str, str]:
    """Return where the bytes came in that the rails did not bring, and by which interface.

    The interface is empty where none shows them.
    """
    says = (
        f"traffic took another path: {node} must have received {megabytes(bytes_due)} at least, "
        f"{'+'.join(expected.rails)} brought {megabytes(seen)}"
    )
    others = {
        sample.interface: beside_verbs(evidence, sample, "rx_bytes")
        for sample in evidence.samples
        if sample.node == node and sample.interface not in {*expected.rails, TCP, "lo"}
    }
    took = max(others, key=others.__getitem__, default="")
    if not took or others[took] < MIN_SHARE * (bytes_due - seen):
        return says, ""
    return f"{says}, {took} {megabytes(others[took])}", took


def _device(port: CounterSample) -> str:
    return port.interface.partition(":")[0]


def sockets_carried_them(evidence: Evidence, expected: Expectation) -> PathProof | None:
    """Refuse verbs on a path of sockets: the interface below the device counts them too."""
    for node, bytes_due in due_to_send(evidence, expected).items():
        mine = [
            each
            for each in evidence.samples
            if each.node == node and each.interface in expected.rails and is_below(evidence, each)
        ]
        by_verbs = sum(each.moved("tx_bytes") - beside_verbs(evidence, each) for each in mine)
        by_sockets = sent_over(evidence, node, expected.rails) - by_verbs
        if not mine or by_sockets >= MIN_SHARE * bytes_due:
            continue
        devices = "+".join(_device(_ports_over(evidence, node, each.interface)[0]) for each in mine)
        return proof(
            PathState.WRONG,
            f"traffic took another path: the benchmark says {node} sent {megabytes(bytes_due)}, "
            f"{'+'.join(expected.rails)} sent {megabytes(by_sockets)} by sockets and "
            f"{megabytes(by_verbs)} as verbs of {devices}",
        )
    return None


def rails_are_apart(evidence: Evidence, expected: Expectation) -> PathProof | None:
    """Refuse several Soft-RoCE devices over one interface as several rails."""
    for node in evidence.nodes:
        over: dict[str, str] = {}
        for port in _soft_rails(evidence, expected, node):
            parent = port.parent or ""
            if parent in over:
                return proof(
                    PathState.WRONG,
                    f"{len(expected.rails)} rails, but {over[parent]} and {port.interface} on "
                    f"{node} are two devices over one interface ({parent})",
                )
            if parent:
                over[parent] = port.interface
    return None


def wires_below_carried_them(evidence: Evidence, expected: Expectation) -> PathProof | None:
    """Refuse a Soft-RoCE device's word for itself: the interface below must have moved it too."""
    if expected.num_ranks == 1:
        return None
    unseen = _why_wire_is_unseen(evidence, expected)
    if unseen is not None:
        return proof(PathState.UNKNOWN, unseen)
    for counter, due in (
        ("tx_bytes", due_to_send(evidence, expected)),
        ("rx_bytes", due_to_receive(evidence, expected)),
        ("tx_packets", packets_due(evidence, expected)),
    ):
        wrong = _describe_still_wire(evidence, expected, counter, due)
        if wrong is not None:
            return proof(PathState.WRONG, wrong)
    hidden = _why_tcp_may_hide(evidence, expected, due_to_send(evidence, expected))
    return None if hidden is None else proof(PathState.UNKNOWN, hidden)


def _why_wire_is_unseen(evidence: Evidence, expected: Expectation) -> str | None:
    """Return which Soft-RoCE rail's interface below cannot bear witness; None where all can.

    Over lo its packets never left the node.
    """
    for node in evidence.nodes:
        for port in _soft_rails(evidence, expected, node):
            below = _wire_of(evidence, port)
            where = f"{port.interface} on {node}"
            if not port.parent:
                return f"{where} does not say over which interface it is: the path is not shown"
            if port.parent == "lo":
                return f"{where} is over lo, which leaves no node: the path is not shown"
            if below is None or not (below.has("tx_bytes") and below.has("rx_bytes")):
                return f"no counters of {port.parent} below {where}: the path is not shown"
            if below.ran_backwards("tx_bytes") or below.ran_backwards("rx_bytes"):
                return (
                    f"counters of {port.parent} below {where} ran backwards (wrapped or reset "
                    "during the run): the path is not shown"
                )
    return None


def _describe_still_wire(
    evidence: Evidence, expected: Expectation, counter: str, due: Mapping[str, int]
) -> str | None:
    """Return which Soft-RoCE rail's interface below did not move its part; None where all did.

    The device counts what it hands to itself too (Linux drivers/infiniband/sw/rxe/rxe_net.c,
    rxe_loopback): what was due must be seen below it.

    ``due``: node -> how far ``counter`` had to advance on all rails together; of the rail's own
    part of it :data:`MIN_SHARE` must be seen.
    """
    for node, amount in due.items():
        on_rails = sent_over(evidence, node, expected.rails, counter)
        for port in _soft_rails(evidence, expected, node):
            below = _wire_of(evidence, port)
            part = amount * port.moved(counter) / on_rails if on_rails else 0
            if below is not None and below.has(counter) and below.moved(counter) < MIN_SHARE * part:
                device = _device(port)
                return (
                    f"traffic took no wire: {device} on {node} counts {counter} "
                    f"{port.moved(counter)}, {below.interface} below it only "
                    f"{below.moved(counter)} of {part:.0f} due: both ends may be one machine"
                )
    return None


def _why_tcp_may_hide(
    evidence: Evidence, expected: Expectation, due: Mapping[str, int]
) -> str | None:
    """Return where TCP may have moved what a Soft-RoCE rail seems to; None where nowhere.

    With several ranks on a node the device counts what it hands to itself, and the wire below shows
    as many bytes if TCP took it.  The node's TCP then says how many segments it sent; those that no
    other interface shows went over that wire.
    """
    for node, amount in due.items():
        crowded = len([each for each in evidence.ranks if each.node == node]) > 1
        soft = _soft_rails(evidence, expected, node)
        if not crowded or not soft:
            continue
        wires = {port.parent for port in soft}
        here = [each for each in evidence.samples if each.node == node]
        sent = sum(each.moved(TCP_SEGMENTS) for each in here if each.interface == TCP)
        elsewhere = sum(
            each.moved("tx_packets")
            for each in here
            if not is_device(each.interface) and each.interface not in {TCP, *wires}
        )
        left = sent - elsewhere
        if left > FEW_SEGMENTS and left * SEGMENT_BYTES >= TELLING_SHARE * amount:
            names = "+".join(str(each) for each in wires)
            return (
                f"two paths fit: {node} runs several ranks, whose messages to each other its "
                f"device counts too, and sent {left} TCP segments over {names}"
            )
    return None


def _soft_rails(evidence: Evidence, expected: Expectation, node: str) -> list[CounterSample]:
    return [
        each
        for each in evidence.samples
        if each.node == node and each.parent is not None and each.interface in expected.rails
    ]


def _wire_of(evidence: Evidence, port: CounterSample) -> CounterSample | None:
    return next(
        (
            each
            for each in evidence.samples
            if each.node == port.node and each.interface == port.parent
        ),
        None,
    )


def ipoib_carried_none(evidence: Evidence, expected: Expectation) -> PathProof | None:
    """Refuse a port's bytes that IPoIB moved, a part of them too: the port counts both.

    So does a Slingshot device what its Ethernet interface moves.
    """
    for node, bytes_due in due_to_send(evidence, expected).items():
        wrong = _describe_ipoib(evidence, expected, node, bytes_due)
        elsewhere = _bytes_over_ipoib_elsewhere(evidence, expected, node)
        if wrong is None or 0 < elsewhere < SLACK_BYTES:
            continue
        if 0 < elsewhere < MIN_SHARE * bytes_due:
            reason = f"{wrong}, unless a port that is no rail carried those"
            return proof(PathState.UNKNOWN, reason)
        return proof(PathState.WRONG, wrong)
    return None


def _describe_ipoib(
    evidence: Evidence, expected: Expectation, node: str, bytes_due: int
) -> str | None:
    """Return what is wrong where a port's bytes were IPoIB's; None where they were verbs."""
    there = {
        each.interface: each.moved("tx_bytes")
        for each in evidence.samples
        if each.node == node and _is_in_rails(evidence, expected, each)
        if each.moved("tx_bytes") > 0
    }
    on_rails, moved = sent_over(evidence, node, expected.rails), sum(there.values())
    if not there or not is_verbs(expected) or on_rails - moved >= MIN_SHARE * bytes_due:
        return None
    names = "+".join(there)
    is_ethernet = not any(":" in rail for rail in expected.rails)
    kind = f"the interface of {'+'.join(expected.rails)}" if is_ethernet else "IPoIB"
    return (
        f"traffic went over TCP on {names} ({kind}): UCX or libfabric fell back; "
        f"the benchmark says {node} sent {megabytes(bytes_due)}, "
        f"{'+'.join(expected.rails)} sent {megabytes(on_rails)}, of which {names} "
        f"{megabytes(moved)}"
    )


def _is_in_rails(evidence: Evidence, expected: Expectation, sample: CounterSample) -> bool:
    """Tell whether the counters of a rail may have what ``sample`` moved, too."""
    return _is_ipoib(sample) or any(
        each.node == sample.node and each.netdev == sample.interface
        for each in evidence.samples
        if each.interface in expected.rails
    )


def _is_ipoib(sample: CounterSample) -> bool:
    return sample.address is not None and len(sample.address.split(":")) == _IPOIB_OCTETS


def _bytes_over_ipoib_elsewhere(evidence: Evidence, expected: Expectation, node: str) -> int:
    """Return what IPoIB of a node sent, if it may all stand in ports that are no rails; else 0.

    Nobody reads which port an IPoIB interface is of; other ports that moved as much may be it.
    """
    here = [each for each in evidence.samples if each.node == node]
    others = sum(
        each.moved("tx_bytes")
        for each in here
        if ":" in each.interface and each.parent is None and each.interface not in expected.rails
    )
    mine = sum(max(0, each.moved("tx_bytes")) for each in here if _is_ipoib(each))
    return mine if mine <= others else 0
