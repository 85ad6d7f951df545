"""Judge which frames pass between two nodes.

Three witnesses: what each node says of its interface; what TCP's ends agreed upon (its largest
segment, and the path's MTU after a run at full speed, RFC 6691 and RFC 1191); and, if TCP never got
through, pings of that size that may not be cut in pieces beside small ones.
"""

from __future__ import annotations

from fabricproof.core.measure import Verdict
from fabricproof.job.outcome import Attempt
from fabricproof.job.relation import Frames, Relation
from fabricproof.job.relations.numbers import Looks, NoNumberError, require_sound
from fabricproof.verdict.value import Judgement

#: IPv4's and TCP's headers, 20 bytes each, and TCP's time stamps, 12, which Linux sends (RFC 7323)
HEADERS_BYTES, STAMPS_BYTES = 40, 12

#: the word in a rank's facts under which ``peer.sh`` tells of its pings
PATH_FACT = "path"


def judge_frames(relation: Relation, frames: Frames, looks: Looks) -> Judgement:
    """Judge the largest frame that passed between two nodes.

    Raises:
        NoNumberError: nothing says what passed.
    """
    declared, rail, (leg,) = frames.mtu_bytes, relation.rails[0], relation.legs
    look = looks.get(leg)
    if look is None or not look.attempts:
        raise NoNumberError(Verdict.MISSING, f"leg {leg} never ran")
    wrong = _unlike_nodes(look.attempts[-1], rail, declared)
    wrong = wrong or _lost_on_the_way(look.attempts[-1], rail, declared)
    if wrong is None:
        require_sound(relation.legs, looks)
        frame = _agreed(look.attempts[-1], declared)
        if frame is None:
            reason = "iperf3 said nothing of its segments: it is older than 3.1"
            raise NoNumberError(Verdict.UNJUDGED, reason)
        if frame != declared:
            wrong = (
                frame,
                (
                    f"TCP sent frames of {frame} B over {rail}, fabric.toml declares {declared}: "
                    f"the path takes no others, or a route says so (ip route show dev {rail})"
                ),
            )
    frame, reason = wrong or (declared, f"TCP ran in frames of {declared} B, as fabric.toml says")
    return Judgement(
        name="frame",
        value=float(frame),
        unit="B",
        message_size=None,
        verdict=Verdict.FAIL if wrong else Verdict.PASS,
        reason=reason,
        reference=float(declared),
        lower=float(declared),
        upper=float(declared),
        origin="declared: mtu in fabric.toml",
    )


def _unlike_nodes(attempt: Attempt, rail: str, declared: int) -> tuple[int, str] | None:
    """Return the smallest MTU and what is wrong if a node's own differs from the site's."""
    said = {rank.node: rank.facts.get(rail, {}).get("mtu", "") for rank in attempt.ranks}
    unlike = {
        node: int(mtu) for node, mtu in said.items() if mtu.isdecimal() and int(mtu) != declared
    }
    if not unlike:
        return None
    words = ", ".join(f"{mtu} on {node}" for node, mtu in sorted(unlike.items()))
    return min(unlike.values()), f"{rail} has MTU {words}; fabric.toml declares {declared}"


def _lost_on_the_way(attempt: Attempt, rail: str, declared: int) -> tuple[int, str] | None:
    """Return what the pings say: large ones lost and small ones answered."""
    facts = next((rank.facts[PATH_FACT] for rank in attempt.ranks if PATH_FACT in rank.facts), {})
    small, large = facts.get("small", "0"), facts.get("large", "")
    if not (small.isdecimal() and large.isdecimal()) or int(small) == 0 or int(large) > 0:
        return None
    nodes = " and ".join(sorted({rank.node for rank in attempt.ranks}))
    return 0, (
        f"frames of {declared} B do not pass between {nodes} over {rail}, small ones do: a switch "
        "port on the way takes smaller ones"
    )


def _agreed(attempt: Attempt, declared: int) -> int | None:
    """Return the frame that TCP's segments make, with or without time stamps."""
    table = attempt.table
    if table is None or "mss_bytes" not in table.attributes:
        return None
    segment = int(table.attributes["mss_bytes"]) + HEADERS_BYTES
    frame = segment if segment == declared else segment + STAMPS_BYTES
    return min(frame, int(table.attributes.get("path_mtu_bytes", frame)))
