"""JSON with one thing in it that nobody would write: for laws on readers."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

from hypothesis import strategies as st

Place = tuple[str | int, ...]

#: what a hand, another program or half a disk may leave in place of a value
STRANGE: tuple[Any, ...] = (
    None, True, False, 0, -1, 10**30, 1e308, float("nan"), float("inf"), 1.5,
    "", "x", "nan", "a\nb", "../../x", [], [[]], ["x"], [None], {}, {"a": 1},
)  # fmt: skip

GONE = object()


def places(value: Any, at: Place = ()) -> Iterator[Place]:
    """Yield where something stands in a JSON value, the value itself first."""
    yield at
    inner = value.items() if isinstance(value, dict) else ()
    inner = enumerate(value) if isinstance(value, list) else inner
    for key, each in inner:
        yield from places(each, (*at, key))


def damaged(value: Any, at: Place, strange: Any) -> Any:
    """Return a copy of a JSON value with something else, or :data:`GONE`, at a place."""
    if not at:
        return strange
    whole = copy.deepcopy(value)
    inner = whole
    for key in at[:-1]:
        inner = inner[key]
    if strange is GONE:
        del inner[at[-1]]
    else:
        inner[at[-1]] = strange
    return whole


def damages(value: Any) -> st.SearchStrategy[Any]:
    """Draw ``value`` with one strange thing in it, or with one thing gone."""
    inner = [at for at in places(value) if at]
    return st.builds(
        damaged,
        st.just(value),
        st.sampled_from(inner),
        st.sampled_from((*STRANGE, GONE)),
    )
