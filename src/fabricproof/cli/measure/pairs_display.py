"""What a campaign of pairs came to, as text and as ``--json``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from fabricproof.cli import options
from fabricproof.core.findings import FindingKind, texts_of
from fabricproof.core.hostlist import SAFE_NAME
from fabricproof.core.plain import plain
from fabricproof.core.whole_file import write_whole
from fabricproof.pairs import Blame, MatrixVerdict, Picture, Said, svg
from fabricproof.pairs.campaign.again import Confirmation
from fabricproof.pairs.campaign.verdict import Outcome, Result
from fabricproof.pairs.check.rows import rows_of
from fabricproof.report.text.drain import Blamed

#: of what is wrong at single pairs and nodes so much is shown
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


def said_lines(said: Said, *, drains: bool = True) -> list[str]:
    """Return whom a matrix blames and what it leaves undecided, with what would tell.

    ``drains``: with the line that would drain a blamed node.
    """
    lines = []
    for each in said.blame:
        lines += ["", f"{each.fact}: {each.text} (confidence {each.confidence:.3g})"]
        if each.cannot_tell_from:
            lines.append(f"  cannot be told from: {', '.join(each.cannot_tell_from)}")
        lines.append(f"  would tell: {each.next_step}")
        drain = drain_line(each) if drains else ""
        lines += [f"  {drain}"] * bool(drain)
    for entry in said.undecided:
        lines += ["", f"undecided: {entry.text}", f"  would tell: {entry.next_step}"]
    return lines


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
    # Nobody is drained for red that was not confirmed.
    is_red = judged.verdict is MatrixVerdict.FAIL
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
            {**each.record(), "drain": (is_red and drain_line(each)) or None}
            for each in result.said.blame
        ],
        "undecided": [each.record() for each in result.said.undecided],
        "notes": [each.record() for each in result.said.notes],
    }


def campaign_text(outcome: Outcome, looks: Sequence[Confirmation]) -> str:
    """Return a campaign in words, verdict first: a line for each path, then whose fault it is."""
    campaign = outcome.campaign
    measured = f"{outcome.rounds} rounds, {outcome.proven} paths proven"
    where = f"{len(campaign.nodes)} nodes of {campaign.partition}, {campaign.stack}"
    lines = [f"{outcome.verdict.value}: {where}, {measured}"]
    for row in rows_of(outcome, looks):
        lines.append("")
        lines += [
            f"{each.verdict.value}: {row.leg.name}: {each.name}: {each.reason}"
            for each in row.report.quantities
        ]
        notes = [each for each in row.report.findings if each.kind is not FindingKind.BLAME]
        lines += [f"  {text}" for text in texts_of(notes)]
    for result in outcome.results:
        is_red = result.judged.verdict is MatrixVerdict.FAIL
        if result.why_told_only:
            lines += ["", f"{result.title}: told only: {result.why_told_only}"]
        else:
            lines += said_lines(result.said, drains=is_red)
    lines += ["", *(each.sentence for each in outcome.carried)] if outcome.carried else []
    wrong = [f"{each.verdict}: {each.text}" for each in outcome.wrong_paths]
    wrong += [f"{each.verdict}: {each.sentence}" for each in outcome.losses]
    wrong += [
        f"{each.verdict}: {' - '.join(each.pair)} over {each.net_path}, round {each.round}: "
        f"{each.reason}"
        for each in outcome.troubles
    ]
    lines += wrong[:_NAMED]
    lines += [f"and {len(wrong) - _NAMED} more"] * (len(wrong) > _NAMED)
    lines += [f"later: {campaign.resume}"] * bool(outcome.left)
    return "\n".join([*lines, *(f"note: {each}" for each in outcome.notes)])
