"""What nodes were made of in each run, of the facts that a baseline holds for."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from fabricproof.core.errors import ParseError
from fabricproof.nodes.inventory.store import FOLDER, Seen, read_index, read_kept
from fabricproof.verdict.baseline.apply import that_matter
from fabricproof.verdict.baseline.model import Facts


@dataclass(frozen=True, kw_only=True)
class Machines:
    """The inventories that a site keeps below its perflogs.

    Attributes:
        folder: of the site's inventories.
    """

    folder: Path
    _known: dict[tuple[str, str], Facts | None] = field(default_factory=dict)

    @classmethod
    def of(cls, perflogs: Path, site: str) -> Machines:
        """Return those of a site."""
        return cls(folder=perflogs / site / FOLDER)

    def facts(self, node: str, digest: str | None) -> Facts | None:
        """Return the facts that matter; None where nobody saw them, or the file is gone."""
        if digest is None:
            return None
        key = (node, digest)
        if key not in self._known:
            try:
                self._known[key] = that_matter(read_kept(self.folder, node, digest).facts)
            except ParseError:
                self._known[key] = None
        return self._known[key]

    def newest(self) -> dict[str, Seen]:
        """Return node to the last line of the index in which it was seen."""
        return {each.node: each for each in read_index(self.folder) if each.digest is not None}
