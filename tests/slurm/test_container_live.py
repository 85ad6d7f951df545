"""A stack in a container, made with bubblewrap: proven inside, and cut off from what it is told.

Opt in: ``pytest -m slurm`` with a virtual cluster up (FABRICPROOF_VCLUSTER names it).
"""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from slurm_session import ROOT, Session, is_green

from contained_site import ENTER, write_site

pytestmark = [pytest.mark.slurm, pytest.mark.timeout(600)]

SITE = ROOT / "site-configs" / "vcluster"


@pytest.fixture
def site(tmp_path: Path) -> Path:
    if shutil.which("bwrap") is None:
        pytest.skip("bubblewrap is not installed")
    runtimes = {
        "boxed": ENTER,
        "cut": f"{ENTER} --unsetenv FI_TCP_IFACE --unsetenv FI_PROVIDER",
        "bare": "env IMAGE={image}",
    }
    write_site(tmp_path, SITE, runtimes)
    return tmp_path


def test_a_container_is_proven_and_one_that_is_cut_off_is_invalid_with_the_reason(
    session: Session, site: Path
) -> None:
    _, record = session.run(
        *("--site", str(site), "-c", str(ROOT / "checks" / "pt2pt" / "pairs.py")),
        *("-n", "^ImbPingPong%", "-p", "boxed", "-p", "cut", "-p", "bare"),
    )
    rows = [leg for leg in record["legs"] if leg["verdict"] != "SKIPPED"]
    legs = [leg for leg in rows if not leg["relation"]]
    by_stack = {
        name: [leg for leg in legs if leg["stack"] == name] for name in ("boxed", "cut", "bare")
    }
    assert {name: len(each) for name, each in by_stack.items()} == dict.fromkeys(by_stack, 2), legs
    assert all(map(is_green, by_stack["boxed"])), by_stack["boxed"]
    # One of the two rails is the one that it takes by itself.
    red = [leg for leg in by_stack["cut"] if leg["verdict"] == "INVALID"]
    assert red, by_stack["cut"]
    reasons = [each["reason"] for leg in red for each in leg["quantities"]]
    assert any("has no FI_PROVIDER=tcp in its environment" in each for each in reasons), reasons
    for leg in by_stack["bare"]:
        assert leg["verdict"] == "INVALID", leg
        reasons = [each["reason"] for each in leg["quantities"]]
        assert any("ran with the root of the node itself, not in /usr" in each for each in reasons)
