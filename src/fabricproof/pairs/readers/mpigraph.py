"""Read what mpiGraph prints.

From mpiGraph.c of 1.5 (``code``, ``main``): in step D each rank sends to the rank D to its right
while it receives from the one D to its left; both ends print what they saw, in MiB/s.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

from fabricproof.core.errors import ParseError
from fabricproof.core.units import size_label
from fabricproof.pairs.matrix import Kind, Load, Matrix
from fabricproof.pairs.readers.ranks import (
    check_ranks,
    matrix_of_ranks,
    missing_of,
    only,
    unplaced,
    without_labels,
)

_BEGINS = re.compile(r"^(?: *\d+: )?START mpiGraph ", re.MULTILINE)
_SIZE = re.compile(r"^MsgSize\t(\d{1,12})$", re.MULTILINE)
_PROCS = re.compile(r"^Procs\t(\d{1,7})$", re.MULTILINE)
_TABLE_ROW = re.compile(r"^(\S+):(\d{1,7}) (to|from)\t(.*)$", re.MULTILINE)
_HEADING = re.compile(r"^(?:Send|Recv)\t(?=\S+:\d)(.*)$", re.MULTILINE)
_CELL = re.compile(r"\d{1,12}\.\d{3}")


def is_of_mpigraph(beginning: str) -> bool:
    """Tell whether an output that begins so is mpiGraph's."""
    return _BEGINS.search(beginning) is not None


def read_mpigraph(text: str, source: str) -> Matrix:
    """Return the values of pairs of nodes in an output of mpiGraph."""
    text = without_labels(text, "START mpiGraph ")
    if len(re.findall("^START mpiGraph ", text, re.MULTILINE)) > 1:
        raise ParseError("two runs in one output", source=source, expected="one run a file")
    size = only(_SIZE, text, source, "message size")
    num = only(_PROCS, text, source, "number of processes")
    hosts = _columns(text, num, source)
    rows = [(host, int(rank), way, cells) for host, rank, way, cells in _TABLE_ROW.findall(text)]
    if not rows or num < 2:
        raise ParseError(
            "no table in what mpiGraph printed",
            source=source,
            expected="the tables Send and Recv, a row for each process",
            next_step="it prints them at the end: did the run end?",
        )
    sent: dict[tuple[int, int], float] = {}
    received: dict[tuple[int, int], float] = {}
    for host, rank, way, cells in rows:
        if hosts.get(rank) != host:
            raise ParseError("a row of nobody in the heading", source=source, got=f"{host}:{rank}")
        for other, value in _cells(cells):
            if other != rank and value > 0:
                into, pair = (sent, (rank, other)) if way == "to" else (received, (other, rank))
                into[pair] = value
    lost: list[str] = []
    for name, table in (("Send", sent), ("Recv", received)):
        values = [(*pair, value) for pair, value in table.items()]
        check_ranks(values, hosts, num, source)
        lost += [f"table {name}: {each}" for each in missing_of(values, hosts, num)]
    # A transfer is over when both ends are done: the slower of what they saw.
    slower = [
        (*pair, min(table[pair] for table in (sent, received) if pair in table))
        for pair in sorted({*sent, *received})
    ]
    kind = Kind(quantity="bandwidth", unit="MiB/s", size=size_label(size) if size else "")
    steps = [(second - first) % num for first, second, _ in slower]
    matrix = matrix_of_ranks(slower, hosts, kind, source, both_ways=False, rounds=steps)
    return replace(
        matrix,
        missing=(*lost, *unplaced(hosts, num)),
        notes=("each process sent and received at once; a value is the slower of both ends",),
        load=Load.BOTH_AT_ONCE,
    )


def _columns(text: str, num: int, source: str) -> dict[int, str]:
    """Return where each rank ran, by the headings of both tables: all ranks in order."""
    hosts: dict[int, str] = {}
    for heading in _HEADING.findall(text):
        names = [name.rpartition(":") for name in heading.split()]
        if [rank for _, _, rank in names] != [str(rank) for rank in range(num)]:
            raise ParseError(
                "a damaged heading",
                source=source,
                expected=f"ranks 0 to {num - 1} with their nodes",
                got=repr(heading[:80]),
            )
        for rank, (host, _, _) in enumerate(names):
            if hosts.setdefault(rank, host) != host:
                raise ParseError("two runs in one output", source=source, got=repr(host))
    return hosts


def _cells(cells: str) -> Iterator[tuple[int, float]]:
    """Yield the values of a row with the number of their column, up to the first damaged one."""
    for number, cell in enumerate(cells.split("\t")):
        if not _CELL.fullmatch(cell.strip()):
            return
        yield number, float(cell)
