"""Read what an MPI library or NCCL says beside its tables of the network that carried them.

- Intel MPI with ``I_MPI_DEBUG``: ``MPI startup(): libfabric provider: tcp``, before 2019
  ``shm and dapl data transfer modes``.
- UCX with ``UCX_LOG_LEVEL=info``: ``inter-node cfg#1 tag(rc_mlx5/mlx5_0:1)``, before 1.14
  ``ep_cfg[2]: tag(...)`` (ucp_worker.c).
- NCCL with ``NCCL_DEBUG=INFO``: ``via NET/IB/0`` of each channel between nodes
  (src/transport/net.cc), ``Using network IB``, which is chosen and may carry nothing (one node,
  NVLink between nodes), the cards ``NET/IB : Using [0]mlx5_0:1/RoCE``, and its plugin for
  libfabric ``NET/OFI Selected provider is efa``.

The MPI of nccl-tests starts its ranks and carries nothing else: there NCCL alone is heard.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from dataclasses import replace

from fabricproof.benchmarks.parsers.sections import TextSection
from fabricproof.core.measure import Table
from fabricproof.core.units import by_key

#: key of a table's attributes: the words, in order, by commas
_NETWORK = "network"

#: one of these stands in each line of a library that starts
_TALK = ("MPI startup():", "CCL INFO", "UCX ")

_SAYS = re.compile(
    r"MPI startup\(\): (?:libfabric provider: (?P<provider>[a-z][\w;-]{0,40})"
    r"|(?:shm and )?(?P<mode>dapl|ofa|ofi|tcp|tmi) data transfer mode)"
    r"|UCX +INFO +[^\n]{0,120}?(?:inter-node cfg#\d+|ep_cfg\[\d+\]:) tag\((?P<lanes>[^)\n]{1,600})"
    r"|[NR]CCL INFO (?:Using network (?P<chosen>\w[\w ]{0,30}\w)"
    r"|NET/IB : Using (?P<cards>\[\d+\][^\n;]{1,1000})"
    r"|NET/OFI Selected (?i:provider) is (?P<ofi>\w[\w;-]{0,30})"
    r"|[^\n]{0,300}? (?:via NET/(?P<via>\w[\w ]{0,30}\w)/\d|MNNVL (?P<nvlink>1)\b))"
)

#: transports of UCX between nodes by verbs, and its sockets; the others copy within one (uct 1.20)
_LANE = re.compile(r"\b((?:rc|dc|ud|gga|srd)(?:_[a-z0-9]+)?|tcp)/")

#: a card of NCCL with its link layer (ncclIbInit in src/transport/net_ib.cc)
_CARD = re.compile(r":\d+/(IB|RoCE)\b")

_NCCL = frozenset({"nccl-tests", "rccl-tests"})
#: what runs on neither, or says itself what it runs on
_OTHERS = frozenset({"fabricproof", "iperf", "iperf3", "perftest"})


class Networks:
    """What one text says, handed to the tables that it is printed for.

    A library speaks while it starts, right above the head of its program, and until the last row.
    What stands farther above may be of a start that left no table: it counts for none.
    """

    def __init__(self, text: str) -> None:
        self._said = _said(text) if any(each in text for each in _TALK) else []
        self._at = [line for line, _, _ in self._said]
        self._lines = text.split("\n") if self._said else []

    def heard(self, section: TextSection, tables: tuple[Table, ...]) -> tuple[Table, ...]:
        """Return all tables of a section with what is said of their network."""
        if not self._said or not tables or tables[0].suite in _OTHERS:
            return tables
        last = max(max(table.row_lines, default=table.line) for table in tables)
        begin = bisect_left(self._at, self._start(section.first))
        here = self._said[begin : bisect_right(self._at, last)]
        found = by_key((kind, word) for _, kind, word in here)
        words = _of_nccl(found, tables[0]) if tables[0].suite in _NCCL else _of_mpi(found)
        if not words:
            return tables
        said = {_NETWORK: ",".join(sorted(words))}
        return tuple(replace(each, attributes={**each.attributes, **said}) for each in tables)

    def _start(self, head: int) -> int:
        """Return the first of the lines directly above a head that only a library prints."""
        at = head
        while at > 1 and _is_of_start(self._lines[at - 2]):
            at -= 1
        return at


def _is_of_start(line: str) -> bool:
    return not line.strip(" \t#-=") or any(each in line for each in _TALK)


def _of_mpi(said: dict[str, list[str]]) -> set[str]:
    """Return the words of MPI libraries; Intel's is said once for each start, the last counts."""
    return {*said.get("provider", said.get("mode", []))[-1:], *said.get("lanes", [])}


def _of_nccl(said: dict[str, list[str]], table: Table) -> set[str]:
    """Return what carried bytes between nodes; what was chosen counts where it must have."""
    used = {*said.get("via", [])}
    num_nodes = table.attributes.get("num_nodes", 0)
    if not used and int(num_nodes) > 1 and "nvlink" not in said:
        used = {*said.get("chosen", [])}
    if any("Libfabric" in word for word in used):
        used |= {*said.get("ofi", [])}
    layers = {*said.get("cards", [])}
    if len(layers) == 1 and "IB" in used:
        used = (used - {"IB"}) | {"RoCE" if "RoCE" in layers else "InfiniBand"}
    return used


def _said(text: str) -> list[tuple[int, str, str]]:
    """Return each word with the number of its line, from 1, and what kind of word it is."""
    found = []
    number, at = 1, 0
    for match in _SAYS.finditer(text):
        number, at = number + text.count("\n", at, match.start()), match.start()
        kind = match.lastgroup or ""
        found += [(number, kind, word) for word in _words(kind, match[kind])]
    return found


def _words(kind: str, text: str) -> list[str]:
    """Return the words of one line: of UCX's lanes the sockets count where they are alone."""
    if kind == "cards":
        return _CARD.findall(text)
    if kind != "lanes":
        return [text]
    lanes = list(dict.fromkeys(_LANE.findall(text)))
    return [each for each in lanes if each != "tcp"] or lanes
