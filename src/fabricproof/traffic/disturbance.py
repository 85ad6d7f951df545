"""What others did to a run: their traffic on its rails, their share of its CPUs.

Every figure is kept, the small ones too: a red verdict says what was ruled out.  Pure.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from fabricproof.traffic.counters import LOSS_COUNTERS, TCP, is_device
from fabricproof.traffic.expectation import (
    MAX_SHARE,
    SLACK_BYTES,
    Evidence,
    Expectation,
    Node,
    Run,
    join_by_node,
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
    with the largest excess is named.  If the benchmark's bytes are known, what two nodes of the
    run sent each other beyond them counts too.

    Args:
        evidence: of the run.
        expected: what it was to do.
        seconds: node -> how long its counters were watched; a node that is absent has no figure.
        rail_mb_s: what a rail carries; if None the share is of what it did carry.
    """
    if len(evidence.nodes) < 2:
        return ()
    run = join_by_node(evidence, expected)
    lost = _lost_bytes(run)
    excess_of_all = _excess({node.name: _moved(node) for node in run.nodes}, lost)
    nodes = {node.name: node for node in run.nodes}
    found = []
    for rail in expected.rails:
        moved = {node.name: _moved(node, rail) for node in run.nodes}
        for (name, way), excess in _excess(moved, lost).items():
            # A rail carries both directions at once: what comes in costs nothing of what goes out.
            if nodes[name].due.get(f"{way}_bytes", 1) <= 0 or seconds.get(name, 0) <= 0:
                continue
            here = min(excess, excess_of_all.get((name, way), excess))
            if expected.exact and way == "tx" and len(expected.rails) == 1:
                here = max(here, _beyond_due(nodes[name], moved[name], lost))
            rate = here / 1e6 / seconds[name]
            share = rate / rail_mb_s if rail_mb_s else here / max(moved[name][way], 1)
            verb, who = ("received", "sent") if way == "rx" else ("sent", "received")
            found.append(
                Disturbance(
                    kind=DisturbanceKind.FOREIGN_TRAFFIC,
                    share=min(1.0, share),
                    reason=f"{rail} of {name} {verb} {rate:.2f} MB/s that nobody of this job {who}",
                    node=name,
                    burst_us=BURST_BYTES / rail_mb_s if rail_mb_s else 0.0,
                )
            )
    return tuple(found)


def _moved(node: Node, only: str | None = None) -> dict[str, int]:
    """Return what passed over a node's rails; of a Soft-RoCE port the interface below counts."""
    wires = [
        node.raw.get(rail.parent or rail.interface, rail)
        for rail in node.rails
        if only in {None, rail.interface}
    ]
    return {way: sum(each.moved(f"{way}_bytes") for each in wires) for way in ("tx", "rx")}


def _excess(
    moved: Mapping[str, Mapping[str, int]], lost: Mapping[str, float]
) -> dict[tuple[str, str], float]:
    """Return node and direction -> bytes that no other node of the run answers for.

    ``moved``: node -> ``tx`` and ``rx`` -> bytes.  ``lost``: see :func:`_lost_bytes`.
    """
    found: dict[tuple[str, str], float] = {}
    for way, back in (("rx", "tx"), ("tx", "rx")):
        if len(moved) == 2:
            first, second = moved
            answers = [(node, moved[node][way], moved[other][back], lost[node])
                       for node, other in ((first, second), (second, first))]  # fmt: skip
        else:
            most = max(moved, key=lambda each: moved[each][way] - moved[each][back])
            seen, answered_for = (sum(each[one] for each in moved.values()) for one in (way, back))
            answers = [(most, seen, answered_for, sum(lost.values()))]
        for node, seen, answered_for, lost_bytes in answers:
            excess = float(seen - answered_for)
            if excess <= UNLIKE_COUNTS * answered_for + CHATTER_BYTES:
                excess = 0.0  # unlike counts and chatter may be all of it
            found[node, way] = max(0.0, excess - (lost_bytes if way == "tx" else 0.0))
    return found


def _lost_bytes(run: Run) -> dict[str, float]:
    """Return what each node may have sent in vain: a loss of its own is no stranger's traffic."""
    lost: dict[str, float] = {}
    for node in run.nodes:
        again = sum(each.moved("RetransSegs") for each in node.others if each.interface == TCP)
        lost[node.name] = LARGEST_FRAME * max(0, again)
    for rail in (each for node in run.nodes for each in node.rails if is_device(each.interface)):
        if any(rail.moved(counter) > 0 for counter in LOSS_COUNTERS):
            # One lost packet has a whole window sent again; how much of it nobody counts.
            return dict.fromkeys(lost, math.inf)
    return lost


def _beyond_due(node: Node, moved: Mapping[str, int], lost: Mapping[str, float]) -> float:
    """Return what a node sent beyond the benchmark and its acknowledgements, on its one rail."""
    own = MAX_SHARE * node.due.get("tx_bytes", 0) + UNLIKE_COUNTS * moved["rx"] + SLACK_BYTES
    return max(0.0, moved["tx"] - own - sum(lost.values()))


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
