"""Read what the output of a run says beside its tables: its network, its nodes, its warnings.

A library speaks while it starts, right above the head of its program, and until the last row.
What stands farther above may be of a start that left no table: it counts for none.

What is found becomes attributes of the tables:

- ``network``: the transports, in order, by commas; ``network_devices`` the HCAs or interfaces,
  ``num_devices`` how many of them one node used.  Of the lanes of UCX, the channels of NCCL, the
  openib ports and BTLs of Open MPI, the provider of Intel MPI.
- ``num_nodes``: on how many nodes the ranks ran, if the output says so.
- ``warnings``: the keys of :data:`_WARNINGS` that were printed.

The MPI of nccl-tests starts its ranks and carries nothing else: there NCCL alone counts.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import replace
from typing import NamedTuple

from fabricproof.benchmarks.parsers.sections import TextSection
from fabricproof.core.measure import Table

#: one of these stands in each line that is read here
_TALK = (
    "MPI startup():", "CCL INFO", "UCX ", "mca: bml: Using", "openib: using port",
    "Data for node: ", "CPU Frequency is not max", "libibverbs: Warning", "WARNING: ",
    "relevant network interfaces", "active ports detected", "registering part of your",
    "initializing an OpenFabrics device",
)  # fmt: skip
#: what else a library prints as it starts: [n1:4711] of Open MPI, its map, its help
_OF_START = re.compile(r"[ \t]*\[[\w.-]+:\d+\]|[ \t=]*(?:JOB MAP|Process .*rank: )")
#: what Open MPI puts above and below a help text of at most so many lines (opal show_help.c)
_HELP_RULER, _MOST_HELP_LINES = "-" * 74, 60

#: kind of statement -> how its line looks; the groups are its words
_FORMS = {
    # Intel MPI with I_MPI_DEBUG=5; before 2019 without libfabric
    "provider": r"MPI startup\(\): libfabric provider: ([a-z][\w;-]{0,40})",
    "mode": r"MPI startup\(\): (?:shm and )?(dapl|ofa|ofi|tcp|tmi) data transfer mode",
    "dapl": r"MPI startup\(\): DAPL provider ([\w.-]{1,60})\s*$",
    "rank": r"MPI startup\(\): (\d{1,7}) +\d+ +([\w.-]+)",
    # UCX with UCX_LOG_LEVEL=info (ucp_worker.c); "ep_cfg" up to 1.13 without saying whose
    "inter": r"UCX +INFO +.{0,120}?inter-node cfg#\d+ ?tag\(([^)]{1,600})",
    "intra": r"UCX +INFO +.{0,120}?intra-node cfg#\d+ ?tag\(([^)]{1,600})",
    "lanes": r"UCX +INFO +.{0,120}?ep_cfg\[\d+\]: tag\(([^)]{1,600})",
    # NCCL with NCCL_DEBUG=INFO (src/transport/net_ib.cc, net_socket.cc, net.cc); its plugin OFI
    "chosen": r"[NR]CCL INFO Using network (\w[\w ]{0,30}\w)",
    "cards": r"[NR]CCL INFO NET/(IB|Socket) ?: Using (\[\d+\][^;]{1,1000})",
    "ofi": r"[NR]CCL INFO NET/OFI Selected (?i:provider) is (\w[\w;-]{0,30})",
    "via": r"[NR]CCL INFO .{0,300}? via NET/(\w[\w ]{0,30}\w)/(\d+)",
    "nvlink": r"[NR]CCL INFO .{0,300}? MNNVL (1)\b",
    # Open MPI: bml_r2.c with btl_base_verbose, btl_openib_component.c, --display-map
    "btl": r"mca: bml: Using (\w+) btl (?:for send )?to ",
    "port": r"openib: using port (\w+:\d+)",
    "map": r"Data for node: (\S+)\s.*?Num procs: ([1-9]\d*)",
}

#: warning -> the words of those who print it
_WARNINGS = {
    # linux-rdma/perftest, src/get_clock.c
    "cpu_frequency": r"CPU Frequency is not max",
    # rdma-core libibverbs/init.c; Open MPI help-mpi-btl-openib.txt
    "locked_memory": r"RLIMIT_MEMLOCK is |allow registering part of your physical memory",
    # rdma-core libibverbs/init.c; Open MPI help-mpi-btl-openib.txt, help-mpi-btl-base.txt;
    # UCX ucp_context.c; NCCL src/transport/net_ib.cc; Intel MPI
    "no_device": r"libibverbs: Warning: (?:couldn't load driver|no userspace device-specific)"
    r"|error initializing an OpenFabrics device|no active ports detected"
    r"|unable to find any relevant network interfaces|NET/IB ?: No device found"
    r"|UCX +WARN .*network device '[^']*' is not available",
    # NCCL src/transport/net_ib.cc, net.cc: GDRDMA stands behind a channel that uses it
    "no_gpudirect": r"GPU Direct RDMA Disabled|via NET/IB/\d+(?!/GDRDMA)(?:/Shared)?\s*$",
}
_EACH = [(kind, re.compile(pattern)) for kind, pattern in {**_FORMS, **_WARNINGS}.items()]

#: transports of UCX between nodes by verbs, and its sockets, with their device (uct 1.20)
_LANE = re.compile(r"\b((?:rc|dc|ud|gga|srd)(?:_[a-z0-9]+)?|tcp)/([\w.:-]+)")
#: Those that copy within one node.  A rank's lane to itself has "self", and may copy too; it needs
#: no queue of shared memory, which only another rank of the node is at the other end of.
_MEMORY_LANE = re.compile(r"\b(?:sysv|posix|xpmem)/|^(?!.*\bself/).*\b(?:cma|knem)/")

#: a card of NCCL: number, name and port, link layer (ncclIbInit); an interface has its address
_CARD = re.compile(r"\[(\d+)\]([\w.-]+(?::\d+(?=/))?)(?:/(IB|RoCE)\b)?")

#: DAPL's name of a device: ofa-v2-mlx5_0-1u (port 1, u: datagrams), ofa-v2-cma-roe-eth4 (dat.conf)
_DAPL = re.compile(r"(?:.*?-)?(roe-)?([a-z]+\d*(?:_\d+)?)(?:-(\d)[a-z]?)?")

#: BTLs of Open MPI within a node
_MEMORY_BTLS = frozenset({"vader", "sm", "smcuda"})

#: the host of a line: [n1:4711] of Open MPI, [time] [n1:4711:0] of UCX, n1:4711:4720 of NCCL
_HOST = re.compile(r"\s*(?:\[[\d.]+\] +)?\[?([\w.-]+):\d+")

_NCCL = frozenset({"nccl-tests", "rccl-tests"})
#: what runs on neither, or says itself what it runs on
_OTHERS = frozenset({"fabricproof", "iperf", "iperf3", "perftest"})


class _Said(NamedTuple):
    host: str
    words: tuple[str, ...]


class Networks:
    """What one text says, handed to the tables that it is printed for."""

    def __init__(self, text: str) -> None:
        self._lines = text.split("\n") if _talks(text) else []
        self._talking = [at for at, line in enumerate(self._lines, 1) if _talks(line)]

    def heard(self, section: TextSection, tables: tuple[Table, ...]) -> tuple[Table, ...]:
        """Return all tables of a section with what is said of their run."""
        if not self._talking or not tables:
            return tables
        first = self._start(section.first)
        last = max(max(table.row_lines, default=table.line) for table in tables)
        kinds: dict[str, list[_Said]] = defaultdict(list)
        between = slice(bisect_left(self._talking, first), bisect_right(self._talking, last))
        for line in (self._lines[at - 1] for at in self._talking[between]):
            host = match[1] if (match := _HOST.match(line)) else ""
            for kind, pattern in _EACH:
                if found := pattern.search(line):
                    kinds[kind].append(_Said(host, found.groups("")))
        is_mapped = any("-map " in line for line in section.lines)
        return tuple(
            replace(each, attributes={**_facts(kinds, each, is_mapped), **each.attributes})
            for each in tables
        )

    def _start(self, first: int) -> int:
        """Return the line with which a run began to speak above its head, help texts included."""
        while first > 1 and _is_of_start(self._lines[first - 2]):
            first -= 1
            if self._lines[first - 1].strip() == _HELP_RULER:
                above = self._lines[max(0, first - 1 - _MOST_HELP_LINES) : first - 1]
                rulers = [at for at, line in enumerate(above) if line.strip() == _HELP_RULER]
                first -= len(above) - rulers[-1] if rulers else 0
        return first


def _talks(text: str) -> bool:
    return any(each in text for each in _TALK)


def _is_of_start(line: str) -> bool:
    return not line.strip(" \t#-=") or _talks(line) or _OF_START.match(line) is not None


def _facts(kinds: Mapping[str, list[_Said]], table: Table, is_mapped: bool) -> dict[str, str | int]:
    """Return the attributes that follow for a table."""
    uses: set[tuple[str, str, str]] = set()
    num_nodes = None
    if table.suite in _NCCL:
        uses = _of_nccl(kinds, table)
    elif table.suite not in _OTHERS:
        # IMB runs its first ranks alone, unless it is told to map them
        num_ranks = 0 if is_mapped else int(table.attributes.get("num_processes", 0))
        uses, num_nodes = _of_mpi(kinds), _num_nodes(kinds, num_ranks)
    words = {word for _, word, _ in uses if word}
    devices: dict[str, set[str]] = defaultdict(set)
    for host, _, device in uses:
        devices[host] |= {device} - {""}
    found: dict[str, str | int] = {}
    if words:
        found["network"] = ",".join(sorted(words))
    if names := set().union(*devices.values()):
        found["network_devices"] = ",".join(sorted(names))
        found["num_devices"] = max(map(len, devices.values()))
    if num_nodes:
        found["num_nodes"] = num_nodes
    if warnings := sorted(kinds.keys() & _WARNINGS.keys()):
        found["warnings"] = ",".join(warnings)
    return found


def _of_mpi(kinds: Mapping[str, list[_Said]]) -> set[tuple[str, str, str]]:
    """Return host, transport and device of what carried messages.

    Intel MPI names its provider once for each start: the last counts.
    """
    uses = {("", each.words[0], "") for each in (kinds["provider"] or kinds["mode"])[-1:]}
    for each in kinds["dapl"]:
        if match := _DAPL.fullmatch(each.words[0]):
            port = f":{match[3]}" if match[3] else ""
            uses.add(("", "RoCE" if match[1] else "dapl", f"{match[2]}{port}"))
    for each in (*kinds["inter"], *kinds["lanes"]):
        lanes = _LANE.findall(each.words[0])
        # sockets count only if they are alone: UCX wires up and keeps alive over them
        lanes = [lane for lane in lanes if lane[0] != "tcp"] or lanes
        uses |= {(each.host, transport, device) for transport, device in lanes}
    uses |= {(each.host, "openib", each.words[0]) for each in kinds["port"]}
    carriers = {each.words[0] for each in kinds["btl"]} - {"self"} - _MEMORY_BTLS
    return uses | {("", word, "") for word in carriers}


def _num_nodes(kinds: Mapping[str, list[_Said]], num_ranks: int) -> int | None:
    """Return on how many nodes the first ranks ran, all if ``num_ranks`` is 0; None if unknown."""
    hosts = {int(each.words[0]): each.words[1] for each in kinds["rank"]}
    ranks = range(num_ranks or len(hosts))
    if len(ranks) > 1 and hosts.keys() >= set(ranks):
        return len({hosts[rank] for rank in ranks})
    if kinds["map"] and sum(int(each.words[1]) for each in kinds["map"]) > 1:
        return len({each.words[0] for each in kinds["map"]})
    lanes = [each.words[0] for each in kinds["lanes"]]
    within = bool(kinds["intra"]) or any(map(_MEMORY_LANE.search, lanes))
    if within and not kinds["inter"] and not any(_LANE.search(each) for each in lanes):
        return 1
    btls = {each.words[0] for each in kinds["btl"]} - {"self"}
    return 1 if btls and btls <= _MEMORY_BTLS else None


def _of_nccl(kinds: Mapping[str, list[_Said]], table: Table) -> set[tuple[str, str, str]]:
    """Return host, transport and device of what carried bytes between nodes.

    The network that was chosen counts, with all its cards, if no channel is named and it must have
    carried something: on one node, and where NVLink joins nodes, it need not.
    """
    cards: dict[tuple[str, str, str], str] = {}
    layers = set()
    for each in kinds["cards"]:
        for number, name, layer in _CARD.findall(each.words[1]):
            cards[each.host, each.words[0], number] = name
            layers |= {layer} - {""}
    uses = set()
    for each in kinds["via"]:
        network, number = each.words
        uses.add((each.host, network, cards.get((each.host, network, number), "")))
    if not uses and int(table.attributes.get("num_nodes", 0)) > 1 and not kinds["nvlink"]:
        chosen = {each.words[0] for each in kinds["chosen"]}
        uses = {("", word, "") for word in chosen}
        uses |= {
            (host, network, name) for (host, network, _), name in cards.items() if network in chosen
        }
    if any("Libfabric" in word for _, word, _ in uses):
        uses |= {("", each.words[0], "") for each in kinds["ofi"]}
    if len(layers) == 1:
        word = "RoCE" if "RoCE" in layers else "InfiniBand"
        uses = {(host, word if used == "IB" else used, name) for host, used, name in uses}
    return uses
