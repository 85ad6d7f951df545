"""Which nodes' rails are cabled crosswise, from what each rail hangs on.  Pure.

Where rails are planes, rail k of all nodes of a leaf group hangs on the same switches.  Nobody
declares which: the nodes say it by majority, switch by switch, and a node that stands against it is
named.  Where no rail has a majority, or all rails hang on the same switch, nothing is said.  A site
may declare it (``switches`` of a rail): then each node is held against that.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

#: FAIL and PASS take an order that rails plugged in at random would show less often than once in
#: this many fabrics.  Our choice.
_CHANCE = 100

#: and in which at most one node of so many stands against the others: where a third does, somebody
#: meant it.  Our choice.
_FEW = 4


@dataclass(frozen=True, kw_only=True, order=True)
class Hanging:
    """A rail of a node, and a switch that it is linked to.  Names are whatever the caller has."""

    node: str
    rail: str
    switch: str


@dataclass(frozen=True, kw_only=True)
class Against:
    """A node of which rails hang where other nodes have other rails.

    Attributes:
        wrong: its rails that hang elsewhere than those of other nodes.
        others: switch of one of them -> the rails that most nodes have there.
        is_crossed: all in all it hangs on the switches of nodes that are cabled as most: two of
            its own cables are exchanged.
    """

    node: str
    wrong: tuple[Hanging, ...]
    others: Mapping[str, tuple[str, ...]]
    is_crossed: bool


@dataclass(frozen=True, kw_only=True)
class Astray:
    """A rail that hangs on another switch than the site declares.

    Attributes:
        hanging: the rail and its switch.
        rails: those that the switch is declared for; none where it is for no rail.
    """

    hanging: Hanging
    rails: tuple[str, ...]


def astray(
    hangings: Iterable[Hanging],
    declared: Mapping[str, Sequence[str]],
    names: Mapping[str, str],
) -> tuple[Astray, ...]:
    """Return the rails that hang elsewhere than the site declares.

    Args:
        hangings: of rails; those that ``declared`` lacks are passed over.
        declared: rail -> patterns of the names of its switches.
        names: switch -> its name.
    """
    found = []
    for each in sorted(set(hangings)):
        name = names[each.switch]
        rails = tuple(
            rail
            for rail, patterns in declared.items()
            if any(fnmatchcase(name, pattern) for pattern in patterns)
        )
        if declared.get(each.rail) and each.rail not in rails:
            found.append(Astray(hanging=each, rails=rails))
    return tuple(found)


@dataclass(frozen=True, kw_only=True)
class Cabling:
    """What the majority says of nodes that are alike.

    Attributes:
        fitting: nodes of which each rail hangs where most nodes have it, and not all rails have it.
        open: nodes on switches that have two rails of equally many nodes: nobody knows which.
        is_sure: rails plugged in at random would hardly ever look so orderly.
    """

    fitting: tuple[str, ...] = ()
    against: tuple[Against, ...] = ()
    open: tuple[str, ...] = ()
    is_sure: bool = False


def cabling_of(hangings: Iterable[Hanging]) -> Cabling:
    """Return who is cabled otherwise than most; ``hangings`` are of nodes with the same rails.

    A rail belongs to a switch where more than half of the switch's nodes, and two at least, have it
    there.  Several may: two adapters of each node on one switch are no fault.
    """
    given = sorted(set(hangings))
    of_switch: dict[str, list[Hanging]] = defaultdict(list)
    of_node: dict[str, list[Hanging]] = defaultdict(list)
    for each in given:
        of_switch[each.switch].append(each)
        of_node[each.node].append(each)
    most = {switch: _most(here) for switch, here in of_switch.items()}
    tied = {switch for switch, here in of_switch.items() if not most[switch] and _nodes(here) > 1}
    num_rails = len({each.rail for each in given})
    fitting, wrong, undecided = [], {}, []
    for node, mine in of_node.items():
        stray = tuple(each for each in mine if _stands_against(each, of_switch, most))
        if stray:
            wrong[node] = stray
        elif any(each.switch in tied for each in mine):
            undecided.append(node)
        elif all(each.rail in most[each.switch] for each in mine) and any(
            len(most[each.switch]) < num_rails for each in mine
        ):
            fitting.append(node)
    sets = {node: frozenset(each.switch for each in mine) for node, mine in of_node.items()}
    right = {sets[node] for node in fitting}
    against = tuple(
        Against(
            node=node,
            wrong=stray,
            others={each.switch: most[each.switch] for each in stray},
            is_crossed=sets[node] in right,
        )
        for node, stray in wrong.items()
    )
    return Cabling(
        fitting=tuple(fitting),
        against=against,
        open=tuple(undecided),
        is_sure=_any_is_sure(
            {node: _orders(of_node[node], most) for node in fitting}, sets, len(against)
        ),
    )


def _nodes(here: Iterable[Hanging]) -> int:
    return len({each.node for each in here})


def _most(here: list[Hanging]) -> tuple[str, ...]:
    counts = Counter(each.rail for each in here)
    half = _nodes(here) / 2
    return tuple(rail for rail, count in sorted(counts.items()) if count > half and count > 1)


def _stands_against(
    each: Hanging, of_switch: Mapping[str, list[Hanging]], most: Mapping[str, tuple[str, ...]]
) -> bool:
    here = of_switch[each.switch]
    same = sum(one.rail == each.rail for one in here)
    return bool(most[each.switch]) and 2 * same < _nodes(here)


def _orders(mine: list[Hanging], most: Mapping[str, tuple[str, ...]]) -> int:
    """Return in how many ways a node's rails could be plugged into its switches."""
    ways = math.factorial(len(mine))
    for switch in {each.switch for each in mine}:
        ways //= math.factorial(len(most[switch]))
    return max(1, ways)


def _num_groups(sets: Iterable[frozenset[str]]) -> int:
    """Return how many groups of switches there are that share no node."""
    groups: list[frozenset[str]] = []
    for mine in sets:
        apart = [group for group in groups if group.isdisjoint(mine)]
        groups = [*apart, mine.union(*(group for group in groups if group not in apart))]
    return len(groups)


def _any_is_sure(
    orders: Mapping[str, int], sets: Mapping[str, frozenset[str]], against: int
) -> bool:
    """Tell whether the fitting nodes, or those of them that show more rails, make it sure.

    A node of which fewer rails are seen could be plugged in fewer ways, with one rail in one: it is
    weak evidence or none, and takes nothing from that of the nodes that show all rails.
    """
    for least in sorted({each for each in orders.values() if each > 1}):
        able = [node for node, ways in orders.items() if ways >= least]
        if _is_sure(len(able), against, least, _num_groups({sets[node] for node in able})):
            return True
    return False


def _is_sure(fitting: int, against: int, orders: int, groups: int) -> bool:
    """Tell whether chance hardly ever gives so many nodes of one order.

    Each node takes one of ``orders`` orders at random, each group's order is free: the number of
    fabrics with at most ``against`` nodes of another order, over all (the union bound).
    """
    nodes = fitting + against
    if orders < 2 or not fitting or _FEW * against > nodes:
        return False
    few = sum(math.comb(nodes, other) * (orders - 1) ** other for other in range(against + 1))
    return bool(_CHANCE * orders**groups * few <= orders**nodes)
