"""The plan beside the job script: what was written is read back, damage is named."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fabricproof.core.errors import ParseError
from fabricproof.job.leg import PLAN_FILE, PLAN_VERSION, Traffic, read_plan, write_plan
from fabricproof.physics import find_slot
from fabricproof.stacks.container import Container
from fabricproof.verdict.value import at_least, at_most
from leg_folders import GIGABIT, make_leg

LEGS = (
    make_leg(),
    make_leg(
        name="rail0+rail1",
        rails=("rail0", "rail1"),
        traffic=Traffic(
            per_repetition=(1, 1), messages=(0, 0), at_least=((1, 2, 5), (3, 4, 6)), repetitions=3
        ),
        spread=True,
        references={
            "bandwidth": at_least(110.0, origin="site (test)"),
            "latency_8B": at_most(60.0, origin="site (test)"),
        },
        fabric=replace(GIGABIT, num_rails=2, slot=find_slot("Gen3 x8"), rails_share_slot=True),
    ),
    make_leg(name="memory", fabric=None, same_node=True, environment={}),
    make_leg(
        name="boxed",
        ask=("has", "rail0"),
        nodes=("n1", "n2"),
        container=Container(image="mpi.sif", inner=("apptainer", "exec", "mpi.sif")),
    ),
)


def test_a_plan_is_read_back_as_it_was_written(tmp_path: Path) -> None:
    write_plan(tmp_path, LEGS)
    assert read_plan(tmp_path).legs == LEGS


def test_a_plan_of_another_version_is_named(tmp_path: Path) -> None:
    write_plan(tmp_path, LEGS)
    path = tmp_path / PLAN_FILE
    path.write_text(path.read_text().replace(f'"version": {PLAN_VERSION}', '"version": 1'))
    with pytest.raises(ParseError, match=r"plan of another version: .*got 1"):
        read_plan(tmp_path)


@given(data=st.data())
def test_a_cut_plan_is_never_a_plan(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    folder = tmp_path_factory.mktemp("plan")
    write_plan(folder, LEGS)
    text = (folder / PLAN_FILE).read_text()
    kept = data.draw(st.integers(min_value=0, max_value=len(text) - 1))
    (folder / PLAN_FILE).write_text(text[:kept])
    with pytest.raises(ParseError):
        read_plan(folder)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"rails": "rail0"}, "legs: 0: rails: expected a list, got 'rail0'"),
        ({"tolerance": "0.1"}, "legs: 0: tolerance: expected a number, got '0.1'"),
        ({"spread": 0}, "legs: 0: spread: expected true or false, got 0"),
        ({"traffic": {"exact": [1]}}, r"legs: 0: traffic: exact: expected a list, got \[1\]"),
        ({"more": 0}, "legs: 0: expected no key but name, .*, got 'more'"),
    ],
)
def test_a_value_of_another_kind_is_named_with_its_place(
    tmp_path: Path, changes: dict[str, object], said: str
) -> None:
    write_plan(tmp_path, LEGS)
    path = tmp_path / PLAN_FILE
    record = json.loads(path.read_text())
    record["legs"][0].update(changes)
    path.write_text(json.dumps(record))
    with pytest.raises(ParseError, match=f"damaged plan: {said}"):
        read_plan(tmp_path)
