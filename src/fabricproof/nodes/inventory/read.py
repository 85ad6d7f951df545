"""What ``look.sh`` printed on a node of a job, read into a :class:`Machine`.  Text in, record out.

A look may have been cut off, and a tool may be absent or hang: then what was seen counts, and
what was not is named.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping

from fabricproof.core.units import digits_of
from fabricproof.nodes.discover.facts import InterfaceSeen, PortSeen, ShaperSeen, SlotSeen
from fabricproof.nodes.discover.rates import verbs_link
from fabricproof.nodes.discover.read import (
    TROUBLES,
    read_interfaces,
    read_pairs,
    read_payloads,
    read_ports,
    read_rows,
    slot_name,
    split_sections,
)
from fabricproof.nodes.inventory.facts import Machine, ReadTrouble, ReadTroubleKind, Value
from fabricproof.nodes.inventory.nic import (
    read_ibstat,
    read_models,
    read_neighbours,
    read_nics,
    read_verbs,
)
from fabricproof.physics import SOFT_ROCE

Facts = dict[str, Value]

#: tool -> what nobody else says
_ONLY_BY = {
    "ethtool": "offloads, rings, queues, fastest rate and transceivers of interfaces",
    "lspci": "names of cards and MaxPayload",
    "ip": "addresses",
    "tc": "shapers of interfaces",
    "ibv_devinfo": "MTU of ports",
}

#: how ``look.sh`` begins a ``#!!`` line about a command that hung
_NO_ANSWER = "no answer"

#: sections in which one answer of a tool takes several lines
_SEVERAL_LINES = frozenset({"nic", "transceiver"})

#: of these, what has no meaning on a node without HCA
_OF_HCAS = frozenset({"ibv_devinfo"})

#: what an interface of Slingshot says for sockets, and not for the device under it
_OF_SOCKETS = frozenset({"mtu", "mac", "addresses", "master"})

_TUNING = (
    *(
        "smt",
        "irqbalance",
        "governor",
        "frequency_driver",
        "huge_pages",
        "locked_memory",
        "options",
    ),
    *("numa_balancing", "rmem_max", "wmem_max", "busy_poll", "netdev_max_backlog"),
    *("tcp_rmem", "tcp_wmem", "tcp_congestion_control", "tcp_mtu_probing"),
)


def read_machine(text: str, node: str, rails: Collection[str] = ()) -> Machine:
    """Return what a node is made of.

    ``text`` is what ``look.sh /sys node`` printed, perhaps cut off, perhaps empty; ``rails`` are
    kept whatever they are where no addresses were told.
    """
    whole_lines = text[: text.rfind("\n") + 1]
    sections = split_sections(whole_lines)
    last = next((name for name in reversed(sections) if name != TROUBLES), None)
    cut = last if last != "end" else None
    if cut in sections and cut in _SEVERAL_LINES:
        # The rest of a tool's last answer may be missing.
        lines = sections[cut]
        answer = lines[-1].split("\t")[:2] if lines else []
        sections[cut] = [line for line in lines if line.split("\t")[:2] != answer]
    if cut == "lldp":
        sections[cut] = []  # an interface's second neighbour may be missing
    return Machine(
        node=node,
        facts={part: facts for part, facts in _parts(sections, rails) if facts},
        troubles=tuple(_troubles(sections, cut)),
    )


def _parts(sections: dict[str, list[str]], rails: Collection[str]) -> Iterator[tuple[str, Facts]]:
    host = read_pairs(sections.get("host", []))
    machine = read_pairs(sections.get("machine", []))
    keys = ("os", "kernel", "arch", "cpus")
    processor = {"cpu": machine.get("cpu_model"), "microcode": machine.get("microcode")}
    yield "node", _said({key: host.get(key) for key in keys} | processor)
    yield "tuning", _said(_tuning(machine))
    for name, row in read_rows(sections.get("numa", [])):
        yield f"numa {name}", _said({key: row.get(key) for key in ("cpus", "distance")})
    cards = _Cards(sections, balanced=machine.get("irqbalance") == "runs")
    ports = read_ports(sections, cards.payloads)
    kept = {port.parent for port in ports} | set(() if sections.get("addresses") else rails)
    for each in read_interfaces(sections, cards.payloads):
        # Interfaces of containers come and go with theirs.
        is_of_node = not each.is_virtual or each.is_bond or bool(each.addresses)
        if each.name in kept or (is_of_node and each.kind != "loopback"):
            facts = cards.interface(each)
            yield f"interface {each.name}", _said(facts)
            if each.cxi is not None:  # the same card, as a rail of libfabric's cxi provider
                named = {name: value for name, value in facts.items() if name not in _OF_SOCKETS}
                yield f"interface {each.cxi}", _said(named)
    for port in ports:
        yield f"port {port.name}", _said(cards.port(port))


def _said(facts: Mapping[str, Value | None]) -> Facts:
    """Return the facts that were said, whole numbers as numbers, in a fixed order."""
    found: Facts = {}
    for name, value in sorted(facts.items()):
        plain = value.strip() if isinstance(value, str) else value
        if plain is not None and plain != "":
            number = digits_of(plain) if isinstance(plain, str) else None
            found[name] = plain if number is None else number
    return found


def _tuning(machine: Mapping[str, str]) -> dict[str, Value | None]:
    facts: dict[str, Value | None] = {name: machine.get(name) for name in _TUNING}
    governors = re.findall(r"(\S+) x (\d+)", machine.get("governor", ""))
    if len(governors) == 1:
        facts["governor"] = governors[0][0]
    chosen = re.search(r"\[(\w+)\]", machine.get("huge_pages", ""))
    facts["huge_pages"] = chosen[1] if chosen else None
    turbo = {"0": "on", "1": "off"}.get(machine.get("no_turbo", ""))
    facts["turbo"] = turbo or {"1": "on", "0": "off"}.get(machine.get("boost", ""))
    return facts


class _Cards:
    """All that several tools say of interfaces, ports and the slots below them."""

    def __init__(self, sections: dict[str, list[str]], *, balanced: bool) -> None:
        lspci = sections.get("lspci", [])
        self.balanced = balanced
        self.payloads = read_payloads(lspci)
        self._payload_limits = read_payloads(lspci, "DevCap")
        self._models = read_models(lspci)
        nic = [*sections.get("nic", []), *sections.get("transceiver", [])]
        self._nics = read_nics(nic)
        self._verbs = read_verbs(sections.get("ibv_devinfo", []))
        self._ibstat = read_ibstat(sections.get("ibstat", []))
        self._neighbours = read_neighbours(sections.get("lldp", []))
        self._rows = dict(read_rows(sections.get("net", [])))
        self._port_rows = {
            f"{hca}:{row.get('port')}": row
            for hca, row in read_rows(sections.get("infiniband", []))
        }

    def interface(self, each: InterfaceSeen) -> dict[str, Value | None]:
        row = self._rows.get(each.name, {})
        shaper = each.shaper
        return {
            **self._nics.get(each.name, {}),
            **self._neighbours.get(each.name, {}),
            **self._slot(each.slot, row),
            **({"driver": each.driver} if each.driver else {}),
            "kind": each.kind,
            "state": row.get("operstate"),
            "speed_mbit_s": each.speed_mbit_s,
            "speed_best_mbit_s": each.best_mbit_s,
            "mtu": each.mtu,
            **({"firmware": each.firmware} if each.firmware else {}),
            "master": each.master,
            "shaped_to_mbit_s": round(shaper.rate_bit_s / 1e6) if shaper else None,
            "shaper_queue_bytes": _queue_bytes(shaper),
            "mac": row.get("mac"),
            "addresses": " ".join(each.addresses),
        }

    def port(self, port: PortSeen) -> dict[str, Value | None]:
        row = self._port_rows.get(port.name, {})
        rate = re.match(r"(\d+(?:\.\d+)?) Gb/sec(?: \((\d+X))?", port.rate)
        slot = self._slot(port.slot, row)
        facts: dict[str, Value | None] = {
            **self._ibstat.get(port.name, {}),
            **self._verbs.get(port.name, {}),
            **{name: value for name, value in slot.items() if value is not None},
            **_known(
                state=port.state.partition(": ")[2] or port.state,
                phys_state=row.get("phys_state", "").partition(": ")[2],
                rate_gbit_s=rate[1] if rate else None,
                width=rate[2] if rate else None,
                link=verbs_link(port.kind, port.rate),
                layer=port.layer,
                mtu=port.mtu,
                driver=port.driver,
                firmware=port.firmware,
                # Only Mellanox's board id names firmware.
                **{"psid" if (port.driver or "").startswith("mlx") else "board": row.get("board")},
                type=row.get("type"),
                hardware=row.get("hardware"),
                netdev=port.netdev,
                guid=row.get("guid"),
                **_of_subnet(port, row),
            ),
        }
        return _soft(port, row, facts) if port.is_soft else facts

    def _slot(self, slot: SlotSeen | None, row: Mapping[str, str]) -> dict[str, Value | None]:
        if slot is None:
            return {}
        cpus = "left to irqbalance" if self.balanced else row.get("irq_cpus")
        return {
            "pci": slot.address,
            "model": self._models.get(slot.address),
            "ids": row.get("ids", "").replace("0x", ""),
            "subsystem": row.get("subsystem", "").replace("0x", ""),
            "driver_version": row.get("driver_version"),
            "pcie": slot.name,
            "pcie_best": slot.best,
            "pcie_best_of_slot": slot_name(row.get("above_speed"), row.get("above_width")),
            "max_payload_bytes": slot.max_payload_bytes,
            "max_payload_best_bytes": self._payload_limits.get(slot.address),
            "numa_node": slot.numa_node,
            "irqs": row.get("irqs"),
            "irq_cpus": cpus if row.get("irqs") else None,
        }


def _known(**facts: Value | None) -> dict[str, Value]:
    return {name: value for name, value in facts.items() if value is not None and value != ""}


def _of_subnet(port: PortSeen, row: Mapping[str, str]) -> dict[str, Value]:
    """Return what a subnet manager gave the port; RoCE has none."""
    if port.layer != "InfiniBand":
        return {}
    prefix = ":".join(row.get("gid", "").split(":")[:4])
    return _known(lid=row.get("lid"), sm_lid=row.get("sm_lid"), gid_prefix=prefix)


#: how the kernel calls the kinds of GID (Linux drivers/infiniband/core/cache.c, gid_type_str)
_ROCE_VERSIONS = {"IB/RoCE v1": "v1", "RoCE v2": "v2"}


def _reached_by(row: Mapping[str, str]) -> dict[str, Value]:
    """Return by which versions of RoCE, and over which addresses, a port can be reached.

    The addresses themselves are the interface's.
    """
    types = {_ROCE_VERSIONS.get(each, each) for each in row.get("gid_types", "").split(",")}
    gids = {_kind_of_gid(each) for each in row.get("gids", "").split()}
    return _known(roce=", ".join(sorted(types - {""})), gids=", ".join(sorted(gids - {""})))


def _kind_of_gid(gid: str) -> str:
    """Return what a GID is made from; empty for a slot of the table that holds none."""
    head, _, tail = gid.partition(":")
    if not tail.strip("0:"):
        return ""
    if head == "fe80":
        return "link-local"
    return "IPv4" if gid.startswith("0000:0000:0000:0000:0000:ffff:") else "IPv6"


#: what the kernel makes up for a device without a wire of its own, from its interface's ethtool
#: speed (Linux drivers/infiniband/core/verbs.c, ib_get_eth_speed): up to 1 Gb/s all are 1X SDR
_MADE_UP = frozenset({"rate_gbit_s", "width", "link", "lane_speed"})


def _soft(
    port: PortSeen, row: Mapping[str, str], facts: Mapping[str, Value | None]
) -> dict[str, Value | None]:
    """Return the facts of a software device; what it says of a rate is kept as no rate."""
    kept = {name: value for name, value in facts.items() if name not in _MADE_UP}
    own = {"kind": SOFT_ROCE, "parent": port.parent, "rate_in_sysfs": port.rate}
    return {**kept, **own, **_reached_by(row)}


def _troubles(sections: dict[str, list[str]], cut: str | None) -> Iterator[ReadTrouble]:
    if not set(sections) - {TROUBLES}:
        yield ReadTrouble(text="everything: the look left nothing", kind=ReadTroubleKind.NO_LOOK)
    if cut is not None:
        text = f"what comes after '{cut}': the look was cut off there"
        yield ReadTrouble(text=text, kind=ReadTroubleKind.CUT_OFF, section=cut)
    for line in dict.fromkeys(sections.get(TROUBLES, [])):
        begin, _, command = line.partition(": ")
        if begin == _NO_ANSWER:
            words = tuple(command.split())
            yield ReadTrouble(text=line, kind=ReadTroubleKind.NO_ANSWER, command=words)
        else:
            yield ReadTrouble(text=line)
    has_hca = bool(sections.get("infiniband"))
    for tool in sections.get("missing", []):
        if tool in _ONLY_BY and (has_hca or tool not in _OF_HCAS):
            text = f"{_ONLY_BY[tool]}: no {tool} on the node"
            yield ReadTrouble(text=text, kind=ReadTroubleKind.NO_TOOL, command=(tool,))
    denied = any("denied" in line for line in sections.get("lspci", []))
    if denied:
        text = "MaxPayload: only root may read it (lspci)"
        yield ReadTrouble(text=text, kind=ReadTroubleKind.ONLY_ROOT, command=("lspci",))
    is_user = read_pairs(sections.get("host", [])).get("user", "0") != "0"
    if is_user and "ethtool" not in sections.get("missing", []):
        text = "transceivers: only root may read them (ethtool -m)"
        yield ReadTrouble(text=text, kind=ReadTroubleKind.ONLY_ROOT, command=("ethtool", "-m"))


def _queue_bytes(shaper: ShaperSeen | None) -> int | None:
    """Return what may wait before a shaper, to two digits; None where nobody says.

    tc-tbf(8): the longest wait is (limit - burst) / rate; it is shown in whole milliseconds.
    """
    if shaper is None or shaper.queue_ms is None:
        return None
    limit = shaper.rate_bit_s / 8e3 * shaper.queue_ms + shaper.burst_bytes
    return int(float(f"{limit:.1e}"))
