"""Judge one leg over another: kinds ``share``, ``best``, ``locality`` and ``hops``.

Of ``locality`` the proof that a binding held is what ``bind.sh`` left: ``bind.RANK.PART`` in the
leg's folder, with the CPUs on which the program itself could run, after its MPI had its way.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import median
from typing import Any

from fabricproof.core.errors import FabricproofError, ParseError
from fabricproof.core.findings import Finding, as_notes
from fabricproof.core.hostlist import cpus_of
from fabricproof.core.measure import Verdict, worst
from fabricproof.core.records import text_of
from fabricproof.core.units import size_label
from fabricproof.job.leg import Bind, Relation
from fabricproof.job.outcome import Outcome
from fabricproof.job.relations.ratio import (
    Looks,
    Values,
    judge_ratio,
    judge_rounds,
    judge_value,
    not_judged,
    ratio_of,
    report_of,
    rounds_of,
    spoiled_leg,
    value_at,
)
from fabricproof.nodes.topology import latency_words
from fabricproof.verdict.value import Judgement, Report


def judge_share(relation: Relation, looks: Looks) -> Report:
    """Judge what one leg measured over what another did, each at its own message size.

    Settings:
        over, under: each ``leg``, ``quantity`` and ``size`` (bytes, None where there is none).
        reference, most, hint: as of :func:`fabricproof.job.relations.ratio.judge_ratio`.
    """
    report = judge_value(relation, looks, share_of)
    sides = [relation.settings[side] for side in ("over", "under")]
    found = [_number(side, looks) for side in sides]
    if not all(map(math.isfinite, found)):
        return report
    what = ", ".join(
        f"{side['leg']} {number:.5g} MB/s" for side, number in zip(sides, found, strict=True)
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
    """Return why it is not known that a leg's ranks ran where they were bound; empty if it is."""
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
        told = parse_binding(text_of(path), str(path))
    except (OSError, UnicodeDecodeError, FabricproofError) as error:
        return str(error)
    if told.bind != bind.value:
        return f"it was told {told.bind}"
    return why_not_held(bind, told.ran, told.home, told.numa_cpus)


def why_not_held(bind: Bind, cpus: str, home: int | None, numa_cpus: Mapping[int, str]) -> str:
    """Return why a rank that may run on ``cpus`` is not bound as asked; empty if it is.

    ``home`` is the NUMA node of the rail's slot, None if unknown; CPUs are as the kernel lists
    them.
    """
    if home is None or home not in numa_cpus:
        return "the NUMA node of the rail is not known"
    mine, beside = cpus_of(cpus), cpus_of(numa_cpus[home])
    if mine is None or beside is None:
        no_list = cpus if mine is None else numa_cpus[home]
        return f"no list of CPUs: expected 0-3,8, got {no_list!r}"
    if not mine:
        return "nobody saw on which CPUs the rank may run"
    if bind is Bind.NEAR and not mine <= beside:
        return f"it may run on CPUs {cpus}, the rail's NUMA node {home} has {numa_cpus[home]}"
    if bind is Bind.FAR and mine & beside:
        return f"it may run on CPUs {cpus}, some of which ({numa_cpus[home]}) are the rail's own"
    return ""


def _advice(settings: dict[str, Any], looks: Looks) -> str:
    values = {
        policy: median(
            value_at(looks[leg], settings["quantity"], size) for size in settings["sizes"]
        )
        for policy, leg in settings["policies"].items()
    }
    is_bandwidth = settings["quantity"] == "bandwidth"
    unit = "MB/s" if is_bandwidth else "us"
    return advise(values, unit=unit, more_is_better=is_bandwidth)


#: Policies this close to the best are as good: two runs of one policy differ by as much.
AS_GOOD = 0.03


def advise(values: Mapping[str, float], *, unit: str, more_is_better: bool) -> str:
    """Return which policy to take: ``bind near: 6.3 GB/s against 5.6 GB/s (far)``.

    ``values``: policy -> what was measured with it, positive, in ``MB/s`` or ``us``.
    """
    order = sorted(values, key=lambda name: values[name], reverse=more_is_better)
    top = values[order[0]]
    best = [name for name in order if abs(values[name] - top) / top <= AS_GOOD]
    rest = [name for name in order if name not in best]
    if not rest:
        said = ", ".join(f"{name} {_amount(values[name], unit)}" for name in order)
        return f"no binding is better: {said}"
    against = ", ".join(f"{_amount(values[name], unit)} ({name})" for name in rest)
    words = f"bind {best[0]}: {_amount(top, unit)} against {against}"
    return words + (f"; {' and '.join(best[1:])} as good" if best[1:] else "")


def _amount(value: float, unit: str) -> str:
    return f"{value / 1000:.3g} GB/s" if unit == "MB/s" and value >= 1000 else f"{value:.4g} {unit}"


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
