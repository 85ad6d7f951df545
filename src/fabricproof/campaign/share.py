"""Judge one leg's number over another's, each of its own kind; and which of several does best."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from fabricproof.campaign.ratio import (
    Looks,
    judge_against,
    not_judged,
    report_of,
    spoiled_leg,
    value_at,
)
from fabricproof.campaign.relation import Relation
from fabricproof.measure import Verdict
from fabricproof.units import size_label
from fabricproof.verdict import Report


def judge_share(relation: Relation, looks: Looks) -> Report:
    """Judge what one leg measured over what another did, each at its own message size.

    Settings:
        over, under: each ``leg``, ``quantity`` and ``size`` (bytes, None where there is none).
        reference, most, hint: as of :func:`fabricproof.campaign.ratio.judge_ratio`.
    """
    label = relation.name.rpartition(".")[2]
    spoiled = spoiled_leg(relation, looks)
    if spoiled is not None:
        return report_of(not_judged(label, *spoiled))
    over, under = (_number(relation.settings[side], looks) for side in ("over", "under"))
    if not (math.isfinite(over) and math.isfinite(under) and under > 0):
        reason = f"{' and '.join(relation.legs)} do not both have their numbers"
        return report_of(not_judged(label, Verdict.MISSING, reason))
    report = report_of(judge_against(label, over / under, relation.settings))
    what = ", ".join(
        f"{relation.settings[side]['leg']} {number:.5g} MB/s"
        for side, number in (("over", over), ("under", under))
    )
    return replace(report, findings=(what,))


def _number(side: Mapping[str, Any], looks: Looks) -> float:
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
    label = relation.name.rpartition(".")[2]
    wanted = relation.settings
    spoiled = spoiled_leg(relation, looks)
    if spoiled is not None:
        return report_of(not_judged(label, *spoiled))
    values = {
        setting: value_at(looks[leg], wanted["quantity"], wanted["size"])
        for setting, leg in wanted["tried"].items()
    }
    if not all(math.isfinite(value) and value > 0 for value in values.values()):
        reason = f"{' and '.join(relation.legs)} do not all have their numbers"
        return report_of(not_judged(label, Verdict.MISSING, reason))
    best = max(values, key=values.__getitem__)
    in_force = values[wanted["in_force"]]
    hint = wanted["advice"].format(best=best)
    report = report_of(judge_against(label, values[best] / in_force, {**wanted, "hint": hint}))
    shown = ", ".join(f"{setting}: {value:.5g}" for setting, value in values.items())
    at = size_label(wanted["size"])
    return replace(report, findings=(f"{shown} MB/s at {at}; best with {best}",))
