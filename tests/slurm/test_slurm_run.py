"""``fabricproof run`` on a real Slurm: the structure of its result, never its speed."""

from __future__ import annotations

from typing import Any

import pytest

from fabricproof.core.measure import Verdict

pytestmark = [pytest.mark.slurm, pytest.mark.timeout(600)]


def test_one_check_measures_each_rail_and_proves_its_path(clean: dict[str, dict[str, Any]]) -> None:
    assert set(clean) == {"rail0", "rail1", "rail0.back", "rail1.back"}
    for leg in clean.values():
        # A cluster at another rate than the site declares is INVALID, and rightly so.
        assert Verdict(leg["verdict"]) is not Verdict.MISSING
        assert leg["fabric"] == "eth0"
        assert leg["job_id"]
        assert len(leg["nodes"]) == 2
        assert leg["net_path"]["state"] == "proven"
