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
from fabricproof.pairs.blame.say import Blame
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
    """Return a row for each path of the campaign, then one for nodes that took no part.

    ``said``: the last words of the job.
    """
    campaign = outcome.campaign
    rows = [_of_path(outcome, looks, number, said) for number in range(len(campaign.net_paths))]
    absent = [
        no_number(f"node_{node}", verdict, f"{node} is {why}")
        for verdict, nodes in (
            (Verdict.MISSING, campaign.out),
            (Verdict.SKIPPED, campaign.skipped),
        )
        for node, why in nodes.items()
    ]
    if absent:
        rows.append(row_of(NODES_ROW, _all_rails(campaign), absent, (), campaign.nodes))
    return tuple(rows)


def lost_row(campaign: Campaign, why: str) -> Row:
    """Return the row of a campaign whose records cannot be read."""
    due = no_number(at_size("bandwidth", campaign.size), Verdict.MISSING, why)
    return row_of("all pairs", _all_rails(campaign), [due], (), campaign.nodes)


def refused_row(rails: tuple[str, ...], why: str) -> Row:
    """Return the row of a path that the stack cannot take."""
    return row_of("+".join(rails), rails, [no_number("bandwidth", Verdict.SKIPPED, why)], (), ())


def _all_rails(campaign: Campaign) -> tuple[str, ...]:
    return tuple(dict.fromkeys(rail for rails in campaign.net_paths for rail in rails))


def row_of(
    name: str,
    rails: tuple[str, ...],
    quantities: Sequence[Judgement],
    findings: tuple[Finding, ...],
    nodes: tuple[str, ...],
) -> Row:
    """Return a row with its quantities and findings."""
    verdict = worst([each.verdict for each in quantities])
    report = Report(verdict=verdict, quantities=tuple(quantities), findings=findings)
    leg = row_leg(name, SUITE, PROGRAM, rails)
    return Row(leg=leg, attempts=(), report=report, nodes=nodes)


def _of_path(outcome: Outcome, looks: Sequence[Confirmation], number: int, said: str) -> Row:
    campaign = outcome.campaign
    name, rails = campaign.path_name(number), campaign.net_paths[number]
    mine = [each for each in outcome.results if name in each.net_paths]
    counting = [each for each in mine if not each.why_told_only]
    looks = [each for each in looks if each.net_path == name]
    quantities = [_judgement(each, name, looks) for each in counting]
    burdens = list(_burdens(outcome, number, name, said))
    if not any(each.quantity is Quantity.BANDWIDTH for each in counting):
        due = at_size("bandwidth", campaign.size)
        verdict = Verdict.UNJUDGED if burdens else Verdict.MISSING
        quantities.insert(0, no_number(due, verdict, f"no pair was measured over {name}"))
    for verdict, reason, disturbance in burdens:
        # What was not measured, or does not count, is of the whole path.
        if worst([quantities[0].verdict, verdict]) is verdict:
            quantities[0] = replace(
                quantities[0],
                verdict=verdict,
                reason=reason,
                disturbance=disturbance,
                is_open=False,
            )
    blamed = [
        Finding(
            text=each.text,
            kind=each.kind,
            verdict=each.verdict,
            fact=each.fact,
            # Of a leaf and a pair the nodes, and no rail.
            where=replace(each.where, rail=name if each.where.node else ""),
            next_step=each.next_step,
        )
        for result in counting
        if result.judged.verdict is MatrixVerdict.FAIL
        for each in _blame_over(result, name)
    ]
    blamed += [each for each in outcome.wrong_paths if each.where.rail == name]
    kernels = [
        Finding(text=each.sentence, kind=FindingKind.KERNEL, fact=each.sha256)
        for each in outcome.binaries
        if each.sentence
    ]
    findings = (*blamed, *_notes(outcome, mine, looks, name), *kernels)
    return row_of(name, rails, quantities, findings, campaign.nodes)


def _blame_over(result: Result, net_path: str) -> list[Blame]:
    return [each for each in result.said.blame if each.where.rail in {"", net_path}]


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
        yield Verdict.MISSING, f"{reason}; later: {outcome.campaign.resume}", None
    yield from ((Verdict.INVALID, each, None) for each in outcome.strangers)


def _judgement(result: Result, net_path: str, looks: Sequence[Confirmation]) -> Judgement:
    judged, matrix = result.judged, result.judged.matrix
    rail = matrix.rails.index(net_path)
    own = matrix.rail == rail
    missed = {*judged.below_rails, *judged.between}
    low = judged.low | result.doubtful
    is_low = rail in missed or bool((low & own).any())
    # Without a level nothing says that this path is good while another one is low.
    is_mine = is_low or not (missed or low.any()) or result.limits.bound is None
    blame = [each.text for each in _blame_over(result, net_path)]
    fault = "; ".join(blame)
    if not result.said.blame and rail in judged.below_rails:
        fault = judged.reason
    ends = zip(matrix.source[own].tolist(), matrix.destination[own].tolist(), strict=True)
    verdict, reason = Verdict.PASS, f"lowest of {counted(len({*map(frozenset, ends)}), 'pair')}"
    if judged.verdict is MatrixVerdict.INVALID and (judged.impossible & own).any():
        verdict, reason = Verdict.INVALID, judged.reason
    elif judged.verdict is MatrixVerdict.FAIL and fault:
        verdict, reason = Verdict.FAIL, fault
    elif judged.verdict in {MatrixVerdict.MISSING, MatrixVerdict.UNJUDGED}:
        verdict, reason = judged.verdict.as_verdict, judged.reason
    elif judged.verdict is not MatrixVerdict.PASS and is_mine:
        said = [*blame, *(each.text for each in result.said.undecided)][:2] or [judged.reason]
        said += [_look_words(each) for each in looks if not each.is_red][:1]
        verdict, reason = Verdict.UNJUDGED, "; ".join(said)
    is_open = verdict is Verdict.UNJUDGED
    return replace(
        worst_of(result, own, verdict, reason),
        disturbance=next(
            (each.disturbance for each in looks if each.disturbance and is_open), None
        ),
        # Low, and nobody is known to be at fault: more rounds would tell.
        is_open=is_open and judged.verdict is MatrixVerdict.UNDECIDED,
    )


def _look_words(each: Confirmation) -> str:
    where = f"{each.check} on {' to '.join(each.nodes)} over {each.net_path}"
    return f"{where}: {each.verdict or 'nothing'}: {each.reason}"


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


def _notes(
    outcome: Outcome, mine: Sequence[Result], looks: Sequence[Confirmation], name: str
) -> tuple[Finding, ...]:
    campaign = outcome.campaign
    few = "; one pair, of which neither end can be blamed" * (len(campaign.nodes) == 2)
    notes = [f"{counted(len(campaign.nodes), 'node')}: {', '.join(campaign.nodes)}{few}"]
    if campaign.at_once:
        notes.append(f"nodes share cores: pairs take turns, {campaign.at_once} at once")
    notes += [
        f"{each.kind} over {each.name}: {each.numbers}"
        for result in mine
        for each in result.populations
        if each.rail == name
    ]
    notes += [f"{each.name} looked at again by {_look_words(each)}" for each in looks]
    seconds = (each for each in outcome.second_looks if each.where.rail == name)
    return (*as_notes(notes), *seconds)
