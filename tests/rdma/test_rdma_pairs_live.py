"""The check of all pairs over real verbs: two guests are one pair, judged and blamed on nobody.

Opt in: ``pytest -m 'rdma or long'`` with a cluster of guests up (FABRICPROOF_VCLUSTER names it).
"""

from __future__ import annotations

import pytest
from rdma_session import ROOT, TEST_SECONDS, Session, by_path

from busy_machine import others_hold_the_cores

# Some three minutes under emulation.
pytestmark = [pytest.mark.rdma, pytest.mark.long, pytest.mark.timeout(TEST_SECONDS)]

ALL_PAIRS = str(ROOT / "checks" / "multirail" / "all_pairs.py")


def test_a_slow_rail_of_the_only_pair_is_red_and_nobody_is_blamed(session: Session) -> None:
    with session.fault("vc2", "rail1", "--rate", "50%"):
        _, legs = session.run("AllPairsRound", ALL_PAIRS, stacks="openmpi4")
    rows = by_path([leg for leg in legs if leg["suite"] == "fabricproof"])
    assert rows["rxe0:1"]["verdict"] in {"PASS", *_if_busy()}, rows["rxe0:1"]["reason"]
    slow = rows["rxe1:1"]
    assert slow["verdict"] in {"FAIL", *_if_busy()}, slow["reason"]
    (value,) = [each["value"] for each in slow["quantities"] if "bandwidth" in each["name"]]
    assert value < 0.6 * 9.8  # MB/s; the site's rails have 80 Mb/s
    assert slow["verdict"] != "FAIL" or "2 nodes do not tell" in slow["reason"]
    assert not [line for leg in legs for line in leg["findings"] if " runs at " in line]


def _if_busy() -> set[str]:
    """A look that was disturbed says nothing, on cores that others have."""
    return {"UNJUDGED"} if others_hold_the_cores() else set()
