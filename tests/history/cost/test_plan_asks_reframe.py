"""ReFrame itself, in a dry run of the real checks: its report is what the plan can read."""

from __future__ import annotations

from pathlib import Path

import pytest

from fabricproof.history.cost.case import ask_reframe
from fabricproof.site import load_site

ROOT = Path(__file__).resolve().parents[3]
SITE = ROOT / "tests" / "rfm" / "site"


def test_the_real_checks_say_what_they_would_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FABRICPROOF_PERFLOGS", str(tmp_path / "perflogs"))
    found = ask_reframe(load_site(str(SITE)), ROOT)
    cases = {case.check: case for case in found if case.fabric == "eth0"}
    bandwidth = cases["OsuBandwidth"]
    assert bandwidth.is_due
    assert bandwidth.nodes == 1
    assert all(
        0 < net_path.seconds < 2 and net_path.starts == 2 for net_path in bandwidth.net_paths
    )
    assert "has no suite imb" in cases["ImbPingPong"].skipped
    assert any(case.skipped == "this site has no infiniband fabric" for case in found)
    assert not list(tmp_path.iterdir())
