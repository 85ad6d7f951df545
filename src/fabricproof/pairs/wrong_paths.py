"""Which node's traffic takes another path: one pair does not tell which end is wrong, many do."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from fabricproof.core.units import counted
from fabricproof.traffic import PathProof, PathState

#: partners with whom a node's path must be wrong: one may be wrong himself
LEAST_PARTNERS = 2
#: Most of the nodes that are named, as of hosts that are cabled otherwise than others: our choice.
MOST_SHARE = 0.25


#: two nodes, and what the counters said of the path between them
PairProof = tuple[tuple[str, str], PathProof]


@dataclass(frozen=True, kw_only=True)
class WrongPath:
    """A node whose traffic takes another path with all others, while theirs does not.

    Attributes:
        node: it.
        partners: with how many others it was seen.
        others: pairs of other nodes that take the right path.
        came_by: the interface by which it comes in to the node, whatever its partners show; empty
            where they differ, or nobody knows.
    """

    node: str
    net_path: str
    partners: int
    others: int
    came_by: str

    @property
    def sentence(self) -> str:
        """It, in words."""
        seen = f"takes another path with all {counted(self.partners, 'partner')}"
        right = f"{counted(self.others, 'pair')} of other nodes do not"
        said = f"{self.node}: traffic over {self.net_path} {seen}, {right}"
        if not self.came_by:
            return said
        return (
            f"{said}: it comes in by {self.came_by}. Are the cables of {self.net_path} and "
            f"{self.came_by} of {self.node} exchanged, or does it answer for both (arp_ignore)?"
        )


def wrong_paths(net_path: str, seen: Sequence[PairProof]) -> list[WrongPath]:
    """Return the nodes that are wrong over a path; none where pairs do not agree on them.

    A node is named where its traffic took another path with at least :data:`LEAST_PARTNERS` others
    that took the right one elsewhere, and the right one with none that is not named; every pair of
    nodes that are not named took the right one, and at most :data:`MOST_SHARE` of the nodes are
    named.  Two that are cabled crosswise alike reach each other as they should: pairs of named ones
    say nothing.

    Args:
        net_path: its name.
        seen: pairs whose path is proven or wrong, in any order, a pair as often as it was measured.
    """
    sure = [({*pair}, proof) for pair, proof in seen if proof.state is not PathState.UNKNOWN]
    nodes = {node for pair, _ in sure for node in pair}
    wrong, right = (
        {
            node: {
                other
                for pair, proof in sure
                if node in pair and (proof.state is PathState.WRONG) is is_wrong
                for other in pair - {node}
            }
            for node in nodes
        }
        for is_wrong in (True, False)
    )
    named = {node for node in nodes if len(wrong[node]) > max(len(right[node]), LEAST_PARTNERS - 1)}
    if len(named) > MOST_SHARE * len(nodes):
        return []
    between = [(pair, proof) for pair, proof in sure if not pair <= named]
    if any((proof.state is PathState.WRONG) != bool(named & pair) for pair, proof in between):
        return []
    others = {frozenset(pair) for pair, proof in between if proof.state is not PathState.WRONG}
    proven = frozenset().union(*others)
    found = []
    for node in sorted(named):
        partners = wrong[node] - named
        came_by = {proof.came_by for _, proof in between if proof.lacking == node}
        if len(partners & proven) >= LEAST_PARTNERS:
            found.append(
                WrongPath(
                    node=node,
                    net_path=net_path,
                    partners=len(partners),
                    others=len(others),
                    came_by=came_by.pop() if len(came_by) == 1 else "",
                )
            )
    return found
