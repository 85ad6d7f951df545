"""What a fabric can carry: each ceiling as an interval, and the one that binds.

``high`` is the most generous reading of what is stated: a value above it is impossible.  ``low`` is
the most conservative one: every healthy system comes near it.  ``docs/physics.md`` explains every
formula; the constants and their sources are in ``data/``.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

from fabricproof.physics._data import load_data
from fabricproof.physics.model import Fabric, Slot
from fabricproof.physics.protocols import protocols_over

#: How far a measured rate may stand above ``high`` and still be possible.  Ethernet and
#: InfiniBand allow each transmitter's clock 100 ppm, PCIe 300 ppm, and the host's clock that
#: timed the run errs likewise; the largest of them is granted.
CLOCK_TOLERANCE = 300e-6

#: which part of the machine a ceiling belongs to
_RESOURCES = {
    "link": "link",
    "protocol": "link",
    "slot": "slot",
    "slot_packet": "slot",
    "gpu_slot": "GPU's slot",
    "gpu_slot_packet": "GPU's slot",
    "flow": "flow limit",
    "capability": "host",
    "packets": "link",
    "message_rate": "HCA",
}

#: a share of low, nominal and high
_Shares = tuple[float, float, float]
_WHOLE: _Shares = (1.0, 1.0, 1.0)


@dataclass(frozen=True, kw_only=True)
class Ceiling:
    """One limit on the payload bandwidth, in MB/s (10^6 bytes per second).

    Attributes:
        name: ``link``, ``protocol``, ``slot``, ``slot_packet``, ``gpu_slot``,
            ``gpu_slot_packet``, ``flow`` or ``capability``; of messages ``packets`` or
            ``message_rate``.
        low_mb_s: every healthy system comes near this.
        nominal_mb_s: the usual reading; low <= nominal <= high.
        high_mb_s: nothing above this is possible.
        formula: how ``nominal_mb_s`` comes about, in numbers.
        source: the documents.
    """

    name: str
    low_mb_s: float
    nominal_mb_s: float
    high_mb_s: float
    formula: str
    source: str

    @property
    def resource(self) -> str:
        """What binds in words: ``link``, ``slot``, ``GPU's slot``, ``flow limit`` ..."""
        return _RESOURCES[self.name]

    def excludes(self, value_mb_s: float) -> bool:
        """Return whether ``value_mb_s`` is impossible: above ``high`` by more than clocks err."""
        return value_mb_s > self.high_mb_s * (1 + CLOCK_TOLERANCE)


def _ceiling(name: str, rate_mb_s: float, shares: _Shares, formula: str, source: str) -> Ceiling:
    return Ceiling(
        name=name,
        low_mb_s=rate_mb_s * shares[0],
        nominal_mb_s=rate_mb_s * shares[1],
        high_mb_s=rate_mb_s * shares[2],
        formula=formula,
        source=source,
    )


def _factors(fabric: Fabric, count: int, what: str = "rails") -> str:
    directions = " x 2 directions" if fabric.bidirectional else ""
    return (f" x {count} {what}" if count > 1 else "") + directions


def _payload_shares(fabric: Fabric) -> _Shares:
    """Return payload bytes per link byte; only ``low`` counts acknowledgements beside the data."""
    low, nominal, high = fabric.framing.readings
    beside = fabric.framing.acknowledgement_bytes if fabric.bidirectional else 0
    at_least = low.payload_share(fabric.mtu, beside)
    return at_least, nominal.payload_share(fabric.mtu), high.payload_share(fabric.mtu)


def _link(fabric: Fabric) -> Ceiling:
    rate = fabric.link.data_rate_mb_s * fabric.num_rails * fabric.num_directions
    formula = fabric.link.formula + _factors(fabric, fabric.num_rails)
    return _ceiling("link", rate, _WHOLE, formula, fabric.link.source)


def _tlp_share(
    framing: dict[str, Any], payload: int, reading: str, *, bidirectional: bool
) -> float:
    """Return the share of a slot's bytes that packets (TLPs) leave to their payload.

    Full duplex moves data as writes one way and as reads the other way.  Only ``low`` counts the
    read requests and acknowledgements of both beside the data.
    """
    overhead: float = framing["overhead_bytes"][reading]
    if bidirectional and reading == "low":
        read_size = max(load_data("pcie")["read_request_bytes"]["value"], payload)
        overhead += framing["return_bytes_per_tlp"]
        overhead += framing["read_request_tlp_bytes"] * payload / read_size
    flit = framing["tlp_share"]
    return float(flit["data"] / flit["line"] * payload / (payload + overhead))


def _slots(
    fabric: Fabric, slot: Slot, count: int, max_payload: int | None, what: str = "rails"
) -> tuple[Ceiling, Ceiling]:
    """Return what ``count`` slots carry, and what their packets leave of it."""
    raw = _ceiling(
        "slot",
        slot.raw_mb_s * count * fabric.num_directions,
        _WHOLE,
        slot.formula + _factors(fabric, count, what),
        slot.source,
    )
    data = load_data("pcie")
    framing, unstated = data["framings"][slot.framing], data["unstated_max_payload_bytes"]
    both = fabric.bidirectional
    low, nominal, high = (
        _tlp_share(framing, max_payload or unstated[reading], reading, bidirectional=both)
        for reading in ("low", "nominal", "high")
    )
    flit, payload = framing["tlp_share"], max_payload or unstated["nominal"]
    flits = f" x {flit['data']}/{flit['line']}" if flit["data"] != flit["line"] else ""
    on_slot = payload + framing["overhead_bytes"]["nominal"]
    packet = _ceiling(
        "slot_packet",
        raw.nominal_mb_s,
        (low, nominal, high),
        f"{raw.nominal_mb_s:.6g}{flits} x {payload}/{on_slot}",
        f"per TLP, nominal: {framing['parts']['nominal']} ({framing['source']})",
    )
    return raw, packet


def _gpu_slots(fabric: Fabric, slot: Slot, num_gpus: int) -> tuple[Ceiling, Ceiling]:
    """Return the ceilings of the slots of the GPUs, which every byte of their buffers crosses.

    With GPUDirect once, on its way to or from the adapter; without it as often, on its way to or
    from the memory of the host.  The MaxPayload that is stated is the adapter's.
    """
    raw, packet = _slots(fabric, slot, num_gpus, None, "GPUs")
    return replace(raw, name="gpu_slot"), replace(packet, name="gpu_slot_packet")


def through_host_mb_s(fabric: Fabric) -> float | None:
    """Return the bandwidth of messages that wait for a copy at each end that is on a GPU, in MB/s.

    One after the other: the copy out of the GPU, the rails, the copy into the other.  So the time
    of a byte is 1/rails + ends/slot, of the nominal ceilings: store and forward without a pipeline
    (H. Wang et al., MVAPICH2-GPU, ISC 2011, has both).  None if the slot of the GPU is not stated,
    or the buffers are in the memory of hosts.
    """
    gpus = fabric.gpus
    if gpus is None or gpus.slot is None:
        return None
    one_way = replace(fabric, bidirectional=False)
    rails = bound(replace(one_way, gpus=None)).nominal_mb_s
    copies = _gpu_slots(one_way, gpus.slot, gpus.num_gpus)[1].nominal_mb_s
    return fabric.num_directions / (1 / rails + gpus.ends / copies)


def _flow(fabric: Fabric, limit_gbit_s: float) -> Ceiling:
    flows = fabric.num_flows * fabric.num_rails
    low, nominal, high = _payload_shares(fabric)
    # A limiter that counts packets, without what only the wire sees, lets more payload through.
    generous = fabric.framing.high
    size = fabric.mtu or generous.mtu
    of_packet = 1.0 if size is None else (size - generous.inside) / size
    return _ceiling(
        "flow",
        limit_gbit_s * 1000 / 8 * flows * fabric.num_directions,
        (low, nominal, max(high, of_packet)),
        f"{flows} x {limit_gbit_s:g} Gb/s / 8 x {fabric.framing.nominal.formula(fabric.mtu)}"
        + _factors(fabric, 1),
        "the stated limit of one flow, for example Amazon EC2 instance network bandwidth: "
        "5 Gb/s, 10 Gb/s within a cluster placement group",
    )


def ceilings(fabric: Fabric) -> tuple[Ceiling, ...]:
    """Return every ceiling that what is stated allows to compute, from the wire inwards."""
    link, framing = _link(fabric), fabric.framing
    formula = f"{link.nominal_mb_s:.6g} x {framing.nominal.formula(fabric.mtu)}"
    source = f"{framing.parts} ({framing.source})"
    shares = _payload_shares(fabric)
    found = [link, _ceiling("protocol", link.nominal_mb_s, shares, formula, source)]
    if fabric.slot is not None:
        count = 1 if fabric.rails_share_slot else fabric.num_rails
        found += _slots(fabric, fabric.slot, count, fabric.max_payload_bytes)
    if fabric.gpus is not None and fabric.gpus.slot is not None:
        found += _gpu_slots(fabric, fabric.gpus.slot, fabric.gpus.num_gpus)
    if fabric.flow_limit_gbit_s is not None:
        found.append(_flow(fabric, fabric.flow_limit_gbit_s))
    if (declared := fabric.capability_mb_s) is not None:
        source = "declared for these hosts; not physics, so a higher value is not impossible"
        host = _ceiling("capability", declared, _WHOLE, f"{declared:g} MB/s as declared", source)
        most = max(declared, *(ceiling.high_mb_s for ceiling in found))
        found.append(replace(host, high_mb_s=most))
    return tuple(found)


def binding(limits: Iterable[Ceiling]) -> Ceiling:
    """Return the ceiling that binds: the lowest nominal one, the first among equals."""
    return min(limits, key=lambda ceiling: ceiling.nominal_mb_s)


@lru_cache(maxsize=256)  # a plan asks thousands of times about a handful of paths
def bound(fabric: Fabric) -> Ceiling:
    """Return what all ceilings of ``fabric`` allow together, under the name of the binding one.

    Each of low, nominal and high is the least of its kind; over unlike rails high is their sum.
    """
    limits = ceilings(fabric)
    unlike = (fabric.unlike_rails_high_mb_s or 0.0) * fabric.num_directions
    unlike = min([unlike, *(each.high_mb_s for each in limits if each.name.startswith("gpu"))])
    return replace(
        binding(limits),
        low_mb_s=min(ceiling.low_mb_s for ceiling in limits),
        high_mb_s=max(unlike, min(ceiling.high_mb_s for ceiling in limits)),
    )


@lru_cache(maxsize=1024)
def message_ceiling(fabric: Fabric, message_size: int, *, packet_each: bool) -> Ceiling:
    """Return the most that messages of ``message_size`` bytes carry, however large the link is.

    No adapter posts more than twice the messages that the fastest one is sold for.  A packet of
    verbs is the first, a middle, the last or the only one of its message (InfiniBand Architecture
    Specification vol. 1, 9.2.1), so that S bytes of payload take S + packets x header bytes of the
    link, with the headers of the protocol's most generous reading.

    Args:
        fabric: the path, as the program loads it.
        message_size: in bytes, 1 or more.
        packet_each: the program posts each message by itself, as perftest does.  An MPI library
            may send several in one packet (M. J. Koop, T. Jones, D. K. Panda, CCGrid 2007, on
            MVAPICH), and the stream of a TCP has no messages at all.
    """
    row = load_data("links")["message_rate"]
    faster = max(1.0, fabric.link.data_rate_gbit_s / row["up_to_gbit_s"])
    published_per_s = row["published_per_s"] * faster * fabric.num_rails * fabric.num_directions
    messages = _ceiling(
        "message_rate",
        published_per_s * message_size / 1e6,
        (0.0, 1.0, row["factor"]),
        f"{message_size} B x {published_per_s / 1e6:.6g} M messages/s of the fastest adapter",
        row["source"],
    )
    framing, link = fabric.framing, _link(fabric)
    # A shaper counts what it likes of the first bytes; unlike rails have no one link.
    is_plain = fabric.shaper is None and fabric.unlike_rails_high_mb_s is None
    size = fabric.mtu or framing.high.mtu
    if size is None or not (packet_each and framing.packet_per_message and is_plain):
        return messages
    on_link = message_size + -(-message_size // size) * framing.high.outside
    packets = _ceiling(
        "packets",
        link.high_mb_s * message_size / on_link,
        (0.0, 1.0, 1.0),
        f"{link.nominal_mb_s:.6g} x {message_size}/{on_link}",
        f"{framing.parts} ({framing.source})",
    )
    return min(messages, packets, key=lambda ceiling: ceiling.high_mb_s)


@dataclass(frozen=True, kw_only=True)
class Floor:
    """A one-way latency in microseconds below which nothing is possible; as a ceiling otherwise."""

    us: float
    formula: str
    source: str


@lru_cache(maxsize=1024)
def latency_floor_us(fabric: Fabric, message_size: int) -> Floor:
    """Return the least one-way latency of a message of ``message_size`` bytes over ``fabric``.

    The protocol's floor (software, adapters, slot; conservative, from published measurements)
    plus the time the message itself needs at the most generous bandwidth of one direction.  If
    the protocol is not stated, the floor of the fastest one that the link can carry: a latency
    that only kernel TCP cannot reach is no lie on an Ethernet that may have carried RoCE.

    """
    high_mb_s = bound(replace(fabric, bidirectional=False)).high_mb_s
    protocol = fabric.framing
    if fabric.protocol is None:
        protocol = min(protocols_over(fabric.link.technology), key=lambda row: row.floor_us)
    start = f"{protocol.floor_us:g} us ({protocol.name}) + {message_size} B"
    wire_us, formula = message_size / high_mb_s, f"{start} / {high_mb_s:.6g} MB/s"
    if fabric.shaper is not None:
        wire_us = fabric.shaper.least_time_us(message_size, high_mb_s)
        bucket = f"a token bucket of {fabric.shaper.burst_bytes} B at {high_mb_s:.6g} MB/s"
        formula = f"{start} through {bucket}"
    return Floor(us=protocol.floor_us + wire_us, formula=formula, source=protocol.floor_source)
