"""``fabricproof trend``: what changed over the nights, since when, and what else changed then."""

from __future__ import annotations

import json
import sys
from dataclasses import replace

import click

from fabricproof.cli import options
from fabricproof.cli.output import Only, only_option
from fabricproof.cli.selection import perflogs, runs_of
from fabricproof.core.errors import ExitStatus
from fabricproof.history.compare.model import parse_margins
from fabricproof.history.machines import Machines
from fabricproof.history.store import open_store
from fabricproof.history.trend.find import Question, find_trend
from fabricproof.history.trend.model import trend_csv, trend_record
from fabricproof.history.trend.text import trend_lines
from fabricproof.report.formats.plot import trend_svg, write_plot
from fabricproof.report.model import devices_of, with_devices
from fabricproof.site import site_of


@click.command(name="trend")
@click.argument("runs", nargs=-1, metavar="[RUNS...]")
@options.site
@only_option("check", "stack", "program", "quantity", "rail", "node")
@click.option(
    "--points", "all_sizes", is_flag=True, help="Test every point of the curves, not only what is "
    "judged.",
)  # fmt: skip
@options.margins
@options.everything
@options.plot
@options.as_csv
@options.as_json
def command(
    runs: tuple[str, ...],
    site_name: str | None,
    only: Only,
    all_sizes: bool,
    margins: tuple[str, ...],
    whole: bool,
    plot: str | None,
    as_csv: bool,
    as_json: bool,
) -> None:
    r"""Show lasting changes and slow drifts over the runs of a site, and what coincided.

    Steps that begin together are one event: where (a rail, a node, a stack), since which run,
    how much, how sure, and which fields of the inventory or builds of a stack changed between the
    runs before and after.  WORSE is called falsely in at most one history of twenty, looked at
    after every run of a year; "looks WORSE" is not sure yet.  One bad night is no event; a newest
    run that is further off than any before is told as such.

    RUNS are named as for compare; the newest 60 by default.

    \b
    fabricproof trend
    fabricproof trend last:30 --only rail=rail1
    fabricproof trend 2026-11-01.. --only 'check=Osu*' --points
    fabricproof trend --json

    Six runs are the least; a step needs eight.  Exit status: 0 nothing is worse now; 1 something
    grew worse and still is; 5 something looks worse and is not sure yet; 6 too few runs for a step;
    65 damaged records; 66 no runs, or nothing fits.
    """
    site = site_of(site_name)
    ask = Question(margins=parse_margins(margins), only=only, all_sizes=all_sizes)
    if runs:
        chosen = runs_of(runs, site)
        ask = replace(ask, runs=chosen, last=len(chosen))
    store = open_store(perflogs(), site.name)
    if sys.stderr.isatty():
        click.echo(f"looking at {len(store.runs)} runs of {site.name} ...", err=True)
    trend = find_trend(store, ask, Machines.of_site(perflogs(), site.name))
    if plot is not None:
        write_plot(plot, trend_svg(trend))
    if as_json:
        click.echo(json.dumps(trend_record(trend), indent=2))
    elif as_csv:
        click.echo(trend_csv(trend), nl=False)
    else:
        told = with_devices(trend, devices_of(site))
        click.echo("\n".join(trend_lines(told, whole=whole)))
    if trend.is_worse_now:
        sys.exit(int(ExitStatus.FAIL))
    if trend.looks_worse_now:
        sys.exit(int(ExitStatus.UNJUDGED))
    if trend.too_few_for_steps:
        sys.exit(int(ExitStatus.NOTHING_JUDGED))
