"""Read what ``look.sh`` and ``slurm.sh`` printed: text in, records of machine and Slurm out."""

from __future__ import annotations

import itertools
import re
from operator import itemgetter

from fabricproof.core.errors import FabricproofError, ParseError
from fabricproof.core.units import by_key, digits_of
from fabricproof.nodes.discover.facts import (
    HostSeen,
    InterfaceSeen,
    PartitionSeen,
    PortSeen,
    ProgramSeen,
    ShaperSeen,
    SlotSeen,
    SlurmSeen,
)
from fabricproof.physics import find_slot
from fabricproof.site.scheduling import read_traits

_MARK = "#== "
_TROUBLE = "#!! "

#: the section of :func:`split_sections` that holds what ``look.sh`` complains of
TROUBLES = "troubles"


def split_sections(text: str) -> dict[str, list[str]]:
    """Return the lines of each section, by its name; lines before the first are chatter.

    The last section of a whole recording is ``end``; where it is absent the script was cut off.
    Complaints (a tool that did not answer) stand anywhere and are gathered in ``troubles``.
    """
    sections: dict[str, list[str]] = {}
    current: list[str] = []
    for line in text.splitlines():
        if line.startswith(_MARK):
            current = sections.setdefault(line.removeprefix(_MARK).strip(), [])
        elif line.startswith(_TROUBLE):
            sections.setdefault(TROUBLES, []).append(line.removeprefix(_TROUBLE).strip())
        elif line.strip():
            current.append(line)
    return sections


def read_pairs(lines: list[str]) -> dict[str, str]:
    """Return the ``key=value`` lines of a section."""
    pairs = (line.partition("=") for line in lines)
    return {key.strip(): value.strip() for key, mark, value in pairs if mark}


def read_rows(lines: list[str]) -> list[tuple[str, dict[str, str]]]:
    """Return the rows ``name<TAB>key=value<TAB>...`` of a section, in their order."""
    rows = []
    for line in lines:
        name, *fields = line.split("\t")
        rows.append((name.strip(), read_pairs(fields)))
    return rows


def whole_number(text: str | None) -> int | None:
    """Return ``text`` as a positive whole number; None for anything else (-1 means unknown)."""
    return digits_of(text or "") or None


#: /sys/class/net/*/type, from <linux/if_arp.h>
_KINDS = {"1": "ethernet", "32": "ipoib", "772": "loopback"}

#: tc prints rates as bit/s with decimal prefixes (print_rate in iproute2's lib/utils.c)
_RATE = re.compile(r"(\d{1,18}(?:\.\d+)?)([KMGT]?)bit")
_PREFIXES = {"": 1.0, "K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12}
#: and sizes as bytes with binary ones: 50023b, 256Kb, 4Mb
_SIZE = re.compile(r"(\d{1,18}(?:\.\d+)?)([KM]?)b")
_BINARY = {"": 1, "K": 1024, "M": 1024**2}
_TIME = re.compile(r"(\d{1,18}(?:\.\d+)?)(us|ms|s)")
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
        found = re.search(r"MaxPayload (\d{1,18}) bytes", line)
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
        numa_node=digits_of(numa),
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
    addresses = by_key(
        (found[1].partition("@")[0], found[2])
        for line in sections.get("addresses", [])
        if (found := re.match(r"\d+: (\S+)\s+inet (\S+)", line))
    )
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
            cxi=row.get("cxi"),
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
        elif key == "port" and (number := digits_of(value)) is not None:
            port = number
        elif key == "active_mtu" and (found := re.match(r"\d{1,18}", value)):
            mtus[hca, port] = int(found[0])
    return mtus


def read_host(text: str, source: str) -> HostSeen:
    """Return what one machine showed.

    Raises:
        ParseError: the recording is cut off, or is none.
    """
    sections = split_sections(text)
    facts = read_pairs(sections.get("host", []))
    if "name" not in facts or "end" not in sections:
        raise ParseError(
            "not a whole recording of a machine",
            source=source,
            expected="sections from '#== host' to '#== end'",
            got=f"{len(sections)} sections",
            next_step="record it again",
        )
    payloads = read_payloads(sections.get("lspci", []))
    modules_system, modules = _read_modules(sections.get("modules", []))
    return HostSeen(
        name=facts["name"],
        boot=facts.get("boot", ""),
        cpus=whole_number(facts.get("cpus")),
        system=", ".join(facts[key] for key in ("os", "kernel", "arch") if facts.get(key)),
        numa_cpus={name: row.get("cpus", "") for name, row in read_rows(sections.get("numa", []))},
        interfaces=read_interfaces(sections, payloads),
        ports=read_ports(sections, payloads),
        modules=modules,
        modules_system=modules_system,
        programs={
            name: ProgramSeen(path=row["path"], said=row.get("said", ""))
            for name, row in read_rows(sections.get("programs", []))
            if "path" in row
        },
        pmi2_library=next(iter(sections.get("pmi2", [])), None),
        missing=tuple(sections.get("missing", [])),
    )


def _read_modules(lines: list[str]) -> tuple[str, tuple[str, ...]]:
    """Return the module system and the full names, without folders, headings and marks."""
    system, names = "nomod", []
    for line in lines:
        word = line.strip()
        if word.startswith("system="):
            system = word.removeprefix("system=")
        elif re.fullmatch(r"[\w+.][\w+./@-]*[\w+](?:\([\w:@=]*\))?", word) and "/" in word:
            names.append(re.sub(r"\([^)]*\)$", "", word))
    is_folder = {name.rpartition("/")[0] for name in names}
    return system, tuple(dict.fromkeys(name for name in names if name not in is_folder))


#: states of sinfo's %t in which a node runs jobs, or will; a mark after it (``*`` does not answer,
#: ``~`` powered down, ``#`` powering up) is cut off (sinfo(1), NODE STATE CODES)
_USABLE = frozenset({"idle", "mix", "alloc", "comp", "resv", "plnd"})
_SILENT = "*"


def read_slurm(text: str) -> SlurmSeen | None:
    """Return what Slurm said; None where there is none, or where it did not answer."""
    sections = split_sections(text)
    where = read_pairs(sections.get("where", []))
    if not where.get("sinfo") or "end" not in sections:
        return None
    default = set(sections.get("default", []))
    config = "\n".join(line.strip() for line in sections.get("config", []))
    traits = read_traits(config, "\n".join(sections.get("sharing", [])))
    version = re.search(r"\d+\.\d+\.\d+\S*", where.get("version", ""))
    return SlurmSeen(
        version=version[0] if version else "",
        sinfo=where["sinfo"],
        conf=where.get("conf", ""),
        settings=read_pairs(sections.get("config", [])),
        partitions=_read_partitions(sections.get("partitions", []), default),
        traits=traits,
        topology=tuple(line for line in sections.get("topology", []) if "=" in line),
        licenses=tuple(
            line.partition("=")[2].split()[0]
            for line in sections.get("licenses", [])
            if line.startswith("LicenseName=")
        ),
        mpi_types=_read_mpi_types(sections.get("mpi", [])),
    )


def _read_partitions(lines: list[str], default: set[str]) -> tuple[PartitionSeen, ...]:
    """Return the partitions; sinfo prints a line for each state that a partition's nodes are in."""
    split = (line.strip().split("|") for line in lines)
    rows = by_key((fields[0], fields) for fields in split if len(fields) == 7)
    return tuple(_partition(name, found, default) for name, found in rows.items())


def _partition(name: str, rows: list[list[str]], default: set[str]) -> PartitionSeen:
    counts = [(whole_number(row[3]) or 0, row[5]) for row in rows]
    cpus = [found for row in rows if (found := whole_number(row[4].rstrip("+")))]
    return PartitionSeen(
        name=name,
        num_nodes=sum(count for count, _ in counts),
        num_usable=sum(count for count, state in counts if _is_usable(state)),
        cpus=min(cpus) if cpus else None,
        is_up=rows[0][1] == "up",
        is_default=name in default,
        limit_minutes=_minutes(rows[0][2]),
        nodes=",".join(sorted(row[6] for row in rows if row[6])),
    )


def _is_usable(state: str) -> bool:
    return not state.endswith(_SILENT) and re.sub(r"\W+$", "", state) in _USABLE


def _minutes(text: str) -> int | None:
    """Return sinfo's ``[days-]hours:minutes:seconds`` in minutes; None for ``infinite``."""
    found = re.fullmatch(r"(?:(\d{1,9})-)?(?:(\d{1,9}):)?(\d{1,9}):(\d+)", text)
    if found is None:
        return None
    days, hours, minutes = (int(part or 0) for part in found.groups()[:3])
    return (days * 24 + hours) * 60 + minutes


def _read_mpi_types(lines: list[str]) -> tuple[str, ...]:
    """Return the plugins: one a line after a heading, or (before Slurm 21) ``srun: NAME``."""
    words = [line.strip().removeprefix("srun: ").strip() for line in lines]
    return tuple(word for word in words if re.fullmatch(r"[a-z][\w]*", word))
