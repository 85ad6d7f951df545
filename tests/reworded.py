"""Every sentence that the library makes, in other letters: who reads one to decide is found out.

The letters and digits of every field that holds a sentence become mathematical bold ones, which no
pattern of ours matches.  The change is one to one, and a second one changes nothing: results that
differ in wording alone are equal once they are all in these letters.
"""

from __future__ import annotations

import dataclasses
import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest import mock

_BOLD = {
    **{ord("A") + place: 0x1D400 + place for place in range(26)},
    **{ord("a") + place: 0x1D41A + place for place in range(26)},
    **{ord("0") + place: 0x1D7CE + place for place in range(10)},
}

#: names of fields that hold a sentence, or several, wherever they stand
SENTENCES = frozenset(
    {
        "advice",
        "brief",
        "doubts",
        "findings",
        "left_out",
        "lost",
        "note",
        "notes",
        "origin",
        "reason",
        "reasons",
        "sentence",
        "means",
        "next_step",
        "silence",
        "text",
        "unknown_nodes",
        "warnings",
        "why",
    }
)
#: what is no sentence although it is called so: a file, a repository, a counter
_OTHERS = frozenset({"Matrix", "StackIdentity", "Case", "ErrorRate"})


def bold(thing: Any) -> Any:
    """Return a text, or the texts of a list or tuple, in other letters; all else as it is."""
    if type(thing) is str:
        return thing.translate(_BOLD)
    if isinstance(thing, list | tuple) and all(type(each) is str for each in thing):
        return type(thing)(each.translate(_BOLD) for each in thing)
    return thing


def same(thing: Any) -> str:
    """Return plain data as one text in other letters."""
    return json.dumps(thing, ensure_ascii=False, sort_keys=True, default=str).translate(_BOLD)


@contextmanager
def reworded() -> Iterator[None]:
    """Have every record of the library that is made meanwhile hold its sentences in other letters.

    What was imported until then: run the way once before.
    """
    patches = [mock.patch.object(each, "__init__", _rewording(each)) for each in _records()]
    for each in patches:
        each.start()
    try:
        yield
    finally:
        for each in reversed(patches):
            each.stop()


def _records() -> list[type]:
    return [
        thing
        for name, module in sorted(sys.modules.items())
        if name.partition(".")[0] == "fabricproof"
        for thing in vars(module).values()
        if isinstance(thing, type)
        and dataclasses.is_dataclass(thing)
        and thing.__module__ == name
        and thing.__name__ not in _OTHERS
        and _sentences_of(thing)
    ]


def _sentences_of(record: type) -> list[str]:
    return sorted(SENTENCES & {each.name for each in dataclasses.fields(record)})


def _rewording(record: type) -> Any:
    plain, names = record.__init__, _sentences_of(record)  # type: ignore[misc]

    def init(self: Any, *values: Any, **named: Any) -> None:
        plain(self, *values, **named)
        for name in names:
            object.__setattr__(self, name, bold(getattr(self, name)))

    return init
