"""A report as plain data: the form of ``--json``, versioned, with a schema beside it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, fields
from typing import Any

from fabricproof.core.measure import texts_of
from fabricproof.history.compare.model import comparison_record
from fabricproof.history.store import Key, Run
from fabricproof.history.trend.model import trend_record
from fabricproof.job.run import LegResult
from fabricproof.report.model import ReportData
from fabricproof.report.red import red_groups, what_next
from fabricproof.report.text.drain import DrainAdvice, advise

#: rises where a field changes its meaning or goes; new fields do not raise it
FORMAT = 1


def report_record(data: ReportData, records: Sequence[Mapping[str, Any]] = ()) -> dict[str, Any]:
    """Return the whole report as plain data; numbers that are not there are null.

    Keys are told once, in ``keys``; matrix, bounds, bands and raw numbers name one by its place in
    that list.  ``comparison`` and ``trend`` are what those commands print with ``--json``.
    """
    keys = _all_keys(data)
    place = {key: index for index, key in enumerate(keys)}
    confirmations = [each for each in records if each.get("kind") == "confirmation"]
    groups = red_groups(data.session, confirmations)
    return {
        "format": FORMAT,
        "site": data.site,
        "made": data.made.strftime("%Y-%m-%dT%H:%M:%SZ"),
        "run": _run(data.run),
        "verdict": data.session.verdict.value,
        "counts": {verdict.value: count for verdict, count in data.session.counts().items()},
        "legs": [leg_record(each) for each in data.session.legs],
        "red": [
            {
                "verdict": each.verdict.value,
                "rails": each.rails,
                "device": each.device,
                "nodes": list(each.nodes),
                "programs": each.programs,
                "num_legs": len(each.legs),
                "worst": each.worst,
                "sure": each.sure,
                "confirmed": each.confirmed,
            }
            for each in groups
        ],
        "next": what_next(groups, data.site, data.run.run_id),
        "drain": _drain(advise(data, records)),
        "keys": [asdict(each) for each in keys],
        "runs": [_run(each) for each in data.matrix.runs],
        "matrix": {
            "keys": [place[key] for key in data.matrix.keys],
            "values": [[_number(each) for each in row] for row in data.matrix.values.tolist()],
            "verdicts": [list(row) for row in data.matrix.verdicts],
            "set_aside": [list(each) for each in data.matrix.set_aside],
        },
        "bounds": [{"key": place[key], **asdict(each)} for key, each in data.bounds.items()],
        "bands": [{"key": place[key], **asdict(each)} for key, each in data.bands.items()],
        "raw": {str(place[key]): [_plain(each) for each in all_] for key, all_ in data.raw.items()},
        "comparison": comparison_record(data.comparison) if data.comparison else None,
        "trend": trend_record(data.trend) if data.trend else None,
        "machines": data.machines,
        "inventory_changes": [
            {**asdict(each), "nodes": list(each.nodes)} for each in data.inventory_changes
        ],
        "notes": list(dict.fromkeys((*data.notes, *data.session.notes))),
    }


def _all_keys(data: ReportData) -> list[Key]:
    found = dict.fromkeys([*data.matrix.keys, *data.bounds, *data.bands, *data.raw])
    return list(found)


def _plain(record: Any) -> dict[str, Any]:
    """Return a flat record as a mapping; faster than asdict, which copies deeply."""
    named = {each.name: getattr(record, each.name) for each in fields(record)}
    return {name: _number(value) for name, value in named.items()}


def _number(value: Any) -> Any:
    """Return ``value``, None for a number that is none: JSON knows neither NaN nor infinity."""
    if isinstance(value, float) and not abs(value) < float("inf"):
        return None
    return value


def _run(run: Run) -> dict[str, Any]:
    return {
        "run_id": run.run_id,
        "start": run.start.strftime("%Y-%m-%dT%H:%M:%SZ"),
        "inventory": dict(run.inventory),
        "builds": dict(run.builds),
        "rows": run.rows,
    }


def leg_record(leg: LegResult) -> dict[str, Any]:
    """Return a leg as plain data, the form of every ``--json`` that tells of legs."""
    return {
        "verdict": leg.verdict.value,
        "check": leg.check,
        "partition": leg.partition,
        "stack": leg.stack,
        "suite": leg.suite,
        "program": leg.program,
        "fabric": leg.fabric,
        "road": leg.leg,
        "rails": list(leg.rails),
        "layout": leg.layout,
        "relation": leg.relation,
        "link": leg.link,
        "device": leg.device,
        "nodes": list(leg.nodes),
        "reason": leg.reason,
        "job_id": leg.job_id,
        "stage_folder": leg.stage_folder,
        "road_proof": leg.net_path,
        "findings": texts_of(leg.findings),
        "errors": [dict(each) for each in leg.errors],
        "quantities": [
            {name: _number(value) for name, value in each.facts().items()}
            for each in leg.quantities
        ],
    }


def _drain(advice: DrainAdvice) -> dict[str, Any]:
    return {
        "blamed": [{**asdict(each), "line": each.line} for each in advice.blamed],
        "open": list(advice.unclear),
    }
