"""Judge whether ranks beside the adapter do better than ranks across: kind ``locality``.

The proof that a binding held is what ``bind.sh`` left: ``bind.RANK.PART`` in the leg's folder, with
the CPUs on which the program itself could run, after its MPI had its way.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import median
from typing import Any

from fabricproof.core.errors import FabricproofError, ParseError
from fabricproof.core.measure import Finding, Verdict
from fabricproof.job.outcome import Outcome
from fabricproof.job.relations.ratio import (
    Looks,
    Values,
    judge_value,
    not_judged,
    ratio_of,
    value_at,
)
from fabricproof.job.relations.relation import Relation
from fabricproof.verdict.locality import Bind, advise, why_not_held
from fabricproof.verdict.value import Judgement, Report


@dataclass(frozen=True, kw_only=True)
class Binding:
    """What one rank was asked and where it ran.

    Attributes:
        bind: ``near``, ``far`` or ``as_launched``.
        home: NUMA node of the rail's slot, -1 where the node does not say.
        numa_cpus: NUMA node -> its CPUs.
        ran: the CPUs that the program could run on; ``unknown`` where it ended too soon.
    """

    bind: str
    home: int
    numa_cpus: dict[int, str] = field(default_factory=dict)
    ran: str = "unknown"


def parse_binding(text: str, source: str) -> Binding:
    """Read what ``bind.sh`` left.

    Raises:
        ParseError: a line of another form, or no ``bind`` or ``home``.
    """
    facts: dict[str, str] = {}
    numa: dict[int, str] = {}
    for number, line in enumerate(text.splitlines(), start=1):
        word, _, rest = line.partition(" ")
        node, _, cpus = rest.partition(" ")
        if word == "numa" and node.isdecimal() and cpus:
            numa[int(node)] = cpus
        elif word in {"bind", "rail", "home", "chosen", "ran"} and rest and word not in facts:
            facts[word] = rest
        else:
            raise ParseError("damaged binding", source=source, line=number, got=repr(line))
    if "bind" not in facts or not facts.get("home", "").removeprefix("-").isdecimal():
        raise ParseError("damaged binding", source=source, expected="bind and home")
    return Binding(
        bind=facts["bind"],
        home=int(facts["home"]),
        numa_cpus=numa,
        ran=facts.get("ran", "unknown"),
    )


def judge_locality(relation: Relation, looks: Looks) -> Report:
    """Judge near over far, say which policy is the better one, and prove that the bindings held.

    Settings:
        as of kind ``ratio``, with ``over`` the near leg and ``under`` the far one; and
        policies: what each leg is called in the advice -> name of the leg.
        bound: leg -> ``near`` or ``far``, for those that were bound by us.
    """
    report = judge_value(relation, looks, held_ratio_of)
    if any(each.value is None for each in report.quantities):
        return report
    return replace(
        report, findings=(*report.findings, Finding(text=_advice(relation.settings, looks)))
    )


def held_ratio_of(relation: Relation, looks: Looks) -> Values:
    """Return near over far of one look, or why there is none: a binding that did not hold."""
    ratio = ratio_of(relation, looks)
    if isinstance(ratio, Judgement):
        return ratio
    for leg, bind in relation.settings["bound"].items():
        reason = loose(looks[leg], Bind(bind))
        if reason:
            return not_judged(next(iter(ratio)), Verdict.UNJUDGED, f"leg {leg}: {reason}")
    return ratio


def loose(look: Outcome, bind: Bind) -> str:
    """Return why a leg's ranks are not known to have run where they were bound; empty if they are.

    Args:
        look: one look at the leg.
        bind: where its ranks were to run.
    """
    files = [path for attempt in look.attempts for path in attempt.folder.glob("bind.*")]
    ranks = {path.name.split(".")[1] for path in files}
    if len(ranks) != look.leg.num_ranks:
        return f"{len(ranks)} of {look.leg.num_ranks} ranks said where they ran"
    due = len(ranks) * max(1, len(look.leg.commands)) * len(look.attempts)
    if len(files) != due:
        return f"the ranks said where they ran {len(files)} times, {due} were due"
    for path in sorted(files):
        reason = _loose_rank(path, bind)
        if reason:
            return f"rank {path.name.split('.')[1]} was not held {bind}: {reason}"
    return ""


def _loose_rank(path: Path, bind: Bind) -> str:
    try:
        told = parse_binding(path.read_text(encoding="utf-8"), str(path))
    except (OSError, UnicodeDecodeError, FabricproofError) as error:
        return str(error)
    if told.bind != bind.value:
        return f"it was told {told.bind}"
    return why_not_held(bind, told.ran, told.home, told.numa_cpus)


def _advice(settings: dict[str, Any], looks: Looks) -> str:
    values = {
        policy: median(
            value_at(looks[leg], settings["quantity"], size) for size in settings["sizes"]
        )
        for policy, leg in settings["policies"].items()
    }
    is_bandwidth = settings["quantity"] == "bandwidth"
    unit = "MB/s" if is_bandwidth else "us"
    return advise(values, unit=unit, more_is_better=is_bandwidth).words
