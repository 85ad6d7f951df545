"""What the nodes of runs were made of."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from fabricproof.core.errors import ParseError
from fabricproof.history.store import Run
from fabricproof.nodes.inventory.changed import Facts, lasting
from fabricproof.nodes.inventory.differences import Difference, compare
from fabricproof.nodes.inventory.facts import Machine, Value
from fabricproof.nodes.inventory.store import FOLDER, StateSeen, read_index, read_kept
from fabricproof.nodes.inventory.words import name_of

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
            self._facts[node, digest] = lasting(machine.facts)
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
