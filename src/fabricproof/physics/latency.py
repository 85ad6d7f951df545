"""The least time a message can take, below which a latency is not what it claims to be."""

from __future__ import annotations

from dataclasses import dataclass, replace

from fabricproof.core.errors import ConfigError
from fabricproof.physics.ceilings import bound
from fabricproof.physics.model import Fabric
from fabricproof.physics.protocols import Protocol, known_protocols, protocols_over


@dataclass(frozen=True, kw_only=True)
class Floor:
    """A one-way latency below which nothing is possible.

    Attributes:
        us: microseconds.
        formula: how it comes about, in numbers.
        source: the documents.
    """

    us: float
    formula: str
    source: str


def _protocol_with_least_floor(fabric: Fabric) -> Protocol:
    """Return the stated protocol, or of all that the link can carry the fastest one.

    Unstated means wide: a latency that only kernel TCP cannot reach is no lie on an Ethernet that
    may just as well have carried RoCE.
    """
    if fabric.protocol is not None:
        return fabric.framing
    technology = fabric.link.technology
    rows = [known_protocols()[name].over(technology) for name in protocols_over(technology)]
    return min(rows, key=lambda row: row.floor_us)


def latency_floor_us(fabric: Fabric, message_size: int) -> Floor:
    """Return the least one-way latency of a message of ``message_size`` bytes over ``fabric``.

    The protocol's floor (software, adapters, slot; conservative, from published measurements)
    plus the time the message itself needs at the most generous bandwidth of one direction.  Where
    the protocol is not stated, the floor of the fastest one that the link can carry.

    Raises:
        ConfigError: the size is negative.
    """
    if message_size < 0:
        raise ConfigError("negative message size", expected="0 or more", got=str(message_size))
    high_mb_s = bound(replace(fabric, bidirectional=False)).high_mb_s
    protocol = _protocol_with_least_floor(fabric)
    if fabric.shaper is not None:
        return Floor(
            us=protocol.floor_us + fabric.shaper.least_time_us(message_size, high_mb_s),
            formula=f"{protocol.floor_us:g} us ({protocol.name}) + {message_size} B through a "
            f"token bucket of {fabric.shaper.burst_bytes} B at {high_mb_s:.6g} MB/s",
            source=protocol.floor_source,
        )
    return Floor(
        us=protocol.floor_us + message_size / high_mb_s,
        formula=f"{protocol.floor_us:g} us ({protocol.name}) "
        f"+ {message_size} B / {high_mb_s:.6g} MB/s",
        source=protocol.floor_source,
    )
