"""``fabricproof report``: what a run came to, for people, for machines, for the vendor."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import click
from rich.text import Text

from fabricproof.cli.console import HonestConsole
from fabricproof.cli.output import STATUSES
from fabricproof.core.errors import OutputError
from fabricproof.core.whole_file import write_whole
from fabricproof.job.run.start import workplace
from fabricproof.report.bundle import write_bundle
from fabricproof.report.drain import render_drain
from fabricproof.report.gather import Gathered, gather
from fabricproof.report.html import render_html
from fabricproof.report.junit import render_junit
from fabricproof.report.prometheus import render_prometheus
from fabricproof.report.record import report_record
from fabricproof.report.summary import LINES, WIDTH, summary
from fabricproof.site import load_site
from fabricproof.site.load import choose_site, project_root

_FILE = click.Path(dir_okay=False, path_type=Path)


@click.command(name="report")
@click.argument("words", default="", metavar="[RUN]")
@click.option("--site", "site_name", metavar="S", help="Site (default: of this host).")
@click.option("--before", "against", metavar="SELECTOR", help="Compare with these runs.")
@click.option(
    "--last",
    type=click.IntRange(min=1),
    default=30,
    metavar="N",
    help="Look back on N runs (default: 30).",
)
@click.option("--all", "whole", is_flag=True, help="Every item in full, not one screen.")
@click.option("--html", type=_FILE, metavar="FILE", help="One page that opens offline.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@click.option("--junit", type=_FILE, metavar="FILE", help="One test case for each leg.")
@click.option("--prometheus", type=_FILE, metavar="FILE", help="For a textfile collector.")
@click.option("--drain", is_flag=True, help="Print lines for scontrol, to be reviewed.")
@click.option("--bundle", type=_FILE, metavar="FILE.tar.gz", help="All evidence, for the vendor.")
@click.option("--anonymous", is_flag=True, help="With --bundle: no names, no addresses.")
def command(
    words: str,
    site_name: str | None,
    against: str | None,
    last: int,
    whole: bool,
    html: Path | None,
    as_json: bool,
    junit: Path | None,
    prometheus: Path | None,
    drain: bool,
    bundle: Path | None,
    anonymous: bool,
) -> None:
    r"""Say what a run came to: what is red and where, how sure, what changed, what to run next.

    RUN is a run's identity or its beginning, a date, or a label; the newest run by default.
    Nothing is measured and nothing is executed.

    \b
    fabricproof report                            the newest run on one screen
    fabricproof report 2026-11-21 --html r.html   the last run of a day as a page
    fabricproof report --before firmware=28.39    before and after
    fabricproof report --drain                    scontrol lines with evidence, commented out
    fabricproof report --bundle case.tar.gz       raw outputs, commands, inventory, records

    --before takes what 'fabricproof compare' takes, or 'same-inventory': the runs before on the
    nodes as they are now.

    Exit status: that of the run's verdict, as for run: 0, FAIL 1, INVALID 3, MISSING 4,
    UNJUDGED 5, nothing judged 6; 2: a selector means nothing, or two options name one file, 65: a
    damaged record, 66: no such run, 74: a file could not be written; the others are.
    """
    if anonymous and bundle is None:
        raise click.UsageError("--anonymous goes with --bundle")
    if as_json and drain:
        raise click.UsageError("--json has the drain lines already: leave --drain out")
    _refuse_one_file_twice(
        {"--html": html, "--junit": junit, "--prometheus": prometheus, "--bundle": bundle}
    )

    found = _gathered(site_name, words, against or "", last)
    _write_all(
        _partial(html, _write_html, found),
        _partial(junit, _write_junit, found),
        _partial(prometheus, _write_prometheus, found),
        _partial(bundle, _write_bundle, found, site_name, anonymous=anonymous),
    )
    if as_json:
        click.echo(json.dumps(report_record(found.data, found.records), allow_nan=False))
    elif drain:
        click.echo(render_drain(found.data, found.records), nl=False)
    else:
        _show(found, whole=whole)
    sys.exit(int(STATUSES[found.data.session.verdict]))


def _refuse_one_file_twice(files: Mapping[str, Path | None]) -> None:
    known: dict[Path, str] = {}
    for option, path in files.items():
        if path is None:
            continue
        other = known.setdefault(path.resolve(), option)
        if other != option:
            raise click.UsageError(f"{other} and {option} name the same file: {path}")


def _partial(
    path: Path | None, write: Callable[..., None], *facts: object, **options: bool
) -> Callable[[], None] | None:
    return None if path is None else lambda: write(path, *facts, **options)


def _write_all(*writers: Callable[[], None] | None) -> None:
    """Write each file that is asked for, also where another cannot be written.

    Raises:
        OutputError: of the first that could not; of others it is told here.
    """
    failed: list[OutputError] = []
    for write in writers:
        try:
            if write is not None:
                write()
        except OutputError as error:
            failed.append(error)
    for each in failed[1:]:
        click.echo(f"fabricproof: {each}", err=True)
    if failed:
        raise failed[0]


def _gathered(site_name: str | None, words: str, against: str, last: int) -> Gathered:

    site = load_site(site_name) if site_name else choose_site()
    place = workplace(project_root())
    try:
        return gather(site, place, words, against=against, last=last, on_step=_step)
    finally:
        _step("")


def _step(words: str) -> None:
    """Show what is done now, on a line that the next one replaces, where somebody watches."""
    if sys.stderr.isatty():
        click.echo(f"\r\x1b[K{words and words + ' ...'}\r", err=True, nl=False)


def _show(found: Gathered, *, whole: bool) -> None:

    console = HonestConsole(width=None if sys.stdout.isatty() else 10**6, soft_wrap=True)
    lines = summary(found.data, found.records, whole=whole, width=WIDTH, lines=LINES)
    for line in lines:
        text = Text(line.text)
        if line.word:
            text.highlight_words([line.word], line.style, case_sensitive=True)
        elif line.style:
            text.stylize(line.style)
        console.print(text)


def _write_html(path: Path, found: Gathered) -> None:

    write_whole(path, render_html(found.data))
    click.echo(f"written: {path}", err=True)


def _write_junit(path: Path, found: Gathered) -> None:

    write_whole(path, render_junit(found.data))
    click.echo(f"written: {path}", err=True)


def _write_prometheus(path: Path, found: Gathered) -> None:

    write_whole(path, render_prometheus(found.data))
    click.echo(f"written: {path}", err=True)


def _write_bundle(path: Path, found: Gathered, site_name: str | None, *, anonymous: bool) -> None:

    site = load_site(site_name) if site_name else choose_site()
    told = write_bundle(path, found, site, workplace(project_root()), anonymous=anonymous)
    for line in told:
        click.echo(line, err=True)
