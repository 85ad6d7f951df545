"""Protocols: which share of a link's bytes is the benchmark's own (``data/protocols.json``).

Three readings of each: ``low`` (every healthy system comes near it), ``nominal``, ``high`` (nothing
above it is possible).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

from fabricproof.core.errors import ConfigError, UnknownLinkError
from fabricproof.physics._data import load_data, nearest_names

#: packet size that an acknowledgement is counted against where the real one is not public
_PRIVATE_PACKET_BYTES = 2048


@dataclass(frozen=True, kw_only=True)
class FramingReading:
    """One way to read a protocol's framing.

    Attributes:
        mtu: bytes between the outer headers where the MTU is not stated; None with ``share``.
        inside: header bytes that count within the MTU.
        outside: bytes on the wire around it.
        share: payload share, 0 to 1, where the framing is not public.
    """

    mtu: int | None = None
    inside: int = 0
    outside: int = 0
    share: float | None = None

    def payload_share(self, mtu: int | None, acknowledgement: int = 0) -> float:
        """Return payload bytes per link byte, 0 to 1.

        ``mtu`` is the stated one, None for this reading's own; ``acknowledgement`` the bytes per
        packet that the opposite direction's acknowledgements take.
        """
        size = mtu or self.mtu
        if self.share is not None or size is None:
            share = self.share or 1.0
            return share * _PRIVATE_PACKET_BYTES / (_PRIVATE_PACKET_BYTES + acknowledgement)
        return (size - self.inside) / (size + self.outside + acknowledgement)

    def formula(self, mtu: int | None) -> str:
        """Return :meth:`payload_share` without acknowledgements, in numbers."""
        size = mtu or self.mtu
        if self.share is not None or size is None:
            return f"{self.share:g}"
        return f"{size - self.inside}/{size + self.outside}"


@dataclass(frozen=True, kw_only=True)
class Protocol:
    """A protocol over a link.

    Attributes:
        name: ``ib``, ``ipoib``, ``tcp``, ``tcp-bypass``, ``udp``, ``rocev2``, ``iwarp``,
            ``raw-ethernet``, ``opa``, ``slingshot``, ``efa``, ``bxi``.
        technologies: the link technologies it runs over.
        mtus: the MTUs there are, in bytes: some, or a range; empty where none can be stated.
        parts: what the bytes are, in words.
        acknowledgement_bytes: bytes per data packet that acknowledgements take from the opposite
            direction, at worst.
        source: the documents.
        floor_us: no one-way latency below this many microseconds is possible.
        packet_per_message: no packet holds parts of two messages that were posted to the adapter.
    """

    name: str
    technologies: tuple[str, ...]
    low: FramingReading
    nominal: FramingReading
    high: FramingReading
    mtus: Sequence[int]
    parts: str
    acknowledgement_bytes: int
    source: str
    floor_us: float
    floor_source: str
    packet_per_message: bool

    @property
    def readings(self) -> tuple[FramingReading, FramingReading, FramingReading]:
        """The most conservative one, the usual one, the most generous one."""
        return self.low, self.nominal, self.high

    def over(self, technology: str) -> Protocol:
        """Return this protocol as it is over links of that technology.

        RoCEv2 over Soft-RoCE is made by the kernel, not by an adapter: its floor is higher.
        """
        row = _rows().get(self.name, {}).get("over", {}).get(technology)
        return replace(self, **_facts(row)) if row else self

    def check_mtu(self, mtu: int | None) -> None:
        """Raise a ConfigError for an MTU that this protocol cannot have."""
        if mtu is None or mtu in self.mtus:
            return
        expected = "no MTU at all, because the framing is not public"
        if isinstance(self.mtus, range):
            expected = f"{self.mtus[0]} to {self.mtus[-1]} bytes"
        elif self.mtus:
            expected = f"one of {', '.join(map(str, self.mtus))} bytes"
        raise ConfigError(f"no MTU {mtu} with {self.name}", expected=expected, got=str(mtu))


def _facts(row: Mapping[str, Any]) -> dict[str, Any]:
    facts = {name: row[name] for name in ("parts", "floor_us", "floor_source")}
    return facts | {name: FramingReading(**row[name]) for name in ("low", "nominal", "high")}


@cache
def _rows() -> Mapping[str, Mapping[str, Any]]:
    return {row["name"]: row for row in load_data("protocols")["protocols"]}


@cache
def known_protocols() -> Mapping[str, Protocol]:
    """Return every protocol of the data under its name."""
    found = {}
    for name, row in _rows().items():
        mtu = row["mtu"] or {}
        choices = tuple(mtu.get("choices", ()))
        found[name] = Protocol(
            name=name,
            technologies=tuple(row["technologies"]),
            mtus=range(mtu["minimum"], mtu["maximum"] + 1) if "minimum" in mtu else choices,
            acknowledgement_bytes=row["acknowledgement_bytes"],
            source=row["source"],
            packet_per_message=row.get("packet_per_message", False),
            **_facts(row),
        )
    return found


def find_protocol(text: str) -> Protocol:
    """Return the protocol of that name or alias, any case.

    Raises:
        UnknownLinkError: there is none; the message lists what there is.
    """
    plain = text.strip().lower()
    for name, row in _rows().items():
        if plain == name or plain in row["aliases"]:
            return known_protocols()[name]
    near = nearest_names(text, list(known_protocols()))
    raise UnknownLinkError(
        f"unknown protocol {text!r}" + (f" (nearest: {near})" if near else ""),
        expected=f"one of {', '.join(known_protocols())}",
        got=repr(text),
    )


@cache
def protocols_over(technology: str) -> tuple[Protocol, ...]:
    """Return the protocols that run over links of that technology, as they are over them."""
    found = (row for row in known_protocols().values() if technology in row.technologies)
    return tuple(row.over(technology) for row in found)


@cache
def default_protocol(technology: str) -> Protocol:
    """Return what a link of that technology speaks unless told otherwise (Ethernet: TCP)."""
    for row in protocols_over(technology):
        if technology in _rows()[row.name]["default_for"]:
            return row
    raise UnknownLinkError(f"no protocol is known for links of technology {technology!r}")
