"""``fabricproof parse``: the tables in benchmark outputs, for a person or for a machine."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from functools import partial
from typing import Any

import click

from fabricproof.benchmarks.parsers import read_tables
from fabricproof.cli import options
from fabricproof.cli.output import emit, read_output
from fabricproof.core.errors import (
    ExitStatus,
    FabricproofError,
    InputMissingError,
    ParseError,
    without_control_characters,
)
from fabricproof.core.measure import Table, unit_of_column


@click.command(name="parse")
@click.argument("files", nargs=-1, required=True, metavar="FILE...")
@options.as_json
def command(files: tuple[str, ...], as_json: bool) -> None:
    r"""Show the tables in benchmark outputs.

    FILE ('-': standard input) is what a run of OSU, IMB, iperf3, iperf, perftest, hpcc or
    nccl-tests printed, with whatever the launcher and MPI put around it.  Nothing is judged, and
    nothing is guessed: a damaged or cut table is an error with its line, and the other tables and
    files are still shown.

    \b
    fabricproof parse osu_bw.out
    srun -n 2 osu_latency | fabricproof parse -
    fabricproof parse --json *.out | jq '.[] | .program'

    The --json array holds one object per table: suite, program, version, columns (their
    names end in the unit), units, rows (numbers in column order), source, line, attributes, and
    unmeasured where the tool gave up on sizes (IMB: out-of-mem, time-out).

    Exit status: 0, or 65 where a file is damaged, 66 where one cannot be read.
    """
    tables: list[Table] = []
    status = ExitStatus.PASS
    for name in files:
        try:
            reading = read_tables(read_output(name), "<stdin>" if name == "-" else name)
        except (ParseError, InputMissingError) as error:
            click.echo(f"fabricproof: {error}", err=True)
            status = _worse(status, error)
            continue
        tables += reading.tables
        for damage in reading.damages:
            click.echo(f"fabricproof: {damage}", err=True)
            status = _worse(status, damage)
    emit([table_record(table) for table in tables], partial(_show, tables), as_json=as_json)
    sys.exit(int(status))


def _worse(status: ExitStatus, error: FabricproofError) -> ExitStatus:
    """Return the status to leave with: damaged data before a missing file."""
    return ExitStatus.DATA if ExitStatus.DATA in {status, error.exit_status} else error.exit_status


def table_record(table: Table) -> dict[str, Any]:
    """Return ``table`` as plain data, the form of ``--json``; whole numbers stay whole."""
    gone = {str(size): words for size, words in table.unmeasured.items()}
    return {
        "suite": table.suite,
        "program": table.program,
        "version": table.version,
        "columns": list(table.columns),
        "units": [unit_of_column(name) for name in table.columns],
        "rows": [list(row) for row in table.rows],
        "source": table.source,
        "line": table.line,
        "attributes": dict(table.attributes),
        **({"unmeasured": gone} if gone else {}),
    }


def _show(tables: Iterable[Table]) -> tuple[()]:
    """Print each table for a person."""
    from rich import box  # noqa: PLC0415 - heavy, and --json does without
    from rich.table import Table as RichTable  # noqa: PLC0415

    from fabricproof.cli.console import HonestConsole  # noqa: PLC0415

    console = HonestConsole(highlight=False, soft_wrap=True)
    for table in tables:
        shown = RichTable(box=box.SIMPLE_HEAD, pad_edge=False)
        for name in table.columns:
            unit = unit_of_column(name)
            shown.add_column(f"{name} [{unit}]" if unit else name, justify="right")
        for row in table.rows:
            shown.add_row(*(_number(value) for value in row))
        console.print(_caption(table), markup=False)
        console.print(shown, markup=False)
    return ()


def _caption(table: Table) -> str:
    version = f" {table.version}" if table.version else ""
    known = [*table.attributes.items()]
    known += [(f"{size} B", words) for size, words in table.unmeasured.items()]
    facts = ", ".join(f"{name} {value}" for name, value in known)
    place = f"{without_control_characters(table.source)}:{table.line}"
    head = f"{table.suite}{version} {table.program}  ({place})"
    return f"{head}\n{facts}" if facts else head


def _number(value: float) -> str:
    return str(value) if isinstance(value, int) else f"{value:.2f}"
