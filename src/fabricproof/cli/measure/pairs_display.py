"""What a campaign of pairs came to, as text and as ``--json``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from fabricproof.cli import options
from fabricproof.core.findings import texts_of
from fabricproof.core.hostlist import SAFE_NAME
from fabricproof.core.measure import Verdict
from fabricproof.core.plain import plain
from fabricproof.core.units import first_few
from fabricproof.core.whole_file import write_whole
from fabricproof.pairs import Blame, MatrixVerdict, Picture, svg
from fabricproof.pairs.campaign.again import Confirmation
from fabricproof.pairs.campaign.verdict import Outcome, Result
from fabricproof.report.text.drain import Blamed

#: of pairs that do not stand, or are left, so many are named
_NAMED = 8


def drain_line(blame: Blame) -> str:
    """Return the line that would drain a blamed node, commented out; empty for no node."""
    node = blame.where.node
    if SAFE_NAME.fullmatch(node) is None:
        return ""
    made = Blamed(node=node, run_id="pairs", rails=(), reason=blame.text, evidence=())
    return f"# {made.line}"


PICTURE = options.output(
    {".html": "the matrix of each choice of rails", ".svg": "the first of them"}
)


def draw(files: Mapping[str, Path], pictures: Sequence[Picture]) -> None:
    """Write pictures into files, by the end of their names: HTML takes all, SVG the first."""
    if ".html" in files:
        from fabricproof.report.formats.page import render_pairs  # noqa: PLC0415 - loads all of history

        write_whole(files[".html"], render_pairs(pictures))
    if ".svg" in files and pictures:
        write_whole(files[".svg"], svg(pictures[0]))


def _drain(result: Result, blame: Blame) -> str:
    """Return the line that would drain a blamed node; none for red that was not confirmed.

    That red is FAIL no longer, or the node is not blamed any more.
    """
    if result.judged.verdict is not MatrixVerdict.FAIL:
        return ""
    return drain_line(blame)


def campaign_record(outcome: Outcome, looks: Sequence[Confirmation]) -> dict[str, Any]:
    """Return a campaign as plain data, the form of ``--json``."""
    campaign = outcome.campaign
    return {
        "campaign": campaign.id,
        "verdict": outcome.verdict.value,
        "site": campaign.site_name,
        "partition": campaign.partition,
        "fabric": campaign.fabric,
        "stack": campaign.stack,
        "nodes": list(campaign.nodes),
        "out": dict(campaign.out),
        "skipped": dict(campaign.skipped),
        "rounds": outcome.rounds,
        "pairs_at_once": campaign.at_once or None,
        "proven_paths": outcome.proven,
        "results": [_result_record(each) for each in outcome.results],
        "troubles": [plain(each) for each in outcome.troubles],
        "wrong_paths": [each.record() for each in outcome.wrong_paths],
        "losses": [plain(each) for each in outcome.losses],
        "carried": [plain(each, "at_most_per_million") for each in outcome.carried],
        "down_links": [each.record() for each in outcome.down_links],
        "left": [
            {
                "net_path": campaign.path_name(net_path),
                "round": each.number,
                "pairs": [[campaign.nodes[one], campaign.nodes[two]] for one, two in each.pairs],
            }
            for net_path, rounds in outcome.left.items()
            for each in rounds
        ],
        "confirmations": [plain(each) for each in looks],
        "second_looks": [each.record() for each in outcome.second_looks],
        "kernels": [plain(each) for each in outcome.binaries],
        "notes": list(outcome.notes),
    }


def _result_record(result: Result) -> dict[str, Any]:
    judged = result.judged
    kind = judged.matrix.kind
    return {
        "quantity": result.quantity.value,
        "net_paths": list(result.net_paths),
        "verdict": judged.verdict.value,
        "counts": not result.why_told_only,
        "reason": result.why_told_only or judged.reason,
        "size": kind.size,
        "unit": kind.unit,
        "population": [{"net_path": each.rail, **each.record()} for each in result.populations],
        "blame": [
            {**each.record(), "drain": _drain(result, each) or None} for each in result.said.blame
        ],
        "undecided": [each.record() for each in result.said.undecided],
        "notes": [each.record() for each in result.said.notes],
    }


def campaign_text(outcome: Outcome, looks: Sequence[Confirmation]) -> str:
    """Return a campaign in words, verdict first."""
    campaign = outcome.campaign
    measured = f"{outcome.rounds} rounds, {outcome.proven} paths proven"
    where = f"{len(campaign.nodes)} nodes of {campaign.partition}, {campaign.stack}"
    lines = [f"{outcome.verdict.value}: {where}, {measured}"]
    if campaign.at_once:
        lines.append(f"nodes share cores: pairs take turns, {campaign.at_once} at once")
    for result in outcome.results:
        lines += ["", *_result_lines(result)]
    lines += ["", *(each.sentence for each in outcome.carried)] if outcome.carried else []
    lines += [f"{each.verdict}: {each.text}" for each in outcome.down_links]
    lines += [f"{each.verdict.value}: {each.sentence}" for each in outcome.losses[:_NAMED]]
    if len(outcome.losses) > _NAMED:
        lines.append(f"and {len(outcome.losses) - _NAMED} more that lose packets")
    wrong = outcome.wrong_paths
    lines += [f"{each.verdict}: {each.text}" for each in wrong[:_NAMED]]
    if len(wrong) > _NAMED:
        lines.append(f"and {len(wrong) - _NAMED} more nodes and rails that take another path")
    for each in outcome.troubles[:_NAMED]:
        pair = " - ".join(each.pair)
        lines.append(
            f"{each.verdict.value}: {pair} over {each.net_path}, round {each.round}: {each.reason}"
        )
    if len(outcome.troubles) > _NAMED:
        lines.append(f"and {len(outcome.troubles) - _NAMED} more whose path is not proven")
    for look in looks:
        word = look.verdict.value if look.verdict else "nothing"
        lines.append(
            f"looked at again: {look.name} by {look.check} on {','.join(look.nodes)} over "
            f"{look.net_path}: {word}: {look.reason}"
        )
    lines += [f"MISSING: {node} is {state}" for node, state in campaign.out.items()]
    lines += [f"SKIPPED: {node}: {why}" for node, why in campaign.skipped.items()]
    lines += _left_lines(outcome)
    notes = [*outcome.notes, *texts_of(outcome.second_looks)]
    notes += [each.sentence for each in outcome.binaries if each.sentence]
    return "\n".join([*lines, *(f"note: {each}" for each in notes)])


def _left_lines(outcome: Outcome) -> list[str]:
    campaign = outcome.campaign
    lines = []
    for net_path, rounds in outcome.left.items():
        pairs = [(each.number, pair) for each in rounds for pair in each.pairs]
        named = [
            f"{campaign.nodes[one]} - {campaign.nodes[two]} (round {number})"
            for number, (one, two) in pairs
        ]
        where = campaign.path_name(net_path)
        lines.append(f"{Verdict.MISSING.value}: over {where} {first_few(named, _NAMED)}")
    if lines:
        lines.append(f"later: {campaign.resume}")
    return lines


def _result_lines(result: Result) -> list[str]:
    judged = result.judged
    why = result.why_told_only or judged.reason
    word = "told only" if result.why_told_only else judged.verdict.value
    lines = [f"{result.title}: {word}: {why}"]
    lines += [f"  {each.name}: {each.numbers}" for each in result.populations]
    if result.why_told_only:
        return lines
    for each in result.said.blame:
        lines.append(f"  {each.fact}: {each.text} (confidence {each.confidence:.3g})")
        if each.cannot_tell_from:
            lines.append(f"    cannot be told from: {', '.join(each.cannot_tell_from)}")
        lines += [
            f"    would tell: {each.next_step}",
            *filter(None, [_drain(result, each)]),
        ]
    for entry in result.said.undecided:
        lines += [f"  undecided: {entry.text}", f"    would tell: {entry.next_step}"]
    return lines
