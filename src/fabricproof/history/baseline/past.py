"""What a baseline reads of the past: which numbers are known to be good, and of which machines."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from fabricproof.core.errors import ExitStatus, FabricproofError
from fabricproof.verdict.baseline import (
    PLACE,
    LegPlace,
)
from fabricproof.verdict.value import PRINT_ROUNDING, Source, recorded_source

if TYPE_CHECKING:
    from fabricproof.history.store import Store


class NotKnownGoodError(FabricproofError, ValueError):
    """The runs hold too few numbers that are known to be good, or one that cannot be true."""

    exit_status = ExitStatus.DATA


#: columns of the store that are needed beside those of a place
COLUMNS = (
    "run_id", "quantity", "unit", "message_size", "better", "named", "value", "verdict", "reason",
    "ceiling", "ceiling_name", "reference", "origin", "source", "road_state", "inventory",
    "attempt", "file", "line",
)  # fmt: skip


@dataclass(frozen=True, kw_only=True, slots=True)
class Number:
    """One number of one run, the one that counted.

    Attributes:
        run_id: of the run.
        place: what it was measured of, but for the quantity.
        quantity: ``bandwidth_1MiB``.
        unit: of the value.
        message_size: in bytes, or None.
        better: 1 or -1.
        named: whether it carries a verdict.
        value: positive.
        verdict: as it was judged.
        reason: why.
        source: of the reference it was judged by; None where there was none.
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
    source: Source | None
    open_: bool
    inventory: Mapping[str, str | None]
    relation: bool

    @property
    def nodes(self) -> tuple[str, ...]:
        """The nodes that took part."""
        return tuple(node for node in self.place.nodes.split(",") if node)


def numbers(store: Store, run_ids: Iterable[str], *, trusting: bool = False) -> Iterator[Number]:
    """Yield every number of these runs that counted, that has a direction and is positive.

    Args:
        store: the site's history.
        run_ids: which runs.
        trusting: take records as they are; nothing is learnt from them.

    Raises:
        NotKnownGoodError: one was called good and lies beyond its own physical limit.
    """
    import polars as pl  # noqa: PLC0415 - start-up time

    rows = store.samples(run_ids).filter(
        pl.col("counts") & (pl.col("better") != 0) & (pl.col("value") > 0)
    )
    places: dict[tuple[Any, ...], LegPlace] = {}
    inventories: dict[str, Mapping[str, str | None]] = {}
    for row in rows.select(*PLACE, *COLUMNS).iter_rows(named=True):
        key = tuple(row[name] for name in PLACE)
        place = places.setdefault(key, LegPlace(**dict(zip(PLACE, key, strict=True))))
        text = row["inventory"] or ""
        if text not in inventories:
            inventories[text] = _inventory(text)
        if row["verdict"] == "PASS" and not trusting:
            _refuse_impossible(row)
        yield Number(
            run_id=row["run_id"],
            place=place,
            quantity=row["quantity"],
            unit=row["unit"],
            message_size=row["message_size"],
            better=row["better"],
            named=row["named"],
            value=row["value"],
            verdict=row["verdict"],
            reason=row["reason"] or "",
            source=recorded_source(row["source"], row["origin"]),
            open_=row["reference"] is None and row["road_state"] == "proven",
            inventory=inventories[text],
            relation=row["attempt"] == 0 or row["unit"] == "x",
        )


def _inventory(text: str) -> Mapping[str, str | None]:
    pairs = (each.partition("=") for each in text.split(",") if each)
    return {node: digest or None for node, _, digest in pairs}


def _refuse_impossible(row: Mapping[str, Any]) -> None:
    limit = row["ceiling"]
    if limit is None:
        return
    floor = row["ceiling_name"] == "latency floor"
    beyond = limit - row["value"] if floor else row["value"] - limit
    if beyond <= PRINT_ROUNDING or (not floor and row["unit"] != "MB/s"):
        return
    raise NotKnownGoodError(
        f"a number that cannot be true: {row['quantity']} = {row['value']:g} {row['unit']}",
        source=row["file"],
        line=row["line"],
        expected=f"at {'least' if floor else 'most'} {limit:g} ({row['ceiling_name']})",
        got="a PASS: the record was changed after it was judged",
        next_step=f"leave run {row['run_id']} out",
    )


def why_not_good(number: Number) -> str:
    """Return why a number is not known to be good; empty where it is."""
    if number.verdict == "PASS" or (number.verdict == "UNJUDGED" and number.open_):
        return ""
    return f"{number.verdict}: {number.reason}"
