"""Which fabrics a machine's ports and interfaces make.  Pure: facts in, drafts out.

What a machine does not say stays open: a fabric without a link is judged by nothing, and a fabric
without a slot has wide bounds; neither calls a true number impossible.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from fabricproof.nodes.discover.draft import guess, seen
from fabricproof.nodes.discover.facts import HostSeen, InterfaceSeen, PortSeen, ShaperSeen, SlotSeen
from fabricproof.nodes.discover.rates import shaped_link, soft_link, verbs_link
from fabricproof.physics import SOFT_ROCE_NAME, ethernet_name, soft_path_mtu
from fabricproof.traffic.transports import DEVICE_NAMES


@dataclass(frozen=True, kw_only=True)
class RailDraft:
    """One rail.

    Attributes:
        interface: netdev or HCA port.
        pcie: its slot, None where unknown.
        max_payload_bytes: in force there.
        card: address of the card without its function; unlike on unlike node types.
        note: how it is known; no part of what is compared.
    """

    interface: str
    pcie: str | None = None
    max_payload_bytes: int | None = None
    card: str | None = field(default=None, compare=False)
    note: str = field(default="", compare=False)


@dataclass(frozen=True, kw_only=True)
class FabricDraft:
    """One fabric, without a name.  Two drafts are equal when a site would say the same of both.

    Attributes:
        kind: ``ib``, ``opa``, ``efa``, ``roce``, ``softroce``, ``hsn`` or ``eth``: what its name
            begins with.
        link: the link's name, None where the rate is unknown.
        rails: at least one.
        protocol: None for the link's usual one.
        mtu: in bytes.
        shaper: keys of ``shaper`` in fabric.toml.
        transport: ``ucx`` or ``libfabric``.
        link_note: how the link is known.
        mtu_note: how the MTU is known.
    """

    kind: str
    link: str | None
    rails: tuple[RailDraft, ...]
    protocol: str | None = None
    mtu: int | None = None
    shaper: tuple[tuple[str, int], ...] = ()
    transport: str | None = None
    link_note: str = field(default="", compare=False)
    mtu_note: str = field(default="", compare=False)
    description: str = field(default="", compare=False)

    @property
    def shares_slot(self) -> bool:
        """Whether all rails are ports of one card whose slot is known."""
        cards = {rail.card for rail in self.rails}
        known = all(rail.pcie and rail.card for rail in self.rails)
        return known and len(self.rails) > 1 and len(cards) == 1

    @property
    def shares_some_slot(self) -> bool:
        """Whether some rails, and not all, are ports of one card, which no key can say."""
        cards = [rail.card for rail in self.rails if rail.card]
        return len(set(cards)) < len(cards) and not self.shares_slot


#: interfaces that tools make for themselves
_HOUSEKEEPING = re.compile(r"(docker|virbr|veth|cali|cni|flannel|br-|tun|tap|wg|ifb|dummy|vnet)")


def find_fabrics(host: HostSeen) -> tuple[list[FabricDraft], list[str]]:
    """Return the fabrics of a machine, and a sentence for each port that is in none."""
    left_out: list[str] = []
    drafts = [*_verbs_fabrics(host, left_out), *_ethernet_fabrics(host, left_out)]
    return drafts, left_out


def _verbs_fabrics(host: HostSeen, left_out: list[str]) -> Iterator[FabricDraft]:
    interfaces = {each.name: each for each in host.interfaces}
    groups: dict[tuple[str, str | None, int | None], list[PortSeen]] = {}
    soft: dict[tuple[int | None, ShaperSeen | None], list[PortSeen]] = {}
    for port in host.ports:
        if not port.is_active:
            state = port.state.rpartition(": ")[2] or "of unknown state"
            left_out.append(f"{port.name}: {state}, not ACTIVE")
            continue
        if port.kind == "opa" and not DEVICE_NAMES["opa"].fullmatch(port.name):
            left_out.append(f"{port.name}: Omni-Path, renamed: libfabric takes its unit, hfi1_UNIT")
            continue
        if port.is_soft:
            below = interfaces.get(port.parent or "")
            like = (_soft_mtu(port, below), below.shaper if below else None)
            soft.setdefault(like, []).append(port)
            continue
        link = verbs_link(port.kind, port.rate)
        groups.setdefault((port.kind, link, port.mtu), []).append(port)
    for (kind, link, mtu), ports in groups.items():
        yield _verbs_fabric(host, kind, link, mtu, ports)
    for (mtu, shaper), ports in soft.items():
        yield _soft_fabric(host, mtu, shaper, ports)


def _soft_mtu(port: PortSeen, below: InterfaceSeen | None) -> int | None:
    """Return the path MTU of a software device, from its interface where no tool says it."""
    if port.mtu is not None or below is None or below.mtu is None:
        return port.mtu
    return soft_path_mtu(below.mtu)


def _soft_fabric(
    host: HostSeen, mtu: int | None, shaper: ShaperSeen | None, ports: list[PortSeen]
) -> FabricDraft:
    """Return the fabric of software devices, whose rate in sysfs says nothing."""
    first = ports[0]
    review = guess(
        f"link left out, nothing is judged by this fabric: {first.hca} is {SOFT_ROCE_NAME}, which "
        f"has no rate of its own ({first.rate or 'none'!r} in sysfs is made up): link = "
        f'"{SOFT_ROCE_NAME} ..." with the rate that was measured',
        f"ib_write_bw -d {first.hca} between two idle nodes",
    )
    shaped = guess(
        f"what {first.parent} is shaped to, as the wire it stands for; no HCA",
        f"tc qdisc show dev {first.parent}",
    )
    return FabricDraft(
        kind="softroce",
        link=soft_link(shaper) if shaper else None,
        rails=tuple(_rail(host, port.name, None, f"over {port.parent}") for port in ports),
        protocol="rocev2",
        mtu=mtu,
        mtu_note=seen(host.name, "the path MTU, not the interface's") if mtu else "",
        shaper=shaped_link(shaper)[1] if shaper else (),
        transport="ucx",
        link_note=shaped if shaper else review,
        description=f"{first.driver}: {SOFT_ROCE_NAME}, software over {first.parent or 'nothing'}",
    )


def _verbs_fabric(
    host: HostSeen, kind: str, link: str | None, mtu: int | None, ports: list[PortSeen]
) -> FabricDraft:
    first = ports[0]
    said = f"sysfs says {first.rate!r}" if first.rate else "sysfs says no rate"
    check = f"cat /sys/class/infiniband/{first.hca}/ports/{first.port}/rate"
    unknown = guess(f"link left out, {said}: nothing is judged by this fabric", check)
    link_note = seen(host.name, said) if link else unknown
    if kind in {"efa", "opa"} and link:
        link_note = guess(f"driver {first.driver}, {said}", check)
    framed_by_mtu = kind in {"ib", "roce"} and mtu is not None
    return FabricDraft(
        kind=kind,
        link=link,
        rails=tuple(_verbs_rail(host, port) for port in ports),
        protocol="rocev2" if kind == "roce" else None,
        mtu=mtu if framed_by_mtu else None,
        mtu_note=seen(host.name, "ibv_devinfo active_mtu") if framed_by_mtu else "",
        transport={"ib": "ucx", "roce": "ucx"}.get(kind, "libfabric"),
        link_note=link_note,
        description=_hardware(first),
    )


def _hardware(port: PortSeen) -> str:
    parts = (port.driver, port.board, port.firmware and f"firmware {port.firmware}")
    return ", ".join(part for part in parts if part)


def _verbs_rail(host: HostSeen, port: PortSeen) -> RailDraft:
    firmware = f"firmware {port.firmware}" if port.firmware else ""
    return _rail(host, port.name, port.slot, firmware)


def _rail(host: HostSeen, interface: str, slot: SlotSeen | None, remark: str) -> RailDraft:
    """Return a rail; a slot that trained below its card's best is a guess, not a fact."""
    if slot is None:
        return RailDraft(interface=interface, note=seen(host.name, remark))
    numa = f"NUMA node {slot.numa_node}" if slot.numa_node is not None else ""
    remarks = "; ".join(part for part in (remark, slot.address, numa) if part)
    note = seen(host.name, remarks)
    if slot.name and slot.best and slot.best != slot.name:
        why = f"{note}; trained to {slot.name}, its card could do {slot.best}: which is right?"
        note = guess(why, f"lspci -vv -s {slot.address}")
    return RailDraft(
        interface=interface,
        pcie=slot.name,
        max_payload_bytes=slot.max_payload_bytes if slot.name else None,
        card=slot.card,
        note=note,
    )


def _ethernet_fabrics(host: HostSeen, left_out: list[str]) -> Iterator[FabricDraft]:
    groups: dict[tuple[str | None, int | None, object], list[InterfaceSeen]] = {}
    for interface in host.interfaces:
        reason = _no_rail(interface)
        if reason:
            left_out.append(f"{interface.name}: {reason}")
        elif reason is None:
            key = (_rate_name(interface), interface.mtu, interface.shaper)
            groups.setdefault(key, []).append(interface)
    for interfaces in groups.values():
        yield _ethernet_fabric(host, interfaces)


def _no_rail(interface: InterfaceSeen) -> str | None:
    """Return why an interface is no rail, None where it is one, "" where nobody would ask."""
    if interface.kind == "loopback" or _HOUSEKEEPING.match(interface.name) or interface.is_bridge:
        return ""
    checks = (
        (interface.kind == "ipoib", "IP over InfiniBand: the HCA port itself is the rail"),
        (interface.kind != "ethernet", "no Ethernet"),
        (interface.master is not None, f"part of {interface.master}"),
        (not interface.is_up, "no link"),
        (
            _is_slingshot(interface)
            and not DEVICE_NAMES["slingshot"].fullmatch(interface.cxi or ""),
            "Slingshot, and sysfs does not say which device of libfabric it is (device/cxi)",
        ),
        (
            interface.has_addresses and not interface.addresses,
            "has no IPv4 address, so that no TCP goes over it",
        ),
        (
            interface.is_virtual and not interface.is_bond and interface.shaper is None,
            f"virtual and not shaped: {interface.speed_mbit_s or 'no'} Mb/s is what its kind says",
        ),
    )
    return next((reason for applies, reason in checks if applies), None)


def _rate_name(interface: InterfaceSeen) -> str | None:
    if interface.shaper is not None:
        return shaped_link(interface.shaper)[0]
    speed = interface.speed_mbit_s
    if speed is None:
        return None
    if _is_slingshot(interface):
        return {200_000: "Slingshot 200", 400_000: "Slingshot 400"}.get(speed)
    return ethernet_name(speed / 1000)


def _is_slingshot(interface: InterfaceSeen) -> bool:
    return (interface.driver or "").startswith("cxi")


def _ethernet_fabric(host: HostSeen, interfaces: list[InterfaceSeen]) -> FabricDraft:
    first = interfaces[0]
    is_slingshot = _is_slingshot(first)
    link = _rate_name(first)
    return FabricDraft(
        kind="hsn" if is_slingshot else "eth",
        link=link,
        rails=tuple(_ethernet_rail(host, each) for each in interfaces),
        protocol=None if is_slingshot else "tcp",
        # A frame of Slingshot's own is not the interface's MTU.
        mtu=None if is_slingshot else first.mtu,
        mtu_note=seen(host.name),
        shaper=shaped_link(first.shaper)[1] if first.shaper else (),
        transport="libfabric" if is_slingshot else None,
        link_note=_ethernet_link_note(host, first, link),
        description=first.driver or "virtual",
    )


def _ethernet_link_note(host: HostSeen, interface: InterfaceSeen, link: str | None) -> str:
    if interface.shaper is not None:
        return guess(
            "tc-tbf's rate, as the wire it stands for", f"tc qdisc show dev {interface.name}"
        )
    check = f"ethtool {interface.name}"
    if link is None:
        return guess(
            "link left out, the driver says no rate: nothing is judged by this fabric", check
        )
    if interface.is_bond:
        return guess("the bond's slaves together; one flow takes one of them", check)
    best, speed = interface.best_mbit_s, interface.speed_mbit_s
    if best is not None and speed is not None and best > speed:
        return guess(f"{host.name} says {speed} Mb/s, the port could do {best}: which?", check)
    return seen(host.name, f"the driver says {speed} Mb/s")


def _ethernet_rail(host: HostSeen, interface: InterfaceSeen) -> RailDraft:
    parts = [interface.driver or "", *interface.addresses]
    if interface.firmware:
        parts.append(f"firmware {interface.firmware}")
    # The cxi provider has names of its own (fi_cxi(7): FI_CXI_DEVICE_NAME).
    name = interface.cxi if interface.cxi and _is_slingshot(interface) else interface.name
    parts.insert(0, f"under {interface.name}" if name != interface.name else "")
    return _rail(host, name, interface.slot, ", ".join(part for part in parts if part))


def name_fabrics(drafts: Iterable[FabricDraft]) -> dict[str, FabricDraft]:
    """Return the drafts by name, equal ones once: ``ib0``, ``eth0``, ``eth1``..."""
    named: dict[str, FabricDraft] = {}
    for draft in drafts:
        if draft not in named.values():
            count = sum(each.kind == draft.kind for each in named.values())
            named[f"{draft.kind}{count}"] = draft
    return named
