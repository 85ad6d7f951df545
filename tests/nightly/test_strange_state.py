"""The states of the nights with one strange thing in them: refused with its line, or still used."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from nights import key, night, state

from damaged import GONE, damages
from fabricproof.core.errors import ParseError
from fabricproof.nightly.state import append_began, append_night, read_history


@pytest.fixture(scope="module")
def lines(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    """Return what two nights left: the first was lost, the second saw a red leg."""
    path = tmp_path_factory.mktemp("whole") / "state.jsonl"
    append_began(path, "n1", host="head", pid=7)
    append_night(
        path, night(2, [(key(), state(blamed=("vc1",)))], run_id="20261101T020000Z-00000a")
    )
    return [json.loads(line) for line in path.read_text().splitlines()]


@given(data=st.data())
def test_whatever_is_strange_in_a_night_is_refused_or_can_be_used(
    data: st.DataObject, lines: list[dict[str, Any]], tmp_path_factory: pytest.TempPathFactory
) -> None:
    """A run's identity that is no text was a traceback of `nightly --keep-days`."""
    at = data.draw(st.integers(0, len(lines) - 1))
    strange = data.draw(damages(lines[at]))
    path = tmp_path_factory.mktemp("strange") / "state.jsonl"
    written = [strange if number == at else line for number, line in enumerate(lines)]
    path.write_text("".join(json.dumps(each) + "\n" for each in written))
    try:
        history = read_history(path)
    except ParseError:
        return
    for each in history.nights:
        json.dumps([each.run_id, each.reason, *each.arguments], allow_nan=False)
        assert each.looks_back("20261102T020000Z-00000b") in {True, False}
    for found in history.legs().values():
        assert "".join((found.verdict, found.net_path, found.sentence, *found.blamed)) is not None
    assert history.evidence(map(str, history.legs())) is not None
    assert history.flutters(10, "r") is not None


@pytest.mark.parametrize(
    ("name", "value"),
    [("flutter", "false"), ("flutter", 0), ("blamed", "vc1"), ("verdict", None), ("road", GONE)],
)
def test_a_leg_of_another_kind_is_refused_with_its_line(
    name: str, value: object, lines: list[dict[str, Any]], tmp_path: Path
) -> None:
    """`"flutter": "false"` was a flutter, and `"blamed": "vc1"` blamed v, c and 1."""
    night_line = json.loads(json.dumps(lines[1]))
    (leg,) = night_line["legs"].values()
    if value is GONE:
        del leg[name]
    else:
        leg[name] = value
    path = tmp_path / "state.jsonl"
    path.write_text(json.dumps(lines[0]) + "\n" + json.dumps(night_line) + "\n")
    with pytest.raises(ParseError, match=r"state\.jsonl:2: damaged state of the nights"):
        read_history(path)
