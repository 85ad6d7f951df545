"""What one node is made of, as plain facts that can be kept, compared and shown."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from fabricproof.core.provenance import digest_of

#: a fact is a word or a whole number
Value = str | int

#: hexadecimal digits of a digest; 64 bits, no two states of a node share them
DIGITS = 16

#: facts that tell one piece of hardware from another of its kind.  They are kept, for a card or a
#: cable that was replaced is a change; two nodes are not compared by them.
IDENTITIES = frozenset({"mac", "guid", "lid", "addresses", "cable_serial", "pci"})


@dataclass(frozen=True, kw_only=True)
class Machine:
    """What one node is made of, and how it is tuned.

    Counters, temperatures, numbers of interrupts and the like are no part of it: they change
    without the node being another.

    Attributes:
        node: as the scheduler calls it.
        facts: part (``node``, ``tuning``, ``numa node0``, ``interface ib0``, ``port mlx5_0:1``) to
            its facts.  What could not be read is not there.
        unknown: what could not be read and why, one sentence each.
    """

    node: str
    facts: Mapping[str, Mapping[str, Value]] = field(default_factory=dict)
    unknown: tuple[str, ...] = ()

    @property
    def digest(self) -> str:
        """Stands for all facts, and for what is unknown."""
        return digest_of({"facts": self.facts, "unknown": self.unknown})[:DIGITS]

    @property
    def kind(self) -> str:
        """Stands for the facts that two nodes bought and set up alike have in common."""
        return digest_of({"facts": without_identities(self.facts)})[:DIGITS]


def without_identities(facts: Mapping[str, Mapping[str, Value]]) -> dict[str, dict[str, Value]]:
    """Return the facts without those that are each node's own."""
    return {
        part: {name: value for name, value in each.items() if name not in IDENTITIES}
        for part, each in facts.items()
    }
