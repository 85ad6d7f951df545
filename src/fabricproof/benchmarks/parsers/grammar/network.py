"""Read what an MPI library or NCCL says beside its tables of the network that carried them.

- Intel MPI with ``I_MPI_DEBUG``: ``MPI startup(): libfabric provider: tcp``, before 2019
  ``shm and dapl data transfer modes``.
- UCX with ``UCX_LOG_LEVEL=info``: ``inter-node cfg#1 tag(rc_mlx5/mlx5_0:1)``, before 1.14
  ``ep_cfg[2]: tag(...)`` (ucp_worker.c).
- NCCL with ``NCCL_DEBUG=INFO``: ``Using network IB`` (initNet in src/init.cc, since 2.27
  src/plugin/net.cc) and ``via NET/IB/0`` of each channel (src/transport/net.cc); its plugin for
  libfabric: ``NET/OFI Selected provider is efa``.
"""

from __future__ import annotations

import re
from dataclasses import replace

from fabricproof.core.measure import Table

#: key of a table's attributes: the words, in order, by commas
_NETWORK = "network"

#: one of these stands in each line that says it
_NEAR = ("MPI startup():", "CCL INFO", "UCX ")

_SAYS = re.compile(
    r"MPI startup\(\): (?:libfabric provider: ([a-z][\w;-]{0,40})"
    r"|(?:shm and )?(dapl|ofa|ofi|tcp|tmi) data transfer mode)"
    r"|[NR]CCL INFO (?:Using network (\w[\w ]{0,30}\w)|[^\n]{0,200}? via NET/(\w[\w ]{0,30}\w)/\d"
    r"|NET/OFI Selected (?i:provider) is (\w[\w;-]{0,30}))"
    r"|UCX +INFO +[^\n]{0,120}?(?:inter-node cfg#\d+|ep_cfg\[\d+\]:) tag\(([^)\n]{1,300})\)"
)

#: stands before a word of Intel MPI until it is clear which start it is of
_INTEL = "MPI startup: "

#: transports of UCX between nodes; the others copy within one (uct of 1.20)
_OF_UCX = re.compile(r"\b((?:tcp|rc|dc|ud|gga|srd)(?:_[a-z0-9]+)?)/")


class Networks:
    """What one text says, handed to the tables that it is printed for.

    A library speaks while it starts: of the lines behind the last row of one program's tables, the
    next program's tables have those up to their own last row.  Behind a program without a whole
    table nobody knows which of the two spoke, so that what stands above the head counts for none.
    """

    def __init__(self, text: str) -> None:
        self._said = _said(text) if any(each in text for each in _NEAR) else []
        self._since, self._last, self._is_whole = 0, 0, True

    def begin(self, first: int) -> None:
        """Go on to the next program, whose head is line ``first``."""
        self._since = self._last if self._is_whole else first
        self._is_whole = False

    def heard(self, tables: tuple[Table, ...]) -> tuple[Table, ...]:
        """Return some tables of the program with what is said of its network."""
        rows = [max(table.row_lines, default=table.line) for table in tables]
        self._last, self._is_whole = max([self._last, *rows]), True
        here = [word for line, word in self._said if self._since < line <= self._last]
        if not here:
            return tables
        # Intel MPI says it once for each start: of several the last is of what was measured.
        of_intel = [word.removeprefix(_INTEL) for word in here if word.startswith(_INTEL)]
        words = {*of_intel[-1:], *(word for word in here if not word.startswith(_INTEL))}
        said = {_NETWORK: ",".join(sorted(words))}
        return tuple(replace(each, attributes={**each.attributes, **said}) for each in tables)


def _said(text: str) -> list[tuple[int, str]]:
    """Return each word with the number of its line, from 1."""
    found = []
    number, at = 1, 0
    for match in _SAYS.finditer(text):
        number, at = number + text.count("\n", at, match.start()), match.start()
        provider, mode, *of_nccl, of_ucx = match.groups()
        of_intel = provider or mode
        words = [_INTEL + of_intel] if of_intel else _OF_UCX.findall(of_ucx or "")
        found += [(number, word) for word in (*words, *filter(None, of_nccl))]
    return found
