"""Protocols: which share of a link's bytes is the benchmark's own (``data/protocols.json``).

Each protocol has three readings.  ``low`` is the most conservative one (every healthy system
comes near it), ``high`` the most generous (nothing above it is possible), ``nominal`` the usual
case.  A reading is framing (MTU, header bytes inside and around it), or a bare share where the
framing is not public.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, Literal

from fabricproof.core.errors import ConfigError, UnknownLinkError
from fabricproof.physics._data import READINGS, load_data, nearest_names

ReadingName = Literal["low", "nominal", "high"]

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

        Args:
            mtu: the stated MTU in bytes, None for this reading's own.
            acknowledgement: bytes per packet that the opposite direction's acknowledgements take.
        """
        if self.share is not None:
            return self.share * _PRIVATE_PACKET_BYTES / (_PRIVATE_PACKET_BYTES + acknowledgement)
        size = mtu or self.mtu
        assert size is not None
        return (size - self.inside) / (size + self.outside + acknowledgement)

    def formula(self, mtu: int | None) -> str:
        """Return :meth:`payload_share` without acknowledgements, in numbers."""
        if self.share is not None:
            return f"{self.share:g}"
        size = mtu or self.mtu
        assert size is not None
        return f"{size - self.inside}/{size + self.outside}"


@dataclass(frozen=True, kw_only=True)
class Protocol:
    """A protocol over a link.

    Attributes:
        name: ``ib``, ``ipoib``, ``tcp``, ``tcp-bypass``, ``udp``, ``rocev2``, ``iwarp``,
            ``raw-ethernet``, ``opa``, ``slingshot``, ``efa``, ``bxi``.
        technologies: the link technologies it runs over.
        mtu_choices: the MTUs there are; empty where any in a range will do.
        mtu_range: smallest and largest MTU in bytes; None where the MTU cannot be stated.
        parts: what the bytes are, in words.
        packet_per_message: no packet holds parts of two messages that were posted to the adapter.
        acknowledgement_bytes: bytes per data packet that acknowledgements take from the opposite
            direction, at worst.
        source: the documents.
        floor_us: no one-way latency below this many microseconds is possible.
    """

    name: str
    technologies: tuple[str, ...]
    low: FramingReading
    nominal: FramingReading
    high: FramingReading
    mtu_choices: tuple[int, ...]
    mtu_range: tuple[int, int] | None
    parts: str
    acknowledgement_bytes: int
    source: str
    floor_us: float
    floor_source: str
    packet_per_message: bool = False

    def over(self, technology: str) -> Protocol:
        """Return this protocol as it is over links of that technology.

        RoCEv2 over Soft-RoCE is made by the kernel, not by an adapter: its floor is higher, and
        what is counted of a packet depends on the shaper.
        """
        return _over(self.name, technology) if self is known_protocols().get(self.name) else self

    def reading(self, name: ReadingName) -> FramingReading:
        """Return the reading of that name."""
        readings: dict[str, FramingReading] = {
            "low": self.low,
            "nominal": self.nominal,
            "high": self.high,
        }
        return readings[name]

    def check_mtu(self, mtu: int | None) -> None:
        """Refuse an MTU that this protocol cannot have.

        Raises:
            ConfigError: the message says which there are.
        """
        if mtu is None or mtu in self.mtu_choices:
            return
        if (
            self.mtu_range
            and not self.mtu_choices
            and self.mtu_range[0] <= mtu <= self.mtu_range[1]
        ):
            return
        raise ConfigError(f"no MTU {mtu} with {self.name}", expected=self._mtus(), got=str(mtu))

    def _mtus(self) -> str:
        if self.mtu_choices:
            return f"one of {', '.join(map(str, self.mtu_choices))} bytes"
        if self.mtu_range:
            return f"{self.mtu_range[0]} to {self.mtu_range[1]} bytes"
        return "no MTU at all, because the framing is not public"


def _protocol(row: Mapping[str, Any]) -> Protocol:
    mtu = row["mtu"] or {}
    readings = {name: FramingReading(**row[name]) for name in READINGS}
    choices = tuple(mtu.get("choices", ()))
    return Protocol(
        name=row["name"],
        technologies=tuple(row["technologies"]),
        mtu_choices=choices,
        mtu_range=(mtu["minimum"], mtu["maximum"]) if "minimum" in mtu else None,
        parts=row["parts"],
        acknowledgement_bytes=row["acknowledgement_bytes"],
        source=row["source"],
        floor_us=row["floor_us"],
        floor_source=row["floor_source"],
        packet_per_message=row.get("packet_per_message", False),
        **readings,
    )


@cache
def _over(name: str, technology: str) -> Protocol:
    """Return a protocol as it is over links of that technology."""
    rows = {row["name"]: row for row in load_data("protocols")["protocols"]}
    otherwise = rows[name].get("over", {}).get(technology)
    if otherwise is None:
        return known_protocols()[name]
    low, nominal, high = (FramingReading(**otherwise[reading]) for reading in READINGS)
    return replace(
        known_protocols()[name],
        low=low,
        nominal=nominal,
        high=high,
        parts=otherwise["parts"],
        floor_us=otherwise["floor_us"],
        floor_source=otherwise["floor_source"],
    )


@cache
def known_protocols() -> Mapping[str, Protocol]:
    """Return every protocol of the data under its name."""
    return {row["name"]: _protocol(row) for row in load_data("protocols")["protocols"]}


def find_protocol(text: str) -> Protocol:
    """Return the protocol of that name or alias, any case.

    Raises:
        UnknownLinkError: there is none; the message lists what there is.
    """
    plain = text.strip().lower()
    for row in load_data("protocols")["protocols"]:
        if plain == row["name"] or plain in row["aliases"]:
            return known_protocols()[row["name"]]
    near = nearest_names(text, list(known_protocols()))
    raise UnknownLinkError(
        f"unknown protocol {text!r}" + (f" (nearest: {near})" if near else ""),
        expected=f"one of {', '.join(known_protocols())}",
        got=repr(text),
    )


def protocols_over(technology: str) -> list[str]:
    """Return the names of the protocols that run over links of that technology."""
    return [name for name, row in known_protocols().items() if technology in row.technologies]


def default_protocol(technology: str) -> Protocol:
    """Return what a link of that technology speaks unless told otherwise (Ethernet: TCP)."""
    for row in load_data("protocols")["protocols"]:
        if technology in row["default_for"]:
            return known_protocols()[row["name"]].over(technology)
    raise UnknownLinkError(f"no protocol is known for links of technology {technology!r}")
