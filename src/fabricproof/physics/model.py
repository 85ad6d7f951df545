"""The fabric as it is stated: a link, a protocol, a slot (``data/pcie.json``), and how many."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from fabricproof.core.errors import ConfigError, UnknownLinkError
from fabricproof.physics._data import load_data
from fabricproof.physics.links import Link
from fabricproof.physics.protocols import Protocol, default_protocol, find_protocol, protocols_over


@dataclass(frozen=True, kw_only=True)
class Shaper:
    """A token bucket as tc-tbf(8) describes it: mean rate, that of the link, bucket, peak rate.

    After a pause its bucket is full, and a message of that size passes at the peak rate, or at once
    where there is none: so do burstable cloud instances and the rails of the virtual cluster.

    Attributes:
        burst_bytes: size of the bucket, 0 or more.
        peak_factor: peak rate over mean rate, at least 1.
        instant_bytes: what passes at once, at any rate; 0 or more, at most ``burst_bytes``.
    """

    burst_bytes: int
    peak_factor: float = 1.0
    instant_bytes: int = 0

    def __post_init__(self) -> None:
        """Refuse a bucket that cannot be."""
        if self.burst_bytes < 0 or not 0 <= self.instant_bytes <= self.burst_bytes:
            got = f"burst_bytes {self.burst_bytes}, instant_bytes {self.instant_bytes}"
            expected = "0 <= instant_bytes <= burst_bytes"
            raise ConfigError("impossible token bucket", expected=expected, got=got)
        if not 1 <= self.peak_factor < float("inf"):
            expected, got = "a factor of at least 1", str(self.peak_factor)
            raise ConfigError("impossible peak rate", expected=expected, got=got)

    def least_time_us(self, size_bytes: int, rate_mb_s: float) -> float:
        """Return the least time in which ``size_bytes`` pass after a pause, in us.

        From the definition of a token bucket with a peak: in time t at most
        min(peak t + instant, rate t + burst) bytes pass (RFC 2212, section 2: min[pT + M, rT + b]).
        """
        at_peak = (size_bytes - self.instant_bytes) / (self.peak_factor * rate_mb_s)
        at_mean = (size_bytes - self.burst_bytes) / rate_mb_s
        return max(0.0, at_peak, at_mean)


@dataclass(frozen=True, kw_only=True)
class Slot:
    """A PCIe slot (or riser, or on-board connection) of a generation and width.

    Attributes:
        gt_per_s_per_lane: signalled transfers per lane in GT/s.
        framing: which packet framing it uses: ``symbols``, ``tokens`` or ``flits``.
        raw_mb_s: one direction after coding and before packets, in MB/s.
        source: the clause of the specification.
    """

    generation: int
    lanes: int
    gt_per_s_per_lane: float
    framing: str
    raw_mb_s: float
    source: str

    @property
    def name(self) -> str:
        """The project's spelling: ``PCIe 3.0 x8``."""
        return f"PCIe {self.generation}.0 x{self.lanes}"

    @property
    def formula(self) -> str:
        """How ``raw_mb_s`` comes about, in numbers."""
        row = _generations()[self.generation]
        share = f"{row['data']}/{row['line']}"
        return f"{self.lanes} lanes x {self.gt_per_s_per_lane:g} GT/s x {share} / 8"


#: '3.0x8', 'PCIe 3.0 x8', 'Gen3 x8', '4x16'; '8 GT/s x8' and '8.0 GT/s PCIe x8' as lspci prints it
_SLOT = re.compile(
    r"(?:(?:pci ?-?(?:e|express)?)?[ -]*(?:gen(?:eration)?)?[ -]*(?P<generation>\d)(?:\.\d)?[ -]*"
    r"|(?P<rate>\d+(?:\.\d+)?) ?gt/s(?: pcie)?,? ?(?:width)? ?)x ?(?P<lanes>\d{1,2})"
)


@cache
def _generations() -> Mapping[int, Mapping[str, Any]]:
    return {row["generation"]: row for row in load_data("pcie")["generations"]}


def make_slot(generation: int, lanes: int) -> Slot:
    """Return the slot of that generation and width; both must be known to the data."""
    row = _generations()[generation]
    return Slot(
        generation=generation,
        lanes=lanes,
        gt_per_s_per_lane=row["gt_per_s_per_lane"],
        framing=row["framing"],
        raw_mb_s=lanes * row["gt_per_s_per_lane"] * row["data"] / row["line"] * 1000 / 8,
        source=row["source"],
    )


def find_slot(text: str) -> Slot:
    """Return the slot that ``text`` names: ``3.0x8``, ``Gen3 x8``, ``8.0 GT/s PCIe x8`` of lspci.

    Raises:
        UnknownLinkError: no such generation or width; the message says what there is.
    """
    match = _SLOT.fullmatch(" ".join(text.lower().replace("\u00d7", "x").split()))
    widths: list[int] = load_data("pcie")["lanes"]
    if match is not None and int(match["lanes"]) in widths:
        for generation, row in _generations().items():
            is_rate = float(match["rate"] or 0) == row["gt_per_s_per_lane"]
            if is_rate or match["generation"] == str(generation):
                return make_slot(generation, int(match["lanes"]))
    raise UnknownLinkError(
        f"unknown PCIe slot {text!r}",
        expected=f"a generation of {min(_generations())}.0 to {max(_generations())}.0 and "
        + ", ".join(f"x{lanes}" for lanes in widths),
        got=repr(text),
        next_step="write it as '3.0x8'; lspci -vv shows it as LnkSta of the adapter",
    )


@dataclass(frozen=True, kw_only=True)
class Gpus:
    """What is stated about the GPUs that hold the buffers of a measurement.

    Attributes:
        slot: the PCIe slot of each; None: not stated.
        num_gpus: GPUs of a node that send at once, at least 1.
        ends: nodes of a pair that have their buffer on a GPU: 1, or 2.
        direct: whether the adapter can reach the memory of the GPU by itself (GPUDirect RDMA, ROCm
            peer memory); None: not stated.
    """

    slot: Slot | None = None
    num_gpus: int = 1
    ends: int = 2
    direct: bool | None = None

    def __post_init__(self) -> None:
        """Refuse GPUs that cannot be."""
        _check_positive("num_gpus", self.num_gpus)


@dataclass(frozen=True, kw_only=True)
class Fabric:
    """What is stated about the path between two nodes.  None means: not stated.

    Attributes:
        link: the link of each rail.
        protocol: a :class:`Protocol` or its name; None for the usual one of the technology
            (TCP on Ethernet, RoCEv2 on Soft-RoCE).
        mtu: in bytes, as the protocol counts it: IP MTU for tcp and udp, InfiniBand MTU for ib,
            path MTU for rocev2.
        slot: the PCIe slot of each HCA or NIC.
        max_payload_bytes: PCIe MaxPayload in force, a power of two from 128 to 4096.
        num_rails: rails used at once, at least 1.
        rails_share_slot: the rails are ports of one HCA, so that one slot carries all of them;
            False: every rail has an HCA in a slot of its own.
        flow_limit_gbit_s: what a provider or shaper lets one flow have on the wire, in Gb/s.
        num_flows: flows on each rail, at least 1.
        bidirectional: traffic flows both ways at once and both directions are added up.
        capability_mb_s: what the hosts are declared to manage, in MB/s for all rails together, as
            one core's TCP processing; it never makes a higher value impossible.
        unlike_rails_high_mb_s: the rails' own high ceilings added up, in one direction, if they
            are not alike; an MPI that shares by weight may reach it.  The other fields then
            describe the slowest rail.
        shaper: a token bucket on every rail; None for a wire.
        gpus: the GPUs whose memory holds the buffers; None where it is that of the hosts.
    """

    link: Link
    protocol: Protocol | str | None = None
    mtu: int | None = None
    slot: Slot | None = None
    max_payload_bytes: int | None = None
    num_rails: int = 1
    rails_share_slot: bool = False
    flow_limit_gbit_s: float | None = None
    num_flows: int = 1
    bidirectional: bool = False
    capability_mb_s: float | None = None
    shaper: Shaper | None = None
    unlike_rails_high_mb_s: float | None = None
    gpus: Gpus | None = None

    def __post_init__(self) -> None:
        """Refuse a fabric that cannot be."""
        framing, technology = self.framing, self.link.technology
        if technology not in framing.technologies:
            over_it = ", ".join(row.name for row in protocols_over(technology))
            raise ConfigError(
                f"protocol {framing.name} does not run over {technology}",
                expected=f"a link of {' or '.join(framing.technologies)}",
                got=repr(self.link.name),
                next_step=f"over this link: {over_it}",
            )
        framing.check_mtu(self.mtu)
        self._check_slot()
        for name in ("num_rails", "num_flows", "flow_limit_gbit_s", "capability_mb_s"):
            _check_positive(name, getattr(self, name))

    @property
    def framing(self) -> Protocol:
        """The protocol spoken: the stated one, or the usual one of the technology."""
        technology = self.link.technology
        if self.protocol is None:
            return default_protocol(technology)
        stated = self.protocol if isinstance(self.protocol, Protocol) else None
        return (stated or find_protocol(str(self.protocol))).over(technology)

    @property
    def num_directions(self) -> int:
        """Directions that are added up: 1 or 2."""
        return 2 if self.bidirectional else 1

    def _check_slot(self) -> None:
        if self.link.is_soft and self.slot is not None:
            problem = "a Soft-RoCE device has no PCIe slot: it is the kernel's software"
            expected = "no pcie key; the link's rate says what the device can do"
            raise ConfigError(problem, expected=expected, got=repr(self.slot.name))
        sizes = load_data("pcie")["max_payload_bytes"]
        if self.max_payload_bytes is not None and self.max_payload_bytes not in sizes:
            expected = f"one of {', '.join(map(str, sizes))} bytes, as DevCtl of lspci -vv has it"
            raise ConfigError(
                "no such PCIe MaxPayload", expected=expected, got=str(self.max_payload_bytes)
            )
        if self.slot is None and (self.max_payload_bytes is not None or self.rails_share_slot):
            problem = "MaxPayload and shared slots say nothing without the slot"
            raise ConfigError(problem, expected="the PCIe slot, for example '3.0x8'", got="none")


def _check_positive(name: str, value: float | None) -> None:
    whole = name.startswith("num_")
    if value is not None and (
        not 0 < value < float("inf") or (whole and not isinstance(value, int))
    ):
        expected = "a whole number of at least 1" if whole else "a positive number"
        raise ConfigError(f"{name} is out of range", expected=expected, got=str(value))
