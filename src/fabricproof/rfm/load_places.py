"""Who measures beside which load: nodes drawn from Slurm's tree, and what links they share.

``shared``: pairs go from the measured pair's first leaf to its second, so that they share the
first's uplinks and the second's downlinks.  ``apart``: pairs between two further leaves, which
share no link with it.  ``incast``: several nodes of other leaves send to one node of the pair's
second leaf.  ``alltoall``: all nodes of the other loads exchange with each other.

The law is the fair share of the busiest link on the pair's way: with S uplinks of a leaf, each as
fast as a rail (``spines`` of ``fabric.toml``), n flows put n / S on each where routing spreads
them, and as many as take the pair's own spine where it goes by destination, the i-th node of a leaf
over spine i mod S (Zahavi 2012; OpenSM's ``ftree``).  The larger of both is allowed.  How many
flows of an ``alltoall`` meet is its algorithm's choice: there is no law of it.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import permutations

from fabricproof.core.units import by_key, natural
from fabricproof.nodes.topology import Shape, Topology

SHARED, APART, INCAST, ALLTOALL = "shared", "apart", "incast", "alltoall"

NO_INCAST = (
    "no load incast: no two nodes of other leaves that may be used come after the pair's second "
    "leaf by name, and what they all send to is rank 0, the first by name"
)
NO_LAW = (
    "nobody says how many uplinks a leaf has (spines in fabric.toml), so that no share of them is "
    "known to be fair"
)


@dataclass(frozen=True, kw_only=True)
class PlacedLoad:
    """One load: who it is, and what its links leave to each.

    Attributes:
        nodes: in the order of its ranks.
        senders: those that send.
        share: of a rail's rate, what each of them gets at the least.
        law: how many times worse the pair's bandwidth may be beside it; None: nobody says.
        words: who sends to whom, for a person.
    """

    nodes: tuple[str, ...]
    senders: tuple[str, ...]
    share: float
    law: float | None = None
    origin: str = ""
    words: str


@dataclass(frozen=True, kw_only=True)
class LoadPlaces:
    """Who measures, and who is the load.

    Attributes:
        pair: sends from its first node to its second.
        group: the pair and, where enough nodes are left for the loads, one more of each leaf.
        loads: by name.
        words: the same for a person.
    """

    pair: tuple[str, str]
    group: tuple[str, ...]
    loads: dict[str, PlacedLoad]
    words: tuple[str, ...]


def draw_places(
    topology: Topology, nodes: Sequence[str], *, most_nodes: int, spines: int, seed: int
) -> LoadPlaces | str:
    """Return who measures and who is the load, or why nobody knows.

    Programs pair the first half of their ranks with the second, and launchers sort nodes by name:
    what sends therefore comes before what receives.

    Args:
        topology: as Slurm tells it.
        nodes: that may be used.
        most_nodes: that may be used in all.
        spines: uplinks of each leaf; 0: nobody says.
        seed: of the draw.
    """
    if topology.shape is not Shape.TREE:
        return "Slurm knows no tree of switches here: nobody says which links two pairs share"
    known = sorted({*nodes} & {*topology.nodes}, key=natural)
    leaves = by_key((topology.leaf(node), node) for node in known)
    dice = random.Random(seed)  # noqa: S311 - a draw that can be repeated
    ways = list(permutations(leaves, 2))
    dice.shuffle(ways)
    usable = [each for each in ways if len(_way(leaves, each)) >= 4]
    if not usable or most_nodes < 4:
        return "no two leaves have two usable nodes each, one pair to measure and one to load"
    # Where there is a choice, one after whose second leaf there are nodes for an incast.
    chosen = next((each for each in usable if len(_after(leaves, each[1])) > 1), usable[0])
    pairs = _drawn(dice, _way(leaves, chosen), most_nodes // 2)
    pair = pairs.pop(dice.randrange(len(pairs)))
    second = pairs.pop(dice.randrange(len(pairs))) if len(pairs) > 2 else ()
    there = [node for node in topology.nodes if topology.leaf(node) == chosen[1]]
    loads = {SHARED: _shared(pair, pairs, there, spines)}
    left = (most_nodes - 2 - len(second) - 2 * len(pairs)) // 2
    free = (_way(leaves, each) for each in ways if not {*each} & {*chosen})
    if left and (way := next(filter(None, free), ())):
        loads[APART] = _apart(_drawn(dice, way, min(left, len(pairs))), spines)
    taken = {*pair, *second, *(node for each in loads.values() for node in each.nodes)}
    # An incast takes no more senders than the shared load has; first those that are loads already.
    near = sorted(_after(leaves, chosen[1]), key=lambda node: node not in taken)
    near = near[: min(max(2, len(pairs)), len({*near} & taken) + most_nodes - len(taken))]
    if len(near) > 1:
        loads[INCAST] = _incast(pair, pairs[0][1], near, there, spines)
    everybody = tuple(sorted({node for each in loads.values() for node in each.nodes}, key=natural))
    if len(everybody) > 2:
        loads[ALLTOALL] = _alltoall(topology, pair, everybody, spines)
    words = (
        f"drawn with seed {seed}: {pair[0]} to {pair[1]} ({chosen[0]} to {chosen[1]})",
        *(f"load {name}: {each.words}" for name, each in loads.items()),
        *(() if INCAST in loads else (NO_INCAST,)),
        *(() if spines else (NO_LAW,)),
    )
    group = tuple(sorted((*pair, *second), key=natural))
    return LoadPlaces(pair=pair, group=group, loads=loads, words=words)


def _shared(
    pair: tuple[str, str], pairs: Sequence[tuple[str, str]], there: Sequence[str], spines: int
) -> PlacedLoad:
    flows = len(pairs) + 1
    load = _in_halves(pairs, min(1.0, max(1, spines) / flows))
    return replace(
        load,
        law=_law(there, [pair[1], *(each[1] for each in pairs)], spines),
        origin=_fair(f"{flows} pairs", spines),
    )


def _apart(pairs: Sequence[tuple[str, str]], spines: int) -> PlacedLoad:
    return _in_halves(pairs, min(1.0, max(1, spines) / len(pairs)))


def _in_halves(pairs: Sequence[tuple[str, str]], share: float) -> PlacedLoad:
    senders = tuple(each[0] for each in pairs)
    return PlacedLoad(
        nodes=(*senders, *(each[1] for each in pairs)),
        senders=senders,
        share=share,
        words=", ".join(f"{one} to {other}" for one, other in pairs),
    )


def _incast(
    pair: tuple[str, str], root: str, near: Sequence[str], there: Sequence[str], spines: int
) -> PlacedLoad:
    """Return a load of several senders to one node: that node's own link is shared by all."""
    senders = tuple(sorted(near, key=natural))
    flows = len(senders) + 1
    return PlacedLoad(
        nodes=(root, *senders),
        senders=senders,
        share=min(1 / len(senders), max(1, spines) / flows),
        law=_law(there, [pair[1], *[root] * len(senders)], spines),
        origin=_fair(f"{flows} flows", spines),
        words=f"{', '.join(senders)} to {root}",
    )


def _alltoall(
    topology: Topology, pair: tuple[str, str], nodes: tuple[str, ...], spines: int
) -> PlacedLoad:
    """Return a load of all of ``nodes``: on a leaf's uplinks all meet that it has of them."""
    most = max(Counter(topology.leaf(each) for each in (*nodes, *pair)).values())
    return PlacedLoad(
        nodes=nodes,
        senders=nodes,
        share=min(1.0, max(1, spines) / most),
        words=f"{', '.join(nodes)}, each with each",
    )


def _after(leaves: Mapping[str, Sequence[str]], leaf: str) -> tuple[str, ...]:
    """Return the nodes of other leaves that come after all of ``leaf`` by name."""
    last = natural(leaves[leaf][-1])
    others = (node for other, nodes in leaves.items() if other != leaf for node in nodes)
    return tuple(node for node in others if natural(node) > last)


def _way(leaves: Mapping[str, Sequence[str]], ends: tuple[str, str]) -> tuple[str, ...]:
    """Return as many nodes of each leaf as can be, all senders before all receivers by name."""
    senders, receivers = (leaves[each] for each in ends)
    for count in range(min(len(senders), len(receivers)), 0, -1):
        if natural(senders[count - 1]) < natural(receivers[-count]):
            return (*senders[:count], *receivers[-count:])
    return ()


def _drawn(dice: random.Random, way: Sequence[str], most: int) -> list[tuple[str, str]]:
    half = len(way) // 2
    picked = sorted(dice.sample(range(half), min(half, most)))
    return [(way[index], way[half + index]) for index in picked]


def _law(there: Sequence[str], receivers: Sequence[str], spines: int) -> float | None:
    """Return the flows of the busiest link on the way to the first of ``receivers``."""
    if not spines:
        return None
    taken = [there.index(node) % spines for node in receivers]
    return max(1.0, len(receivers) / spines, float(taken.count(taken[0])))


def _fair(flows: str, spines: int) -> str:
    return f"fair share of {flows} on {spines} uplink{'s' if spines > 1 else ''}"
