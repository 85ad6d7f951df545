"""Our own dataclasses as plain data, field by field: the form of every ``--json``, and back again.

Files of our own may be cut, changed or of another version: :func:`typed` says where and how.
"""

from __future__ import annotations

import contextlib
import datetime
import math
from collections.abc import Container, Mapping
from dataclasses import MISSING, fields, is_dataclass
from enum import StrEnum
from functools import cache
from pathlib import PurePath
from types import NoneType, UnionType
from typing import TYPE_CHECKING, Any, TypeVar, Union, get_args, get_origin, get_type_hints

from fabricproof.core.units import stamp

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

_Kind = TypeVar("_Kind")

#: what JSON knows already, and most of what there is: told apart first, for speed
_AS_IS = frozenset({str, int, bool, type(None)})


def plain(
    thing: DataclassInstance | Mapping[str, Any],
    *also: str,
    without: Container[str] = (),
    **instead: Any,
) -> dict[str, Any]:
    """Return a dataclass or a mapping, and all within it, as data that JSON can hold.

    NaN and infinity become None, a time of UTC ``2026-11-21T21:34:22Z``, a path its text.

    Args:
        thing: each of its fields becomes a key.
        also: properties that become keys as well.
        without: fields that do not.
        instead: values by their keys, in place of a field of that name, or beside all.
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
        return stamp(value)
    return str(value) if isinstance(value, PurePath) else value


#: what stands in a file for a type, in words
_WORDS: Mapping[Any, str] = {
    str: "a text",
    int: "a whole number",
    float: "a number",
    bool: "true or false",
    tuple: "a list",
    list: "a list",
    NoneType: "null",
}


def typed(kind: type[_Kind], data: object) -> _Kind:
    """Return what :func:`plain` or ``asdict`` made plain, as the dataclass that it was.

    Nothing is converted: a text is no number, true no 1.

    Raises:
        ValueError: a key is missing or unknown, or a value of another type.
    """
    found: _Kind = _typed(kind, data)
    return found


def typed_at(record: Mapping[str, Any], key: str, kind: type[_Kind]) -> _Kind:
    """Return ``record[key]`` as :func:`typed` does; ValueError for a number that is not finite."""
    found: _Kind = _at(key, kind, record[key])
    if kind is float and not math.isfinite(found):  # type: ignore[arg-type]
        raise ValueError(f"{key}: expected a number, got {found}")
    return found


def _typed(kind: Any, data: Any) -> Any:
    if kind is Any or type(data) is kind or (kind is float and type(data) is int):
        return data
    origin, of = get_origin(kind), get_args(kind)
    if origin in {Union, UnionType}:
        return _one_of(of, data)
    if isinstance(data, dict) and is_dataclass(kind):
        return _made(kind, data)
    if isinstance(data, dict) and origin in {dict, Mapping}:
        return {name: _at(name, of[1], each) for name, each in data.items()}
    if isinstance(data, list) and origin is tuple:
        kinds = of if of[-1] is not Ellipsis else of[:1] * len(data)
        if len(kinds) == len(data):
            return tuple(map(_at, range(len(data)), kinds, data))
    words = list(kind) if isinstance(kind, type) and issubclass(kind, StrEnum) else []
    if data in words:
        return kind(data)
    what = f"one of {', '.join(words)}" if words else _WORDS.get(origin or kind, "a table")
    raise ValueError(f"expected {what}, got {data!r:.60}")


def _at(place: object, kind: Any, data: Any) -> Any:
    try:
        return _typed(kind, data)
    except ValueError as error:
        raise ValueError(f"{place}: {error}") from None


def _one_of(kinds: tuple[Any, ...], data: Any) -> Any:
    if type(data) in kinds:
        return data
    *others, last = (kind for kind in kinds if kind is not NoneType)
    for kind in others:
        with contextlib.suppress(ValueError):
            return _typed(kind, data)
    return _typed(last, data)


def _made(kind: Any, data: Mapping[str, Any]) -> Any:
    hints, due = _hints(kind)
    if lost := [name for name in due if name not in data]:
        raise ValueError(f"expected {lost[0]}, got no such key")
    if more := sorted(data.keys() - hints.keys()):
        raise ValueError(f"expected no key but {', '.join(hints)}, got {more[0]!r:.60}")
    return kind(**{name: _at(name, hints[name], each) for name, each in data.items()})


@cache
def _hints(kind: type[DataclassInstance]) -> tuple[Mapping[str, Any], tuple[str, ...]]:
    due = [each.name for each in fields(kind) if each.default is each.default_factory is MISSING]
    return get_type_hints(kind), tuple(due)
