"""What kind of network the cables make, how far hosts are apart, what is uneven in it.  Pure."""

from __future__ import annotations

from collections import Counter, defaultdict, deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property

from fabricproof.subnet.grid import recognise
from fabricproof.subnet.model import Network


class Kind(StrEnum):
    """The kinds of network that are told apart."""

    BACK_TO_BACK = "back to back"
    SINGLE = "single switch"
    TREE = "tree"
    GRID = "grid"
    IRREGULAR = "irregular"


@dataclass(frozen=True, kw_only=True)
class Shape:
    """The kind of network, and what is said of it.

    Attributes:
        kind: which.
        words: ``two-level fat tree: 2 leaves, 2 spines, oversubscribed 2:1``.
        levels: switch -> its level in a tree, 0 for a leaf; empty otherwise.
        oversubscription: of a two-level tree the worst leaf's Gb/s to hosts over Gb/s to spines;
            1 is a full fat tree; None where it is none or a rate is not known.
    """

    kind: Kind
    words: str
    levels: Mapping[str, int]
    oversubscription: float | None = None


def shape_of(network: Network) -> Shape:
    """Return what the cables make.

    A tree has hosts at its lowest level only, and cables between neighbouring levels only.
    """
    switches = len(network.switches)
    if not switches:
        return Shape(kind=Kind.BACK_TO_BACK, words="no switch: hosts back to back", levels={})
    if switches == 1:
        ports = network.nodes[network.switches[0]].num_ports
        return Shape(kind=Kind.SINGLE, words=f"one switch of {ports} ports", levels={})
    levels = _levels(network)
    if levels is not None:
        return _tree(network, levels)
    grid = recognise(network.beside)
    if grid is not None:
        return Shape(kind=Kind.GRID, words=f"{grid.words} of switches", levels={})
    pairs = sum(map(len, network.beside.values())) // 2
    words = f"irregular: {switches} switches, {pairs} of their pairs joined"
    return Shape(kind=Kind.IRREGULAR, words=words, levels={})


def _levels(network: Network) -> dict[str, int] | None:
    """Return each switch's steps to the nearest switch with hosts; None where it is no tree."""
    with_hosts = {switch for leaves in _hosted(network).values() for switch in leaves}
    levels = dict.fromkeys(sorted(with_hosts), 0)
    waiting = deque(levels)
    while waiting:
        here = waiting.popleft()
        for there in sorted(network.beside[here]):
            if there not in levels:
                levels[there] = levels[here] + 1
                waiting.append(there)
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


def _tree(network: Network, levels: dict[str, int]) -> Shape:
    sizes = Counter(levels.values())
    if len(sizes) != 2:
        words = ", ".join(f"{sizes[level]} on level {level}" for level in sorted(sizes))
        return Shape(kind=Kind.TREE, words=f"{len(sizes)}-level tree: {words}", levels=levels)
    ratios = _ratios(network, levels)
    worst = max(ratios.values()) if ratios else None
    words = f"two-level fat tree: {_plural(sizes[0], 'leaf')}, {_plural(sizes[1], 'spine')}"
    if worst is not None:
        rate = "not oversubscribed" if worst <= 1 else f"oversubscribed {worst:.3g}:1"
        words += f", {rate}"
        if min(ratios.values()) < worst:
            name = max(ratios, key=lambda each: ratios[each])
            words += f" at worst ({network.name(name)})"
    return Shape(kind=Kind.TREE, words=words, levels=levels, oversubscription=worst)


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


def uneven_trunks(network: Network, shape: Shape) -> Iterator[Uneven]:
    """Yield the pairs of switches with fewer cables between them than most of their siblings.

    Of a two-level tree the siblings are all pairs of leaf and spine; of other networks all pairs
    that are joined at all.  Nothing is said where no number is that of more than half of them.
    """
    counts: Counter[tuple[str, str]] = Counter()
    for cable in network.trunks:
        counts[_pair(cable.one.end.guid, cable.other.end.guid)] += 1
    if shape.kind is Kind.TREE and set(shape.levels.values()) == {0, 1}:
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
            far = {switch: 1}
            waiting = deque([switch])
            while waiting:
                here = waiting.popleft()
                for there in self.network.beside[here]:
                    if there not in far:
                        far[there] = far[here] + 1
                        waiting.append(there)
            self._far[switch] = far
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
