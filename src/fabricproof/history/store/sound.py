"""What a record must be, beyond being JSON: no wrong type passes for an unknown."""

from __future__ import annotations

import re
from collections.abc import Mapping
from itertools import accumulate
from typing import Any

#: keys of a quantity's record that are texts
TEXTS = (
    "site", "partition", "fabric", "stack", "suite", "program", "tool_version", "check", "leg",
    "run_id", "road_state", "job_id", "environment_digest", "stage_folder",
)  # fmt: skip
LISTS = ("rails", "nodes")
OBJECTS = ("inventory", "attributes", "stack_identity")

#: whole numbers that a column holds
_WHOLE = range(-(2**63), 2**63)
#: moments that a datetime holds: years 1 to 9999, seconds since 1970
_FIRST, _LAST = -62135596800.0, 253402300799.0

#: objects and lists within each other; ours have four, and JSON readers crash at some thousands
_DEPTH = 500
_TEXT = re.compile(rb'"(?:[^"\\]|\\.)*"')
_STEPS = {ord("["): 1, ord("{"): 1, ord("]"): -1, ord("}"): -1}


def is_deep(line: bytes) -> bool:
    """Tell whether a line nests so deeply that reading it could end the process."""
    if line.count(b"[") + line.count(b"{") <= _DEPTH:
        return False
    steps = (_STEPS.get(each, 0) for each in _TEXT.sub(b"", line))
    return max(accumulate(steps), default=0) > _DEPTH


def is_sound_quantity(record: Mapping[str, Any]) -> bool:
    """Tell whether what a quantity shares with others has the types that it must have.

    Keys that an old record lacks are unknown; ``counts`` stands in every one since the first, and
    without it nobody can say which attempt made the verdict.
    """
    seen = record.get("inventory")
    return (
        bool(record.get("run_id"))
        and is_sound_leg(record)
        and all(isinstance(record.get(name), str | None) for name in TEXTS)
        and all(_is_list(record.get(name)) for name in LISTS)
        and all(isinstance(record.get(name), dict | None) for name in OBJECTS)
        and all(isinstance(each, str | None) for each in (seen or {}).values())
        and isinstance(record.get("counts"), bool)
        and _is_whole(record.get("attempt"))
        and _is_moment(record.get("completed"))
    )


def is_sound_leg(record: Mapping[str, Any]) -> bool:
    """Tell whether what is read of any other record has the types that it must have."""
    return all(isinstance(record.get(name), str | None) for name in ("kind", "run_id", "verdict"))


def _is_list(value: object) -> bool:
    return value is None or (
        isinstance(value, list) and all(isinstance(each, str) for each in value)
    )


def _is_whole(value: object) -> bool:
    return value is None or (
        isinstance(value, int) and not isinstance(value, bool) and value in _WHOLE
    )


def _is_moment(value: object) -> bool:
    return value is None or (
        isinstance(value, int | float) and not isinstance(value, bool) and _FIRST <= value <= _LAST
    )


def whole_number(value: float) -> int | None:
    """Return a number that is whole and fits a column; None for any other, NaN and 1e300 too."""
    if isinstance(value, float) and not value.is_integer():
        return None
    return int(value) if int(value) in _WHOLE else None


def float_of(value: float) -> float | None:
    """Return a number as the float it is nearest to; None for one that is beyond all floats."""
    try:
        return float(value)
    except OverflowError:
        return None
