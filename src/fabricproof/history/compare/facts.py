"""What the nodes of two sides were made of, and the environments that their legs ran in."""

from __future__ import annotations

import contextlib
import re
import zlib
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from fabricproof.core.errors import ParseError
from fabricproof.core.measure import FindingKind
from fabricproof.core.provenance import BINARY_KEY, SHOWN_DIGITS
from fabricproof.core.records import findings_of, open_lines, parse_json
from fabricproof.history.compare.model import FieldChange, Side
from fabricproof.history.store import Run, Store
from fabricproof.nodes.inventory.differences import Difference, compare
from fabricproof.nodes.inventory.facts import Machine, Value
from fabricproof.nodes.inventory.store import FOLDER, StateSeen, read_index, read_kept
from fabricproof.nodes.inventory.words import name_of
from fabricproof.verdict.baseline import Facts, that_matter

#: ``[NODE:][PART.]FACT=VALUE``; an interface or a port stands for its part
_ASKED = re.compile(
    r"(?:(?P<node>[^:=]+):)?(?:(?P<part>[^=]+)\.)?(?P<fact>[A-Za-z]\w*)=(?P<value>.+)"
)

#: units that the names of facts end with; ``speed`` asks for ``speed_mbit_s``
_UNITS = ("_mbit_s", "_gbit_s", "_bytes")


@dataclass(frozen=True, kw_only=True)
class AskedFact:
    """A value of the inventory that a run is chosen by.

    Attributes:
        node: only there; empty: on every node that took part.
        part: ``rail1``, ``node``, ``mlx5_0:1``; empty: on any part of the node.
        fact: name in the record, or in words, with or without its unit.
        value: as a person writes it; ``28.39`` also stands for ``28.39.1002``.
    """

    node: str
    part: str
    fact: str
    value: str

    @classmethod
    def of(cls, text: str) -> AskedFact | None:
        """Return what ``rail1.speed=100`` or ``vc2:mtu=1400`` asks for; None for other text."""
        match = _ASKED.fullmatch(text)
        if match is None:
            return None
        return cls(**{name: value or "" for name, value in match.groupdict().items()})

    def values(self, machine: Machine) -> set[str]:
        """Return the values that the node has of this fact, as they are shown."""
        return {
            str(value)
            for part, facts in machine.facts.items()
            if self._is_part(part)
            for fact, value in facts.items()
            if is_fact(self.fact, fact)
        }

    def _is_part(self, part: str) -> bool:
        return not self.part or self.part == part or self.part == part.partition(" ")[2]


def is_fact(asked: str, fact: str) -> bool:
    """Tell whether ``asked`` is a name of ``fact``: its own, without its unit, or in words."""
    plain = fact
    for unit in _UNITS:
        plain = plain.removesuffix(unit)
    words = name_of(fact).casefold().replace(" ", "_")
    return asked.casefold() in {fact, plain, words}


def is_value(asked: str, value: Value | str) -> bool:
    """Tell whether a value is the one asked for, or begins with it at a point of its version."""
    text, asked = str(value).casefold(), asked.casefold()
    if text == asked or re.match(re.escape(asked) + r"[. ,(-]", text):
        return True
    try:
        return text.isdecimal() and int(text) == float(asked)
    except ValueError:
        return False


@dataclass(frozen=True, kw_only=True)
class Machines:
    """Inventories by node and digest, each read once.

    Attributes:
        folder: of the site's inventories.
        notes: of those that could not be read.
    """

    folder: Path
    notes: list[str] = field(default_factory=list)
    _kept: dict[tuple[str, str], Machine | ParseError] = field(default_factory=dict)
    _facts: dict[tuple[str, str], Facts] = field(default_factory=dict)

    @classmethod
    def of_site(cls, perflogs: Path, site: str) -> Machines:
        """Return those that a site keeps below its perflogs."""
        return cls(folder=perflogs / site / FOLDER)

    def get(self, node: str, digest: str | None) -> Machine | None:
        """Return the machine; None where nobody saw it or its file cannot be read."""
        if not digest:
            return None
        found = self._read(node, digest)
        return None if isinstance(found, ParseError) else found

    def _read(self, node: str, digest: str) -> Machine | ParseError:
        if (node, digest) not in self._kept:
            try:
                self._kept[node, digest] = read_kept(self.folder, node, digest)
            except ParseError as error:
                self.notes.append(str(error))
                self._kept[node, digest] = error
        return self._kept[node, digest]

    def of(self, run: Run) -> dict[str, Machine | None]:
        """Return node -> what it was in this run; None where that is not known."""
        return {node: self.get(node, digest) for node, digest in run.inventory.items()}

    def facts(self, node: str, digest: str | None) -> Facts | None:
        """Return the facts that a baseline rests on; None as for :meth:`get`."""
        machine = self.get(node, digest)
        if machine is None or digest is None:
            return None
        if (node, digest) not in self._facts:
            self._facts[node, digest] = that_matter(machine.facts)
        return self._facts[node, digest]

    def changed(
        self, before: Mapping[str, str], now: Mapping[str, str | None]
    ) -> tuple[dict[Difference, list[str]], dict[str, str]]:
        """Return each fact that is another now, with its nodes; and why of some that is not known.

        Of a node that nobody saw at both times nothing is said.

        Args:
            before: node to what it was made of, as :func:`last_known` has it.
            now: node to what it is made of.
        """
        found: dict[Difference, list[str]] = {}
        lost: dict[str, str] = {}
        for node, digest in now.items():
            was = before.get(node)
            if not was or not digest or was == digest:
                continue
            first, second = self._read(node, was), self._read(node, digest)
            if isinstance(first, ParseError) or isinstance(second, ParseError):
                lost[node] = str(first if isinstance(first, ParseError) else second)
                continue
            for each in compare(first, second, ("before", "now")):
                # The sides are two times, and not two machines.
                sentence = each.sentence.replace(" on before", " before").replace(" on now", " now")
                found.setdefault(replace(each, sentence=sentence), []).append(node)
        return found, lost

    def newest(self) -> dict[str, StateSeen]:
        """Return node to the last line of the index in which it was seen."""
        return {each.node: each for each in read_index(self.folder) if each.digest is not None}


def last_known(several: Iterable[Mapping[str, str | None]]) -> dict[str, str]:
    """Return each name with the last of its digests, of nodes or of builds, that is known."""
    return {name: digest for each in several for name, digest in each.items() if digest}


def changed_builds(
    before: Mapping[str, str], now: Mapping[str, str]
) -> Iterator[tuple[str, str, str]]:
    """Yield each stack that was built anew, with the digests of both builds."""
    for stack in sorted(now):
        was = before.get(stack, "")
        if was and now[stack] and was != now[stack]:
            yield stack, was, now[stack]


@dataclass(frozen=True, kw_only=True)
class Having:
    """Which runs have a value of the inventory.

    Attributes:
        runs: every node that took part has it, oldest first.
        mixed: some nodes have it and others another value, or do not say; run to why.
        unseen: runs that nobody looked at the nodes of.
        known: the values that there are, with a node that has each.
    """

    runs: tuple[Run, ...]
    mixed: Mapping[str, str]
    unseen: tuple[str, ...]
    known: Mapping[str, str]


def runs_having(asked: AskedFact, runs: Iterable[Run], machines: Machines) -> Having:
    """Return the runs whose nodes have the value that is asked for.

    A run in which only some nodes have it is on no side: its numbers are of both kinds.
    """
    having: list[Run] = []
    mixed: dict[str, str] = {}
    unseen: list[str] = []
    known: dict[str, str] = {}
    for run in runs:
        told = dict(_values(asked, machines.of(run)))
        for node, values in told.items():
            for value in values or ():
                known.setdefault(value, node)
        has = {node: _has(asked, values) for node, values in told.items() if values is not None}
        if not told or not has:
            unseen.append(run.run_id)
        elif all(has.values()) and len(has) == len(told):
            having.append(run)
        elif any(has.values()):
            mixed[run.run_id] = _mixture(told)
    return Having(runs=tuple(having), mixed=mixed, unseen=tuple(unseen), known=known)


def _values(
    asked: AskedFact, machines: Mapping[str, Machine | None]
) -> Iterator[tuple[str, set[str] | None]]:
    for node, machine in machines.items():
        if not asked.node or asked.node == node:
            yield node, None if machine is None else asked.values(machine) or None


def _has(asked: AskedFact, values: set[str]) -> bool:
    return any(is_value(asked.value, each) for each in values)


def _mixture(told: Mapping[str, set[str] | None]) -> str:
    return "; ".join(
        f"{node} {' and '.join(sorted(values)) if values else 'not known'}"
        for node, values in sorted(told.items())
    )


#: digest -> what the leg's environment was, flat
Environments = Mapping[str, Mapping[str, str]]

#: where a leg ran: numbers are compared within one only
_HOME = ("stack", "check", "program", "leg")

#: and what in
_ENVIRONMENT = ("environment_digest", "file")

#: a file of records that was put aside meanwhile, or one that is packed and was cut
_UNREADABLE = (OSError, EOFError, zlib.error)

#: of what a rank says of itself; what nodes are made of is the inventory's
_OF_RANKS = {"cpus": "cpus of the ranks", "library": "library of the ranks"}
_SAID_BY_RANKS = frozenset(_OF_RANKS.values())

#: what a rank's record has where nobody saw it: its program ended before
_UNSEEN = "unknown"


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
        store.samples([each.run_id for each in side.runs], ("counts", *_ENVIRONMENT))
        .filter(pl.col("counts") & (pl.col("environment_digest") != ""))
        .select(*_HOME, *_ENVIRONMENT)
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
            with open_lines(Path(name)) as file:
                for line in file:
                    if b'"kind": "environment"' in line and (record := _record(line)) is not None:
                        digest = str(record.get("environment_digest"))
                        if digest in wanted and digest not in found:
                            found[digest] = _flat(record.get("environment") or {})
        except _UNREADABLE as error:
            why = getattr(error, "strerror", None) or error
            notes.append(f"environments not compared: {name}: {why}")
    return found, notes


#: what the kernel of all pairs is called beside the programs of suites
_KERNEL = "kernel of all pairs"

#: the run of a line, so that those of other runs need not be parsed
_RUN = re.compile(rb'"run_id": "([^"]*)"')

#: partition and stack
_Place = tuple[str, str]

#: program -> where it ran -> the digests of its files
Binaries = Mapping[str, Mapping[_Place, frozenset[str]]]


def binary_sentences(store: Store, first: Side, second: Side) -> tuple[str, ...]:
    """Return whether what measured was one binary on both sides.

    Of each stack of a partition where both sides have the program's digest, or of all together
    where there is none.  The kernel of all pairs is always told of; programs of suites where they
    differ, and where the sides ran them on no stack in common.  Nothing is said of what has no
    digest on a side: no check ran it, its records are older, or it is in an image.
    """
    here, there = _binaries(store, (first, second))
    told: dict[tuple[frozenset[str], frozenset[str]], dict[str, set[str]]] = {}
    for program in here.keys() & there.keys():
        old, new = here[program], there[program]
        names = _names_of({*old, *new})
        common = old.keys() & new.keys()
        groups = [{place} for place in common] or [{*old, *new}]
        for group in groups:
            sides = _joined_up(old, group), _joined_up(new, group)
            if program == _KERNEL or not common or sides[0] != sides[1]:
                found = told.setdefault(sides, {}).setdefault(program, set())
                found.update(names[each] for each in group)
    sentences = [
        (program, sorted(stacks), *sides)
        for sides, programs in told.items()
        for program, stacks in programs.items()
    ]
    ordered = sorted(sentences, key=lambda each: each[:2])
    return tuple(_binary_sentence(*each) for each in ordered)


def _names_of(places: Collection[_Place]) -> dict[_Place, str]:
    """Return what each place is called: its stack, with the partition where it has several."""
    several = Counter(stack for _, stack in places)
    return {
        (partition, stack): f"{stack} on {partition}" if several[stack] > 1 else stack
        for partition, stack in places
    }


def _joined_up(side: Mapping[_Place, frozenset[str]], places: Iterable[_Place]) -> frozenset[str]:
    return frozenset().union(*(side.get(place, frozenset()) for place in places))


def _binary_sentence(
    program: str, stacks: Iterable[str], old: frozenset[str], new: frozenset[str]
) -> str:
    of = f"{program} ({', '.join(stacks)})"
    if old == new:
        same = "same binary" if len(old) == 1 else "the same binaries"
        return f"{of}: {same}, SHA-256 {_shown(old)}"
    return f"{of}: not the same binary, SHA-256 {_shown(old)} before, {_shown(new)} after"


def _shown(digests: Iterable[str]) -> str:
    return " and ".join(sorted(each[:SHOWN_DIGITS] for each in digests))


def _binaries(store: Store, sides: Sequence[Side]) -> Sequence[Binaries]:
    """Return which files of each program each side ran, by partition and stack."""
    runs = [{each.run_id for each in side.runs} for side in sides]
    found: list[dict[str, dict[_Place, frozenset[str]]]] = [{} for _ in sides]
    for path in store.files(set().union(*runs)):
        # A file that cannot be read is told of by environment_changes.
        with contextlib.suppress(*_UNREADABLE):
            for record in _legs_of(path, set().union(*runs)):
                place = (str(record.get("partition")), str(record.get("stack")))
                for side, ids, programs in zip(sides, runs, found, strict=True):
                    if record.get("run_id") in ids and side.stack in {"", place[1]}:
                        for program, digest in _files_of(record):
                            mine = programs.setdefault(program, {})
                            mine[place] = mine.get(place, frozenset()) | {digest}
    return found


def _legs_of(path: Path, runs: Iterable[str]) -> Iterator[Mapping[str, Any]]:
    """Yield the records of legs of a file that name one of these runs."""
    named = {each.encode() for each in runs}
    with open_lines(path) as file:
        for line in file:
            if b'"kind": "leg"' in line and not named.isdisjoint(_RUN.findall(line)):
                yield _record(line) or {}


def _files_of(record: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield what a leg ran, and the digest of its file."""
    for each in findings_of(record):
        if each.kind is FindingKind.KERNEL and each.fact:
            yield _KERNEL, each.fact
    if isinstance(digest := record.get(BINARY_KEY), str) and digest:
        yield f"{record.get('suite')} {record.get('program')}", digest


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
        told = [str(rank[fact]) for rank in ranks if rank.get(fact, _UNSEEN) not in {_UNSEEN, ""}]
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
