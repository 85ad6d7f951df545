"""Tell whether a graph of switches is a mesh or a torus, and of which size.  Pure.

A torus is the product of rings, a mesh of paths, and dimensions may be of either kind (a ring of
two is a path).  It is recognised only where every switch is given a place and every connection is
then a step between neighbours, none more and none less: a proof, not a likeness.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import product
from typing import TypeVar

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
    far = {origin: 0}
    waiting = deque([origin])
    while waiting:
        here = waiting.popleft()
        for there in graph[here]:
            if there not in far:
                far[there] = far[here] + 1
                waiting.append(there)
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
