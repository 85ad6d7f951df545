"""OSU: what is said about the run, and each kind of damage with its line."""

from __future__ import annotations

import pytest
from recordings import DATA

from fabricproof.benchmarks.catalogue import collective_of
from fabricproof.benchmarks.parsers import parse_text
from fabricproof.core.errors import ParseError
from fabricproof.core.measure import Table

BW = "# OSU MPI Bandwidth Test v7.2\n# Size      Bandwidth (MB/s)\n"
HEAD_C = "# OSU MPI Bandwidth Test v7.2\n# Size      Bandwidth (MB/s)        Validation\n"


def row(size: int, value: str) -> str:
    return f"{size:<10}{value:>18}\n"


def one(text: str) -> Table:
    (table,) = parse_text(text)
    return table


def recorded(name: str) -> tuple[Table, ...]:
    return parse_text((DATA / name).read_text("utf-8"), name)


def refuse(text: str, **options: list[int]) -> ParseError:
    with pytest.raises(ParseError) as caught:
        parse_text(text, "job.out", **options)
    return caught.value


def test_bandwidth_table_of_document_001_has_all_its_rows() -> None:
    (table,) = recorded("osu/document-001-one-connection.txt")
    assert (table.suite, table.program, table.version) == ("osu", "osu_bw", "5.5")
    assert table.rows[0] == (1, 0.47)
    assert table.rows[-1] == (4194304, 1180.56)
    assert len(table.rows) == 23
    assert table.row_lines == tuple(range(3, 26))


def test_message_rate_table_names_pairs_and_window() -> None:
    (table,) = recorded("osu/document-001-pairs-72.txt")
    assert table.attributes == {"num_pairs": 72, "window_size": 64}
    assert max(table.column("bandwidth_mb_s")) == 13011.67


def test_put_bandwidth_names_window_and_synchronization() -> None:
    (table,) = recorded("osu/document-004-put-bw.txt")
    assert table.program == "osu_put_bw"
    assert table.attributes["synchronization"] == "MPI_Win_flush"


def test_numbers_under_a_wrong_header_of_a_later_data_type_are_bandwidths() -> None:
    tables = recorded("osu/osu_bw-types-7.2.txt")
    assert [table.attributes["datatype"] for table in tables] == [
        "MPI_CHAR",
        "MPI_INT",
        "MPI_FLOAT",
    ]
    assert {table.columns for table in tables} == {("message_size", "bandwidth_mb_s")}


def test_bandwidth_port_is_not_fooled_by_its_latency_header() -> None:
    (table,) = recorded("osu-mpi4py/osu_bw.txt")
    assert (table.suite, table.version) == ("osu-mpi4py", None)
    assert table.columns == ("message_size", "bandwidth_mb_s")


def test_threads_printed_above_the_title_belong_to_the_run() -> None:
    (table,) = recorded("osu/osu_latency_mt-7.2.txt")
    assert table.attributes["num_receiver_threads"] == 2


def test_barrier_has_one_row_without_size() -> None:
    (table,) = recorded("osu/osu_barrier-f-5.9.txt")
    assert "message_size" not in table.columns
    assert len(table.rows) == 1
    assert table.columns[-1] == "iterations"
    assert isinstance(table.rows[0][-1], int)


@pytest.mark.parametrize("percent", ["50", "90", "99"])
def test_tail_columns_of_later_versions(percent: str) -> None:
    text = (
        f"# OSU MPI Latency Test v7.4\n# Size          Latency (us)  P{percent} Tail Lat(us)\n"
        "# Datatype: MPI_CHAR.\n1                       1.00              2.00\n"
    )
    assert one(text).columns[-1] == f"latency_p{percent}_us"


def test_failed_validation_is_kept_for_the_judge() -> None:
    text = HEAD_C + row(1, "9.00").rstrip() + "   Pass\n" + row(2, "9.00").rstrip() + "   Fail\n"
    text += (
        "DATA VALIDATION ERROR: ./osu_bw exited with status 1 on message size 2.\n"
        "srun: error: node1: task 0: Exited with exit code 1\n"
    )
    table = parse_text(text)[0]
    assert table.attributes["validation"] == "Fail"
    assert len(table.rows) == 2


def test_passed_validation_says_so() -> None:
    assert one(HEAD_C + row(1, "9.00").rstrip() + "   Pass\n").attributes["validation"] == "Pass"


def test_missing_validation_is_an_error() -> None:
    assert refuse(HEAD_C + row(1, "9.00")).line == 3


DAMAGE = {
    "unknown program": ("# OSU MPI Quantum Test v9.9\n", 1),
    "cut title": ("# OSU MPI Bandw\n# Size      Bandwidth (MB/s)\n" + row(1, "1.00"), 1),
    "no title": ("# Size      Bandwidth (MB/s)\n" + row(1, "1.00"), 1),
    "header of another program": (BW.replace("Bandwidth (MB/s)", "Latency (us)"), 2),
    "unknown column": (BW.replace("(MB/s)", "(MB/s)   Entropy (bit)") + row(1, "1.00"), 2),
    "no header": ("# OSU MPI Bandwidth Test v7.2\n" + row(1, "1.00"), 2),
    "no rows": (BW, 2),
    "cut row": (BW + row(1, "1.00") + "2\n", 4),
    "cut number": (BW + row(1, "1.00") + row(2, "117.6"), 4),
    "glued chatter": (BW + row(1, "1.00") + "2                 1srun: x\n", 4),
    "hidden row": (BW + row(1, "1.00") + "warning: 2                       1.90\n", 4),
    "too many columns": (BW + row(1, "1.00   1.00"), 3),
    "not a number": (BW + row(1, "nan"), 3),
    "infinite": (BW + row(1, "inf"), 3),
    "repeated size": (BW + row(1, "1.00") + row(1, "1.00"), 4),
    "sizes fall": (BW + row(2, "1.00") + row(1, "1.00"), 4),
    "gap": (BW + row(1, "1.00") + row(4, "1.00"), 4),
    "second header": (BW + row(1, "1.00") + "# Size      Bandwidth (MB/s)\n" + row(1, "1.00"), 4),
    "killed": (BW + row(1, "1.00") + "Killed\n", 4),
    "rate without pairs": (
        "# OSU MPI Multiple Bandwidth / Message Rate Test v7.2\n# Size   MB/s   Messages/s\n",
        2,
    ),
}


@pytest.mark.parametrize(("text", "line"), DAMAGE.values(), ids=DAMAGE)
def test_damage_is_an_error_with_its_line(text: str, line: int) -> None:
    error = refuse(text)
    assert error.line == line
    assert str(error).startswith(f"job.out:{line}: ")
    assert error.expected


DEATHS = (
    "slurmstepd: error: *** STEP 12.0 ON node1 CANCELLED DUE TO TIME LIMIT ***",
    "slurmstepd: error: Detected 1 oom-kill event(s) in StepId=12.0",
    "srun: error: node1: task 0: Exited with exit code 1",
    "srun: error: node1: task 1: Killed",
    "srun: Job step aborted: Waiting up to 32 seconds for job step to finish.",
    "mpirun noticed that process rank 1 with PID 0 on node node1 exited on signal 9 (Killed).",
    "=   BAD TERMINATION OF ONE OF YOUR APPLICATION PROCESSES",
    "MPI_ABORT was invoked on rank 0 in communicator MPI_COMM_WORLD",
    "[node1:4711] *** Process received signal ***",
    "Segmentation fault (core dumped)",
    "Abort(1) on node 0 (rank 0 in comm 0): Fatal error in PMPI_Send",
    "[node1:4711:0:4711] Caught signal 11 (Segmentation fault: address not mapped)",
    "a non-zero exit code. Per user-direction, the job has been aborted.",
    "srun: error: Node failure on node2",
    "srun: forcing job termination",
    "timeout: sending signal TERM to command \u2018mpirun\u2019",
    "mpirun: abort is already in progress",
    "=>> PBS: job killed: walltime 3603 exceeded limit 3600",
    "TERM_RUNLIMIT: job killed after reaching LSF run time limit.",
    "Illegal instruction (core dumped)",
)


@pytest.mark.parametrize("death", DEATHS)
@pytest.mark.parametrize("after", [1, 2])
def test_news_of_death_in_or_after_a_table_is_an_error(death: str, after: int) -> None:
    rows = [row(1, "1.00"), row(2, "2.00")]
    rows.insert(after, death + "\n")
    error = refuse(BW + "".join(rows))
    assert (error.problem, error.line) == ("the job ended badly", 3 + after)


@pytest.mark.parametrize("death", DEATHS)
def test_death_of_an_earlier_program_leaves_a_later_table_alone(death: str) -> None:
    assert one(death + "\n" + BW + row(1, "1.00")).rows == ((1, 1.0),)


def test_text_without_table_points_at_the_news_of_death() -> None:
    error = refuse("hello\nKilled\n")
    assert (error.problem, error.line) == ("no benchmark table", 2)


def test_last_row_of_whole_numbers_without_newline_may_be_cut() -> None:
    text = (DATA / "osu/osu_barrier-f-5.9.txt").read_text("utf-8").rstrip()
    assert refuse(text).problem == "cut row"
    assert parse_text(text + "\n")


def test_second_row_of_a_barrier_is_an_error() -> None:
    text = (DATA / "osu/osu_barrier-5.9.txt").read_text("utf-8")
    assert refuse(text + "             0.70\n").problem == "a second row"


def test_numbers_stay_whole_where_they_are_printed_whole() -> None:
    table = one(BW + row(1, "1.00"))
    assert isinstance(table.rows[0][0], int)
    assert isinstance(table.rows[0][1], float)


@pytest.mark.parametrize(
    ("title", "program"),
    [
        ("Allreduce Persistent", "osu_allreduce_persistent"),
        ("All-to-All Personalized Exchange Persistent", "osu_alltoall_persistent"),
        ("Broadcast Persistent", "osu_bcast_persistent"),
        ("Reduce_scatter_block", "osu_reduce_scatter_block"),
        ("Reduce_scatter_block Persistent", "osu_reduce_scatter_block_persistent"),
        ("Non-blocking Reduce_scatter_block", "osu_ireduce_scatter_block"),
    ],
)
def test_persistent_collectives_and_blocks_have_names(title: str, program: str) -> None:
    """Titles of c/mpi/collective of 7.4 and 7.5; the numbers are invented."""
    head = f"# OSU MPI {title} Latency Test v7.5\n# Size       Avg Latency(us)\n"
    if program.startswith("osu_i"):
        head = head.replace(
            "Avg Latency(us)", "Overall(us)  Compute(us)  Pure Comm.(us)  Overlap(%)"
        )
        rows = "4  9.00  4.00  5.00  0.00\n"
    else:
        rows = row(4, "5.00") + row(8, "5.10")
    table = one(head + rows)
    assert (table.suite, table.program) == ("osu", program)
    assert collective_of("osu", program) is not None
