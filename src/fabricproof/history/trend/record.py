"""A trend as data for a machine."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from fabricproof.history.store import Run
from fabricproof.history.trend.model import Event, FoundDrift, FoundStep, Trend


def trend_record(trend: Trend) -> dict[str, Any]:
    """Return the form of ``--json``; columns of steps and histories are those of ``runs``."""
    return {
        "site": trend.site,
        "alpha": trend.alpha,
        "worse_now": trend.is_worse_now,
        "runs": [_run(each) for each in trend.runs],
        "quantities": trend.num_quantities,
        "too_short": trend.num_short,
        "facts": trend.num_facts,
        "lag": trend.lag,
        "too_few_for_steps": trend.too_few_for_steps,
        "events": [_event(each) for each in trend.events],
        "drifts": [_drift(each) for each in trend.drifts],
        "silent": list(trend.silent),
        "warnings": list(trend.warnings),
    }


def _run(run: Run) -> dict[str, Any]:
    return {"run_id": run.run_id, "start": run.start.isoformat()}


def _event(event: Event) -> dict[str, Any]:
    return {
        "run": _run(event.run),
        "where": event.where,
        "worse": event.worse,
        "lasts": event.lasts,
        "sentence": event.sentence,
        "coincides": list(event.coincides),
        "next_step": event.next_step,
        "steps": [_step(each) for each in event.steps],
    }


def _step(found: FoundStep) -> dict[str, Any]:
    return {
        "key": asdict(found.key),
        **asdict(found.step),
        "worse": found.worse,
        "lasts": found.lasts,
        "history": list(found.history),
    }


def _drift(found: FoundDrift) -> dict[str, Any]:
    return {
        "key": asdict(found.key),
        **asdict(found.drift),
        "worse": found.worse,
        "since": _run(found.run) if found.run else None,
        "history": list(found.history),
    }
