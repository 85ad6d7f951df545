"""``fabricproof baseline``: what known-good runs measured, kept for review, and what it judges."""

from __future__ import annotations

import json
import shlex
import sys
from pathlib import Path
from typing import Any

import click

from fabricproof.cli import options
from fabricproof.cli.history.baseline_display import (
    baseline_record,
    frozen_lines,
    frozen_record,
    list_lines,
    show_lines,
)
from fabricproof.cli.selection import perflogs, runs_of
from fabricproof.core.errors import ExitStatus
from fabricproof.core.units import stamp
from fabricproof.history.baseline.freezing import Ask, Frozen, freeze
from fabricproof.history.baseline.review import (
    BaselineCoverage,
    standing,
)
from fabricproof.history.baseline_file import (
    find_baseline,
    name_taken,
    names_in,
    path_of,
    write_baseline,
)
from fabricproof.history.compare.facts import Machines
from fabricproof.history.store import NoHistoryError, Store, open_store
from fabricproof.site import Site, site_of
from fabricproof.verdict.references import Baseline

#: good runs that each quantity needs
_AT_LEAST = 5


@click.group(name="baseline", cls=options.HelpGroup)
@options.site
@options.as_json
def command(**_: object) -> None:
    r"""What known-good runs measured: a reviewed file that judges after physics and the site.

    A baseline can only make a verdict stricter. It holds for the nodes and the stacks that it was
    learnt with, and expires when one of them is changed. It judges once site.toml says so:
    baseline = "NAME" below [site].

    \b
    fabricproof baseline freeze spring-2026 last:10
    fabricproof baseline show spring-2026
    """


@command.command(name="freeze")
@click.argument("name", metavar="NAME")
@click.argument("runs", nargs=-1, required=True, metavar="RUNS...")
@options.count(
    "--at-least", _AT_LEAST, "Good runs that each quantity needs; fewer make wide bounds.", 3
)
@options.replace
@options.of_group("site_name", "as_json")
def freeze_command(
    name: str,
    runs: tuple[str, ...],
    at_least: int,
    replace: bool,
    site_name: str | None,
    as_json: bool,
) -> None:
    r"""Learn a baseline from RUNS that are known to be good, and write it into the site's folder.

    RUNS are named as for compare: run ids, last:10, dates, ranges, labels. What is FAIL or INVALID
    is set aside, outliers are, and each is named. Unlike builds, tool versions and nodes of which
    something was changed are refused.

    \b
    fabricproof baseline freeze spring-2026 last:10
    fabricproof baseline freeze before-swap 2026-11-01..2026-11-10 --replace

    Exit status: 0 written; 65 too few good runs, or unlike runs; 66 no records; 74 cannot write;
    78 the name is taken.
    """
    site, store, machines = _history(site_name)
    path = path_of(site.folder, name)
    if path.exists() and not replace:  # before a minute is spent on learning
        raise name_taken(path)
    typed = shlex.join(["fabricproof", *sys.argv[1:]])
    ask = Ask(name=name, frozen=stamp(), command=typed, at_least=at_least)
    frozen = freeze(store, runs_of(runs, site), machines, ask)
    write_baseline(path, frozen.baseline, over=replace)
    _tell(frozen, path, as_json=as_json, active=site.spec.baseline == name)


@command.command(name="list")
@options.of_group("site_name", "as_json")
def list_(site_name: str | None, as_json: bool) -> None:
    r"""List the baselines of a site: age, runs, keys, and whether each still holds.

    \b
    fabricproof baseline list
    fabricproof baseline list --json

    Exit status: 0, also where there is none.
    """
    site, store, machines = _history(site_name, needed=False)
    records = []
    for name in names_in(site.folder):
        baseline = find_baseline(site.folder, name)
        records.append(
            {
                **_head(baseline, standing(baseline, machines, store)),
                "active": site.spec.baseline == name,
            }
        )
    if as_json:
        click.echo(json.dumps({"site": site.name, "baselines": records}, indent=1))
        return
    click.echo("\n".join(list_lines(site.name, records)))


@command.command(name="show")
@click.argument("name", metavar="NAME")
@options.everything
@options.of_group("site_name", "as_json")
def show(name: str, whole: bool, site_name: str | None, as_json: bool) -> None:
    r"""Show a baseline: what it rests on, where it holds, medians, bounds and what they can see.

    \b
    fabricproof baseline show spring-2026
    fabricproof baseline show spring-2026 --all

    Exit status: 0 where it holds for all its nodes and stacks, 5 where it does not.
    """
    site, store, machines = _history(site_name, needed=False)
    baseline = find_baseline(site.folder, name)
    state = standing(baseline, machines, store)
    head = {**_head(baseline, state), "active": site.spec.baseline == name}
    if as_json:
        click.echo(json.dumps({**head, **baseline_record(baseline)}, indent=1))
    else:
        click.echo("\n".join(show_lines(baseline, head, whole=whole)))
    sys.exit(int(ExitStatus.PASS if state.holds else ExitStatus.UNJUDGED))


def _history(site_name: str | None, *, needed: bool = True) -> tuple[Site, Any, Machines]:
    """Return the site, its runs (None where there are none and they are not needed), its nodes."""
    site = site_of(site_name)
    store: Store | None = None
    try:
        store = open_store(perflogs(), site.name)
    except NoHistoryError:
        if needed:
            raise
    for note in store.notes if store else ():
        click.echo(f"fabricproof: {note}", err=True)
    return site, store, Machines.of_site(perflogs(), site.name)


def _head(baseline: Baseline, state: BaselineCoverage) -> dict[str, Any]:
    return {
        "name": baseline.name,
        "frozen": baseline.frozen,
        "runs": len(baseline.runs),
        "quantities": sum(1 for _ in baseline.rows()),
        "set_aside": len(baseline.set_aside),
        "not_judged": list(baseline.not_judged),
        "holds": state.holds,
        "why_not": list(state.reasons),
    }


def _tell(frozen: Frozen, path: Path, *, as_json: bool, active: bool) -> None:
    if as_json:
        click.echo(json.dumps({**frozen_record(frozen), "file": str(path)}, indent=1))
        return
    click.echo("\n".join(frozen_lines(frozen)))
    name = frozen.baseline.name
    judge = (
        "it judges from the next run on"
        if active
        else (f'to judge by it: baseline = "{name}" below [site] in site.toml')
    )
    click.echo(f"written: {path}\nnext: review it (git diff), commit it; {judge}")
