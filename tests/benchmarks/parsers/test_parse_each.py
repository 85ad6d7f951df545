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
            "SW  4  1 0x0000000000200000  4x EDR - CA  1  1 0x0000000000100000 ( 's' - 'h' )\n",
            "subnet",
        ),
        ("# Faked topology file\n\nvendid=0x2c9\n", "subnet check"),
        (
            "CA: MT4115 node1:\n      0x1 1 1[  ] ==( 4X 25.78125 Gbps\nSwitch: 0x248a sw\n",
            "subnet",
        ),
    ],
)
def test_an_output_of_another_kind_is_told_with_what_to_do(text: str, says: str) -> None:
    with pytest.raises(ParseError) as caught:
        parse_text(text)
    assert caught.value.problem == "no benchmark table"
    assert says in str(caught.value.next_step)


MEMORY = (DATA / "imb/damaged/mpi1-mem.txt").read_text("utf-8")


def test_sizes_that_imb_gave_up_on_are_named_and_the_others_are_read() -> None:
    """Finding B1: 258 of 736 files of one public collection hold such a row, and were refused."""
    text = MEMORY.replace("bytes:   4194304", "bytes:   65536")
    reading = read_tables(text)
    ping = reading.tables[0]
    assert ping.column("message_size")[-1] == 32768
    assert dict(ping.unmeasured) == {65536: "out-of-mem."}
    with pytest.raises(ParseError, match="the benchmark gave up"):
        parse_text(text)


def test_a_size_that_was_given_up_is_missing_from_the_verdict() -> None:
    ping = read_tables(MEMORY.replace("bytes:   4194304", "bytes:   65536")).tables[0]
    report = judge_table(ping, Rules(fabric=Fabric(link=find_link("NDR"))))
    (gone,) = [each for each in report.quantities if each.verdict is Verdict.MISSING]
    assert gone.name == "bandwidth_64KiB"
    assert "out-of-mem." in gone.reason


def test_imb_without_msglog_has_no_hole_after_the_empty_message() -> None:
    """Finding D8: rows 0 and 4194304 alone were a whole table."""
    text = (DATA / "imb/mpi1-pingpong.txt").read_text("utf-8").replace("-msglog 0:14 ", "")
    assert len(parse_text(text)) == 2
    lines = text.split("\n")
    (first, _) = parse_text(text)
    del lines[first.row_lines[1] - 1 : first.row_lines[-1] - 1]
    with pytest.raises(ParseError, match="a row is missing"):
        parse_text("\n".join(lines))


@pytest.mark.parametrize(
    ("text", "program", "version"),
    [
        (OSU.replace("v7.2", "(Version 2.1)"), "osu_bw", "2.1"),
        (
            OSU.replace("Bandwidth Test v7.2", "Bi-Directional Bandwidth Test v3.2").replace(
                "Bandwidth (MB/s)", "Bi-Bandwidth (MB/s)"
            ),
            "osu_bibw",
            "3.2",
        ),
        (
            "# OSU NCCL-CUDA Allreduce Latency Test v7.5\n# Size   Avg Latency(us)\n4   9.00\n",
            "osu_xccl_allreduce",
            "7.5",
        ),
    ],
)
def test_old_and_new_titles_of_osu(text: str, program: str, version: str) -> None:
    (table,) = parse_text(text)
    assert (table.program, table.version) == (program, version)


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


@pytest.mark.parametrize(
    "text",
    [
        "# OSU MPI Latency Test v7.2\n# [ pairs: " + "9" * 5000 + " ] [ window size: 64 ]\n",
        "This is a test with " + "9" * 5000 + " processes\n",
        "# OSU MPI Hello World Test v7.2\nThis is a test with " + "9" * 5000 + " processes\n",
        OSU.replace("# Size", "# Window creation: " + "9" * 5000 + "\n# Size", 1),
        OSU.replace("# Size", "# Datatype: ².\n# Size", 1),
    ],
)
def test_numbers_without_end_are_no_traceback(text: str) -> None:
    for found in (lambda: parse_text(text), lambda: read_tables(text)):
        with contextlib.suppress(ParseError):
            found()


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

    assert best_s(1_600_000) < 24 * best_s(200_000)


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


@pytest.mark.parametrize("mark", ["12: ", "> ", "> > "])
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
