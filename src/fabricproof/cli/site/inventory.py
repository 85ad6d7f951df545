"""``fabricproof inventory``: what each node was made of, and what differs."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from fabricproof.cli import options
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
    if as_json:
        click.echo(json.dumps({"site": name, "nodes": records}, indent=2))
        return
    for line in _shown(records):
        click.echo(line)


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
    index = index_of(folder, name)
    site = site_of(site_name)
    sides = _choose(index, first, site)[0], _choose(index, second, site)[0]
    pairs = [_compared(folder, *sides, *pair) for pair in _pairs(*sides)]
    if as_json:
        record = {"site": name, "first": first, "second": second, "pairs": pairs}
        click.echo(json.dumps(record, indent=2))
        return
    for line in _told(pairs):
        click.echo(line)


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
    index = index_of(folder, name)
    site = site_of(site_name)
    chosen = [_choose(index, each, site) for each in words or [""]]
    runs = {run_id for _, run_id in chosen}
    seen = {node: each for some, _ in chosen for node, each in some.seen.items()}
    return seen, runs.pop() if len(runs) == 1 else ""


def _choose(index: Sequence[StateSeen], words: str, site: Site) -> tuple[InventoryChoice, str]:
    """Return what ``words`` name, and the run in them; a date is a state and no run."""
    node, _, when = words.rpartition("@")
    if is_run(when):
        return choose(index, words, site.name), when
    if not when or is_when(when) or (not node and any(each.node == when for each in index)):
        return choose(index, words, site.name), ""
    try:
        run_id = one_run(when, site)
    except FabricproofError:
        # Neither node nor run, or the beginning of a digest: refused, or found, as such.
        return choose(index, words, site.name), ""
    return choose(index, f"{node}@{run_id}" if node else run_id, site.name), run_id


def index_of(folder: Path, site: str) -> list[StateSeen]:
    """Return who saw which node when, oldest first; refuse where nobody looked."""
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
    records, _ = read_run(record_files(folder.parent, run_id), run_id)
    bound = {
        (each["node"], each["rank"], each["cpus"])
        for record in records
        if record.get("kind") == "environment"
        for each in record["environment"]["ranks"]
    }
    found: dict[str, dict[str, Any]] = {}
    for node, rank, cpus in sorted(bound):
        digest = seen[node].digest if node in seen else None
        if digest is not None:
            far = distances(read_kept(folder, node, digest), cpus)
            said = [f"{each.part} on {each.place}" for each in far]
            found.setdefault(node, {})[f"rank {rank} on CPUs {cpus}"] = said
    return found


def machine_of(folder: Path, seen: StateSeen) -> Machine | None:
    """Return what was seen; None where nothing was."""
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
        first = alike[0]
        names = fold(each["node"] for each in alike)
        words = f"{names}: {len(alike)} alike; shown is {first['node']}" * (len(alike) > 1)
        yield f"{words or names}, seen {first['time']} in run {first['run_id']}"
        yield from _facts(first["facts"])
        for each in alike:
            yield from _beside(each, f" ({each['node']})" if len(alike) > 1 else "")
        yield from _once(alike)


def _facts(facts: dict[str, dict[str, Any]]) -> Iterator[str]:
    for part, values in facts.items():
        yield f"  {part}"
        for fact, value in values.items():
            yield f"    {name_of(fact):<{_NAME_WIDTH}}{shown(fact, value)}"


def _beside(record: dict[str, Any], whose: str) -> Iterator[str]:
    for rank, far in record.get("ranks", {}).items():
        yield f"  {rank}{whose}: {'; '.join(far) or 'one NUMA node, or not known'}"


def _once(alike: list[dict[str, Any]]) -> Iterator[str]:
    """Yield what is below its best and what is unknown, said of several nodes once."""
    for key, words in (("notes", "less than it could"), ("unknown", "unknown")):
        of = by_key(
            (each if key == "unknown" else each["text"], record["node"])
            for record in alike
            for each in record[key]
        )
        for sentence, nodes in of.items():
            whose = f" ({fold(nodes)})" * (len(nodes) < len(alike))
            yield f"  {words}{whose}: {sentence}"


def _pairs(first: InventoryChoice, second: InventoryChoice) -> list[tuple[str, str]]:
    """Return the nodes to compare: the two that were named, else each with itself."""
    if first.node and second.node:
        return [(first.node, second.node)]
    named = first.node or second.node
    nodes = {named} if named else {*first.seen, *second.seen}
    return [(node, node) for node in sorted(nodes)]


def _compared(
    folder: Path, first: InventoryChoice, second: InventoryChoice, here: str, there: str
) -> dict[str, Any]:
    lines = first.seen.get(here), second.seen.get(there)
    machines = [machine_of(folder, each) if each else None for each in lines]
    sides = (first.words, second.words) if here == there else (here, there)
    record: dict[str, Any] = {
        "first": {"node": here, "words": sides[0], **(asdict(lines[0]) if lines[0] else {})},
        "second": {"node": there, "words": sides[1], **(asdict(lines[1]) if lines[1] else {})},
        "differences": [],
        "unknown": [],
    }
    if machines[0] is None or machines[1] is None:
        record["unknown"] = [
            f"{node} on {side}: {line.reason if line else 'nobody looked at it'}"
            for node, side, line, machine in zip((here, there), sides, lines, machines, strict=True)
            if machine is None
        ]
        return record
    one, other = machines[0], machines[1]
    record["differences"] = [asdict(each) for each in compare(one, other, sides)]
    record["unknown"] = [
        *(f"on {sides[0]}: {each}" for each in one.unknown if each not in other.unknown),
        *(f"on {sides[1]}: {each}" for each in other.unknown if each not in one.unknown),
    ]
    return record


def _told(pairs: list[dict[str, Any]]) -> Iterator[str]:
    same = [each["first"]["node"] for each in pairs if not each["differences"] + each["unknown"]]
    for pair in pairs:
        count = len(pair["differences"])
        if not count and not pair["unknown"]:
            continue
        head = f"{_side(pair['first'])} against {_side(pair['second'])}"
        yield f"{head}: {count} difference{'s' * (count != 1)}"
        yield from (f"  {each['sentence']}" for each in pair["differences"])
        yield from (f"  unknown {each}" for each in pair["unknown"])
    if len(pairs) == 1 and same:
        yield f"{_side(pairs[0]['first'])} against {_side(pairs[0]['second'])}: no difference"
    elif same:
        yield f"no difference: {', '.join(same)}"


def _side(side: dict[str, Any]) -> str:
    words = side["node"] if side["node"] in side["words"] else f"{side['node']} in {side['words']}"
    return f"{words} (seen {side['time']})" if "time" in side else words
