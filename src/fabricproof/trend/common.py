"""What quantities that changed together have in common: a rail, a node, a stack, a program."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from fabricproof.store import Key

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


def common(keys: Sequence[Key], changed: Sequence[int]) -> Common:
    """Return the name, or the two, that best tell the changed from all others.

    Args:
        keys: of all quantities that were tested.
        changed: indices of those that changed.
    """
    those = frozenset(changed)
    names = [name for kind in _KINDS for name in _names(keys, kind)]
    single = max(names, key=lambda name: _fit(name.rows, those), default=None)
    pairs = [_both(*pair) for pair in _pairs(keys)]
    double = max(pairs, key=lambda name: _fit(name.rows, those), default=None)
    best = single
    if (
        single is not None
        and double is not None
        and _fit(double.rows, those) > _fit(single.rows, those) + _MUCH_BETTER
    ):
        best = double
    if best is None or _fit(best.rows, those) < _LEAST_FIT:
        return Common(words="", changed=0, of_changed=len(those), held=0)
    return Common(
        words=best.words,
        changed=len(best.rows & those),
        of_changed=len(those),
        held=len(best.rows),
    )


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


def _pairs(keys: Sequence[Key]) -> Iterable[tuple[_Name, _Name]]:
    for first, second in (("rail", "node"), ("rail", "stack"), ("node", "stack")):
        yield from itertools.product(_names(keys, first), _names(keys, second))


def _both(first: _Name, second: _Name) -> _Name:
    return _Name(words=f"{first.words} of {second.words}", rows=first.rows & second.rows)


def _fit(rows: frozenset[int], changed: frozenset[int]) -> float:
    """Return the harmonic mean of how much of the changed is held and how much of it changed."""
    both = len(rows & changed)
    return 2 * both / (len(rows) + len(changed)) if both >= _LEAST_HELD * len(changed) else 0.0
