"""What the JSON of a baseline must be: each value of its kind, each number one that can be.

A bound of NaN is crossed by nothing, and a place that is no text fits nothing: neither is read.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fabricproof.core.plain import typed_at
from fabricproof.verdict.baseline.model import PLACE, BaselineNode, LegPlace, Limit


def read_place(record: Mapping[str, Any]) -> LegPlace:
    """Return the place that a record is of.

    Raises:
        KeyError, ValueError: a part is not there, or is no text.
    """
    return LegPlace(**{name: typed_at(record, name, str) for name in PLACE})


def read_node(record: Mapping[str, Any]) -> BaselineNode:
    """Return what a node was made of.

    Raises:
        KeyError, TypeError, ValueError: a part is not there, or is of another kind.
    """
    facts: Mapping[str, Mapping[str, Any]] = record["facts"]
    values = [value for each in facts.values() for value in each.values()]
    if not all(type(value) in {str, int} for value in values):
        raise TypeError("a fact is no text and no whole number")
    return BaselineNode(digests=typed_at(record, "digests", tuple[str, ...]), facts=facts)


def read_limit(record: Mapping[str, Any]) -> Limit:
    """Return median and bounds of a quantity.

    Raises:
        KeyError, TypeError, ValueError: a part is not there, or cannot be.
    """
    quantity = typed_at(record, "quantity", str)
    low, median, high = (typed_at(record, key, float) for key in ("low", "median", "high"))
    if low <= 0:
        raise ValueError(f"{quantity} has a bound that is no positive number")
    if not low <= median <= high or record["better"] not in (-1, 1):
        raise ValueError(f"the bounds of {quantity} do not hold its median")
    return Limit(
        quantity=quantity,
        unit=typed_at(record, "unit", str),
        better=int(record["better"]),
        median=median,
        low=low,
        high=high,
        runs=int(typed_at(record, "runs", float)),
    )
