"""The recorded outputs under tests/data, and how tests look at them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from fabricproof.benchmarks.parsers import parse_text
from fabricproof.cli.judge.parse import table_record
from fabricproof.core.measure import Table

DATA = Path(__file__).parents[2] / "data"
TOOLS = ("osu", "osu-mpi4py", "imb", "iperf", "iperf3", "perftest", "hpcc", "nccl")

GOOD = sorted(path for tool in TOOLS for path in (DATA / tool).glob("*.txt"))
DAMAGED = sorted(path for tool in TOOLS for path in (DATA / tool / "damaged").glob("*.txt"))
#: recordings whose rows stand in the text number by number
ROWS = [
    path
    for path in GOOD
    if not path.parent.name.startswith(("iperf", "hpcc")) and "report" not in path.name
]
#: those whose numbers are what is printed; MiB/s, Gb/s and GB/s become MB/s
AS_PRINTED = [path for path in ROWS if path.parent.name not in {"perftest", "nccl"}]

#: what launchers, MPI libraries and networks say while a benchmark runs
CHATTER = (
    "",
    "srun: job 4711 has been allocated resources",
    "slurmstepd: info: Setting TMPDIR to /scratch",
    "[node1:04711] 1 more process has sent help message help-mpi-btl-openib.txt / no device",
    "1 more process has sent help message help-mpi-btl-openib.txt / no device params found",
    "--------------------------------------------------------------------------",
    "WARNING: There was an error initializing an OpenFabrics device.",
    "  Local host:   node1",
    "[0] MPI startup(): Intel(R) MPI Library, Version 2021.18.0  Build 20260327 (id: 821f207)",
    "[0] MPI startup(): 0       6656     node1      {0,1,2,3}",
    "[1700000000.123456] [node1:4711 :0]          parser.c:2036 UCX  WARN  unused variables: UCX_X",
    "libfabric:4711:1700000000::core:core:fi_getinfo_():1382<warn> no provider",
    "2026-11-20T10:00:00 node1 something happened",
    "10:00:00 prolog done",
)


#: suites whose version stands in a line of its own
OWN_LINE = {"iperf3", "nccl-tests", "rccl-tests"}


def texts(paths: list[Path]) -> list[tuple[str, str]]:
    return [(path.name, path.read_text(encoding="utf-8")) for path in paths]


def sizes_of(tables: tuple[Table, ...]) -> list[int] | None:
    """The sizes of the longest table: what the run asked for."""
    found = [table.column("message_size") for table in tables if "message_size" in table.columns]
    return [int(size) for size in max(found, key=len)] if found else None


def essence(tables: tuple[Table, ...]) -> list[tuple[Any, ...]]:
    """Everything but the place in the text, and a version that has a line of its own."""
    return [
        (
            table.suite,
            table.program,
            table.version if table.suite not in OWN_LINE else None,
            table.columns,
            table.rows,
        )
        for table in tables
    ]


def same_tables(one: tuple[Table, ...], two: tuple[Table, ...]) -> bool:
    facts = ("num_pairs", "window_size", "num_processes", "num_groups", "validation", "streams")
    return essence(one) == essence(two) and all(
        a.attributes.get(fact) == b.attributes.get(fact)
        for a, b in zip(one, two, strict=True)
        for fact in facts
    )


def golden_of(path: Path) -> list[dict[str, Any]]:
    return [table_record(table) for table in parse_text(path.read_text("utf-8"), path.name)]


def write_goldens() -> None:
    """Write the JSON beside each recording; look at the difference before you commit it."""
    for path in GOOD:
        text = json.dumps(golden_of(path), indent=None, separators=(",", ":"))
        path.with_suffix(".json").write_text(text.replace('{"suite"', '\n{"suite"') + "\n")


if __name__ == "__main__":
    write_goldens()
