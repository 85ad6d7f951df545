"""``peer.sh``: a server and a client found each other, or the reason why not in one line."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

import fabricproof.job
from fabricproof.core.measure import Verdict
from fabricproof.job.commands import PEER_FILE
from fabricproof.job.leg import Traffic
from fabricproof.job.outcome import judge_leg
from leg_folders import make_leg, rank_text

PEER_SH = Path(fabricproof.job.__file__).parent / PEER_FILE

pytestmark = pytest.mark.skipif(shutil.which("ip") is None, reason="no iproute2 here")

#: listens until it is ended, as a server does; a client says what it was told
TOOL = """\
#!{python}
import socket, sys, time
words = sys.argv[1:]
if "-s" in words:
    door = socket.create_server(("127.0.0.1", int(words[words.index("-p") + 1])))
    time.sleep(60)
print("measured", *words)
sys.exit({status})
"""


@pytest.fixture
def tools(tmp_path: Path) -> Path:
    folder = tmp_path / "bin"
    folder.mkdir()
    put(folder, "iperf3")
    return folder


def put(folder: Path, name: str, *, status: int = 0, text: str = TOOL) -> None:
    path = folder / name
    path.write_text(text.format(python=sys.executable, status=status))
    path.chmod(0o755)


def start(
    rank: int, leg: Path, tools: Path | None, *words: str, **variables: str
) -> subprocess.Popen[str]:
    bare = "/usr/bin:/bin"
    environment = {
        "PATH": f"{tools}:{bare}" if tools else bare,
        "PMI_RANK": str(rank),
        "FABRICPROOF_LEG": str(leg),
        "SLURMD_NODENAME": f"node{rank}",
        "FABRICPROOF_PEER_SECONDS": "3",
        **variables,
    }
    return subprocess.Popen(
        ["bash", str(PEER_SH), "3", *(words or ("lo", "iperf3", "-t", "1"))],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def run_both(
    leg: Path, tools: Path | None, *words: str, **variables: str
) -> tuple[tuple[int, str, str], tuple[int, str, str]]:
    both = [start(rank, leg, tools, *words, **variables) for rank in (1, 0)]
    ended = []
    for process in both:
        out, err = process.communicate(timeout=30)
        ended.append((process.returncode, out, err))
    return ended[1], ended[0]


@pytest.fixture
def leg(tmp_path: Path) -> Path:
    folder = tmp_path / "leg"
    folder.mkdir()
    return folder


def servers(port_of: Path) -> list[str]:
    """Return the command lines of all processes that serve on the port that was announced."""
    port = port_of.read_text().split()[-1]
    lines = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = path.read_bytes().decode(errors="replace").split("\0")
        except OSError:
            continue
        if "-s" in words and port in words:
            lines.append(" ".join(words))
    return lines


def test_the_client_measures_the_server_and_no_server_is_left(leg: Path, tools: Path) -> None:
    client, server = run_both(leg, tools)
    assert client[0] == server[0] == 0, (client, server)
    word, node, address, port = (leg / "peer.0").read_text().split()
    assert (word, node, address) == ("ready", "node1", "127.0.0.1")
    assert client[1] == f"measured -c 127.0.0.1 -B 127.0.0.1 -p {port} -J -t 1\n"
    assert servers(leg / "peer.0") == []
    assert not list(leg.glob("reason.*"))


def test_a_server_that_is_killed_with_its_launcher_leaves_nothing(leg: Path, tools: Path) -> None:
    process = start(1, leg, tools)
    deadline = time.monotonic() + 10
    while not (leg / "peer.0").exists():
        assert time.monotonic() < deadline
        time.sleep(0.05)
    assert servers(leg / "peer.0")
    process.terminate()
    process.communicate(timeout=10)
    deadline = time.monotonic() + 10
    while servers(leg / "peer.0"):
        assert time.monotonic() < deadline, "the server outlived its leg"
        time.sleep(0.05)


def test_no_tool_on_the_serving_node(leg: Path, tools: Path) -> None:
    server = start(1, leg, None, "lo", "iperf3-is-not-here", "-t", "1")
    server.communicate(timeout=10)
    put(tools, "iperf3-is-not-here")
    client = start(0, leg, tools, "lo", "iperf3-is-not-here", "-t", "1")
    _, said = client.communicate(timeout=10)
    assert (server.returncode, client.returncode) == (3, 3)
    assert said == "peer.sh: no iperf3-is-not-here on node node1\n"
    assert (leg / "reason.0").read_text() == "no iperf3-is-not-here on node node1\n"


MUTE = "#!/bin/sh\necho 'error: unable to start listener' >&2\nexit 1\n"
REFUSED = TOOL.replace('print("measured", *words)', 'print("error - unable to connect")')
SLEEPS = TOOL.replace('print("measured"', 'time.sleep(60); print("measured"')


@pytest.mark.parametrize(
    ("text", "status", "rail", "said"),
    [
        (MUTE, 0, "lo", "the iperf3 server on node1 lo never listened: error: unable to start"),
        (TOOL, 0, "enp97s0", "no interface enp97s0 on node"),
        (
            REFUSED, 1, "lo",
            ("iperf3 from node0 to node1 over lo ended with status 1: error - unable to connect\n"),
        ),
        (SLEEPS, 0, "lo",
            "the iperf3 server on node1 lo (127.0.0.1) did not answer within 3 s from node0"),
    ],
    ids=["no listener", "no interface", "no connection", "no answer"],
)  # fmt: skip
def test_a_run_that_came_to_nothing_says_why(
    leg: Path, tools: Path, text: str, status: int, rail: str, said: str
) -> None:
    put(tools, "iperf3", text=text, status=status)
    client, _ = run_both(leg, tools, rail, "iperf3", "-t", "1")
    assert client[0] == 3
    reason = (leg / "reason.0").read_text()
    assert reason.startswith(said)
    assert rail == "lo" or "which has" in reason
    assert not (leg / "peer.0").exists() or servers(leg / "peer.0") == []


def test_a_server_that_never_comes(leg: Path, tools: Path) -> None:
    client = start(0, leg, tools, FABRICPROOF_PEER_SECONDS="1")
    _, said = client.communicate(timeout=15)
    assert client.returncode == 3
    assert "the iperf3 server on the other node lo did not answer within 1 s" in said


def test_an_hca_port_that_is_down(leg: Path, tools: Path, tmp_path: Path) -> None:
    port = tmp_path / "sys" / "class" / "infiniband" / "mlx5_0" / "ports" / "1"
    port.mkdir(parents=True)
    (port / "state").write_text("1: DOWN\n")
    put(tools, "ib_write_bw")
    for rail, words in (
        ("mlx5_0:1", "port mlx5_0:1 on node1 is DOWN\n"),
        ("mlx4_0:1", "no port mlx4_0:1 on node1, which has mlx5_0 \n"),
    ):
        for each in leg.iterdir():
            each.unlink()
        server = start(1, leg, tools, rail, "ib_write_bw", FABRICPROOF_SYS=str(tmp_path / "sys"))
        server.communicate(timeout=10)
        assert server.returncode == 3
        assert (leg / "reason.0").read_text() == words


def test_the_reason_is_the_verdict_whatever_the_launcher_said_after_it(tmp_path: Path) -> None:
    wanted = make_leg(suite="iperf3", program="iperf3", required=("bandwidth",), traffic=Traffic())
    path = tmp_path / "legs" / "rail0.1"
    path.mkdir(parents=True)
    (path / "stdout").write_text("")
    (path / "stderr").write_text("srun: error: n1: task 0: Exited with exit code 3\n")
    (path / "status").write_text("3\n")
    (path / "reason.0").write_text("no iperf3 on node vc3\n")
    (path / "rank.0.0").write_text(rank_text(0, sent=0, received=0, status=3))
    (judgement,) = judge_leg(tmp_path, wanted).report.quantities
    assert judgement.verdict is Verdict.MISSING
    assert judgement.reason == "no iperf3 on node vc3"


@pytest.mark.skipif(shutil.which("iperf3") is None, reason="no iperf3 here")
def test_a_real_iperf3_over_the_loopback_interface(leg: Path) -> None:
    path = os.environ.get("PATH", "")
    client, server = run_both(leg, None, "lo", "iperf3", "-t", "1", PATH=path)
    assert client[0] == server[0] == 0, client
    assert '"sum_received"' in client[1]
