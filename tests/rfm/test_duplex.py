"""Both directions over one: what is expected of the C programs and of the ports."""

from __future__ import annotations

from pathlib import Path

import pytest

from fabricproof.rfm.legs.leg import LegPlanner
from fabricproof.rfm.legs.rails import duplex_plan
from fabricproof.site import load_site
from fabricproof.stacks.stack import resolve

SITES = Path(__file__).parents[2] / "site-configs"


def planner(folder: Path | None, **stack: object) -> LegPlanner:
    """Return a planner of a C stack whose programs are those in ``folder``."""
    site = load_site(str(SITES / "vcluster"))
    update = {"provisioned": False, "suites": {"osu": str(folder)} if folder else {}, **stack}
    return LegPlanner(
        site=site,
        partition=site.partitions[0],
        stack=resolve(site, site.partitions[0], site.stack("openmpi5").model_copy(update=update)),
        fabric="eth0",
        suite="osu",
        program="osu_bw",
    )


@pytest.fixture
def programs(tmp_path: Path) -> Path:
    for name in ("osu_bw", "osu_bibw"):
        (tmp_path / name).touch()
    return tmp_path


def test_a_full_duplex_link_carries_twice(programs: Path) -> None:
    plan = duplex_plan(planner(programs))
    (relation,) = plan.relations
    settings = relation.settings
    assert [leg.name for leg in plan.legs if not leg.in_turn] == ["rail0.forth", "rail0.both"]
    assert relation.turns == {
        "rail0.forth": "rail0.forth.turn",
        "rail0.both": "rail0.both.turn",
    }
    assert (settings["under"], settings["over"]) == (["rail0.forth"], ["rail0.both"])
    assert settings["scale"] == 1.0
    assert settings["reference"]["value"] == pytest.approx(2.0)
    assert settings["reference"]["lower"] == pytest.approx(1.6)
    assert 2.0 < settings["most"] < 2.4


def test_a_stack_without_the_program_of_both_ways_is_skipped_with_the_reason() -> None:
    plan = duplex_plan(planner(None))
    assert plan.legs == ()
    assert "has no suite osu" in plan.reason
