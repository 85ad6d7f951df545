"""What a leg's bytes alone cannot show, made for real: each with the verdict that it must end with.

Opt in: ``pytest -m slurm`` with a virtual cluster up (FABRICPROOF_VCLUSTER names it).
"""

from __future__ import annotations

import concurrent.futures
import contextlib
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from slurm_session import Session, bandwidth, is_green, is_red

pytestmark = [pytest.mark.slurm, pytest.mark.timeout(600)]

#: five of five on request (``-m "slurm or long"``); CI makes each fault once
ATTEMPTS = [0, *(pytest.param(number, marks=pytest.mark.long) for number in range(1, 5))]

CLUSTER = os.environ.get("FABRICPROOF_VCLUSTER", "vcluster")
FABRICPROOF = Path(sys.executable).parent / "fabricproof"
ROOT = Path(__file__).parents[2]


def vcluster(command: str, *arguments: str) -> str:
    said = subprocess.run(
        [FABRICPROOF, "vcluster", command, "--name", CLUSTER, *arguments],
        check=True, timeout=60, capture_output=True, text=True,
    )  # fmt: skip
    return said.stdout.strip()


def on(node: str, script: str) -> str:
    return vcluster("exec", node, "--", "sh", "-c", script)


def address(node: str, rail: str = "rail0") -> str:
    return on(node, f"ip -4 -o address show {rail}").split("inet ")[1].partition("/")[0]


@contextlib.contextmanager
def through_a_third_node() -> Iterator[None]:
    """Have vc2 take the hardware address of vc3, which forwards, for that of vc1."""
    hardware, peer = on("vc3", "cat /sys/class/net/rail0/address"), address("vc1")
    on("vc3", "sysctl -qw net.ipv4.ip_forward=1 net.ipv4.conf.all.send_redirects=0")
    on("vc3", "sysctl -qw net.ipv4.conf.rail0.send_redirects=0")
    on("vc2", f"ip neigh replace {peer} lladdr {hardware} dev rail0 nud permanent")
    try:
        yield
    finally:
        on("vc2", f"ip neigh del {peer} dev rail0")
        on("vc3", "sysctl -qw net.ipv4.ip_forward=0")


@contextlib.contextmanager
def another_library() -> Iterator[None]:
    """Have vc2 see another file under the name of the stack's MPI library, by a byte at its end."""
    library = next((ROOT / ".stacks" / "openmpi5" / "lib").glob("libmpi.so.[0-9]*")).resolve()
    on("vc2", f"cp {library} /tmp/mixed && echo >>/tmp/mixed && mount --bind /tmp/mixed {library}")
    try:
        yield
    finally:
        on("vc2", f"umount {library}; rm -f /tmp/mixed")


#: what the reason of each objection says
HOP, MIXED, EVENT = "through another node", "loaded ", "carrier_changes of rail0 on vc2"


@pytest.mark.parametrize("attempt", ATTEMPTS)
@pytest.mark.parametrize(
    ("fault", "words", "rails"),
    [
        (through_a_third_node, HOP, {"rail0", "rail0.back"}),
        (another_library, MIXED, {"rail0", "rail1", "rail0.back", "rail1.back"}),
    ],
)
def test_a_wrong_hop_and_mixed_libraries_are_invalid(
    session: Session,
    fault: Callable[[], contextlib.AbstractContextManager[None]],
    words: str,
    rails: set[str],
    attempt: int,
) -> None:
    with fault():
        legs = bandwidth(session)
    for name, leg in legs.items():
        assert (leg["verdict"] == "INVALID") is (name in rails), (attempt, name, leg["reason"])
        assert (words in leg["reason"] and "vc2" in leg["reason"]) is (name in rails)


@pytest.mark.parametrize("attempt", ATTEMPTS)
def test_a_link_that_went_down_for_a_moment_is_not_cleared(session: Session, attempt: int) -> None:
    script = (
        "bytes=/sys/class/net/rail0/statistics/rx_bytes; from=$(cat $bytes); "
        "while [ $(cat $bytes) -lt $((from + 1000000)) ]; do sleep 0.02; done; "
        "ip link set rail0 down; sleep 0.1; ip link set rail0 up"
    )
    with concurrent.futures.ThreadPoolExecutor() as pool:
        flapped = pool.submit(on, "vc2", script)
        legs = bandwidth(session)
        flapped.result()
    verdicts = {name: leg["verdict"] for name, leg in legs.items()}
    assert verdicts["rail0"] not in {"PASS", "UNJUDGED"}, (attempt, legs["rail0"]["reason"])
    assert EVENT in str(legs["rail0"])
    assert is_green(legs["rail1"]), legs["rail1"]["reason"]


@pytest.mark.parametrize("attempt", ATTEMPTS)
def test_a_rail_that_preflight_saw_slow_is_red_beside_any_load(
    session: Session, attempt: int
) -> None:
    loop = [sys.executable, "-c", "while True: pass"]
    vcluster("fault", "vc2", "rail0", "--rate", "85%")
    children = [subprocess.Popen(loop) for _ in range(2)]
    try:
        legs = bandwidth(session)
    finally:
        for child in children:
            child.kill()
            child.wait()
        vcluster("fault", "vc2", "rail0", "--clear")
    assert legs["rail0"]["verdict"] == "FAIL", (attempt, legs["rail0"]["reason"])
    assert is_green(legs["rail1"]) or is_red(legs["rail1"]), legs["rail1"]["reason"]


@pytest.mark.parametrize("attempt", ATTEMPTS)
def test_none_of_it_is_said_of_a_whole_cluster(session: Session, attempt: int) -> None:
    for name, leg in bandwidth(session).items():
        assert is_green(leg), (attempt, name, leg["reason"])
        assert not any(words in leg["reason"] for words in (HOP, "libmpi", "carrier_changes"))
