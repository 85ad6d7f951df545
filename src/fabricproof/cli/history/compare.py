"""``fabricproof compare``: what changed between two sides of history, how sure, and where."""

from __future__ import annotations

import json
import sys

import click

from fabricproof.cli import options
from fabricproof.cli.output import Only, only_option
from fabricproof.cli.selection import history_of
from fabricproof.core.errors import ExitStatus
from fabricproof.history.compare.comparison import Asked, compare_sides
from fabricproof.history.compare.model import comparison_csv, comparison_record, parse_margins
from fabricproof.history.compare.sides import choose_side
from fabricproof.history.compare.text import lines
from fabricproof.history.stats.shifts import Change
from fabricproof.report.formats.plot import comparison_svg, write_plot
from fabricproof.report.model import devices_of, with_devices
from fabricproof.site import site_of

_KEYS = ("check", "stack", "program", "rail", "node", "pair", "size")


@click.command(name="compare")
@click.argument("first", metavar="A")
@click.argument("second", metavar="B")
@options.site
@click.option(
    "--across", multiple=True, metavar="FIELD", help="Let numbers differ in FIELD: build, nodes."
)
@options.margins
@click.option(
    "--alpha",
    type=options.RealNumber(0.0001, 0.5),
    default=0.05,
    show_default=True,
    metavar="RATE",
    help="Rate of comparisons without any change that would say BETTER or WORSE anywhere.",
)
@only_option(*_KEYS)
@options.everything
@options.plot
@options.as_csv
@options.as_json
def command(
    first: str,
    second: str,
    site_name: str | None,
    across: tuple[str, ...],
    margins: tuple[str, ...],
    alpha: float,
    only: Only,
    whole: bool,
    plot: str | None,
    as_csv: bool,
    as_json: bool,
) -> None:
    r"""Say what changed from A to B: BETTER, SAME, WORSE or UNDECIDED, how sure, and where.

    A and B are each a run id or its beginning, latest, latest~3, last:5, last:5@2026-11-10, a
    date, a range with both ends included or open, a label, baseline:NAME, or a value of
    the inventory that every node of a run had: firmware=28.39, rail1.speed=100,
    vc2:mtu=1400.  Several are joined by commas.

    \b
    fabricproof compare firmware=28.39 firmware=28.41
    fabricproof compare 2026-11-01..2026-11-10 2026-11-11..
    fabricproof compare last:5@2026-11-10 latest --only rail=rail1
    fabricproof compare baseline:november last:5 --json

    A run counts once, whatever it repeated.  Only like is compared with like: same stack and
    build, program and version, nodes, settings, size.  Bandwidth that rises is better, latency
    that rises is worse.

    The exit status is 0 for BETTER and SAME, 1 for WORSE, 5 for UNDECIDED, 6 where nothing could
    be compared; 2: A or B means nothing, or more than one thing; 66: no records, or no baseline of
    that name.
    """
    asked = Asked(across=across, margins=parse_margins(margins), alpha=alpha, only=only)
    site = site_of(site_name)
    store, history = history_of(site)
    sides = choose_side(first, history), choose_side(second, history)
    comparison = compare_sides(store, history, *sides, asked)
    if plot is not None:
        write_plot(plot, comparison_svg(comparison))
    if as_json:
        click.echo(json.dumps(comparison_record(comparison), indent=1))
    elif as_csv:
        click.echo(comparison_csv(comparison), nl=False)
    else:
        told = with_devices(comparison, devices_of(site))
        click.echo("\n".join(lines(told, whole=whole)))
    statuses = {
        Change.BETTER: ExitStatus.PASS,
        Change.SAME: ExitStatus.PASS,
        Change.WORSE: ExitStatus.FAIL,
        Change.UNDECIDED: ExitStatus.UNJUDGED,
    }
    sys.exit(int(statuses[comparison.overall]))
