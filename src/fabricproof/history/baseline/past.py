"""What a baseline reads of the past: which numbers are known to be good, and of which machines."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from fabricproof.core.errors import ExitStatus, FabricproofError
from fabricproof.core.provenance import PLACE, LegPlace

if TYPE_CHECKING:
    import polars as pl


class NotKnownGoodError(FabricproofError, ValueError):
    """The runs hold too few numbers that are known to be good."""

    exit_status = ExitStatus.DATA


#: columns of the store that are needed beside those of a place
COLUMNS = (
    "run_id", "quantity", "unit", "message_size", "better", "named", "value", "verdict", "reason",
    "reference", "road_state", "inventory", "attempt",
)  # fmt: skip

#: verdicts after which nothing is learnt of a leg in that run
_SPOILT = ("FAIL", "INVALID", "MISSING")


@dataclass(frozen=True, kw_only=True, slots=True)
class Number:
    """One number of one run, the one that counted.

    Attributes:
        place: what it was measured of, but for the quantity.
        quantity: ``bandwidth_1MiB``.
        message_size: in bytes, or None.
        better: 1 or -1.
        named: whether it carries a verdict.
        value: positive.
        verdict: as it was judged.
        open_: nobody said what it should be, on a path that was proven.
        inventory: node to the digest of what it was made of.
        relation: it is of a relation between legs, which no baseline judges.
    """

    run_id: str
    place: LegPlace
    quantity: str
    unit: str
    message_size: int | None
    better: int
    named: bool
    value: float
    verdict: str
    reason: str
    open_: bool
    inventory: Mapping[str, str | None]
    relation: bool

    @property
    def nodes(self) -> tuple[str, ...]:
        """The nodes that took part."""
        return tuple(node for node in self.place.nodes.split(",") if node)


def numbers_in(samples: pl.DataFrame) -> Iterator[Number]:
    """Yield every number of these samples that counted, that has a direction and is positive."""
    rows = samples.filter("counts", _directed())
    places: dict[tuple[Any, ...], LegPlace] = {}
    inventories: dict[str, Mapping[str, str | None]] = {}
    for row in rows.select(*PLACE, *COLUMNS).iter_rows(named=True):
        key = tuple(row[name] for name in PLACE)
        if key not in places:
            places[key] = LegPlace(**dict(zip(PLACE, key, strict=True)))
        text = row["inventory"] or ""
        if text not in inventories:
            inventories[text] = _inventory(text)
        yield Number(
            run_id=row["run_id"],
            place=places[key],
            quantity=row["quantity"],
            unit=row["unit"],
            message_size=row["message_size"],
            better=row["better"],
            named=row["named"],
            value=row["value"],
            verdict=row["verdict"],
            reason=row["reason"] or "",
            open_=row["reference"] is None and row["road_state"] == "proven",
            inventory=inventories[text],
            relation=row["attempt"] == 0 or row["unit"] == "x",
        )


def _directed() -> pl.Expr:
    """Return which rows have a number that is positive and of which it is known what is better."""
    import polars as pl  # noqa: PLC0415 - start-up time

    return ((pl.col("better") != 0) & (pl.col("value") > 0)).fill_null(value=False)


@dataclass(frozen=True, kw_only=True, slots=True)
class Spoilt:
    """What counted and was red or MISSING, and is no :class:`Number`.

    Losses have no direction, and what was not printed has no value.

    Attributes:
        place: what it was to be measured of, but for the quantity.
        quantity: ``retransmitted_per_million_packets``.
        verdict: ``FAIL``, ``INVALID`` or ``MISSING``.
    """

    run_id: str
    place: LegPlace
    quantity: str
    verdict: str


def spoilt_in(samples: pl.DataFrame) -> Iterator[Spoilt]:
    """Yield what of these samples counted, was red or MISSING, and is no number."""
    import polars as pl  # noqa: PLC0415 - start-up time

    rows = samples.filter("counts", ~_directed(), pl.col("verdict").is_in(_SPOILT))
    for row in rows.select(*PLACE, "run_id", "quantity", "verdict").iter_rows(named=True):
        yield Spoilt(place=LegPlace(**{name: row.pop(name) for name in PLACE}), **row)


def legs_of(several: Iterable[Number]) -> Iterator[list[Number]]:
    """Yield neighbouring numbers of one leg of one run, whose nodes are of one make."""
    for _, leg in itertools.groupby(
        several, lambda each: (each.run_id, each.place, each.inventory)
    ):
        yield list(leg)


def records_of(place: LegPlace) -> tuple[LegPlace, ...]:
    """Return the places that a record of this leg may have.

    A program that printed nothing said neither its version nor its setting, and where nobody saw a
    rank no node is known.
    """
    bare = without(place, "tool_version", "settings")
    return place, bare, without(bare, "nodes")


@functools.lru_cache(maxsize=10_000)
def without(place: LegPlace, *names: str) -> LegPlace:
    """Return a place of which some fields say nothing."""
    return replace(place, **dict.fromkeys(names, ""))


def _inventory(text: str) -> Mapping[str, str | None]:
    pairs = (each.partition("=") for each in text.split(",") if each)
    return {node: digest or None for node, _, digest in pairs}


def why_not_good(number: Number) -> str:
    """Return why a number is not known to be good; empty where it is."""
    if number.verdict == "PASS" or (number.verdict == "UNJUDGED" and number.open_):
        return ""
    return f"{number.verdict}: {number.reason}"
