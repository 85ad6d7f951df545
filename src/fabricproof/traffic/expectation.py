"""What a run was meant to do, what was seen of it on each node, and what a proof of it says."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property

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
        exact: whether ``sent_bytes`` is all that the benchmark moves.  IMB warms up with a whole
            benchmark: more on the rails is then no stranger's traffic.
        sent_messages: messages that each half sent and that each wait for an answer (ping-pong), so
            that each is at least one packet on the rail; None if messages may share packets.  Bytes
            alone would miss small messages that went elsewhere while large ones took the rail.
        ranks_per_node: how many ranks each node was to run, one after the other; None if any.
        nodes: the nodes that were to run them; empty if any would do.
        least_bytes: if nobody can foretell the bytes: what each node, in the order of its lowest
            rank, must send and receive whatever the algorithm.  Then it stands for ``sent_bytes``.
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
        came_by: the interface by which the bytes came in that a rail should have brought; empty if
            that is not what is wrong, or nobody knows.
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
class Node:
    """One node of a run: what it was due to move, and what its interfaces counted.

    Attributes:
        due: ``tx_bytes`` and ``rx_bytes`` of payload, ``tx_packets`` of messages that cannot share
            one; absent if nobody can say.
        samples: of all its interfaces, ``lo`` and its TCP too.
        rails: those of the intended path.
    """

    name: str
    due: Mapping[str, int]
    samples: tuple[CounterSample, ...]
    rails: tuple[CounterSample, ...]

    @cached_property
    def others(self) -> tuple[CounterSample, ...]:
        """Those of no intended path."""
        return tuple(each for each in self.samples if each not in self.rails)

    @cached_property
    def soft_rails(self) -> tuple[CounterSample, ...]:
        """The rails that are ports of Soft-RoCE devices."""
        return tuple(each for each in self.rails if each.parent is not None)

    def moved(self, counter: str = "tx_bytes") -> int:
        """Return how far ``counter`` of the rails advanced together."""
        return sum(each.moved(counter) for each in self.rails)

    def ports_over(self, sample: CounterSample) -> list[CounterSample]:
        """Return the ports of Soft-RoCE devices over an interface."""
        return [each for each in self.samples if each.parent and each.parent == sample.interface]

    def below(self, port: CounterSample) -> CounterSample | None:
        """Return the interface below the port of a Soft-RoCE device; None if nobody counted it."""
        return next((each for each in self.samples if each.interface == port.parent), None)

    def beside_verbs(self, sample: CounterSample, counter: str = "tx_bytes") -> int:
        """Return how far ``counter`` advanced, without what Soft-RoCE moved over the interface.

        Its packets are UDP to the interface below, which counts them a second time; what is left
        there went by sockets.
        """
        ports = self.ports_over(sample)
        way, _, unit = counter.partition("_")
        headers = SOFT_HEADER_BYTES * sum(each.moved(f"{way}_packets") for each in ports)
        by_verbs = sum(each.moved(counter) for each in ports) + (headers if unit == "bytes" else 0)
        return max(0, sample.moved(counter) - by_verbs)


@dataclass(frozen=True, kw_only=True)
class Run:
    """Evidence and expectation, joined node by node, in the order of their lowest rank."""

    evidence: Evidence
    expected: Expectation
    nodes: tuple[Node, ...]

    @property
    def rails(self) -> str:
        """``rail0+rail1``, for a person."""
        return "+".join(self.expected.rails)


def join_by_node(evidence: Evidence, expected: Expectation) -> Run:
    """Return the evidence of each node beside what was due of it."""
    by_rank = [rank.node for rank in sorted(evidence.ranks, key=lambda rank: rank.rank)]
    half = max(1, len(by_rank) // 2)
    halves = ({*by_rank[:half]}, {*by_rank[half:]})
    of_halves: dict[str, Sequence[int]] = {}
    of_nodes: dict[str, Sequence[int]] = {}
    if expected.least_bytes is None:
        of_halves = {"tx_bytes": expected.sent_bytes, "rx_bytes": expected.sent_bytes[::-1]}
    else:
        of_nodes["tx_bytes"] = [sent for sent, _ in expected.least_bytes]
        of_nodes["rx_bytes"] = [received for _, received in expected.least_bytes]
    of_halves["tx_packets"] = expected.sent_messages or ()
    of_nodes["tx_packets"] = expected.least_packets or ()
    due: dict[str, dict[str, int]] = {node: {} for node in evidence.nodes}
    for counter, amounts in of_halves.items():
        for amount, nodes in zip(amounts, halves, strict=False):
            for node in nodes:
                due[node][counter] = due[node].get(counter, 0) + amount // len(nodes)
    for counter, amounts in of_nodes.items():
        for node, amount in zip(due, amounts, strict=False):
            due[node][counter] = amount
    nodes_of_run = []
    for node in evidence.nodes:
        here = tuple(each for each in evidence.samples if each.node == node)
        rails = tuple(each for each in here if each.interface in expected.rails)
        nodes_of_run.append(Node(name=node, due=due[node], samples=here, rails=rails))
    return Run(evidence=evidence, expected=expected, nodes=tuple(nodes_of_run))
