"""A comparison as plain data: the form of ``--json``, and what other programs read."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from fabricproof.history.compare.model import Compared, Comparison, Group, Side
from fabricproof.history.compare.unpaired import grouped
from fabricproof.history.stats.shifts import Shift

#: of the form; grows with each change that a reader of it must know
FORMAT = 1


def comparison_record(comparison: Comparison) -> dict[str, Any]:
    """Return everything that a comparison says; every number that it rests on is in it."""
    return {
        "format": FORMAT,
        "site": comparison.site,
        "overall": comparison.overall.value,
        "reason": comparison.reason,
        "filters": {name: list(values) for name, values in comparison.filters.items()},
        "more_runs": comparison.more_runs,
        "first": _side(comparison.first),
        "second": _side(comparison.second),
        "alpha": comparison.alpha,
        "margins": dict(comparison.margins),
        "groups": [_group(each) for each in comparison.groups],
        "quantities": [_compared(each) for each in comparison.quantities],
        "suspects": [each.key.label for each in comparison.suspects],
        "changes": [asdict(each) for each in comparison.changes],
        "warnings": list(comparison.warnings),
        "directionless": comparison.directionless,
        "not_compared": [
            {"side": side, "reason": reason, "quantities": count}
            for side, reason, _, count in grouped(comparison.unpaired)
        ],
        "unpaired": [
            {"key": asdict(each.key), "side": each.side, "reason": each.reason}
            for each in comparison.unpaired
        ],
    }


def _side(side: Side) -> dict[str, Any]:
    return {
        "words": side.words,
        "baseline": side.baseline,
        "stack": side.stack,
        "build": side.build,
        "runs": [
            {"run_id": each.run_id, "start": each.start.isoformat(), "inventory": each.inventory}
            for each in side.runs
        ],
    }


def _shift(shift: Shift | None) -> dict[str, Any] | None:
    if shift is None:
        return None
    return {**asdict(shift), "change": shift.change.value}


def _group(group: Group) -> dict[str, Any]:
    return {
        "kind": group.kind,
        "name": group.name,
        "metric": group.metric,
        "band": group.band,
        "also": list(group.also),
        "change": group.change.value,
        "shift": _shift(group.shift),
        "counts": {word.value: count for word, count in group.counts.items()},
        "sentence": group.sentence,
    }


def _compared(compared: Compared) -> dict[str, Any]:
    return {
        "key": asdict(compared.key),
        "shift": _shift(compared.shift),
        "first": dict(compared.first),
        "second": dict(compared.second),
        "note": compared.note,
    }
