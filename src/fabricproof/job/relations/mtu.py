"""Judge whether a path carries frames of the MTU that the site declares.

Three witnesses: what each node says of its interface; what TCP's ends agreed upon (its largest
segment, and the path's MTU after a run at full speed, RFC 6691 and RFC 1191); and, where TCP never
got through, pings of that size that may not be cut in pieces beside small ones.
"""

from __future__ import annotations

from fabricproof.core.measure import Verdict
from fabricproof.job.outcome import Outcome
from fabricproof.job.relations.ratio import Looks, not_judged, report_of, spoiled_leg
from fabricproof.job.relations.relation import Relation
from fabricproof.verdict.value import Judgement, Report, at_least

#: IPv4's and TCP's headers, 20 bytes each, and TCP's time stamps, 12, which Linux sends (RFC 7323)
HEADERS_BYTES, STAMPS_BYTES = 40, 12

#: the word in a rank's facts under which ``peer.sh`` tells of its pings
PATH_FACT = "path"


def judge_frames(relation: Relation, looks: Looks) -> Report:
    """Judge the largest frame that passed between two nodes.

    Settings:
        mtu: what the site declares, in bytes.
    """
    declared = int(relation.settings["mtu"])
    (leg,) = relation.legs
    look = looks.get(leg)
    if look is None or not look.attempts:
        return report_of(not_judged("frame", Verdict.MISSING, f"leg {leg} never ran"))
    rail = relation.rails[0]
    for trouble in (_unlike_node(look, rail, declared), _lost_on_the_way(look, rail, declared)):
        if trouble is not None:
            return report_of(_judged(*trouble, declared, Verdict.FAIL))
    spoiled = spoiled_leg(relation, looks)
    if spoiled is not None:
        return report_of(not_judged("frame", *spoiled))
    frame = _agreed(look, declared)
    if frame is None:
        reason = "iperf3 said nothing of its segments: it is older than 3.1"
        return report_of(not_judged("frame", Verdict.UNJUDGED, reason))
    if frame != declared:
        size = "smaller" if frame < declared else "larger"
        reason = (
            f"TCP sent frames of {frame} B over {rail}, fabric.toml declares {declared}: something "
            f"on the path takes {size} ones, or a route says so (ip route show dev {rail})"
        )
        return report_of(_judged(frame, reason, declared, Verdict.FAIL))
    reason = f"TCP ran in frames of {frame} B, as fabric.toml declares and both nodes say"
    return report_of(_judged(frame, reason, declared, Verdict.PASS))


def _unlike_node(look: Outcome, rail: str, declared: int) -> tuple[int, str] | None:
    """Return the smallest MTU and what is wrong where a node's own differs from the site's."""
    said = {
        rank.node: int(mtu)
        for rank in look.attempts[-1].ranks
        if (mtu := rank.facts.get(rail, {}).get("mtu", "")).isdecimal()
    }
    unlike = {node: mtu for node, mtu in said.items() if mtu != declared}
    if not unlike:
        return None
    words = ", ".join(f"{mtu} on {node}" for node, mtu in sorted(unlike.items()))
    return min(unlike.values()), f"{rail} has MTU {words}; fabric.toml declares {declared}"


def _lost_on_the_way(look: Outcome, rail: str, declared: int) -> tuple[int, str] | None:
    """Return what the pings say: large ones lost and small ones answered."""
    ranks = look.attempts[-1].ranks
    facts = next((rank.facts[PATH_FACT] for rank in ranks if PATH_FACT in rank.facts), {})
    small, large = facts.get("small", "0"), facts.get("large", "")
    if not (small.isdecimal() and large.isdecimal()) or int(small) == 0 or int(large) > 0:
        return None
    nodes = " and ".join(sorted({rank.node for rank in ranks}))
    reason = (
        f"frames of {declared} B do not pass between {nodes} over {rail}, small ones do: a switch "
        "port on the way takes smaller ones"
    )
    return 0, reason


def _agreed(look: Outcome, declared: int) -> int | None:
    """Return the frame that TCP's segments make; with or without time stamps."""
    table = look.attempts[-1].table
    if table is None or "mss_bytes" not in table.attributes:
        return None
    segment = int(table.attributes["mss_bytes"]) + HEADERS_BYTES
    frame = segment if segment == declared else segment + STAMPS_BYTES
    return min(frame, int(table.attributes.get("path_mtu_bytes", frame)))


def _judged(value: int, reason: str, declared: int, verdict: Verdict) -> Judgement:
    reference = at_least(declared, unit="B", tolerance=0.0, origin="declared: mtu in fabric.toml")
    return Judgement(
        name="frame",
        value=float(value),
        unit="B",
        message_size=None,
        verdict=verdict,
        reason=reason,
        reference=reference.value,
        lower=reference.lower,
        upper=reference.value,
        origin=reference.origin,
    )
