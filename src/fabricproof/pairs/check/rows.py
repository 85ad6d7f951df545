"""What a campaign came to as rows of a run: one for each path, and one of nodes not measured."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from fabricproof.core.findings import Finding, FindingKind, as_notes
from fabricproof.core.measure import Verdict, worst
from fabricproof.core.units import at_size, counted, first_few, parse_size
from fabricproof.job.leg import CAMPAIGN_SUITE, row_leg
from fabricproof.job.outcome import Outcome as Row
from fabricproof.pairs.blame.judge import MatrixVerdict
from fabricproof.pairs.campaign.again import Confirmation
from fabricproof.pairs.campaign.kernel import LATENCY_BYTES
from fabricproof.pairs.campaign.matrices import Quantity
from fabricproof.pairs.campaign.plan import Campaign
from fabricproof.pairs.campaign.verdict import Outcome, Result
from fabricproof.pairs.matrix import Flags
from fabricproof.verdict.value import Judgement, Report, no_number

#: under which the rows stand in records and reports
SUITE, PROGRAM = CAMPAIGN_SUITE, "pairs"

#: the row of nodes that were not measured
NODES_ROW = "nodes"

#: pairs that are named where more were not measured
_NAMED = 4


def rows_of(outcome: Outcome, looks: Sequence[Confirmation], said: str = "") -> tuple[Row, ...]:
    """Return a row for each path of the campaign, then one for nodes that took no part."""
    campaign = outcome.campaign
    rows = [_of_path(outcome, looks, number, said) for number in range(len(campaign.net_paths))]
    absent = [
        no_number(f"node_{node}", Verdict.MISSING, f"{node} is {state}: no pair of it was measured")
        for node, state in campaign.out.items()
    ]
    absent += [
        no_number(f"node_{node}", Verdict.SKIPPED, f"{node} is {why}")
        for node, why in campaign.skipped.items()
    ]
    if absent:
        rails = tuple(dict.fromkeys(rail for rails in campaign.net_paths for rail in rails))
        rows.append(row_of(NODES_ROW, rails, absent, (), campaign.nodes))
    return tuple(rows)


def row_of(
    name: str,
    rails: tuple[str, ...],
    quantities: Sequence[Judgement],
    notes: tuple[Finding, ...],
    nodes: tuple[str, ...],
) -> Row:
    """Return a row with its quantities, and with notes."""
    verdict = worst([each.verdict for each in quantities])
    report = Report(verdict=verdict, quantities=tuple(quantities), findings=notes)
    leg = row_leg(name, SUITE, PROGRAM, rails)
    return Row(leg=leg, attempts=(), report=report, nodes=nodes)


def _of_path(outcome: Outcome, looks: Sequence[Confirmation], number: int, said: str) -> Row:
    campaign = outcome.campaign
    name, rails = campaign.path_name(number), campaign.net_paths[number]
    mine = [each for each in outcome.results if name in each.net_paths]
    counting = [each for each in mine if not each.why_told_only]
    quantities = [_judgement(each, name, looks) for each in counting]
    burdens = list(_burdens(outcome, number, name, said))
    if not any(each.quantity is Quantity.BANDWIDTH for each in counting):
        due = at_size("bandwidth", campaign.size)
        verdict = Verdict.UNJUDGED if burdens else Verdict.MISSING
        quantities.insert(0, no_number(due, verdict, f"no pair was measured over {name}"))
    for verdict, reason, disturbance in burdens:
        # What was not measured, or does not count, is of the whole path.
        first = quantities[0]
        if worst([first.verdict, verdict]) is verdict:
            quantities[0] = replace(
                first,
                verdict=verdict,
                reason=reason,
                disturbance=disturbance,
                is_open=False,
            )
    row = row_of(name, rails, quantities, _notes(outcome, mine, looks, name), campaign.nodes)
    kernels = [
        Finding(text=each.sentence, kind=FindingKind.KERNEL, fact=each.sha256)
        for each in outcome.binaries
        if each.sentence
    ]
    blamed = [each for result in counting for each in _blamed(result, name)]
    blamed += [each for each in outcome.wrong_paths if each.where.rail == name]
    return replace(
        row, report=replace(row.report, findings=(*blamed, *row.report.findings, *kernels))
    )


def _blamed(result: Result, net_path: str) -> Iterator[Finding]:
    """Yield whom a quantity blames over a path; of a leaf and a pair its nodes, and no rail."""
    if result.judged.verdict is not MatrixVerdict.FAIL:
        return
    for each in result.said.blame:
        if each.where.rail in {"", net_path}:
            yield Finding(
                text=each.text,
                kind=each.kind,
                verdict=each.verdict,
                fact=each.fact,
                where=replace(each.where, rail=net_path if each.where.node else ""),
                next_step=each.next_step,
            )


#: why a path is not what its values say: verdict, reason, and what others did
_Burden = tuple[Verdict, str, str | None]


def _burdens(outcome: Outcome, number: int, name: str, said: str) -> Iterator[_Burden]:
    troubles = [each for each in outcome.troubles if each.net_path == name]
    for each in troubles:
        more = f" and {len(troubles) - 1} more" * (len(troubles) > 1)
        reason = f"{' - '.join(each.pair)}{more}: {each.reason}"
        yield each.verdict, reason, each.disturbance
    # Of two that are as bad the later one is told: whose fault it is, not one pair of it.
    for wrong in outcome.wrong_paths:
        if wrong.where.rail == name:
            yield Verdict.INVALID, wrong.text, None
    for loss in outcome.losses:
        if loss.net_path == name:
            yield loss.verdict, loss.sentence, None
    for link in outcome.down_links:
        if link.where.rail in name.split("+"):
            yield Verdict.FAIL, link.text, None
    left = [pair for each in outcome.left.get(number, ()) for pair in each.pairs]
    if left:
        names = outcome.campaign.nodes
        told = first_few([f"{names[one]} - {names[other]}" for one, other in left], _NAMED)
        reason = f"{counted(len(left), 'pair')} not measured: {told}"
        reason += f"; the job said: {said}" if said else ""
        reason += f"; later: {outcome.campaign.resume}"
        yield Verdict.MISSING, reason, None
    yield from ((Verdict.INVALID, each, None) for each in outcome.strangers)


def _judgement(result: Result, net_path: str, looks: Sequence[Confirmation]) -> Judgement:
    matrix = result.judged.matrix
    own = matrix.rail == matrix.rails.index(net_path)
    judged = result.judged
    pairs = counted(len({frozenset(each) for each in _pairs(result, own)}), "pair")
    at = judged.matrix.rails.index(net_path)
    missed = {*judged.below_rails, *judged.between}
    is_low = at in missed or bool(((judged.low | result.doubtful) & own).any())
    anything_is = bool(missed or judged.low.any() or result.doubtful.any())
    has_level = result.limits.bound is not None
    found = Verdict.PASS, f"lowest of {pairs}"
    if judged.verdict is MatrixVerdict.INVALID and (judged.impossible & own).any():
        found = Verdict.INVALID, judged.reason
    elif judged.verdict is MatrixVerdict.FAIL and (fault := _fault(result, net_path)):
        found = Verdict.FAIL, fault
    elif judged.verdict in {MatrixVerdict.MISSING, MatrixVerdict.UNJUDGED}:
        found = judged.verdict.as_verdict, judged.reason
    elif judged.verdict is not MatrixVerdict.PASS and (is_low or not anything_is or not has_level):
        said = [each.text for each in result.said.blame if each.where.rail in {"", net_path}]
        said += [each.text for each in result.said.undecided]
        seen = [
            f"{each.check} on {' to '.join(each.nodes)} over {each.net_path}: "
            f"{each.verdict or 'nothing'}: {each.reason}"
            for each in looks
            if each.net_path == net_path and not each.is_red
        ]
        found = Verdict.UNJUDGED, "; ".join([*(said[:2] or [result.judged.reason]), *seen[:1]])
    verdict, reason = found
    return replace(
        worst_of(result, own, verdict, reason),
        disturbance=_disturbance(net_path, looks) if verdict is Verdict.UNJUDGED else None,
        # Low, and nobody is known to be at fault: more rounds would tell.
        is_open=verdict is Verdict.UNJUDGED and result.judged.verdict is MatrixVerdict.UNDECIDED,
    )


def worst_of(result: Result, own: Flags, verdict: Verdict, reason: str) -> Judgement:
    """Return the worst value of some rows of a quantity, with the bounds that the matrix had."""
    matrix = result.judged.matrix
    kind = matrix.kind
    row = int(np.where(own, matrix.goodness, np.inf).argmin())
    limits, bound = result.limits, result.limits.bound
    size = LATENCY_BYTES if kind.lower_is_better else parse_size(kind.size)
    return Judgement(
        name=at_size("latency" if kind.lower_is_better else "bandwidth", size),
        value=float(matrix.value[row]),
        unit=kind.unit,
        message_size=size,
        verdict=verdict,
        reason=reason,
        ceiling=limits.impossible,
        ceiling_name="physics" if limits.impossible is not None else None,
        reference=limits.level,
        lower=None if kind.lower_is_better else bound,
        upper=bound if kind.lower_is_better else None,
        origin=limits.origin or None,
    )


def _disturbance(net_path: str, looks: Sequence[Confirmation]) -> str | None:
    mine = [each.disturbance for each in looks if each.net_path == net_path]
    return next((each for each in mine if each), None)


def _fault(result: Result, net_path: str) -> str:
    blame, judged = result.said.blame, result.judged
    if not blame:
        at = judged.matrix.rails.index(net_path)
        return judged.reason if at in judged.below_rails else ""
    return "; ".join(each.text for each in blame if each.where.rail in {"", net_path})


def _pairs(result: Result, own: Flags) -> list[tuple[int, int]]:
    matrix = result.judged.matrix
    source, destination = matrix.source[own].tolist(), matrix.destination[own].tolist()
    return list(zip(source, destination, strict=True))


def _notes(
    outcome: Outcome, mine: Sequence[Result], looks: Sequence[Confirmation], name: str
) -> tuple[Finding, ...]:
    campaign = outcome.campaign
    few = "; one pair, of which neither end can be blamed" * (len(campaign.nodes) == 2)
    notes = [f"{counted(len(campaign.nodes), 'node')}: {', '.join(campaign.nodes)}{few}"]
    if campaign.at_once:
        notes.append(f"nodes share cores: pairs take turns, {campaign.at_once} at once")
    for result in mine:
        notes += [
            f"{each.kind} over {each.name}: {each.numbers}"
            for each in result.populations
            if each.rail == name
        ]
    notes += [
        f"{each.name} looked at again by {each.check} on {' to '.join(each.nodes)}: "
        f"{each.verdict or 'nothing'}: {each.reason}"
        for each in looks
        if each.net_path == name
    ]
    seconds = (each for each in outcome.second_looks if each.where.rail == name)
    return (*as_notes(notes), *seconds)


def lost_row(campaign: Campaign, why: str) -> Row:
    """Return the row of a campaign whose records cannot be read."""
    rails = tuple(dict.fromkeys(rail for rails in campaign.net_paths for rail in rails))
    due = no_number(at_size("bandwidth", campaign.size), Verdict.MISSING, why)
    return row_of("all pairs", rails, [due], (), campaign.nodes)


def refused_row(rails: tuple[str, ...], why: str) -> Row:
    """Return the row of a path that the stack cannot take."""
    return row_of("+".join(rails), rails, [no_number("bandwidth", Verdict.SKIPPED, why)], (), ())
