"""The fabric as it is stated: a link, a protocol over it, a slot behind it, and how many."""

from __future__ import annotations

from dataclasses import dataclass

from fabricproof.core.errors import ConfigError
from fabricproof.physics._data import load_data
from fabricproof.physics.links import Link
from fabricproof.physics.protocols import Protocol, default_protocol, find_protocol, protocols_over
from fabricproof.physics.shaper import Shaper
from fabricproof.physics.slots import Slot


@dataclass(frozen=True, kw_only=True)
class Fabric:
    """What is stated about the road between two nodes.  None means: not stated.

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
        capability_mb_s: what the hosts are known to manage, in MB/s for all rails together, for
            example one core's TCP processing; a declared fact and not physics, so it never makes
            a higher value impossible.
        unlike_rails_high_mb_s: the rails' own generous ceilings added up, in one direction, where
            they are not alike (Gordon's second rail sits in a Gen2 riser); an MPI that shares by
            weight may reach it.  The other fields then describe the slowest rail.  None: alike.
        shaper: a token bucket on every rail, which lets short messages pass faster than the link;
            None for a wire.
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

    def __post_init__(self) -> None:
        """Refuse a fabric that cannot be.

        Raises:
            ConfigError: a value out of range, or one that says nothing without another.
            UnknownLinkError: the protocol is unknown.
        """
        self._check_protocol()
        self._check_slot()
        for name in ("num_rails", "num_flows"):
            _check_positive(name, getattr(self, name), "a whole number of at least 1")
        for name in ("flow_limit_gbit_s", "capability_mb_s"):
            if getattr(self, name) is not None:
                _check_positive(name, getattr(self, name), "a positive number")

    @property
    def framing(self) -> Protocol:
        """Return the protocol spoken: the stated one, or the usual one of the technology."""
        if isinstance(self.protocol, Protocol):
            return self.protocol.over(self.link.technology)
        if self.protocol is not None:
            return find_protocol(self.protocol).over(self.link.technology)
        return default_protocol(self.link.technology)

    def _check_protocol(self) -> None:
        framing = self.framing
        if self.link.technology not in framing.technologies:
            raise ConfigError(
                f"protocol {framing.name} does not run over {self.link.technology}",
                expected=f"a link of {' or '.join(framing.technologies)}",
                got=repr(self.link.name),
                next_step=f"over this link: {', '.join(protocols_over(self.link.technology))}",
            )
        framing.check_mtu(self.mtu)

    def _check_slot(self) -> None:
        if self.link.is_soft and self.slot is not None:
            raise ConfigError(
                "a Soft-RoCE device has no PCIe slot: it is the kernel's software",
                expected="no pcie key; the link's rate says what the device can do",
                got=repr(self.slot.name),
            )
        sizes = load_data("pcie")["max_payload_bytes"]
        if self.max_payload_bytes is not None and self.max_payload_bytes not in sizes:
            raise ConfigError(
                "no such PCIe MaxPayload",
                expected=f"one of {', '.join(map(str, sizes))} bytes",
                got=str(self.max_payload_bytes),
                next_step="lspci -vv shows it as MaxPayload of DevCtl",
            )
        if self.slot is None and (self.max_payload_bytes is not None or self.rails_share_slot):
            raise ConfigError(
                "MaxPayload and shared slots say nothing without the slot",
                expected="the PCIe slot, for example '3.0x8'",
                got="none",
            )


def _check_positive(name: str, value: float, expected: str) -> None:
    whole = name.startswith("num_")
    if not 0 < value < float("inf") or (whole and not isinstance(value, int)):
        raise ConfigError(f"{name} is out of range", expected=expected, got=str(value))
