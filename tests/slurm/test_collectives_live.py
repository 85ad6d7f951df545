"""Collectives on a real Slurm: four nodes, one or two ranks on each; and what goes wrong.

Opt in: ``pytest -m slurm`` with a virtual cluster up (FABRICPROOF_VCLUSTER names it).
"""

import os
from pathlib import Path

import pytest
from test_faults_live import finish, start

CLUSTER = os.environ.get("FABRICPROOF_VCLUSTER", "vcluster")
BIN = Path("/run/fabricproof/vcluster") / CLUSTER / "bin"

pytestmark = [
    pytest.mark.slurm,
    pytest.mark.timeout(300),
    pytest.mark.skipif(not BIN.is_dir(), reason=f"no virtual cluster {CLUSTER!r} is up"),
]


def legs_of(check, stack):
    status, result = finish(start(check, stack))
    legs = {leg["leg"]: leg for leg in result["legs"] if leg["leg"]}
    return status, legs


@pytest.mark.parametrize(
    "check",
    ["AllgatherOverManagement", pytest.param("BarrierOverManagement", marks=pytest.mark.long)],
)
def test_a_collective_over_the_management_network_is_invalid(check):
    status, legs = legs_of(check, "openmpi5")
    assert status == 3
    assert legs["rail0.pair"]["verdict"] == "PASS"
    assert legs["rail0.4x1"]["verdict"] == "INVALID"
    assert "another path" in legs["rail0.4x1"]["reason"]


def test_ranks_that_crowd_on_fewer_nodes_are_invalid():
    status, legs = legs_of("AllgatherOnTwoNodes", "mpich5")
    assert (status, legs["rail0.4x1"]["verdict"]) == (3, "INVALID")
    assert "ranks on each node" in legs["rail0.4x1"]["reason"]


def test_a_table_that_ends_early_is_missing():
    status, legs = legs_of("AllgatherCutShort", "mpich5")
    assert (status, legs["rail0.4x1"]["verdict"]) == (4, "MISSING")
