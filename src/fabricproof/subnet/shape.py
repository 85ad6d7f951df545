"""What kind of network the cables make, how far hosts are apart, what is uneven in it.  Pure.

A torus is the product of rings, a mesh of paths, and dimensions may be of either kind (a ring of
two is a path).  It is recognised only where every switch is given a place and every connection is
then a step between neighbours, none more and none less: a proof, not a likeness.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from itertools import product
from typing import TypeVar

from fabricproof.nodes.topology import steps_from
from fabricproof.subnet.model import Network

Graph = Mapping[str, frozenset[str]]
_Key = TypeVar("_Key")
_Places = Mapping[tuple[int, ...], frozenset[tuple[int, ...]]]

#: A search that places this many switches per switch without an end is given up: the graph is then
#: called irregular.  A grid is found with few wrong turns, because distance and the numbers of
#: neighbours nearer, as near and farther leave hardly a choice.  Our choice.
_STEPS_PER_SWITCH = 200

_MOST_DIMENSIONS = 3


@dataclass(frozen=True, kw_only=True)
class Grid:
    """A mesh or torus: the length of each dimension, and whether it closes to a ring."""

    lengths: tuple[int, ...]
    rings: tuple[bool, ...]

    @property
    def words(self) -> str:
        """``3x3 torus``, ``4x2 mesh``, ``ring of 6``."""
        if len(self.lengths) == 1:
            return f"{'ring' if self.rings[0] else 'chain'} of {self.lengths[0]}"
        size = "x".join(map(str, self.lengths))
        # A dimension of two has no way round: it is a path, and part of meshes and tori alike.
        closed = [ring for ring, length in zip(self.rings, self.lengths, strict=True) if length > 2]
        if not closed or not any(closed):
            return f"{size} mesh"
        if all(closed):
            return f"{size} torus"
        open_ones = [
            str(length) for ring, length in zip(self.rings, self.lengths, strict=True) if not ring
        ]
        return f"{size} torus, open along {' and '.join(open_ones)}"


def recognise(graph: Graph) -> Grid | None:
    """Return the grid that ``graph`` is, None where it is none."""
    if len(graph) < 3:
        return None
    degrees = Counter(len(others) for others in graph.values())
    for grid in _candidates(len(graph), max(degrees)):
        places = _places(grid)
        if Counter(len(others) for others in places.values()) == degrees and _same(graph, places):
            return grid
    return None


def _candidates(number: int, degree: int) -> Iterator[Grid]:
    for lengths in _factors(number, _MOST_DIMENSIONS):
        if len(lengths) <= degree <= 2 * len(lengths):
            options = [(True, False) if length > 2 else (False,) for length in lengths]
            for rings in product(*options):
                yield Grid(lengths=lengths, rings=rings)


def _factors(number: int, most: int, largest: int | None = None) -> Iterator[tuple[int, ...]]:
    """Yield the ways to write ``number`` as a product, factors from large to small."""
    limit = number if largest is None else largest
    if 2 <= number <= limit:
        yield (number,)
    if most > 1:
        for first in range(min(limit, number // 2), 1, -1):
            if number % first == 0:
                for rest in _factors(number // first, most - 1, first):
                    yield (first, *rest)


def _places(grid: Grid) -> _Places:
    found: dict[tuple[int, ...], frozenset[tuple[int, ...]]] = {}
    for place in product(*map(range, grid.lengths)):
        beside = set()
        for axis, (length, ring) in enumerate(zip(grid.lengths, grid.rings, strict=True)):
            for step in (-1, 1):
                there = place[axis] + step
                if ring:
                    there %= length
                if 0 <= there < length:
                    beside.add((*place[:axis], there, *place[axis + 1 :]))
        found[place] = frozenset(beside)
    return found


def _profile(graph: Mapping[_Key, frozenset[_Key]], origin: _Key) -> dict[_Key, tuple[int, ...]]:
    """Return of each vertex its distance from ``origin`` and its neighbours by theirs."""
    far = steps_from(graph, [origin])
    return {
        vertex: (
            distance,
            *(sum(far[other] == distance + step for other in graph[vertex]) for step in (-1, 0, 1)),
        )
        for vertex, distance in far.items()
    }


def _same(graph: Graph, places: _Places) -> bool:
    """Tell whether every switch can be given a place so that connections and steps are the same."""
    origin = next(iter(places))
    # Of a torus every switch may be the origin, of a mesh every corner; those of least degree are.
    least = min(graph, key=lambda name: (len(graph[name]), name))
    if len(places[origin]) != len(graph[least]):
        return False
    want, have = _profile(places, origin), _profile(graph, least)
    if Counter(want.values()) != Counter(have.values()):
        return False
    return _Search(graph=graph, places=places, want=want, have=have).ends(least)


@dataclass(kw_only=True)
class _Search:
    """A search for places, in the order of the places, without recursion."""

    graph: Graph
    places: _Places
    want: Mapping[tuple[int, ...], tuple[int, ...]]
    have: Mapping[str, tuple[int, ...]]

    def ends(self, first: str) -> bool:
        order = list(self.places)
        index = {place: number for number, place in enumerate(order)}
        before = [
            [other for other in self.places[place] if index[other] < index[place]]
            for place in order
        ]
        placed: list[str] = [first]
        choices: list[Iterator[str]] = [iter(())]
        steps = _STEPS_PER_SWITCH * len(order)
        while placed and steps:
            steps -= 1
            if len(placed) == len(order):
                return True
            if len(choices) == len(placed):
                near = [placed[index[other]] for other in before[len(placed)]]
                choices.append(self._fitting(order[len(placed)], near, set(placed)))
            choice = next(choices[-1], None)
            if choice is None:
                choices.pop()
                placed.pop()
            else:
                placed.append(choice)
        return False

    def _fitting(self, place: tuple[int, ...], near: list[str], used: set[str]) -> Iterator[str]:
        common = frozenset.intersection(*(self.graph[name] for name in near))
        for name in sorted(common - used):
            if self.have[name] == self.want[place] and len(self.graph[name] & used) == len(near):
                yield name


class NetworkKind(StrEnum):
    """The kinds of network that are told apart."""

    BACK_TO_BACK = "back to back"
    SINGLE = "single switch"
    TREE = "tree"
    GRID = "grid"
    IRREGULAR = "irregular"


@dataclass(frozen=True, kw_only=True)
class SubnetShape:
    """The kind of network, and what is said of it.

    Attributes:
        words: ``two-level fat tree: 2 leaves, 2 spines, oversubscribed 2:1``.
        levels: switch -> its level in a tree, 0 for a leaf; empty otherwise.
    """

    kind: NetworkKind
    words: str
    levels: Mapping[str, int]


def shape_of(network: Network) -> SubnetShape:
    """Return what the cables make.

    A tree has hosts at its lowest level only, and cables between neighbouring levels only.
    """
    switches = len(network.switches)
    if not switches:
        return SubnetShape(
            kind=NetworkKind.BACK_TO_BACK, words="no switch: hosts back to back", levels={}
        )
    if switches == 1:
        ports = network.nodes[network.switches[0]].num_ports
        return SubnetShape(kind=NetworkKind.SINGLE, words=f"one switch of {ports} ports", levels={})
    levels = _levels(network)
    if levels is not None:
        return _tree(network, levels)
    grid = recognise(network.beside)
    if grid is not None:
        return SubnetShape(kind=NetworkKind.GRID, words=f"{grid.words} of switches", levels={})
    pairs = sum(map(len, network.beside.values())) // 2
    words = f"irregular: {switches} switches, {pairs} of their pairs joined"
    return SubnetShape(kind=NetworkKind.IRREGULAR, words=words, levels={})


def _levels(network: Network) -> dict[str, int] | None:
    """Return each switch's steps to the nearest switch with hosts; None where it is no tree."""
    with_hosts = {switch for leaves in _hosted(network).values() for switch in leaves}
    far = steps_from(network.beside, with_hosts)
    levels = {guid: far[guid] for guid in sorted(far)}
    if len(levels) != len(network.switches) or max(levels.values(), default=0) == 0:
        return None
    steps = {
        abs(levels[cable.one.end.guid] - levels[cable.other.end.guid]) for cable in network.trunks
    }
    return levels if steps == {1} else None


def _hosted(network: Network) -> Mapping[str, frozenset[str]]:
    """Return each adapter's switches, whatever its name."""
    found: dict[str, set[str]] = defaultdict(set)
    for cable in network.cables:
        for mine, far in ((cable.one, cable.other), (cable.other, cable.one)):
            is_host = not network.is_switch(mine.end.guid) and not network.is_inner(mine.end.guid)
            if is_host and network.is_switch(far.end.guid):
                found[mine.end.guid].add(far.end.guid)
    return {guid: frozenset(switches) for guid, switches in found.items()}


def _tree(network: Network, levels: dict[str, int]) -> SubnetShape:
    sizes = Counter(levels.values())
    if len(sizes) != 2:
        words = ", ".join(f"{sizes[level]} on level {level}" for level in sorted(sizes))
        return SubnetShape(
            kind=NetworkKind.TREE, words=f"{len(sizes)}-level tree: {words}", levels=levels
        )
    ratios = _ratios(network, levels)
    worst = max(ratios.values()) if ratios else None
    words = f"two-level fat tree: {_plural(sizes[0], 'leaf')}, {_plural(sizes[1], 'spine')}"
    if worst is not None:
        rate = "not oversubscribed" if worst <= 1 else f"oversubscribed {worst:.3g}:1"
        words += f", {rate}"
        if min(ratios.values()) < worst:
            name = max(ratios, key=lambda each: ratios[each])
            words += f" at worst ({network.name(name)})"
    return SubnetShape(kind=NetworkKind.TREE, words=words, levels=levels)


def _plural(number: int, word: str) -> str:
    many = {"leaf": "leaves"}.get(word, f"{word}s")
    return f"{number} {word if number == 1 else many}"


def _ratios(network: Network, levels: Mapping[str, int]) -> dict[str, float]:
    """Return of each leaf its Gb/s to hosts over its Gb/s to spines; empty where one is unknown."""
    down: dict[str, float] = defaultdict(float)
    up: dict[str, float] = defaultdict(float)
    for cable in network.cables:
        link = cable.one.link
        if link is None:
            return {}
        ends = (cable.one.end.guid, cable.other.end.guid)
        if any(map(network.is_inner, ends)):
            continue
        side = up if all(map(network.is_switch, ends)) else down
        for guid in ends:
            if levels.get(guid) == 0:
                side[guid] += link.data_rate_gbit_s
    return {guid: down[guid] / up[guid] for guid, level in levels.items() if level == 0}


@dataclass(frozen=True, kw_only=True)
class Uneven:
    """Two switches joined by fewer cables than others of their kind."""

    one: str
    other: str
    cables: int
    usual: int
    siblings: int
    """How many pairs have the usual number."""


def uneven_trunks(network: Network, shape: SubnetShape) -> Iterator[Uneven]:
    """Yield the pairs of switches with fewer cables between them than most of their siblings.

    Of a two-level tree the siblings are all pairs of leaf and spine; of other networks all pairs
    that are joined at all.  Nothing is said where no number is that of more than half of them.
    """
    counts: Counter[tuple[str, str]] = Counter()
    for cable in network.trunks:
        counts[_pair(cable.one.end.guid, cable.other.end.guid)] += 1
    if shape.kind is NetworkKind.TREE and set(shape.levels.values()) == {0, 1}:
        low = [guid for guid, level in shape.levels.items() if level == 0]
        high = [guid for guid, level in shape.levels.items() if level == 1]
        pairs = [_pair(leaf, spine) for leaf in low for spine in high]
    else:
        pairs = sorted(counts)
    usual, times = Counter(counts[pair] for pair in pairs).most_common(1)[0] if pairs else (0, 0)
    if 2 * times <= len(pairs):
        return
    for one, other in sorted(pairs, key=lambda pair: tuple(map(network.name, pair))):
        if counts[one, other] < usual:
            yield Uneven(
                one=one, other=other, cables=counts[one, other], usual=usual, siblings=times
            )


def _pair(one: str, other: str) -> tuple[str, str]:
    return (one, other) if one < other else (other, one)


@dataclass(frozen=True, kw_only=True)
class Hops:
    """How many switches lie between hosts, as the cables are."""

    network: Network

    @cached_property
    def _far(self) -> dict[str, Mapping[str, int]]:
        return {}

    def _from(self, switch: str) -> Mapping[str, int]:
        if switch not in self._far:
            steps = steps_from(self.network.beside, [switch])
            self._far[switch] = {there: count + 1 for there, count in steps.items()}
        return self._far[switch]

    def between(self, one: str, other: str) -> int | None:
        """Return how many switches a message crosses on the shortest way; at least 1.

        Over all rails of both; None where no way leads there.
        """
        ways = [
            self._from(start)[end]
            for start in self.network.leaves_of.get(one, ())
            for end in self.network.leaves_of.get(other, ())
            if end in self._from(start)
        ]
        return min(ways, default=None)
