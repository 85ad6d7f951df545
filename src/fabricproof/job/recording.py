"""Turn a leg's outcome into records for the perflog, environment included."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from fabricproof.core.findings import Finding
from fabricproof.core.measure import Quantity, Verdict, worst
from fabricproof.core.provenance import BINARY_KEY
from fabricproof.job.leg import own_name
from fabricproof.job.outcome import Attempt, Outcome
from fabricproof.traffic.error_rates import added
from fabricproof.verdict.value import Report


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
    counted = [(each.counted, each.leg.environment) for each in outcomes]
    return _digest({"legs": [_environment(each, told) for each, told in counted if each]})


#: suite of a check that is none of ours
SUITE_OF_OTHERS = "ReFrame"

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
    program, if it is known.
    """
    leg, report = outcome.leg, outcome.report
    base: dict[str, Any] = {
        **identity,
        "leg": leg.name,
        "rails": list(leg.rails),
        # A relation starts no program of its own.
        "relation": "" if leg.commands else own_name(leg.name, leg.rails),
        "suite": leg.suite,
        "program": leg.program,
    }
    if leg.fabric is not None:
        base["link"] = leg.fabric.link.name
    for attempt in outcome.attempts:
        environment = _environment(attempt, leg.environment)
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
        for each in attempt.report.quantities:
            yield {**_quantity(run, each, attempt.report), "counts": outcome.takes(each)}
    errors = added(rate for attempt in outcome.attempts for rate in attempt.errors)
    path = report.net_path
    net_path = path and {
        "state": path.state.value,
        "reason": path.reason,
        "moved_bytes": dict(path.moved_bytes or {}),
    }
    yield {
        **_verdict(base, report.verdict, report.quantities),
        "findings": [each.record() for each in (*notes, *report.findings)],
        "attempts": len(outcome.attempts),
        "road": net_path,
        "errors": [each.record() for each in errors],
        **({BINARY_KEY: binary} if binary else {}),
    }
    if not outcome.attempts:
        run = {**base, "attempt": 0, "counts": True, "nodes": list(outcome.nodes)}
        yield from (_quantity(run, each, report) for each in report.quantities)


def describe_numbers(
    identity: Mapping[str, object],
    quantities: Sequence[Quantity],
    *,
    check: str,
    leg: str,
    nodes: Sequence[str],
) -> Iterator[dict[str, Any]]:
    """Yield a record for each number of a check that is none of ours, then one with the verdict.

    No path is proven there, and no leg has rails.
    """
    base: dict[str, Any] = {
        **identity,
        "check": check,
        "program": check,
        "suite": SUITE_OF_OTHERS,
        "leg": leg,
        "fabric": "",
        "rails": [],
        "relation": "",
        "attempt": 1,
        "counts": True,
        "tool_version": None,
        "attributes": {},
        "nodes": sorted(nodes),
    }
    for each in quantities:
        yield _quantity(base, each, None)
    yield _verdict(base, worst([each.verdict for each in quantities]), quantities)


def _quantity(run: Mapping[str, Any], each: Quantity, report: Report | None) -> dict[str, Any]:
    state = report.net_path.state.value if report and report.net_path else None
    return {**run, "kind": "quantity", **each.record(), "road_state": state}


def _verdict(
    base: Mapping[str, Any], verdict: Verdict, quantities: Sequence[Quantity]
) -> dict[str, Any]:
    reasons = dict.fromkeys(each.reason for each in quantities if each.verdict is verdict)
    return {
        **base,
        "kind": "leg",
        "verdict": verdict.value,
        "findings": [],
        "attempts": 1,
        "reasons": list(reasons)[:3],
        "road": None,
        "errors": [],
    }
