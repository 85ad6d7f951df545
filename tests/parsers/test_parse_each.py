"""One damaged table costs that table: what is read of a text that holds several."""

from __future__ import annotations

import pytest
from recordings import DATA

from fabricproof.errors import ParseError
from fabricproof.parsers import parse_text, read_tables

OSU = "# OSU MPI Bandwidth Test v7.2\n# Size      Bandwidth (MB/s)\n1   1.00\n2   2.00\n4   4.00\n"
#: what flux prints below a job's output: its job specification and its events
FLUX = 'START OF JOBSPEC\n{"resources": [{"type": "slot", "count": 4}], "version": 1}\n{"a": 1}\n'


def test_one_damaged_table_costs_that_table() -> None:
    text = OSU + OSU.replace("2   2.00\n", "") + OSU
    reading = read_tables(text, "job.out")
    assert [table.line for table in reading.tables] == [2, 11]
    (damage,) = reading.damages
    assert (damage.source, damage.line, damage.problem) == ("job.out", 9, "a row is missing")
    with pytest.raises(ParseError, match="a row is missing"):
        parse_text(text)


def test_one_damaged_table_of_imb_costs_that_table() -> None:
    text = (DATA / "imb/mpi1-pingpong.txt").read_text("utf-8")
    whole = parse_text(text)
    lines = text.split("\n")
    del lines[whole[0].row_lines[3] - 1]
    reading = read_tables("\n".join(lines), "imb.out")
    assert [table.program for table in reading.tables] == ["PingPing"]
    assert [damage.line for damage in reading.damages] == [whole[0].row_lines[3]]


def test_a_run_of_imb_that_was_cut_is_damaged_though_its_tables_are_whole() -> None:
    text = (DATA / "imb/mpi1-pingpong.txt").read_text("utf-8")
    reading = read_tables(text[: text.index("# All processes")])
    assert [table.program for table in reading.tables] == ["PingPong", "PingPing"]
    assert [damage.problem for damage in reading.damages] == ["the output is cut"]


def test_json_of_a_scheduler_below_a_table_is_not_iperf3() -> None:
    (table,) = parse_text(OSU + FLUX)
    assert table.program == "osu_bw"
    assert len(table.rows) == 3


def test_rows_below_a_line_of_iperf_inside_a_table_are_not_lost_in_silence() -> None:
    """Finding D6: every row below an iperf line was ignored, and what stood above it passed."""
    lines = OSU.splitlines()
    lines.insert(3, "[  5]   0.00-1.00   sec  1.10 GBytes  9.41 Gbits/sec")
    reading = read_tables("\n".join(lines) + "\n")
    assert any("row of another table" in damage.problem for damage in reading.damages)
    with pytest.raises(ParseError):
        parse_text("\n".join(lines) + "\n")


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("# Topology file: generated on Fri Nov 20\nvendid=0x2c9\n", "subnet check"),
        (
            "CA: MT4115 node1:\n      0x1 1 1[  ] ==( 4X 25.78125 Gbps\nSwitch: 0x248a sw\n",
            "subnet",
        ),
        (
            "# nThread 1 nGpus 8 minBytes 8\n#       size    count   type  algbw   busbw\n",
            "nccl-tests",
        ),
    ],
)
def test_an_output_of_another_kind_is_told_with_what_to_do(text: str, says: str) -> None:
    with pytest.raises(ParseError) as caught:
        parse_text(text)
    assert caught.value.problem == "no benchmark table"
    assert says in str(caught.value.next_step)
