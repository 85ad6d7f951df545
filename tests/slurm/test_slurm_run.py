"""``fabricproof run`` on a real Slurm: the structure of its result, never its speed."""

from __future__ import annotations

import pytest
from slurm_session import Session

from fabricproof.cli.output import STATUSES
from fabricproof.measure import Verdict

pytestmark = [pytest.mark.slurm, pytest.mark.timeout(600)]


def test_one_check_measures_each_rail_and_proves_its_road(session: Session) -> None:
    status, record = session.run("-n", "OsuLatency", "-p", "openmpi5")
    assert status == STATUSES[Verdict(record["verdict"])]
    measured = {leg["road"]: leg for leg in record["legs"] if leg["verdict"] != "SKIPPED"}
    assert set(measured) == {"rail0", "rail1"}
    for leg in measured.values():
        # A cluster at another rate than the site declares is INVALID, and rightly so.
        assert Verdict(leg["verdict"]) in {Verdict.PASS, Verdict.FAIL, Verdict.INVALID}
        assert leg["fabric"] == "eth0"
        assert leg["job_id"]
        assert len(leg["nodes"]) == 2
        assert leg["road_proof"]["state"] == "proven"
