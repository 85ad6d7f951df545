"""What a baseline says of a job's legs, beside its plan."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from made_baselines import WHERE, make_baseline, make_row, with_outlier

from fabricproof.core.errors import ParseError
from fabricproof.verdict.baseline.apply import no_longer_holds
from fabricproof.verdict.baseline.model import BaselineLeg
from fabricproof.verdict.baseline.stage import STAGE_FILE, of_leg, read_stage, write_stage


def test_the_judge_reads_what_was_written(tmp_path: Path) -> None:
    leg = of_leg(make_baseline(with_outlier(make_row())), WHERE)
    write_stage(tmp_path, {"ib0": leg, "ib1": replace(leg, rows=())})
    assert read_stage(tmp_path, "ib0") == leg
    assert read_stage(tmp_path, "ib1").rows == ()


def test_what_to_do_next_names_the_site(tmp_path: Path) -> None:
    """Commands that a finding proposes run anywhere; a plan of before has no site and is read."""
    write_stage(tmp_path, {"ib0": of_leg(make_baseline(), WHERE)})
    leg = read_stage(tmp_path, "ib0")
    said = no_longer_holds(leg, "n2: other")
    assert said.endswith(
        f"compare baseline:{leg.name} last:5 --site {leg.site}, then "
        f"fabricproof baseline freeze NEW last:5 --site {leg.site}"
    )
    record = json.loads((tmp_path / STAGE_FILE).read_text())
    del record["legs"]["ib0"]["site"]
    (tmp_path / STAGE_FILE).write_text(json.dumps(record))
    assert "--site" not in no_longer_holds(read_stage(tmp_path, "ib0"), "n2: other")


def test_only_rows_of_the_leg_travel() -> None:
    """A job carries what can judge it, other builds included, and no more."""
    baseline = make_baseline()
    more = tuple(
        replace(group, place=replace(group.place, leg=f"ib{number}"))
        for group in baseline.groups
        for number in range(50)
    )
    leg = of_leg(replace(baseline, groups=more), replace(WHERE, build="another"))
    assert {place.leg for place, _ in leg.rows} == {"ib0"}
    assert {place.build for place, _ in leg.rows} == {WHERE.build}


def test_a_leg_of_named_nodes_carries_theirs_only() -> None:
    assert len(of_leg(make_baseline(), WHERE, ("n2", "n1")).rows) == 2
    assert of_leg(make_baseline(), WHERE, ("n1", "n3")).rows == ()


def test_a_thousand_pairs_stay_light(tmp_path: Path) -> None:
    """A leg of any nodes carries all pairs: about a hundred bytes a quantity, no samples."""
    places = [replace(WHERE, nodes=f"n{number},n{number + 1}") for number in range(200)]
    rows = tuple(make_row(quantity=f"bandwidth_{number}B") for number in range(10))
    groups = tuple(BaselineLeg(place=place, rows=rows) for place in places)
    write_stage(tmp_path, {"ib0": of_leg(make_baseline(groups=groups), WHERE)})
    assert (tmp_path / STAGE_FILE).stat().st_size < 2000 * 120


@pytest.mark.parametrize("text", ["", "{}", '{"format": 9}', '{"format": 1, "legs": {}}'])
def test_damage_is_told(tmp_path: Path, text: str) -> None:
    (tmp_path / STAGE_FILE).write_text(text)
    with pytest.raises(ParseError, match="no readable baseline"):
        read_stage(tmp_path, "ib0")


def _written(folder: Path) -> Any:
    write_stage(folder, {"ib0": of_leg(make_baseline(), WHERE)})
    return json.loads((folder / STAGE_FILE).read_text())


@pytest.mark.parametrize("bound", [float("nan"), float("inf"), 0, -1.0, True, "98", None, [98.0]])
@pytest.mark.parametrize("at", [3, 4, 5])
def test_a_bound_that_nothing_crosses_is_not_judged_by(
    bound: object, at: int, tmp_path: Path
) -> None:
    record = _written(tmp_path)
    record["legs"]["ib0"]["groups"][0]["rows"][0][at] = bound
    (tmp_path / STAGE_FILE).write_text(json.dumps(record))
    with pytest.raises(ParseError, match="no readable baseline beside the plan"):
        read_stage(tmp_path, "ib0")
