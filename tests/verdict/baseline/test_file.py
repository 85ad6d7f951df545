"""The file of a baseline: read back as it was, kind to a reviewer, and never half written."""

from __future__ import annotations

import json
import math
import os
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from made_baselines import FACTS, LATENCY, WHERE, make_baseline, make_row, with_outlier

from damaged import damages
from fabricproof.cli.history.baseline_display import baseline_record, show_lines
from fabricproof.core.errors import ConfigError, InputMissingError, OutputError, ParseError
from fabricproof.verdict.baseline.file import (
    as_text,
    from_text,
    names_in,
    path_of,
    read_baseline,
    write_baseline,
)
from fabricproof.verdict.baseline.model import BaselineLeg, BaselineNode, LegPlace

POSITIVE = st.floats(1e-3, 1e6, allow_nan=False).map(lambda each: float(f"{each:.6g}"))


def test_what_is_written_is_read_again(tmp_path: Path) -> None:
    """Nothing is lost on the way to the file and back, outliers and nodes included."""
    other = {**FACTS, "interface ib0": {**FACTS["interface ib0"], "firmware": "28.41"}}
    baseline = make_baseline(
        with_outlier(make_row()),
        nodes={
            "n1": BaselineNode(digests=("aa11", "aa12"), facts=FACTS),
            "n2": BaselineNode(digests=("bb22",), facts=other),
        },
    )
    path = path_of(tmp_path, "spring")
    write_baseline(path, baseline)
    assert read_baseline(path) == baseline
    assert names_in(tmp_path) == ["spring"]


@given(values=st.lists(POSITIVE, min_size=5, max_size=5), median=POSITIVE)
def test_every_number_survives(values: list[float], median: float) -> None:
    """A sample is kept to its last digit, whatever it is."""
    samples = {f"run{number}": value for number, value in enumerate(values)}
    row = make_row(samples=samples, median=median, low=median, high=median)
    (group,) = from_text(as_text(make_baseline(row))).groups
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


def test_nodes_that_are_alike_stand_once() -> None:
    """A hundred nodes of one kind are a hundred lines, not a hundred inventories."""
    nodes = {f"n{number}": BaselineNode(digests=("aa",), facts=FACTS) for number in range(100)}
    text = as_text(make_baseline(nodes=nodes))
    assert text.count('"kernel"') == 1
    assert '"firmware": "28.39"' in text


def test_an_existing_name_is_refused_and_kept(tmp_path: Path) -> None:
    """Nobody's baseline is overwritten by accident."""
    path = path_of(tmp_path, "spring")
    write_baseline(path, make_baseline())
    before = path.read_text()
    with pytest.raises(ConfigError, match="--replace"):
        write_baseline(path, make_baseline(command="another"))
    assert path.read_text() == before
    write_baseline(path, make_baseline(command="another"), replace=True)
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
        write_baseline(path, make_baseline(command="another"), replace=True)
    assert path.read_text() == before
    assert [each.name for each in path.parent.iterdir()] == ["spring.json"]


@pytest.mark.parametrize("name", ["", "a/b", "../x", ".hidden", "a b"])
def test_a_name_that_is_no_file_name_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(ConfigError, match="not a name"):
        path_of(tmp_path, name)


def test_an_absent_one_names_those_there_are(tmp_path: Path) -> None:
    write_baseline(path_of(tmp_path, "spring"), make_baseline())
    with pytest.raises(InputMissingError, match=r"one of: spring, got 'autumn'"):
        read_baseline(path_of(tmp_path, "autumn"))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('"format": 1', '"format": 2'),
        ('"low": 98.7', '"low": 101.0'),
        ('"low": 98.7', '"low": NaN'),
        ('"median": 100.3', '"median": 0'),
        ('"better": 1', '"better": 0'),
        ('"settings"', '"sittings"'),
        ('"unit": "', '"unit": ["x"], "was": "'),
        ('"leg": "', '"leg": 7, "was": "'),
        ("[100.1, ", "[Infinity, "),
        ("[100.1, ", "[true, "),
        ("[100.1, ", "["),
        ('"kind": "like n1"', '"kind": "like n9"'),
    ],
)
def test_damage_is_refused(tmp_path: Path, old: str, new: str) -> None:
    """A bound of NaN is crossed by nothing, a lost sample shifts all others: neither is read."""
    path = path_of(tmp_path, "spring")
    write_baseline(path, make_baseline())
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))
    with pytest.raises(ParseError, match="damaged baseline"):
        read_baseline(path)


WHOLE = json.loads(as_text(make_baseline(with_outlier(make_row()))))


@given(record=damages(WHOLE))
def test_whatever_is_strange_in_it_is_refused_or_can_be_shown(
    record: Any, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """A unit that is a list, a sample that is infinite: `baseline show` and `diff` fell over it."""
    path = tmp_path_factory.mktemp("strange") / "b.json"
    path.write_text(json.dumps(record))
    try:
        baseline = read_baseline(path)
    except ParseError:
        return
    assert all(
        math.isfinite(value)
        for group in baseline.groups
        for row in group.rows
        for value in (row.low, row.median, row.high, row.spread, *row.samples.values())
    )
    head = {"active": False, "holds": True, "why_not": []}
    assert list(show_lines(baseline, head, whole=True))
    json.dumps(baseline_record(baseline), allow_nan=False)
    assert hash(
        tuple(
            (each.place, row.unit, row.message_size)
            for each in baseline.groups
            for row in each.rows
        )
    )


def test_a_cut_file_says_where(tmp_path: Path) -> None:
    path = path_of(tmp_path, "spring")
    write_baseline(path, make_baseline())
    path.write_text(path.read_text()[:900])
    with pytest.raises(ParseError, match=r"spring\.json:\d+: damaged"):
        read_baseline(path)


def test_it_is_plain_json() -> None:
    assert json.loads(as_text(make_baseline()))["name"] == "spring"


def test_a_bound_that_sees_no_factor_of_two_is_called_blind() -> None:
    """A latency of 13.8 us with a bound of 61 us passes whatever happens."""
    wide = replace(LATENCY, median=13.8, low=3.1, high=61.3)
    slack = make_row(low=49.0)
    assert [each.blind for each in (wide, slack, LATENCY, make_row())] == [True, True, False, False]
    assert not replace(LATENCY, median=2.0, high=4.0).blind
    head = {"active": False, "holds": True, "why_not": []}
    told = list(show_lines(make_baseline(wide, make_row()), head, whole=True))
    assert any("344.2%, blind" in each for each in told)
    assert any(each.startswith("1 of 2 quantities are blind") for each in told)
    assert not any("blind" in each for each in show_lines(make_baseline(), head, whole=True))
    assert [each["blind"] for each in baseline_record(make_baseline(wide))["rows"]] == [True]


@pytest.mark.parametrize(
    ("nodes", "text"),
    [
        ("vc1", "vc1"),
        ("vc1,vc3", "vc1 - vc3"),
        ("vc1,vc2,vc4,vc7", "vc[1-2,4,7]"),
        ("vc1,vc3,vc4,vc7", "vc[1,3-4,7]"),
    ],
)
def test_other_nodes_have_another_name(nodes: str, text: str) -> None:
    words = dict.fromkeys((each.name for each in fields(LegPlace)), "")
    assert LegPlace(**{**words, "nodes": nodes}).pair == text
