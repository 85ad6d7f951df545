"""What changes have in common, a rail, a node or a stack, and what else changed beside them."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from fabricproof.core.errors import FabricproofError
from fabricproof.history.store import Key, Run
from fabricproof.nodes.inventory.compare import Difference, compare
from fabricproof.nodes.inventory.facts import Machine, Value
from fabricproof.nodes.inventory.words import name_of, shown

#: (node, digest) -> what the node was made of; raises FabricproofError where that is lost
ReadMachine = Callable[[str, str], Machine]

#: what a whole table of nodes with the same change is cut to
_NODES_NAMED = 4


@dataclass(frozen=True, kw_only=True)
class Between:
    """The last run before a change and the first after it, among the runs that were looked at.

    Attributes:
        runs: oldest first.
        before: index of the last run that was surely before.
        after: index of the first run that was surely after.
    """

    runs: Sequence[Run]
    before: int
    after: int


def coincidences(
    between: Between, nodes: Sequence[str], read: ReadMachine
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return what changed, one sentence each, and what nobody knows.

    Args:
        between: where to look.
        nodes: that matter; theirs stand first.
        read: where inventories are kept.
    """
    known = {node for run in between.runs for node in run.inventory}
    order = sorted(known | set(nodes), key=lambda node: (node not in nodes, node))
    changes: dict[tuple[str, str, str], list[str]] = {}
    unknown: list[str] = []
    for node in order:
        pair = _digests(between, node)
        if pair is None:
            if node in nodes:
                unknown.append(f"what {node} was made of before or after is not known")
            continue
        if pair[0] == pair[1]:
            continue
        try:
            found = compare(read(node, pair[0]), read(node, pair[1]), ("before", "after"))
        except FabricproofError as error:
            unknown.append(f"{node} is made of something else, but: {error}")
            continue
        for each in found:
            changes.setdefault(_said(each), []).append(node)
    told = [
        f"{part} of {_nodes_named(where)}: {fact} {change}"
        for (part, fact, change), where in changes.items()
    ]
    return (*told, *_builds(between)), tuple(unknown)


def _digests(between: Between, node: str) -> tuple[str, str] | None:
    """Return what a node was before and after; None where one of both is not known."""
    before = (run.inventory.get(node) for run in reversed(between.runs[: between.before + 1]))
    after = (run.inventory.get(node) for run in between.runs[between.after :])
    first, second = (next((each for each in side if each), None) for side in (before, after))
    return (first, second) if first and second else None


def _said(difference: Difference) -> tuple[str, str, str]:
    if not difference.fact:
        return difference.part, "", "is there " + ("before" if difference.first else "after")
    sides = [_value(difference.fact, each) for each in (difference.first, difference.second)]
    return difference.part, name_of(difference.fact), " -> ".join(sides)


def _value(fact: str, value: Value | None) -> str:
    return "not known" if value is None else shown(fact, value)


def _nodes_named(nodes: Sequence[str]) -> str:
    some = ", ".join(nodes[:_NODES_NAMED])
    return some + f" and {len(nodes) - _NODES_NAMED} more" * (len(nodes) > _NODES_NAMED)


def _builds(between: Between) -> Iterator[str]:
    before, after = (
        _last_build(side)
        for side in (between.runs[: between.before + 1], between.runs[between.after :][::-1])
    )
    for stack in sorted({*before} & {*after}):
        if before[stack] != after[stack]:
            yield f"stack {stack}: build {before[stack]} -> {after[stack]}"


def _last_build(runs: Sequence[Run]) -> Mapping[str, str]:
    return {stack: build for run in runs for stack, build in run.builds.items() if build}


#: how much of the changed a name holds and how much of the name changed, at once (their harmonic
#: mean): below this a name explains too little
_LEAST_FIT = 0.5

#: share of the changed that a name must hold: where all rails changed, none of them is to blame
_LEAST_HELD = 0.7

#: a second name must fit better by this, or one is enough
_MUCH_BETTER = 0.05

_KINDS: Mapping[str, Callable[[Key], Iterable[str]]] = {
    "rail": lambda key: key.rails.split(",") if key.rails else (),
    "node": lambda key: key.nodes.split(",") if key.nodes else (),
    "fabric": lambda key: (key.fabric,),
    "stack": lambda key: (key.stack,),
    "program": lambda key: (key.program,),
}


@dataclass(frozen=True, kw_only=True)
class Common:
    """What is common to changed quantities.

    Attributes:
        words: ``rail1``, ``rail1 of vc2``; empty where nothing is.
        changed: how many of the changed it holds.
        of_changed: how many changed.
        held: how many of all quantities it holds.
    """

    words: str
    changed: int
    of_changed: int
    held: int


@dataclass(frozen=True, kw_only=True)
class _Name:
    words: str
    rows: frozenset[int]


_NOTHING = _Name(words="", rows=frozenset())


@dataclass(frozen=True, kw_only=True)
class Names:
    """Every rail, node, stack ... that some quantities have and others have not.

    Attributes:
        of_kind: kind to its names, with the indices of the quantities that have them.
    """

    of_kind: Mapping[str, Sequence[_Name]]


def name_all(keys: Sequence[Key]) -> Names:
    """Return the names of all quantities that were tested."""
    return Names(of_kind={kind: _names(keys, kind) for kind in _KINDS})


def common(names: Names, changed: Sequence[int]) -> Common:
    """Return the name, or the two, that best tell the changed from all others.

    Args:
        names: of :func:`name_all`.
        changed: indices of the quantities that changed.
    """
    those = frozenset(changed)
    holding = {
        kind: [each for each in of_kind if _fit(each.rows, those)]
        for kind, of_kind in names.of_kind.items()
    }
    single = _best([each for of_kind in holding.values() for each in of_kind], those)
    double = _best([_both(*pair) for pair in _pairs(holding)], those)
    best = double if _fit(double.rows, those) > _fit(single.rows, those) + _MUCH_BETTER else single
    if _fit(best.rows, those) < _LEAST_FIT:
        best = _NOTHING
    return Common(
        words=best.words,
        changed=len(best.rows & those),
        of_changed=len(those),
        held=len(best.rows),
    )


def _best(names: Sequence[_Name], changed: frozenset[int]) -> _Name:
    return max(names, key=lambda name: _fit(name.rows, changed), default=_NOTHING)


def _names(keys: Sequence[Key], kind: str) -> list[_Name]:
    """Return the names of a kind that some quantities have and others have not."""
    rows: dict[str, set[int]] = {}
    for index, key in enumerate(keys):
        for word in _KINDS[kind](key):
            rows.setdefault(word, set()).add(index)
    return [
        _Name(words=word, rows=frozenset(those))
        for word, those in rows.items()
        if word and len(those) < len(keys)
    ]


def _pairs(holding: Mapping[str, Sequence[_Name]]) -> Iterable[tuple[_Name, _Name]]:
    """Yield two names at once, of those that hold most of the changed each."""
    for first, second in (("rail", "node"), ("rail", "stack"), ("node", "stack")):
        yield from itertools.product(holding[first], holding[second])


def _both(first: _Name, second: _Name) -> _Name:
    return _Name(words=f"{first.words} of {second.words}", rows=first.rows & second.rows)


def _fit(rows: frozenset[int], changed: frozenset[int]) -> float:
    """Return the harmonic mean of how much of the changed is held and how much of it changed."""
    both = len(rows & changed)
    return 2 * both / (len(rows) + len(changed)) if both >= _LEAST_HELD * len(changed) else 0.0
