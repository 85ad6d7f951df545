"""The file of a baseline: read back as it was, kind to a reviewer, and never half written."""

from __future__ import annotations

import json
import math
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from damaged import damages
from fabricproof.cli.history.baseline import baseline_record, is_blind, show_lines
from fabricproof.core.errors import ConfigError, InputMissingError, OutputError, ParseError
from fabricproof.core.provenance import LegPlace
from fabricproof.history.baseline.file import (
    as_text,
    find_baseline,
    names_in,
    path_of,
    write_baseline,
)
from fabricproof.verdict.references import STAGE_FILE, BaselineLeg, for_legs, read_baseline
from made_baselines import FACTS, LATENCY, WHERE, make_baseline, make_row

POSITIVE = st.floats(1e-3, 1e6, allow_nan=False).map(lambda each: float(f"{each:.6g}"))


def test_what_is_written_is_read_again(tmp_path: Path) -> None:
    """Nothing is lost on the way to the file and back, nodes included."""
    row = make_row(num_runs=4)
    nodes = {"n1": {"interface ib1": {"firmware": "28.39"}}, "n2": {"interface ib1": {}}}
    baseline = make_baseline(row, nodes=nodes)
    path = path_of(tmp_path, "spring")
    write_baseline(path, baseline)
    assert read_baseline(path) == baseline
    assert names_in(tmp_path) == ["spring"]


@given(numbers=st.lists(POSITIVE, min_size=3, max_size=3).map(sorted))
def test_every_number_survives(
    numbers: list[float], tmp_path_factory: pytest.TempPathFactory
) -> None:
    """A number is kept to its last digit, whatever it is."""
    row = make_row(low=numbers[0], median=numbers[1], high=numbers[2])
    path = tmp_path_factory.mktemp("numbers") / "b.json"
    write_baseline(path, make_baseline(row))
    (group,) = read_baseline(path).groups
    assert group.rows == (row,)


@given(order=st.permutations(range(4)))
def test_the_text_does_not_depend_on_the_order_of_making(order: list[int]) -> None:
    """The same baseline is the same text, so that git shows what changed and nothing else."""
    places = [replace(WHERE, leg=f"rail{number}") for number in range(4)]
    groups = [BaselineLeg(place=place, rows=(make_row(),)) for place in places]
    text = as_text(make_baseline(groups=tuple(groups[number] for number in order)))
    assert text == as_text(make_baseline(groups=tuple(groups)))


def test_one_number_is_one_line() -> None:
    """A reviewer sees one changed line where one median changed."""
    first = as_text(make_baseline()).splitlines()
    second = as_text(make_baseline(make_row(median=99.0), make_baseline().groups[0].rows[1]))
    unlike = [pair for pair in zip(first, second.splitlines(), strict=True) if pair[0] != pair[1]]
    assert len(unlike) == 1


def test_an_existing_name_is_refused_and_kept(tmp_path: Path) -> None:
    """Nobody's baseline is overwritten by accident."""
    path = path_of(tmp_path, "spring")
    write_baseline(path, make_baseline())
    before = path.read_text()
    with pytest.raises(ConfigError, match="--replace"):
        write_baseline(path, make_baseline(command="another"))
    assert path.read_text() == before
    write_baseline(path, make_baseline(command="another"), over=True)
    assert read_baseline(path).command == "another"


def test_a_full_disk_loses_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The old file stays, no half of a new one is left, and the message says so."""
    path = path_of(tmp_path, "spring")
    write_baseline(path, make_baseline())
    before = path.read_text()

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OutputError, match=r"No space left.*nothing was changed"):
        write_baseline(path, make_baseline(command="another"), over=True)
    assert path.read_text() == before
    assert [each.name for each in path.parent.iterdir()] == ["spring.json"]


@pytest.mark.parametrize("name", ["", "a/b", "../x", ".hidden", "a b"])
def test_a_name_that_is_no_file_name_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(ConfigError, match="not a name"):
        path_of(tmp_path, name)


def test_an_absent_one_names_those_there_are(tmp_path: Path) -> None:
    write_baseline(path_of(tmp_path, "spring"), make_baseline())
    with pytest.raises(InputMissingError, match=r"one of: spring, got 'autumn'"):
        find_baseline(tmp_path, "autumn")


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('"format": 3', '"format": 2'),
        ('"low": 98.7', '"low": 101.0'),
        ('"low": 98.7', '"low": NaN'),
        ('"low": 98.7', '"low": 0'),
        ('"low": 98.7', '"low": true'),
        ('"low": 98.7', '"low": "98"'),
        ('"high": 101.9', '"high": Infinity'),
        ('"median": 100.3', '"median": 0'),
        ('"better": 1', '"better": 0'),
        ('"settings"', '"sittings"'),
        ('"unit": "', '"unit": ["x"], "was": "'),
        ('"leg": "', '"leg": 7, "was": "'),
    ],
)
def test_damage_is_refused(tmp_path: Path, old: str, new: str) -> None:
    """A bound of NaN is crossed by nothing: it is not read."""
    path = path_of(tmp_path, "spring")
    write_baseline(path, make_baseline())
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))
    with pytest.raises(ParseError):
        read_baseline(path)


@pytest.mark.parametrize("nothing", [{"groups": []}, {"runs": {}}])
def test_one_that_was_learnt_from_nothing_is_refused(tmp_path: Path, nothing: Any) -> None:
    """It would judge nothing, in silence."""
    path = path_of(tmp_path, "spring")
    write_baseline(path, make_baseline())
    path.write_text(json.dumps({**json.loads(path.read_text()), **nothing}))
    with pytest.raises(ParseError, match="nothing"):
        read_baseline(path)


WHOLE = json.loads(as_text(make_baseline(make_row())))


@given(record=damages(WHOLE))
def test_whatever_is_strange_in_it_is_refused_or_can_be_shown(
    record: Any, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """A unit that is a list, a bound that is infinite: `baseline show` fell over it."""
    path = tmp_path_factory.mktemp("strange") / "b.json"
    path.write_text(json.dumps(record))
    try:
        baseline = read_baseline(path)
    except ParseError:
        return
    for _, row in baseline.rows():
        assert all(map(math.isfinite, (row.low, row.median, row.high, row.spread)))
    head = {"active": False, "holds": True, "why_not": []}
    assert list(show_lines(baseline, head, whole=True))
    json.dumps(baseline_record(baseline), allow_nan=False)
    assert hash(tuple((place, row.unit, row.message_size) for place, row in baseline.rows()))


def test_a_cut_file_says_where(tmp_path: Path) -> None:
    path = path_of(tmp_path, "spring")
    write_baseline(path, make_baseline())
    path.write_text(path.read_text()[:900])
    with pytest.raises(ParseError, match=r"spring\.json:\d+:"):
        read_baseline(path)


def test_a_bound_that_sees_no_factor_of_two_is_called_blind() -> None:
    """A latency of 13.8 us with a bound of 61 us passes whatever happens."""
    wide = replace(LATENCY, median=13.8, low=3.1, high=61.3)
    slack = make_row(low=49.0)
    assert [is_blind(each) for each in (wide, slack, LATENCY, make_row())] == [
        True,
        True,
        False,
        False,
    ]
    assert not is_blind(replace(LATENCY, median=2.0, high=4.0))
    head = {"active": False, "holds": True, "why_not": []}
    told = list(show_lines(make_baseline(wide, make_row()), head, whole=True))
    assert any("344.2%, blind" in each for each in told)
    assert any(each.startswith("1 of 2 quantities are blind") for each in told)
    assert not any("blind" in each for each in show_lines(make_baseline(), head, whole=True))
    assert [each["blind"] for each in baseline_record(make_baseline(wide))["rows"]] == [True]


# --- beside a plan


def lay(folder: Path, **places: LegPlace) -> Path:
    path = folder / STAGE_FILE
    write_baseline(path, for_legs(make_baseline(), places), over=True)
    return path


def test_the_judge_reads_what_lies_beside_the_plan(tmp_path: Path) -> None:
    """Of the leg that is asked for, with the site that commands name."""
    path = lay(tmp_path, ib0=replace(WHERE, nodes=""), ib1=replace(WHERE, leg="ib1"))
    found = read_baseline(path, "ib0")
    assert (found.words, found.site, found.facts_of("n2")) == (make_baseline().words, "here", FACTS)
    assert found.legs == {"ib0": replace(WHERE, nodes="")}
    assert list(found.rows()) == list(make_baseline().rows())
    assert read_baseline(path, "ib1").groups == ()


def test_only_rows_of_the_leg_travel() -> None:
    """A job carries what can judge it, other builds included, and no more."""
    baseline = make_baseline()
    more = tuple(
        replace(group, place=replace(group.place, leg=f"ib{number}"))
        for group in baseline.groups
        for number in range(50)
    )
    kept = for_legs(replace(baseline, groups=more), {"ib0": replace(WHERE, build="another")})
    assert [(each.place.leg, each.place.build) for each in kept.groups] == [("ib0", WHERE.build)]


def test_a_thousand_pairs_stay_light(tmp_path: Path) -> None:
    """A leg of any nodes carries all pairs: two hundred bytes a quantity."""
    places = [replace(WHERE, nodes=f"n{number},n{number + 1}") for number in range(200)]
    rows = tuple(make_row(quantity=f"bandwidth_{number}B") for number in range(10))
    groups = tuple(BaselineLeg(place=place, rows=rows) for place in places)
    legs = {"ib0": replace(WHERE, nodes="")}
    write_baseline(tmp_path / STAGE_FILE, for_legs(make_baseline(groups=groups), legs))
    assert (tmp_path / STAGE_FILE).stat().st_size < 2000 * 230


@pytest.mark.parametrize(
    "text", ["", "{}", "[]", '"x"', '{"format": 1}', '{"format": 3, "legs": {}}']
)
def test_damage_beside_a_plan_is_told(tmp_path: Path, text: str) -> None:
    """One message: the file, what was expected and got, and what to do."""
    (tmp_path / STAGE_FILE).write_text(text)
    with pytest.raises(ParseError, match=r"baseline\.json.*format 3.*got .*next: "):
        read_baseline(tmp_path / STAGE_FILE, "ib0")


def test_a_leg_that_nobody_planned_is_told(tmp_path: Path) -> None:
    with pytest.raises(ParseError, match="ib9"):
        read_baseline(lay(tmp_path, ib0=WHERE), "ib9")
