"""What a site's baseline says of a job's legs lies beside the plan, where the site names one."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from plans import planner

from fabricproof.core.errors import ConfigError, ParseError
from fabricproof.core.provenance import LegPlace, StackIdentity
from fabricproof.history.baseline.file import path_of, write_baseline
from fabricproof.job.leg import Leg
from fabricproof.rfm.staging import with_baseline
from fabricproof.site import Site, load_site
from fabricproof.verdict.references import STAGE_FILE, Baseline, BaselineLeg, Facts, read_baseline
from made_baselines import make_baseline, make_row

ROOT = Path(__file__).parents[2]
LEG = Leg(name="rail0", rails=("rail0",), suite="osu", program="osu_bw", tolerance=0.1)
WHERE = LegPlace(
    partition="compute",
    fabric="eth0",
    stack="openmpi5",
    build="",
    suite="",
    program="",
    tool_version="",
    check="OsuBandwidth",
    leg="",
    rails="",
    nodes="",
    settings="",
)


def baseline_of(site: str) -> Baseline:
    place = replace(
        WHERE,
        build="b1",
        suite="osu",
        program="osu_bw",
        leg="rail0",
        rails="rail0",
        nodes="vc1,vc2",
        settings="num_pairs=1",
    )
    row = make_row(median=23.4, low=23.0, high=23.8)
    nodes: dict[str, Facts] = {"vc1": {}, "vc2": {}}
    return make_baseline(site=site, nodes=nodes, groups=(BaselineLeg(place=place, rows=(row,)),))


def site_with(folder: Path, *, of: str = "vcluster", named: bool = True) -> Site:
    copy = folder / "vcluster"
    shutil.copytree(ROOT / "site-configs" / "vcluster", copy)
    write_baseline(path_of(copy, "spring"), baseline_of(of))
    if named:
        path = copy / "site.toml"
        path.write_text(path.read_text().replace("[site]\n", '[site]\nbaseline = "spring"\n'))
    return load_site(str(copy))


def judged_by(folder: Path, site: Site, leg: Leg = LEG) -> tuple[Leg, ...]:
    build = StackIdentity(
        origin="declared", digest="b1", mpi="", program="", compiler="", target=""
    )
    own = planner(site, "osu", "osu_bw", "openmpi5")
    return with_baseline([leg], folder, own, "OsuBandwidth", {"osu": build})


def test_a_leg_knows_who_judges_it_last(tmp_path: Path) -> None:
    (leg,) = judged_by(tmp_path, site_with(tmp_path))
    assert leg == replace(LEG, baseline="spring")
    known = read_baseline(tmp_path / STAGE_FILE, "rail0")
    assert known.legs["rail0"].build == "b1"
    ((place, row),) = known.rows()
    assert (place.nodes, row.low, row.num_runs) == ("vc1,vc2", 23.0, 5)


@pytest.mark.parametrize(("nodes", "rows"), [(("vc2", "vc1"), 1), (("vc2", "vc3"), 0)])
def test_of_a_leg_on_named_nodes_only_their_rows_travel(
    tmp_path: Path, nodes: tuple[str, ...], rows: int
) -> None:
    judged_by(tmp_path, site_with(tmp_path), replace(LEG, nodes=nodes))
    assert len([*read_baseline(tmp_path / STAGE_FILE, "rail0").rows()]) == rows


def test_without_one_nothing_changes(tmp_path: Path) -> None:
    site = site_with(tmp_path, named=False)
    assert judged_by(tmp_path, site) == (LEG,)
    assert not (tmp_path / STAGE_FILE).exists()


def test_a_baseline_of_another_site_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="another site"):
        judged_by(tmp_path, site_with(tmp_path, of="x"))


def test_a_damaged_one_is_no_pass_by_physics_alone(tmp_path: Path) -> None:
    """The check cannot be planned: MISSING is loud, a baseline that is passed over is not."""
    site = site_with(tmp_path)
    path_of(site.folder, "spring").write_text("{")
    with pytest.raises(ParseError):
        judged_by(tmp_path, site)
