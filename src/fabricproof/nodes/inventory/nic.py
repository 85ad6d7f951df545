"""What ethtool, ibstat, ibv_devinfo and lspci say of one card beside what sysfs does.  Pure.

Each reader takes the lines of one section of ``look.sh`` and returns facts by interface, port or
PCI address.  A line that is not understood says nothing.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable

from fabricproof.core.units import digits_of
from fabricproof.nodes.discover.read import PCI_FUNCTION, full_address
from fabricproof.nodes.inventory.facts import Value

Facts = dict[str, Value]

#: the offloads that make TCP fast or slow, of the sixty that ``ethtool -k`` lists
OFFLOADS = {
    "rx-checksumming": "checksum of what arrives",
    "tx-checksumming": "checksum of what is sent",
    "scatter-gather": "scatter-gather",
    "tcp-segmentation-offload": "TSO",
    "generic-segmentation-offload": "GSO",
    "generic-receive-offload": "GRO",
    "large-receive-offload": "LRO",
    "receive-hashing": "receive hashing",
    "ntuple-filters": "ntuple filters",
    "rx-gro-hw": "GRO in hardware",
}


def read_nics(lines: Iterable[str]) -> dict[str, Facts]:
    """Return interface -> what ``ethtool`` with its several options says.

    Args:
        lines: ``INTERFACE<TAB>OPTION<TAB>key: value``, the option empty for plain ``ethtool``.
    """
    asked: dict[str, dict[str, list[tuple[str, str]]]] = {}
    for line in lines:
        name, option, text = [*line.split("\t", 2), "", ""][:3]
        key, mark, value = text.partition(":")
        if mark:
            said = asked.setdefault(name, {}).setdefault(option, [])
            said.append((key.strip(), value.strip()))
    return {name: _nic(said) for name, said in asked.items()}


def _nic(said: dict[str, list[tuple[str, str]]]) -> Facts:
    link, driver = dict(said.get("", [])), dict(said.get("-i", []))
    told = {
        "driver": driver.get("driver"),
        "firmware": driver.get("firmware-version"),
        "autonegotiation": link.get("Auto-negotiation"),
        "lanes": link.get("Lanes"),
        "connector": link.get("Port"),
        "fec": dict(said.get("--show-fec", [])).get("Active FEC encoding"),
        "rings": _now_of_most(said.get("-g", []), ("RX", "TX")),
        "queues": _now_of_most(said.get("-l", []), ("Combined", "RX", "TX")),
        "pause": _pair(dict(said.get("-a", [])), ("RX", "TX")),
        "coalescing": _coalescing(said.get("-c", [])),
        "offloads": _offloads(dict(said.get("-k", []))),
        "transceiver": _transceiver(said.get("-m", [])),
        "cable_serial": dict(said.get("-m", [])).get("Vendor SN"),
    }
    return {name: value for name, value in told.items() if value is not None and _is_said(value)}


def _is_said(value: str) -> bool:
    return bool(value) and "unknown" not in value.lower() and value != "Not reported"


def _now_of_most(said: list[tuple[str, str]], keys: Iterable[str]) -> str | None:
    """Return ``RX 1024 of 8192, TX 1024 of 8192``: ethtool prints what could be, then what is."""
    most: dict[str, str] = {}
    now: dict[str, str] = {}
    for key, value in said:
        (now if key in most else most).setdefault(key, value)
    shown = [
        f"{key} {now[key]} of {most[key]}"
        for key in keys
        if now.get(key, "").isdecimal() and most[key].isdecimal() and most[key] != "0"
    ]
    return ", ".join(shown)


def _pair(said: dict[str, str], keys: Iterable[str]) -> str:
    return ", ".join(f"{key} {said[key]}" for key in keys if said.get(key) in {"on", "off"})


def _coalescing(said: list[tuple[str, str]]) -> str:
    values = dict(said)
    adaptive = re.match(r"(on|off)\s+TX:\s*(on|off|n/a)", values.get("Adaptive RX", ""))
    parts = [f"adaptive RX {adaptive[1]}, TX {adaptive[2]}"] if adaptive else []
    # With adaptive coalescing the driver moves these by itself: they are volatile.
    if adaptive is None or adaptive[1] == "off":
        parts += [f"{key} {values[key]}" for key in ("rx-usecs",) if _number(values, key)]
    if adaptive is None or adaptive[2] != "on":
        parts += [f"{key} {values[key]}" for key in ("tx-usecs",) if _number(values, key)]
    return ", ".join(parts)


def _number(values: dict[str, str], key: str) -> bool:
    return values.get(key, "").isdecimal()


def _offloads(said: dict[str, str]) -> str:
    """Return the offloads that are on; those that are off are the rest of the known ones."""
    if not said:
        return ""
    on = [words for key, words in OFFLOADS.items() if said.get(key, "").split()[:1] == ["on"]]
    return ", ".join(on) or "none"


def _transceiver(said: list[tuple[str, str]]) -> str:
    """Return ``QSFP28 Mellanox MCP1600-C003 rev A2, 3m``, out of ``ethtool -m``."""
    values = dict(said)
    kind = re.search(r"\(([^)]*)\)", values.get("Identifier", ""))
    lengths = [
        value
        for key, value in said
        if key.lower().startswith("length") and re.match(r"[1-9]", value)
    ]
    words = [
        kind[1].split(" or ")[0] if kind else "",
        values.get("Vendor name", ""),
        values.get("Vendor PN", ""),
        f"rev {values['Vendor rev']}" if values.get("Vendor rev") else "",
    ]
    named = " ".join(word for word in words if word)
    return ", ".join([named, *lengths[:1]]) if named else ""


def read_models(lines: Iterable[str]) -> dict[str, str]:
    """Return PCI address -> name of the card, out of ``lspci``."""
    found: dict[str, str] = {}
    for line in lines:
        start = PCI_FUNCTION.match(line)
        if start:
            name = start[2].partition(": ")[2]
            found[full_address(start[1])] = re.sub(r" \(rev \w+\).*| \(prog-if.*", "", name).strip()
    return {address: name for address, name in found.items() if name}


#: of ``ibv_devinfo -v``, by port or (max_qp) for the whole HCA
_VERBS = {
    "max_mtu": "mtu_best",
    "active_width": "width",
    "active_speed": "lane_speed",
    "max_qp": "queue_pairs_best",
}


def read_verbs(lines: Iterable[str]) -> dict[str, Facts]:
    """Return ``mlx5_0:1`` -> what ``ibv_devinfo -v`` says of a port beside sysfs."""
    ports: dict[str, Facts] = {}
    hca, common, port = "", Facts(), ""
    for line in lines:
        key, _, value = (part.strip() for part in line.partition(":"))
        if key == "hca_id":
            hca, common, port = value, Facts(), ""
        elif key == "port" and value.isdecimal():
            port = f"{hca}:{value}"
            ports[port] = dict(common)
        elif key in _VERBS and value:
            plain = re.sub(r"\s*\([^)]*\)$", "", value)
            number = digits_of(plain)
            fact: Value = plain if number is None else number
            (ports[port] if port else common)[_VERBS[key]] = fact
    return ports


_IBSTAT = {
    "CA type": "model",
    "Firmware version": "firmware",
    "Hardware version": "hardware",
    "Physical state": "phys_state",
    "State": "state",
    "Rate": "rate_gbit_s",
    "Link layer": "layer",
}


def read_ibstat(lines: Iterable[str]) -> dict[str, Facts]:
    """Return ``mlx5_0:1`` -> what ``ibstat`` says of a port."""
    ports: dict[str, Facts] = {}
    hca, common, port = "", Facts(), ""
    for line in lines:
        if card := re.match(r"CA '([^']+)'", line):
            hca, common, port = card[1], Facts(), ""
        elif number := re.match(r"\s*Port (\d+):", line):
            port = f"{hca}:{number[1]}"
            ports[port] = dict(common)
        else:
            key, _, value = (part.strip() for part in line.partition(":"))
            if key in _IBSTAT and value:
                whole = digits_of(value)
                fact: Value = value if whole is None else whole
                (ports[port] if port else common)[_IBSTAT[key]] = fact
    return ports


#: ``lldpctl -f keyvalue`` (as public samples of it print): the number of the neighbour, the id of
#: its chassis after the id's type, its system name
_NEIGHBOUR = re.compile(
    r"lldp\.(?P<interface>.+?)\.(?:rid|chassis\.(?P<key>mac|ip|local|ifname|name))=(?P<value>.*)"
)


def read_neighbours(lines: Iterable[str]) -> dict[str, dict[str, Value | None]]:
    """Return the switch that LLDP names at each interface: its ``switch_id`` and name (``switch``).

    An interface with several neighbours is left out: nobody knows which of them has the cable.
    """
    found: dict[str, dict[str, Value | None]] = {}
    counted: Counter[str] = Counter()
    for line in lines:
        match = _NEIGHBOUR.fullmatch(line)
        if match is None:
            continue
        name, key = match["interface"], match["key"]
        if key is None:
            counted[name] += 1
        else:
            facts = found.setdefault(name, {})
            facts["switch" if key == "name" else "switch_id"] = match["value"].strip()
    return {
        name: facts for name, facts in found.items() if counted[name] == 1 and "switch_id" in facts
    }
