"""What ``look.py`` printed on a node, read into a :class:`Machine`: what it is made of, plainly.

A look may have been cut off, and a tool may be absent or hang: then what was seen counts, and
what was not is named.  A line that is not understood says nothing.
"""

from __future__ import annotations

import itertools
import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from fabricproof.core.errors import FabricproofError
from fabricproof.core.units import by_key, digits_of
from fabricproof.nodes.inventory.facts import (
    Machine,
    Momentary,
    ReadTrouble,
    ReadTroubleKind,
    Value,
)
from fabricproof.nodes.rates import verbs_link
from fabricproof.physics import SOFT_ROCE, find_slot

Said = Mapping[str, Value | None]
Row = Annotated[dict[str, str], Field(default_factory=dict)]
Rows = Annotated[dict[str, dict[str, str]], Field(default_factory=dict)]

#: the script that a node runs
LOOK = Path(__file__).parents[1] / "look.py"

#: tool -> what nobody else says
_ONLY_BY = {
    "ethtool": "offloads, rings, queues, fastest rate and transceivers of interfaces",
    "lspci": "names of cards and MaxPayload",
    "ip": "addresses",
    "tc": "shapers of interfaces",
    "ibv_devinfo": "MTU of ports",
}


class NodeLook(BaseModel):
    """What ``look.py`` printed: sysfs by interface and port, answers of tools by command line."""

    model_config = ConfigDict(frozen=True)

    reached: str
    host: Row
    numa: Rows
    net: Rows
    infiniband: Rows
    tuning: Row
    software: Row
    tools: Row
    pings: Row
    free_bytes: Annotated[dict[str, int], Field(default_factory=dict)]
    absent: tuple[str, ...] = ()
    silent: tuple[str, ...] = ()

    def lines(self, command: str) -> list[str]:
        """Return what a command printed; nothing if it was not asked or said nothing."""
        return self.tools.get(command, "").splitlines()

    def pairs(self, command: str) -> list[tuple[str, str]]:
        """Return its lines ``key: value``, in their order."""
        split = (line.partition(":") for line in self.lines(command))
        return [(key.strip(), value.strip()) for key, mark, value in split if mark]


def read_look(text: str) -> NodeLook | None:
    """Return what a look printed, which may stand behind a greeting; None if that is no look."""
    try:
        return NodeLook.model_validate_json(text[max(0, text.find("{")) :])
    except ValidationError:
        return None


def read_machine(text: str, node: str, rails: Collection[str] = ()) -> Machine:
    """Return what a node is made of, out of what ``look.py`` printed, perhaps nothing.

    ``rails`` are kept whatever they are where no addresses were told.
    """
    look = read_look(text)
    if look is None:
        trouble = ReadTrouble(
            text="everything: the look left nothing", kind=ReadTroubleKind.NO_LOOK
        )
        return Machine(node=node, troubles=(trouble,))
    return machine_of(look, node, rails)


def machine_of(look: NodeLook, node: str, rails: Collection[str] = ()) -> Machine:
    """Return what a look shows of its node."""
    parts = ((part, _said(facts)) for part, facts in _parts(look, rails))
    pattern = re.compile(r"(\S+) dev (\S+) lladdr (\S+)")
    heard = [found for line in look.lines("ip -4 neigh show") if (found := pattern.match(line))]
    now = Momentary(
        macs={name: row["mac"] for name, row in look.net.items() if "mac" in row},
        neighbours={f"{each[2]} {each[1]}": each[3] for each in heard},
        free_bytes=look.free_bytes,
        pings=look.pings,
    )
    facts = {part: facts for part, facts in parts if facts}
    return Machine(node=node, facts=facts, troubles=tuple(_troubles(look)), now=now)


def _said(facts: Said) -> dict[str, Value]:
    """Return the facts that were said, whole numbers as numbers, in a fixed order."""
    found: dict[str, Value] = {}
    for name, value in sorted(facts.items()):
        plain = value.strip() if isinstance(value, str) else value
        if plain is not None and plain != "":
            number = digits_of(plain) if isinstance(plain, str) else None
            found[name] = plain if number is None else number
    return found


def _parts(look: NodeLook, rails: Collection[str]) -> Iterator[tuple[str, Said]]:
    tuning: dict[str, Value | None] = dict(look.tuning)
    processor = {key: tuning.pop(key, None) for key in ("cpu", "microcode")}
    yield "node", {key: look.host.get(key) for key in ("os", "kernel", "arch", "cpus")} | processor
    governors = re.findall(r"(\S+) x \d+", look.tuning.get("governor", ""))
    if len(governors) == 1:
        tuning["governor"] = governors[0]
    chosen = re.search(r"\[(\w+)\]", look.tuning.get("huge_pages", ""))
    turbo = {"0": "on", "1": "off"}.get(str(tuning.pop("no_turbo", None)))
    boost = {"1": "on", "0": "off"}.get(str(tuning.pop("boost", None)))
    yield "tuning", tuning | {"huge_pages": chosen and chosen[1], "turbo": turbo or boost}
    for name, row in look.numa.items():
        yield f"numa {name}", row
    functions = {row["pci"]: _function(look, row["pci"]) for row in _rows(look) if "pci" in row}
    addresses = by_key(
        (found[1], found[2])
        for line in look.lines("ip -o -4 addr show")
        if (found := re.match(r"\d+: ([^\s@]+)\S*\s+inet (\S+)", line))
    )
    shapers = dict(map(_shaper, look.lines("tc qdisc show")))
    neighbours = read_neighbours(look.lines("lldpctl -f keyvalue"))
    parents = {row["parent"] for row in look.infiniband.values() if "parent" in row}
    kept = parents | set(() if addresses else rails)
    for name, row in sorted(look.net.items()):
        kind = _KINDS.get(row.get("type", ""), "other")
        # Interfaces of containers come and go with theirs.
        is_of_node = "virtual" not in row or row["virtual"] == "bond" or name in addresses
        if name not in kept and (kind == "loopback" or not is_of_node):
            continue
        facts: dict[str, Value | None] = {
            **_nic(look, name),
            **neighbours.get(name, {}),
            **_slot(look, row, functions),
            **({"driver": row["driver"]} if "driver" in row else {}),
            **shapers.get(name, {}),
            "kind": kind,
            "virtual": row.get("virtual"),
            "cxi": row.get("cxi"),
            "state": row.get("operstate"),
            "speed_mbit_s": digits_of(row.get("speed", "")) or None,
            "mtu": digits_of(row.get("mtu", "")) or None,
            "master": row.get("master"),
            "mac": None if "virtual" in row else row.get("mac"),
            "addresses": " ".join(addresses.get(name, ())),
        }
        yield f"interface {name}", facts
        if "cxi" in row:  # the same card, as a rail of libfabric's cxi provider
            own = {"mtu", "mac", "addresses", "master", "cxi"}
            device = {fact: value for fact, value in facts.items() if fact not in own}
            yield f"interface {row['cxi']}", device
    verbs = _verbs(look)
    for name, row in sorted(look.infiniband.items()):
        yield f"port {name}", verbs.get(name, {}) | _port(row, _slot(look, row, functions))


def _rows(look: NodeLook) -> Iterator[dict[str, str]]:
    yield from look.net.values()
    yield from look.infiniband.values()


#: /sys/class/net/*/type, from <linux/if_arp.h>
_KINDS = {"1": "ethernet", "32": "ipoib", "772": "loopback"}


def _function(look: NodeLook, address: str) -> Said:
    """Return what lspci says of a PCI function: the name, MaxPayload in force and at best."""
    facts: dict[str, Value] = {}
    register = ""
    for line in look.lines(f"lspci -vv -s {address}"):
        if start := re.match(r"[0-9a-f:]+\.[0-7] [^:]*: (.*)", line):
            name = re.sub(r" \(rev \w+\).*| \(prog-if.*", "", start[1]).strip()
            facts.setdefault("model", name)
        register = next((each for each in ("DevCap:", "DevCtl:") if each in line), register)
        payload = re.search(r"MaxPayload (\d{1,9}) bytes", line)
        if payload and register:
            best = "_best" if register == "DevCap:" else ""
            facts.setdefault(f"max_payload{best}_bytes", int(payload[1]))
    return facts


def slot_name(speed: str | None, width: str | None) -> str | None:
    """Return ``3.0x8`` for what sysfs prints; None for what a virtual machine makes up."""
    try:
        slot = find_slot(f"{speed} x{width}")
    except FabricproofError:
        return None
    return f"{slot.generation}.0x{slot.lanes}"


def _slot(look: NodeLook, row: Mapping[str, str], functions: Mapping[str, Said]) -> Said:
    if "pci" not in row:
        return {}
    cpus = "left to irqbalance" if look.tuning.get("irqbalance") == "runs" else row.get("irq_cpus")
    return {
        **{name: row.get(name) for name in ("pci", "ids", "subsystem", "driver_version", "irqs")},
        "numa_node": digits_of(row.get("numa_node", "")),
        **functions[row["pci"]],
        "pcie": slot_name(row.get("current_link_speed"), row.get("current_link_width")),
        "pcie_best": slot_name(row.get("max_link_speed"), row.get("max_link_width")),
        "pcie_best_of_slot": slot_name(row.get("above_speed"), row.get("above_width")),
        "irq_cpus": cpus if row.get("irqs") else None,
    }


#: tc prints rates as bit/s with decimal prefixes (print_rate in iproute2's lib/utils.c), sizes as
#: bytes with binary ones, times in s, ms or us
_UNITS = {
    "bit": 1.0,
    "Kbit": 1e3,
    "Mbit": 1e6,
    "Gbit": 1e9,
    "Tbit": 1e12,
    "b": 1.0,
    "Kb": 1024.0,
    "Mb": 1024.0**2,
    "us": 1e-3,
    "ms": 1.0,
    "s": 1e3,
}


def _shaper(line: str) -> tuple[str, Said]:
    """Return interface and token bucket of a line of ``tc qdisc show``; nothing for another's."""
    words = line.split()
    if words[1:2] != ["tbf"] or words[3:4] != ["dev"] or len(words) < 5:
        return "", {}
    values = {}
    for name, word in itertools.pairwise(words):
        found = re.fullmatch(r"(\d{1,18}(?:\.\d+)?)([A-Za-z]+)(/\d+)?", word)
        if found and found[2] in _UNITS:
            values[name] = float(found[1]) * _UNITS[found[2]]
    if not values.get("rate"):
        return "", {}
    burst, peak = values.get("burst", 0), values.get("peakrate")
    bucket = values.get("minburst") or values.get("mtu")
    # tc-tbf(8): the longest wait is (limit - burst) / rate, shown in whole ms: two digits of it.
    limit = values["rate"] / 8e3 * values["lat"] + burst if "lat" in values else None
    return words[4], {
        "shaped_to_mbit_s": round(values["rate"] / 1e6),
        "shaper_burst_bytes": round(burst) or None,
        "shaper_peak_mbit_s": round(peak / 1e6) if peak else None,
        "shaper_peak_bytes": round(bucket) if peak and bucket else None,
        "shaper_queue_bytes": None if limit is None else int(float(f"{limit:.1e}")),
    }


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


def _nic(look: NodeLook, name: str) -> Said:
    """Return what ``ethtool`` says of an interface with its several options."""
    link, driver = dict(look.pairs(f"ethtool {name}")), dict(look.pairs(f"ethtool -i {name}"))
    features = dict(look.pairs(f"ethtool -k {name}"))
    on = [word for key, word in OFFLOADS.items() if features.get(key, "").split()[:1] == ["on"]]
    pause, cable = dict(look.pairs(f"ethtool -a {name}")), look.pairs(f"ethtool -m {name}")
    supported = look.tools.get(f"ethtool {name}", "").partition("Supported pause frame")[0]
    modes = [int(each) for each in re.findall(r"\b(\d{1,9})base", supported)]
    told = {
        "driver": driver.get("driver"),
        "firmware": driver.get("firmware-version"),
        "autonegotiation": link.get("Auto-negotiation"),
        "lanes": link.get("Lanes"),
        "connector": link.get("Port"),
        "speed_best_mbit_s": str(max(modes)) if modes else None,
        "fec": dict(look.pairs(f"ethtool --show-fec {name}")).get("Active FEC encoding"),
        "rings": _now_of_most(look.pairs(f"ethtool -g {name}"), ("RX", "TX")),
        "queues": _now_of_most(look.pairs(f"ethtool -l {name}"), ("Combined", "RX", "TX")),
        "pause": ", ".join(
            f"{e} {pause[e]}" for e in ("RX", "TX") if pause.get(e) in {"on", "off"}
        ),
        "coalescing": _coalescing(dict(look.pairs(f"ethtool -c {name}"))),
        "offloads": (", ".join(on) or "none") if features else None,
        "transceiver": _transceiver(cable),
        "cable_serial": dict(cable).get("Vendor SN"),
    }
    return {
        fact: value
        for fact, value in told.items()
        if value and "unknown" not in value.lower() and value != "Not reported"
    }


def _now_of_most(said: Sequence[tuple[str, str]], keys: Sequence[str]) -> str:
    """Return ``RX 1024 of 8192, TX 1024 of 8192``: ethtool prints what could be, then what is."""
    most, now = dict(reversed(said)), dict(said)
    return ", ".join(
        f"{key} {now[key]} of {most[key]}"
        for key in keys
        if len([each for each, _ in said if each == key]) > 1
        and now[key].isdecimal()
        and most[key].isdecimal()
        and most[key] != "0"
    )


def _coalescing(values: Mapping[str, str]) -> str:
    adaptive = re.match(r"(on|off)\s+TX:\s*(on|off|n/a)", values.get("Adaptive RX", ""))
    parts = [f"adaptive RX {adaptive[1]}, TX {adaptive[2]}"] if adaptive else []
    # With adaptive coalescing the driver moves these by itself: they are volatile.
    fixed = [
        *(["rx-usecs"] if adaptive is None or adaptive[1] == "off" else []),
        *(["tx-usecs"] if adaptive is None or adaptive[2] != "on" else []),
    ]
    parts += [f"{key} {values[key]}" for key in fixed if values.get(key, "").isdecimal()]
    return ", ".join(parts)


def _transceiver(said: Sequence[tuple[str, str]]) -> str:
    """Return ``QSFP28 Mellanox MCP1600-C003 rev A2, 3m``, out of ``ethtool -m``."""
    values = dict(said)
    kind = re.search(r"\(([^)]*)\)", values.get("Identifier", ""))
    revision = values.get("Vendor rev")
    words = [
        kind[1].split(" or ")[0] if kind else "",
        values.get("Vendor name", ""),
        values.get("Vendor PN", ""),
        f"rev {revision}" if revision else "",
    ]
    named = " ".join(filter(None, words))
    lengths = [v for key, v in said if key.lower().startswith("length") and re.match("[1-9]", v)]
    return ", ".join([named, *lengths[:1]]) if named else ""


#: keys of ``ibv_devinfo -v``, of a port or (max_qp) of the whole HCA
_VERBS = {
    "max_mtu": "mtu_best",
    "active_mtu": "mtu",
    "active_width": "width",
    "active_speed": "lane_speed",
    "max_qp": "queue_pairs_best",
}


def _verbs(look: NodeLook) -> dict[str, dict[str, Value | None]]:
    """Return ``mlx5_0:1`` -> what ``ibv_devinfo -v`` says of a port beside sysfs."""
    ports: dict[str, dict[str, Value | None]] = {}
    hca, common, port = "", dict[str, Value | None](), ""
    for key, value in look.pairs("ibv_devinfo -v"):
        if key == "hca_id":
            hca, common, port = value, {}, ""
        elif key == "port" and value.isdecimal():
            port = f"{hca}:{value}"
            ports[port] = dict(common)
        elif key in _VERBS and value:
            plain = re.sub(r"\s*\([^)]*\)$", "", value)
            (ports[port] if port else common)[_VERBS[key]] = plain
    return ports


#: how the kernel calls the kinds of GID (Linux drivers/infiniband/core/cache.c, gid_type_str)
_ROCE_VERSIONS = {"IB/RoCE v1": "v1", "RoCE v2": "v2"}


def _port(row: Mapping[str, str], slot: Said) -> dict[str, Value | None]:
    """Return what sysfs says of a port; of a software device (rdma_rxe) no rate, for it is made up.

    Linux makes the rate from the interface's ethtool speed (drivers/infiniband/core/verbs.c,
    ib_get_eth_speed): up to 1 Gb/s all are 1X SDR.
    """
    driver, layer = row.get("driver", ""), row.get("link_layer", "InfiniBand")
    rate = re.match(r"(\d+(?:\.\d+)?) Gb/sec(?: \((\d+X))?", row.get("rate", ""))
    kind = {"efa": "efa", "hfi1": "opa"}.get(driver, "roce" if layer == "Ethernet" else "ib")
    state = row.get("state", "")
    facts: dict[str, Value | None] = {
        **slot,
        "state": state.partition(": ")[2] or state,
        "phys_state": row.get("phys_state", "").partition(": ")[2],
        "rate_gbit_s": rate[1] if rate else None,
        "width": rate[2] if rate else None,
        "link": verbs_link(kind, row.get("rate", "")),
        "layer": layer,
        "driver": driver or None,
        # Only Mellanox's board id names firmware.
        "psid" if driver.startswith("mlx") else "board": row.get("board"),
        **{name: row.get(name) for name in ("firmware", "type", "hardware", "guid")},
        "netdev": row.get("netdev") or row.get("parent"),
    }
    if layer == "InfiniBand":  # RoCE has no subnet manager
        prefix = ":".join(row.get("gid", "").split(":")[:4])
        facts |= {"lid": row.get("lid"), "sm_lid": row.get("sm_lid"), "gid_prefix": prefix}
    facts = {name: value for name, value in facts.items() if value not in {None, ""}}
    if "parent" in row:
        versions = {_ROCE_VERSIONS.get(each, each) for each in row.get("gid_types", "").split(",")}
        gids = {_kind_of_gid(each) for each in row.get("gids", "").split()}
        made_up = dict.fromkeys(("rate_gbit_s", "width", "link", "lane_speed"))
        facts |= {
            **made_up,
            "kind": SOFT_ROCE,
            "driver": driver or "rdma_rxe",
            "parent": row["parent"],
            "rate_in_sysfs": row.get("rate"),
            "roce": ", ".join(sorted(versions - {""})),
            "gids": ", ".join(sorted(gids - {""})),
        }
    return facts


def _kind_of_gid(gid: str) -> str:
    """Return what a GID is made from; empty for a slot of the table that holds none."""
    head, _, tail = gid.partition(":")
    if not tail.strip("0:"):
        return ""
    if head == "fe80":
        return "link-local"
    return "IPv4" if gid.startswith("0000:0000:0000:0000:0000:ffff:") else "IPv6"


#: ``lldpctl -f keyvalue`` (as public samples of it print): the number of the neighbour, the id of
#: its chassis after the id's type, its system name
_NEIGHBOUR = re.compile(
    r"lldp\.(?P<interface>.+?)\.(?:rid|chassis\.(?P<key>mac|ip|local|ifname|name))=(?P<value>.*)"
)


def read_neighbours(lines: Sequence[str]) -> dict[str, dict[str, Value | None]]:
    """Return the switch that LLDP names at each interface: its ``switch_id`` and name (``switch``).

    An interface with several neighbours is left out: nobody knows which of them has the cable.
    """
    found: dict[str, dict[str, Value | None]] = {}
    counted: Counter[str] = Counter()
    for match in filter(None, map(_NEIGHBOUR.fullmatch, lines)):
        facts = found.setdefault(match["interface"], {})
        if match["key"] is None:
            counted[match["interface"]] += 1
        else:
            facts["switch" if match["key"] == "name" else "switch_id"] = match["value"].strip()
    return {
        name: facts for name, facts in found.items() if counted[name] == 1 and "switch_id" in facts
    }


def _troubles(look: NodeLook) -> Iterator[ReadTrouble]:
    if look.reached not in {"end", "peers"}:
        text = f"what comes after {look.reached!r}: the look was cut off there"
        yield ReadTrouble(text=text, kind=ReadTroubleKind.CUT_OFF, section=look.reached)
    for command in dict.fromkeys(look.silent):
        kind, words = ReadTroubleKind.NO_ANSWER, tuple(command.split())
        yield ReadTrouble(text=f"no answer: {command}", kind=kind, command=words)
    for tool in look.absent:
        if tool in _ONLY_BY and (look.infiniband or tool != "ibv_devinfo"):
            text = f"{_ONLY_BY[tool]}: no {tool} on the node"
            yield ReadTrouble(text=text, kind=ReadTroubleKind.NO_TOOL, command=(tool,))
    if any("denied" in text for each, text in look.tools.items() if each.startswith("lspci")):
        text = "MaxPayload: only root may read it (lspci)"
        yield ReadTrouble(text=text, kind=ReadTroubleKind.ONLY_ROOT, command=("lspci",))
    if look.host.get("user", "0") != "0" and "ethtool" not in look.absent:
        text = "transceivers: only root may read them (ethtool -m)"
        yield ReadTrouble(text=text, kind=ReadTroubleKind.ONLY_ROOT, command=("ethtool", "-m"))
