"""``fabricproof baseline``: what known-good runs measured, kept for review, and what it judges."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from fabricproof.cli import options
from fabricproof.cli.history.baseline_display import (
    baseline_record,
    diff_lines,
    frozen_lines,
    frozen_record,
    list_lines,
    propose_lines,
    replay_record,
    show_lines,
    unlike_record,
)
from fabricproof.cli.selection import perflogs, runs_of
from fabricproof.core.errors import ConfigError, ExitStatus
from fabricproof.core.project import site_option
from fabricproof.core.units import stamp
from fabricproof.history.baseline.freezing import Ask, Frozen, freeze
from fabricproof.history.baseline.review import (
    BaselineCoverage,
    Unlike,
    against_run,
    differences,
    replay,
    standing,
)
from fabricproof.history.compare.facts import Machines
from fabricproof.history.store import NoHistoryError, Store, no_samples, open_store
from fabricproof.site import Site, site_of
from fabricproof.verdict.baseline import Baseline, names_in, path_of, read_baseline, write_baseline

#: runs that a proposal looks at unless told otherwise
_NEWEST = 30

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
    fabricproof baseline propose
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

    Exit status: 0 written; 65 too few good runs, unlike runs, or an impossible number; 66 no
    records; 74 cannot write; 78 the name is taken.
    """
    site, store, machines = _history(site_name)
    path = path_of(site.folder, name)
    _refuse_taken(path, replace=replace)
    ids = runs_of(runs, site)
    frozen = _frozen(store, machines, ids, name, at_least, newest_only=False)
    write_baseline(path, frozen.baseline, replace=replace)
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
        baseline = _read(site, name)
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
    baseline = _read(site, name)
    state = standing(baseline, machines, store)
    head = {**_head(baseline, state), "active": site.spec.baseline == name}
    if as_json:
        click.echo(json.dumps({**head, **baseline_record(baseline)}, indent=1))
    else:
        click.echo("\n".join(show_lines(baseline, head, whole=whole)))
    sys.exit(int(ExitStatus.PASS if state.holds else ExitStatus.UNJUDGED))


@command.command(name="diff")
@click.argument("first", metavar="A")
@click.argument("second", metavar="B", default="latest")
@options.everything
@options.of_group("site_name", "as_json")
def diff(first: str, second: str, whole: bool, site_name: str | None, as_json: bool) -> None:
    r"""Compare baseline A with baseline B, or with a run (by default the newest), as a table.

    It tells numbers apart, not noise from change: compare does that.

    \b
    fabricproof baseline diff autumn spring
    fabricproof baseline diff spring latest

    Exit status: 0 nothing is beyond the bounds of A, 1 something is, 4 run B has no usable number
    of a quantity with a verdict that it tried for, 6 nothing is in both.
    """
    site, store, _ = _history(site_name, needed=False)
    one = _read(site, first)
    name = second.removeprefix("baseline:")
    if name in names_in(site.folder):
        words, found = name, differences(one, _read(site, name))
    else:
        store = store or _needed_store(site)
        words = _one_run(second, site)
        found = against_run(one, store, words)
    if as_json:
        rows = [unlike_record(each) for each in found]
        click.echo(json.dumps({"first": one.name, "second": words, "rows": rows}, indent=1))
    else:
        click.echo("\n".join(diff_lines(one, words, found, whole=whole)))
    sys.exit(_diff_status(found))


@command.command(name="propose")
@click.argument("runs", nargs=-1, metavar="[RUNS...]")
@click.option("--write", "write", metavar="NEW", help="Write the proposal under this name.")
@options.replace
@options.everything
@options.of_group("site_name", "as_json")
def propose(
    runs: tuple[str, ...],
    write: str | None,
    replace: bool,
    whole: bool,
    site_name: str | None,
    as_json: bool,
) -> None:
    r"""Learn from the newest good runs since anything was changed, and replay history with it.

    RUNS are named as for compare; the newest 30 by default.  Says how many past verdicts would be
    others: without a baseline, under the one that judges today (or that baseline:NAME among RUNS
    names) and under the proposal; which, per check and quantity.  Only --write writes anything.

    \b
    fabricproof baseline propose
    fabricproof baseline propose last:60 --write summer-2026

    Exit status: 0 proposed; 65 too few good runs since the last change; 74 cannot write; 78 the
    name is taken.
    """
    site, store, machines = _history(site_name)
    path = path_of(site.folder, write) if write else None
    if path is not None:
        _refuse_taken(path, replace=replace)
    named = [each.removeprefix("baseline:") for each in runs if each.startswith("baseline:")]
    if len(named) > 1:
        raise click.UsageError("one baseline to replay beside the proposal, not several")
    asked, runs = runs, tuple(each for each in runs if not each.startswith("baseline:"))
    old_name = named[0] if named else site.spec.baseline
    old = _read(site, old_name) if old_name else None
    apart = no_samples(store.labels)
    every = [run.run_id for run in store.runs if run.run_id not in apart]
    ids = runs_of(runs, site) if runs else every[-_NEWEST:]
    frozen = _frozen(store, machines, ids, write or "proposal", _AT_LEAST, newest_only=True)
    past = replay(store, every, machines, old=old, new=frozen.baseline)
    if path is not None:
        write_baseline(path, frozen.baseline, replace=replace)
    if as_json:
        record = {"old": old_name, "written": str(path) if path else None, **replay_record(past)}
        record |= {"left_out": list(frozen.left_out)}
        record["set_aside"] = list(frozen.baseline.set_aside)
        click.echo(json.dumps(record, indent=1))
        return
    click.echo("\n".join(propose_lines(frozen, old, past, whole=whole, kept=path is not None)))
    if path is None:
        again = shlex.join(["fabricproof", "baseline", "propose", *asked])
        again = f"{again} {site_option(site.name)} --write NAME"
        click.echo(f"next: {again}   # with --all in place of --write NAME it shows all")
    else:
        click.echo(f"written: {path}\nnext: review it, commit it, name it in site.toml")


def _refuse_taken(path: Path, *, replace: bool) -> None:
    """Refuse a name that is taken before a minute is spent on learning."""
    if path.exists() and not replace:
        raise ConfigError(
            "there is a baseline of that name",
            source=str(path),
            expected="a name of its own",
            next_step="another NAME, or --replace",
        )


def _history(site_name: str | None, *, needed: bool = True) -> tuple[Site, Any, Machines]:
    """Return the site, its runs (None where there are none and they are not needed), its nodes."""
    site = site_of(site_name)
    store: Store | None = None
    try:
        store = _needed_store(site)
    except NoHistoryError:
        if needed:
            raise
    return site, store, Machines.of_site(perflogs(), site.name)


def _needed_store(site: Site) -> Store:
    store = open_store(perflogs(), site.name)
    for note in store.notes:
        click.echo(f"fabricproof: {note}", err=True)
    return store


def _one_run(words: str, site: Site) -> str:
    ids = runs_of([words], site)
    if len(ids) != 1:
        raise click.UsageError(
            f"{words!r} is {len(ids)} runs: diff takes a baseline or one run; "
            "fabricproof compare takes many"
        )
    return ids[0]


def _frozen(
    store: Store,
    machines: Machines,
    ids: Sequence[str],
    name: str,
    at_least: int,
    *,
    newest_only: bool,
) -> Frozen:
    now = stamp()
    typed = shlex.join(["fabricproof", *sys.argv[1:]])
    ask = Ask(name=name, frozen=now, command=typed, at_least=at_least, newest_only=newest_only)
    return freeze(store, ids, machines, ask)


def _read(site: Site, name: str) -> Baseline:
    return read_baseline(path_of(site.folder, name))


def _head(baseline: Baseline, state: BaselineCoverage) -> dict[str, Any]:
    rows = [row for _, row in baseline.rows()]
    return {
        "name": baseline.name,
        "frozen": baseline.frozen,
        "runs": len(baseline.runs),
        "quantities": len(rows),
        "outliers": sum(len(row.outliers) for row in rows),
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


def _diff_status(found: Sequence[Unlike]) -> int:
    if all(each.ratio is None for each in found):
        return int(ExitStatus.NOTHING_JUDGED)
    if any(each.outside for each in found):
        return int(ExitStatus.FAIL)
    lost = any(each.lost and each.named for each in found)
    return int(ExitStatus.MISSING if lost else ExitStatus.PASS)
