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
    assert (table.rows[0], table.rows[-1], len(table.rows)) == ((1, 0.47), (4194304, 1180.56), 23)
    assert table.row_lines == tuple(range(3, 26))


@pytest.mark.parametrize(("percent", "name"), [("1", "p1"), ("25", "p25"), ("99.9", "p999")])
def test_any_percentile_of_later_versions_is_a_column(percent: str, name: str) -> None:
    """The formats are those of print_only_header in util/osu_util_mpi.c of 7.4, as -z asks."""
    head = "# OSU MPI Latency Test v7.4\n# Datatype: MPI_CHAR.\n# Size         Avg Latency(us)"
    text = f"{head}    P{percent} Tail Lat(us)    P50 Tail Lat(us)\n1      1.20     1.00     1.10\n"
    assert one(text).columns[-2:] == (f"latency_{name}_us", "latency_p50_us")
    of_rates = text.replace("Latency Test", "Bandwidth Test").replace(
        "Tail Lat(us)", "Tail BW(MB/s)"
    )
    of_rates = of_rates.replace("Avg Latency(us)", "Bandwidth (MB/s)")
    assert one(of_rates).columns[-2:] == (f"bandwidth_{name}_mb_s", "bandwidth_p50_mb_s")
    assert refuse(text.replace("P50", f"P{percent}")).problem == "unknown column"


#: ``-D vect:4:1`` of 7.4: of a buffer a quarter is sent
DDT = (
    "# OSU MPI Latency Test v7.4\n# Datatype: MPI_CHAR.\n"
    "# Size         Avg Latency(us)       Transmit Size\n"
)


def test_what_a_derived_data_type_sends_stands_beside_its_buffer() -> None:
    table = one(DDT + "8        1.20       2\n16       1.21       4\n")
    assert (table.column("message_size"), table.column("transmit_size")) == ((8, 16), (2, 4))
    assert refuse(DDT + "8        1.20       2\n16       1.21       4").problem == "cut row"


#: what gnuplot's terminal "dumb" draws by the commands of omb_graph_plot in util/osu_util_graph.c
PLOT = """\f
                     Size: 2, Avg:2.00
     3 +-----------------------------------------------------+
   2.5 |-+         .                          .            +-|
     2 |.....  ..     .......    ..   . ...      .......   ..|
       +-----------------------------------------------------+
       0        200        400        600       800       1000
                        Iteration Count

"""


def test_a_plot_below_the_table_is_no_table() -> None:
    text = BW + row(1, "1.00") + row(2, "2.00")
    assert parse_text(text + PLOT) == parse_text(text)
    assert len(parse_text(text + PLOT + text)) == 2
    assert refuse(text + PLOT + "Killed\n").problem == "the job ended badly"
    assert refuse(text + PLOT + row(4, "4.00")).problem == "a row below its table"
    assert refuse(BW + PLOT).problem == "a table without rows"


def test_validation_is_kept_for_the_judge() -> None:
    passed, failed = (row(size, "9.00").rstrip() + f"   {word}\n" for size, word in VALIDATED)
    assert one(HEAD_C + passed).attributes["validation"] == "Pass"
    died = (
        "DATA VALIDATION ERROR: ./osu_bw exited with status 1 on message size 2.\n"
        "srun: error: node1: task 0: Exited with exit code 1\n"
    )
    table = parse_text(HEAD_C + passed + failed + died)[0]
    assert (table.attributes["validation"], len(table.rows)) == ("Fail", 2)


VALIDATED = ((1, "Pass"), (2, "Fail"))
BARRIER = (DATA / "osu/osu_barrier-f-5.9.txt").read_text("utf-8").rstrip()
BARRIERS = (DATA / "osu/osu_barrier-5.9.txt").read_text("utf-8")


BARRIER_F = (
    "# OSU MPI Barrier Latency Test v7.2\n"
    "# Avg Latency(us)   Min Latency(us)   Max Latency(us)  Iterations\n"
)
RATES = (
    "# OSU MPI Multiple Bandwidth / Message Rate Test v7.2\n"
    "# [ pairs: 2 ] [ window size: 64 ]\n# Size   MB/s   Messages/s\n1   1.00   1000000.00\n"
)
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
    "cut row of whole numbers": (BARRIER, BARRIER.count("\n") + 1),
    "glued chatter": (BW + row(1, "1.00") + "2                 1srun: x\n", 4),
    "hidden row": (BW + row(1, "1.00") + "warning: 2                       1.90\n", 4),
    "too many columns": (BW + row(1, "1.00   1.00"), 3),
    "no validation": (HEAD_C + row(1, "9.00"), 3),
    "not a number": (BW + row(1, "nan"), 3),
    "infinite": (BW + row(1, "inf"), 3),
    "repeated size": (BW + row(1, "1.00") + row(1, "1.00"), 4),
    "sizes fall": (BW + row(2, "1.00") + row(1, "1.00"), 4),
    "gap": (BW + row(1, "1.00") + row(4, "1.00"), 4),
    "second row of a barrier": (BARRIERS + "             0.70\n", BARRIERS.count("\n") + 1),
    "second header": (BW + row(1, "1.00") + "# Size      Bandwidth (MB/s)\n" + row(1, "1.00"), 4),
    "killed": (BW + row(1, "1.00") + "Killed\n", 4),
    "no table but news of death": ("hello\nKilled\n", 2),
    "0 iterations": (BARRIER_F + "0.50  0.40  0.60  0\n", 3),
    "0 pairs": (RATES.replace("pairs: 2", "pairs: 0"), 2),
    "0 processes": ("# OSU MPI Hello World Test v7.2\nThis is a test with 0 processes\n", 1),
    "rate without pairs": (
        "# OSU MPI Multiple Bandwidth / Message Rate Test v7.2\n# Size   MB/s   Messages/s\n", 2),
}  # fmt: skip


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
