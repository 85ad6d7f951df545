"""``fabricproof trend``: what changed over the nights, since when, and what else changed then."""

from __future__ import annotations

import datetime
import json
import sys
from functools import partial

import click

from fabricproof.cli.compare import history_of, site_of
from fabricproof.cli.inventory import place
from fabricproof.core.errors import ExitStatus, FabricproofError
from fabricproof.history.compare.sides import choose_side
from fabricproof.history.store import open_store
from fabricproof.history.store.model import parse_margins
from fabricproof.history.trend.find import Question, find_trend
from fabricproof.history.trend.model import trend_lines, trend_record
from fabricproof.nodes.inventory.store import read_kept
from fabricproof.report.model import devices_of, with_devices

_FILTERS = ("check", "stack", "program", "quantity", "rail", "node")


def _margins(
    _context: click.Context, _option: click.Parameter, texts: tuple[str, ...]
) -> dict[str, float]:

    try:
        return parse_margins(texts)
    except FabricproofError as error:
        raise click.BadParameter(str(error)) from None


def _renamed(
    _context: click.Context, _option: click.Parameter, texts: tuple[str, ...]
) -> dict[str, str]:
    pairs = [text.partition("=") for text in texts]
    for old, sign, new in pairs:
        if not (old and sign and new):
            raise click.BadParameter(f"{old + sign + new!r} is not OLD=NEW")
    return {old: new for old, _, new in pairs}


@click.command(name="trend")
@click.option("--site", "site_name", metavar="S", help="Site (default: of this host).")
@click.option(
    "--last", metavar="N", default=60, show_default=True, type=click.IntRange(min=6),
    help="The newest N runs.",
)  # fmt: skip
@click.option(
    "--since", metavar="DATE", type=click.DateTime(["%Y-%m-%d"]), help="Only runs since then."
)
@click.option(
    "--runs", metavar="SELECTOR", help="Only these runs, as compare understands them: a label ..."
)
@click.option("--check", multiple=True, metavar="PATTERN", help="Only these checks: 'Osu*'.")
@click.option("--stack", multiple=True, metavar="PATTERN", help="Only these stacks.")
@click.option("--rail", multiple=True, metavar="PATTERN", help="Only legs over these rails.")
@click.option("--node", multiple=True, metavar="PATTERN", help="Only legs with these nodes.")
@click.option("--program", multiple=True, metavar="PATTERN", help="Only these programs: osu_bw.")
@click.option("--quantity", multiple=True, metavar="PATTERN", help="Only these: 'latency_*'.")
@click.option(
    "--all", "all_sizes", is_flag=True, help="Every point of every curve, not only what is judged."
)
@click.option(
    "--margin", "margins", multiple=True, metavar="METRIC=PERCENT", callback=_margins,
    help="Smallest change that is told: bandwidth=3%, latency=5% by default.",
)  # fmt: skip
@click.option(
    "--renamed", multiple=True, metavar="OLD=NEW", callback=_renamed, help="A node's names."
)
@click.option("-v", "--verbose", is_flag=True, help="Every quantity of every event.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def command(
    site_name: str | None,
    last: int,
    since: datetime.datetime | None,
    runs: str | None,
    all_sizes: bool,
    margins: dict[str, float],
    renamed: dict[str, str],
    verbose: bool,
    as_json: bool,
    **filters: tuple[str, ...],
) -> None:
    r"""Show lasting changes and slow drifts over the runs of a site, and what coincided.

    Steps that begin together are one event: where (a rail, a node, a stack), since which run,
    how much, how sure, and which fields of the inventory or builds of a stack changed between the
    runs before and after.  Of histories without any change at most one in twenty tells anything.
    One bad night is no event; a newest run that is further off than any before is told as such.

    \b
    fabricproof trend
    fabricproof trend --last 30 --rail rail1
    fabricproof trend --since 2026-11-01 --check 'Osu*' --all
    fabricproof trend --json

    Six runs are the least; a step needs eight.  Exit status: 0 nothing is worse now; 1 something
    grew worse and still is; 6 too few runs for a step; 65 damaged records; 66 no runs, or nothing
    fits.
    """
    ask = Question(
        last=last,
        since=since.date() if since else None,
        runs=_chosen(site_name, runs) if runs else (),
        where={name: filters[name] for name in _FILTERS},
        all_sizes=all_sizes,
        margins=margins,
        renamed=renamed,
    )
    _show(site_name, ask, verbose=verbose, as_json=as_json)


def _chosen(site_name: str | None, words: str) -> list[str]:
    """Return the identities of the runs that are meant."""
    _, history = history_of(site_of(site_name))
    return [run.run_id for run in choose_side(words, history).side.runs]


def _show(site_name: str | None, ask: Question, *, verbose: bool, as_json: bool) -> None:

    name, inventories = place(site_name)
    store = open_store(inventories.parent.parent, name)
    if sys.stderr.isatty():
        click.echo(f"looking at {len(store.runs)} runs of {name} ...", err=True)
    trend = find_trend(store, ask, partial(read_kept, inventories))
    if as_json:
        click.echo(json.dumps(trend_record(trend), indent=2))
    else:
        told = with_devices(trend, devices_of(site_of(site_name)))
        click.echo("\n".join(trend_lines(told, verbose=verbose)))
    if trend.is_worse_now:
        sys.exit(int(ExitStatus.FAIL))
    if trend.too_few_for_steps:
        sys.exit(int(ExitStatus.NOTHING_JUDGED))
