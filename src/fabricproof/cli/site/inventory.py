"""``fabricproof inventory``: what each node was made of, and what differs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from fabricproof.cli import options
from fabricproof.cli.output import emit
from fabricproof.cli.selection import one_run, perflogs
from fabricproof.core.errors import FabricproofError, InputMissingError
from fabricproof.core.hostlist import fold
from fabricproof.core.project import site_option
from fabricproof.core.records import record_files
from fabricproof.core.units import by_key
from fabricproof.job.run import read_run
from fabricproof.nodes.inventory.differences import compare
from fabricproof.nodes.inventory.facts import Machine
from fabricproof.nodes.inventory.remarks import distances, notes
from fabricproof.nodes.inventory.store import (
    FOLDER,
    INDEX_FILE,
    InventoryChoice,
    StateSeen,
    choose,
    is_run,
    is_when,
    read_index,
    read_kept,
)
from fabricproof.nodes.inventory.words import name_of, shown
from fabricproof.site import Site, site_of

#: columns of a fact's name
_NAME_WIDTH = 26


@click.group(name="inventory", cls=options.HelpGroup)
@options.site
@options.as_json
def command(**_: object) -> None:
    """What each node of a job was made of: cards, links, slots, kernel, tuning.

    Every job looks at its nodes once before it measures, and every record names what it saw.
    Counters, temperatures and numbers of interrupts are no part of it.
    """


@command.command(name="show")
@click.argument("words", nargs=-1, metavar="[NODE|RUN|NODE@RUN...]")
@options.of_group("site_name", "as_json")
def show(words: tuple[str, ...], site_name: str | None, as_json: bool) -> None:
    r"""Show what nodes are made of, as last seen; nodes that are alike stand together.

    Of a RUN it says also how far each card is from the cores that the ranks ran on.  RUN is an
    identity or its beginning, latest, latest~1, a label, or a date (the state at its end).

    \b
    fabricproof inventory show
    fabricproof inventory show n17 n18
    fabricproof inventory show latest
    fabricproof inventory show n17@2026-11-01 --json
    """
    name, folder = place(site_name)
    seen, run_id = looks_of(words, site_name)
    near = _distances(folder, run_id, seen) if run_id else {}
    records = [_record(folder, each, near.get(node, {})) for node, each in seen.items()]
    emit({"site": name, "nodes": records}, _shown(records), as_json=as_json)


@command.command(name="diff")
@click.argument("first", metavar="A")
@click.argument("second", metavar="B")
@options.of_group("site_name", "as_json")
def diff(first: str, second: str, site_name: str | None, as_json: bool) -> None:
    r"""Say what differs between A and B, and what it may mean.

    A and B are each a node (as last seen), NODE@DATE, NODE@RUN, or a date or RUN alone for
    all nodes.  Serials and addresses count only where a node is compared with itself.

    \b
    fabricproof inventory diff n17 n18
    fabricproof inventory diff n17@2026-11-01 n17
    fabricproof inventory diff 2026-11-01 2026-11-20
    """
    name, folder = place(site_name)
    index, site = index_of(folder, name), site_of(site_name)
    one, other = (_choose(index, words, site)[0] for words in (first, second))
    nodes = [(one.node, other.node)] if one.node and other.node else []
    if not one.node or not other.node:  # each with itself
        named = one.node or other.node
        nodes = [(each, each) for each in ([named] if named else sorted({*one.seen, *other.seen}))]
    pairs = [_compared(folder, one, other, *pair) for pair in nodes]
    record = {"site": name, "first": first, "second": second, "pairs": pairs}
    emit(record, _told(pairs), as_json=as_json)


def place(site_name: str | None) -> tuple[str, Path]:
    """Return the site's name and the folder of its inventories."""
    name = site_of(site_name).name
    return name, perflogs() / name / FOLDER


def looks_of(words: Sequence[str], site_name: str | None) -> tuple[dict[str, StateSeen], str]:
    """Return node -> what is known of it by ``words``, and the one run that they name, if any.

    ``words`` are ``NODE``, ``RUN`` or ``NODE@RUN``; none for all nodes as last seen.

    Raises:
        InputMissingError: nobody has looked yet, or there is no such node or run.
    """
    name, folder = place(site_name)
    index, site = index_of(folder, name), site_of(site_name)
    chosen = [_choose(index, each, site) for each in words or [""]]
    runs = {run_id for _, run_id in chosen}
    seen = {node: each for some, _ in chosen for node, each in some.seen.items()}
    return seen, runs.pop() if len(runs) == 1 else ""


def _choose(index: Sequence[StateSeen], words: str, site: Site) -> tuple[InventoryChoice, str]:
    """Return what ``words`` name, and the run in them; a date is a state and no run."""
    node, _, when = words.rpartition("@")
    run_id = when if is_run(when) else ""
    is_node = not node and any(each.node == when for each in index)
    if when and not run_id and not is_when(when) and not is_node:
        try:
            run_id = one_run(when, site)
        except FabricproofError:
            # Neither node nor run, or the beginning of a digest: refused, or found, as such.
            return choose(index, words, site.name), ""
        words = f"{node}@{run_id}" if node else run_id
    return choose(index, words, site.name), run_id


def index_of(folder: Path, site: str) -> list[StateSeen]:
    """Return who saw which node when, oldest first; refuse if nobody looked."""
    index = read_index(folder, on_torn=lambda note: click.echo(f"fabricproof: {note}", err=True))
    if not index:
        raise InputMissingError(
            f"nobody has looked at the nodes of {site} yet",
            source=str(folder / INDEX_FILE),
            expected="a run of a check, which looks at its nodes",
            next_step=f"fabricproof run {site_option(site)}",
        )
    return index


def _distances(folder: Path, run_id: str, seen: dict[str, StateSeen]) -> dict[str, dict[str, Any]]:
    """Return node -> ``rank 0 on CPUs 0-3`` -> how far its cards are, from the records of a run."""
    records, _ = read_run(record_files(folder.parent), run_id)
    bound = {
        (each["node"], each["rank"], each["cpus"])
        for record in records
        if record.get("kind") == "environment"
        for each in record["environment"]["ranks"]
    }
    found: dict[str, dict[str, Any]] = {}
    for node, rank, cpus in sorted(bound):
        machine = machine_of(folder, seen[node]) if node in seen else None
        if machine is not None:
            said = [f"{each.part} on {each.place}" for each in distances(machine, cpus)]
            found.setdefault(node, {})[f"rank {rank} on CPUs {cpus}"] = said
    return found


def machine_of(folder: Path, seen: StateSeen) -> Machine | None:
    """Return what was seen; None if nothing was."""
    return read_kept(folder, seen.node, seen.digest) if seen.digest is not None else None


def _record(folder: Path, seen: StateSeen, near: dict[str, Any]) -> dict[str, Any]:
    machine = machine_of(folder, seen)
    if machine is None:
        return {**asdict(seen), "kind": None, "facts": {}, "unknown": [seen.reason], "notes": []}
    return {
        **asdict(seen),
        "kind": machine.kind,
        "facts": machine.facts,
        "unknown": list(machine.unknown),
        "notes": [each.record() for each in notes(machine)],
        "ranks": near,
    }


def _shown(records: list[dict[str, Any]]) -> Iterator[str]:
    groups = by_key((each["kind"] or f"unseen {each['node']}", each) for each in records)
    for alike in groups.values():
        first, several = alike[0], len(alike) > 1
        names = fold(each["node"] for each in alike)
        words = f"{names}: {len(alike)} alike; shown is {first['node']}" if several else names
        yield f"{words}, seen {first['time']} in run {first['run_id']}"
        for part, values in first["facts"].items():
            yield f"  {part}"
            for fact, value in values.items():
                yield f"    {name_of(fact):<{_NAME_WIDTH}}{shown(fact, value)}"
        for each in alike:
            whose = f" ({each['node']})" if several else ""
            for rank, far in each.get("ranks", {}).items():
                yield f"  {rank}{whose}: {'; '.join(far) or 'one NUMA node, or not known'}"
        # what is below its best and what is unknown, said of several nodes once
        for key, words in (("notes", "less than it could"), ("unknown", "unknown")):
            of = by_key(
                (each if key == "unknown" else each["text"], record["node"])
                for record in alike
                for each in record[key]
            )
            for sentence, nodes in of.items():
                whose = f" ({fold(nodes)})" if len(nodes) < len(alike) else ""
                yield f"  {words}{whose}: {sentence}"


def _compared(
    folder: Path, first: InventoryChoice, second: InventoryChoice, here: str, there: str
) -> dict[str, Any]:
    lines = first.seen.get(here), second.seen.get(there)
    one, other = (machine_of(folder, each) if each else None for each in lines)
    names = (here, there)
    sides = (first.words, second.words) if here == there else names
    record: dict[str, Any] = {
        key: {"node": node, "words": side, **(asdict(line) if line else {})}
        for key, node, side, line in zip(("first", "second"), names, sides, lines, strict=True)
    }
    if one is None or other is None:
        unknown = [
            f"{node} on {side}: {line.reason if line else 'nobody looked at it'}"
            for node, side, line, machine in zip(names, sides, lines, (one, other), strict=True)
            if machine is None
        ]
        return {**record, "differences": [], "unknown": unknown}
    return {
        **record,
        "differences": [asdict(each) for each in compare(one, other, sides)],
        "unknown": [
            *(f"on {sides[0]}: {each}" for each in one.unknown if each not in other.unknown),
            *(f"on {sides[1]}: {each}" for each in other.unknown if each not in one.unknown),
        ],
    }


def _told(pairs: list[dict[str, Any]]) -> Iterator[str]:
    same = []
    for pair in pairs:
        count, head = (
            len(pair["differences"]),
            " against ".join(_side(pair[key]) for key in ("first", "second")),
        )
        if not count and not pair["unknown"]:
            same.append(pair["first"]["node"] if len(pairs) > 1 else head)
            continue
        yield f"{head}: {count} difference{'s' * (count != 1)}"
        yield from (f"  {each['sentence']}" for each in pair["differences"])
        yield from (f"  unknown {each}" for each in pair["unknown"])
    if same:
        yield f"no difference: {', '.join(same)}" if len(pairs) > 1 else f"{same[0]}: no difference"


def _side(side: dict[str, Any]) -> str:
    words = side["node"] if side["node"] in side["words"] else f"{side['node']} in {side['words']}"
    return f"{words} (seen {side['time']})" if "time" in side else words
