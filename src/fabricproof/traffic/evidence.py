"""Whether the counters can carry a proof at all."""

from __future__ import annotations

from fabricproof.traffic.counters import CounterSample
from fabricproof.traffic.expected import Evidence, Expectation, due_to_send, packets_due
from fabricproof.traffic.proof import RoadProof, RoadState, proof
from fabricproof.traffic.wrong_path import describe_shared_wire

#: Where InfiniBand's 32-bit counters stop (IBA specification vol. 1, 16.1.3.5: they do not wrap),
#: in bytes: drivers without the extended counters show them as they are.
IB_COUNTER_END_BYTES = 4 * (2**32 - 1)


def evidence_is_whole(evidence: Evidence, expected: Expectation) -> RoadProof | None:
    """Refuse a road whose counters were not read, or cannot be what was counted."""
    for node in evidence.nodes:
        there = {sample.interface: sample for sample in evidence.samples if sample.node == node}
        for rail in expected.rails:
            if rail not in there:
                return proof(
                    RoadState.UNKNOWN, f"no counters of {rail} on {node}: the road is not shown"
                )
            trouble = _damage(there[rail], expected)
            if trouble is not None:
                reason = f"counters of {rail} on {node} {trouble}: the road is not shown"
                return proof(RoadState.UNKNOWN, reason)
    return None


def rails_are_apart(evidence: Evidence, expected: Expectation) -> RoadProof | None:
    """Refuse several Soft-RoCE devices over one interface as several rails."""
    wrong = describe_shared_wire(evidence, expected)
    return None if wrong is None else proof(RoadState.WRONG, wrong)


def something_was_due(evidence: Evidence, expected: Expectation) -> RoadProof | None:
    """Refuse a proof by nothing: any road carries no bytes and no messages."""
    due = sum(due_to_send(evidence, expected).values())
    due += sum(received for _, received in expected.least_bytes or ())
    due += sum(packets_due(evidence, expected).values())
    if due > 0 or expected.num_ranks == 1:
        return None
    reason = "nobody can say of any byte or message that it had to pass: the road is not shown"
    return proof(RoadState.UNKNOWN, reason)


def _damage(sample: CounterSample, expected: Expectation) -> str | None:
    """Return what is wrong with a rail's counters, or None.

    Other interfaces may come and go (a container's veth): the rails alone carry the proof.
    """
    counted = expected.sent_messages or expected.least_packets
    due = ["tx_bytes", "rx_bytes"] + (["tx_packets"] if counted else [])
    absent = [counter for counter in due if not sample.has(counter)]
    if sample.parent is not None and {"tx_bytes", "rx_bytes"} & {*absent}:
        return (
            f"were not read ({', '.join(absent)}): rdma_rxe of this kernel counts no bytes; take "
            "one with ports/1/counters (Linux 7.2 has them, 6.1 and 6.12 do not)"
        )
    if absent:
        return f"were not read both before and after ({', '.join(absent)})"
    if any(sample.ran_backwards(counter) for counter in due):
        return "ran backwards (wrapped or reset during the run)"
    is_port = ":" in sample.interface and sample.parent is None
    if is_port and IB_COUNTER_END_BYTES in {sample.after["tx_bytes"], sample.after["rx_bytes"]}:
        return "stand at the end of their 32 bits (reset them: perfquery -R)"
    return None
