"""The log of the nights: what follows from its events, after any of which a night may be killed."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from nights import key, night, state

from damaged import GONE, damages
from fabricproof.core.errors import ParseError
from fabricproof.core.records import TORN
from fabricproof.nightly.changes import ChangeKind, body, changes, subject
from fabricproof.nightly.log import (
    NIGHTS_TRIED,
    Began,
    Event,
    LegState,
    Night,
    Notice,
    Told,
    append,
    fold,
    read_log,
)

RED_VC2 = (key(), state("red", ("vc2",), sentence="red again"))
GREEN = (key(), state("green"))
NOTICE = Notice(name="n1", subject="rail1 turned RED", text="vc2", channels=("mail", "webhook"))

colours = st.sampled_from(["red", "green", "unjudged"])
nights = st.builds(
    lambda number, colour, told: night(
        number, [(key(), state(colour))], notice=NOTICE if told else None
    ),
    st.integers(0, 20),
    colours,
    st.booleans(),
)
events = st.lists(
    st.one_of(
        st.builds(
            lambda number: Began(night=f"n{number}", time="2026-11-21T02:00:00Z", host="h", pid=7),
            st.integers(0, 20),
        ),
        nights,
        st.builds(
            Told,
            notice=st.just("n1"),
            channel=st.sampled_from(["mail", "webhook"]),
            sent=st.booleans(),
        ),
    ),
    max_size=8,
)


@given(some=events, data=st.data())
def test_whatever_is_killed_goes_on_from_its_prefix_to_the_same_end(
    some: list[Event], data: st.DataObject
) -> None:
    """Cut at any byte; the rest is appended by the next process: as if nobody had been killed."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "events.jsonl"
        append(path, *some)
        whole = path.read_bytes() if path.exists() else b""
        cut = data.draw(st.integers(0, len(whole)))
        path.write_bytes(whole[:cut])
        kept = whole[:cut].count(b"\n")
        if not whole[:cut].endswith(b"\n") and whole[cut : cut + 1] == b"\n":
            kept += 1  # a whole line but for its end
        assert read_log(path) == fold(some[:kept])
        append(path, *some[kept:])
        assert read_log(path) == fold(some) == fold(some[kept:], fold(some[:kept]))
        assert cut in {0, len(whole)} or path.read_bytes().count(TORN) <= 1


@given(some=events)
def test_a_notice_waits_until_it_was_sent_and_no_longer(some: list[Event]) -> None:
    known = fold(some)
    for channel in NOTICE.channels:
        mine = [
            each
            for each in some
            if (isinstance(each, Night) and each.notice)
            or (isinstance(each, Told) and each.channel == channel)
        ]
        first = next((at for at, each in enumerate(mine) if isinstance(each, Night)), len(mine))
        is_waiting = first < len(mine) and not (isinstance(mine[-1], Told) and mine[-1].sent)
        lost = [at for at, each in enumerate(mine) if isinstance(each, Told) and each.sent]
        is_waiting &= not lost or any(isinstance(each, Night) for each in mine[lost[-1] :])
        assert ((channel, "n1") in known.waiting) == is_waiting


def test_an_old_notice_is_given_up_after_a_week() -> None:
    told = Told(notice="n1", channel="mail", sent=False)
    tries = [NOTICE, *[told] * (NIGHTS_TRIED - 1)]
    assert ("mail", "n1") in fold(tries).waiting
    assert ("mail", "n1") not in fold([*tries, told]).waiting


LINES = [
    {"kind": "began", "night": "n1", "time": "2026-11-21T02:00:00Z", "host": "head", "pid": 7},
    {
        "kind": "night", "night": "n2", "time": "2026-11-21T03:00:00Z", "ended": "whole",
        "run_id": "20261101T020000Z-00000a", "reason": "", "arguments": ["-r"],
        "legs": {"compute/eth0/openmpi5/OsuBandwidth/rail1": {
            "colour": "red", "verdict": "FAIL", "blamed": ["vc1"], "net_path": "rail1",
            "sentence": "", "flutter": False,
        }},
        "notice": {"name": "n2", "subject": "s", "text": "t", "channels": ["mail"]},
    },
    {"kind": "told", "notice": "n2", "channel": "mail", "sent": False, "reason": "full"},
]  # fmt: skip


def written(path: Path, lines: Sequence[Any]) -> Path:
    path.write_text("".join(json.dumps({"format": 1, **each}) + "\n" for each in lines))
    return path


@given(data=st.data())
def test_whatever_is_strange_in_an_event_is_refused_or_can_be_used(data: st.DataObject) -> None:
    at = data.draw(st.integers(0, len(LINES) - 1))
    lines = [*LINES[:at], data.draw(damages(LINES[at])), *LINES[at + 1 :]]
    with tempfile.TemporaryDirectory() as folder:
        try:
            known = read_log(written(Path(folder) / "events.jsonl", lines))
        except ParseError:
            return
    for each in known.nights.values():
        json.dumps([each.run_id, each.reason, *each.arguments], allow_nan=False)
        assert each.looks_back("20261102T020000Z-00000b") in {True, False}
    assert known.evidence() is not None
    assert known.flutters(10, "r") is not None
    for notice, _ in known.waiting.values():
        assert notice.subject + notice.text is not None


@pytest.mark.parametrize(
    ("name", "value"),
    [("flutter", "false"), ("flutter", 0), ("blamed", "vc1"), ("verdict", None), ("colour", GONE)],
)
def test_a_leg_of_another_kind_is_refused_with_its_line(
    name: str, value: object, tmp_path: Path
) -> None:
    """`"flutter": "false"` was a flutter, and `"blamed": "vc1"` blamed v, c and 1."""
    line = json.loads(json.dumps(LINES[1]))
    (leg,) = line["legs"].values()
    leg |= {name: value} if value is not GONE else {}
    if value is GONE:
        del leg[name]
    with pytest.raises(ParseError, match=r"events\.jsonl:2: damaged log of the nights"):
        read_log(written(tmp_path / "events.jsonl", [LINES[0], line]))


def told(before: Sequence[Night], tonight: Night) -> list[ChangeKind]:
    return [each.kind for each in changes(fold(before), tonight, max_gap_hours=30)]


@pytest.mark.parametrize(
    ("before", "now", "kinds"),
    [
        ([], RED_VC2, [ChangeKind.RED]),
        ([GREEN], RED_VC2, [ChangeKind.RED]),
        ([RED_VC2], RED_VC2, []),
        ([RED_VC2], GREEN, [ChangeKind.GREEN]),
        ([GREEN], GREEN, []),
        ([], GREEN, []),
        ([RED_VC2], (key(), state("red", ("vc1",))), [ChangeKind.BLAME]),
        ([RED_VC2], (key(), state("red")), []),
        ([GREEN], (key(), state("unjudged")), [ChangeKind.UNJUDGED]),
        ([], (key(), state("unjudged")), []),
        ([RED_VC2], (key(), state("gone")), [ChangeKind.GREEN]),
    ],
)
def test_what_is_a_change(
    before: list[tuple[Any, LegState]], now: tuple[Any, LegState], kinds: list[ChangeKind]
) -> None:
    nights = [night(i, [each]) for i, each in enumerate(before)]
    assert told(nights, night(len(before), [now])) == kinds


def test_a_leg_that_was_not_measured_in_between_keeps_its_state() -> None:
    """Red, not selected, red: nothing changed."""
    assert told([night(0, [RED_VC2]), night(1)], night(2, [RED_VC2])) == []


def test_a_gap_is_told() -> None:
    assert told([night(0, [GREEN])], night(3, [GREEN])) == [ChangeKind.NIGHT]


def test_a_notice_names_leg_node_rail_and_next_step() -> None:
    legs = [(key(f"leg{i}"), state("red", ("vc2",), sentence="vc2 is slow")) for i in range(1000)]
    tonight = night(1, legs)
    found = changes(fold([]), tonight, max_gap_hours=30)
    red = fold([tonight]).red()
    line = subject("vcluster", found, len(red))
    assert line == "fabricproof vcluster: 1000 legs turned RED (vc2 rail1); 1000 red now"
    text = body("vcluster", found, red, tonight)
    assert text.count("vc2 is slow") == 2, "what is said of many legs is said once"
    assert "openmpi5 OsuBandwidth leg0, " in text
    assert "next: fabricproof report r1 --site vcluster" in text
    assert len(text) < 4000
