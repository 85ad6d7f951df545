"""Which quantity of the store a leg's number is: a leg knows neither build nor settings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from fabricproof.history.store import Key
from fabricproof.job.run import LegResult
from fabricproof.report.model import ReportData

Place = tuple[str, ...]


def places(data: ReportData, keys: Sequence[Key]) -> dict[Place, int]:
    """Return the row of ``keys`` for each place that the reported run measured.

    A place that fits two quantities of this run is left out: better no link than a wrong one.

    Args:
        data: the report.
        keys: as :func:`fabricproof.report.html.payload.all_keys` returns them.
    """
    found: dict[Place, int] = {}
    twice: set[Place] = set()
    for row, key in enumerate(keys):
        for each in data.raw.get(key, ()):
            if each.run_id == data.run.run_id and each.counts:
                place = (*_of_key(key), key.quantity, each.verdict, str(each.value))
                if found.setdefault(place, row) != row:
                    twice.add(place)
    return {place: row for place, row in found.items() if place not in twice}


def _of_key(key: Key) -> Place:
    facts = (key.partition, key.fabric, key.stack, key.suite, key.program, key.check, key.leg)
    return (*facts, key.nodes)


def place_of(leg: LegResult, quantity: Mapping[str, Any]) -> Place:
    """Return the place of one number of a leg, in a report as people read it."""
    road = leg.road_name
    facts = (leg.partition, leg.fabric, leg.stack, leg.suite, leg.program, leg.check, road)
    nodes = quantity.get("nodes") or leg.nodes
    told = ("quantity_name", "quantity_verdict", "quantity_value")
    return (*facts, ",".join(sorted(nodes)), *(str(quantity.get(name)) for name in told))
