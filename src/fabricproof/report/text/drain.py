"""Which nodes the evidence of a run blames, as lines for ``scontrol`` that a person reviews.

A node is blamed where it is red with two different partners, good with none, and one of those
partners at least is good with somebody else; or where rounds over all nodes blame it and a stock
program saw it too; or where an admission found it at fault; or where the look at its own cards
failed while most nodes passed it.  All else is said as a pair and the command that would tell.
Nothing is executed.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

from fabricproof.core.findings import FindingKind
from fabricproof.core.hostlist import SAFE_NAME
from fabricproof.core.measure import Verdict
from fabricproof.core.project import site_option
from fabricproof.core.units import by_key, counted
from fabricproof.job.leg import ADMITTED, CAMPAIGN_SUITE, PARTNER
from fabricproof.job.run import LegResult
from fabricproof.report.model import ReportData
from fabricproof.report.red import RED, rails_of, with_device
from fabricproof.verdict.partners import LEAST_RED_PARTNERS, Meetings

#: a node's reason in Slurm is a short remark
REASON_LENGTH = 180

#: all that means something between double quotes to a shell, or to Slurm
_UNSAFE = re.compile(r"[^\w .,:;%()+/<>=@-]|[^\x20-\x7e]")

_PREFLIGHT = "preflight"


@dataclass(frozen=True, kw_only=True)
class Blamed:
    """A node that evidence blames.

    Attributes:
        reason: for Slurm, before it is made safe.
        evidence: one sentence each.
    """

    node: str
    run_id: str
    rails: tuple[str, ...]
    reason: str
    evidence: tuple[str, ...]

    @property
    def line(self) -> str:
        """The command that would drain it; nothing in it can end its quotes."""
        reason = safe(f"fabricproof {self.run_id}: {self.reason}")
        return f'scontrol update NodeName={self.node} State=DRAIN Reason="{reason}"'


@dataclass(frozen=True, kw_only=True)
class DrainAdvice:
    """What the evidence of a run says of nodes."""

    blamed: tuple[Blamed, ...]
    unclear: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class PairSeen:
    """Two nodes that were seen together over the same rails, by one check with one stack."""

    nodes: frozenset[str]
    rails: str
    check: str
    stack: str
    is_red: bool
    sentence: str
    shortfall: str = ""

    @property
    def pair(self) -> str:
        """``n1 - n3``."""
        return " - ".join(sorted(self.nodes))


def advise(data: ReportData, records: Sequence[Mapping[str, Any]] = ()) -> DrainAdvice:
    """Return whom the evidence of the run blames.

    Looks of a night (kind ``confirmation``) count as evidence.
    """
    devices = {leg.fabric: leg.device for leg in data.session.legs if leg.device}
    seen = [*_of_legs(data.session.legs), *_of_looks(records, devices)]
    alike = by_key(((each.rails, each.check, each.stack), each) for each in seen)
    all_blamed = chain(
        *(_blamed(pairs, data.run.run_id) for pairs in alike.values()),
        *(_by_campaigns(data), _by_admission(data), _by_own_cards(data)),
    )
    found = by_key((each.node, each) for each in all_blamed)
    merged = tuple(_merged(all_) for _, all_ in sorted(found.items()))
    safe_names = tuple(each for each in merged if SAFE_NAME.fullmatch(each.node))
    strange = [f"{each.node!r} is no name of Slurm's" for each in merged if each not in safe_names]
    return DrainAdvice(
        blamed=safe_names,
        unclear=(*strange, *_unclear(alike.values(), set(found), data)),
    )


def _of_legs(legs: Iterable[LegResult]) -> Iterable[PairSeen]:
    for leg in legs:
        if len(set(leg.nodes)) != 2 or leg.suite == _PREFLIGHT:
            continue
        if leg.verdict not in {Verdict.PASS, Verdict.FAIL}:
            continue
        yield PairSeen(
            nodes=frozenset(leg.nodes),
            rails=with_device("+".join(rails_of(leg)), leg.device),
            check=leg.check,
            stack=leg.stack,
            is_red=leg.verdict is Verdict.FAIL,
            sentence=f"{leg.stack} {leg.program} {leg.path_name}: {leg.reason}",
            shortfall=_shortfall(leg),
        )


def _of_looks(
    records: Sequence[Mapping[str, Any]], devices: Mapping[str, str]
) -> Iterable[PairSeen]:
    """Yield what the looks of a night saw; ``devices``: fabric -> ``Soft-RoCE`` where it is."""
    for record in records:
        if record.get("kind") != "confirmation":
            continue
        device = devices.get(str(record.get("fabric")), "")
        for look in record.get("looks", ()):
            nodes, verdict = frozenset(look["nodes"]), look.get("verdict")
            if len(nodes) != 2 or verdict not in {"PASS", "FAIL"}:
                continue
            net_path = with_device(record["leg"], device)
            yield PairSeen(
                nodes=nodes,
                rails=with_device("+".join(record.get("rails", ())), device),
                check=record["check"],
                stack=record["stack"],
                is_red=verdict == "FAIL",
                sentence=f"{record['stack']} {record['check']} {net_path}, "
                f"looked at again in {look.get('run_id')}: {look.get('reason') or verdict}",
            )


def _shortfall(leg: LegResult) -> str:
    for each in leg.quantities:
        value, reference, unit = each.value, each.reference, each.unit
        if each.verdict is not Verdict.FAIL or not value or not reference:
            continue
        percent = (value / reference - 1) * 100
        way = "below" if percent < 0 else "above"
        number = f"{reference:.4g} {unit}" if unit not in {"1", "x"} else f"{reference:.3g}"
        return f"{each.name} {abs(percent):.0f} % {way} {number}"
    return ""


def _meetings(pairs: Iterable[PairSeen]) -> Meetings:
    return Meetings((each.nodes, each.is_red) for each in pairs)


def _blamed(pairs: Sequence[PairSeen], run_id: str) -> Iterable[Blamed]:
    meetings = _meetings(pairs)
    for node in meetings.common_ends():
        partners, proven = meetings.red_with(node), meetings.proven(node)
        mine = [each for each in pairs if each.is_red and node in each.nodes]
        rails = mine[0].rails
        worst = next((each.shortfall for each in mine if each.shortfall), "red")
        seen = f"red {len(mine)} times, {len(partners)} partners"
        good = [
            f"{each} is good with {', '.join(meetings.good_with(each, without=node))}"
            if each in proven
            else f"{each} was not seen good with others"
            for each in partners
        ]
        yield Blamed(
            node=node,
            run_id=run_id,
            rails=(rails,) if rails else (),
            reason=f"{rails} {worst} ({seen})".strip(),
            evidence=(*(f"{each.pair}: {each.sentence}" for each in mine), *good),
        )


def _by_campaigns(data: ReportData) -> Iterable[Blamed]:
    for leg in data.session.legs:
        for each in leg.findings:
            where = each.where
            if each.kind is FindingKind.BLAME and where.node and leg.verdict is Verdict.FAIL:
                yield Blamed(
                    node=where.node,
                    run_id=data.run.run_id,
                    rails=(where.rail,) if where.rail else (),
                    reason=each.text,
                    evidence=(f"{leg.stack} {leg.check} {leg.leg}: {each.text}",),
                )


def _by_admission(data: ReportData) -> Iterable[Blamed]:
    """Yield the nodes that an admission found at fault: those to be admitted, and bad partners.

    What its rounds blame is told already.
    """
    told = [each.reason for each in _by_campaigns(data)]
    for leg in data.session.legs:
        node = leg.row_of(ADMITTED, PARTNER)
        for each in leg.quantities if node else ():
            if each.verdict is Verdict.FAIL and not any(text in each.reason for text in told):
                yield Blamed(
                    node=node,
                    run_id=data.run.run_id,
                    rails=each.rails,
                    reason=each.reason,
                    evidence=(f"{leg.stack} {leg.check} {leg.leg}: {each.reason}",),
                )


def _by_own_cards(data: ReportData) -> Iterable[Blamed]:
    """Yield the nodes whose own cards are not as declared, while those of as many others are."""
    found: dict[tuple[str, str], dict[str, str]] = {}
    fine: dict[tuple[str, str], set[str]] = {}
    for leg in data.session.legs:
        for rail, fact, node, sentence in _of_preflight(leg):
            place = (with_device(rail, leg.device), fact)
            if sentence:
                told = f"{leg.device}: {sentence}" if leg.device else sentence
                found.setdefault(place, {}).setdefault(node, told)
            else:
                fine.setdefault(place, set()).add(node)
    for (rail, fact), bad in found.items():
        good = len(fine.get((rail, fact), set()) - bad.keys())
        if len(bad) > good:
            continue
        for node, sentence in bad.items():
            yield Blamed(
                node=node,
                run_id=data.run.run_id,
                rails=(rail,),
                reason=sentence,
                evidence=(f"preflight: {sentence}; as declared on {good} of the other nodes",),
            )


def _of_preflight(leg: LegResult) -> Iterable[tuple[str, str, str, str]]:
    """Yield rail, fact, node and what is wrong with it; empty where it is as declared."""
    if leg.suite == _PREFLIGHT:
        for each in leg.quantities:
            node, dot, fact = each.name.rpartition(".")
            if dot and each.verdict in {Verdict.PASS, Verdict.FAIL}:
                yield leg.leg, fact, node, each.reason * (each.verdict is Verdict.FAIL)
        return
    told = [each for each in leg.findings if each.kind is FindingKind.PREFLIGHT and each.where.node]
    for finding in told:
        rail = finding.where.rail
        yield rail, finding.fact, finding.where.node, finding.text
        for node in set(leg.nodes) - {each.where.node for each in told}:
            yield rail, finding.fact, node, ""


def _merged(all_: Sequence[Blamed]) -> Blamed:
    first = all_[0]
    others = len({each.reason for each in all_}) - 1
    more = f"; {counted(others, 'more reason')}" if others else ""
    return Blamed(
        node=first.node,
        run_id=first.run_id,
        rails=tuple(dict.fromkeys(rail for each in all_ for rail in each.rails)),
        reason=first.reason + more,
        evidence=tuple(dict.fromkeys(line for each in all_ for line in each.evidence)),
    )


def _unclear(
    alike: Iterable[Sequence[PairSeen]], blamed: set[str], data: ReportData
) -> Iterable[str]:
    told: set[tuple[str, str]] = set()
    for pairs in alike:
        for each in pairs:
            if not each.is_red or each.nodes & blamed or (each.pair, each.rails) in told:
                continue
            told.add((each.pair, each.rails))
            why = _why(_meetings(pairs), each)
            yield f"{each.rails} {each.pair}: {why}; {_would_tell(each, data)}"
    groups = [
        leg
        for leg in data.session.legs
        if leg.verdict in RED and len(set(leg.nodes)) > 2 and leg.suite != CAMPAIGN_SUITE
    ]
    if groups:
        names = ", ".join(dict.fromkeys(f"{leg.stack} {leg.program}" for leg in groups))
        yield (
            f"{len(groups)} red legs over more than two nodes blame no one node ({names}); "
            f"would tell: fabricproof run {site_option(data.site)} -t pt2pt"
        )


def _why(meetings: Meetings, red: PairSeen) -> str:
    first, second = sorted(red.nodes)
    if red.nodes in meetings.good:
        return "good when looked at again on the same nodes"
    good = [(node, meetings.good_with(node)) for node in (first, second)]
    words = [f"{node} is good with {', '.join(names)}" for node, names in good if names]
    if len(words) == 2:
        return f"{'; '.join(words)}: the way between them, or their place in it"
    many = [node for node in (first, second) if len(meetings.red_with(node)) >= LEAST_RED_PARTNERS]
    if many:
        return f"{' and '.join(many)} red with several, and no partner seen good with others"
    seen = f"{words[0]}, but " if words else ""
    return f"{seen}seen together only: either of them, or the way between"


def _would_tell(red: PairSeen, data: ReportData) -> str:
    first, second = sorted(red.nodes)
    known = {*data.machines, *(node for leg in data.session.legs for node in leg.nodes)}
    others = sorted(known - red.nodes) or ["ANOTHER_NODE"]
    only = shlex.join(["-n", red.check, "-p", red.stack])
    command = f"fabricproof run {site_option(data.site)} {only}"
    commands = [
        f"FABRICPROOF_NODES={shlex.quote(f'{node},{other}')} {command}"
        for node, other in ((first, others[0]), (second, others[-1]))
    ]
    return f"would tell: {' and '.join(commands)}"


def safe(reason: str) -> str:
    """Return a reason that stays between double quotes in a shell and in Slurm.

    Letters, digits and plain punctuation stay; all else becomes a blank; it is cut to
    :data:`REASON_LENGTH` characters.
    """
    text = " ".join(_UNSAFE.sub(" ", reason.replace('"', "'")).split())
    return text if len(text) <= REASON_LENGTH else text[: REASON_LENGTH - 3].rstrip() + "..."


def render_drain(data: ReportData, records: Sequence[Mapping[str, Any]] = ()) -> str:
    """Return the lines, every one commented out, with the evidence for each."""
    advice = advise(data, records)
    lines = [
        f"fabricproof report --drain: site {data.site}, run {data.run.run_id}",
        "Nothing here was executed.  Read the evidence; to use a line, remove the # before it.",
    ]
    for blamed in advice.blamed:
        lines += ["", f"{blamed.node}: {blamed.reason}"]
        lines += [f"  {each}" for each in blamed.evidence]
        lines.append(blamed.line)
    if not advice.blamed:
        lines += ["", "No node is blamed by the evidence of this run."]
    if advice.unclear:
        lines += ["", "Red, and nobody can be blamed:"]
        lines += [f"  {each}" for each in advice.unclear]
    return "".join(f"# {_one_line(line)}".rstrip() + "\n" for line in lines)


def _one_line(text: str) -> str:
    """Return a line in which nothing can end the comment it stands in."""
    return "".join(each if each.isprintable() else " " for each in text)
