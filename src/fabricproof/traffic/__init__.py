"""The proof of the path: did the bytes go where the number says they went?

Every node's interface counters are read before and after a run.  A benchmark that says it moved
N bytes over rail 0 while rail 0's counters stood still measured something else.  This room
compares; it reads nothing.
"""

from __future__ import annotations

from fabricproof.traffic.counters import (
    ENDS,
    ERROR_COUNTERS,
    HIGH,
    LINK_REPLAYS,
    TCP,
    CounterSample,
    Risen,
    is_device,
    read_rises,
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
    beside_verbs,
    in_order,
    sent_over,
)
from fabricproof.traffic.proof import (
    bytes_came_by_the_rails,
    bytes_took_the_rails,
    evidence_is_whole,
    messages_took_the_rails,
    no_other_path_fits,
    no_other_path_fits_messages,
    prove_one_node,
    rails_shared,
    ranks_are_apart,
    ranks_are_where_they_belong,
    something_was_due,
)
from fabricproof.traffic.wrong_path import (
    ipoib_carried_none,
    megabytes,
    rails_are_apart,
    sockets_carried_them,
    wires_below_carried_them,
)

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
    "LINK_REPLAYS",
    "MAX_SHARE",
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
    "beside_verbs",
    "doubt_of_counters",
    "in_order",
    "is_device",
    "megabytes",
    "prove_one_node",
    "prove_path",
    "read_rises",
]

#: What must hold, in the order in which a failure says most.
_TESTS = (
    ranks_are_apart,
    ranks_are_where_they_belong,
    evidence_is_whole,
    rails_are_apart,
    something_was_due,
    bytes_took_the_rails,
    sockets_carried_them,
    ipoib_carried_none,
    bytes_came_by_the_rails,
    messages_took_the_rails,
    wires_below_carried_them,
    rails_shared,
    no_other_path_fits,
    no_other_path_fits_messages,
)

#: Of these, what tells whether the rails' own counters mean what they say.
_COUNTER_TESTS = (
    evidence_is_whole,
    rails_are_apart,
    ipoib_carried_none,
    wires_below_carried_them,
)


def doubt_of_counters(evidence: Evidence, expected: Expectation) -> PathProof | None:
    """Return why the counters of the rails cannot bear witness; None where they can.

    For who asks which interfaces were taken, not whether the path was the one that was told.
    """
    found = (test(evidence, expected) for test in _COUNTER_TESTS)
    return next((doubt for doubt in found if doubt is not None), None)


def prove_path(evidence: Evidence, expected: Expectation) -> PathProof:
    """Compare what the counters saw with what the benchmark says it moved.

    Never raises: evidence that is not there or makes no sense is a finding of its own.
    """
    for test in _TESTS:
        verdict = test(evidence, expected)
        if verdict is not None:
            return verdict
    return _quiet_or_disturbed(evidence, expected)


def _quiet_or_disturbed(evidence: Evidence, expected: Expectation) -> PathProof:
    rises = read_rises(evidence.samples, expected.rails)
    moved = {
        f"{sample.node}:{sample.interface}": sample.moved("tx_bytes")
        for sample in evidence.samples
        if sample.interface != TCP
    }
    seen = ", ".join(
        f"{node} sent {megabytes(sent_over(evidence, node, expected.rails))}"
        for node in evidence.nodes
    )
    state, reason = PathState.PROVEN, f"over {'+'.join(expected.rails)} {seen}"
    if rises.errors:
        state, reason = PathState.DISTURBED, "; ".join(rises.errors)
    elif rises.doubts:
        state = PathState.UNKNOWN
        reason = f"whether errors rose is not known: {'; '.join(rises.doubts)}"
    return PathProof(
        state=state,
        reason=reason,
        findings=(*rises.notes, *_foreign_traffic(evidence, expected)),
        moved_bytes=moved,
        rose=rises.rose,
    )


def _foreign_traffic(evidence: Evidence, expected: Expectation) -> list[str]:
    due = sum(expected.sent_bytes)
    seen = sum(sent_over(evidence, node, expected.rails) for node in evidence.nodes)
    if not expected.exact or seen <= MAX_SHARE * due + SLACK_BYTES:
        return []
    text = f"the rails carried {megabytes(seen)} where the benchmark moved {megabytes(due)}"
    return [f"{text}: other traffic ran beside it"]
