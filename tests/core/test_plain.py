"""Dataclasses as plain data."""

from __future__ import annotations

import datetime
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from fabricproof.core.measure import Verdict
from fabricproof.core.plain import plain, typed


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


@dataclass(frozen=True, kw_only=True)
class Kept:
    """What a file may hold, one of each kind."""

    name: str
    number: float
    count: int = 0
    is_there: bool = False
    verdict: Verdict | None = None
    value: str | int | float = ""
    places: tuple[Place, ...] = ()
    ends: tuple[int, int] | None = None
    inner: Kept | None = None
    facts: Mapping[str, Mapping[str, str | int]] = field(default_factory=dict)
    settings: dict[str, Any] = field(default_factory=dict)


KEPT = Kept(
    name="n1",
    number=2,
    count=3,
    is_there=True,
    verdict=Verdict.FAIL,
    value=1.5,
    places=(Place(node="n1"), Place(node="n2", rail="rail0")),
    ends=(1, 2),
    inner=Kept(name="n2", number=float("inf")),
    facts={"node": {"cpus": 4}},
    settings={"legs": ["a", 1, None]},
)


def kept(**changes: Any) -> dict[str, Any]:
    data: dict[str, Any] = json.loads(json.dumps(asdict(KEPT)))
    return {**data, **changes}


def test_what_was_written_is_read_back_as_it_was() -> None:
    assert typed(Kept, kept()) == KEPT
    assert typed(Kept, json.loads(json.dumps(plain(replace(KEPT, inner=None))))).inner is None


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"name": 1}, "name: expected a text, got 1"),
        ({"name": None}, "name: expected a text, got None"),
        ({"number": "2"}, "number: expected a number, got '2'"),
        ({"number": True}, "number: expected a number, got True"),
        ({"count": 1.0}, "count: expected a whole number, got 1.0"),
        ({"count": False}, "count: expected a whole number, got False"),
        ({"is_there": 1}, "is_there: expected true or false, got 1"),
        ({"verdict": "GOOD"}, "verdict: expected one of PASS, FAIL, INVALID, UNJUDGED, MISSING"),
        ({"verdict": []}, "verdict: expected one of PASS"),
        ({"value": None}, "value: expected a number, got None"),
        ({"places": "n1"}, "places: expected a list, got 'n1'"),
        ({"places": {}}, "places: expected a list, got {}"),
        ({"places": [[]]}, r"places: 0: expected a table, got \[\]"),
        ({"places": [{"rail": "n1"}]}, "places: 0: expected node, got no such key"),
        ({"places": [{"node": 7, "rail": None}]}, "places: 0: node: expected a text, got 7"),
        ({"ends": [1, 2, 3]}, r"ends: expected a list, got \[1, 2, 3\]"),
        ({"inner": 3}, "inner: expected a table, got 3"),
        ({"facts": {"node": []}}, r"facts: node: expected a table, got \[\]"),
        (
            {"facts": {"node": {"cpus": []}}},
            r"facts: node: cpus: expected a whole number, got \[\]",
        ),
        ({"more": 1}, "expected no key but name, number, .*, got 'more'"),
    ],
)
def test_what_is_something_else_is_refused_with_its_place(
    changes: dict[str, Any], said: str
) -> None:
    with pytest.raises(ValueError, match=f"^{said}"):
        typed(Kept, kept(**changes))


@pytest.mark.parametrize("data", [None, [], "name", 1])
def test_what_is_no_table_is_no_dataclass(data: object) -> None:
    with pytest.raises(ValueError, match="expected a table"):
        typed(Kept, data)


def test_a_field_may_be_missing_where_it_has_a_default_and_only_there() -> None:
    """Later versions add fields; what a file of before lacks has a default or is damage."""
    data = kept()
    del data["count"]
    assert typed(Kept, data) == replace(KEPT, count=0)
    del data["name"]
    with pytest.raises(ValueError, match=r"^expected name, got no such key"):
        typed(Kept, data)
