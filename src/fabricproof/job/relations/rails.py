"""Judge how messages were shared among rails, and which frames pass: kinds ``sharing``, ``frames``.

Frames have three witnesses: what each node says of its interface; what TCP's ends agreed upon (its
largest segment, and the path's MTU after a run at full speed, RFC 6691 and RFC 1191); and, where
TCP never got through, pings of that size that may not be cut in pieces beside small ones.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import median

from fabricproof.core.findings import Finding, as_notes
from fabricproof.core.measure import Verdict, worst
from fabricproof.core.units import parse_size, size_label
from fabricproof.job.evidence.leg_folder import gather
from fabricproof.job.leg import Relation
from fabricproof.job.outcome import Outcome
from fabricproof.job.relations.ratio import (
    Looks,
    Values,
    judge_rounds,
    not_judged,
    report_of,
    rounds_of,
    spoiled_leg,
)
from fabricproof.verdict.value import Judgement, Report, at_least

#: message size in bytes -> MB/s
Curve = Mapping[int, float]

#: Several rails help where they carry this fraction of the gain that physics promises: a quarter
#: of the way from one rail to two is 1.25, beyond what two runs of one rail differ by.
HELPS = 0.25

#: and never less than this many times the disagreement between single rails of one kind
NOISE_FACTOR = 3.0

#: Fewer bytes than these on all rails say nothing: handshakes and ARP are of that order.
TELLING_BYTES = 256 * 1024

#: A node that sent less than this part of the busiest one's bytes only acknowledged.
SENDER = 0.25


def judge_sharing(relation: Relation, looks: Looks) -> Report:
    """Judge how large messages were divided, and tell from which size on several rails help.

    Settings:
        singles: rail -> name of the leg that had it to itself.
        together: name of the leg over all rails.
        large_part: the start of that leg with large messages alone; None where it started once.
        expected_gain: all rails over the best one, by physics.
        weights: rail -> part of the summed rate that it has, by physics.
        reference: for the balance, in unit ``x``, as its fields.
        threshold: the size from which on several rails should help, as the site says; "" where it
            says nothing.
        hint: what is usually wrong where it is red.
    """
    wanted = relation.settings
    label = f"balance_{relation.name}"
    rounds = rounds_of(relation, looks, balance_of)
    findings: tuple[Finding, ...] = ()
    if isinstance(rounds, Judgement):
        if rounds.verdict is not Verdict.UNJUDGED or spoiled_leg(relation, looks) is not None:
            return Report(verdict=rounds.verdict, quantities=(rounds,))
        balanced = rounds
    else:
        findings = rounds.findings()
        sent = sent_bytes(looks[wanted["together"]], tuple(wanted["singles"]), wanted["large_part"])
        shares = ", ".join(f"{rail} {share:.1%}" for rail, share in shares_of(sent).items())
        hint = f"large messages: {shares}; {wanted.get('hint', '')}".rstrip("; ")
        values = rounds.values[label]
        balanced = judge_rounds(label, values, rounds, relation, {**wanted, "hint": hint})
    seen = threshold_bytes(
        {rail: _curve(looks[leg]) for rail, leg in wanted["singles"].items()},
        _curve(looks[wanted["together"]]),
        expected_gain=wanted["expected_gain"],
    )
    words = "never help" if seen is None else f"help from {size_label(seen)} on"
    judgements = (balanced, *_threshold(seen, words, wanted["threshold"], relation.name))
    return Report(
        verdict=worst([each.verdict for each in judgements]),
        quantities=judgements,
        findings=(*as_notes([f"several rails {words}"]), *findings),
    )


def balance_of(relation: Relation, looks: Looks) -> Values:
    """Return how evenly one look's large messages were shared, or why nobody knows."""
    label = f"balance_{relation.name}"
    spoiled = spoiled_leg(relation, looks)
    if spoiled is not None:
        return not_judged(label, *spoiled)
    wanted = relation.settings
    look = looks[wanted["together"]]
    # A leg that runs in turn has large messages alone, in one start.
    part = None if look.leg.in_turn else wanted.get("large_part")
    shares = shares_of(sent_bytes(look, tuple(wanted["singles"]), part))
    if not shares:
        least = size_label(TELLING_BYTES)
        reason = f"the rails' counters show less than {least} of large messages"
        return not_judged(label, Verdict.UNJUDGED, reason)
    return {label: balance(shares, wanted["weights"])}


def _curve(look: Outcome) -> Curve:
    return {
        each.message_size: each.value
        for each in look.report.quantities
        if each.unit == "MB/s" and each.message_size and each.value is not None
    }


def threshold_bytes(
    singles: Mapping[str, Curve], together: Curve, *, expected_gain: float
) -> int | None:
    """Return the smallest message from which on, at every larger size, several rails help.

    None if they never do.  Single rails that disagree, by the median over sizes, raise the bar:
    the threshold of rails that are unlike on purpose is found late, never too early.

    Args:
        singles: rail -> its curve when it was alone.
        together: the curve over all rails at once.
        expected_gain: all rails over the best one, as physics allows; 1 if a slot binds.
    """
    alone = {size: [curve.get(size, 0.0) for curve in singles.values()] for size in together}
    common = {size: rates for size, rates in alone.items() if rates and min(rates) > 0}
    spans = [1 - min(rates) / max(rates) for rates in common.values()]
    gains = {size: together[size] / max(rates) for size, rates in common.items()}
    return threshold_of(gains, least_gain(expected_gain, median(spans) if spans else 0.0))


def least_gain(expected_gain: float, noise: float) -> float:
    """Return the gain from which on several rails count as helping, above 1."""
    return 1 + max(HELPS * max(expected_gain - 1, 0.0), NOISE_FACTOR * noise, HELPS / 2)


def threshold_of(gains: Curve, least: float) -> int | None:
    """Return the size from which every larger one gains ``least``; None if there is none."""
    threshold = None
    for size in sorted(gains, reverse=True):
        if gains[size] < least:
            break
        threshold = size
    return threshold


def shares_of(sent: Mapping[str, int]) -> dict[str, float]:
    """Return each rail's part of the bytes, 0 to 1; empty if too few moved to tell."""
    total = sum(sent.values())
    if total < TELLING_BYTES or min(sent.values()) < 0:
        return {}
    return {rail: moved / total for rail, moved in sent.items()}


def balance(shares: Mapping[str, float], weights: Mapping[str, float]) -> float:
    """Return what part of the rails' summed rate these shares allow, 0 to 1.

    All rails must finish: the one with most to carry for its rate decides.  1 if each has just its
    weight; for two like rails at 62 and 38 % it is 0.81.

    Args:
        shares: part of the bytes that each rail carried; they add up to 1.
        weights: part of the summed rate that each rail has, positive; they add up to 1.
    """
    return 1 / max(shares[rail] / weights[rail] for rail in shares)


def sent_bytes(look: Outcome, rails: Sequence[str], part: int | None) -> dict[str, int]:
    """Return what each rail sent during one start of a leg, by the nodes that sent data.

    ``part``: which start; None for all of them.
    """
    evidence = gather(rank for rank in look.ranks if part in {None, rank.part})
    by_node = {
        node: {
            sample.interface: sample.moved("tx_bytes")
            for sample in evidence.samples
            if sample.node == node and sample.interface in rails
        }
        for node in evidence.nodes
    }
    most = max((sum(moved.values()) for moved in by_node.values()), default=0)
    senders = [moved for moved in by_node.values() if sum(moved.values()) >= SENDER * most]
    return {rail: sum(moved.get(rail, 0) for moved in senders) for rail in rails}


def _threshold(seen: int | None, words: str, stated: str, name: str) -> list[Judgement]:
    """Return the judgement of the threshold that the site states; none where it states none."""
    if not stated:
        return []
    holds = seen == parse_size(stated)
    return [
        Judgement(
            name=f"threshold_{name}",
            value=None if seen is None else float(seen),
            unit="B",
            message_size=None,
            verdict=Verdict.PASS if holds else Verdict.FAIL,
            reason=f"several rails should help from {stated} on: they {words}",
            reference=float(seen) if holds and seen is not None else None,
            origin="the site says so",
        )
    ]


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
