"""IMB: units, modes, groups, and what a cut or failed run leaves behind."""

from __future__ import annotations

import pytest
from recordings import DATA

from fabricproof.benchmarks.parsers import parse_text
from fabricproof.core.errors import ParseError
from fabricproof.core.measure import Table

PINGPONG = (DATA / "imb/mpi1-pingpong.txt").read_text("utf-8")
END = "# All processes entering MPI_Finalize"


def recorded(name: str) -> tuple[Table, ...]:
    return parse_text((DATA / "imb" / name).read_text("utf-8"), name)


def refuse(text: str, **options: list[int]) -> ParseError:
    with pytest.raises(ParseError) as caught:
        parse_text(text, "job.out", **options)
    return caught.value


def pingpong(factor: float, *, version: str | None = None, newline: str = "\n") -> str:
    """A table whose megabyte is ``factor`` bytes, as PingPong computes it from the time."""
    head = f"#    Intel (R) MPI Benchmarks {version}, MPI-1 part\n" if version else ""
    rows = "".join(
        f"{size:>13}{10:>13}{time:>13.2f}{size / time * 1e6 / factor:>13.2f}\n"
        for size, time in ((0, 3.37), *((2**power, 3.4 + 2**power / 3900) for power in range(23)))
    )
    head += "# Benchmarking PingPong\n# #processes = 2\n"
    return head + "       #bytes #repetitions      t[usec]   Mbytes/sec\n" + rows.rstrip() + newline


def test_pasted_table_of_document_004() -> None:
    (table,) = recorded("document-004-p2p-1gbe.txt")
    assert (table.program, table.version) == ("PingPong", None)
    assert table.columns == (
        "message_size",
        "repetitions",
        "latency_us",
        "bandwidth_mb_s",
        "message_rate_per_s",
    )
    assert table.rows[-1] == (4194304, 200, 36276.94, 115.62, 28)
    assert table.attributes == {"num_processes": 2}


@pytest.mark.parametrize(
    ("name", "binary"),
    [
        ("mpi1-pingpong.txt", "IMB-MPI1"),
        ("p2p.txt", "IMB-P2P"),
        ("rma.txt", "IMB-RMA"),
        ("nbc.txt", "IMB-NBC"),
        ("ext.txt", "IMB-EXT"),
        ("mt.txt", "IMB-MT"),
    ],
)
def test_header_names_the_binary(name: str, binary: str) -> None:
    assert {table.attributes["binary"] for table in recorded(name)} == {binary}
    assert {table.version for table in recorded(name)} == {"2021.11"}


@pytest.mark.parametrize("version", ["3.2", "4.1 Update 1", "2017", None])
def test_binary_megabytes_of_old_versions_are_named_so(version: str | None) -> None:
    (table,) = parse_text(pingpong(2**20, version=version))
    assert table.columns[-1] == "bandwidth_mib_s"


@pytest.mark.parametrize("version", ["2018", "2019 Update 6", "2021.7", "2017", None])
def test_decimal_megabytes(version: str | None) -> None:
    (table,) = parse_text(pingpong(1e6, version=version))
    assert table.columns[-1] == "bandwidth_mb_s"


def test_groups_of_multi_mode_are_tables_of_their_own() -> None:
    tables = [table for table in recorded("mpi1-multi1.txt") if table.program == "PingPong"]
    assert [table.attributes["group"] for table in tables] == [0, 1]
    assert tables[0].attributes["num_groups"] == 2
    assert tables[1].rows[0] == (0, 20, 5.42, 0.0)


def test_idle_processes_and_modes_are_told() -> None:
    assert recorded("mpi1-map.txt")[0].attributes["num_idle_processes"] == 2
    assert {
        table.attributes["mode"] for table in recorded("rma.txt") if table.program == "Unidir_put"
    } == {"AGGREGATE", "NON-AGGREGATE"}


def test_chosen_lengths_need_not_double() -> None:
    (table,) = recorded("mpi1-msglen.txt")
    assert table.column("message_size") == (0, 100, 1000, 5000)


def test_benchmark_that_is_invalid_for_the_ranks_is_not_missing() -> None:
    assert "Stencil2D" not in {table.program for table in recorded("p2p.txt")}


def test_overlap_columns() -> None:
    assert recorded("nbc.txt")[0].columns == (
        "message_size",
        "repetitions",
        "overall_us",
        "pure_communication_us",
        "compute_us",
        "overlap_percent",
    )


@pytest.mark.parametrize(
    ("name", "word"),
    [
        ("mpi1-timeout.txt", "time-out"),
        ("mpi1-mem.txt", "out-of-mem"),
        ("mpi1-uniband-timeout.txt", "time-out"),
    ],
)
def test_benchmark_that_gave_up_is_an_error(name: str, word: str) -> None:
    with pytest.raises(ParseError, match=word) as caught:
        recorded(f"damaged/{name}")
    assert caught.value.problem == "the benchmark gave up"


def test_output_without_its_end_marker_is_cut() -> None:
    assert refuse(PINGPONG.replace(END, "")).problem == "the output is cut"


def test_listed_benchmark_without_table_is_missing() -> None:
    start = PINGPONG.index(
        "#---------------------------------------------------\n# Benchmarking PingPing"
    )
    error = refuse(PINGPONG[:start] + END + "\n")
    assert "PingPing" in error.problem
    assert error.line == PINGPONG[: PINGPONG.index("# PingPing\n")].count("\n") + 1


def test_table_that_ends_before_the_announced_length_is_cut() -> None:
    lines = PINGPONG.split("\n")
    last = next(at for at, line in enumerate(lines) if line.split()[:1] == ["16384"])
    del lines[last]
    error = refuse("\n".join(lines))
    assert "shorter than its header" in error.problem
    assert "16384" in (error.expected or "")


def test_lost_header_is_an_error() -> None:
    text = PINGPONG.replace("Intel(R) MPI Benchmarks 2021.11, MPI-1 part", "oops")
    assert refuse(text).problem == "a line is missing"


def test_row_of_one_group_lost_is_an_error() -> None:
    text = (DATA / "imb/mpi1-multi1.txt").read_text("utf-8")
    lines = text.split("\n")
    del lines[next(at for at, line in enumerate(lines) if line.split()[:2] == ["1", "16384"])]
    assert "group" in refuse("\n".join(lines)).problem


def test_whole_number_at_the_end_of_the_text_may_be_cut() -> None:
    text = (DATA / "imb/document-004-p2p-1gbe.txt").read_text("utf-8").rstrip()
    assert refuse(text).problem == "cut row"


def test_column_header_without_title_is_an_error() -> None:
    assert (
        refuse("       #bytes #repetitions      t[usec]   Mbytes/sec\n 0 1 1.00 0.00\n").line == 1
    )


def test_unknown_column_is_an_error() -> None:
    assert refuse(PINGPONG.replace("t[usec]", "t[fortnight]")).problem == "unknown column"


def test_table_that_the_header_does_not_list_is_an_error() -> None:
    assert (
        "does not list"
        in refuse(PINGPONG.replace("# Benchmarking PingPong", "# Benchmarking P")).problem
    )


def test_pasted_table_followed_by_other_output() -> None:
    text = pingpong(1e6) + "\nsrun: job 12 done\n"
    assert len(parse_text(text)[0].rows) == 24


def test_run_that_was_cut_is_not_hidden_by_the_next() -> None:
    start = PINGPONG.index(END)
    assert refuse(PINGPONG[:start] + PINGPONG).problem == "the output is cut"


@pytest.mark.parametrize(
    "lost", ["# Benchmarking PingPongMT", "# Benchmarking BarrierMT", "#processes"]
)
def test_lost_line_of_a_run_without_list_is_an_error(lost: str) -> None:
    text = (DATA / "imb/mt.txt").read_text("utf-8")
    assert refuse(text.replace(lost, "# oops")).line is not None


@pytest.mark.parametrize("ended", ["", "\n"])
def test_no_chatter_takes_the_number_of_ranks_away(ended: str) -> None:
    head = "# Benchmarking PingPong\n# #processes = 2\n"
    text = head + "       #bytes #repetitions      t[usec]   Mbytes/sec\n  0  1000  49.81  0.00\n"
    for at in range(len(head)):
        mixed = f"{text[:at]}[node1:4711] 1 more process has sent help{ended}{text[at:]}"
        try:
            (table,) = parse_text(mixed)
        except ParseError:
            continue
        assert table.attributes["num_processes"] == 2, mixed
