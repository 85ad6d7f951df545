"""What a run of iperf3 says of itself beside its rate: retransmissions, and a limit of its own."""

from __future__ import annotations

from dataclasses import replace

from fabricproof.core.measure import Table, Verdict
from fabricproof.verdict.value import ERROR_UNIT, Judgement, no_number

#: Retransmissions per million segments above which a file proves no healthy path: our choice, and
#: the limit of our own legs of more than two nodes.  Several senders overflow the buffer of a
#: switch's port, and TCP finds its rate by that; how many there were, a file does not say.
RETRANSMITTED_PER_MILLION = 1000.0
#: the limit of our own legs of two nodes, above which a file is told of them
PAIR_PER_MILLION = 10.0
#: so few are chance: from a path that loses as much as it may, 20 come instead of 10 once in 300
_FEWEST = 20
#: payload of a full frame of 1500 B with TCP's time stamps, where the output tells no segment size:
#: larger segments would be fewer, and the rate higher
_SEGMENT_BYTES = 1448
#: a rate within this fraction of the limit that the run had reached it
_REACHED = 0.9


def judge_retransmissions(table: Table) -> tuple[list[Judgement], list[str]]:
    """Judge TCP's retransmissions per million segments, where they are too many for a PASS.

    Segments are the bytes that arrived over the sender's segment size.  Too many are UNJUDGED: a
    sender also counts those that it sent again in vain, and a file has no counter that tells them
    apart (TCPDSACKRecv), which a run of our own reads.

    Returns:
        The judgement, none where they are few; and a note where two nodes alone would lose less.
    """
    said = table.attributes
    events, moved = int(said.get("retransmits", 0)), float(said.get("moved_bytes", 0))
    segments = moved / float(said.get("mss_bytes", _SEGMENT_BYTES))
    per_million = events / max(segments, events, 1) * 1e6
    found = f"{events} of {segments:.3g} segments were sent again, {per_million:.3g} per million"
    if events < _FEWEST or per_million <= PAIR_PER_MILLION:
        return [], []
    if per_million <= RETRANSMITTED_PER_MILLION:
        return [], [found]
    judged = no_number(
        "retransmitted_per_million_packets",
        Verdict.UNJUDGED,
        f"{found}: above {RETRANSMITTED_PER_MILLION:g} the path lost them or others filled it, "
        "unless they had arrived (TCPDSACKRecv of the sender counts those)",
        ERROR_UNIT,
    )
    return [replace(judged, value=per_million, upper=RETRANSMITTED_PER_MILLION)], []


def unless_limited(judgement: Judgement, table: Table) -> Judgement:
    """Return a FAIL as UNJUDGED where ``iperf3 -b`` limited the run to a rate that it reached."""
    limit, value = float(table.attributes.get("target_mb_s", 0)), judgement.value
    if judgement.verdict is not Verdict.FAIL or value is None or not 0 < _REACHED * limit <= value:
        return judgement
    reason = f"{judgement.reason}; but the run was limited to {limit:.6g} MB/s (-b), and reached it"
    return replace(judgement, verdict=Verdict.UNJUDGED, reason=reason)
