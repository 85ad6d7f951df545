"""Judge how a job's messages were shared among rails: a relation of kind ``sharing``."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from fabricproof.core.measure import Finding, Verdict, as_notes, worst
from fabricproof.core.units import parse_size, size_label
from fabricproof.job.evidence.ranks import RankRecord, gather
from fabricproof.job.outcome import Outcome
from fabricproof.job.relations.ratio import (
    Looks,
    Values,
    judge_rounds,
    not_judged,
    rounds_of,
    spoiled_leg,
)
from fabricproof.job.relations.relation import Relation
from fabricproof.verdict.sharing import (
    TELLING_BYTES,
    Curve,
    Policy,
    balance,
    read_policy,
    sentences,
    shares_of,
)
from fabricproof.verdict.value import Judgement, Report

#: A node that sent less than this part of the busiest one's bytes only acknowledged.
SENDER = 0.25


def judge_sharing(relation: Relation, looks: Looks) -> Report:
    """Judge how large messages were divided, and say how the MPI shares messages at all.

    Settings:
        singles: rail -> name of the leg that had it to itself.
        together: name of the leg over all rails.
        small_part, large_part: the start of that leg with small (large) messages alone; None where
            it started once.
        expected_gain: all rails over the best one, by physics.
        weights: rail -> part of the summed rate that it has, by physics.
        reference: for the balance, in unit ``x``, as its fields.
        expected: what the site says of this stack: ``threshold``, ``small``, ``large``; may be
            empty.
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
        shares = ", ".join(
            f"{rail} {share:.1%}" for rail, share in _policy(wanted, looks).large_shares.items()
        )
        hint = f"large messages: {shares}; {wanted.get('hint', '')}".rstrip("; ")
        values = rounds.values[label]
        balanced = judge_rounds(label, values, rounds, relation, {**wanted, "hint": hint})
    policy = _policy(wanted, looks)
    judgements = (balanced, *_expectations(policy, wanted, relation.name))
    return Report(
        verdict=worst([each.verdict for each in judgements]),
        quantities=judgements,
        findings=(*as_notes(sentences(policy)), *findings),
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


def _policy(wanted: Mapping[str, Any], looks: Looks) -> Policy:
    together = looks[wanted["together"]]
    rails = tuple(wanted["singles"])
    small = wanted.get("small_part")
    return read_policy(
        {rail: _curve(looks[leg]) for rail, leg in wanted["singles"].items()},
        _curve(together),
        expected_gain=wanted["expected_gain"],
        small_bytes=None if small is None else sent_bytes(together, rails, small),
        large_bytes=sent_bytes(together, rails, wanted.get("large_part")),
    )


def _curve(look: Outcome) -> Curve:
    return {
        each.message_size: each.value
        for each in look.report.quantities
        if each.unit == "MB/s" and each.message_size and each.value is not None
    }


def sent_bytes(look: Outcome, rails: Sequence[str], part: int | None) -> dict[str, int]:
    """Return what each rail sent during one start of a leg, by the nodes that sent data.

    Args:
        look: one look at the leg.
        rails: whose counters count.
        part: which start; None for all of them.
    """
    ranks: list[RankRecord] = [
        rank for attempt in look.attempts for rank in attempt.ranks if part in {None, rank.part}
    ]
    evidence = gather(ranks)
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


def _expectations(policy: Policy, wanted: Mapping[str, Any], name: str) -> list[Judgement]:
    said = wanted.get("expected") or {}
    found = []
    if said.get("threshold"):
        due = parse_size(said["threshold"])
        seen = policy.threshold_bytes
        words = "they never help" if seen is None else f"they help from {size_label(seen)}"
        found.append(
            _expected(
                f"threshold_{name}",
                float(seen) if seen else math.inf,
                seen == due,
                f"several rails should help from {said['threshold']} on: {words}",
                unit="B",
            )
        )
    for kind, rule, shares in (
        ("small", policy.small, policy.small_shares),
        ("large", policy.large, policy.large_shares),
    ):
        if said.get(kind):
            least = min(shares.values(), default=math.nan) * len(shares)
            reason = f"{kind} messages should go {said[kind]!r}: they went {rule.value!r}"
            found.append(_expected(f"{kind}_{name}", least, said[kind] == rule.value, reason))
    return found


def _expected(name: str, value: float, holds: bool, reason: str, unit: str = "x") -> Judgement:
    finite = math.isfinite(value)
    verdict = Verdict.PASS if holds else Verdict.FAIL
    return Judgement(
        name=name,
        value=value if finite else None,
        unit=unit,
        message_size=None,
        verdict=verdict if finite or not holds else Verdict.UNJUDGED,
        reason=reason,
        reference=value if holds and finite else None,
        origin="the site says so",
    )
