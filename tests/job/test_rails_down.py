"""A rail that is down is named where the MPI's last words name none, and looks are taken once."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from fabricproof.core.measure import Verdict
from fabricproof.job.leg import write_plan
from fabricproof.job.outcome import judge_leg, needs_second_look
from fabricproof.job.second_look import doubtful_legs
from leg_folders import PUT_BW_SENT, leave, make_leg, rank_text

LEG = make_leg()
#: of rank.sh on a guest whose rail's cable was pulled (vc2, Linux 7.3, rdma_rxe)
SOFT = "fact rxe1:1 parent=rail1 state=1:_DOWN rate=2.5_Gb/sec_(1X_SDR) link_layer=Ethernet"


def _ranks(old: str, new: str) -> tuple[str, str]:
    first = rank_text(0, sent=PUT_BW_SENT, received=0)
    second = rank_text(1, sent=0, received=PUT_BW_SENT)
    assert old in second
    return first, second.replace(old, new)


def _reason(folder: Path, leg: object = LEG) -> str:
    return judge_leg(folder, leg).report.quantities[0].reason  # type: ignore[arg-type]


def test_a_failed_leg_names_the_rail_that_was_down_and_its_node(tmp_path: Path) -> None:
    ranks = _ranks("fact rail0 mtu=1500 speed=1000 operstate=up", "fact rail0 operstate=down")
    leave(tmp_path, LEG, ranks=ranks, status="1\n", stderr="Exit code:    1\n")
    assert judge_leg(tmp_path, LEG).report.verdict is Verdict.MISSING
    assert _reason(tmp_path).startswith("rail0 on n2 was down when it began; the benchmark failed")


def test_a_failed_leg_names_the_port_that_was_down(tmp_path: Path) -> None:
    leg = replace(LEG, rails=("rxe1:1",))
    ranks = _ranks("fact rail0", f"{SOFT}\nfact rail0")
    leave(tmp_path, leg, ranks=ranks, status="1\n", stderr="Exit code:    1\n")
    assert "rxe1:1 on n2 was DOWN when it began; the benchmark failed" in _reason(tmp_path, leg)


@pytest.mark.parametrize("state", ["up", "unknown"])
def test_no_rail_is_blamed_that_was_not_down(tmp_path: Path, state: str) -> None:
    ranks = _ranks("fact rail1 mtu=1500 speed=1000 operstate=up", "fact rail1 operstate=down")
    ranks = (ranks[0].replace("operstate=up", f"operstate={state}"), ranks[1])
    leave(tmp_path, LEG, ranks=ranks, status="1\n", stderr="Exit code:    1\n")
    assert _reason(tmp_path).startswith("the benchmark failed, exit status 1")


def test_a_leg_that_measures_nothing_is_started_once(tmp_path: Path) -> None:
    """Preflight's: it shows who took part, and prints no table that a second look could mend."""
    look = replace(LEG, name="look", commands=(("true",),), expected_sizes=(), required=())
    leave(tmp_path, look, "")
    write_plan(tmp_path, (look,))
    assert not needs_second_look(judge_leg(tmp_path, look))
    assert doubtful_legs(tmp_path) == []
    due = replace(look, required=("bandwidth_4MiB",))
    assert needs_second_look(judge_leg(tmp_path, due))


def test_between_unlike_rails_each_node_answers_for_its_own(tmp_path: Path) -> None:
    leg = replace(LEG, rails=("rail0-rail1",), node_rails=("rail0", "rail1"))
    ranks = _ranks("fact rail1 mtu=1500 speed=1000 operstate=up", "fact rail1 operstate=down")
    leave(tmp_path / "own", leg, ranks=ranks, status="1\n", stderr="Exit code:    1\n")
    assert _reason(tmp_path / "own", leg).startswith("rail1 on n2 was down when it began")
    ranks = _ranks("fact rail0 mtu=1500 speed=1000 operstate=up", "fact rail0 operstate=down")
    leave(tmp_path / "other", leg, ranks=ranks, status="1\n", stderr="Exit code:    1\n")
    assert _reason(tmp_path / "other", leg).startswith("the benchmark failed")
