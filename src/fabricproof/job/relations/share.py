"""Judge one leg's number over another's, each of its own kind; and which of several does best."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from fabricproof.core.measure import Finding, Verdict, worst
from fabricproof.core.units import size_label
from fabricproof.job.relations.ratio import (
    Looks,
    Values,
    judge_rounds,
    judge_value,
    not_judged,
    report_of,
    rounds_of,
    spoiled_leg,
    value_at,
)
from fabricproof.job.relations.relation import Relation
from fabricproof.verdict.value import Judgement, Report


def judge_share(relation: Relation, looks: Looks) -> Report:
    """Judge what one leg measured over what another did, each at its own message size.

    Settings:
        over, under: each ``leg``, ``quantity`` and ``size`` (bytes, None where there is none).
        reference, most, hint: as of :func:`fabricproof.job.relations.ratio.judge_ratio`.
    """
    report = judge_value(relation, looks, share_of)
    found = {side: _number(relation.settings[side], looks) for side in ("over", "under")}
    if not all(map(math.isfinite, found.values())):
        return report
    what = ", ".join(
        f"{relation.settings[side]['leg']} {number:.5g} MB/s" for side, number in found.items()
    )
    return replace(report, findings=(Finding(text=what), *report.findings))


def share_of(relation: Relation, looks: Looks) -> Values:
    """Return the share of one look at the legs, or why there is none."""
    label = relation.name.rpartition(".")[2]
    spoiled = spoiled_leg(relation, looks)
    if spoiled is not None:
        return not_judged(label, *spoiled)
    over, under = (_number(relation.settings[side], looks) for side in ("over", "under"))
    if not (math.isfinite(over) and math.isfinite(under) and under > 0):
        reason = f"{' and '.join(relation.legs)} do not both have their numbers"
        return not_judged(label, Verdict.MISSING, reason)
    return {label: over / under}


def _number(side: Mapping[str, Any], looks: Looks) -> float:
    if side["leg"] not in looks:
        return math.nan
    return value_at(looks[side["leg"]], side["quantity"], side["size"])


def judge_best(relation: Relation, looks: Looks) -> Report:
    """Judge whether the setting that is in force does as well as the best that was tried.

    Settings:
        quantity, size: what is compared; larger is better.
        tried: a setting as text -> the leg that ran with it.
        in_force: the setting that the site's users have.
        advice: what to do, ``{best}`` stands for the best setting.
        reference: what the best may be over the one in force, in unit ``x``.
    """
    rounds = rounds_of(relation, looks, gains_of)
    if isinstance(rounds, Judgement):
        return report_of(rounds)
    wanted = relation.settings
    label = relation.name.rpartition(".")[2]
    # Every other setting is held against the one in force by itself: the best of many noisy ones
    # is always a lucky one.
    judged = {
        setting: judge_rounds(
            label,
            values,
            rounds,
            relation,
            {**wanted, "hint": wanted["advice"].format(best=setting)},
        )
        for setting, values in rounds.values.items()
    }
    best = max(judged, key=lambda setting: judged[setting].value or 0.0)
    verdict = worst([each.verdict for each in judged.values()])
    chosen = best
    if judged[best].verdict is not verdict:
        chosen = next(each for each in judged if judged[each].verdict is verdict)
    shown = ", ".join(
        f"{setting}: {value_at(looks[leg], wanted['quantity'], wanted['size']):.5g}"
        for setting, leg in wanted["tried"].items()
    )
    at = size_label(wanted["size"])
    finding = f"{shown} MB/s at {at}; best with {best}"
    return replace(report_of(judged[chosen]), findings=(Finding(text=finding), *rounds.findings()))


def gains_of(relation: Relation, looks: Looks) -> Values:
    """Return what each setting moves over the one in force, by one look, or why nobody knows."""
    label = relation.name.rpartition(".")[2]
    wanted = relation.settings
    spoiled = spoiled_leg(relation, looks)
    if spoiled is not None:
        return not_judged(label, *spoiled)
    values = {
        setting: value_at(looks[leg], wanted["quantity"], wanted["size"])
        for setting, leg in wanted["tried"].items()
    }
    if not all(math.isfinite(value) and value > 0 for value in values.values()):
        reason = f"{' and '.join(relation.legs)} do not all have their numbers"
        return not_judged(label, Verdict.MISSING, reason)
    return {setting: value / values[wanted["in_force"]] for setting, value in values.items()}
