"""What the library says of its network, and whose tables it is said of."""

from __future__ import annotations

import pytest
from recordings import DATA

from fabricproof.benchmarks.parsers import parse_text
from fabricproof.benchmarks.parsers.detect import read_tables
from fabricproof.core.measure import Table, Verdict
from fabricproof.physics import Fabric, find_link
from fabricproof.verdict.table import judge_table
from fabricproof.verdict.value import Rules

TCP = (DATA / "imb" / "mpi1-debug-tcp.txt").read_text("utf-8")
UCX = (DATA / "osu-mpi4py" / "osu_bw-ucx-info.txt").read_text("utf-8")
SILENT = (DATA / "osu-mpi4py" / "osu_bw.txt").read_text("utf-8")
VERBS = TCP.replace("provider: tcp", "provider: verbs;ofi_rxm")
#: as UCX 1.13 prints it of a pair over InfiniBand
OLD_UCX = "[1645203303.759862] [host2:43:0] ucp_worker.c:1877 UCX  INFO  ep_cfg[2]: tag({})\n"
NDR, ETHERNET = (Fabric(link=find_link(name)) for name in ("NDR 4x", "1GbE"))


def said(text: str) -> list[object]:
    return [table.attributes.get("network") for table in parse_text(text)]


def verdict_of(table: Table, fabric: Fabric) -> Verdict:
    return judge_table(table, Rules(fabric=fabric)).verdict


def test_what_was_printed_over_tcp_is_no_result_of_infiniband() -> None:
    for text in (TCP, UCX):
        for table in parse_text(text):
            assert verdict_of(table, NDR) is Verdict.INVALID
            assert verdict_of(table, ETHERNET) is not Verdict.INVALID


def test_the_same_numbers_by_verbs_are_judged_by_infiniband() -> None:
    table = parse_text(VERBS)[0]
    assert table.attributes["network"] == "verbs;ofi_rxm"
    report = judge_table(table, Rules(fabric=NDR))
    assert "the library says" not in report.quantities[-1].reason
    assert report.findings[-1].text.endswith("; the library says that it used verbs;ofi_rxm")


@pytest.mark.parametrize(
    ("line", "word"),
    [
        ("MPI startup(): shm and dapl data transfer modes\n", "dapl"),
        ("MPI startup(): tcp data transfer mode\n", "tcp"),
        ("MPI startup(): libfabric provider: psm2\n", "psm2"),
        ("MPI startup(): libfabric version: 1.18.1-impi\n", None),
        (OLD_UCX.format("self/memory knem/memory cuda_copy/cuda rc_mlx5/mlx5_0:1"), "rc_mlx5"),
        (OLD_UCX.format("self/memory cma/memory"), None),
    ],
)
def test_each_library_has_its_own_words(line: str, word: str | None) -> None:
    assert said(line + SILENT) == [word]


def test_a_run_has_what_was_said_since_the_last_row_of_the_run_before() -> None:
    assert said(TCP + SILENT) == ["tcp", "tcp", None]
    assert said(TCP + VERBS) == ["tcp", "tcp", "verbs;ofi_rxm", "verbs;ofi_rxm"]
    assert said(SILENT + UCX + SILENT) == [None, "tcp", None]


def test_a_start_that_left_no_table_speaks_for_none() -> None:
    start = TCP[: TCP.index("#---")]
    crashed = f"{start}Abort(1614735) on node 0 (rank 0 in comm 0): Fatal error in PMPI_Init\n"
    assert said(start + VERBS) == ["verbs;ofi_rxm"] * 2
    assert said(start + "hello from rank 0\n" + SILENT) == [None]
    for before in (crashed, "\n".join(TCP.split("\n")[:50]) + "\n"):  # its head, and no row
        for after, words in ((VERBS, {"verbs;ofi_rxm"}), (SILENT, {None})):
            tables = read_tables(before + after).tables
            assert {table.attributes.get("network") for table in tables} == words


def test_both_readers_say_the_same_of_all_tables_of_a_run() -> None:
    first, second = TCP.split("# Benchmarking PingPing")
    late = first + OLD_UCX.format("rc_mlx5/mlx5_0:1") + "# Benchmarking PingPing" + second
    assert said(late) == ["rc_mlx5,tcp"] * 2
    assert [each.attributes["network"] for each in read_tables(late).tables] == said(late)


@pytest.mark.parametrize("tool", ["iperf/document-001-36-streams.txt", "perftest/*.txt"])
def test_what_runs_on_no_mpi_has_no_words_of_one(tool: str) -> None:
    path = sorted(DATA.glob(tool))[0]
    start = TCP[: TCP.index("#---")]
    assert {*said(start + path.read_text("utf-8"))} == {None}


@pytest.mark.parametrize(
    ("provider", "link", "is_invalid"),
    [
        ("psm2", "NDR 4x", True),
        ("psm2", "Omni-Path 100", False),
        ("efa", "NDR 4x", True),
        ("efa", "EFA 100", False),
        ("cxi", "200GbE", True),
        ("mlx", "NDR 4x", False),
    ],
)
def test_a_provider_of_one_fabric_is_no_result_of_another(
    provider: str, link: str, is_invalid: bool
) -> None:
    table = parse_text(f"MPI startup(): libfabric provider: {provider}\n{SILENT}")[0]
    report = judge_table(table, Rules(fabric=Fabric(link=find_link(link))))
    assert ("the library says that it used" in report.quantities[-1].reason) is is_invalid


def test_several_words_of_ucx() -> None:
    """UCX may give one-sided operations a lane of its own (openucx/ucx issue 10049)."""
    verbs, sockets = OLD_UCX.format("rc_mlx5/mlx5_0:1"), OLD_UCX.format("tcp/eth0")
    assert said(OLD_UCX.format("rc_mlx5/mlx5_0:1 tcp/eth1") + SILENT) == ["rc_mlx5"]
    assert said(sockets[:-2] + "\n" + SILENT) == ["tcp"], "a list that was cut"
    assert said((verbs * 20 + SILENT) * 50) == ["rc_mlx5"] * 50
    table = parse_text(verbs + sockets + SILENT)[0]  # two kinds of one MPI library are no claim
    assert table.attributes["network"] == "rc_mlx5,tcp"
    assert "the library says" not in judge_table(table, Rules(fabric=NDR)).quantities[-1].reason


def test_each_rank_of_a_labelled_text_has_its_own() -> None:
    def of(rank: str, text: str) -> str:
        return "".join(f"{rank}: {line}\n" for line in text.rstrip("\n").split("\n"))

    assert said(of("1", UCX) + of("2", SILENT)) == ["tcp", None]
