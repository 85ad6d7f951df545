"""What a night came to, on the terminal: what is red, whose fault, how sure, what to run next."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from rich.console import Console
from rich.text import Text

from fabricproof.core.errors import ExitStatus
from fabricproof.core.project import site_option
from fabricproof.core.units import by_key
from fabricproof.nightly.changes import ChangeKind, labels_of, told_together, words_of
from fabricproof.nightly.confirm import (
    LookResult,
)
from fabricproof.nightly.log import NightEnd
from fabricproof.nightly.night import NightOutcome, what_was_sent
from fabricproof.site import Site

_STYLES = {
    LookResult.CONFIRMED: "bold red",
    LookResult.FLUTTERS: "bold red",
    LookResult.NEVER_CLEARED: "bold magenta",
    LookResult.UNCONFIRMED: "bold yellow",
    LookResult.NOT_REPEATED: "yellow",
    LookResult.NOW_GREEN: "yellow",
    LookResult.NOW_RED: "bold red",
    LookResult.UNJUDGED: "bold yellow",
}
_CHANGE_STYLES = {
    ChangeKind.RED: "bold red",
    ChangeKind.BLAME: "bold red",
    ChangeKind.GREEN: "green",
    ChangeKind.UNJUDGED: "yellow",
    ChangeKind.NIGHT: "bold yellow",
}


def render_night(outcome: NightOutcome, console: Console) -> None:
    """Print the confirmations, the changes, what was told, and one line that sums up."""
    if outcome.confirmations:
        console.print()
        said = by_key(
            ((each.finding, each.sentence), str(each.red.key)) for each in outcome.confirmations
        )
        for (finding, sentence), keys in said.items():
            text = Text(f"{finding.value:<14}", style=_STYLES[finding])
            console.print(text.append(f"{labels_of(keys)}: {sentence}", style="default"))
    for group in told_together(outcome.changes):
        text = Text(f"{group[0].kind.value:<14}", style=_CHANGE_STYLES[group[0].kind])
        console.print(text.append(words_of(group), style="default"))
    for line in (*what_was_sent(outcome.told, outcome.night.night), *outcome.notes):
        console.print(Text(f"note          {line}", style="dim"))
    console.print(_summary(outcome))


def _summary(outcome: NightOutcome) -> Text:
    night = outcome.night
    line = Text(f"night {night.night}: {night.ended.value}")
    if night.ended is not NightEnd.WHOLE:
        line.append(f" ({night.reason})", style="bold yellow")
    found = [each.finding for each in outcome.confirmations]
    counts = [f"{found.count(each)} {each.value}" for each in LookResult if each in found]
    nothing = "nothing was red" if outcome.result is not None else "no run"
    num = len(outcome.changes) or "no"
    line.append(f"; {', '.join(counts) or nothing}; {num} change(s) of state")
    step = _next_step(outcome)
    return line.append(f"\nnext: {step}") if step else line


def _next_step(outcome: NightOutcome) -> str:
    if outcome.night.ended is NightEnd.NO_SCHEDULER:
        return "look at slurmctld; this says nothing of the network"
    blamed = sorted({node for each in outcome.confirmations for node in each.blamed})
    site = site_option(outcome.site)
    report = " ".join(filter(None, ("fabricproof report", outcome.night.run_id, site)))
    if blamed:
        show = " ".join(filter(None, ("fabricproof inventory show", site)))
        return f"look at {', '.join(blamed)}: {show}, {report}"
    if any(each.stays_red for each in outcome.confirmations):
        return f"read the reasons above; {report}"
    return ""


#: a report of a large site takes seconds; one that takes this long is stuck
REPORT_SECONDS = 900


def write_reports(site: Site, run_id: str) -> Iterator[str]:
    """Write the reports that the site asks for; one that fails changes no verdict and is said."""
    wanted = {
        kind: path
        for kind in ("html", "junit", "prometheus")
        if (path := getattr(site.night, kind)) is not None
    }
    if not wanted or not run_id:
        return
    options = [part for kind, path in wanted.items() for part in (f"--{kind}", path)]
    program = str(Path(sys.executable).with_name("fabricproof"))
    try:
        done = subprocess.run(
            [program, "report", run_id, "--site", str(site.folder), *options],
            capture_output=True,
            text=True,
            timeout=REPORT_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        yield f"no report: {error}"
        return
    if done.returncode >= int(ExitStatus.DATA) or done.returncode == int(ExitStatus.USAGE):
        yield f"no report: {' '.join(done.stderr.split())[-300:]}"
    else:
        yield f"reports: {', '.join(wanted.values())}"
