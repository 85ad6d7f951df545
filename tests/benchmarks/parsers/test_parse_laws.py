"""Laws: what is printed is read back, whatever stands before each line."""

from __future__ import annotations

import re
import time
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from recordings import GOOD, texts

from fabricproof.benchmarks.parsers import parse_text, read_tables
from fabricproof.core.measure import Table

LINES = texts([path for path in GOOD if "report" not in path.name])

OSU_TITLES = {
    "osu_bw": ("OSU MPI Bandwidth Test", "Bandwidth (MB/s)", "bandwidth_mb_s"),
    "osu_latency": ("OSU MPI-CUDA Latency Test", "Latency (us)", "latency_us"),
    "osu_allreduce": ("OSU MPI Allreduce Latency Test", "Avg Latency(us)", "latency_avg_us"),
    "osu_put_bibw": (
        "OSU MPI_Put Bi-directional Bandwidth Test",
        "Bandwidth (MB/s)",
        "bandwidth_mb_s",
    ),
}
VALUES = st.integers(0, 10**9).map(lambda cents: cents / 100)


@st.composite
def osu_tables(draw: st.DrawFn) -> Table:
    program = draw(st.sampled_from(sorted(OSU_TITLES)))
    start = draw(st.integers(0, 10))
    sizes = [2**power for power in range(start, start + draw(st.integers(1, 20)))]
    values = draw(st.lists(VALUES, min_size=len(sizes), max_size=len(sizes)))
    attributes = {"accelerator": "CUDA"} if program == "osu_latency" else {}
    return Table(
        suite="osu", program=program,
        version=draw(st.sampled_from(["5.3.2", "5.9", "6.2", "7.0.1", "7.1-1", "7.5"])),
        columns=("message_size", OSU_TITLES[program][2]),
        rows=tuple(zip(sizes, values, strict=True)), source="law", line=2,
        row_lines=tuple(range(3, 3 + len(sizes))), attributes=attributes,
    )  # fmt: skip


def render_osu(table: Table, *, marked: bool) -> str:
    """Print as util/osu_util.c does; versions differ in the mark before the header."""
    title, column, _ = OSU_TITLES[table.program]
    mark = "# " if marked else "  "
    lines = [f"{mark}{title} v{table.version}", f"{mark + 'Size':<10}{column:>18}"]
    lines += [f"{size:<10d}{value:>18.2f}" for size, value in table.rows]
    return "\n".join(lines) + "\n"


@given(osu_tables(), st.booleans())
def test_osu_table_survives_printing(table: Table, marked: bool) -> None:
    assert parse_text(render_osu(table, marked=marked), "law") == (table,)


@given(st.lists(osu_tables(), min_size=1, max_size=4))
def test_tables_of_several_runs_in_one_text(tables: list[Table]) -> None:
    text = "".join(render_osu(table, marked=True) for table in tables)
    found = parse_text(text, "law")
    assert [table.rows for table in found] == [table.rows for table in tables]


@st.composite
def imb_tables(draw: st.DrawFn) -> Table:
    sizes = [0] + [2**power for power in range(draw(st.integers(0, 22)))]
    rows = tuple(
        (
            size,
            draw(st.integers(1, 100000)),
            draw(VALUES),
            draw(VALUES),
            draw(st.integers(0, 10**9)),
        )
        for size in sizes
    )
    return Table(
        suite="imb",
        program=draw(st.sampled_from(["PingPong", "Unirandom"])),
        version="2021.7",
        columns=(
            "message_size",
            "repetitions",
            "latency_us",
            "bandwidth_mb_s",
            "message_rate_per_s",
        ),
        rows=rows,
        source="law",
        line=6,
        row_lines=tuple(range(7, 7 + len(rows))),
        attributes={"binary": "IMB-P2P", "num_processes": 2},
    )


def render_imb(table: Table) -> str:
    """Print as src_c/P2P/imb_p2p_pingpong.c does, without the list of benchmarks."""
    lines = [
        f"#    Intel(R) MPI Benchmarks {table.version}, IMB-P2P part",
        "#----------------------------------------------------------------",
        f"# Benchmarking {table.program}",
        "# #processes = 2",
        "#----------------------------------------------------------------",
        "       #bytes #repetitions      t[usec]   Mbytes/sec      Msg/sec",
    ]
    lines += [
        f" {row[0]:>12} {row[1]:>12} {row[2]:>12.2f} {row[3]:>12.2f} {row[4]:>12}"
        for row in table.rows
    ]
    return "\n".join(lines) + "\n"


@given(imb_tables())
def test_imb_table_survives_printing(table: Table) -> None:
    assert parse_text(render_imb(table), "law") == (table,)


PREFIXES = {
    "open-mpi-4": "[1,0]<stdout>:", "open-mpi-5": "[node1:4711,0]<stdout>: ",
    "prrte": "[1,0]<stdout>: ", "srun-label": "0: ", "srun-label-wide": " 0: ",
    "colour": "\x1b[0m",
}  # fmt: skip


@pytest.mark.parametrize("prefix", PREFIXES.values(), ids=PREFIXES)
@settings(max_examples=40, deadline=None)
@given(recording=st.sampled_from(LINES))
def test_prefix_on_every_line_changes_nothing(prefix: str, recording: tuple[str, str]) -> None:
    text = recording[1]
    tagged = re.sub("^(?=.|\n)", lambda _: prefix, text, flags=re.MULTILINE)
    assert parse_text(tagged) == parse_text(text)


@settings(max_examples=60, deadline=None)
@given(recording=st.sampled_from(texts(GOOD)))
def test_carriage_returns_and_byte_order_mark_change_nothing(recording: tuple[str, str]) -> None:
    text = recording[1]
    assert parse_text("\ufeff" + text.replace("\n", "\r\n")) == parse_text(text)


@settings(max_examples=60, deadline=None)
@given(st.sampled_from(LINES), st.sampled_from(LINES))
def test_outputs_one_after_the_other_give_the_tables_of_both(
    one: tuple[str, str], two: tuple[str, str]
) -> None:
    both = parse_text(one[1] + two[1])
    assert [table.rows for table in both] == [
        table.rows for text in (one[1], two[1]) for table in parse_text(text)
    ]


LONG = {
    "many runs": lambda n: render_osu(FIXED, marked=True) * n,
    "many titles": lambda n: "# OSU MPI Latency Test v7.2\n" * n,
    "many pasted tables": lambda n: "# Benchmarking PingPong\n# #processes = 2\n" * n,
    "many titles of IMB": lambda n: "# Benchmarking PingPong\n" * n,
    "many headers": lambda n: "# Size      Bandwidth (MB/s)\n" * n,
    "many ends of programs": lambda n: (
        render_osu(FIXED, marked=True) + "Exited with exit code 1\n" * n
    ),
    "a long line of news": lambda n: render_osu(FIXED, marked=True) + "srun: error: " * n,
    "a long line of numbers": lambda n: render_osu(FIXED, marked=True) + "1   1." * n,
    "a long tag": lambda n: "[1,0]<std" * n,
}
FIXED = Table(
    suite="osu", program="osu_bw", version="7.2", columns=("message_size", "bandwidth_mb_s"),
    rows=((1, 1.0), (2, 2.0)), source="law", line=2, row_lines=(3, 4),
)  # fmt: skip


@pytest.mark.parametrize("make", LONG.values(), ids=LONG)
def test_cost_is_linear_in_the_length_of_the_text(make: Callable[[int], str]) -> None:
    """Eight times the text: eight times the work, 64 times where a search goes back each time."""

    def cost(times: int) -> float:
        text = make(times)
        best = float("inf")
        for _ in range(3):
            start = time.process_time()
            read_tables(text)
            best = min(best, time.process_time() - start)
        return best

    assert cost(4000) < 30 * max(cost(500), 0.002)
