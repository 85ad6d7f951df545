"""The proof of the path: did the bytes go where the number says they went?

Every node's interface counters are read before and after a run.  This room compares them with what
the benchmark says it moved; it reads nothing.
"""

from __future__ import annotations

from fabricproof.traffic import proof, wrong_path
from fabricproof.traffic.counters import (
    ENDS,
    ERROR_COUNTERS,
    HIGH,
    TCP,
    CounterSample,
    Risen,
    in_our_names,
    is_device,
    read_rises,
    wire_events,
)
from fabricproof.traffic.expectation import (
    MAX_SHARE,
    MIN_RAIL_SHARE,
    MIN_SHARE,
    SLACK_BYTES,
    Evidence,
    Expectation,
    PathProof,
    PathState,
    Rank,
    RunTraffic,
    join_by_node,
)
from fabricproof.traffic.proof import prove_one_node
from fabricproof.traffic.wrong_path import megabytes

#: What other rooms may import beside this package itself.
FRONT: dict[str, str] = {
    "disturbance": "who else was on rail and core",
    "error_rates": "what the wire lost or damaged",
    "transports": "the transports that a path may be forced to",
}

__all__ = [
    "ENDS",
    "ERROR_COUNTERS",
    "HIGH",
    "MIN_RAIL_SHARE",
    "MIN_SHARE",
    "SLACK_BYTES",
    "CounterSample",
    "Evidence",
    "Expectation",
    "PathProof",
    "PathState",
    "Rank",
    "Risen",
    "RunTraffic",
    "doubt_of_counters",
    "in_our_names",
    "is_device",
    "join_by_node",
    "megabytes",
    "prove_one_node",
    "prove_path",
    "read_rises",
    "wire_events",
]

#: What must hold, in the order in which a failure says most.
_TESTS = (
    proof.ranks_are_apart,
    proof.ranks_are_where_they_belong,
    proof.evidence_is_whole,
    wrong_path.rails_are_apart,
    proof.something_was_due,
    proof.bytes_took_the_rails,
    wrong_path.ipoib_carried_none,
    proof.bytes_came_by_the_rails,
    proof.messages_took_the_rails,
    wrong_path.wires_below_carried_them,
    proof.rails_shared,
    proof.no_other_path_fits,
    proof.no_other_path_fits_messages,
)

#: Of these, what tells whether the rails' own counters mean what they say.
_COUNTER_TESTS = (
    proof.evidence_is_whole,
    wrong_path.rails_are_apart,
    wrong_path.ipoib_carried_none,
    wrong_path.wires_below_carried_them,
)


def doubt_of_counters(evidence: Evidence, expected: Expectation) -> PathProof | None:
    """Return why the counters of the rails cannot bear witness; None if they can."""
    run = join_by_node(evidence, expected)
    return next((fault for test in _COUNTER_TESTS for fault in test(run)), None)


def prove_path(evidence: Evidence, expected: Expectation) -> PathProof:
    """Compare what the counters saw with what the benchmark says it moved; never raises."""
    run, samples = join_by_node(evidence, expected), evidence.samples
    for test in _TESTS:
        for fault in test(run):
            return fault
    rises = read_rises(samples, expected.rails)
    sent = ", ".join(f"{node.name} sent {megabytes(node.moved())}" for node in run.nodes)
    state, reason = PathState.PROVEN, f"over {run.rails} {sent}"
    if rises.errors:
        state, reason = PathState.DISTURBED, "; ".join(rises.errors)
    elif rises.doubts:
        state = PathState.UNKNOWN
        reason = f"whether errors rose is not known: {'; '.join(rises.doubts)}"
    findings = rises.notes
    due, seen = sum(expected.sent_bytes), sum(node.moved() for node in run.nodes)
    if expected.exact and seen > MAX_SHARE * due + SLACK_BYTES:
        said = f"the rails carried {megabytes(seen)} where the benchmark moved {megabytes(due)}"
        findings += (f"{said}: other traffic ran beside it",)
    return PathProof(
        state=state,
        reason=reason,
        findings=findings,
        moved_bytes={
            f"{each.node}:{each.interface}": each.moved("tx_bytes")
            for each in samples
            if each.interface != TCP
        },
        rose=rises.rose,
    )
