"""Where the ranks ran, beside where they were sent."""

from __future__ import annotations

from fabricproof.traffic.expected import Evidence, Expectation, in_order
from fabricproof.traffic.proof import RoadProof, RoadState, proof


def ranks_are_apart(evidence: Evidence, expected: Expectation) -> RoadProof | None:
    """Refuse ranks that are missing, worlds of their own, or all on one node."""
    seen = sorted(rank.rank for rank in evidence.ranks)
    if seen != list(range(expected.num_ranks)):
        reason = f"ranks 0 to {expected.num_ranks - 1} were due, {seen} reported"
        if set(seen) != {0}:
            return proof(RoadState.UNKNOWN, reason)
        alone = (
            "every rank started as its own world of one: the launcher's PMI does not fit this MPI"
        )
        if len(seen) > 1:
            return proof(RoadState.WRONG, alone)
        return proof(RoadState.UNKNOWN, f"{reason}: the others were lost, or {alone}")
    if expected.num_ranks > 1 and len(evidence.nodes) < 2:
        return proof(
            RoadState.WRONG,
            f"both ranks ran on one node ({evidence.nodes[0]}): its memory was measured, "
            "not a fabric",
        )
    return None


def ranks_are_where_they_belong(evidence: Evidence, expected: Expectation) -> RoadProof | None:
    """Refuse ranks on another node than the one they were sent to, and crowded or idle nodes."""
    if expected.ranks_per_node is None:
        return None
    by_rank = sorted(evidence.ranks, key=lambda rank: rank.rank)
    for rank in by_rank if expected.nodes else ():
        if rank.node not in expected.nodes:
            due = " or ".join(expected.nodes)
            reason = f"rank {rank.rank} ran on {rank.node}, it was sent to {due}"
            return proof(RoadState.WRONG, reason)
    order = in_order(evidence)
    for index, node in enumerate(order):
        here = [rank.rank for rank in by_rank if rank.node == node]
        first = index * expected.ranks_per_node
        if here != list(range(first, first + expected.ranks_per_node)):
            layout = "; ".join(
                f"{each}: {', '.join(str(r.rank) for r in by_rank if r.node == each)}"
                for each in order
            )
            return proof(
                RoadState.WRONG,
                f"{expected.ranks_per_node} ranks on each node, one after the other, were asked "
                f"for; the launcher made {layout}",
            )
    return None


def prove_one_node(evidence: Evidence) -> RoadProof:
    """Compare where the ranks ran with a site that declares one machine; no road is shown."""
    if not evidence.ranks:
        return proof(RoadState.UNKNOWN, "no rank reported where it ran")
    if len(evidence.nodes) > 1:
        where = " and ".join(evidence.nodes)
        return proof(RoadState.WRONG, f"the site declares one node, the ranks ran on {where}")
    return proof(RoadState.PROVEN, "both ranks on this machine, as the site declares")
