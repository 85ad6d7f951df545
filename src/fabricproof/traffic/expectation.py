"""What a run was meant to do, what was seen of it on each node, and what a proof of it says."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum

from fabricproof.traffic.counters import CounterSample, Risen


@dataclass(frozen=True, kw_only=True)
class Rank:
    """Where one rank ran: its number and its node."""

    rank: int
    node: str


@dataclass(frozen=True, kw_only=True)
class Evidence:
    """What was seen of one run: the ranks, and every interface of every node that took part."""

    ranks: tuple[Rank, ...]
    samples: tuple[CounterSample, ...]

    @property
    def nodes(self) -> tuple[str, ...]:
        """The nodes that ran ranks, in the order of their lowest rank."""
        by_rank = sorted(self.ranks, key=lambda rank: (rank.rank, rank.node))
        return tuple(dict.fromkeys(rank.node for rank in by_rank))


@dataclass(frozen=True, kw_only=True)
class Expectation:
    """What the run was meant to do.

    Attributes:
        rails: interface or port names of the intended path, the same on every node.
        sent_bytes: payload that the first and the second half of the ranks must have sent, by the
            benchmark's own repetitions.
        num_ranks: how many ranks the run was asked for.
        spread: whether every rail of several must carry a fair share (bandwidth, large messages).
        exact: whether ``sent_bytes`` is all that the benchmark moves (IMB warms up with more).
        sent_messages: messages of each half that wait for an answer (ping-pong), so that each is
            at least one packet on the rail; None if messages may share packets.  Bytes alone would
            miss small messages that went elsewhere.
        ranks_per_node: how many ranks each node was to run, one after the other; None if any.
        nodes: the nodes that were to run them; empty if any would do.
        least_bytes: in place of ``sent_bytes`` if these depend on the algorithm: what each node, in
            the order of its lowest rank, must send and receive at least.
        least_packets: likewise the packets that each node must send.
    """

    rails: tuple[str, ...]
    sent_bytes: tuple[int, int]
    num_ranks: int
    spread: bool
    exact: bool = True
    sent_messages: tuple[int, int] | None = None
    ranks_per_node: int | None = None
    nodes: tuple[str, ...] = ()
    least_bytes: tuple[tuple[int, int], ...] | None = None
    least_packets: tuple[int, ...] | None = None


#: Share of the benchmark's own bytes that must be seen on the intended rails, in each direction.
#: Counters count whole frames, so a true path shows more than the payload, never less; 2 % is
#: left for a last frame still under way when the counter was read.
MIN_SHARE = 0.98

#: Above this multiple of the payload the rail carried somebody else's traffic as well.  Headers
#: cost 6 % at MTU 1500 (78 of 1538 bytes), small messages far more, which the slack below takes.
MAX_SHARE = 1.25

#: Bytes of slack on either side: start-up, handshakes, acknowledgements, small messages' headers.
SLACK_BYTES = 4 * 1024 * 1024

#: With several rails each must carry at least this part of an even share; less is a rail that took
#: no part (ucx#9520: multi-rail that silently used one rail).
MIN_EVEN_SHARE = 0.2

#: Share of what the rails carried from which another path may have been taken: a rail of two that
#: takes part has as much.
MIN_RAIL_SHARE = MIN_EVEN_SHARE / 2


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
    """The finding about one run's path, in words for a person, with bytes per interface.

    Attributes:
        findings: what else is to be known.
        moved_bytes: sent by each interface; None if nothing was counted.
        came_by: the interface that brought what a rail should have; empty if none or unknown.
        rose: node, interface and counter of each error that rose.
        lacking: the node that they came to; empty if that is not what is wrong.
    """

    state: PathState
    reason: str
    findings: tuple[str, ...] = ()
    moved_bytes: Mapping[str, int] | None = None
    came_by: str = ""
    rose: tuple[Risen, ...] = ()
    lacking: str = ""


def wrong(reason: str) -> PathProof:
    """Return that the traffic went elsewhere."""
    return PathProof(state=PathState.WRONG, reason=reason)


def unknown(reason: str) -> PathProof:
    """Return that the path is not shown."""
    return PathProof(state=PathState.UNKNOWN, reason=reason)


#: What the interface below a Soft-RoCE device counts of each packet beside what the device counts,
#: in bytes and at most: the header of Ethernet with a VLAN tag (IEEE 802.3, 802.1Q).  The device
#: counts from the IP header on: measured with Linux 7.3, 14 bytes more for each of 59000 packets.
SOFT_HEADER_BYTES = 18


@dataclass(frozen=True, kw_only=True)
class NodeTraffic:
    """One node of a run: what it was due to move, and what its interfaces counted.

    Attributes:
        due: ``tx_bytes`` and ``rx_bytes`` of payload, ``tx_packets`` of messages that cannot share
            one; 0 if nobody can say.
        rails: the interfaces or ports of the intended path.
        others: all other ones, ``lo`` and the node's TCP too.
        raw: all of them as they were counted.  In ``rails`` and ``others`` an interface below a
            Soft-RoCE device has only what went by sockets.
        over: interface -> the port of a Soft-RoCE device over it.
    """

    name: str
    due: Mapping[str, int]
    rails: tuple[CounterSample, ...]
    others: tuple[CounterSample, ...]
    raw: Mapping[str, CounterSample]
    over: Mapping[str, str]

    @property
    def soft_rails(self) -> tuple[CounterSample, ...]:
        """Those of the rails that are ports of Soft-RoCE devices."""
        return tuple(each for each in self.rails if each.parent is not None)

    def moved(self, counter: str = "tx_bytes") -> int:
        """Return how far ``counter`` of the rails advanced together."""
        return sum(each.moved(counter) for each in self.rails)


@dataclass(frozen=True, kw_only=True)
class RunTraffic:
    """Evidence and expectation, joined node by node, in the order of their lowest rank."""

    evidence: Evidence
    expected: Expectation
    nodes: tuple[NodeTraffic, ...]

    @property
    def rails(self) -> str:
        """``rail0+rail1``, for a person."""
        return "+".join(self.expected.rails)


def join_by_node(evidence: Evidence, expected: Expectation) -> RunTraffic:
    """Return what each node's interfaces counted, beside what was due of them."""
    nodes = []
    for name, due in _due(evidence, expected).items():
        raw = {each.interface: each for each in evidence.samples if each.node == name}
        over = {each.parent: each.interface for each in raw.values() if each.parent}
        samples = [
            _by_sockets(each, raw.values()) if each.interface in over else each
            for each in raw.values()
        ]
        rails, others = (
            tuple(each for each in samples if (each.interface in expected.rails) is is_rail)
            for is_rail in (True, False)
        )
        nodes.append(
            NodeTraffic(name=name, due=due, rails=rails, others=others, raw=raw, over=over)
        )
    return RunTraffic(evidence=evidence, expected=expected, nodes=tuple(nodes))


def _due(evidence: Evidence, expected: Expectation) -> dict[str, dict[str, int]]:
    counters = ("tx_bytes", "rx_bytes", "tx_packets")
    due = {node: dict.fromkeys(counters, 0) for node in evidence.nodes}
    by_rank = [rank.node for rank in sorted(evidence.ranks, key=lambda rank: rank.rank)]
    half = max(1, len(by_rank) // 2)
    halves = ({*by_rank[:half]}, {*by_rank[half:]})
    sent, least = expected.sent_bytes, expected.least_bytes
    of_halves = (sent, sent[::-1]) if least is None else ((), ())
    for counter, amounts in zip(counters, (*of_halves, expected.sent_messages or ()), strict=True):
        for amount, nodes in zip(amounts, halves, strict=False):
            for node in nodes:
                due[node][counter] += amount // len(nodes)
    of_nodes = zip(*least, strict=True) if least else ((), ())
    for counter, of_each in zip(counters, (*of_nodes, expected.least_packets or ()), strict=True):
        for node, amount in zip(due, of_each, strict=False):
            due[node][counter] = amount
    return due


def _by_sockets(sample: CounterSample, others: Iterable[CounterSample]) -> CounterSample:
    """Return an interface without what the Soft-RoCE ports over it moved.

    Their packets are UDP to the interface, which counts them a second time.
    """
    ports, after = [each for each in others if each.parent == sample.interface], dict(sample.after)
    for way in ("tx", "rx"):
        packets = sum(each.moved(f"{way}_packets") for each in ports)
        by_verbs = sum(each.moved(f"{way}_bytes") for each in ports) + SOFT_HEADER_BYTES * packets
        for counter, taken in ((f"{way}_bytes", by_verbs), (f"{way}_packets", packets)):
            if sample.moved(counter) > 0:
                after[counter] -= min(taken, sample.moved(counter))
    return replace(sample, after=after)
