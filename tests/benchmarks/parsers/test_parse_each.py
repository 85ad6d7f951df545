"""One damaged table costs that table: what is read of a text that holds several."""

from __future__ import annotations

import contextlib
import time

import pytest
from recordings import DATA

from fabricproof.benchmarks.parsers import parse_text, read_tables
from fabricproof.core.errors import ParseError
from fabricproof.core.measure import Verdict
from fabricproof.physics import Fabric, find_link
from fabricproof.verdict.table import judge_table
from fabricproof.verdict.value import Rules

OSU = "# OSU MPI Bandwidth Test v7.2\n# Size      Bandwidth (MB/s)\n1   1.00\n2   2.00\n4   4.00\n"
PING = (DATA / "imb/mpi1-pingpong.txt").read_text("utf-8")
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
    whole = parse_text(PING)
    lines = PING.split("\n")
    del lines[whole[0].row_lines[3] - 1]
    reading = read_tables("\n".join(lines), "imb.out")
    assert [table.program for table in reading.tables] == ["PingPing"]
    assert [damage.line for damage in reading.damages] == [whole[0].row_lines[3]]
    cut = read_tables(PING[: PING.index("# All processes")])  # its tables are whole
    assert [table.program for table in cut.tables] == ["PingPong", "PingPing"]
    assert [damage.problem for damage in cut.damages] == ["the output is cut"]


def test_rows_below_a_line_of_iperf_inside_a_table_are_not_lost_in_silence() -> None:
    """Finding D6: every row below an iperf line was ignored, and what stood above it passed."""
    lines = OSU.splitlines()
    lines.insert(3, "[  5]   0.00-1.00   sec  1.10 GBytes  9.41 Gbits/sec")
    text = "\n".join(lines) + "\n"
    assert any("row of another table" in damage.problem for damage in read_tables(text).damages)
    with pytest.raises(ParseError):
        parse_text(text)


@pytest.mark.parametrize(
    "text",
    [
        "# Topology file: generated on Fri Nov 20\nvendid=0x2c9\n",
        "SW  4  1 0x0000000000200000  4x EDR - CA  1  1 0x0000000000100000 ( 's' - 'h' )\n",
        "# Faked topology file\n\nvendid=0x2c9\n",
        "CA: MT4115 node1:\n      0x1 1 1[  ] ==( 4X 25.78125 Gbps\nSwitch: 0x248a sw\n",
    ],
)
def test_an_output_of_another_kind_is_told_with_what_to_do(text: str) -> None:
    with pytest.raises(ParseError) as caught:
        parse_text(text)
    assert caught.value.problem == "no benchmark table"
    assert "subnet check" in str(caught.value.next_step)


#: what ``iperf3 --debug`` prints between its version and its first words (esnet/iperf issue 1088)
DEBUG = """iperf 3.1.3
send_parameters:
{
\t"tcp":\ttrue,
\t"parallel":\t1
}
Connecting to host 192.0.2.4, port 5201
get_results
{
\t"congestion_used":\t"cubic",
\t"streams":\t[{
\t\t\t"id":\t1
\t\t}]
}
[ ID] Interval           Transfer     Bandwidth       Retr
[  4]   0.00-20.00  sec  29.9 GBytes  12.8 Gbits/sec  114             sender
[  4]   0.00-20.00  sec  29.9 GBytes  12.8 Gbits/sec                  receiver

iperf Done.
"""


def test_the_json_of_a_debugging_iperf3_begins_no_run() -> None:
    reading = read_tables(DEBUG)
    assert not reading.damages
    (table,) = reading.tables
    assert (table.suite, table.version) == ("iperf3", "3.1.3")
    assert len(read_tables(DEBUG + DEBUG).tables) == 2


MEMORY = (DATA / "imb/damaged/mpi1-mem.txt").read_text("utf-8")


def test_sizes_that_imb_gave_up_on_are_named_and_the_others_are_read() -> None:
    """Finding B1: 258 of 736 files of one public collection hold such a row, and were refused."""
    text = MEMORY.replace("bytes:   4194304", "bytes:   65536")
    ping = read_tables(text).tables[0]
    assert ping.column("message_size")[-1] == 32768
    assert dict(ping.unmeasured) == {65536: "out-of-mem."}
    with pytest.raises(ParseError, match="the benchmark gave up"):
        parse_text(text)
    report = judge_table(ping, Rules(fabric=Fabric(link=find_link("NDR"))))
    (gone,) = [each for each in report.quantities if each.verdict is Verdict.MISSING]
    assert gone.name == "bandwidth_64KiB"
    assert "out-of-mem." in gone.reason


def test_imb_without_msglog_has_no_hole_after_the_empty_message() -> None:
    """Finding D8: rows 0 and 4194304 alone were a whole table."""
    text = PING.replace("-msglog 0:14 ", "")
    lines, (first, _) = text.split("\n"), parse_text(text)
    del lines[first.row_lines[1] - 1 : first.row_lines[-1] - 1]
    with pytest.raises(ParseError, match="a row is missing"):
        parse_text("\n".join(lines))


BIBW = OSU.replace("Bandwidth Test v7.2", "Bi-Directional Bandwidth Test v3.2")
XCCL = "# OSU NCCL-CUDA Allreduce Latency Test v7.5\n# Size   Avg Latency(us)\n4   9.00\n"


@pytest.mark.parametrize(
    ("text", "program", "version"),
    [
        (OSU.replace("v7.2", "(Version 2.1)"), "osu_bw", "2.1"),
        (BIBW.replace("Bandwidth (MB/s)", "Bi-Bandwidth (MB/s)"), "osu_bibw", "3.2"),
        (XCCL, "osu_xccl_allreduce", "7.5"),
        (OSU + FLUX, "osu_bw", "7.2"),  # JSON of a scheduler below a table is not iperf3
    ],
)
def test_old_and_new_titles_of_osu(text: str, program: str, version: str) -> None:
    (table,) = parse_text(text)
    assert (table.program, table.version) == (program, version)
    assert len(table.rows) == (1 if text is XCCL else 3)


@pytest.mark.parametrize(
    "line",
    [
        "0% [Working]\r            ",
        '4deb78a flags=0x0) failed: Operation not permitted. Please set "ulimit -l"',
        "0x7f12ab34, length=8392704, access=0xf) failed: Cannot allocate memory",
    ],
)
def test_noise_of_other_programs_is_no_damaged_row(line: str) -> None:
    assert len(parse_text(OSU + line + "\n" + OSU)) == 2


@pytest.mark.parametrize("words", ["OSU Micro benchmarks\n====\n", "# OSU Micro-Benchmarks 7.5\n"])
def test_the_name_of_the_package_is_no_title(words: str) -> None:
    assert [len(table.rows) for table in parse_text(words + OSU + words + OSU)] == [
        len(table.rows) for table in parse_text(OSU + OSU)
    ]


ENDLESS = "9" * 5000


@pytest.mark.parametrize(
    "text",
    [
        f"# OSU MPI Latency Test v7.2\n# [ pairs: {ENDLESS} ] [ window size: 64 ]\n",
        f"This is a test with {ENDLESS} processes\n",
        f"# OSU MPI Hello World Test v7.2\nThis is a test with {ENDLESS} processes\n",
        OSU.replace("# Size", f"# Window creation: {ENDLESS}\n# Size", 1),
        OSU.replace("# Size", "# Datatype: ².\n# Size", 1),
    ],
)
def test_numbers_without_end_are_no_traceback(text: str) -> None:
    for found in (parse_text, read_tables):
        with contextlib.suppress(ParseError):
            found(text)


@pytest.mark.parametrize("mark", ["#", "["])
def test_a_line_of_blanks_takes_linear_time(mark: str) -> None:
    """Finding D18: 40,000 blanks took 35 s.  Eight times as many may not take 64 times as long."""

    def best_s(blanks: int) -> float:
        text = OSU + " " * blanks + mark + "\n" + OSU
        times = []
        for _ in range(3):
            before = time.process_time()
            read_tables(text)
            times.append(time.process_time() - before)
        return min(times)

    assert best_s(400_000) < 24 * best_s(50_000)


ROWS = OSU.split("\n", 2)[2]


@pytest.mark.parametrize("between", ["", "\n", "some words\n"])
@pytest.mark.parametrize(
    "rows", [ROWS, "0   1000   1.50   0.00\n1   1000   1.52   0.66\n", "n1: 4 GPUs\n" + ROWS]
)
def test_rows_above_the_first_title_are_a_table_that_lost_its_head(rows: str, between: str) -> None:
    text = rows + between + OSU
    found = read_tables(text)
    assert [table.program for table in found.tables] == ["osu_bw"]
    (damage,) = found.damages
    assert "without its head" in damage.problem
    assert damage.line == 1 + rows.startswith("n1")
    with pytest.raises(ParseError):
        parse_text(text)


@pytest.mark.parametrize(
    "words", ["4 12.50\n", "0.10 0.22 0.35 1/200 4711\n", "16 9.50\n8 7.50\n", "1 2\n2 4\n"]
)
def test_numbers_about_a_node_above_the_first_title_are_no_table(words: str) -> None:
    assert read_tables(words + OSU).damages == ()


@pytest.mark.parametrize("mark", ["12: ", "> "])
def test_marks_before_every_line_are_no_data(mark: str) -> None:
    text = "".join(f"{mark}{line}\n" for line in OSU.splitlines())
    (table,) = parse_text(text)
    assert table.rows == ((1, 1.0), (2, 2.0), (4, 4.0))
    assert table.row_lines == (3, 4, 5)


@pytest.mark.parametrize("ranks", [("0", "1"), ("12", "13")])
def test_lines_of_two_ranks_are_told_apart(ranks: tuple[str, str]) -> None:
    slow = OSU.replace(".00", ".50")
    pairs = zip(OSU.splitlines(), slow.splitlines(), strict=True)
    text = "".join(f"{ranks[0]}: {one}\n{ranks[1]}: {two}\n" for one, two in pairs)
    one, two = parse_text(text)
    assert one.column("bandwidth_mb_s") == (1.0, 2.0, 4.0)
    assert two.column("bandwidth_mb_s") == (1.5, 2.5, 4.5)
    assert two.row_lines == (6, 8, 10)


def test_a_line_without_label_between_those_of_two_ranks_belongs_to_neither() -> None:
    lines = [f"{each}: {line}" for line in OSU.splitlines() for each in (1, 2)]
    lines.insert(8, "8   16.00")
    assert len(read_tables("\n".join(lines) + "\n").damages) == 2


def test_lines_of_too_many_ranks_are_refused() -> None:
    text = "".join(f"{each}: {line}\n" for each in range(65) for line in OSU.splitlines())
    with pytest.raises(ParseError, match="too many ranks"):
        parse_text(text)
