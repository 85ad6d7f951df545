"""A report as plain data: the form of ``--json``, versioned, with a schema beside it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from fabricproof.core.plain import plain
from fabricproof.history.compare.model import comparison_record
from fabricproof.history.trend.model import trend_record
from fabricproof.job.run import LegResult
from fabricproof.report.model import ReportData
from fabricproof.report.red import red_groups, what_next
from fabricproof.report.text.drain import advise

#: rises where a field changes its meaning or goes; new fields do not raise it
FORMAT = 3


def report_record(data: ReportData, records: Sequence[Mapping[str, Any]] = ()) -> dict[str, Any]:
    """Return the whole report as plain data; numbers that are not there are null.

    Keys are told once, in ``keys``; matrix, bounds, bands and raw numbers name one by its place in
    that list.  ``comparison`` and ``trend`` are what those commands print with ``--json``.
    """
    found = dict.fromkeys([*data.matrix.keys, *data.bounds, *data.bands, *data.raw])
    keys = list(found)
    place = {key: index for index, key in enumerate(keys)}
    confirmations = [each for each in records if each.get("kind") == "confirmation"]
    groups = red_groups(data.session, confirmations)
    advice = advise(data, records)
    return {
        "format": FORMAT,
        "site": data.site,
        **plain({"made": data.made, "run": data.run}),
        "verdict": data.session.verdict.value,
        "counts": {verdict.value: count for verdict, count in data.session.counts().items()},
        "legs": [leg_record(each) for each in data.session.legs],
        "red": [
            plain(each, "device", "programs", without={"legs"}, num_legs=len(each.legs))
            for each in groups
        ],
        "next": what_next(groups, data.site, data.run.run_id),
        "drain": plain(advice, blamed=[plain(each, "line") for each in advice.blamed]),
        "keys": [plain(each) for each in keys],
        "runs": [plain(each) for each in data.matrix.runs],
        "matrix": plain(
            data.matrix,
            without={"runs"},
            keys=[place[key] for key in data.matrix.keys],
            values=data.matrix.values.tolist(),
        ),
        "bounds": [{"key": place[key], **plain(each)} for key, each in data.bounds.items()],
        "bands": [{"key": place[key], **plain(each)} for key, each in data.bands.items()],
        "raw": {str(place[key]): [plain(each) for each in all_] for key, all_ in data.raw.items()},
        "comparison": comparison_record(data.comparison) if data.comparison else None,
        "trend": trend_record(data.trend) if data.trend else None,
        "machines": data.machines,
        "inventory_changes": [plain(each) for each in data.inventory_changes],
        "notes": list(dict.fromkeys((*data.notes, *data.session.notes))),
    }


def leg_record(leg: LegResult) -> dict[str, Any]:
    """Return a leg as plain data, the form of every ``--json`` that tells of legs."""
    return plain(
        leg,
        "layout",
        "device",
        findings=[each.record() for each in leg.findings],
        quantities=[each.facts() for each in leg.quantities],
    )
