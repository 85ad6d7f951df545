"""What a run was meant to do, what was seen of it, and what a proof of its path says."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
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
        """The nodes that ran ranks, sorted, each once."""
        return tuple(sorted({rank.node for rank in self.ranks}))


@dataclass(frozen=True, kw_only=True)
class Expectation:
    """What the run was meant to do.

    Attributes:
        rails: interface or port names of the intended path, the same on every node.
        sent_bytes: payload bytes that each node's ranks must have sent, by rank order of nodes
            (first half of the ranks, second half); what the benchmark's own repetitions say.
        num_ranks: how many ranks the run was asked for.
        spread: whether every rail of several must carry a fair share (bandwidth, large messages).
    """

    rails: tuple[str, ...]
    sent_bytes: tuple[int, int]
    num_ranks: int
    spread: bool
    exact: bool = True
    """Whether ``sent_bytes`` is all that the benchmark moves; False where it moves more unseen
    (IMB warms up with a whole benchmark), so that more on the rails is no stranger's traffic."""
    sent_messages: tuple[int, int] | None = None
    """Messages each half sent where every message waits for an answer (ping-pong), so that each
    must be at least one packet on the rail; None where messages may share packets.  Bytes alone
    would miss small messages that went elsewhere while the large ones took the rail."""
    ranks_per_node: int | None = None
    """How many ranks each node was to run, one after the other; None where nobody asked."""
    nodes: tuple[str, ...] = ()
    """The nodes that were to run them; empty where any would do."""
    least_bytes: tuple[tuple[int, int], ...] | None = None
    """Where nobody can foretell the bytes: what each node, in the order of its lowest rank, must
    send and receive whatever the algorithm.  Then it stands for ``sent_bytes``."""
    least_packets: tuple[int, ...] | None = None
    """Likewise the packets that each node must send."""


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
        state: whether it is proven.
        reason: in words.
        findings: what else is to be known.
        moved_bytes: sent by each interface; None where nothing was counted.
        came_by: the interface by which the bytes came in that a rail should have brought; empty
            where that is not what is wrong, or nobody knows.
        rose: node, interface and counter of each error that rose.
        lacking: the node that they came to; empty where that is not what is wrong.
    """

    state: PathState
    reason: str
    findings: tuple[str, ...] = ()
    moved_bytes: Mapping[str, int] | None = None
    came_by: str = ""
    rose: tuple[Risen, ...] = ()
    lacking: str = ""


def proof(state: PathState, reason: str) -> PathProof:
    """Return a finding that has nothing beside its reason."""
    return PathProof(state=state, reason=reason)


def in_order(evidence: Evidence) -> list[str]:
    """Return the nodes in the order of their lowest rank."""
    return list(
        dict.fromkeys(rank.node for rank in sorted(evidence.ranks, key=lambda rank: rank.rank))
    )


def sent_over(
    evidence: Evidence, node: str, rails: Sequence[str], counter: str = "tx_bytes"
) -> int:
    """Return how far ``counter`` of a node's rails advanced together."""
    return sum(
        sample.moved(counter)
        for sample in evidence.samples
        if sample.node == node and sample.interface in rails
    )


#: What the interface below a Soft-RoCE device counts of each packet beside what the device counts,
#: in bytes and at most: the header of Ethernet with a VLAN tag (IEEE 802.3, 802.1Q).  The device
#: counts from the IP header on: measured with Linux 7.3, 14 bytes more for each of 59000 packets.
SOFT_HEADER_BYTES = 18


def beside_verbs(evidence: Evidence, sample: CounterSample, counter: str = "tx_bytes") -> int:
    """Return how far ``counter`` advanced, without what Soft-RoCE devices moved over the interface.

    Their packets are UDP to the interface below, which counts them a second time; what is left
    there went by sockets.

    Args:
        evidence: of the run.
        sample: any interface or port of it.
        counter: ``tx_bytes``, ``rx_bytes``, ``tx_packets`` or ``rx_packets``.
    """
    left = sample.moved(counter)
    for port in evidence.samples:
        if port.node == sample.node and port.parent and port.parent == sample.interface:
            left -= port.moved(counter)
            way, _, kind = counter.partition("_")
            if kind == "bytes":
                left -= SOFT_HEADER_BYTES * port.moved(f"{way}_packets")
    return max(0, left)


def due_to_send(evidence: Evidence, expected: Expectation) -> dict[str, int]:
    """Return the payload bytes that each node was due to send."""
    if expected.least_bytes is None:
        return _halves(evidence, expected.sent_bytes)
    sent = [bytes_sent for bytes_sent, _ in expected.least_bytes]
    return dict(zip(in_order(evidence), sent, strict=False))


def packets_due(evidence: Evidence, expected: Expectation) -> dict[str, int]:
    """Return the packets that each node was due to send; empty where nobody can say."""
    if expected.least_packets is not None:
        return dict(zip(in_order(evidence), expected.least_packets, strict=False))
    return _halves(evidence, expected.sent_messages) if expected.sent_messages else {}


def _halves(evidence: Evidence, sent: tuple[int, int]) -> dict[str, int]:
    """Return what each node was due: the first half of the ranks ``sent[0]``, and so on."""
    by_rank = sorted(evidence.ranks, key=lambda rank: rank.rank)
    half = max(1, len(by_rank) // 2)
    due: dict[str, int] = {}
    for amount, ranks in zip(sent, (by_rank[:half], by_rank[half:]), strict=True):
        nodes = sorted({rank.node for rank in ranks})
        for node in nodes:
            due[node] = due.get(node, 0) + amount // len(nodes)
    return due


def due_to_receive(evidence: Evidence, expected: Expectation) -> dict[str, int]:
    """Return the payload bytes that each node was due to receive: what the other half sent."""
    if expected.least_bytes is None:
        first, second = expected.sent_bytes
        return _halves(evidence, (second, first))
    received = [bytes_received for _, bytes_received in expected.least_bytes]
    return dict(zip(in_order(evidence), received, strict=False))
