"""What records and ReFrame's test cases must be before anything is read out of them.

Whoever can write the files can write anything; what contradicts itself is at least never green.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from fabricproof.core.measure import QUANTITY_KEYS, Verdict, worst
from fabricproof.core.records import QuantityRecord, are_texts
from fabricproof.verdict.value import PRINT_ROUNDING

#: keys by which a record is joined with a test case
_OF_ALL = ("unique_name", "partition", "stack", "job_id")

#: and what a test case has of them, where there is a job
_OF_A_CASE = ("unique_name", "fabric", "jobid", "run_index")

#: what the two kinds have that a verdict is read from
_TEXTS = {
    "leg": ("verdict",),
    "quantity": tuple(QUANTITY_KEYS[each] for each in ("name", "unit", "verdict", "reason")),
}
_THERE = {
    "leg": ("check", "suite", "program", "fabric", "leg"),
    "quantity": ("leg", QUANTITY_KEYS["named"]),
}

#: the key of its verdict
_VERDICTS = {"leg": "verdict", "quantity": QUANTITY_KEYS["verdict"]}
_VALUE = QUANTITY_KEYS["value"]

#: all verdicts
_WORDS = frozenset(Verdict)

#: a leg is as bad as a quantity of it that is so
_NEVER_GREEN = frozenset({Verdict.FAIL, Verdict.INVALID})

_LISTS = ("rails", "nodes", "findings", "lost_nodes")
_NUMBERS = tuple(
    QUANTITY_KEYS[each] for each in ("value", "ceiling", "reference", "lower", "upper")
)


def fault_of(record: Mapping[str, Any]) -> str:
    """Return the first key of a record that a result cannot be made of; empty where all can be."""
    kind = record.get("kind")
    if not isinstance(kind, str):
        return "kind"
    sound = {
        **{name: isinstance(record.get(name, ()), str | int | None) for name in _OF_ALL},
        **{name: name in record for name in _THERE.get(kind, ())},
        **{name: isinstance(record.get(name), str) for name in _TEXTS.get(kind, ())},
        **{name: are_texts(record.get(name)) for name in _LISTS},
        **{name: _is_number(record.get(name)) for name in _NUMBERS},
    }
    sound["leg"] = sound.get("leg", True) and isinstance(record.get("leg"), str | None)
    sound[_VALUE] = sound[_VALUE] or _is_nan(record.get(_VALUE))
    if kind in _VERDICTS:
        word = record.get(_VERDICTS[kind])
        sound[_VERDICTS[kind]] = isinstance(word, str) and word in _WORDS
    if kind == "quantity":
        sound["counts"] = isinstance(record.get("counts"), bool)
    return next((name for name, is_sound in sound.items() if not is_sound), "")


def _is_nan(value: object) -> bool:
    """Tell whether a value is NaN: kept, as a bound that is none is not, and no PASS."""
    return isinstance(value, float) and math.isnan(value)


def _is_number(value: object) -> bool:
    if value is None:
        return True
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    try:
        return not math.isnan(float(value))
    except OverflowError:
        return False


def is_sound_case(case: object) -> bool:
    """Tell whether a test case of ReFrame's report says where it ran and what became of it."""
    return (
        isinstance(case, dict)
        and isinstance(case.get("result"), str)
        and all(isinstance(case.get(name, ()), str | None) for name in ("partition", "environ"))
        and all(isinstance(case.get(name), str | int | None) for name in _OF_A_CASE)
    )


def unless_out_of_bounds(quantity: QuantityRecord) -> QuantityRecord:
    """Return a quantity's record; a PASS that its own value and bounds refuse as UNJUDGED.

    The judge writes both; a record in which they disagree was changed since.  So was a PASS without
    a number: only a word, which has no unit and no bounds, is without.
    """
    if quantity.verdict is not Verdict.PASS:
        return quantity
    why = _why_not(quantity) or _why_no_number(quantity)
    return replace(quantity, verdict=Verdict.UNJUDGED, reason=why) if why else quantity


def unless_contradicted(verdict: Verdict, quantities: Sequence[QuantityRecord]) -> Verdict:
    """Return the verdict of a leg, or that of a quantity in it that cannot be green.

    ``quantities`` are those that counted for it, as :func:`unless_out_of_bounds` has them.
    """
    found = {each.verdict for each in quantities if _why_not(each) or _was_other(each)}
    red = {each.verdict for each in quantities} & _NEVER_GREEN
    return worst([verdict, *found, *red])


def _was_other(quantity: QuantityRecord) -> bool:
    """Tell whether its record says another verdict than it has now."""
    return bool(
        quantity.read_as.get(QUANTITY_KEYS["verdict"], quantity.verdict) != quantity.verdict
    )


def _why_no_number(quantity: QuantityRecord) -> str:
    value, bounds = quantity.value, (quantity.lower, quantity.upper, quantity.reference)
    is_word = value is None and not quantity.unit and bounds == (None, None, None)
    if is_word or (value is not None and math.isfinite(value)):
        return ""
    said = "it has none" if value is None else f"its value is {value:g} {quantity.unit}".rstrip()
    return f"the record says PASS of a number, and {said}: it was changed since it was judged"


def _why_not(quantity: QuantityRecord) -> str:
    value, lower, upper = quantity.value, quantity.lower, quantity.upper
    if value is None:
        return ""
    if lower is not None and value < lower - PRINT_ROUNDING:
        bound = f"below its own bound, {lower:g}"
    elif upper is not None and value > upper + PRINT_ROUNDING:
        bound = f"above its own bound, {upper:g}"
    else:
        return ""
    return (
        f"the record says PASS, and its value {value:g} {quantity.unit} is {bound}: it was changed "
        "since it was judged"
    )
