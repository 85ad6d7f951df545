"""Every fault does what it says, to nobody else, and is gone when cleared.  As root: -m vcluster.

Rates are compared with what the same two nodes, or their neighbours, have in the same run: a share
of the healthy one, so that a busy machine makes no red.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from vcluster.paths import Paths

pytestmark = [pytest.mark.vcluster, pytest.mark.timeout(240)]

_NAME = "faultlive"
_GROUPS = "fabricproof.faultlive.*"


def _vcluster(*words: str) -> str:
    verb, *rest = words
    done = subprocess.run(
        [sys.executable, "-m", "vcluster", verb, "--name", _NAME, *rest],
        capture_output=True, text=True, timeout=90, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout


def _groups() -> list[Path]:
    return [found for base in Path("/sys/fs/cgroup").glob("*") for found in base.glob(_GROUPS)]


@pytest.fixture(scope="module", autouse=True)
def five_nodes() -> Iterator[None]:
    """Give vc1 to vc3 on one leaf, vc4 and vc5 on the other; take them down with faults set."""
    if os.geteuid() != 0:
        pytest.skip("needs root")
    _vcluster("down")
    options = ["--nodes", "5", "--leaves", "2", "--rate", "40mbit", "--uplink", "120mbit"]
    _vcluster("up", *options, "--no-accounting")
    yield
    _vcluster("fault", "vc1", "--loss", "1")
    _vcluster("fault", "uplink1", "--down")
    _vcluster("fault", "vc1", "--with", "vc2", "--rate", "50%")
    assert "is down" in _vcluster("down")
    assert not Paths(_NAME).run.exists()
    assert _groups() == []


@contextmanager
def _fault(*words: str) -> Iterator[None]:
    place = words[: next(at for at, word in enumerate(words) if word.startswith("--"))]
    _vcluster("fault", *words)
    pair = list(words[words.index("--with") :][:2]) if "--with" in words else []
    try:
        yield
    finally:
        _vcluster("fault", *place, *pair, "--clear")
    assert json.loads(_vcluster("status", "--json"))["faults"] == {}


def _rates(*pairs: tuple[int, int], rail: int = 0) -> list[float]:
    """Return what iperf3 moves from one node to another, in Mb/s, one pair after the other."""
    found = []
    for source, destination in pairs:
        address = f"198.19.{rail}.{10 + destination}"
        _vcluster("exec", f"vc{destination}", "iperf3", "-s", "-1", "-D", "--bind", address)
        time.sleep(0.3)
        said = _vcluster("exec", f"vc{source}", "iperf3", "-J", "-t", "1.5", "-c", address)
        found.append(json.loads(said)["end"]["sum_received"]["bits_per_second"] / 1e6)
    return found


def _about(share: float) -> object:
    return pytest.approx(share, abs=0.1)


def test_the_receive_side_of_a_rail_is_slow_and_the_node_sees_nothing() -> None:
    shown = ("exec", "vc1", "tc", "qdisc", "show", "dev", "rail0")
    before = _vcluster(*shown)
    with _fault("vc1", "rail0", "--rate", "30%", "--direction", "in"):
        assert _vcluster(*shown) == before
        to_it, from_it, other = _rates((4, 1), (1, 4), (4, 2))
        assert [to_it / other, from_it / other] == [_about(0.3), _about(1)]
    to_it, other = _rates((4, 1), (4, 2))
    assert to_it / other == _about(1)


def test_the_transmit_side_of_a_rail_is_slow() -> None:
    with _fault("vc1", "rail0", "--rate", "50%", "--direction", "out"):
        to_it, from_it, other = _rates((4, 1), (1, 4), (2, 4))
        assert [from_it / other, to_it / other] == [_about(0.5), _about(1)]


def test_an_uplink_is_slow_in_one_direction_of_one_rail() -> None:
    with _fault("uplink1", "rail0", "--rate", "10%", "--direction", "out"):
        out, back, inside = _rates((1, 4), (4, 1), (1, 2))
        assert [out / inside, back / inside] == [_about(0.3), _about(1)]
        (other_rail,) = _rates((1, 4), rail=1)
        assert other_rail / inside == _about(1)
    out, inside = _rates((1, 4), (1, 2))
    assert out / inside == _about(1)


def test_a_leaf_is_slow_on_every_rail_inside_and_outside() -> None:
    with _fault("leaf2", "--rate", "50%"):
        inside, to_it, others = _rates((4, 5), (1, 5), (1, 2))
        assert [inside / others, to_it / others] == [_about(0.5), _about(0.5)]
        (other_rail,) = _rates((4, 1), rail=1)
        assert other_rail / others == _about(0.5)
    inside, others = _rates((4, 5), (1, 2))
    assert inside / others == _about(1)


def test_a_pair_is_slow_and_each_of_it_is_fast_with_others() -> None:
    with _fault("vc1", "rail0", "--with", "vc4", "--rate", "25%"):
        there, back, one, other = _rates((1, 4), (4, 1), (1, 5), (2, 4))
        assert [there / one, back / other, one / other] == [_about(0.25), _about(0.25), _about(1)]
    there, one = _rates((1, 4), (1, 5))
    assert there / one == _about(1)


def _lost(source: int, destination: int) -> float:
    """Return the share of 1000 small packets that get no answer."""
    said = _vcluster(
        "exec", f"vc{source}", "sh", "-c",
        f"ping -q -f -c 1000 198.19.0.{10 + destination} || true",
    )  # fmt: skip
    return float(said.split("% packet loss")[0].split()[-1]) / 100


def test_a_pair_an_uplink_and_a_leaf_lose_packets_and_others_do_not() -> None:
    with _fault("vc1", "rail0", "--with", "vc4", "--loss", "20", "--direction", "in"):
        assert _lost(1, 4) == pytest.approx(0.2, abs=0.06)
        assert (_lost(1, 5), _lost(2, 4)) == (0, 0)
    with _fault("uplink2", "rail0", "--loss", "20", "--direction", "in"):
        assert _lost(1, 4) == pytest.approx(0.2, abs=0.06)
        assert _lost(4, 5) == 0
    with _fault("leaf2", "rail0", "--loss", "20", "--direction", "out"):
        assert _lost(4, 5) == pytest.approx(0.36, abs=0.08)  # there and back
        assert _lost(1, 2) == 0
    assert (_lost(1, 4), _lost(4, 5)) == (0, 0)


def _busy_seconds(node: str) -> float:
    """Return the wall time of a loop that a job of Slurm runs on a node."""
    begin = time.monotonic()
    loop = "i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done"
    command = [Paths(_NAME).bin / "srun", "-w", node, "sh", "-c", loop]
    subprocess.run(command, check=True, capture_output=True, timeout=120)
    return time.monotonic() - begin


def test_a_starved_node_computes_slowly_and_recovers() -> None:
    with _fault("vc2", "--cpu", "5"):
        assert len(_groups()) == 1
        starved, other = _busy_seconds("vc2"), _busy_seconds("vc3")
        assert starved > 3 * other
    assert _groups() == []
    again, other = _busy_seconds("vc2"), _busy_seconds("vc3")
    assert again < 3 * other


def test_what_is_not_its_own_is_there_again_when_a_node_is_revived() -> None:
    _vcluster("fault", "vc3", "--cpu", "20")
    _vcluster("fault", "vc3", "rail1", "--mtu", "1400")
    with _fault("vc3", "rail0", "--with", "vc4", "--rate", "25%"):
        _vcluster("revive", "vc3")
        assert list(json.loads(_vcluster("status", "--json"))["faults"]) == ["vc3-vc4/rail0"]
        there, back, other = _rates((3, 4), (4, 3), (3, 5))
        assert [there / other, back / other] == [_about(0.25), _about(0.25)]
    assert _groups() == []
