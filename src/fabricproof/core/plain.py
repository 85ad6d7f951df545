"""Our own dataclasses as plain data, the form of every ``--json``: field by field, by its name."""

from __future__ import annotations

import datetime
import math
from collections.abc import Container, Mapping
from dataclasses import fields, is_dataclass
from functools import cache
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

#: what JSON knows already, and most of what there is: told apart first, for speed
_AS_IS = frozenset({str, int, bool, type(None)})


def plain(
    thing: DataclassInstance | Mapping[str, Any],
    *also: str,
    without: Container[str] = (),
    **instead: Any,
) -> dict[str, Any]:
    """Return a dataclass, or what is a mapping already, as data that JSON can hold.

    What lies within becomes plain too.  A number that is none (NaN, infinite) becomes None, a time
    of UTC ``2026-11-21T21:34:22Z``, a path its text.

    Args:
        thing: each of its fields becomes a key.
        also: properties of it that become keys as well.
        without: fields that do not.
        instead: a key, and what stands there in place of the field of that name, or beside all.
    """
    names = thing if isinstance(thing, Mapping) else (*_names(type(thing)), *also)
    of = thing.__getitem__ if isinstance(thing, Mapping) else thing.__getattribute__
    own = {
        name: instead.pop(name) if name in instead else of(name)
        for name in names
        if name not in without
    }
    return {name: _value(value) for name, value in (own | instead).items()}


@cache
def _names(kind: type[DataclassInstance]) -> tuple[str, ...]:
    return tuple(each.name for each in fields(kind))


def _value(value: Any) -> Any:
    if type(value) in _AS_IS:
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, list | tuple):
        return [_value(each) for each in value]
    if is_dataclass(value) and not isinstance(value, type):
        value = {name: getattr(value, name) for name in _names(type(value))}
    if isinstance(value, Mapping):
        return {key: _value(each) for key, each in value.items()}
    if isinstance(value, datetime.datetime):
        return value.strftime("%Y-%m-%dT%H:%M:%SZ")
    return str(value) if isinstance(value, PurePath) else value
