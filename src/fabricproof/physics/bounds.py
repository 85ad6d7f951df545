"""What a fabric can carry: each ceiling as an interval, and the one that binds.

Physics gives an interval and not one number.  ``high`` is the most generous reading of what is
stated: a value above it is impossible.  ``low`` is the most conservative one: every healthy
system comes near it, so references are derived from it.  ``docs/physics.md`` explains every
formula; the constants and their sources are in ``data/``.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

from fabricproof.core.errors import ConfigError
from fabricproof.physics._data import READINGS, load_data
from fabricproof.physics.model import Fabric, Slot
from fabricproof.physics.protocols import (
    FramingReading,
    Protocol,
    ReadingName,
    known_protocols,
    protocols_over,
)

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
        """Return what binds in words: ``link``, ``slot``, ``GPU's slot``, ``flow limit`` ..."""
        return _RESOURCES[self.name]

    def excludes(self, value_mb_s: float) -> bool:
        """Return whether ``value_mb_s`` is impossible: above ``high`` by more than clocks err."""
        return value_mb_s > self.high_mb_s * (1 + CLOCK_TOLERANCE)


@dataclass(frozen=True, kw_only=True)
class _Interval:
    low: float
    nominal: float
    high: float

    def times(self, factor: float) -> _Interval:
        return _Interval(
            low=self.low * factor, nominal=self.nominal * factor, high=self.high * factor
        )


def _interval(values: dict[str, float]) -> _Interval:
    return _Interval(low=values["low"], nominal=values["nominal"], high=values["high"])


def _ceiling(name: str, values: _Interval, formula: str, source: str) -> Ceiling:
    return Ceiling(
        name=name,
        low_mb_s=values.low,
        nominal_mb_s=values.nominal,
        high_mb_s=values.high,
        formula=formula,
        source=source,
    )


def _factors(*, directions: int, rails: int) -> str:
    parts = [f" x {rails} rails"] if rails > 1 else []
    return "".join(parts + ([" x 2 directions"] if directions == 2 else []))


def _directions(fabric: Fabric) -> int:
    return 2 if fabric.bidirectional else 1


def _acknowledgement(fabric: Fabric, name: ReadingName) -> int:
    """Return the bytes per packet that acknowledgements take; only ``low`` counts them."""
    if fabric.bidirectional and name == "low":
        return fabric.framing.acknowledgement_bytes
    return 0


def _payload_shares(fabric: Fabric) -> _Interval:
    """Return payload bytes per link byte, 0 to 1, for each reading of the protocol."""
    return _interval(
        {
            name: fabric.framing.reading(name).payload_share(
                fabric.mtu, _acknowledgement(fabric, name)
            )
            for name in READINGS
        }
    )


def _link(fabric: Fabric) -> Ceiling:
    directions = _directions(fabric)
    rate = fabric.link.data_rate_mb_s * fabric.num_rails * directions
    return _ceiling(
        "link",
        _Interval(low=rate, nominal=rate, high=rate),
        fabric.link.formula + _factors(directions=directions, rails=fabric.num_rails),
        fabric.link.source,
    )


def _protocol(fabric: Fabric, link: Ceiling) -> Ceiling:
    shares = _payload_shares(fabric)
    formula = f"{link.nominal_mb_s:.6g} x {fabric.framing.nominal.formula(fabric.mtu)}"
    return _ceiling(
        "protocol",
        shares.times(link.nominal_mb_s),
        formula,
        f"{fabric.framing.parts} ({fabric.framing.source})",
    )


def _slot(fabric: Fabric, slot: Slot) -> Ceiling:
    directions = _directions(fabric)
    slots = 1 if fabric.rails_share_slot else fabric.num_rails
    rate = slot.raw_mb_s * slots * directions
    return _ceiling(
        "slot",
        _Interval(low=rate, nominal=rate, high=rate),
        slot.formula + _factors(directions=directions, rails=slots),
        slot.source,
    )


def _return_bytes(framing: dict[str, Any], payload: int) -> float:
    """Return bytes per TLP that the opposite direction's transfer adds to this direction.

    Full duplex moves data as writes one way and as reads the other way; the read requests and
    the acknowledgements of both travel beside the data.
    """
    request: int = framing["read_request_tlp_bytes"]
    read_size: int = load_data("pcie")["read_request_bytes"]["value"]
    return float(framing["return_bytes_per_tlp"] + request * payload / max(read_size, payload))


def _tlp_share(fabric: Fabric, framing: dict[str, Any], name: str) -> float:
    payload = fabric.max_payload_bytes or load_data("pcie")["unstated_max_payload_bytes"][name]
    overhead = framing["overhead_bytes"][name]
    if fabric.bidirectional and name == "low":
        overhead += _return_bytes(framing, payload)
    flit = framing["tlp_share"]
    return float(flit["data"] / flit["line"] * payload / (payload + overhead))


def _slot_packet(fabric: Fabric, slot: Ceiling, framing: dict[str, Any]) -> Ceiling:
    shares = _interval({name: _tlp_share(fabric, framing, name) for name in READINGS})
    payload = fabric.max_payload_bytes or load_data("pcie")["unstated_max_payload_bytes"]["nominal"]
    flit = framing["tlp_share"]
    flits = f" x {flit['data']}/{flit['line']}" if flit["data"] != flit["line"] else ""
    overhead = framing["overhead_bytes"]["nominal"]
    return _ceiling(
        "slot_packet",
        shares.times(slot.nominal_mb_s),
        f"{slot.nominal_mb_s:.6g}{flits} x {payload}/{payload + overhead}",
        f"per TLP, nominal: {framing['parts']['nominal']} ({framing['source']})",
    )


def _gpu_slots(fabric: Fabric, slot: Slot, num_gpus: int) -> tuple[Ceiling, Ceiling]:
    """Return the ceilings of the slots of the GPUs, which every byte of their buffers crosses.

    With GPUDirect once, on its way to or from the adapter; without it as often, on its way to or
    from the memory of the host.  The MaxPayload that is stated is the adapter's.
    """
    theirs = replace(fabric, num_rails=num_gpus, rails_share_slot=False, max_payload_bytes=None)
    raw = _slot(replace(theirs, slot=slot), slot)
    framing = load_data("pcie")["framings"][slot.framing]
    packet = _slot_packet(replace(theirs, slot=slot), raw, framing)
    formula = raw.formula.replace("rails", "GPUs")
    return (
        replace(raw, name="gpu_slot", formula=formula),
        replace(packet, name="gpu_slot_packet"),
    )


def through_host_mb_s(fabric: Fabric) -> float | None:
    """Return the bandwidth of messages that wait for a copy at each end that is on a GPU, in MB/s.

    One after the other: the copy out of the GPU, the rails, the copy into the other.  So the time
    of a byte is 1/rails + ends/slot, of the nominal ceilings: store and forward without a pipeline
    (H. Wang et al., MVAPICH2-GPU, ISC 2011, has both).  None where the slot of the GPU is not
    stated, or the buffers are in the memory of hosts.
    """
    gpus = fabric.gpus
    if gpus is None or gpus.slot is None:
        return None
    one_way = replace(fabric, bidirectional=False)
    rails = bound(replace(one_way, gpus=None)).nominal_mb_s
    copies = _gpu_slots(one_way, gpus.slot, gpus.num_gpus)[1].nominal_mb_s
    return _directions(fabric) / (1 / rails + gpus.ends / copies)


def _packet_share(reading: FramingReading, mtu: int | None) -> float:
    """Return payload per byte of the packet itself, without what only the wire sees."""
    size = mtu or reading.mtu
    return 1.0 if size is None else (size - reading.inside) / size


def _flow(fabric: Fabric, limit_gbit_s: float) -> Ceiling:
    flows = fabric.num_flows * fabric.num_rails
    rate = limit_gbit_s * 1000 / 8 * flows * _directions(fabric)
    shares = _payload_shares(fabric)
    # A limiter that counts packets and not the wire lets more payload through.
    packet_share = _packet_share(fabric.framing.high, fabric.mtu)
    shares = replace(shares, high=max(shares.high, packet_share))
    return _ceiling(
        "flow",
        shares.times(rate),
        f"{flows} x {limit_gbit_s:g} Gb/s / 8 x {fabric.framing.nominal.formula(fabric.mtu)}"
        + _factors(directions=_directions(fabric), rails=1),
        "the stated limit of one flow, for example Amazon EC2 instance network bandwidth: "
        "5 Gb/s, 10 Gb/s within a cluster placement group",
    )


def _capability(declared_mb_s: float, physics: Iterable[Ceiling]) -> Ceiling:
    return _ceiling(
        "capability",
        _Interval(
            low=declared_mb_s,
            nominal=declared_mb_s,
            high=max(declared_mb_s, *(ceiling.high_mb_s for ceiling in physics)),
        ),
        f"{declared_mb_s:g} MB/s as declared",
        "declared for these hosts; not physics, so a higher value is not impossible",
    )


def ceilings(fabric: Fabric) -> tuple[Ceiling, ...]:
    """Return every ceiling that what is stated allows to compute, from the wire inwards.

    ``slot`` and ``slot_packet`` are there only where the slot is stated, those of GPUs where the
    buffers are on them and their slot is stated, ``flow`` and ``capability`` only where they are.
    """
    link = _link(fabric)
    found = [link, _protocol(fabric, link)]
    if fabric.slot is not None:
        slot = _slot(fabric, fabric.slot)
        framing = load_data("pcie")["framings"][fabric.slot.framing]
        found += [slot, _slot_packet(fabric, slot, framing)]
    if fabric.gpus is not None and fabric.gpus.slot is not None:
        found += _gpu_slots(fabric, fabric.gpus.slot, fabric.gpus.num_gpus)
    if fabric.flow_limit_gbit_s is not None:
        found.append(_flow(fabric, fabric.flow_limit_gbit_s))
    if fabric.capability_mb_s is not None:
        found.append(_capability(fabric.capability_mb_s, found))
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
    binds = binding(limits)
    unlike = (fabric.unlike_rails_high_mb_s or 0.0) * _directions(fabric)
    unlike = min([unlike, *(each.high_mb_s for each in limits if each.name.startswith("gpu"))])
    return Ceiling(
        name=binds.name,
        low_mb_s=min(ceiling.low_mb_s for ceiling in limits),
        nominal_mb_s=binds.nominal_mb_s,
        high_mb_s=max(unlike, min(ceiling.high_mb_s for ceiling in limits)),
        formula=binds.formula,
        source=binds.source,
    )


@lru_cache(maxsize=1024)
def message_ceiling(fabric: Fabric, message_size: int, *, packet_each: bool) -> Ceiling:
    """Return the most that messages of ``message_size`` bytes carry, however large the link is.

    Every message is posted to an adapter, and no adapter posts more than twice what the fastest
    one is sold for.  A packet of verbs is the first, a middle, the last or the only one of its
    message (InfiniBand Architecture Specification vol. 1, 9.2.1), so that S bytes of payload take
    S + packets x header bytes of the link.  The headers are those of the protocol's most generous
    reading.

    Args:
        fabric: the path, as the program loads it.
        message_size: in bytes, 1 or more.
        packet_each: the program posts each message by itself, as perftest does.  An MPI library
            may send several in one packet (M. J. Koop, T. Jones, D. K. Panda, CCGrid 2007, on
            MVAPICH; ``btl_openib_use_message_coalescing`` of Open MPI).  The stream of a TCP has
            no messages at all: of protocols that may join them this changes nothing.
    """
    row = load_data("links")["message_rate"]
    link = _link(fabric)
    faster = max(1.0, fabric.link.data_rate_gbit_s / row["up_to_gbit_s"])
    published = row["published_per_s"] * faster * fabric.num_rails * _directions(fabric)
    rate = _Interval(low=0.0, nominal=published, high=published * row["factor"])
    formula = f"{message_size} B x {published / 1e6:.6g} M messages/s of {row['adapter']}"
    messages = _ceiling("message_rate", rate.times(message_size / 1e6), formula, row["source"])
    framing = fabric.framing
    # A shaper counts what it likes of the first bytes; unlike rails have no one link.
    is_plain = fabric.shaper is None and fabric.unlike_rails_high_mb_s is None
    if not (packet_each and framing.packet_per_message and is_plain):
        return messages
    size = fabric.mtu or framing.high.mtu
    assert size is not None
    on_link = message_size + -(-message_size // size) * framing.high.outside
    high = link.high_mb_s * message_size / on_link
    packets = _ceiling(
        "packets",
        _Interval(low=0.0, nominal=high, high=high),
        f"{link.nominal_mb_s:.6g} x {message_size}/{on_link}",
        f"{framing.parts} ({framing.source})",
    )
    return min(messages, packets, key=lambda ceiling: ceiling.high_mb_s)


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


@lru_cache(maxsize=1024)
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
