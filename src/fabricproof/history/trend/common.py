"""What quantities that changed together have in common: a rail, a node, a stack, a program."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from fabricproof.history.store import Key

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
