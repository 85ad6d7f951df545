"""What was found, and where: the one shape in which every room says it, and its form in records.

Renderers show the text; what is decided by a finding is decided by its other fields, never by
its words.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from enum import StrEnum
from typing import Any

from fabricproof.core.measure import Quantity, Verdict
from fabricproof.core.plain import plain, typed


class FindingKind(StrEnum):
    """What a finding is, where anything is decided by it; all others are notes."""

    NOTE = "note"
    PREFLIGHT = "preflight"
    SUBNET = "subnet"
    DOCTOR = "doctor"
    SCHEDULER = "scheduler"
    SECOND_LOOK_RED = "second_look_red"
    SECOND_LOOK_PASSED = "second_look_passed"
    NO_SECOND_LOOK = "no_second_look"
    OTHER_BUILD = "other_build"
    PROTOCOL_SWITCH = "protocol_switch"
    BLAME = "blame"
    UNDECIDED = "undecided"
    KERNEL = "kernel"


@dataclass(frozen=True, kw_only=True)
class Where:
    """The part of a cluster that a finding is about; a field is empty if it does not narrow it.

    Attributes:
        node: one host or switch; empty if no single one is concerned.
        rail: an interface, a port of an HCA or of a switch, or several joined by ``+``.
        direction: ``transmit``, ``receive`` or ``both``, seen from the node.
        peer: the other end of a cable, with its port.
        nodes: several hosts that are concerned alike, as those behind a leaf.
    """

    partition: str = ""
    node: str = ""
    rail: str = ""
    direction: str = ""
    peer: str = ""
    nodes: tuple[str, ...] = ()

    def __str__(self) -> str:
        """Return ``n17 rail0``, ``leaf1 port 9 - spine1 port 1``, ``n1, n2``, or nothing."""
        nodes = self.node or ", ".join(self.nodes)
        one = " ".join(filter(None, (self.partition, nodes, self.rail, self.direction)))
        return " - ".join(filter(None, (one, self.peer)))

    @property
    def hosts(self) -> tuple[str, ...]:
        """The nodes that it is about: one, or several."""
        return (self.node,) if self.node else self.nodes


@dataclass(frozen=True, kw_only=True)
class Finding:
    """One thing that was found.

    Attributes:
        text: for a person, in one sentence.
        verdict: None for a note, which judges nothing.
        fact: what it is about, within its kind: ``rate`` or ``mtu`` (preflight), ``cabling``
            (subnet), ``PMI`` (doctor), ``leaf`` or ``pair`` (blame), the SHA-256 (kernel).
        quantity: the number that was judged; its reason is the whole sentence if ``text`` is a
            short one.  None if the finding rests on no number.
        means: what follows from it; empty if nothing does.
        next_step: what mends it, or what to measure to be sure.
        seen_by: the command that showed it; empty if unknown.
    """

    text: str
    kind: FindingKind = FindingKind.NOTE
    verdict: Verdict | None = None
    fact: str = ""
    where: Where = Where()
    quantity: Quantity | None = None
    means: str = ""
    next_step: str = ""
    seen_by: str = ""

    def __str__(self) -> str:
        """Return the sentence for a reader of another check: preflight says that it speaks."""
        return f"preflight: {self.text}" if self.kind is FindingKind.PREFLIGHT else self.text

    @property
    def reason(self) -> str:
        """The whole sentence: the quantity's, or the text of a finding without one."""
        return self.quantity.reason if self.quantity else self.text

    @property
    def line(self) -> str:
        """Text, what follows from it, and the next step."""
        told = ": ".join(filter(None, (self.text, self.means)))
        return "; ".join(filter(None, (told, self.next_step)))

    def record(self) -> dict[str, Any]:
        """Return its form in records and in ``--json``; what is empty or unknown is left out."""
        whole = plain(
            self,
            where={name: value for name, value in plain(self.where).items() if value},
            quantity=self.quantity
            and {each.name: getattr(self.quantity, each.name) for each in fields(Quantity)},
        )
        return {name: value for name, value in whole.items() if value or name == "text"}


def findings_of(record: Mapping[str, Any]) -> tuple[Finding, ...]:
    """Return the findings that :meth:`Finding.record` wrote; ValueError if one is damaged."""
    return tuple(typed(Finding, each) for each in record.get("findings") or ())


def as_notes(texts: Iterable[str]) -> tuple[Finding, ...]:
    """Return sentences that nothing is decided by as findings."""
    return tuple(Finding(text=each) for each in texts)


def texts_of(findings: Iterable[Finding]) -> list[str]:
    """Return the sentences of findings, for what shows them."""
    return [str(each) for each in findings]
