"""Dataclasses as plain data."""

from __future__ import annotations

import datetime
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from fabricproof.core.measure import Verdict
from fabricproof.core.plain import plain


@dataclass(frozen=True, kw_only=True, slots=True)
class Place:
    node: str
    rail: str | None = None


@dataclass(frozen=True, kw_only=True)
class Seen(Place):
    value: float
    verdict: Verdict = Verdict.PASS
    places: tuple[Place, ...] = ()
    counts: Mapping[Verdict, float] = field(default_factory=dict)
    file: Path = Path("a", "b")
    when: datetime.datetime = datetime.datetime(2026, 11, 21, 21, 34, 22, tzinfo=datetime.UTC)

    @property
    def words(self) -> tuple[str, ...]:
        return (self.node, str(self.value))


def test_each_field_is_a_key_in_the_order_of_the_class() -> None:
    made = plain(Seen(node="n1", value=1.5, places=(Place(node="n2", rail="rail0"),)))
    assert made == {
        "node": "n1",
        "rail": None,
        "value": 1.5,
        "verdict": "PASS",
        "places": [{"node": "n2", "rail": "rail0"}],
        "counts": {},
        "file": "a/b",
        "when": "2026-11-21T21:34:22Z",
    }
    assert list(made) == ["node", "rail", "value", "verdict", "places", "counts", "file", "when"]


@pytest.mark.parametrize("number", [float("nan"), float("inf"), -float("inf")])
def test_a_number_that_is_none_is_null_however_deep_it_lies(number: float) -> None:
    seen = Seen(node="n1", value=number, counts={Verdict.FAIL: number})
    made = plain(seen, all=[(seen, number)])
    text = json.dumps(made, allow_nan=False)
    assert made["value"] is None
    assert made["counts"] == {"FAIL": None}
    assert json.loads(text)["all"][0][1] is None
    assert json.loads(text)["all"][0][0]["value"] is None


def test_what_is_asked_for_comes_and_what_is_not_wanted_goes() -> None:
    seen = Seen(node="n1", value=1.5, places=(Place(node="n2"),))
    made = plain(
        seen, "words", without={"counts", "file", "when", "rail"}, places=len(seen.places), more=[1]
    )
    assert list(made.items()) == [
        ("node", "n1"),
        ("value", 1.5),
        ("verdict", "PASS"),
        ("places", 1),
        ("words", ["n1", "1.5"]),
        ("more", [1]),
    ]


def test_a_mapping_is_made_plain_likewise() -> None:
    assert plain({"a": float("nan"), "b": Place(node="n1")}, b=(1,)) == {"a": None, "b": [1]}


def test_a_property_that_is_not_there_is_an_error() -> None:
    with pytest.raises(AttributeError, match="wrods"):
        plain(Seen(node="n1", value=1.5), "wrods")
