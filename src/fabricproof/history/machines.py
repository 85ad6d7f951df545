"""What the nodes of runs were made of, read from the inventories that a site keeps."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from fabricproof.core.errors import ParseError
from fabricproof.history.store import Run
from fabricproof.nodes.inventory.changed import Facts, lasting
from fabricproof.nodes.inventory.differences import Difference, compare
from fabricproof.nodes.inventory.facts import Machine
from fabricproof.nodes.inventory.store import FOLDER, StateSeen, read_index, read_kept


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

    @classmethod
    def of_site(cls, perflogs: Path, site: str) -> Machines:
        """Return those that a site keeps below its perflogs."""
        return cls(folder=perflogs / site / FOLDER)

    def get(self, node: str, digest: str | None) -> Machine | None:
        """Return the machine; None if nobody saw it or its file cannot be read."""
        found = self._read(node, digest) if digest else None
        return found if isinstance(found, Machine) else None

    def _read(self, node: str, digest: str) -> Machine | ParseError:
        if (node, digest) not in self._kept:
            try:
                self._kept[node, digest] = read_kept(self.folder, node, digest)
            except ParseError as error:
                self.notes.append(str(error))
                self._kept[node, digest] = error
        return self._kept[node, digest]

    def of(self, run: Run) -> dict[str, Machine | None]:
        """Return node -> what it was in this run; None if that is not known."""
        return {node: self.get(node, digest) for node, digest in run.inventory.items()}

    def facts(self, node: str, digest: str | None) -> Facts | None:
        """Return the facts that a baseline rests on; None as for :meth:`get`."""
        machine = self.get(node, digest)
        return None if machine is None else lasting(machine.facts)

    def changed(
        self, before: Mapping[str, str], now: Mapping[str, str | None]
    ) -> tuple[dict[Difference, list[str]], dict[str, str]]:
        """Return each fact that is another now, with its nodes; and why of some that is not known.

        Of a node that nobody saw at both times nothing is said.

        Args:
            before: node to the digest of what it was, as :func:`last_known` has it.
            now: node to the digest of what it is.
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
