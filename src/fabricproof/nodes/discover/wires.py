"""Interfaces, HCA ports and their slots, out of the sections of ``look.sh``."""

from __future__ import annotations

import itertools
import re
from operator import itemgetter

from fabricproof.core.errors import FabricproofError
from fabricproof.nodes.discover.facts import InterfaceSeen, PortSeen, ShaperSeen, SlotSeen
from fabricproof.nodes.discover.sections import read_rows, whole_number
from fabricproof.physics import find_slot

#: /sys/class/net/*/type, from <linux/if_arp.h>
_KINDS = {"1": "ethernet", "32": "ipoib", "772": "loopback"}

#: tc prints rates as bit/s with decimal prefixes (print_rate in iproute2's lib/utils.c)
_RATE = re.compile(r"(\d+(?:\.\d+)?)([KMGT]?)bit")
_PREFIXES = {"": 1.0, "K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12}
#: and sizes as bytes with binary ones: 50023b, 256Kb, 4Mb
_SIZE = re.compile(r"(\d+(?:\.\d+)?)([KM]?)b")
_BINARY = {"": 1, "K": 1024, "M": 1024**2}
_TIME = re.compile(r"(\d+(?:\.\d+)?)(us|ms|s)")
_MILLISECONDS = {"us": 1e-3, "ms": 1.0, "s": 1e3}

#: the only driver whose devices have a parent in sysfs
SOFT_DRIVER = "rdma_rxe"

#: the line that lspci begins a function with: address, class, name
PCI_FUNCTION = re.compile(r"((?:[0-9a-f]{4,}:)?[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]) (.*)")


def read_payloads(lines: list[str], register: str = "DevCtl") -> dict[str, int]:
    """Return PCI address -> MaxPayload in bytes, out of ``lspci -vv``.

    Args:
        lines: what it prints, each function's first line included.
        register: ``DevCtl`` for the payload in force, ``DevCap`` for the best that it could be.
    """
    payloads: dict[str, int] = {}
    address, current = "", ""
    for line in lines:
        if start := PCI_FUNCTION.match(line):
            address, current = start[1], ""
        for each in ("DevCap:", "DevCtl:"):
            current = each if each in line else current
        found = re.search(r"MaxPayload (\d+) bytes", line)
        if found and current == f"{register}:" and address:
            payloads.setdefault(full_address(address), int(found[1]))
    return payloads


def full_address(address: str) -> str:
    """Return a PCI address with its domain, which lspci leaves out where it is 0."""
    return address if address.count(":") == 2 else f"0000:{address}"


def _read_slot(row: dict[str, str], payloads: dict[str, int]) -> SlotSeen | None:
    if "pci" not in row:
        return None
    numa = row.get("numa_node", "")
    return SlotSeen(
        address=row["pci"],
        name=slot_name(row.get("current_link_speed"), row.get("current_link_width")),
        best=slot_name(row.get("max_link_speed"), row.get("max_link_width")),
        max_payload_bytes=payloads.get(row["pci"]),
        numa_node=int(numa) if numa.isdecimal() else None,
    )


def slot_name(speed: str | None, width: str | None) -> str | None:
    """Return ``3.0x8`` for what sysfs prints, None for what a virtual machine makes up."""
    if not speed or not width:
        return None
    try:
        slot = find_slot(f"{speed} x{width}")
    except FabricproofError:
        return None
    return f"{slot.generation}.0x{slot.lanes}"


def read_interfaces(
    sections: dict[str, list[str]], payloads: dict[str, int]
) -> tuple[InterfaceSeen, ...]:
    """Return the network interfaces, from sysfs, ``ip``, ``tc`` and ``ethtool``."""
    addresses: dict[str, list[str]] = {}
    for line in sections.get("addresses", []):
        found = re.match(r"\d+: (\S+)\s+inet (\S+)", line)
        if found:
            addresses.setdefault(found[1].partition("@")[0], []).append(found[2])
    shapers = dict(map(_read_shaper, sections.get("qdisc", [])))
    told = dict(read_rows(sections.get("ethtool", [])))
    return tuple(
        InterfaceSeen(
            name=name,
            is_up=row.get("operstate") == "up",
            speed_mbit_s=whole_number(row.get("speed")),
            best_mbit_s=whole_number(told.get(name, {}).get("best")),
            mtu=whole_number(row.get("mtu")),
            kind=_KINDS.get(row.get("type", ""), "other"),
            is_virtual="virtual" in row,
            is_bond="bond" in row,
            is_bridge="bridge" in row,
            master=row.get("master"),
            driver=row.get("driver"),
            firmware=told.get(name, {}).get("firmware"),
            addresses=tuple(addresses.get(name, ())),
            has_addresses=bool(addresses),
            slot=_read_slot(row, payloads),
            shaper=shapers.get(name),
        )
        for name, row in sorted(read_rows(sections.get("net", [])), key=itemgetter(0))
    )


def _read_shaper(line: str) -> tuple[str, ShaperSeen | None]:
    """Return interface and token bucket of a line of ``tc qdisc show``; ("", None) for others."""
    words = line.split()
    if len(words) < 5 or words[1] != "tbf" or words[3] != "dev":
        return "", None
    values = dict(itertools.pairwise(words))
    rate = _bits(values.get("rate", ""))
    if rate is None:
        return "", None
    peak_bucket = values.get("minburst") or values.get("mtu") or ""
    return words[4], ShaperSeen(
        rate_bit_s=rate,
        burst_bytes=_bytes(values.get("burst", "").partition("/")[0]),
        peak_bit_s=_bits(values.get("peakrate", "")),
        peak_bytes=_bytes(peak_bucket.partition("/")[0]),
        queue_ms=_milliseconds(values.get("lat", "")),
    )


def _milliseconds(text: str) -> float | None:
    """Return a time as tc(8) prints it (168ms, 1.2s, 800us), in ms."""
    found = _TIME.fullmatch(text)
    return float(found[1]) * _MILLISECONDS[found[2]] if found else None


def _bits(text: str) -> float | None:
    found = _RATE.fullmatch(text)
    return float(found[1]) * _PREFIXES[found[2]] if found else None


def _bytes(text: str) -> int:
    found = _SIZE.fullmatch(text)
    return round(float(found[1]) * _BINARY[found[2]]) if found else 0


def read_ports(sections: dict[str, list[str]], payloads: dict[str, int]) -> tuple[PortSeen, ...]:
    """Return the ports of HCAs, from sysfs and ``ibv_devinfo``."""
    mtus = _read_port_mtus(sections.get("ibv_devinfo", []))
    ports = []
    for hca, row in read_rows(sections.get("infiniband", [])):
        number = whole_number(row.get("port"))
        if number is None:
            continue
        # The kernel names no driver of a device that has no hardware.
        is_soft = "soft" in row
        parent = row.get("parent", "") if is_soft else None
        ports.append(
            PortSeen(
                hca=hca,
                port=number,
                is_active="ACTIVE" in row.get("state", "").upper().split(),
                state=row.get("state", ""),
                rate=row.get("rate", ""),
                layer=row.get("link_layer", "InfiniBand"),
                driver=row.get("driver") or (SOFT_DRIVER if is_soft else None),
                firmware=row.get("firmware"),
                board=row.get("board") or row.get("type"),
                netdev=row.get("netdev") or parent or None,
                parent=parent,
                mtu=mtus.get((hca, number)),
                slot=_read_slot(row, payloads),
            )
        )
    return tuple(sorted(ports, key=lambda each: (each.hca, each.port)))


def _read_port_mtus(lines: list[str]) -> dict[tuple[str, int], int]:
    """Return (HCA, port) -> active MTU in bytes, from ``ibv_devinfo``."""
    mtus: dict[tuple[str, int], int] = {}
    hca, port = "", 0
    for line in lines:
        key, _, value = (part.strip() for part in line.partition(":"))
        if key == "hca_id":
            hca, port = value, 0
        elif key == "port" and value.isdecimal():
            port = int(value)
        elif key == "active_mtu" and (found := re.match(r"\d+", value)):
            mtus[hca, port] = int(found[0])
    return mtus
