"""``fabricproof baseline``: what known-good runs measured, kept for review, and what it judges."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import click

from fabricproof.cli import options
from fabricproof.cli.selection import perflogs, runs_of
from fabricproof.core.errors import ExitStatus
from fabricproof.core.hostlist import fold
from fabricproof.core.plain import plain
from fabricproof.core.project import site_option
from fabricproof.core.provenance import LegPlace
from fabricproof.core.units import by_key, columns, stamp
from fabricproof.history.baseline.file import (
    builds_of,
    find_baseline,
    name_taken,
    names_in,
    path_of,
    why_not_valid,
    write_baseline,
)
from fabricproof.history.baseline.freeze import AT_LEAST, FEWEST, Ask, freeze
from fabricproof.history.machines import Machines
from fabricproof.history.store import NoHistoryError, Store, open_store
from fabricproof.site import Site, site_of
from fabricproof.verdict.references import Baseline, BaselineRow

#: a change by this factor that a bound does not see makes the row worthless: a choice
BLIND_FACTOR = 2.0

#: lines of a list that are shown without ``--all``
_SHOWN = 5


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
    "--at-least", AT_LEAST, "Good runs that each quantity needs; fewer make wide bounds.", FEWEST
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
    if store is None:
        raise NoHistoryError(
            f"nothing was measured on {site.name} yet",
            next_step=f"fabricproof run {site_option(site.name)} -t quick",
        )
    path = path_of(site.folder, name)
    if path.exists() and not replace:  # before a minute is spent on learning
        raise name_taken(path)
    typed = shlex.join(["fabricproof", *sys.argv[1:]])
    ask = Ask(name=name, frozen=stamp(), command=typed, at_least=at_least)
    baseline = freeze(store, runs_of(runs, site), machines, ask)
    write_baseline(path, baseline, over=replace)
    if as_json:
        record = {
            "name": name,
            "runs": list(baseline.runs),
            "quantities": sum(1 for _ in baseline.rows()),
            "set_aside": list(baseline.set_aside),
            "not_judged": list(baseline.not_judged),
            "file": str(path),
        }
        click.echo(json.dumps(record, indent=1))
        return
    click.echo("\n".join(frozen_lines(baseline)))
    judge = f'to judge by it: baseline = "{name}" below [site] in site.toml'
    if site.spec.baseline == name:
        judge = "it judges from the next run on"
    click.echo(f"written: {path}\nnext: review it (git diff), commit it; {judge}")


@command.command(name="list")
@options.of_group("site_name", "as_json")
def list_(site_name: str | None, as_json: bool) -> None:
    r"""List the baselines of a site: age, runs, quantities, and whether each still holds.

    \b
    fabricproof baseline list
    fabricproof baseline list --json

    Exit status: 0, also if there is none.
    """
    site, store, machines = _history(site_name)
    records = [
        _head(find_baseline(site.folder, name), site, machines, store)
        for name in names_in(site.folder)
    ]
    if as_json:
        click.echo(json.dumps({"site": site.name, "baselines": records}, indent=1))
    else:
        click.echo("\n".join(list_lines(site.name, records)))


@command.command(name="show")
@click.argument("name", metavar="NAME")
@options.everything
@options.of_group("site_name", "as_json")
def show(name: str, whole: bool, site_name: str | None, as_json: bool) -> None:
    r"""Show a baseline: what it rests on, whether it still holds, medians, bounds.

    \b
    fabricproof baseline show spring-2026
    fabricproof baseline show spring-2026 --all

    Exit status: 0 if it holds for all its nodes and stacks, 5 if it does not.
    """
    site, store, machines = _history(site_name)
    baseline = find_baseline(site.folder, name)
    head = _head(baseline, site, machines, store)
    if as_json:
        click.echo(json.dumps({**head, **baseline_record(baseline)}, indent=1))
    else:
        click.echo("\n".join(show_lines(baseline, head, whole=whole)))
    sys.exit(int(ExitStatus.PASS if head["holds"] else ExitStatus.UNJUDGED))


def _history(site_name: str | None) -> tuple[Site, Store | None, Machines]:
    """Return the site, its runs (None if there are none), its nodes."""
    site = site_of(site_name)
    store = None
    try:
        store = open_store(perflogs(), site.name)
    except NoHistoryError as error:
        click.echo(f"fabricproof: {error.problem}", err=True)
    for note in store.notes if store else ():
        click.echo(f"fabricproof: {note}", err=True)
    return site, store, Machines.of_site(perflogs(), site.name)


def _head(
    baseline: Baseline, site: Site, machines: Machines, store: Store | None
) -> dict[str, Any]:
    why_not = why_not_valid(baseline, machines, store)
    return {
        "name": baseline.name,
        "frozen": baseline.frozen,
        "runs": len(baseline.runs),
        "quantities": sum(1 for _ in baseline.rows()),
        "set_aside": len(baseline.set_aside),
        "not_judged": list(baseline.not_judged),
        "holds": not why_not,
        "why_not": why_not,
        "active": site.spec.baseline == baseline.name,
    }


def list_lines(site: str, records: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Yield the baselines of a site, one a line, with why those that expired have."""
    if not records:
        again = f"fabricproof baseline freeze NAME last:10 {site_option(site)}"
        yield f"site {site} has no baseline; next: {again}"
        return
    rows = [("baseline", "frozen (UTC)", "runs", "quantities", "not judged", "holds")]
    rows += (
        (
            each["name"] + (" (judges)" if each["active"] else ""),
            each["frozen"][:16].replace("T", " "),
            str(each["runs"]),
            str(each["quantities"]),
            str(len(each["not_judged"])),
            "yes" if each["holds"] else f"no: {'; '.join(each['why_not'][:2])}",
        )
        for each in records
    )
    yield from columns(rows, frozenset({2, 3, 4}))


def show_lines(baseline: Baseline, head: Mapping[str, Any], *, whole: bool) -> Iterator[str]:
    """Yield a baseline: what it rests on, whether it holds, its numbers."""
    yield f"{baseline.words}, site {baseline.site}" + (", judges" if head["active"] else "")
    yield "holds today: " + ("yes" if head["holds"] else "NO")
    yield from (f"  {reason}" for reason in head["why_not"])
    starts = sorted(baseline.runs.values())
    span = f"{starts[0][:16]} to {starts[-1][:16]}".replace("T", " ")
    yield f"from {len(baseline.runs)} runs, {span}, by: {baseline.command}"
    cards = by_key((_card(baseline, name), name) for name in baseline.nodes)
    yield f"nodes: {'; '.join(f'{fold(names)}{card}' for card, names in cards.items())}"
    builds = builds_of(baseline).items()
    yield f"builds: {', '.join(f'{stack} {each}' for stack, several in builds for each in several)}"
    yield from _some("not judged", baseline.not_judged, whole=whole)
    rows = [each for each in baseline.rows() if whole or each[1].named]
    yield from _numbers(rows if whole else rows[:_SHOWN])
    yield from _blind(baseline)
    more = sum(1 for _ in baseline.rows()) - len(rows if whole else rows[:_SHOWN])
    if more:
        yield f"{more} more quantities: --all"
    yield from _some("not learnt from", baseline.set_aside, whole=whole)


def frozen_lines(baseline: Baseline) -> Iterator[str]:
    """Yield what was frozen and what was not."""
    rows = list(baseline.rows())
    yield f"{baseline.words}: {len(rows)} quantities of {len(baseline.runs)} runs"
    yield from _numbers([each for each in rows if each[1].named][:_SHOWN])
    if len(rows) > _SHOWN:
        site = site_option(baseline.site)
        yield f"all of them: fabricproof baseline show {baseline.name} --all {site}"
    yield from _blind(baseline)
    yield from _some("not learnt from", baseline.set_aside, whole=False)
    yield from _some("not judged", baseline.not_judged, whole=False)


def _card(baseline: Baseline, node: str) -> str:
    """Return ``(ConnectX-6 firmware 28.39)``, of all cards; empty if unknown."""
    facts = (baseline.facts_of(node) or {}).values()
    model, firmware = (
        ", ".join(dict.fromkeys(str(each[fact]) for each in facts if fact in each))
        for fact in ("model", "firmware")
    )
    told = " ".join(filter(None, (model, firmware and f"firmware {firmware}")))
    return f" ({told})" if told else ""


def _numbers(several: Iterable[tuple[LegPlace, BaselineRow]]) -> Iterator[str]:
    """Yield two lines a quantity: what it is, and its bound."""
    for place, row in several:
        sign = ">=" if row.better > 0 else "<="
        yield f"  {' '.join((place.stack, place.program, place.leg, place.pair, row.quantity))}"
        yield (
            f"    {sign} {row.bound:.5g} {row.unit}, median {row.median:.5g} of {row.num_runs} "
            f"runs, spread {row.spread:.1%}: sees a change of {detects(row):.1%}"
            + ", blind"
            * is_blind(row)
        )


def detects(row: BaselineRow) -> float:
    """Return the smallest loss (of a latency: rise) that a row is sure to see, of its median."""
    return abs(row.bound / row.median - 1)


def is_blind(row: BaselineRow) -> bool:
    """Tell whether half a bandwidth, or twice a latency, lies within the bounds of a row."""
    if row.better > 0:
        return row.low < row.median / BLIND_FACTOR
    return row.high > row.median * BLIND_FACTOR


def _blind(baseline: Baseline) -> Iterator[str]:
    rows = [row for _, row in baseline.rows()]
    if blind := sum(map(is_blind, rows)):
        yield (
            f"{blind} of {len(rows)} quantities are blind: half the bandwidth or twice the latency "
            "lies within their bounds; more runs, or quieter ones, make them tighter"
        )


def _some(title: str, told: Sequence[str], *, whole: bool) -> Iterator[str]:
    if told:
        yield f"{title}: {len(told)}"
        yield from (f"  {each}" for each in (told if whole else told[:_SHOWN]))
        if not whole and len(told) > _SHOWN:
            yield f"  and {len(told) - _SHOWN} more: --all, or --json"


def baseline_record(baseline: Baseline) -> dict[str, Any]:
    """Return a baseline as plain data, the form of ``--json``."""
    return {
        "site": baseline.site,
        "command": baseline.command,
        "fabricproof": baseline.fabricproof,
        "runs_used": dict(baseline.runs),
        "builds": builds_of(baseline),
        "nodes": {name: baseline.facts_of(name) for name in baseline.nodes},
        "set_aside": list(baseline.set_aside),
        "not_judged": list(baseline.not_judged),
        "rows": [
            plain(place) | plain(row, detects=detects(row), blind=is_blind(row))
            for place, row in baseline.rows()
        ],
    }
