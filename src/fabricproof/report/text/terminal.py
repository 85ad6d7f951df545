"""The verdict table on the terminal: what a tired administrator reads at seven in the morning."""

from __future__ import annotations

import math
from collections.abc import Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

from fabricproof.core.hostlist import fold
from fabricproof.core.measure import BADNESS, Quantity, Verdict
from fabricproof.core.units import by_key, counted
from fabricproof.job.run import BUILD_PROGRAM, LegResult, RunResult
from fabricproof.report.red import again, held, next_step, told_of_passes, with_device
from fabricproof.verdict.value import ERROR_UNIT, Source

#: verdict -> rich style; the word itself always stands beside the colour
STYLES: dict[Verdict, str] = {
    Verdict.PASS: "green",
    Verdict.FAIL: "bold red",
    Verdict.INVALID: "bold magenta",
    Verdict.MISSING: "bold yellow",
    Verdict.UNJUDGED: "yellow",
    Verdict.SKIPPED: "dim",
}

#: findings shown below a red leg
FINDINGS_SHOWN = 3

#: legs lost for one reason that are told one by one
LOST_TOLD_APART = 5


def render(result: RunResult, console: Console, site: str = "", *, every_leg: bool = False) -> None:
    """Print what is red in full sentences, what is green in a few lines, and one line that sums up.

    Args:
        result: of a run.
        console: where to; 80 columns are enough.
        site: for the commands that repeat a leg; empty if there is one alone.
        every_leg: a row for each number of each leg in place of one for a program and rail.
    """
    folded = _folded_legs(result)
    counted = {id(leg) for legs in folded.values() for leg in legs}
    apart = [leg for leg in result.legs if id(leg) not in counted]
    red = [leg for leg in apart if leg.verdict is not Verdict.PASS]
    green = [leg for leg in apart if leg.verdict is Verdict.PASS]
    for leg in red:
        _print_red(leg, console)
    if red and red[0].stage_folder:
        console.print(_how_to_repeat(red[0], site))
    if every_leg and apart:
        console.print(_table(apart))
    elif green:
        console.print(_green_table(green))
    for (verdict, reason, device), legs in folded.items():
        console.print(_fold(verdict, reason, device, legs))
    for finding in told_of_passes(result.legs):
        console.print(_text(f"note     {finding}", style="dim"))
    for note in result.notes:
        console.print(_text(f"note     {note}", style="dim"))
    console.print(_summary(result))


def _green_table(legs: Sequence[LegResult]) -> Table:
    """Return a row for each program and rail: how many legs, and the number nearest its bound."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    for name in ("verdict", "program", "rails", "legs", "nearest to its bound"):
        table.add_column(name, no_wrap=name != "nearest to its bound", overflow="fold")
    groups = by_key(((_program(leg), _rails(leg)), leg) for leg in legs)
    for (program, rails), mine in sorted(groups.items()):
        named = [each for leg in mine for each in leg.quantities if each.named]
        words = "-"
        if named:
            nearest = min(named, key=_room)
            words = f"{nearest.name} {_number(nearest.value, nearest.unit)}"
            judged = _judged_by(nearest)
            words += f", {judged}" * (judged != "-")
        cells = [program, rails, str(len(mine)), words]
        table.add_row(Text("PASS", style=STYLES[Verdict.PASS]), *map(_text, cells))
    return table


def _room(quantity: Quantity) -> float:
    """Return how far a number is from the bound that it passed, as a ratio; infinite if none."""
    value, lower, upper = quantity.value, quantity.lower, quantity.upper
    if not value or value <= 0:
        return math.inf
    return min(value / lower if lower else math.inf, upper / value if upper else math.inf)


def _program(leg: LegResult) -> str:
    return " ".join(filter(None, (leg.program or leg.check, leg.layout, leg.relation)))


def _rails(leg: LegResult) -> str:
    return with_device("+".join(leg.rails) or leg.leg, leg.device) or "-"


def _table(legs: Sequence[LegResult]) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold", collapse_padding=True)
    # A column in which nothing stands takes room from the others.
    own = tuple(name for name in ("layout", "relation") if any(getattr(leg, name) for leg in legs))
    for name in ("verdict", "stack", "suite", "program", "rails", *own, "nodes"):
        table.add_column(name, no_wrap=True)
    for name in ("quantity", "value", "ceiling"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("judged by", overflow="fold")
    order = sorted(legs, key=lambda leg: (leg.stack, leg.suite, leg.program, leg.leg))
    for leg in order:
        named = [each for each in leg.quantities if each.named]
        if not named:
            _add(table, leg, None, own)
        for quantity in named:
            _add(table, leg, quantity, own)
    return table


def _add(table: Table, leg: LegResult, quantity: Quantity | None, own: Sequence[str]) -> None:
    verdict = _row_verdict(leg, quantity)
    cells = [
        leg.stack,
        leg.suite,
        leg.program or leg.check,
        _rails(leg),
        *(getattr(leg, name) or "-" for name in own),
        fold(leg.nodes) or "-",
    ]
    if quantity is None:
        cells += ["-", "-", "-", leg.reason]
    else:
        told = [each for each in leg.quantities if each.unit != ERROR_UNIT]
        named = [each for each in told if each.named]
        points = len(told) - len(named)
        what = "more" if all(each.message_size is None for each in told) else "sizes"
        cells += [
            quantity.name,
            _number(quantity.value, quantity.unit),
            _limit(quantity),
            _judged_by(quantity)
            + (f" + {points} {what}" if points and named and quantity is named[0] else ""),
        ]
    # As Text: a reason may quote "[/scratch/x]", which rich would take for its own markup.
    table.add_row(Text(verdict.value, style=STYLES[verdict]), *map(_text, cells))


def _row_verdict(leg: LegResult, quantity: Quantity | None) -> Verdict:
    """Return the verdict a row shows: the quantity's, but no green for a leg that is red.

    A leg may be red for a point of its curve that no row names, or because ReFrame failed it.
    """
    if quantity is None:
        return leg.verdict
    own = quantity.verdict
    named = {each.verdict for each in leg.quantities if each.named}
    return own if leg.verdict in named or own is not Verdict.PASS else leg.verdict


def _number(value: float | None, unit: str) -> str:
    if value is None:
        return "-"
    digits = f"{value:.2f}" if abs(value) < 1000 else f"{value:.0f}"
    return digits if unit == "1" else f"{digits} {unit}"


def _limit(quantity: Quantity) -> str:
    limit = quantity.ceiling
    if limit is None:
        return "-"
    sign = ">=" if quantity.unit == "us" else "<="
    return f"{sign} {limit:.4g}"


def _judged_by(quantity: Quantity) -> str:
    reference, value, upper = quantity.reference, quantity.value, quantity.upper
    if quantity.unit == ERROR_UNIT and reference is not None:
        return f"at most {reference:.4g} ({quantity.origin})"
    if reference is None or not value:
        return "-"
    origin = str(quantity.origin).split(":", maxsplit=1)[0]
    if quantity.source == Source.SITE:
        origin = "site"
    elif quantity.source in {Source.BASELINE_AND_PAIR, Source.BASELINE_AND_OTHER}:
        origin = origin.split(", and ", maxsplit=1)[0]
    if quantity.unit == "us" and upper is not None:
        return f"at most {upper:.4g} ({origin})"
    return f"{value / reference:.1%} of {reference:.4g} ({origin})"


def _where(leg: LegResult) -> str:
    nodes = f" on {fold(leg.nodes)}" if leg.nodes else ""
    return f"{leg.stack} {leg.program or leg.check} {leg.path_name}{nodes}".replace(
        "  ", " "
    ).rstrip()


def _folded_legs(
    result: RunResult,
) -> dict[tuple[Verdict, str, str], list[LegResult]]:
    """Return, by reason, the legs that never ran and are told in one line for each reason.

    A few that are MISSING are told one by one; a stack that is gone would be hundreds of lines.
    """
    reasons: dict[tuple[Verdict, str, str], list[LegResult]] = {}
    for leg in result.legs:
        lost = leg.verdict is Verdict.MISSING and not (leg.quantities or leg.job_id or leg.findings)
        if leg.verdict is Verdict.SKIPPED or leg.for_want_of or lost:
            reasons.setdefault((leg.verdict, leg.reason, leg.device), []).append(leg)
    return {
        key: legs
        for key, legs in reasons.items()
        if key[0] is Verdict.SKIPPED or legs[0].for_want_of or len(legs) > LOST_TOLD_APART
    }


def _fold(verdict: Verdict, reason: str, device: str, legs: Sequence[LegResult]) -> Text:
    if all(leg.fabric.startswith("no-") for leg in legs):
        # Of a technology that the site does not have nobody needs to know every program.
        return _text(f"{verdict.value:<9}{len(legs)} x: {reason}", style=STYLES[verdict])
    stacks = ", ".join(sorted({leg.stack for leg in legs}))
    programs = ", ".join(sorted({leg.program or leg.check for leg in legs}))
    what = " ".join(filter(None, (f"{len(legs)} x {programs} ({stacks})", device)))
    return _text(f"{verdict.value:<9}{what}: {reason}", style=STYLES[verdict])


def _print_red(leg: LegResult, console: Console) -> None:
    job = f" (job {leg.job_id})" if leg.job_id else ""
    text = _text(f"{leg.verdict.value:<9}", style=STYLES[leg.verdict])
    console.print(text.append(held(f"{_where(leg)}{job}: {leg.reason}"), style="default"))
    # Of a build the findings are the end of its log, which is short and says why.
    shown = len(leg.findings) if leg.program == BUILD_PROGRAM else FINDINGS_SHOWN
    for finding in leg.findings[:shown]:
        console.print(_text(f"         {finding}", style="dim"))
    more = len(leg.findings) - shown
    if more > 0:
        console.print(_text(f"         and {more} more findings (--json has all)", style="dim"))


def _how_to_repeat(leg: LegResult, site: str) -> Text:
    said = "it said: " if leg.program == BUILD_PROGRAM else "its raw output: "
    raw = f"{leg.stage_folder}/legs/" if leg.leg else leg.stage_folder
    return _text(f"repeat the first of them: {again(leg, site)}; {said}{raw}", style="dim")


def _text(words: str, style: str = "") -> Text:
    """Return words as they are, but for what would steer the terminal."""
    return Text(held(words), style=style)


def _summary(result: RunResult) -> Text:
    counts = result.counts()
    parts = [f"{counts[verdict]} {verdict}" for verdict in reversed(BADNESS) if verdict in counts]
    verdict = result.verdict
    line = _text(f"{verdict.value}: ", style=STYLES[verdict])
    # A leg has a row for each of its numbers: the table may have more green rows than legs.
    of = f" of {counted(count, 'leg')}" if (count := len(result.legs)) else ""
    told = f"{', '.join(parts) or 'nothing ran'}{of}"
    line.append(f"{told} (run {result.run_id})", style="default")
    step = next_step(result)
    return line.append(f"\nnext: {step}", style="default") if step else line
