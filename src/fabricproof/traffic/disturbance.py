"""What others did to a run: their traffic on its rails, their share of its CPUs.  Pure.

Every figure is kept, the small ones too: a red verdict says what was ruled out.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import product

from fabricproof.core.units import by_key
from fabricproof.traffic.counters import LOSS_COUNTERS, TCP, is_device
from fabricproof.traffic.expectation import (
    MAX_SHARE,
    SLACK_BYTES,
    Evidence,
    Expectation,
    NodeTraffic,
    RunTraffic,
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

#: Below this share a leg that passed has no line, and a round counts: our choice.
NOTED = 0.1

#: Figures are means over the whole leg, its start included; one message size may have had twice
#: its share of what came and went.  Our choice.
CONCENTRATION = 2.0

#: nothing is explained to more than this share of the time: nobody divides by what is left
MOST = 0.95


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
        share: what part of the wire, or of the time, 0 to 1; None if unknown.
        reason: in words, with the figure, its unit, node, interface and direction.
        burst_us: how long one burst of the others holds the wire; 0 if it is no wire.
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
        """The share; the whole if it is unknown."""
        return 1.0 if self.share is None else self.share


@dataclass(frozen=True, kw_only=True)
class Disturbances:
    """All figures of what others took during a leg, and what could not be read.

    Attributes:
        seconds: how long the counters were watched; 0 if unknown.
        sent_bytes: what the leg sent in that time; 0 if unknown.
    """

    found: tuple[Disturbance, ...] = ()
    unknown: tuple[str, ...] = ()
    seconds: float = 0.0
    sent_bytes: int = 0

    @property
    def spoils_round(self) -> Disturbance | None:
        """The largest if a round beside it does not count; less than NOTED is scatter."""
        large = [each for each in self.found if each.counts and each.weight >= NOTED]
        return max(large, key=lambda each: each.weight, default=None)


def foreign_traffic(
    evidence: Evidence,
    expected: Expectation,
    seconds: Mapping[str, float],
    rail_mb_s: float | None,
) -> tuple[Disturbance, ...]:
    """Return the traffic of others on the run's rails, for each node, rail and direction.

    That is what a node received and no other node of the run sent, or sent and none received;
    among more than two nodes only the sums tell, and the node with the largest excess is named.
    What two nodes sent each other beyond the benchmark's bytes, if known, counts too.

    Args:
        evidence: what was seen of the run.
        expected: what it was to do.
        seconds: node -> how long its counters were watched; a node that is absent has no figure.
        rail_mb_s: what a rail carries; if None the share is of what it did carry.
    """
    if len(evidence.nodes) < 2:
        return ()
    run, found = join_by_node(evidence, expected), []
    vain = _bytes_in_vain(run)
    ways = (("rx", "tx", "received", "sent"), ("tx", "rx", "sent", "received"))
    for (way, back, verb, who), rail in product(ways, expected.rails):
        of_all = dict(_excess(run, expected.rails, way, back, vain))
        for name, excess in _excess(run, [rail], way, back, vain):
            node = next(each for each in run.nodes if each.name == name)
            # A rail carries both directions at once: what comes in costs nothing of what goes out.
            if not node.due[f"{way}_bytes"] or seconds.get(name, 0) <= 0:
                continue
            taken, own = min(excess, of_all.get(name, excess)), _moved(node, [rail], way)
            if expected.exact and way == "tx" and len(expected.rails) == 1:
                answers = UNLIKE_COUNTS * _moved(node, [rail], back)
                due = MAX_SHARE * node.due["tx_bytes"] + SLACK_BYTES + answers
                taken = max(taken, own - due - sum(vain))
            rate = taken / 1e6 / seconds[name]
            share = rate / rail_mb_s if rail_mb_s else taken / max(own, 1)
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


def _moved(node: NodeTraffic, rails: Sequence[str], way: str) -> int:
    mine = [each for each in node.rails if each.interface in rails]
    wires = [node.raw.get(each.parent or each.interface, each) for each in mine]
    return sum(each.moved(f"{way}_bytes") for each in wires)


def _excess(
    run: RunTraffic, rails: Sequence[str], way: str, back: str, vain: Sequence[float]
) -> Iterator[tuple[str, float]]:
    """Yield a node and the bytes that it moved and no other node of the run answers for."""
    mine, theirs = ([_moved(node, rails, each) for node in run.nodes] for each in (way, back))
    rows = list(zip((node.name for node in run.nodes), mine, theirs[::-1], vain, strict=True))
    if len(rows) > 2:
        most = max(range(len(mine)), key=lambda at: mine[at] - theirs[at])
        rows = [(run.nodes[most].name, sum(mine), sum(theirs), sum(vain))]
    for name, seen, answered_for, in_vain in rows:
        foreign = seen - answered_for
        # Less than this may be unlike counts and chatter.
        is_foreign = foreign > UNLIKE_COUNTS * answered_for + CHATTER_BYTES
        yield name, max(0.0, foreign - (in_vain if way == "tx" else 0.0)) if is_foreign else 0.0


def _bytes_in_vain(run: RunTraffic) -> list[float]:
    """Return what each node may have sent in vain: a loss of its own is no stranger's traffic."""
    ports = [each for node in run.nodes for each in node.rails if is_device(each.interface)]
    if any(each.moved(counter) > 0 for each in ports for counter in LOSS_COUNTERS):
        # One lost packet has a whole window sent again; how much of it nobody counts.
        return [math.inf] * len(run.nodes)
    again = (node.raw[TCP].moved("RetransSegs") if TCP in node.raw else 0 for node in run.nodes)
    return [LARGEST_FRAME * max(0, each) for each in again]


def largest_of(found: Iterable[Disturbance], kind: DisturbanceKind) -> Disturbance | None:
    """Return the largest figure of a kind; None if there is none."""
    of_kind = (each for each in found if each.kind is kind)
    return max(of_kind, key=lambda each: each.weight, default=None)


def largest_of_each_kind(found: Sequence[Disturbance]) -> list[Disturbance]:
    """Return the largest figure of every kind of which there is one."""
    return [each for kind in DisturbanceKind if (each := largest_of(found, kind)) is not None]


def share_taken(found: Iterable[Disturbance]) -> float:
    """Return what share of the leg's time others cost at most.

    A message has two ends: the two worst places of cores add up, and so do cores and wire.
    """
    figures = by_key((each.kind, each.share or 0.0) for each in found if each.counts)
    ends = {DisturbanceKind.STARVED_CORES: 2}
    return sum(sum(sorted(all_)[-ends.get(kind, 1) :]) for kind, all_ in figures.items())


def share_beyond(taken: float, borne: float) -> float:
    """Return what of a low number others explain beyond what good ones bore as well, 0 to MOST.

    Args:
        taken: what others cost it, as :func:`share_taken` has it.
        borne: what they cost a number that was good all the same.
    """
    return min(MOST, CONCENTRATION * max(0.0, taken - borne))
