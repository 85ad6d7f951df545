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
    TCP,
    CounterSample,
    Risen,
    in_our_names,
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
    Run,
    beside_verbs,
    join,
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
    "in_our_names",
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
    """Return why the counters of the rails cannot bear witness; None if they can.

    For who asks which interfaces were taken, not whether the path was the one that was told.
    """
    run = join(evidence, expected)
    return next(filter(None, (test(run) for test in _COUNTER_TESTS)), None)


def prove_path(evidence: Evidence, expected: Expectation) -> PathProof:
    """Compare what the counters saw with what the benchmark says it moved.

    Never raises: evidence that is not there or makes no sense is a finding of its own.
    """
    run = join(evidence, expected)
    fault = next(filter(None, (test(run) for test in _TESTS)), None)
    return _quiet_or_disturbed(run) if fault is None else fault


def _quiet_or_disturbed(run: Run) -> PathProof:
    samples, expected = run.evidence.samples, run.expected
    rises = read_rises(samples, expected.rails)
    sent = ", ".join(f"{node.name} sent {megabytes(node.moved())}" for node in run.nodes)
    state, reason = PathState.PROVEN, f"over {run.rails} {sent}"
    if rises.errors:
        state, reason = PathState.DISTURBED, "; ".join(rises.errors)
    elif rises.doubts:
        state = PathState.UNKNOWN
        reason = f"whether errors rose is not known: {'; '.join(rises.doubts)}"
    due, seen = sum(expected.sent_bytes), sum(node.moved() for node in run.nodes)
    foreign = (
        f"the rails carried {megabytes(seen)} where the benchmark moved {megabytes(due)}: other "
        "traffic ran beside it"
    )
    is_foreign = expected.exact and seen > MAX_SHARE * due + SLACK_BYTES
    return PathProof(
        state=state,
        reason=reason,
        findings=(*rises.notes, *([foreign] if is_foreign else [])),
        moved_bytes={
            f"{each.node}:{each.interface}": each.moved("tx_bytes")
            for each in samples
            if each.interface != TCP
        },
        rose=rises.rose,
    )
