"""Who is at fault by its partners: common to what is red, and absent from what is good.

The rule of all places that have no matrix: the legs of a run, the looks of a night, and the lines
that drain nodes.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

#: partners with which a node must be red before it is blamed by itself
LEAST_RED_PARTNERS = 2


@dataclass(frozen=True, kw_only=True)
class WithOthers:
    """How often one side of a red pair was red, and how often good, with others."""

    red: int
    good: int

    @property
    def is_mostly_red(self) -> bool:
        """Whether it was red with others at least as often as good."""
        return self.red >= max(1, self.good)


def at_fault(sides: Sequence[WithOthers]) -> list[bool]:
    """Tell which sides of a pair that is red together are at fault.

    A side that is red with others is at fault even if the other was not seen: it is red without
    it.  If looks differ, a side is that is red with others at least as often as good; if neither
    is, any that is red at all: who misses a bound by a little may be good with others by a little.
    """
    mostly = [each.is_mostly_red for each in sides]
    return mostly if any(mostly) else [each.red > 0 for each in sides]


class Meetings:
    """Which pairs of nodes were red, and which were good, over one path by one check."""

    def __init__(self, seen: Iterable[tuple[frozenset[str], bool]]) -> None:
        """Take pairs of nodes, each with whether it was red."""
        every = list(seen)
        self.red = [nodes for nodes, is_red in every if is_red]
        self.good = [nodes for nodes, is_red in every if not is_red]

    def red_with(self, node: str) -> list[str]:
        """Return with whom a node was red."""
        return sorted({other for pair in self.red if node in pair for other in pair - {node}})

    def good_with(self, node: str, without: str = "") -> list[str]:
        """Return with whom a node was good."""
        pairs = [pair for pair in self.good if node in pair and without not in pair]
        return sorted({other for pair in pairs for other in pair - {node}})

    def proven(self, node: str) -> list[str]:
        """Return the partners that were red with a node, and good with somebody else."""
        return [each for each in self.red_with(node) if self.good_with(each, without=node)]

    def common_ends(self) -> list[str]:
        """Return the nodes that are red with two partners, one of them proven, and good with none.

        Who is good with anybody is not blamed: a line that drains it would cost a good node.
        """
        nodes = sorted({node for pair in self.red for node in pair})
        return [
            node
            for node in nodes
            if len(self.red_with(node)) >= LEAST_RED_PARTNERS
            and not self.good_with(node)
            and self.proven(node)
        ]
