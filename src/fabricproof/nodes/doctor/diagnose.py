"""All rules over all facts."""

from __future__ import annotations

from fabricproof.nodes.doctor.facts import Facts
from fabricproof.nodes.doctor.findings import Finding
from fabricproof.nodes.doctor.rules_launch import judge_launch
from fabricproof.nodes.doctor.rules_node import judge_node, judge_world
from fabricproof.nodes.doctor.rules_road import judge_roads
from fabricproof.nodes.doctor.rules_stack import judge_stack


def diagnose(facts: Facts) -> tuple[Finding, ...]:
    """Return everything that is to be said of ``facts``, each thing once, in order of reading."""
    rules = [judge_stack, judge_launch, judge_roads, judge_node, judge_world]
    return tuple(dict.fromkeys(finding for rule in rules for finding in rule(facts)))
