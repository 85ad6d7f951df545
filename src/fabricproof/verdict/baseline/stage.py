"""What a baseline says of a job's legs, as ``baseline.json`` beside its plan.

The second look inside the job and the judgement after it read this copy, not the site's file: both
judge alike, the nodes need not see the site's folder, and a verdict can be repeated from the stage
folder after the baseline has been replaced.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, astuple, fields, replace
from pathlib import Path
from typing import Any

from fabricproof.core.errors import ParseError, words_of
from fabricproof.core.plain import typed_at
from fabricproof.core.records import text_of
from fabricproof.core.units import by_key
from fabricproof.core.whole_file import refusal_of
from fabricproof.verdict.baseline.apply import LegBaseline
from fabricproof.verdict.baseline.model import Baseline, LegPlace, Limit
from fabricproof.verdict.baseline.sound import read_limit, read_node, read_place

STAGE_FILE = "baseline.json"
FORMAT = 1

#: fields of a place that nobody knows before the leg has run
UNKNOWN_BEFORE = {"tool_version": "", "nodes": "", "settings": ""}


def of_leg(baseline: Baseline, place: LegPlace, nodes: Sequence[str] = ()) -> LegBaseline:
    """Return what the baseline says of one leg.

    ``place`` is what is known of the leg before it runs; without ``nodes`` any will do.
    """
    pinned = ",".join(sorted(nodes))
    asked = replace(place, **UNKNOWN_BEFORE)
    rows = tuple(
        (group.place, row.limit)
        for group in baseline.groups
        if replace(group.place, **UNKNOWN_BEFORE, build=asked.build) == asked
        and pinned in {"", group.place.nodes}
        for row in group.rows
    )
    names = {node for other, _ in rows for node in other.nodes.split(",")}
    return LegBaseline(
        name=baseline.name,
        date=baseline.date,
        place=asked,
        rows=rows,
        nodes={name: node for name, node in baseline.nodes.items() if name in names},
        settings=baseline.settings,
        site=baseline.site,
    )


def write_stage(folder: Path, legs: Mapping[str, LegBaseline]) -> None:
    """Write what the baseline says of each leg into a job's folder.

    Raises:
        OutputError: it could not be written.
    """
    nodes = {name: asdict(node) for leg in legs.values() for name, node in leg.nodes.items()}
    record = {
        "format": FORMAT,
        "nodes": nodes,
        "legs": {
            name: {
                "name": leg.name,
                "date": leg.date,
                "settings": leg.settings,
                "site": leg.site,
                "place": asdict(leg.place),
                "groups": [
                    {"place": asdict(place), "rows": [astuple(row) for row in rows]}
                    for place, rows in by_key(leg.rows).items()
                ],
            }
            for name, leg in legs.items()
        },
    }
    path = folder / STAGE_FILE
    with refusal_of("write", path, "make room"):
        path.write_text(json.dumps(record, separators=(",", ":")), encoding="utf-8")


def read_stage(folder: Path, leg: str) -> LegBaseline:
    """Read what :func:`write_stage` wrote of one leg.

    Raises:
        ParseError: it is gone or damaged.
    """
    path = folder / STAGE_FILE
    try:
        record = json.loads(text_of(path))
        if record["format"] != FORMAT:
            raise ValueError(f"format {record['format']}")
        return _leg(record["legs"][leg], record["nodes"])
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise ParseError(
            "no readable baseline beside the plan",
            source=str(path),
            expected=f"a file of format {FORMAT} that knows leg {leg}",
            got=words_of(error),
        ) from None


def _leg(record: Mapping[str, Any], nodes: Mapping[str, Any]) -> LegBaseline:
    rows = [
        (read_place(group["place"]), _limit(each))
        for group in typed_at(record, "groups", list)
        for each in typed_at(group, "rows", list)
    ]
    names = {node for place, _ in rows for node in place.nodes.split(",")}
    return LegBaseline(
        name=typed_at(record, "name", str),
        date=typed_at(record, "date", str),
        place=read_place(record["place"]),
        rows=tuple(rows),
        nodes={name: read_node(each) for name, each in nodes.items() if name in names},
        settings=typed_at(record, "settings", tuple[str, ...]),
        site=typed_at({"site": "", **record}, "site", str),
    )


def _limit(values: Sequence[Any]) -> Limit:
    names = [each.name for each in fields(Limit)]
    return read_limit(dict(zip(names, values, strict=True)))
