"""Both directions over one: what is expected of the C programs and of the ports."""

from __future__ import annotations

from pathlib import Path

import pytest

from fabricproof.job.relation import Ratio
from fabricproof.rfm.families.rails import duplex_plan
from fabricproof.rfm.legs.leg import LegPlanner
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
    forth = planner(programs)
    both, _ = forth.of("osu", "osu_bibw")
    assert both is not None
    plan = duplex_plan(forth, both)
    (relation,) = plan.relations
    assert [leg.name for leg in plan.legs if not leg.in_turn] == ["rail0.forth", "rail0.both"]
    assert relation.turns == {
        "rail0.forth": "rail0.forth.turn",
        "rail0.both": "rail0.both.turn",
    }
    what = relation.what
    assert isinstance(what, Ratio)
    assert (what.under.legs, what.over.legs) == (("rail0.forth",), ("rail0.both",))
    assert (what.scale, len(what.over.sizes)) == (1.0, 3)
    assert what.reference is not None
    assert what.reference.value == pytest.approx(2.0)
    assert what.reference.lower == pytest.approx(1.6)
    assert what.most is not None
    assert 2.0 < what.most < 2.4
