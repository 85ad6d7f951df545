"""How messages are shared among rails, and from which size on several rails help."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import median

from fabricproof.core.measure import Verdict
from fabricproof.core.units import size_label
from fabricproof.job.evidence.leg_folder import gather
from fabricproof.job.outcome import Outcome
from fabricproof.job.relation import Balance
from fabricproof.job.relations.numbers import Looks, NoNumberError
from fabricproof.verdict.value import Judgement

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


def balance_of(wanted: Balance, looks: Looks) -> float:
    """Return what part of the rails' summed rate one look's large messages could use, 0 to 1.

    All rails must finish: the one with most to carry for its rate decides.

    Raises:
        NoNumberError: the counters show too few bytes.
    """
    shares = shares_of(wanted, looks)
    if not shares:
        least = size_label(TELLING_BYTES)
        reason = f"the rails' counters show less than {least} of large messages"
        raise NoNumberError(Verdict.UNJUDGED, reason)
    return balance(shares, wanted.weights)


def balance(shares: Mapping[str, float], weights: Mapping[str, float]) -> float:
    """Return 1 if each rail has just its weight; for two like rails at 62 and 38 % it is 0.81."""
    return 1 / max(shares[rail] / weights[rail] for rail in shares)


def shares_of(wanted: Balance, looks: Looks) -> dict[str, float]:
    """Return each rail's part of the bytes of large messages; empty if too few moved to tell."""
    look = looks[wanted.together]
    # A leg that runs in turn has large messages alone, in one start.
    part = None if look.leg.in_turn else wanted.large_part
    sent = sent_bytes(look, tuple(wanted.singles), part)
    total = sum(sent.values())
    if total < TELLING_BYTES or min(sent.values()) < 0:
        return {}
    return {rail: moved / total for rail, moved in sent.items()}


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


def judge_threshold(name: str, wanted: Balance, looks: Looks) -> tuple[Judgement | None, str]:
    """Return the judgement of the stated threshold, None if unstated, and what was seen."""
    curves = [_curve(looks[leg]) for leg in wanted.singles.values()]
    seen = threshold_bytes(curves, _curve(looks[wanted.together]), wanted.expected_gain)
    words = "never help" if seen is None else f"help from {size_label(seen)} on"
    stated = wanted.threshold_bytes
    if stated is None:
        return None, f"several rails {words}"
    holds = seen == stated
    judgement = Judgement(
        name=f"threshold_{name}",
        value=None if seen is None else float(seen),
        unit="B",
        message_size=None,
        verdict=Verdict.PASS if holds else Verdict.FAIL,
        reason=f"several rails should help from {size_label(stated)} on: they {words}",
        reference=float(stated) if holds else None,
        origin="the site says so",
    )
    return judgement, f"several rails {words}"


def _curve(look: Outcome) -> Curve:
    return {
        each.message_size: each.value
        for each in look.report.quantities
        if each.unit == "MB/s" and each.message_size and each.value is not None
    }


def threshold_bytes(singles: Sequence[Curve], together: Curve, expected_gain: float) -> int | None:
    """Return the smallest message from which on, at every larger size, several rails help.

    None if they never do.  Single rails that disagree, by the median over sizes, raise the bar:
    the threshold of rails that are unlike on purpose is found late, never too early.
    """
    alone = {size: [curve.get(size, 0.0) for curve in singles] for size in together}
    common = {size: rates for size, rates in alone.items() if rates and min(rates) > 0}
    noise = median(1 - min(rates) / max(rates) for rates in common.values()) if common else 0.0
    least = 1 + max(HELPS * max(expected_gain - 1, 0.0), NOISE_FACTOR * noise, HELPS / 2)
    threshold = None
    for size in sorted(common, reverse=True):
        if together[size] / max(common[size]) < least:
            break
        threshold = size
    return threshold
