"""Turn a leg's outcome into records for the perflog, environment included."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from fabricproof.core.findings import Finding
from fabricproof.core.provenance import BINARY_KEY
from fabricproof.job.leg import own_name
from fabricproof.job.outcome import Attempt, Outcome
from fabricproof.traffic.error_rates import added
from fabricproof.verdict.value import Judgement, Report


def _environment(attempt: Attempt, leg_environment: Mapping[str, str]) -> dict[str, Any]:
    return {
        "variables": dict(leg_environment),
        "ranks": [
            {
                "rank": each.rank,
                "node": each.node,
                "cpus": each.cpus,
                "kernel": each.kernel,
                "library": each.library,
                "interfaces": {name: dict(facts) for name, facts in each.facts.items()},
            }
            for each in attempt.ranks
        ],
    }


def _digest(environment: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(environment, sort_keys=True).encode()).hexdigest()[:12]


def environment_digest(outcomes: Sequence[Outcome]) -> str:
    """Return one short digest of what all legs of a job ran in."""
    parts = [
        _environment(outcome.counted, outcome.leg.environment)
        for outcome in outcomes
        if outcome.counted is not None
    ]
    return _digest({"legs": parts})


#: key of a leg's record: of how many legs the job kept records, all at once
LEGS_KEY = "legs_of_job"


def describe_outcome(
    outcome: Outcome,
    identity: Mapping[str, object],
    notes: Sequence[Finding] = (),
    binary: str = "",
) -> Iterator[dict[str, Any]]:
    """Yield one record for each quantity of each attempt, then one with the leg's verdict.

    Every raw attempt is kept; ``counts`` says which of its numbers made the verdict.

    ``identity`` of check, run, job and stack stands in every record; ``notes`` are findings from
    outside the leg, such as references that did not apply; ``binary`` is the SHA-256 of the leg's
    program, where it is known.
    """
    base: dict[str, Any] = {
        **identity,
        "leg": outcome.leg.name,
        "rails": list(outcome.leg.rails),
        # A relation starts no program of its own.
        "relation": "" if outcome.leg.commands else own_name(outcome.leg.name, outcome.leg.rails),
        "suite": outcome.leg.suite,
        "program": outcome.leg.program,
    }
    if outcome.leg.fabric is not None:
        base["link"] = outcome.leg.fabric.link.name
    for attempt in outcome.attempts:
        environment = _environment(attempt, outcome.leg.environment)
        run = {
            **base,
            "attempt": attempt.number,
            "counts": outcome.counts(attempt),
            "tool_version": attempt.table.version if attempt.table else None,
            "attributes": dict(attempt.table.attributes) if attempt.table else {},
            "nodes": sorted({each.node for each in attempt.ranks}),
            "environment_digest": _digest(environment),
        }
        yield {
            **run,
            "kind": "environment",
            "environment": environment,
            "errors": [each.record() for each in attempt.errors],
            "disturbances": [asdict(each) for each in attempt.disturbances.found],
        }
        for record, judgement in _quantities(run, attempt.report):
            yield {**record, "counts": outcome.takes(judgement)}
    report = outcome.report
    findings = [*notes, *report.findings]
    yield {
        **base,
        "kind": "leg",
        "verdict": outcome.report.verdict.value,
        "findings": [each.record() for each in findings],
        "attempts": len(outcome.attempts),
        "reasons": [each.reason for each in report.quantities if each.verdict is report.verdict][
            :3
        ],
        "road": _net_path(outcome.report),
        "errors": [
            each.record()
            for each in added(rate for attempt in outcome.attempts for rate in attempt.errors)
        ],
        **({BINARY_KEY: binary} if binary else {}),
    }
    if not outcome.attempts:
        run = {**base, "attempt": 0, "counts": True, "nodes": list(outcome.nodes)}
        for record, _ in _quantities(run, outcome.report):
            yield record


def _quantities(
    run: Mapping[str, Any], report: Report
) -> Iterator[tuple[dict[str, Any], Judgement]]:
    for judgement in report.quantities:
        record = {
            **run,
            "kind": "quantity",
            **judgement.record(),
            "road_state": report.net_path.state.value if report.net_path else None,
        }
        yield record, judgement


def _net_path(report: Report) -> dict[str, Any] | None:
    if report.net_path is None:
        return None
    return {
        "state": report.net_path.state.value,
        "reason": report.net_path.reason,
        "moved_bytes": dict(report.net_path.moved_bytes or {}),
    }
