"""The proof of the path of each pair in each round, from the counters in the kernel's record."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from fabricproof.core.findings import Finding, FindingKind, Where
from fabricproof.core.measure import Quantity, Verdict
from fabricproof.core.units import counted
from fabricproof.job.evidence.declaration import device_fault
from fabricproof.job.evidence.disturbance import counted_seconds, starved_cores
from fabricproof.job.evidence.leg_folder import RankRecord, gather
from fabricproof.pairs.blame.suspects import SuspectKind
from fabricproof.pairs.campaign.record import Pair, RoundRecord, Value
from fabricproof.physics import Link
from fabricproof.traffic import Evidence, Expectation, PathProof, PathState, prove_path
from fabricproof.traffic.disturbance import Disturbance, foreign_traffic
from fabricproof.traffic.error_rates import ErrorRate, error_rates

#: two nodes, and what the counters said of the path between them
PairProof = tuple[Pair, PathProof]

#: partners with whom a node's path must be wrong: one may be wrong himself
LEAST_PARTNERS = 2
#: Most of the nodes that are named, as of hosts that are cabled otherwise than others: our choice.
MOST_SHARE = 0.25

#: a link that went down this often is no accident of one moment
LEAST_DOWNS = 2

#: what happened between two rounds counts where no more than this lies between them, in seconds: a
#: campaign may be resumed days later, after somebody changed a cable
MOST_GAP_SECONDS = 60.0


def prove_pair(
    record: RoundRecord, pair: Pair, values: Sequence[Value], rails: Sequence[str], link: Link
) -> PathProof:
    """Compare what the counters of two nodes saw in a round with what the two moved in it.

    In a round a node has one partner, so that all that its rails moved is of this pair.  A rail
    that is of another kind than the declared link (a port of Ethernet, Soft-RoCE) is a wrong path.

    ``rails``: interfaces or ports that had to carry them.
    ``link``: the declared one of each rail.
    """
    if why := device_fault(link, rails, (record.nodes[node] for node in pair)):
        return PathProof(state=PathState.WRONG, reason=why)
    return prove_path(_evidence(record, pair), _expected(pair, values, rails))


def errors_of(record: RoundRecord, pair: Pair, rails: Sequence[str]) -> tuple[ErrorRate, ...]:
    """Return what two nodes lost and damaged in a round, by their own counters."""
    return error_rates(_evidence(record, pair), rails)


def _evidence(record: RoundRecord, pair: Pair) -> Evidence:
    return gather(replace(record.nodes[node], rank=number) for number, node in enumerate(pair))


def _expected(pair: Pair, values: Sequence[Value], rails: Sequence[str]) -> Expectation:
    sent = dict.fromkeys(pair, 0)
    for value in values:
        forth, back = value.sent_bytes
        sent[value.source] += forth
        sent[value.destination] += back
    messages = sum(value.sent_messages for value in values)
    return Expectation(
        rails=tuple(rails),
        sent_bytes=(sent[pair[0]], sent[pair[1]]),
        num_ranks=2,
        spread=len(rails) > 1,
        sent_messages=(messages, messages) if messages and len(rails) == 1 else None,
        ranks_per_node=1,
        nodes=tuple(sorted(pair)),
    )


def disturbances(
    record: RoundRecord,
    pair: Pair,
    values: Sequence[Value],
    rails: Sequence[str],
    rail_mb_s: float,
) -> tuple[Disturbance, ...]:
    """Return what others took in a round from a pair: of its rails, and of its cores.

    Arguments as of :func:`prove_pair`; ``rail_mb_s`` is what one rail carries.
    """
    seconds = counted_seconds(record.nodes.values())
    traffic = foreign_traffic(
        _evidence(record, pair), _expected(pair, values, rails), seconds, rail_mb_s
    )
    # All ranks of the round: those that share a machine take from each other, which is their own.
    places = {_place(record.nodes[node]) for node in pair}
    cores = starved_cores(tuple(record.nodes.values()))
    return (*traffic, *(each for each in cores if _place(record.nodes[each.node]) in places))


def _place(rank: RankRecord) -> tuple[str, str]:
    return rank.machine, rank.cpus


def down_links(rounds: Iterable[RoundRecord], rails: Iterable[str]) -> tuple[Finding, ...]:
    """Return a FAIL for each link that went down :data:`LEAST_DOWNS` times or more.

    Downs count in rounds and between them.

    By ``carrier_changes``, which counts each way (Linux, Documentation/ABI/testing/sysfs-class-net:
    "number of link transitions between UP and DOWN"), or ``link_downed`` of a port.  A counter that
    ran backwards counts nothing.

    ``rails``: interfaces or ports, also those that another rail was measured beside.
    """
    rails = tuple(rails)
    downs: Counter[tuple[str, str]] = Counter()
    last: dict[str, tuple[float, RankRecord]] = {}
    for record in sorted(rounds, key=lambda each: each.begin):
        for node, rank in record.nodes.items():
            end, before = last.get(node, (-math.inf, rank))
            is_next = record.begin - end <= MOST_GAP_SECONDS
            for rail in rails:
                downs[node, rail] += _downs(rank.before.get(rail, {}), rank.after.get(rail, {}))
                if is_next:
                    now = rank.before.get(rail, {})
                    downs[node, rail] += _downs(before.after.get(rail, {}), now)
            last[node] = record.end, rank
    found = []
    for (node, rail), count in downs.items():
        if count >= LEAST_DOWNS:
            text = f"{node} {rail}: its link went down {count} times while the campaign ran"
            quantity = Quantity(
                name="link_downs",
                value=count,
                unit="1",
                message_size=None,
                verdict=Verdict.FAIL,
                reason=text,
                upper=LEAST_DOWNS - 1,
            )
            found.append(replace(_finding(Verdict.FAIL, node, rail, text), quantity=quantity))
    return tuple(found)


def _finding(verdict: Verdict, node: str, rail: str, text: str) -> Finding:
    where = Where(node=node, rail=rail)
    fact = SuspectKind.RAIL.value
    return Finding(kind=FindingKind.BLAME, verdict=verdict, fact=fact, where=where, text=text)


def _downs(before: Mapping[str, int], after: Mapping[str, int]) -> int:
    changes, downs = (
        after[name] - before[name] if name in before and name in after else 0
        for name in ("carrier_changes", "link_downed")
    )
    return max(0, (changes + 1) // 2, downs)


def wrong_paths(net_path: str, seen: Sequence[PairProof]) -> list[Finding]:
    """Return an INVALID for each node that is wrong over a path; none where pairs do not agree.

    A node is named where its traffic took another path with at least :data:`LEAST_PARTNERS` others
    that took the right one elsewhere, and the right one with none that is not named; every pair of
    nodes that are not named took the right one, and at most :data:`MOST_SHARE` of the nodes are
    named.  Two that are cabled crosswise alike reach each other as they should: pairs of named ones
    say nothing.

    Args:
        net_path: its name.
        seen: pairs whose path is proven or wrong, in any order, a pair as often as it was measured.
    """
    sure = [(pair, proof) for pair, proof in seen if proof.state is not PathState.UNKNOWN]
    wrong: dict[str, set[str]] = {node: set() for pair, _ in sure for node in pair}
    right: dict[str, set[str]] = {node: set() for node in wrong}
    for pair, proof in sure:
        partners = wrong if proof.state is PathState.WRONG else right
        for node, other in (pair, pair[::-1]):
            partners[node].add(other)
    named = {node for node in wrong if len(wrong[node]) > max(len(right[node]), LEAST_PARTNERS - 1)}
    if len(named) > MOST_SHARE * len(wrong):
        return []
    between = [(pair, proof) for pair, proof in sure if not named.issuperset(pair)]
    if any((proof.state is PathState.WRONG) == named.isdisjoint(pair) for pair, proof in between):
        return []
    others = {frozenset(pair) for pair, proof in between if proof.state is not PathState.WRONG}
    proven = frozenset().union(*others)
    found = []
    for node in sorted(named):
        of_node = wrong[node] - named
        if len(of_node & proven) < LEAST_PARTNERS:
            continue
        text = (
            f"{node}: traffic over {net_path} takes another path with all "
            f"{counted(len(of_node), 'partner')}, {counted(len(others), 'pair')} of other nodes "
            "do not"
        )
        came_by = {proof.came_by for _, proof in between if proof.lacking == node}
        if len(came_by) == 1 and (by := came_by.pop()):
            text += (
                f": it comes in by {by}. Are the cables of {net_path} and {by} of {node} "
                "exchanged, or does it answer for both (arp_ignore)?"
            )
        found.append(_finding(Verdict.INVALID, node, net_path, text))
    return found
