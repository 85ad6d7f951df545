"""``fabricproof runs``: which runs there are, what changed between them, and names for them."""

from __future__ import annotations

import datetime
import json
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import click
from rich.table import Table

from fabricproof.cli.console import HonestConsole
from fabricproof.core.errors import FabricproofError, InputMissingError
from fabricproof.core.measure import BADNESS
from fabricproof.history.store import Run, Store, open_store
from fabricproof.history.store.labels import labels_of, require_label, set_label
from fabricproof.job.run.start import workplace
from fabricproof.nodes.inventory.compare import compare
from fabricproof.nodes.inventory.store import FOLDER, read_kept
from fabricproof.nodes.inventory.words import name_of
from fabricproof.site import load_site
from fabricproof.site.load import choose_site, project_root

_SITE = click.option("--site", "site_name", metavar="S", help="Site (default: of this host).")
_JSON = click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")

#: changes that are named in the table; --json has all
_NAMED_CHANGES = 3


@click.group(name="runs", invoke_without_command=True)
@_SITE
@click.option("--since", metavar="DATE", help="Only runs from this day or time (UTC) on.")
@click.option("--until", metavar="DATE", help="Only runs up to the end of this day, or time (UTC).")
@click.option("--last", type=click.IntRange(min=1), metavar="N", help="Only the last N of them.")
@_JSON
@click.pass_context
def command(
    ctx: click.Context,
    site_name: str | None,
    since: str | None,
    until: str | None,
    last: int | None,
    as_json: bool,
) -> None:
    r"""Show the runs of a site, oldest first, with what changed on the nodes before each.

    The verdicts are those of the legs that left records; what a run should have measured and did
    not is in its own table only (fabricproof run).

    \b
    fabricproof runs
    fabricproof runs --since 2026-11-01 --last 10
    fabricproof runs label 20261121T213422Z-1a6c68 before-swap
    fabricproof runs label --remove 20261121T213422Z-1a6c68 before-swap

    Exit status: 0; 2 a date that is none; 65 damaged records; 66 no run there.
    """
    if ctx.invoked_subcommand is not None:
        return
    store, folder = _store(site_name)
    first, end = _moment(since, "--since"), _moment(until, "--until", is_end=True)
    shown = [
        run
        for run in store.runs
        if (first is None or run.start >= first) and (end is None or run.start < end)
    ]
    shown = shown[-last:] if last else shown
    changes = _changes(store.runs, folder)
    records = [_record(run, store, changes[run.run_id]) for run in shown]
    if as_json:
        click.echo(
            json.dumps({"site": store.site, "runs": records, "notes": store.notes}, indent=2)
        )
        return
    _print(store, records)


@command.command(name="label")
@click.argument("words", nargs=-1, required=True, metavar="RUN... NAME")
@click.option("--remove", is_flag=True, help="Take the name away instead.")
@_SITE
def label(words: tuple[str, ...], remove: bool, site_name: str | None) -> None:
    r"""Give runs a name that a comparison can use; a name may have many runs.

    RUN is the identity of a run, a beginning of it that only one has, or latest.

    \b
    fabricproof runs label latest after-swap
    fabricproof compare before-swap after-swap

    Exit status: 0; 65 a name that could be read as a date or a run; 66 no such run; 74 not written.
    """
    *asked, name = words
    if not asked:
        raise click.UsageError("expected RUN... NAME, got one word; list runs: fabricproof runs")
    if not remove:
        require_label(name)
    store, folder = _store(site_name)
    ids = [_find(each, store) for each in asked]
    changed = set_label(folder.parent, store.site, ids, name, given=not remove)
    has = store.labels.get(name, ())
    count = len(set(has) - set(ids)) if remove else len({*has, *ids})
    click.echo(
        f"{name}: {len(changed)} {'removed' if remove else 'added'}, "
        f"{count} {'run has' if count == 1 else 'runs have'} it now"
    )


def _store(site_name: str | None) -> tuple[Store, Path]:
    """Return the history of a site and its folder."""
    site = load_site(site_name) if site_name else choose_site()
    perflogs = workplace(project_root()).perflogs
    return open_store(perflogs, site.name), perflogs / site.name


def _moment(text: str | None, option: str, *, is_end: bool = False) -> datetime.datetime | None:
    """Return a moment in UTC; of a day its beginning, or as an end the beginning of the next."""
    if text is None:
        return None
    try:
        moment = datetime.datetime.fromisoformat(text)
    except ValueError:
        raise click.BadParameter(
            f"expected a day or a time such as 2026-11-01 or 2026-11-01T12:00, got {text!r}",
            param_hint=option,
        ) from None
    if is_end and len(text) <= len("2026-11-01"):
        if moment.date() == datetime.date.max:
            # The last day there is has no next one; all runs are before its end.
            moment = datetime.datetime.max
        else:
            moment += datetime.timedelta(days=1)
    return moment.replace(tzinfo=moment.tzinfo or datetime.UTC)


def _find(words: str, store: Store) -> str:
    """Return the run that somebody means."""
    if words == "latest":
        return store.runs[-1].run_id
    found = [each.run_id for each in store.runs if each.run_id.startswith(words)]
    if words in found or len(found) == 1:
        return words if words in found else found[0]
    known = ", ".join(found[:5] or [each.run_id for each in store.runs[-5:]])
    raise InputMissingError(
        f"{len(found) or 'no'} runs begin with {words!r}",
        expected=f"one run, such as {known}",
        next_step=f"fabricproof runs --site {store.site}",
    )


def _changes(runs: Sequence[Run], folder: Path) -> dict[str, list[dict[str, Any]]]:
    """Return run -> what is not as it last was before: fields of nodes, builds of stacks."""
    differing = _comparer(folder / FOLDER)
    nodes: dict[str, str] = {}
    builds: dict[str, str] = {}
    changes: dict[str, list[dict[str, Any]]] = {}
    for run in runs:
        fields: dict[str, list[str]] = {}
        for node, digest in sorted(run.inventory.items()):
            if digest is None:
                continue
            before = nodes.get(node, digest)
            for name in differing(node, before, digest) if before != digest else ():
                fields.setdefault(name, []).append(node)
            nodes[node] = digest
        changed = [{"field": name, "nodes": where} for name, where in fields.items()]
        changed += [
            {"field": f"build of {stack}", "nodes": []}
            for stack, build in sorted(run.builds.items())
            if builds.get(stack, build) != build
        ]
        builds |= run.builds
        changes[run.run_id] = changed
    return changes


def _comparer(folder: Path) -> Callable[[str, str, str], tuple[str, ...]]:
    """Return what names the fields in which two states of a node differ."""

    @cache
    def names(node: str, before: str, now: str) -> tuple[str, ...]:
        try:
            found = compare(read_kept(folder, node, before), read_kept(folder, node, now))
        except FabricproofError:
            return ("something: a kept inventory is gone",)
        return tuple(dict.fromkeys(f"{each.part} {name_of(each.fact)}".strip() for each in found))

    return names


def _record(run: Run, store: Store, changed: list[dict[str, Any]]) -> dict[str, Any]:

    words = [verdict.value for verdict in BADNESS]
    legs = {word: run.legs[word] for word in words if word in run.legs}
    return {
        "run_id": run.run_id,
        "start": run.start.strftime("%Y-%m-%dT%H:%M:%SZ"),
        "labels": labels_of(store.labels, run.run_id),
        "quantities": run.rows,
        "worst": next(iter(legs), None),
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
        where = f" on {', '.join(nodes[:3])}" if nodes else ""
        yield each["field"] + where + (f" and {len(nodes) - 3} more" if len(nodes) > 3 else "")
    if len(changed) > _NAMED_CHANGES:
        yield f"and {len(changed) - _NAMED_CHANGES} more fields"
