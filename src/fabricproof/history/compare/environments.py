"""What differs between the environments that the legs of two sides ran in."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from fabricproof.core.records import parse_json
from fabricproof.history.compare.model import FieldChange, Side
from fabricproof.history.store import Store

#: digest -> what the leg's environment was, flat
Environments = Mapping[str, Mapping[str, str]]

#: where a leg ran: numbers are compared within one only
_HOME = ("stack", "check", "program", "leg")

#: of what a rank says of itself; what nodes are made of is the inventory's
_OF_RANKS = {"cpus": "cpus of the ranks", "library": "library of the ranks"}
_SAID_BY_RANKS = frozenset(_OF_RANKS.values())


def environment_changes(
    store: Store, first: Side, second: Side
) -> tuple[tuple[FieldChange, ...], tuple[str, ...]]:
    """Return the variables and bindings that differ, and what could not be read.

    Only legs that both sides have are looked at, and of the records only those whose digest says
    that something differs.
    """
    here, there = _digests(store, first), _digests(store, second)
    unlike = {home for home in here.keys() & there.keys() if here[home][0] != there[home][0]}
    wanted = {digest for home in unlike for each in (here, there) for digest in each[home][0]}
    files = {file for home in unlike for each in (here, there) for file in each[home][1]}
    read, notes = _read(sorted(files), wanted)
    changes: dict[tuple[str, str, str, str], list[str]] = {}
    partly: set[tuple[str, str, str, str]] = set()
    for home in sorted(unlike):
        old, new = _union(here[home][0], read), _union(there[home][0], read)
        for name in sorted(old.keys() | new.keys()):
            if old.get(name) != new.get(name) and not _unsaid(name, old, new):
                place = (home[0], name, _told(old.get(name)), _told(new.get(name)))
                changes.setdefault(place, []).append(f"{home[2]} {home[3]}")
                if old.get(name, {"not set"}) & new.get(name, {"not set"}):
                    partly.add(place)
    found = tuple(_change(*place, legs, partly=place in partly) for place, legs in changes.items())
    lost = len(wanted - read.keys())
    if lost:
        notes.append(f"{lost} environments of legs are no longer in the records: not compared")
    return found, tuple(notes)


def _digests(store: Store, side: Side) -> dict[tuple[str, ...], tuple[set[str], set[str]]]:
    """Return leg -> the digests of its environments, and the files that they stand in."""
    import polars as pl  # noqa: PLC0415 - start-up time

    frame = (
        store.samples([each.run_id for each in side.runs])
        .filter(pl.col("counts") & (pl.col("environment_digest") != ""))
        .select(*_HOME, "environment_digest", "file")
        .unique()
    )
    found: dict[tuple[str, ...], tuple[set[str], set[str]]] = {}
    for *home, digest, file in frame.iter_rows():
        digests, files = found.setdefault(tuple(home), (set(), set()))
        digests.add(digest)
        files.add(file)
    return found


def _read(files: Iterable[str], wanted: set[str]) -> tuple[dict[str, dict[str, str]], list[str]]:
    """Return digest -> environment from the records; each digest is read once."""
    found: dict[str, dict[str, str]] = {}
    notes: list[str] = []
    for name in files:
        try:
            with Path(name).open("rb") as file:
                for line in file:
                    if b'"kind": "environment"' in line and (record := _record(line)) is not None:
                        digest = str(record.get("environment_digest"))
                        if digest in wanted and digest not in found:
                            found[digest] = _flat(record.get("environment") or {})
        except OSError as error:
            notes.append(f"environments not compared: {name}: {error.strerror}")
    return found, notes


def _record(line: bytes) -> dict[str, Any] | None:
    try:
        record = parse_json(line)
    except ValueError:
        return None
    return record if isinstance(record, dict) else None


def _flat(environment: Mapping[str, Any]) -> dict[str, str]:
    """Return variables, library and CPUs; what the nodes are made of is the inventory's."""
    flat = {str(name): str(value) for name, value in (environment.get("variables") or {}).items()}
    ranks = environment.get("ranks") or ()
    for fact, name in _OF_RANKS.items():
        told = [str(rank[fact]) for rank in ranks if rank.get(fact)]
        if told:
            flat[name] = "; ".join(dict.fromkeys(told))
    return flat


def _union(digests: Iterable[str], read: Environments) -> dict[str, set[str]]:
    """Return name -> its values; ``not set`` where an environment lacks a variable.

    A leg that ended early says nothing of its ranks, which is no value.
    """
    several = [read[each] for each in sorted(digests) if each in read]
    found: dict[str, set[str]] = {}
    for name in {name for each in several for name in each}:
        values = {each.get(name, "not set") for each in several}
        found[name] = values - {"not set"} if name in _SAID_BY_RANKS else values
    return found


def _unsaid(name: str, old: Mapping[str, set[str]], new: Mapping[str, set[str]]) -> bool:
    """Tell whether only one side's ranks said anything: nothing is known to differ."""
    return name in _SAID_BY_RANKS and not (old.get(name) and new.get(name))


def _told(values: Iterable[str] | None) -> str:
    return ", ".join(sorted(values)) if values else "not set"


def _change(
    stack: str, name: str, old: str, new: str, legs: list[str], *, partly: bool
) -> FieldChange:
    some = ", ".join(sorted(set(legs))[:3]) + " ..." * (len(set(legs)) > 3)
    return FieldChange(
        part=f"environment {stack}",
        fact=name,
        nodes=(),
        first=old,
        second=new,
        sentence=f"environment of {stack}: {name} {old} before, {new} after ({some})",
        partly=partly,
    )
