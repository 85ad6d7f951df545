"""Which fabrics a machine's ports and interfaces make.  Pure: facts in, drafts out.

What a machine does not say stays open: a fabric without a link is judged by nothing, and a fabric
without a slot has wide bounds; neither calls a true number impossible.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field

from fabricproof.nodes.discover.cluster import Facts, Host
from fabricproof.nodes.discover.draft import guess, seen
from fabricproof.nodes.rates import shaped_link, soft_link
from fabricproof.physics import SOFT_ROCE, SOFT_ROCE_NAME, ethernet_name, soft_path_mtu
from fabricproof.traffic.transports import DEVICE_NAMES


@dataclass(frozen=True, kw_only=True)
class RailDraft:
    """One rail: a netdev or HCA port, its slot and MaxPayload if known.

    Attributes:
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
    """One fabric, without a name.  Two drafts are equal if a site would say the same of both.

    Attributes:
        kind: what its name begins with, a key of :data:`_TRANSPORTS`.
        link: the link's name, None if the rate is unknown.
        rails: at least one.
        protocol: None for the link's usual one.
        shaper: keys of ``shaper`` in fabric.toml.
    """

    kind: str
    link: str | None
    rails: tuple[RailDraft, ...]
    protocol: str | None = None
    mtu: int | None = None
    shaper: tuple[tuple[str, int], ...] = ()
    link_note: str = field(default="", compare=False)
    mtu_note: str = field(default="", compare=False)
    description: str = field(default="", compare=False)

    @property
    def transport(self) -> str | None:
        """What MPI takes for it; None for TCP."""
        return _TRANSPORTS[self.kind]

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


_TRANSPORTS = {
    "ib": "ucx",
    "roce": "ucx",
    "softroce": "ucx",
    "opa": "libfabric",
    "efa": "libfabric",
    "hsn": "libfabric",
    "eth": None,
}

#: interfaces that tools make for themselves
_HOUSEKEEPING = re.compile(r"(docker|virbr|veth|cali|cni|flannel|br-|tun|tap|wg|ifb|dummy|vnet)")


def find_fabrics(host: Host) -> tuple[list[FabricDraft], list[str]]:
    """Return the fabrics of a machine, and a sentence for each port that is in none."""
    interfaces, left_out = host.parts("interface"), list[str]()
    groups: dict[tuple[str, object, int | None, object], list[str]] = {}
    ports = host.parts("port")
    for name, facts in ports.items():
        if reason := _no_port(name, facts):
            left_out.append(f"{name}: {reason}")
            continue
        kind, stated = _kind_of_port(facts), facts.get("mtu")
        mtu = stated if isinstance(stated, int) else None
        below = interfaces.get(str(facts.get("parent")), {})
        if kind == "softroce" and mtu is None and isinstance(below.get("mtu"), int):
            mtu = soft_path_mtu(int(below["mtu"]))
        shaper = _shaper(below) if kind == "softroce" else None
        groups.setdefault((kind, facts.get("link"), mtu, shaper), []).append(name)
    drafts = []
    for (kind, _, bytes_, _), names in groups.items():
        make = _soft if kind == "softroce" else _verbs
        drafts.append(make(host, kind, bytes_, names))
    has_addresses = any(facts.get("addresses") for facts in interfaces.values())
    ethernet: dict[tuple[object, ...], list[str]] = {}
    devices = {facts.get("cxi") for facts in interfaces.values()}
    for name, facts in interfaces.items():
        if name in devices:
            continue  # it stands there a second time, under its interface's name
        why = _no_interface(name, facts, has_addresses=has_addresses)
        if why:
            left_out.append(f"{name}: {why}")
        elif why is None:
            key = (_rate_name(facts), facts.get("mtu"), _shaper(facts))
            ethernet.setdefault(key, []).append(name)
    return [*drafts, *(_ethernet(host, names) for names in ethernet.values())], left_out


def _kind_of_port(facts: Facts) -> str:
    driver = str(facts.get("driver", ""))
    if facts.get("kind") == SOFT_ROCE:
        return "softroce"
    other = {"efa": "efa", "hfi1": "opa"}.get(driver)
    return other or ("roce" if facts.get("layer") == "Ethernet" else "ib")


def _no_port(name: str, facts: Facts) -> str:
    state = str(facts.get("state", ""))
    if "ACTIVE" not in state.upper().split():
        return f"{state or 'of unknown state'}, not ACTIVE"
    if _kind_of_port(facts) == "opa" and not DEVICE_NAMES["opa"].fullmatch(name):
        return "Omni-Path, renamed: libfabric takes its unit, hfi1_UNIT"
    return ""


def _shaper(facts: Facts) -> tuple[tuple[str, object], ...] | None:
    """Return what tells one shaper from another; None without one."""
    if "shaped_to_mbit_s" not in facts:
        return None
    return tuple((key, value) for key, value in facts.items() if key.startswith("shape"))


def _soft(host: Host, kind: str, mtu: int | None, names: list[str]) -> FabricDraft:
    """Return the fabric of software devices, whose rate in sysfs says nothing."""
    ports = host.parts("port")
    first, hca = ports[names[0]], names[0].partition(":")[0]
    parent = str(first.get("parent", ""))
    below = host.parts("interface").get(parent, {})
    shaped = "shaped_to_mbit_s" in below
    review = guess(
        f"link left out, nothing is judged by this fabric: {hca} is {SOFT_ROCE_NAME}, which has "
        f"no rate of its own ({first.get('rate_in_sysfs', 'none')!r} in sysfs is made up): link = "
        f'"{SOFT_ROCE_NAME} ..." with the rate that was measured',
        f"ib_write_bw -d {hca} between two idle nodes",
    )
    known = guess(
        f"what {parent} is shaped to, as the wire it stands for; no HCA",
        f"tc qdisc show dev {parent}",
    )
    return FabricDraft(
        kind=kind,
        link=soft_link(below) if shaped else None,
        rails=tuple(_rail(host, each, {}, f"over {ports[each].get('parent')}") for each in names),
        protocol="rocev2",
        mtu=mtu,
        mtu_note=seen(host.name, "the path MTU, not the interface's") if mtu else "",
        shaper=shaped_link(below)[1] if shaped else (),
        link_note=known if shaped else review,
        description=f"{first.get('driver')}: {SOFT_ROCE_NAME}, software over {parent or 'nothing'}",
    )


def _verbs(host: Host, kind: str, mtu: int | None, names: list[str]) -> FabricDraft:
    ports = host.parts("port")
    first, (hca, _, port) = ports[names[0]], names[0].partition(":")
    rate, link = first.get("rate_gbit_s"), first.get("link")
    said = f"sysfs says {rate} Gb/s" if rate else "sysfs says no rate"
    check = f"cat /sys/class/infiniband/{hca}/ports/{port}/rate"
    note = seen(host.name, said)
    if link is None:
        note = guess(f"link left out, {said}: nothing is judged by this fabric", check)
    elif kind in {"efa", "opa"}:
        note = guess(f"driver {first.get('driver')}, {said}", check)
    framed_by_mtu = kind in {"ib", "roce"} and mtu is not None
    board = first.get("psid") or first.get("board") or first.get("type")
    return FabricDraft(
        kind=kind,
        link=None if link is None else str(link),
        rails=tuple(_rail(host, each, ports[each], _firmware(ports[each])) for each in names),
        protocol="rocev2" if kind == "roce" else None,
        mtu=mtu if framed_by_mtu else None,
        mtu_note=seen(host.name, "ibv_devinfo active_mtu") if framed_by_mtu else "",
        link_note=note,
        description=", ".join(str(e) for e in (first.get("driver"), board, _firmware(first)) if e),
    )


def _firmware(facts: Facts) -> str:
    return f"firmware {facts['firmware']}" if facts.get("firmware") else ""


def _rail(host: Host, interface: str, facts: Facts, remark: str) -> RailDraft:
    """Return a rail; a slot that trained below its card's best is a guess, not a fact."""
    if "pci" not in facts:
        return RailDraft(interface=interface, note=seen(host.name, remark))
    address, slot, best = (facts.get(key) for key in ("pci", "pcie", "pcie_best"))
    numa = f"NUMA node {facts['numa_node']}" if "numa_node" in facts else ""
    note = seen(host.name, "; ".join(filter(None, (remark, str(address), numa))))
    if slot and best and best != slot:
        why = f"{note}; trained to {slot}, its card could do {best}: which is right?"
        note = guess(why, f"lspci -vv -s {address}")
    payload = facts.get("max_payload_bytes")
    return RailDraft(
        interface=interface,
        pcie=str(slot) if slot else None,
        max_payload_bytes=payload if slot and isinstance(payload, int) else None,
        card=str(address).rpartition(".")[0],
        note=note,
    )


def _no_interface(name: str, facts: Facts, *, has_addresses: bool) -> str | None:
    """Return why an interface is no rail, None if it is one, "" if nobody would ask."""
    kind, virtual = facts.get("kind"), facts.get("virtual")
    if kind == "loopback" or virtual == "bridge" or _HOUSEKEEPING.match(name):
        return ""
    cxi = str(facts.get("cxi", ""))
    is_unnamed = _is_slingshot(facts) and not DEVICE_NAMES["slingshot"].fullmatch(cxi)
    checks = (
        (kind == "ipoib", "IP over InfiniBand: the HCA port itself is the rail"),
        (kind != "ethernet", "no Ethernet"),
        ("master" in facts, f"part of {facts.get('master')}"),
        (facts.get("state") != "up", "no link"),
        (is_unnamed, "Slingshot, and sysfs does not say which device of libfabric it is"),
        (
            has_addresses and not facts.get("addresses"),
            "has no IPv4 address, so that no TCP goes over it",
        ),
        (
            virtual == "yes" and "shaped_to_mbit_s" not in facts,
            f"virtual and not shaped: {facts.get('speed_mbit_s', 'no')} Mb/s is what its kind says",
        ),
    )
    return next((reason for applies, reason in checks if applies), None)


def _rate_name(facts: Facts) -> str | None:
    speed = facts.get("speed_mbit_s")
    if "shaped_to_mbit_s" in facts:
        return shaped_link(facts)[0]
    if not isinstance(speed, int):
        return None
    if _is_slingshot(facts):
        return {200_000: "Slingshot 200", 400_000: "Slingshot 400"}.get(speed)
    return ethernet_name(speed / 1000)


def _is_slingshot(facts: Facts) -> bool:
    return str(facts.get("driver", "")).startswith("cxi")


def _ethernet(host: Host, names: list[str]) -> FabricDraft:
    interfaces = host.parts("interface")
    first, link = interfaces[names[0]], _rate_name(interfaces[names[0]])
    is_slingshot = _is_slingshot(first)
    mtu = first.get("mtu")
    return FabricDraft(
        kind="hsn" if is_slingshot else "eth",
        link=link,
        rails=tuple(_ethernet_rail(host, each, interfaces[each]) for each in names),
        protocol=None if is_slingshot else "tcp",
        # A frame of Slingshot's own is not the interface's MTU.
        mtu=mtu if isinstance(mtu, int) and not is_slingshot else None,
        mtu_note=seen(host.name),
        shaper=shaped_link(first)[1] if "shaped_to_mbit_s" in first else (),
        link_note=_ethernet_note(host, names[0], first, link),
        description=str(first.get("driver", "virtual")),
    )


def _ethernet_note(host: Host, name: str, facts: Facts, link: str | None) -> str:
    if "shaped_to_mbit_s" in facts:
        return guess("tc-tbf's rate, as the wire it stands for", f"tc qdisc show dev {name}")
    check = f"ethtool {name}"
    if link is None:
        why = "link left out, the driver says no rate: nothing is judged by this fabric"
        return guess(why, check)
    if facts.get("virtual") == "bond":
        return guess("the bond's slaves together; one flow takes one of them", check)
    best, speed = facts.get("speed_best_mbit_s"), facts.get("speed_mbit_s")
    if isinstance(best, int) and isinstance(speed, int) and best > speed:
        return guess(f"{host.name} says {speed} Mb/s, the port could do {best}: which?", check)
    return seen(host.name, f"the driver says {speed} Mb/s")


def _ethernet_rail(host: Host, interface: str, facts: Facts) -> RailDraft:
    # The cxi provider has names of its own (fi_cxi(7): FI_CXI_DEVICE_NAME).
    name = str(facts.get("cxi", interface)) if _is_slingshot(facts) else interface
    addresses = ", ".join(str(facts.get("addresses", "")).split())
    under = f"under {interface}" if name != interface else ""
    remark = (under, str(facts.get("driver", "")), addresses, _firmware(facts))
    return _rail(host, name, facts, ", ".join(filter(None, remark)))


def name_fabrics(drafts: Iterable[FabricDraft]) -> dict[str, FabricDraft]:
    """Return the drafts by name, equal ones once: ``ib0``, ``eth0``, ``eth1``..."""
    named: dict[str, FabricDraft] = {}
    for draft in drafts:
        if draft not in named.values():
            count = sum(each.kind == draft.kind for each in named.values())
            named[f"{draft.kind}{count}"] = draft
    return named
