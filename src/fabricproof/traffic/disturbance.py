"""What others did to a run: their traffic on its rails, their share of its CPUs.

Every figure is kept, the small ones too: a red verdict says what was ruled out.  Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from fabricproof.traffic.counters import RDMA_LOSS_COUNTERS, TCP, CounterSample, is_device
from fabricproof.traffic.expectation import (
    MAX_SHARE,
    SLACK_BYTES,
    Evidence,
    Expectation,
    due_to_receive,
    due_to_send,
)

#: Two ends may count one frame unlike: a driver with and one without the headers of segments that
#: it joins (78 of 1538 bytes at MTU 1500: 5.3 %).
UNLIKE_COUNTS = 0.06

#: bytes that name resolution, neighbours' broadcasts and monitors put on a rail during a leg
CHATTER_BYTES = 1024 * 1024

#: the largest frame that one retransmitted segment can be: jumbo Ethernet with its header, in bytes
LARGEST_FRAME = 9018

#: what a sender may put on the wire in one go, in bytes: a segment of TCP segmentation offload
#: (Linux include/linux/netdevice.h, GSO_LEGACY_MAX_SIZE 65536)
BURST_BYTES = 65536

#: a smaller share explains nothing: it lies within what a clock tick and a start cost
MIN_SHARE_TAKEN = 0.02


class DisturbanceKind(StrEnum):
    """Who took something from the run."""

    FOREIGN_TRAFFIC = "foreign_traffic"
    """A rail carried bytes that no node of this run sent, or that none of them received."""
    STARVED_CORES = "starved_cores"
    """Other processes, or the hypervisor, ran on the CPUs that the ranks were to run on."""
    OTHER_JOB = "other_job"
    """Another job of the scheduler was on a node of the run."""


@dataclass(frozen=True, kw_only=True)
class Disturbance:
    """One figure of what was taken.

    Attributes:
        share: what part of the wire, or of the time, 0 to 1; None where it was taken and nobody
            can say how much.
        reason: in words, with the figure, its unit, node, interface and direction.
        burst_us: how long one burst of the others holds the wire; 0 where it is no wire.
    """

    kind: DisturbanceKind
    share: float | None
    reason: str
    node: str = ""
    burst_us: float = 0.0

    @property
    def counts(self) -> bool:
        """Tell whether it is large enough to explain anything."""
        return self.weight >= MIN_SHARE_TAKEN

    @property
    def weight(self) -> float:
        """The share, the whole where nobody can say how much."""
        return 1.0 if self.share is None else self.share


def foreign_traffic(
    evidence: Evidence,
    expected: Expectation,
    seconds: Mapping[str, float],
    rail_mb_s: float | None,
) -> tuple[Disturbance, ...]:
    """Return the traffic of others on the run's rails, for each node, rail and direction.

    What a node received and no other node of the run sent came from a stranger; what it sent and
    none of them received went to one.  Among more than two nodes only the sums tell, and the node
    with the largest excess is named.  Where the benchmark's bytes are known, what two nodes of the
    run sent each other beyond them counts too.

    A node that is absent from ``seconds`` gets no figure; where ``rail_mb_s`` is None the share is
    of what the rail did carry.
    """
    if len(evidence.nodes) < 2:
        return ()
    lost = _lost_bytes(evidence, expected)
    totals = _excess(evidence, _wires(evidence, expected.rails), lost)
    found = []
    for rail in expected.rails:
        wires = _wires(evidence, [rail])
        for (node, way), excess in _excess(evidence, wires, lost).items():
            if not _matters(evidence, expected, node, way) or seconds.get(node, 0) <= 0:
                continue
            here = min(excess, totals.get((node, way), excess))
            here = max(here, _beyond_due(evidence, expected, node, way, lost))
            rate = here / 1e6 / seconds[node]
            own = sum(each.moved(f"{way}_bytes") for each in wires if each.node == node)
            share = rate / rail_mb_s if rail_mb_s else here / max(own, 1)
            verb, who = ("received", "sent") if way == "rx" else ("sent", "received")
            found.append(
                Disturbance(
                    kind=DisturbanceKind.FOREIGN_TRAFFIC,
                    share=min(1.0, share),
                    reason=f"{rail} of {node} {verb} {rate:.2f} MB/s that nobody of this job {who}",
                    node=node,
                    burst_us=BURST_BYTES / rail_mb_s if rail_mb_s else 0.0,
                )
            )
    return tuple(found)


def _wires(evidence: Evidence, rails: Sequence[str]) -> list[CounterSample]:
    """Return what counts all that passed: below a Soft-RoCE port the interface."""
    there = {(each.node, each.interface): each for each in evidence.samples}
    return [
        there.get((each.node, each.parent), each) if each.parent else each
        for each in evidence.samples
        if each.interface in rails
    ]


def _excess(
    evidence: Evidence, wires: Iterable[CounterSample], lost: Mapping[str, float]
) -> dict[tuple[str, str], float]:
    """Return node and direction -> bytes that no other node of the run answers for."""
    nodes = evidence.nodes
    sent = dict.fromkeys(nodes, 0)
    received = dict.fromkeys(nodes, 0)
    for each in wires:
        sent[each.node] += each.moved("tx_bytes")
        received[each.node] += each.moved("rx_bytes")
    found: dict[tuple[str, str], float] = {}
    if len(nodes) == 2:
        for node, other in (nodes, nodes[::-1]):
            found[node, "rx"] = _beyond(received[node], sent[other])
            found[node, "tx"] = max(0.0, _beyond(sent[node], received[other]) - lost[node])
        return found
    for way, mine, theirs in (("rx", received, sent), ("tx", sent, received)):
        node = max(nodes, key=lambda each: mine[each] - theirs[each])
        excess = _beyond(sum(mine.values()), sum(theirs.values()))
        found[node, way] = max(0.0, excess - (sum(lost.values()) if way == "tx" else 0))
    return found


def _beyond(seen: float, answered_for: float) -> float:
    """Return how much more was seen; 0 where unlike counts and chatter may be all of it."""
    excess = seen - answered_for
    return excess if excess > UNLIKE_COUNTS * answered_for + CHATTER_BYTES else 0.0


def _lost_bytes(evidence: Evidence, expected: Expectation) -> dict[str, float]:
    """Return what each node may have sent in vain: a loss of its own is no stranger's traffic."""
    lost: dict[str, float] = dict.fromkeys(evidence.nodes, 0.0)
    for each in evidence.samples:
        if each.interface == TCP:
            lost[each.node] += LARGEST_FRAME * max(0, each.moved("RetransSegs"))
        elif each.interface in expected.rails and is_device(each.interface):
            # One lost packet has a whole window sent again; how much of it nobody counts.
            again = any(each.moved(counter) > 0 for counter in RDMA_LOSS_COUNTERS)
            lost = dict.fromkeys(lost, float("inf")) if again else lost
    return lost


def _beyond_due(
    evidence: Evidence, expected: Expectation, node: str, way: str, lost: Mapping[str, float]
) -> float:
    """Return what a node sent beyond the benchmark and its acknowledgements, on one rail."""
    if not expected.exact or way != "tx" or len(expected.rails) != 1:
        return 0.0
    wires = [each for each in _wires(evidence, expected.rails) if each.node == node]
    sent = sum(each.moved("tx_bytes") for each in wires)
    received = sum(each.moved("rx_bytes") for each in wires)
    due = due_to_send(evidence, expected).get(node, 0)
    own = MAX_SHARE * due + UNLIKE_COUNTS * received + SLACK_BYTES + sum(lost.values())
    return max(0.0, sent - own)


def _matters(evidence: Evidence, expected: Expectation, node: str, way: str) -> bool:
    """Tell whether the run itself moved anything in that direction there.

    A rail carries both directions at once: what comes in costs nothing of what goes out.
    """
    due = due_to_send if way == "tx" else due_to_receive
    return due(evidence, expected).get(node, 1) > 0


def strongest(found: Iterable[Disturbance], kind: DisturbanceKind) -> Disturbance | None:
    """Return the largest figure of a kind; None where there is none."""
    of_kind = (each for each in found if each.kind is kind)
    return max(of_kind, key=lambda each: each.weight, default=None)


def each_kind(found: Sequence[Disturbance]) -> Iterator[Disturbance]:
    """Yield the largest figure of every kind of which there is one."""
    for kind in DisturbanceKind:
        most = strongest(found, kind)
        if most is not None:
            yield most
