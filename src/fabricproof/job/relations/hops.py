"""Judge a far pair against a near one, and say what each distance took: kind ``hops``."""

from __future__ import annotations

from dataclasses import replace
from statistics import median

from fabricproof.core.measure import Verdict, as_notes
from fabricproof.job.relations.ratio import Looks, judge_ratio, value_at
from fabricproof.job.relations.relation import Relation
from fabricproof.nodes.topology import latency_words
from fabricproof.verdict.value import Report


def judge_hops(relation: Relation, looks: Looks) -> Report:
    """Judge as kind ``ratio``, with the latency of every distance as a finding.

    Settings:
        as of kind ``ratio``, for latency; and
        hops: name of a leg -> switches between its nodes.
    """
    report = judge_ratio(relation, looks)
    if report.verdict in {Verdict.MISSING, Verdict.SKIPPED}:
        return report
    wanted = relation.settings
    latency_us = {
        hops: median(value_at(looks[leg], "latency", size) for size in wanted["sizes"])
        for leg, hops in wanted["hops"].items()
        if leg in looks
    }
    known = {hops: us for hops, us in latency_us.items() if us == us}  # noqa: PLR0124 - NaN is not
    told = as_notes([latency_words(known)] if known else [])
    return replace(report, findings=(*told, *report.findings))
