"""``fabricproof report``: what a run came to, for people, for machines, for the vendor."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import click
from rich.text import Text

from fabricproof.cli import options
from fabricproof.cli.console import HonestConsole
from fabricproof.cli.output import STATUSES
from fabricproof.core.errors import OutputError
from fabricproof.core.measure import Verdict
from fabricproof.core.project import project_root
from fabricproof.core.whole_file import write_whole
from fabricproof.job.run import Workplace, workplace
from fabricproof.report.formats.junit import render_junit
from fabricproof.report.formats.prometheus import render_prometheus
from fabricproof.report.formats.record import report_record
from fabricproof.report.text.drain import render_drain
from fabricproof.report.text.screen import LINES, WIDTH, summary
from fabricproof.site import Site, site_of

if TYPE_CHECKING:
    from fabricproof.report.gather import Gathered
    from fabricproof.report.model import ReportData

#: a terminal that says it is narrower says nothing
_NARROWEST = 40

_FILES = {
    ".html": "one page that opens offline",
    ".xml": "JUnit, a test case for each leg",
    ".prom": "for Prometheus's textfile collector",
    ".tar.gz": "all evidence, for the vendor",
}


@click.command(name="report")
@click.argument("words", default="", metavar="[RUN]")
@click.argument("against", default="", metavar="[BEFORE]")
@options.site
@options.everything
@options.output(_FILES)
@click.option("--drain", is_flag=True, help="Print lines for scontrol, to be reviewed.")
@options.as_json
def command(
    words: str,
    against: str,
    site_name: str | None,
    whole: bool,
    files: Mapping[str, Path],
    drain: bool,
    as_json: bool,
) -> None:
    r"""Say what a run came to: what is red and where, how sure, what changed, what to run next.

    RUN is the newest run by default, and is named as `fabricproof runs --help` says.  BEFORE are
    runs to compare it with, or same-inventory: the runs before on the nodes as they are now.
    Nothing is measured and nothing is executed.

    \b
    fabricproof report                          # the newest run on one screen
    fabricproof report 2026-11-21 -o r.html     # the last run of a day as a page
    fabricproof report latest firmware=28.39    # after and before
    fabricproof report --drain                  # scontrol lines with evidence, commented out
    fabricproof report -o case.tar.gz           # raw outputs, commands, inventory, records

    Exit status: that of the run's verdict, as for run: 0, FAIL 1, INVALID 3, MISSING 4,
    UNJUDGED 5, nothing judged 6; 2: RUN or BEFORE means nothing, 65: a damaged
    record, 66: no such run, 74: a file could not be written; the others are.
    """
    if as_json and drain:
        raise click.UsageError("--json has the drain lines already: leave --drain out")
    from fabricproof.report.formats.bundle import write_bundle  # noqa: PLC0415 - start-up time

    site = site_of(site_name)
    place = workplace(project_root())
    found = _gathered(site, place, words, against)
    failed = _write_all(found, files, lambda path: write_bundle(path, found, site, place))
    if as_json:
        click.echo(json.dumps(report_record(found.data, found.records), allow_nan=False))
    elif drain:
        click.echo(render_drain(found.data, found.records), nl=False)
    else:
        _show(found, whole=whole)
    _leave(found.data.session.verdict, failed)


def _leave(verdict: Verdict, failed: Sequence[OutputError]) -> NoReturn:
    """End with the status of a verdict that was told; with that of a file that was not written.

    Raises:
        OutputError: of the first that could not; of others it is told here.
    """
    for each in failed[1:]:
        click.echo(f"fabricproof: {each}", err=True)
    if failed:
        raise failed[0]
    sys.exit(int(STATUSES[verdict]))


def _write_all(
    found: Gathered, files: Mapping[str, Path], bundle: Callable[[Path], Iterable[str]]
) -> list[OutputError]:
    """Write each file that is asked for, also where another cannot be; return why some were not.

    That ends nothing: the verdict is told first.
    """
    from fabricproof.report.formats.page import render_html  # noqa: PLC0415 - start-up time

    render: Mapping[str, Callable[[ReportData], str]] = {
        ".html": lambda data: render_html(data, found.records),
        ".xml": render_junit,
        ".prom": render_prometheus,
    }
    failed: list[OutputError] = []
    for end, path in files.items():
        try:
            if end in render:
                write_whole(path, render[end](found.data))
                told: Iterable[str] = [f"written: {path}"]
            else:
                told = bundle(path)
            for line in told:
                click.echo(line, err=True)
        except OutputError as error:
            failed.append(error)
    return failed


def _gathered(site: Site, place: Workplace, words: str, against: str) -> Gathered:
    from fabricproof.report.gather import gather  # noqa: PLC0415 - start-up time

    try:
        return gather(site, place, words, against=against, on_step=_step)
    finally:
        _step("")


def _step(words: str) -> None:
    """Show what is done now, on a line that the next one replaces, where somebody watches."""
    if sys.stderr.isatty():
        click.echo(f"\r\x1b[K{words and words + ' ...'}\r", err=True, nl=False)


def _width() -> int:
    """Return the columns of a screen: those of ``COLUMNS`` where it says fewer."""
    columns = os.environ.get("COLUMNS", "")
    said = int(columns) if columns.isdigit() and len(columns) < 6 else WIDTH
    return min(said, WIDTH) if said >= _NARROWEST else WIDTH


def _show(found: Gathered, *, whole: bool) -> None:
    console = HonestConsole(width=None if sys.stdout.isatty() else 10**6, soft_wrap=True)
    lines = summary(found.data, found.records, whole=whole, width=_width(), lines=LINES)
    for line in lines:
        text = Text(line.text)
        if line.word:
            text.highlight_words([line.word], line.style, case_sensitive=True)
        elif line.style:
            text.stylize(line.style)
        console.print(text)
