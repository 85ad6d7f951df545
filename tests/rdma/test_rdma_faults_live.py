"""Rails that are broken for real, and what preflight and the benchmarks say of each.

Opt in: ``pytest -m rdma`` with a cluster of guests up (FABRICPROOF_VCLUSTER names it).
"""

from __future__ import annotations

import contextlib
from typing import Any

import pytest
from rdma_session import PERFTEST, PREFLIGHT, SMALL, TEST_SECONDS, Session, by_path

pytestmark = [pytest.mark.rdma, pytest.mark.timeout(TEST_SECONDS)]

Legs = list[dict[str, Any]]


def _only_rxe1_is_blamed(legs: Legs, check: str) -> str:
    """Return why the second rail is red in ``check``; the first one is green."""
    found = by_path(legs, check)
    assert found["rxe0:1"]["verdict"] == "PASS", found["rxe0:1"]["reason"]
    assert found["rxe1:1"]["verdict"] != "PASS"
    return str(found["rxe1:1"]["reason"])


def _looked_at_twice(session: Session, checks: str, *paths: str) -> Legs:
    """Run checks; where the healthy rail is too slow for once, measure that check once more.

    The cores of this machine are the guests' own, and others use them.
    """
    _, legs = session.run(checks, *paths)
    mine = [leg for leg in legs if leg["check"] == "PerftestWriteBandwidth"]
    if by_path(mine)["rxe0:1"]["verdict"] == "FAIL":
        _, again = session.run("PerftestWriteBandwidth", PERFTEST)
        legs = [leg for leg in legs if leg not in mine] + again
    return legs


def test_a_rail_that_is_down_is_named_by_its_look_and_by_the_mpi(session: Session) -> None:
    with session.fault("vc2", "rail1", "--down"):
        _, legs = session.run("LinkPreflight|SecondRail", PREFLIGHT, SMALL)
    preflight = _only_rxe1_is_blamed(legs, "LinkPreflight")
    assert "rxe1:1 on vc2 is down" in preflight
    assert "rail1 below it" in preflight
    assert "vc1" not in preflight
    (mpi,) = [leg for leg in legs if leg["check"] == "SecondRail"]
    assert mpi["verdict"] == "MISSING"
    assert "rxe1:1 on vc2 was DOWN when it began" in mpi["reason"]


@pytest.mark.long
def test_a_rail_that_is_down_is_named_by_perftest_and_the_other_passes(session: Session) -> None:
    with session.fault("vc2", "rail1", "--down"):
        legs = _looked_at_twice(session, "PerftestWriteBandwidth", PERFTEST)
    perftest = by_path(legs, "PerftestWriteBandwidth")["rxe1:1"]
    assert perftest["verdict"] == "MISSING"
    assert "port rxe1:1 on vc2 is DOWN" in _only_rxe1_is_blamed(legs, "PerftestWriteBandwidth")


@pytest.mark.long
def test_a_slowed_rail_and_a_smaller_mtu_are_each_named_on_their_node_alone(
    session: Session,
) -> None:
    """One look at both, for a look takes two emulated cores most of a minute."""
    with session.fault("vc1", "rail1", "--rate", "40mbit"):
        measured = _looked_at_twice(session, "PerftestWriteBandwidth", PERFTEST)
        with session.fault("vc2", "rail1", "--mtu", "1500"):
            _, legs = session.run("LinkPreflight", PREFLIGHT)
    assert "below the lower bound" in _only_rxe1_is_blamed(measured, "PerftestWriteBandwidth")
    found = by_path(measured, "PerftestWriteBandwidth")
    assert found["rxe1:1"]["verdict"] == "FAIL"
    slow, good = (found[rail]["quantities"][0]["value"] for rail in ("rxe1:1", "rxe0:1"))
    assert slow < 0.6 * good
    _only_rxe1_is_blamed(legs, "LinkPreflight")
    said = {
        each["name"]: (each["verdict"], each["reason"])
        for each in by_path(legs, "LinkPreflight")["rxe1:1"]["quantities"]
    }
    red = {name: reason for name, (verdict, reason) in said.items() if verdict == "FAIL"}
    rate, mtu = (
        " | ".join(each for name, each in red.items() if word in name) for word in ("rate", "mtu")
    )
    assert "rxe1:1 on vc1 runs at 40 Mb/s instead of 80: rail1 below it is shaped so" in rate
    assert "vc2 runs" not in rate
    assert "rxe1:1 on vc2 has MTU 1024 instead of 4096: rail1 below it has MTU 1500" in mtu
    assert "vc1 has MTU" not in mtu


@pytest.mark.long
def test_a_guest_that_dies_in_the_middle_of_a_leg_is_missing_and_named(session: Session) -> None:
    with contextlib.ExitStack() as afterwards:
        afterwards.callback(session.vcluster, "revive", "vc2")
        process = session.start("-c", SMALL, "-n", "^RunsForLong")
        afterwards.callback(session.end, process)
        session.wait_for_rank("RunsForLong", 1)
        session.vcluster("kill", "vc2")
        # Slurm itself gives a slow guest a minute and a half; who sees the power fail does not.
        session.slurm("scontrol", "update", "nodename=vc2", "state=down", "reason=power")
        status, legs = session.finish(process)
    (leg,) = legs
    assert (status, leg["verdict"]) == (4, "MISSING")
    assert "the job ended NODE_FAIL: Slurm lost vc2" in leg["reason"]
