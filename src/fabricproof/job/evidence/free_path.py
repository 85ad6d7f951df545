"""Judge which interfaces an MPI took when nobody told it: were they the declared ones?"""

from __future__ import annotations

from collections.abc import Sequence

from fabricproof.core.measure import Verdict
from fabricproof.job.evidence.ranks import RankRecord, gather
from fabricproof.job.plan.leg import Leg
from fabricproof.traffic import (
    MIN_RAIL_SHARE,
    MIN_SHARE,
    SLACK_BYTES,
    Evidence,
    Expectation,
    PathProof,
    PathState,
    doubt_of_counters,
    megabytes,
)
from fabricproof.traffic.expected import beside_verbs
from fabricproof.verdict.value import Judgement, Report, at_least

QUANTITY = "default_road"


def judge_free_path(leg: Leg, ranks: Sequence[RankRecord], sent_bytes: tuple[int, int]) -> Report:
    """Return PASS where the leg's rails carried all that the benchmark says it moved.

    Args:
        leg: with the advice what to set in ``free_path``.
        ranks: what each rank's wrapper read.
        sent_bytes: payload that the first and the second half of the ranks sent.
    """
    evidence = gather(ranks)
    due = sum(sent_bytes)
    moved = _moved(evidence)
    on_rails = sum(moved.get(rail, 0) for rail in leg.rails)
    seen = ", ".join(
        f"{name} {megabytes(count)}"
        for name, count in sorted(moved.items(), key=lambda each: -each[1])
        if count >= max(1_000_000, due / 100) or name in leg.rails
    )
    if len(evidence.nodes) < 2 or not due:
        reason = "the ranks did not run on two nodes, or nothing was moved between them"
        return _report(None, Verdict.UNJUDGED, reason, evidence)
    if sum(moved.values()) < MIN_SHARE * due:
        reason = f"no interface carried the {megabytes(due)} that the benchmark moved: {seen}"
        return _report(None, Verdict.UNJUDGED, reason, evidence)
    twin = _other_that_fits(evidence, leg.rails, due)
    if on_rails >= MIN_SHARE * due and twin:
        reason = f"two paths fit, the declared rails and {twin}: {seen}"
        return _report(None, Verdict.UNJUDGED, reason, evidence)
    share = min(1.0, on_rails / due)
    doubt = doubt_of_counters(evidence, _expected(leg, sent_bytes))
    if share >= MIN_SHARE and doubt is not None:
        return _report(None, Verdict.UNJUDGED, doubt.reason, evidence)
    if share >= MIN_SHARE:
        reason = f"left alone it took the declared fabric: {seen} of {megabytes(due)}"
        return _report(share, Verdict.PASS, reason, evidence)
    reason = (
        f"nobody told this MPI its path, and the declared rails carried {share:.0%} of "
        f"{megabytes(due)}: {seen}; users should set {leg.free_path}"
    )
    return _report(share, Verdict.FAIL, reason, evidence)


def _expected(leg: Leg, sent_bytes: tuple[int, int]) -> Expectation:
    """Return what the rails must have carried, had the MPI been told them."""
    return Expectation(
        rails=leg.rails, sent_bytes=sent_bytes, num_ranks=leg.num_ranks, spread=False
    )


def _moved(evidence: Evidence) -> dict[str, int]:
    """Return the bytes that left all nodes, by interface; what stayed on a node is not counted."""
    moved: dict[str, int] = {}
    for sample in evidence.samples:
        if sample.interface != "lo":
            sent = beside_verbs(evidence, sample)
            moved[sample.interface] = moved.get(sample.interface, 0) + sent
    return moved


def _other_that_fits(evidence: Evidence, rails: Sequence[str], due: int) -> str:
    """Return another interface that may have carried a part and is not the rails' own wire.

    The rails then show all of it only with somebody else's help.
    """
    rail_addresses = {each.address for each in evidence.samples if each.interface in rails} - {None}
    moved = _moved(evidence)
    for each in evidence.samples:
        other = each.interface not in rails and each.address not in rail_addresses
        if other and moved.get(each.interface, 0) >= max(SLACK_BYTES, MIN_RAIL_SHARE * due):
            return each.interface
    return ""


def _report(
    share: float | None,
    verdict: Verdict,
    reason: str,
    evidence: Evidence,
) -> Report:
    wanted = at_least(
        1.0, unit="x", tolerance=1 - MIN_SHARE, origin="all bytes on the declared rails"
    )
    judgement = Judgement(
        name=QUANTITY,
        value=share,
        unit="x",
        message_size=None,
        verdict=verdict,
        reason=reason,
        reference=wanted.value if share is not None else None,
        lower=wanted.lower if share is not None else None,
        origin=wanted.origin if share is not None else None,
    )
    net_path = PathProof(
        state=PathState.PROVEN if verdict is Verdict.PASS else PathState.UNKNOWN,
        reason=reason,
        moved_bytes={
            f"{each.node}:{each.interface}": each.moved("tx_bytes") for each in evidence.samples
        },
    )
    return Report(verdict=verdict, quantities=(judgement,), net_path=net_path)
