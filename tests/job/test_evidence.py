"""What rank.sh writes, for real, and how it is read back; damage is never skipped."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import fabricproof.job
from fabricproof.core.errors import ParseError
from fabricproof.job.evidence.leg_folder import RankRecord, gather, parse_rank
from fabricproof.traffic import Expectation, PathState, prove_path
from fabricproof.traffic.counters import read_rises

RANK_SH = Path(fabricproof.job.__file__).parent / "rank.sh"

TEXT = """\
rank 1
node n2
cpus 0-3
kernel 6.1.0
fact rail0 mtu=1500 speed=10000 operstate=up
fact mlx5_0:1 state=4:_ACTIVE rate=100_Gb/sec_(4X_EDR)
before lo
before rail0 tx_bytes=100 rx_bytes=200 tx_errors=0
before mlx5_0:1 port_xmit_data=250 port_rcv_data=10 port_xmit_packets=7 symbol_error=1
after lo
after rail0 tx_bytes=1100 rx_bytes=1200 tx_errors=2
after mlx5_0:1 port_xmit_data=500 port_rcv_data=20 port_xmit_packets=9 symbol_error=1
status 0
"""


def _run(
    folder: Path, *program: str, script: Path = RANK_SH, **environment: str
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["bash", str(script), *program],
        env={"PATH": os.environ["PATH"], "FABRICPROOF_LEG": str(folder), **environment},
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )


def _seen(folder: Path, rank: int = 0) -> RankRecord:
    return parse_rank((folder / f"rank.{rank}.0").read_text(), "x")


def _leg(folder: Path) -> Path:
    (folder / "leg").mkdir()
    return folder / "leg"


def test_a_file_is_read() -> None:
    record = parse_rank(TEXT, "rank.1")
    assert (record.rank, record.node, record.cpus, record.status) == (1, "n2", "0-3", 0)
    assert record.before["rail0"] == {"tx_bytes": 100, "rx_bytes": 200, "tx_errors": 0}
    assert record.facts["rail0"]["mtu"] == "1500"
    assert record.before["lo"] == {}
    moved = {"tx_bytes": 2000, "rx_bytes": 80, "tx_packets": 9, "symbol_error": 1}
    assert record.after["mlx5_0:1"] == moved  # InfiniBand counts words of four bytes
    begun = parse_rank(TEXT[: TEXT.index("after lo")], "rank.1")
    assert (begun.status, begun.after) == (None, {})


@pytest.mark.parametrize(
    ("damage", "line"),
    [
        (("status 0", "status zero"), None),
        (("rank 1\n", ""), None),
        (("node n2\n", ""), None),
        (("rank 1", "rank one"), None),
        (("tx_bytes=100 ", "tx_bytes "), 8),
        (("tx_bytes=100 ", "tx_bytes=1OO "), None),
        (("kernel 6.1.0", "kernel"), 4),
        (("before lo", "before"), 7),
        (("before lo", "begin lo"), 7),
        (("before lo", ""), 7),
        (("status 0", "status 0\nstatus 0"), 14),
        (("after lo", "after rail0 tx_bytes=5"), 11),
        (("node n2", "node n2\nrank 0"), 3),
        (("status 0\n", "status 0"), None),
    ],
)
def test_damage_is_an_error_with_its_place(damage: tuple[str, str], line: int | None) -> None:
    with pytest.raises(ParseError) as refused:
        parse_rank(TEXT.replace(*damage), "legs/x/rank.1")
    assert str(refused.value).startswith("legs/x/rank.1")
    assert refused.value.line == line


@given(st.integers(min_value=0, max_value=len(TEXT) - 1))
def test_a_cut_file_never_counts_as_a_whole_one(end: int) -> None:
    try:
        record = parse_rank(TEXT[:end], "rank.1")
    except ParseError:
        return
    assert TEXT[:end].endswith("\n")
    assert record.status is None


@given(st.text(max_size=200))
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        parse_rank(text, "rank.0")
    except ParseError as error:
        source = error.source
    else:
        source = "rank.0"
    assert source == "rank.0"


def test_ranks_of_one_node_see_the_widest_span() -> None:
    def record(rank: int, before: int, after: int) -> str:
        return (
            f"rank {rank}\nnode n1\nfact r0 address=02:01\nbefore r0 tx_bytes={before} rx_bytes=0\n"
            f"after r0 tx_bytes={after} rx_bytes=0\nstatus 0\n"
        )

    both = (record(0, 100, 900), record(1, 90, 950))
    twice = (record(0, 1, 5), record(0, 5, 9))  # a rank that started twice is one rank
    for texts, span, ranks in ((both, 860, [0, 1]), (twice, 8, [0])):
        seen = gather(parse_rank(text, "x") for text in texts)
        (sample,) = seen.samples
        assert (sample.address, sample.moved("tx_bytes")) == ("02:01", span)
        assert [rank.rank for rank in seen.ranks] == ranks


def test_a_counter_that_was_reset_under_one_rank_is_not_hidden_by_a_later_one() -> None:
    texts = [
        f"rank {rank}\nnode n1\nbefore r0 tx_bytes={before} rx_bytes=0 rx_errors=0\n"
        "after r0 tx_bytes=7 rx_bytes=0 rx_errors=0\nstatus 0\n"
        for rank, before in ((0, 5000), (1, 2))
    ]
    for order in (texts, texts[::-1]):
        (sample,) = gather(parse_rank(text, "x") for text in order).samples
        assert sample.moved("tx_bytes") == 7 - 5000
        assert sample.moved("rx_errors") == 0


def _starts(*spans: tuple[int, int], counter: str = "tx_bytes") -> list[RankRecord]:
    """Return what two nodes saw of rail0 in starts of one leg, one after the other."""
    steady = "tx_bytes=0 rx_bytes=0"
    return [
        replace(
            parse_rank(
                f"rank {rank}\nnode n{rank + 1}\n"
                f"before rail0 {steady.replace(f'{counter}=0', '')} {counter}={before}\n"
                f"after rail0 {steady.replace(f'{counter}=0', '')} {counter}={after}\n"
                "status 0\n",
                "x",
            ),
            part=part,
        )
        for part, (before, after) in enumerate(spans)
        for rank in (0, 1)
    ]


@pytest.mark.parametrize("counter", ["tx_bytes", "rx_bytes"])
def test_a_reset_between_two_starts_is_no_movement(counter: str) -> None:
    """The earliest before and the latest after would say 10^9 bytes where 2000 passed."""
    expected = Expectation(rails=("rail0",), sent_bytes=(10, 10), num_ranks=2, spread=False)
    records = _starts((10**9, 10**9 + 1000), (0, 1000), counter=counter)
    for order in (records, records[::-1]):
        proof = prove_path(gather(order), expected)
        assert proof.state is PathState.UNKNOWN
        assert proof.reason == (
            "counters of rail0 on n1 ran backwards (wrapped or reset during the run): the path is "
            "not shown"
        )


def test_starts_that_follow_each_other_are_one_span() -> None:
    samples = gather(_starts((5, 10), (10, 20), (25, 30))).samples
    assert [(each.moved("tx_bytes"), each.set_back) for each in samples] == [(25, frozenset())] * 2


def test_errors_that_were_reset_between_two_starts_are_a_doubt() -> None:
    records = _starts((7, 7), (0, 0), counter="rx_errors")
    (first, _) = gather(records).samples
    assert read_rises([first], ["rail0"]).doubts == (
        "rx_errors of rail0 on n1 ran backwards (wrapped or reset during the run)",
    )


def test_a_rank_file_without_after_leaves_the_path_unknown() -> None:
    begun = parse_rank(TEXT[: TEXT.index("after lo")], "rank.1")
    whole = parse_rank(TEXT.replace("rank 1", "rank 0").replace("node n2", "node n1"), "rank.0")
    expected = Expectation(rails=("rail0",), sent_bytes=(0, 0), num_ranks=2, spread=False)
    proof = prove_path(gather([whole, begun]), expected)
    assert proof.state is PathState.UNKNOWN


def test_worlds_of_one_on_two_nodes_stay_two_ranks() -> None:
    one = parse_rank("rank 0\nnode n1\nstatus 0\n", "x")
    other = parse_rank("rank 0\nnode n2\nstatus 0\n", "x")
    expected = Expectation(rails=("r",), sent_bytes=(0, 0), num_ranks=2, spread=False)
    assert prove_path(gather([one, other]), expected).state is PathState.WRONG


# --- rank.sh itself


def test_the_wrapper_reads_before_and_after_and_passes_the_status_on(tmp_path: Path) -> None:
    ended = _run(tmp_path, "bash", "-c", "echo out; echo err >&2; exit 7", PMIX_RANK="3")
    assert (ended.returncode, ended.stdout, ended.stderr) == (7, "out\n", "err\n")
    record = _seen(tmp_path, 3)
    assert (record.rank, record.status) == (3, 7)
    assert set(record.before) == set(record.after) == {*record.facts, "node/tcp", "node/cores"}
    assert set(record.before["node/tcp"]) >= {"OutSegs", "RetransSegs", "ListenDrops"}
    assert set(record.before["lo"]) >= {"tx_bytes", "rx_bytes", "tx_packets", "tx_errors"}
    assert record.cpus != "unknown"


def test_the_wrapper_sees_the_bytes_that_the_program_moved(tmp_path: Path) -> None:
    program = (
        "import socket\n"
        "server = socket.create_server(('127.0.0.1', 0))\n"
        "sender = socket.create_connection(server.getsockname())\n"
        "peer, _ = server.accept()\n"
        "for _ in range(64):\n"
        "    sender.sendall(bytes(1 << 16))\n"
        "    left = 1 << 16\n"
        "    while left: left -= len(peer.recv(left))\n"
    )
    ended = _run(tmp_path, "python3", "-c", program)
    assert ended.returncode == 0, ended.stderr
    seen = gather([_seen(tmp_path)])
    loopback = next(each for each in seen.samples if each.interface == "lo")
    assert loopback.moved("tx_bytes") >= 64 << 16


@pytest.mark.parametrize(
    ("environment", "name"),
    [
        ({"PMIX_RANK": "5", "SLURM_PROCID": "9"}, "rank.5.0"),
        ({"PMI_RANK": "4"}, "rank.4.0"),
        ({"OMPI_COMM_WORLD_RANK": "2"}, "rank.2.0"),
        ({"SLURM_PROCID": "1"}, "rank.1.0"),
        ({}, "rank.0.0"),
    ],
)
def test_the_launcher_says_which_rank_this_is(
    environment: dict[str, str], name: str, tmp_path: Path
) -> None:
    assert _run(tmp_path, "true", **environment).returncode == 0
    assert [path.name for path in tmp_path.iterdir()] == [name]


LDD = """#!/bin/bash
[ "$1" = "$PROGRAM" ] || exit 1
cat <<'END'
\tlinux-vdso.so.1 (0x00007fac62e38000)
\tlibm.so.6 => /lib/x86_64-linux-gnu/libm.so.6 (0x00007fac62920000)
%s
\tlibmpi_cxx.so.40 => /opt/mpi/lib/libmpi_cxx.so.40 (0x00007fac62000000)
\tlibmpifort.so.12 => /opt/mpi/lib/libmpifort.so.12 (0x00007fac62000000)
END
"""


@pytest.mark.parametrize(
    ("lines", "library"),
    [
        ("\tlibmpi.so.40 => /a b/libmpi.so.40 (0x00007fac62a00000)", "/a b/libmpi.so.40"),
        ("\tlibmpich.so.12 => /a/libmpich.so.12 (0x00007fac62a00000)", "/a/libmpich.so.12"),
        ("\tlibmpi_abi.so.1 => /a/libmpi_abi.so.1 (0x00007fac62a00000)", "/a/libmpi_abi.so.1"),
        ("\tlibmpi.so.12 => not found", "not found"),
        ("\t/b/libmpi.so.12 (0x00007fac62a00000)", "/b/libmpi.so.12"),
        (
            "\t/b/libmpi.so.12 (0x00a)\n\tlibmpi.so.40 => /a/libmpi.so.40 (0x00b)",
            "/b/libmpi.so.12 and /a/libmpi.so.40",
        ),
        ("", "none"),
    ],
)
def test_the_wrapper_says_which_mpi_library_the_loader_gives(
    lines: str, library: str, tmp_path: Path
) -> None:
    tools, program = tmp_path / "tools", tmp_path / "osu bw"
    tools.mkdir()
    for path, text in ((tools / "ldd", LDD.replace("%s", lines)), (program, "#!/bin/sh\n")):
        path.write_text(text)
        path.chmod(0o755)
    leg = _leg(tmp_path)
    search = f"{tools}:{os.environ['PATH']}"
    ended = _run(leg, str(program), PATH=search, PROGRAM=str(program))
    assert (ended.returncode, ended.stderr) == (0, "")
    assert _seen(leg).library == library


def test_the_wrapper_asks_the_loader_of_this_machine(tmp_path: Path) -> None:
    mine = Path("/proc/self/maps").read_text().split()
    copy = tmp_path / "libmpi.so.40"
    shutil.copyfile(next(word for word in mine if "/libm.so" in word), copy)
    _run(tmp_path, "env", LD_PRELOAD=str(copy))
    assert _seen(tmp_path).library == str(copy)


SAYS = "import os, sys; open(os.environ['FABRICPROOF_LOADED'], 'w').write(sys.argv[1])"


@pytest.mark.parametrize("ldd", [True, False])
@pytest.mark.parametrize(
    ("program", "library"),
    [
        ((sys.executable, "-c", SAYS, "/a b/libmpi.so.40\n"), "/a b/libmpi.so.40"),
        (
            (sys.executable, "-c", SAYS, "/b/libmpi.so.12\n/a/libmpi.so.40\n"),
            "/b/libmpi.so.12 and /a/libmpi.so.40",
        ),
        ((sys.executable, "-c", SAYS, ""), "none"),
        ((sys.executable, "-c", ""), "none"),
        (("bash", "-c", "true"), None),
    ],
)
def test_a_python_program_says_itself_what_it_loaded(
    program: tuple[str, ...], library: str | None, ldd: bool, tmp_path: Path
) -> None:
    """It needs no ldd: the library stood in the file twice then, which is damage."""
    if library is None:
        library = "none" if ldd else "unknown"
    (tmp_path / "bash").symlink_to(shutil.which("bash") or "/bin/bash")
    leg = _leg(tmp_path)
    ended = _run(leg, *program, **({} if ldd else {"PATH": str(tmp_path)}))
    assert (ended.returncode, ended.stderr) == (0, "")
    assert _seen(leg).library == library


def test_slurm_says_which_node_this_is(tmp_path: Path) -> None:
    _run(tmp_path, "true", SLURMD_NODENAME="c3", HOSTNAME="elsewhere.example")
    assert _seen(tmp_path).node == "c3"


@pytest.mark.parametrize(
    ("environment", "reads"),
    [
        ({}, True),
        ({"SLURM_LOCALID": "0"}, True),
        ({"SLURM_LOCALID": "3"}, False),
        ({"OMPI_COMM_WORLD_LOCAL_RANK": "1", "SLURM_LOCALID": "0"}, False),
        ({"MPI_LOCALRANKID": "0", "SLURM_LOCALID": "1"}, True),
    ],
)
def test_what_is_the_nodes_only_its_first_rank_reads(
    environment: dict[str, str], reads: bool, tmp_path: Path
) -> None:
    ended = _run(tmp_path, "true", **environment)
    assert (ended.returncode, ended.stderr) == (0, "")
    record = _seen(tmp_path)
    assert ("node/tcp" in record.before) == ("node/tcp" in record.after) == reads
    assert "lo" in record.before


def test_the_wrapper_reads_the_kernels_own_count_of_segments(tmp_path: Path) -> None:
    _run(tmp_path, "true")
    record = _seen(tmp_path)
    names, numbers = (
        line.split()
        for line in Path("/proc/net/snmp").read_text().splitlines()
        if line.startswith("Tcp:")
    )
    now = int(dict(zip(names, numbers, strict=True))["OutSegs"])
    assert record.before["node/tcp"]["OutSegs"] <= record.after["node/tcp"]["OutSegs"] <= now
    assert record.after["node/tcp"]["OutSegs"] > 0


NET, IB = "sys/class/net/p1", "sys/class/infiniband"
MLX5, EFA = f"{IB}/mlx5_0/ports/1", f"{IB}/efa_0/ports/1/hw_counters"
SYSFS = {
    f"{NET}/statistics/tx_bytes": "100",
    f"{NET}/statistics/rx_bytes": "200",
    f"{NET}/carrier_changes": "3",
    f"{NET}/operstate": "up",
    f"{NET}/device/aer_dev_correctable": "RxErr 1\nBadTLP 4\nTOTAL_ERR_COR 5",
    f"{NET}/device/aer_dev_nonfatal": "Undefined 0\nTOTAL_ERR_NONFATAL 0",
    f"{NET}/device/aer_dev_fatal": "TOTAL_ERR_FATAL 2",
    f"{MLX5}/counters/port_xmit_data": "250",
    f"{MLX5}/counters/port_rcv_data": "10",
    f"{MLX5}/counters/port_xmit_wait": "7",
    f"{MLX5}/counters/link_error_recovery": "1",
    f"{MLX5}/counters/VL15_dropped": "N/A (no PMA)",
    f"{MLX5}/hw_counters/np_cnp_sent": "11",
    f"{MLX5}/hw_counters/tx_bytes": "999",
    f"{IB}/mlx5_0/device/aer_dev_fatal": "TOTAL_ERR_FATAL 0",
    **{f"{EFA}/{name}": value for name, value in (
        ("tx_bytes", "10"), ("rx_bytes", "20"), ("tx_pkts", "3"), ("send_bytes", "1000"),
        ("recv_bytes", "2000"), ("rdma_read_resp_bytes", "30"), ("rdma_write_bytes", "4"),
        ("rx_drops", "1"))},
}  # fmt: skip

ETHTOOL = """#!/bin/bash
[ "$1 $2" = "-S p1" ] || exit 1
cat <<'END'
NIC statistics:
     rx_packets: 12
     rx_crc_errors_phy: 7
     tx_prio3_pause: 9
     [0]: rx_discards: 4
     rx_discards_phy: 2
     bw_in_allowance_exceeded: 5
     rx_ecn_mark: many
END
"""


def _machine(folder: Path) -> Path:
    """Write a machine's sysfs, and rank.sh as it reads that one."""
    for name, text in SYSFS.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text + "\n")
    tools = folder / "tools"
    tools.mkdir()
    (tools / "ethtool").write_text(ETHTOOL)
    (tools / "ethtool").chmod(0o755)
    script = folder / "rank.sh"
    script.write_text(RANK_SH.read_text().replace("${FABRICPROOF_SYS:-/sys}", f"{folder}/sys"))
    return script


def _counted(folder: Path, **environment: str) -> dict[str, dict[str, int]]:
    script, leg = _machine(folder), _leg(folder)
    search = f"{folder}/tools:{os.environ['PATH']}"
    ended = _run(leg, "true", script=script, PATH=search, **environment)
    assert (ended.returncode, ended.stderr) == (0, "")
    record = _seen(leg)
    assert record.before.keys() == record.after.keys()
    return {name: dict(counters) for name, counters in record.after.items()}


def test_the_first_rank_reads_pcie_hardware_and_ethtool(tmp_path: Path) -> None:
    seen = _counted(tmp_path)
    assert seen["p1"] == {
        "tx_bytes": 100, "rx_bytes": 200, "carrier_changes": 3, "aer_correctable": 5,
        "aer_nonfatal": 0, "aer_fatal": 2, "ethtool.rx_crc_errors_phy": 7,
        "ethtool.tx_prio3_pause": 9, "ethtool.rx_discards_phy": 2,
        "ethtool.bw_in_allowance_exceeded": 5,
    }  # fmt: skip
    assert seen["mlx5_0:1"] == {
        "tx_bytes": 1000, "rx_bytes": 40, "port_xmit_wait": 7, "link_error_recovery": 1,
        "np_cnp_sent": 11, "aer_fatal": 0,
    }  # fmt: skip
    efa = {"tx_bytes": 1000 + 30 + 4, "rx_bytes": 2000, "tx_packets": 3, "rx_drops": 1}
    assert efa.items() <= seen["efa_0:1"].items()  # parts that are added up


def test_an_older_efa_driver_counts_its_bytes_at_once() -> None:
    text = "rank 0\nnode n\nbefore efa_0:1 tx_bytes=5 rx_bytes=6\nstatus 0\n"
    assert parse_rank(text, "x").before["efa_0:1"] == {"tx_bytes": 5, "rx_bytes": 6}


def test_the_other_ranks_read_what_proves_the_path(tmp_path: Path) -> None:
    seen = _counted(tmp_path, SLURM_LOCALID="2")
    assert seen["p1"] == {"tx_bytes": 100, "rx_bytes": 200, "carrier_changes": 3}
    assert seen["mlx5_0:1"]["tx_bytes"] == 1000
    assert "np_cnp_sent" not in seen["mlx5_0:1"]
    assert seen["efa_0:1"]["tx_bytes"] == 1034


def test_an_ethtool_that_hangs_holds_nobody_up(tmp_path: Path) -> None:
    script, leg = _machine(tmp_path), _leg(tmp_path)
    (tmp_path / "tools" / "ethtool").write_text("#!/bin/bash\nexec sleep 30\n")
    search = f"{tmp_path}/tools:{os.environ['PATH']}"
    environment = {"PATH": search, "FABRICPROOF_LEG": str(leg)}
    subprocess.run(["bash", str(script), "true"], env=environment, timeout=20, check=True)
    assert _seen(leg).after["p1"]["tx_bytes"] == 100


def test_arguments_arrive_as_they_were_given(tmp_path: Path) -> None:
    ended = _run(tmp_path, "printf", "%s|", "a b", "", "*", "$HOME")
    assert ended.stdout == "a b||*|$HOME|"


@pytest.mark.parametrize(
    ("program", "status"), [(("bash", "-c", "kill -KILL $$"), 137), (("no-such-benchmark",), 127)]
)
def test_a_program_that_failed_leaves_its_status_and_its_counters(
    program: tuple[str, ...], status: int, tmp_path: Path
) -> None:
    assert _run(tmp_path, *program).returncode == status
    assert _seen(tmp_path).status == status
    assert _seen(tmp_path).after


def test_a_killed_wrapper_leaves_no_after(tmp_path: Path) -> None:
    started = subprocess.Popen(
        ["bash", str(RANK_SH), "sleep", "60"],
        env={"PATH": os.environ["PATH"], "FABRICPROOF_LEG": str(tmp_path)},
        start_new_session=True,
    )
    try:
        deadline = time.monotonic() + 20
        while not _holds(tmp_path / "rank.0.0", "before lo"):
            assert time.monotonic() < deadline, "rank.sh wrote nothing"
            time.sleep(0.02)
    finally:
        os.killpg(started.pid, signal.SIGKILL)
        started.wait(timeout=20)
    text = (tmp_path / "rank.0.0").read_text()
    assert "after" not in text
    assert "status" not in text


def _holds(path: Path, words: str) -> bool:
    return path.exists() and words in path.read_text()


@pytest.mark.parametrize("leg", ["", "/nowhere/at/all", "."])
def test_without_evidence_nothing_is_run(leg: str, tmp_path: Path) -> None:
    mark = tmp_path / "ran"
    (tmp_path / "rank.0.0").mkdir()  # so that it cannot be written
    ended = _run(tmp_path, "touch", str(mark), FABRICPROOF_LEG=leg.replace(".", str(tmp_path)))
    assert ended.returncode == 74
    assert leg == "." or "FABRICPROOF_LEG is no folder" in ended.stderr
    assert not mark.exists()


_STEALS = "cpu  10 0 10 10 0 0 0 {} 0 0\ncpu0 10 0 10 10 0 0 0 {} 0 0\n"


@pytest.mark.parametrize(
    ("flags", "stolen", "is_looked_for"),
    [("fpu hypervisor vmx", 0, True), ("fpu hypervisor vmx", 7, False), ("fpu vmx", 0, False)],
)
def test_gaps_are_looked_for_where_a_hypervisor_counts_nothing_as_stolen(
    tmp_path: Path, flags: str, stolen: int, is_looked_for: bool
) -> None:
    script = _machine(tmp_path)
    (tmp_path / "cpuinfo").write_text(f"processor\t: 0\nflags\t\t: {flags}\n\n")
    (tmp_path / "stat").write_text(_STEALS.format(stolen, stolen))
    text = script.read_text()
    for name in ("cpuinfo", "stat"):
        assert f"</proc/{name}" in text
        text = text.replace(f"</proc/{name}", f"<{tmp_path}/{name}")
    script.write_text(text)
    leg = _leg(tmp_path)
    assert _run(leg, "true", script=script, SLURM_LOCALID="0").returncode == 0
    after = _seen(leg).after["node/cores"]
    assert ("paced_us" in after) is is_looked_for
    if is_looked_for:
        assert after["paced_us"] >= 80_000
        assert 0 <= after["lost_us"] <= after["paced_us"]
