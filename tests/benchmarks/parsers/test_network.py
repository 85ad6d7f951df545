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


#: as UCX 1.15 prints them (openucx/ucx issues 8851 and 9213, pull request 8699)
NEW_UCX = (
    "[1675730325.61] [{host}:112744:0] ucp_worker.c:1775 UCX INFO 0x1c5f0e0 {} cfg#1 tag({})\n"
)
TWO_HCAS = "rc_mlx5/mlx5_0:1 rc_mlx5/mlx5_1:1"
#: Intel MPI 2017 over RoCE, as posted
DAPL = "[1] MPI startup(): DAPL provider {}\n[1] MPI startup(): shm and dapl data transfer modes\n"
CHANNEL = "{0}:9:20 [0] NCCL INFO Channel 00/0 : 1[0] -> 2[0] [receive] via NET/IB/{1}/GDRDMA\n"
#: Open MPI: bml_r2.c with btl_base_verbose, btl_openib (open-mpi/ompi issue 3216)
BTL = "[n1:18964] mca: bml: Using {} btl for send to [[3417,1],0] on node n2\n"
PORT = "[{}:07409] [rank=0] openib: using port mlx5_0:1\n"


def facts_of(text: str) -> dict[str, object]:
    names = ("network", "network_devices", "num_devices")
    attributes = parse_text(text + SILENT)[0].attributes
    return {name: attributes[name] for name in names if name in attributes}


@pytest.mark.parametrize(
    ("lines", "network", "devices", "count"),
    [
        (NEW_UCX.format("inter-node", TWO_HCAS, host="n3"), "rc_mlx5", "mlx5_0:1,mlx5_1:1", 2),
        (
            # the names of one rail may differ from node to node
            NEW_UCX.format("inter-node", "rc_mlx5/mlx5_0:1", host="n1")
            + NEW_UCX.format("inter-node", "rc_mlx5/mlx5_1:1", host="n2"),
            "rc_mlx5",
            "mlx5_0:1,mlx5_1:1",
            1,
        ),
        # what a process sends to itself took no part
        (
            NEW_UCX.format("self", f"self/memory {TWO_HCAS}", host="n1")
            + NEW_UCX.format("inter-node", "rc_mlx5/mlx5_0:1", host="n1"),
            "rc_mlx5",
            "mlx5_0:1",
            1,
        ),
        (NEW_UCX.format("inter-node", "tcp/eth0 tcp/ib0", host="n1"), "tcp", "eth0,ib0", 2),
        (DAPL.format("ofa-v2-mlx5_0-1u"), "dapl", "mlx5_0:1", 1),
        (DAPL.format("ofa-v2-cma-roe-eth4"), "RoCE,dapl", "eth4", 1),
        (BTL.format("self") + BTL.format("tcp"), "tcp", None, None),
        (PORT.format("n1") + PORT.format("n2"), "openib", "mlx5_0:1", 1),
    ],
)
def test_the_devices_of_a_node(
    lines: str, network: str, devices: str | None, count: int | None
) -> None:
    found = {"network": network, "network_devices": devices, "num_devices": count}
    assert facts_of(lines) == {name: each for name, each in found.items() if each is not None}


MAP = (
    " ========================   JOB MAP   ========================\n"
    " Data for node: {}\tNum slots: 2\tMax slots: 0\tNum procs: {}\n"
    " \tProcess OMPI jobid: [36474,1] App: 0 Process rank: 0\n"
)
TWO_NODES = TCP[: TCP.index("#---")].replace("libfabric provider: tcp", "library kind: release")
ONE_NODE = TWO_NODES.replace(" vc2 ", " vc1 ")


@pytest.mark.parametrize(
    ("lines", "num_nodes"),
    [
        (ONE_NODE, 1),
        (TWO_NODES, 2),
        (ONE_NODE.replace("14177    vc1", "14177"), None),  # the line of one rank was cut
        (MAP.format("n1", 2), 1),
        (MAP.format("n1", 1) + MAP.format("n2", 1), 2),
        (MAP.format("n1", 2) + MAP.format("n2", 0), 1),
        (NEW_UCX.format("intra-node", "sysv/memory cma/memory", host="n1"), 1),
        # in a container with namespaces of its own by the HCA's loopback
        (NEW_UCX.format("intra-node", "rc_verbs/hfi1_0:1", host="n1"), 1),
        (NEW_UCX.format("self", "posix/memory cma/memory", host="n1"), None),
        *((OLD_UCX.format(f"{lane}/memory cma/memory"), 1) for lane in ("sysv", "posix", "xpmem")),
        (OLD_UCX.format("self/memory sysv/memory cma/memory"), 1),
        (OLD_UCX.format("self/memory cma/memory"), None),  # of a rank to itself
        (OLD_UCX.format("knem/memory"), 1),
        (OLD_UCX.format("sysv/memory") + OLD_UCX.format("rc_mlx5/mlx5_0:1"), None),
        (BTL.format("self") + BTL.format("vader"), 1),
        (BTL.format("self"), None),
        (BTL.format("vader") + BTL.format("openib"), None),
    ],
)
def test_on_how_many_nodes_the_ranks_ran(lines: str, num_nodes: int | None) -> None:
    table = parse_text(lines + SILENT)[0]
    assert table.attributes.get("num_nodes") == num_nodes
    if num_nodes == 1:
        for fabric in (NDR, ETHERNET):
            assert verdict_of(table, fabric) is Verdict.INVALID


def test_the_first_two_of_four_ranks_may_share_a_node() -> None:
    """intel/mpi-benchmarks issue 28: smaller numbers of processes of a run stay on one node."""
    ranks = "".join(f"[0] MPI startup(): {rank}  4711  {{}}  {{{{0}}}}\n" for rank in range(4))
    for hosts, num_nodes in ((("a", "a", "b", "b"), 1), (("a", "b", "a", "b"), 2)):
        text = ranks.format(*hosts) + TCP[TCP.index("#---") :]
        assert parse_text(text)[0].attributes["num_nodes"] == num_nodes
    mapped = ranks.format("a", "a", "b", "b") + TCP[TCP.index("#---") :]
    mapped = mapped.replace("# Calling sequence was:", "# Calling sequence was: -map 2x2 ")
    assert parse_text(mapped)[0].attributes["num_nodes"] == 2


NCCL = (DATA / "nccl" / "all_reduce-2x8.txt").read_text("utf-8")
CARDS = "n1:9:20 [0] NCCL INFO NET/IB : Using [0]mlx5_0:1/IB [1]mlx5_1:1/IB [RO]; OOB eth0:<0>\n"


def test_the_cards_of_nccl_are_those_of_its_channels_else_all_that_it_found() -> None:
    chosen = "n1:9:20 [0] NCCL INFO Using network IB\n"
    for lines, count in ((CHANNEL.format("n1", 1), 1), (chosen, 2), ("", None)):
        table = parse_text(CARDS + lines + NCCL)[0]
        assert table.attributes.get("num_devices") == count
    sockets = chosen.replace("IB", "Socket") + (
        "n1:9:20 [0] NCCL INFO NET/Socket : Using [0]eth0:10.0.0.1<0> [1]ib0:10.1.0.1<0>\n"
    )
    assert parse_text(sockets + NCCL)[0].attributes["network_devices"] == "eth0,ib0"


@pytest.mark.parametrize(
    ("num_rails", "verdict"), [(1, Verdict.UNJUDGED), (2, Verdict.PASS), (3, Verdict.FAIL)]
)
def test_what_more_devices_than_declared_carried_is_no_pass(
    num_rails: int, verdict: Verdict
) -> None:
    """openucx/ucx issue 8851: two HCAs, 23 GB/s."""
    rows = "".join(
        f"{2**at}  {min(2**at * 5, 11900 * min(num_rails, 2)):.2f}\n" for at in range(23)
    )
    text = f"# OSU MPI Bandwidth Test v7.5\n# Size      Bandwidth (MB/s)\n{rows}"
    table = parse_text(NEW_UCX.format("inter-node", TWO_HCAS, host="n3") + text)[0]
    edr = Fabric(link=find_link("EDR"), num_rails=num_rails)
    assert judge_table(table, Rules(fabric=edr)).verdict is verdict


def test_a_device_that_is_no_rail_of_the_site_is_another_path() -> None:
    text = NEW_UCX.format("inter-node", "rc_mlx5/mlx5_2:1", host="n3") + SILENT
    for device, is_invalid in (("mlx5_0", True), ("mlx5_2", False)):
        rules = Rules(fabric=NDR, devices=frozenset({device}))
        report = judge_table(parse_text(text)[0], rules)
        assert ("and the rails are of mlx5_0" in report.quantities[-1].reason) is is_invalid


@pytest.mark.parametrize(
    ("line", "name"),
    [
        ("Conflicting CPU frequency values detected: 800.0 != 2000.0. CPU Frequency is not max.",
         "cpu_frequency"),
        ("libibverbs: Warning: RLIMIT_MEMLOCK is 65536 bytes.", "locked_memory"),
        ("libibverbs: Warning: couldn't load driver 'libmlx5-rdmav34.so'", "no_device"),
        ("WARNING: There was an error initializing an OpenFabrics device.", "no_device"),
        ("n1:9:20 [0] NCCL INFO Channel 00 : 1[0] -> 2[0] [send] via NET/IB/0", "no_gpudirect"),
        ("n1:9:20 [0] NCCL INFO Channel 00 : 1[0] -> 2[0] [send] via NET/IB/0/GDRDMA", None),
        ("WARNING: the weather", None),
    ],
)  # fmt: skip
def test_warnings_that_explain_a_low_number(line: str, name: str | None) -> None:
    assert parse_text(f"{line}\n{SILENT}")[0].attributes.get("warnings") == name


#: help texts as Open MPI 4.1 prints them (help-mpi-btl-openib.txt, help-mpi-btl-base.txt)
_RULER = "-" * 74
_HELP = {
    "no_device": (
        """\
There was an error initializing an OpenFabrics device.

  Local host:   n1
  Local device: mlx4_0
""",
        """\
There is at least non-excluded one OpenFabrics device found,
but there are no active ports detected (or Open MPI was unable to use
them).  This is most certainly not what you wanted.  Check your
cables, subnet manager configuration, etc.  The openib BTL will be
ignored for this job.

  Local host: n1
""",
        """\
[[30931,1],0]: A high-performance Open MPI point-to-point messaging module
was unable to find any relevant network interfaces:

Module: OpenFabrics (openib)
  Host: n1

Another transport will be used instead, although this may result in
lower performance.

NOTE: You can disable this warning by setting the MCA parameter
btl_base_warn_component_unused to 0.
""",
    ),
    "locked_memory": (
        """\
WARNING: It appears that your OpenFabrics subsystem is configured to only
allow registering part of your physical memory.  This can cause MPI jobs to
run with erratic performance, hang, and/or crash.

  Local host:              n1
  Registerable memory:     32768 MiB
  Total memory:            49106 MiB

Your MPI job will continue, but may be behave poorly and/or hang.
""",
    ),
}


@pytest.mark.parametrize(
    ("name", "text"), [(name, text) for name, texts in _HELP.items() for text in texts]
)
def test_a_whole_help_text_of_open_mpi_is_heard(name: str, text: str) -> None:
    helped = f"{_RULER}\n{text}{_RULER}\n"
    assert parse_text(f"{helped}{SILENT}")[0].attributes.get("warnings") == name
    again = f"{helped}[n1:4711] 1 more process has sent help message help-mpi.txt\n{SILENT}"
    assert parse_text(again)[0].attributes.get("warnings") == name


def test_a_help_text_of_an_earlier_start_is_not_heard() -> None:
    text = f"{_RULER}\n{_HELP['locked_memory'][0]}{_RULER}\nthe job ended\n{SILENT}"
    assert "warnings" not in parse_text(text)[0].attributes
