"""Which node's traffic takes another path: one pair does not tell which end is wrong, many do."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from fabricproof.core.units import counted

#: partners with whom a node's path must be wrong: one may be wrong himself
LEAST_PARTNERS = 2
#: Most of the nodes that are named, as of hosts that are cabled otherwise than others: our choice.
MOST_SHARE = 0.25


@dataclass(frozen=True, kw_only=True)
class PairPath:
    """What the counters said of a pair over a path.

    Attributes:
        is_wrong: the traffic took another path; else it is proven that it took this one.
        came_by: the interface by which it came in instead; empty where nobody knows.
        lacking: the node that it came to, of the two; empty where nobody knows.
    """

    pair: tuple[str, str]
    is_wrong: bool
    came_by: str = ""
    lacking: str = ""


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


def wrong_paths(net_path: str, seen: Sequence[PairPath]) -> list[WrongPath]:
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
    nodes = {node for each in seen for node in each.pair}
    wrong = {node: _partners(node, seen, is_wrong=True) for node in nodes}
    named = {
        node
        for node in nodes
        if len(wrong[node]) > len(_partners(node, seen, is_wrong=False))
        and len(wrong[node]) >= LEAST_PARTNERS
    }
    if len(named) > MOST_SHARE * len(nodes):
        return []
    between = [each for each in seen if len(named & {*each.pair}) < len(each.pair)]
    if any(each.is_wrong != bool(named & {*each.pair}) for each in between):
        return []
    right = {frozenset(each.pair) for each in between if not each.is_wrong}
    proven = frozenset().union(*right)
    found = []
    for node in sorted(named):
        partners = wrong[node] - named
        came_by = {each.came_by for each in between if each.lacking == node}
        if len(partners & proven) >= LEAST_PARTNERS:
            found.append(
                WrongPath(
                    node=node,
                    net_path=net_path,
                    partners=len(partners),
                    others=len(right),
                    came_by=came_by.pop() if len(came_by) == 1 else "",
                )
            )
    return found


def _partners(node: str, seen: Sequence[PairPath], *, is_wrong: bool) -> set[str]:
    pairs = [{*each.pair} for each in seen if node in each.pair and each.is_wrong is is_wrong]
    return set().union(*pairs) - {node}
