"""Rails and places on a real Slurm: what two rails give, and how each fault of theirs is called.

Opt in: ``pytest -m slurm`` with a virtual cluster up (FABRICPROOF_VCLUSTER names it).
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from slurm_session import is_green, is_red, is_starved, quantity

ROOT = Path(__file__).parents[2]
FABRICPROOF = ROOT / "bin" / "fabricproof"
CLUSTER = os.environ.get("FABRICPROOF_VCLUSTER", "vcluster")
BIN = Path("/run/fabricproof/vcluster") / CLUSTER / "bin"

#: the checks of several rails alone: ReFrame reads all others first, which takes seconds
MULTIRAIL = ("-c", str(ROOT / "checks" / "multirail"))
PLACEMENT = ("-c", str(ROOT / "checks" / "pt2pt" / "placement.py"))

pytestmark = [
    pytest.mark.slurm,
    pytest.mark.timeout(300),
    pytest.mark.skipif(not BIN.is_dir(), reason=f"no virtual cluster {CLUSTER!r} is up"),
]


def run(check: str, *options: str) -> tuple[int, dict[str, dict[str, Any]]]:
    """Run one check on Open MPI; return its status and its legs and relations by name."""
    ended = subprocess.run(
        [
            *(str(FABRICPROOF), "run", "--site", "vcluster", "--json"),
            *("-t", "ethernet", "-n", check, "-p", "openmpi5", *options),
        ],
        env={**os.environ, "FABRICPROOF_VCLUSTER": CLUSTER},
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
    )
    assert ended.stdout, ended.stderr
    legs = json.loads(ended.stdout)["legs"]
    return ended.returncode, {leg["leg"]: leg for leg in legs}


def _fault(*arguments: str) -> None:
    command = [str(FABRICPROOF), "vcluster", "fault", "--name", CLUSTER, *arguments]
    subprocess.run(command, check=True, capture_output=True, timeout=60)


@contextmanager
def fault(node: str, interface: str, *what: str) -> Iterator[None]:
    _fault(node, interface, *what)
    try:
        yield
    finally:
        _fault(node, interface, "--clear")


def test_two_rails_give_what_two_links_allow_and_say_how_they_share() -> None:
    _, legs = run("OsuMultiRailBandwidth", *MULTIRAIL)
    assert set(legs) == {"rail0", "rail1", "rail0+rail1", "scaling", "sharing"}
    gain = quantity(legs["scaling"], "bandwidth_scaling")
    # Green means 1.9 or more; on a busy machine two rails want cores that others have, or the
    # rounds differ too much to tell, and who judges has to say so.  Where no round counts there is
    # no gain to hold against a reference.
    if gain["verdict"] == "UNJUDGED":
        assert is_starved(legs["scaling"]) or "rounds like these would tell" in gain["reason"]
    else:
        assert gain["reference"] == pytest.approx(2)
        assert gain["value"] < gain["ceiling"]
        assert (gain["verdict"] == "PASS") == (gain["value"] >= 1.9)
    shared = quantity(legs["sharing"], "balance_sharing")
    if shared["verdict"] == "UNJUDGED":
        assert is_starved(legs["sharing"]) or "rounds" in shared["reason"]
    else:
        assert shared["verdict"] == "PASS"
        assert 0.9 <= shared["value"] <= 1, "both rails carry alike, counted in bytes"
    if gain["verdict"] == "PASS":
        assert any(
            "several rails help from" in said["text"] for said in legs["sharing"]["findings"]
        )


@pytest.mark.long
def test_a_rail_cut_to_half_its_rate_is_red_by_itself_and_spoils_the_gain() -> None:
    with fault("vc1", "rail1", "--rate", "100mbit"):
        status, legs = run("OsuMultiRailBandwidth", *MULTIRAIL)
    assert status in {1, 5}
    assert is_green(legs["rail0"]), legs["rail0"]["reason"]
    assert is_red(legs["rail1"]), legs["rail1"]["reason"]
    plateau = quantity(legs["rail1"], "bandwidth_1MiB")
    assert plateau["value"] < 0.55 * plateau["ceiling"]
    assert "below the lower bound" in legs["rail1"]["reason"]
    assert legs["scaling"]["verdict"] in {"FAIL", "UNJUDGED"}
    assert quantity(legs["scaling"], "bandwidth_scaling")["value"] < 1.9
    if legs["scaling"]["verdict"] == "FAIL":
        assert "one rail may be slow (see its own leg)" in legs["scaling"]["reason"]


def test_a_rail_that_is_down_is_red_and_leaves_no_gain_to_judge() -> None:
    with fault("vc1", "rail1", "--down"):
        status, legs = run("OsuMultiRailBandwidth", *MULTIRAIL)
    assert status not in {0, 6}
    assert is_green(legs["rail0"]), legs["rail0"]["reason"]
    for net_path in ("rail1", "rail0+rail1", "scaling", "sharing"):
        assert legs[net_path]["verdict"] in {"MISSING", "INVALID", "FAIL"}, net_path


def test_pairs_are_measured_where_slurm_says_they_are() -> None:
    _, legs = run("PlacementLatency", *PLACEMENT)
    assert {"rail0.hops1", "rail0.hops3", "rail0.far_over_near"} <= set(legs)
    assert legs["rail0.hops1"]["nodes"] == ["vc1", "vc2"]
    assert legs["rail0.hops3"]["nodes"] == ["vc1", "vc3"]


def test_a_rank_on_the_wrong_node_is_invalid_and_both_nodes_are_named() -> None:
    status, legs = run("RankOnTheWrongNode", "-c", str(ROOT / "tests" / "slurm" / "checks"))
    (leg,) = legs.values()
    assert (status, leg["verdict"]) == (3, "INVALID")
    assert "ran on vc2, it was sent to vc1 or vc3" in leg["reason"]


def test_one_numa_node_makes_near_and_far_the_same() -> None:
    nodes = list(Path("/sys/devices/system/node").glob("node[0-9]*"))
    if len(nodes) > 1:
        pytest.skip("this machine has several NUMA nodes")
    status, legs = run("LocalityBandwidth", *MULTIRAIL)
    (leg,) = legs.values()
    assert (status, leg["verdict"]) == (6, "SKIPPED")
    assert "one NUMA node on vc1: near and far are the same" in leg["reason"]


def test_rails_in_networks_of_their_own_do_not_reach_each_other() -> None:
    _, legs = run("RailMatrixBandwidth", *MULTIRAIL)
    assert legs["rail0-rail1"]["verdict"] == "SKIPPED"
    assert "one cannot reach the other unless it is routed" in legs["rail0-rail1"]["reason"]
    assert {"rail0", "rail1", "rail0-rail1", "rail1-rail0"} == set(legs)
