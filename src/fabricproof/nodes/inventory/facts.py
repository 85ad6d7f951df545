"""What one node is made of, as plain facts that can be kept, compared and shown."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from fabricproof.core.errors import UnknownLinkError
from fabricproof.core.provenance import digest_of
from fabricproof.physics import Slot, find_slot

#: a fact is a word or a whole number
Value = str | int

#: hexadecimal digits of a digest; 64 bits, no two states of a node share them
DIGITS = 16

#: facts that tell one piece of hardware from another of its kind.  They are kept, for a card or a
#: cable that was replaced is a change; two nodes are not compared by them.
IDENTITIES = frozenset(
    {"mac", "guid", "lid", "addresses", "cable_serial", "pci", "switch", "switch_id"}
)


class ReadTroubleKind(StrEnum):
    """What hindered a look at a node."""

    NO_LOOK = "no_look"
    CUT_OFF = "cut_off"
    NO_ANSWER = "no_answer"
    NO_TOOL = "no_tool"
    ONLY_ROOT = "only_root"
    OTHER = "other"


@dataclass(frozen=True, kw_only=True)
class ReadTrouble:
    """What a look could not read, and why.

    Attributes:
        text: one sentence, which the digest of a machine covers.
        kind: what hindered it.
        section: of CUT_OFF, the last section that was begun; empty elsewhere.
        command: of NO_ANSWER, NO_TOOL and ONLY_ROOT, the tool, and its arguments where known.
    """

    text: str
    kind: ReadTroubleKind = ReadTroubleKind.OTHER
    section: str = ""
    command: tuple[str, ...] = ()

    @property
    def tool(self) -> str:
        """The tool that said nothing; empty where it is not one tool's silence."""
        return self.command[0] if self.command else ""

    @property
    def is_of_all(self) -> bool:
        """Whether it may hide anything: no look at all, or one that was cut off."""
        return self.kind in {ReadTroubleKind.NO_LOOK, ReadTroubleKind.CUT_OFF}


@dataclass(frozen=True, kw_only=True)
class Momentary:
    """What holds at the moment of a look only: it is judged at once, and neither kept nor compared.

    Attributes:
        macs: interface -> its hardware address.
        neighbours: ``rail0 10.0.0.2`` -> the hardware address that answered there.
        free_bytes: folder -> what may still be written there.
        pings: ``rail0 vc2 9000`` (interface, peer, bytes) -> ``full`` if packets of that size came
            back without fragments, ``small`` if only small ones did.
    """

    macs: Mapping[str, str] = field(default_factory=dict)
    neighbours: Mapping[str, str] = field(default_factory=dict)
    free_bytes: Mapping[str, int] = field(default_factory=dict)
    pings: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Machine:
    """What one node is made of, and how it is tuned.

    Counters, temperatures, numbers of interrupts and the like are no part of it: they change
    without the node being another.

    Attributes:
        node: as the scheduler calls it.
        facts: part (``node``, ``tuning``, ``numa node0``, ``interface ib0``, ``port mlx5_0:1``) to
            its facts.  What could not be read is not there.
        troubles: what could not be read and why.
        now: what changes by itself.
    """

    node: str
    facts: Mapping[str, Mapping[str, Value]] = field(default_factory=dict)
    troubles: tuple[ReadTrouble, ...] = ()
    now: Momentary = field(default_factory=Momentary, compare=False)

    @property
    def unknown(self) -> tuple[str, ...]:
        """What could not be read and why, one sentence each."""
        return tuple(each.text for each in self.troubles)

    @property
    def digest(self) -> str:
        """Stands for all facts, and for what is unknown."""
        return digest_of({"facts": self.facts, "unknown": self.unknown})[:DIGITS]

    @property
    def kind(self) -> str:
        """Stands for the facts that two nodes bought and set up alike have in common."""
        return digest_of({"facts": without_identities(self.facts)})[:DIGITS]


def slot_of(value: Value | None) -> Slot | None:
    """Return the slot that a fact such as ``pcie`` names; None for none, and for other words."""
    try:
        return find_slot(str(value))
    except UnknownLinkError:
        return None


def without_identities(facts: Mapping[str, Mapping[str, Value]]) -> dict[str, dict[str, Value]]:
    """Return the facts without those that are each node's own."""
    return {
        part: {name: value for name, value in each.items() if name not in IDENTITIES}
        for part, each in facts.items()
    }
