"""``fabricproof runs``: which runs there are, what changed between them, and names for them."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import click
from rich.table import Table

from fabricproof.cli import options
from fabricproof.cli.console import HonestConsole
from fabricproof.cli.selection import perflogs, runs_of
from fabricproof.core.measure import BADNESS, Verdict, worst
from fabricproof.core.records import append_records, record_file, record_files
from fabricproof.core.units import by_key, counted, first_few, stamp
from fabricproof.history.imported import read_reframe_report
from fabricproof.history.machines import Machines, changed_builds, last_known
from fabricproof.history.store import Run, Store, labels_of, open_store, require_label, set_label
from fabricproof.nodes.inventory.words import name_of
from fabricproof.site import site_of

#: changes that are named in the table; --json has all
_NAMED_CHANGES = 3


class _ListByDefault(options.HelpGroup):
    """A group of which ``list`` is meant where none of its commands is named."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Put ``list`` first where no command is named."""
        named = {*self.commands, *ctx.help_option_names}
        return super().parse_args(ctx, args if named & set(args) else ["list", *args])


@click.group(name="runs", cls=_ListByDefault)
@options.site
def command(**_: object) -> None:
    r"""Show the runs of a site, oldest first, with what changed on the nodes before each.

    \b
    fabricproof runs
    fabricproof runs last:10
    fabricproof runs 2026-11-01..2026-11-10
    fabricproof runs label 20261121T213422Z-1a6c68 before-swap
    fabricproof runs label --remove 20261121T213422Z-1a6c68 before-swap
    fabricproof runs import run-report-*.json

    RUN and RUNS in every command are: a run's identity or its beginning, latest, latest~1, a label,
    or a date.  Where several runs can be meant also last:5, last:5@2026-11-10, a range of dates
    with both ends included or open (2026-11-01..), or a value of the inventory that every node of
    a run had: firmware=28.39, rail1.speed=100, vc2:mtu=1400.  Several are joined by commas.
    """


@command.command(name="list")
@click.argument("runs", nargs=-1, metavar="[RUNS...]")
@options.of_group("site_name")
@options.as_json
def list_(runs: tuple[str, ...], site_name: str | None, as_json: bool) -> None:
    """List RUNS, all by default: verdicts, labels, and what changed before each.

    The verdicts are those of the legs that left records; what a run should have measured and did
    not is in its own table only (fabricproof run).

    Exit status: 0; 2 RUNS mean nothing; 6 no such run; 65 damaged records; 66 no run there.
    """
    store = _store(site_name)
    asked = set(runs_of(runs, site_of(site_name))) if runs else None
    shown = [run for run in store.runs if asked is None or run.run_id in asked]
    changes = _changes(store.runs, Machines.of_site(perflogs(), store.site))
    records = [_record(run, store, changes[run.run_id]) for run in shown]
    if as_json:
        click.echo(
            json.dumps({"site": store.site, "runs": records, "notes": store.notes}, indent=2)
        )
        return
    _print(store, records)


@command.command(name="label")
@click.argument("words", nargs=-1, required=True, metavar="RUNS... NAME")
@click.option("--remove", is_flag=True, help="Take the name away instead.")
@options.of_group("site_name")
def label(words: tuple[str, ...], remove: bool, site_name: str | None) -> None:
    r"""Give runs a name that a comparison can use; a name may have many runs.

    \b
    fabricproof runs label latest after-swap
    fabricproof compare before-swap after-swap

    Exit status: 0; 2 RUNS mean nothing; 6 no such run; 65 a name that could be read as a date or a
    run; 66 no run there; 74 not written.
    """
    *asked, name = words
    if not asked:
        raise click.UsageError("expected RUNS... NAME, got one word; list runs: fabricproof runs")
    if not remove:
        require_label(name)
    store = _store(site_name)
    ids = runs_of(asked, site_of(site_name))
    changed = set_label(perflogs(), store.site, ids, name, given=not remove)
    has = store.labels.get(name, ())
    count = len(set(has) - set(ids)) if remove else len({*has, *ids})
    click.echo(
        f"{name}: {len(changed)} {'removed' if remove else 'added'}, "
        f"{count} {'run has' if count == 1 else 'runs have'} it now"
    )


@command.command(name="import")
@click.argument("reports", nargs=-1, required=True, metavar="REPORT...", type=click.Path())
@options.of_group("site_name")
def import_(reports: tuple[str, ...], site_name: str | None) -> None:
    r"""Read runs of ReFrame from before fabricproof, or without it: its reports (--report-file).

    \b
    fabricproof runs import ~/.reframe/reports/run-report-*.json

    Their numbers are shown and compared, and are UNJUDGED: no path of theirs was proven.

    Exit status: 0; 65 no report of ReFrame, or one without a number; 66 no such
    file; 74 not written.
    """
    name = site_of(site_name).name
    has_records = bool(record_files(perflogs() / name))
    there = {run.run_id for run in open_store(perflogs(), name).runs} if has_records else set()
    read = [(each, *read_reframe_report(Path(each))) for each in reports]
    for source, run_id, records in read:
        if run_id in there:
            click.echo(f"{source}: run {run_id} is there already")
            continue
        for partition, mine in by_key((each["partition"], each) for each in records).items():
            path = record_file(perflogs() / name / partition, run_id)
            append_records(path, [{**each, "site": name} for each in mine])
        there.add(run_id)
        num = sum(each["kind"] == "quantity" for each in records)
        click.echo(f"{source}: run {run_id}, {counted(num, 'number')}")


def _store(site_name: str | None) -> Store:
    return open_store(perflogs(), site_of(site_name).name)


def _changes(runs: Sequence[Run], machines: Machines) -> dict[str, list[dict[str, Any]]]:
    """Return run -> what is not as it last was before: fields of nodes, builds of stacks."""
    nodes: dict[str, str] = {}
    builds: dict[str, str] = {}
    changes: dict[str, list[dict[str, Any]]] = {}
    for run in runs:
        found, lost = machines.changed(nodes, dict(sorted(run.inventory.items())))
        fields: dict[str, set[str]] = {}
        for each, where in found.items():
            fields.setdefault(f"{each.part} {name_of(each.fact)}".strip(), set()).update(where)
        if lost:
            fields["something: a kept inventory is gone"] = set(lost)
        changed = [{"field": name, "nodes": sorted(where)} for name, where in fields.items()]
        changed += [
            {"field": f"build of {stack}", "nodes": []}
            for stack, *_ in changed_builds(builds, run.builds)
        ]
        nodes |= last_known([run.inventory])
        builds |= last_known([run.builds])
        changes[run.run_id] = changed
    return changes


def _record(run: Run, store: Store, changed: list[dict[str, Any]]) -> dict[str, Any]:
    words = [verdict.value for verdict in BADNESS]
    legs = {word: run.legs[word] for word in words if word in run.legs}
    return {
        "run_id": run.run_id,
        "start": stamp(run.start),
        "labels": labels_of(store.labels, run.run_id),
        "quantities": run.rows,
        "worst": worst([Verdict(word) for word in legs]).value if legs else None,
        "legs": legs,
        "changed": changed,
        "stacks": dict(run.builds),
        "nodes": sorted(run.inventory),
    }


def _print(store: Store, records: Sequence[Mapping[str, Any]]) -> None:
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="bold")
    for name in ("run", "start (UTC)", "label", "quantities", "legs", "stacks", "changed before"):
        table.add_column(
            name,
            justify="right" if name == "quantities" else "left",
            no_wrap=name in {"run", "start (UTC)"},
        )
    for each in records:
        table.add_row(
            each["run_id"],
            each["start"].replace("T", " ")[:16],
            ", ".join(each["labels"]),
            str(each["quantities"]),
            ", ".join(f"{count} {word}" for word, count in each["legs"].items()) or "unknown",
            ", ".join(sorted(each["stacks"])),
            "; ".join(_told(each["changed"])),
        )
    width = None if sys.stdout.isatty() else 200
    console = HonestConsole(width=width, soft_wrap=not sys.stdout.isatty(), highlight=False)
    console.print(table)
    total = len(store.runs)
    click.echo(f"{len(records)} of {total} runs of {store.site}")
    for note in store.notes:
        click.echo(f"note: {note}")


def _told(changed: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    for each in changed[:_NAMED_CHANGES]:
        nodes = each["nodes"]
        yield each["field"] + (f" on {first_few(nodes, 3)}" if nodes else "")
    if len(changed) > _NAMED_CHANGES:
        yield f"and {len(changed) - _NAMED_CHANGES} more fields"
