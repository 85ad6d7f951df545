"""What gave no number, or was not there at all, is no SAME; what is called one build is one."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from made import KB, MB, SITE, Made, Where

from fabricproof.history.compare.join import Filters
from fabricproof.history.stats.shifts import Change


def long_on_rail1(place: Where) -> bool:
    """Tell whether a number is the bandwidth of long messages over rail 1."""
    rail, _, metric, size = place
    return rail == "rail1" and metric == "bandwidth" and size > 1024


def place_of(line: Mapping[str, Any]) -> Where:
    """Return what a record of a quantity is of."""
    metric = line["quantity_name"].partition("_")[0]
    return line["leg"], tuple(line["nodes"]), metric, line["quantity_message_size"]


def sides(made: Made, *, verdict: Callable[[Where], str], value: float | None) -> None:
    """Add seven good runs, then seven in which what ``verdict`` marks has another value."""
    for day in range(1, 8):
        made.run(day)
    for day in range(8, 15):
        made.run(day, verdict=verdict)
    for line in made.lines:
        if line["kind"] == "quantity" and line["quantity_verdict"] != "PASS":
            line["quantity_value"] = value


@pytest.mark.parametrize(
    ("word", "value"), [("FAIL", 0.0), ("FAIL", -1.0), ("UNJUDGED", None), ("MISSING", None)]
)
def test_a_rail_without_usable_numbers_is_no_same(
    tmp_path: Path, word: str, value: float | None
) -> None:
    """Zero, negative or nothing, whatever the word: it was tried, and it is lost."""
    made = Made(perflogs=tmp_path, noise=0.003)
    sides(made, verdict=lambda place: word if long_on_rail1(place) else "PASS", value=value)
    found = made.compare("2026-11-01..2026-11-07", "2026-11-08..2026-11-14")
    assert found.overall is Change.UNDECIDED
    assert "gave no number after" in found.reason


def test_the_same_history_without_the_loss_is_same(tmp_path: Path) -> None:
    """The guards above are what makes the difference."""
    made = Made(perflogs=tmp_path, noise=0.003)
    sides(made, verdict=lambda _: "PASS", value=None)
    found = made.compare("2026-11-01..2026-11-07", "2026-11-08..2026-11-14")
    assert found.overall is Change.SAME


def test_a_rail_that_is_not_measured_any_more_is_no_same(tmp_path: Path) -> None:
    """Nobody tried it: it is named, and nothing is said of all rails."""
    made = Made(perflogs=tmp_path, noise=0.003)
    for day in range(1, 15):
        made.run(day, rails=("rail0", "rail1") if day < 8 else ("rail0",))
    found = made.compare("2026-11-01..2026-11-07", "2026-11-08..2026-11-14")
    assert found.overall is Change.UNDECIDED
    assert "rail1" in found.reason


#: what a program that printed nothing leaves out of the record of what was due
UNPRINTED = {
    "attributes": {},
    "tool_version": None,
    "quantity_unit": "",
    "quantity_message_size": None,
}


@pytest.mark.parametrize("left", [{}, UNPRINTED, {**UNPRINTED, "nodes": []}])
def test_two_runs_of_seven_in_vain_are_no_same(tmp_path: Path, left: dict[str, object]) -> None:
    """One mishap is a warning; several are a change that numbers do not show."""
    made = Made(perflogs=tmp_path, noise=0.003)
    for day in range(1, 15):
        bad = day in {9, 12}
        made.run(
            day, verdict=lambda place, b=bad: "MISSING" if b and long_on_rail1(place) else "PASS"
        )
    for line in made.lines:
        if line["kind"] == "quantity" and line["quantity_verdict"] == "MISSING":
            line.update({"quantity_value": None, **left})
    found = made.compare("2026-11-01..2026-11-07", "2026-11-08..2026-11-14")
    assert found.overall is Change.UNDECIDED
    assert "gave no number after" in found.reason


@pytest.mark.parametrize(
    ("bad_days", "change"),
    [((), Change.SAME), ((9,), Change.SAME), ((9, 12), Change.UNDECIDED)],
)
@pytest.mark.parametrize("field", ["tool_version", "stack_identity", "attributes"])
def test_what_printed_nothing_may_have_been_of_the_new_version(
    tmp_path: Path, field: str, bad_days: tuple[int, ...], change: Change
) -> None:
    """The old version was not tried in vain; that the new one failed in several runs is told."""
    new = {
        "tool_version": "9.9",
        "stack_identity": {"digest": "b" * 64},
        "attributes": {"window_size": "7"},
    }
    made = Made(perflogs=tmp_path, noise=0.003)
    for day in range(1, 15):
        made.run(day)
    for line in made.lines:
        day = int(line["run_id"][6:8])
        if line["kind"] != "quantity" or day < 8 or not long_on_rail1(place_of(line)):
            continue
        line[field] = new[field]
        if day in bad_days:
            line.update({"quantity_value": None, "quantity_verdict": "MISSING", **UNPRINTED})
    found = made.compare("2026-11-01..2026-11-07", "2026-11-08..2026-11-14")
    assert found.overall is change
    named = {"stack_identity": "build", "attributes": "settings"}.get(field, field)
    reasons = {each.reason for each in found.unpaired if each.side == 1}
    assert len(reasons) == 1
    assert reasons.pop().startswith(f"{named} ")


def test_a_setting_that_prints_nothing_beside_one_that_does_is_lost(tmp_path: Path) -> None:
    """What fell silent is the one that has no number in the very same runs."""
    made = Made(perflogs=tmp_path, noise=0.003)
    for day in range(1, 15):
        made.run(day)
    more = []
    for line in made.lines:
        if line["kind"] == "quantity" and long_on_rail1(place_of(line)):
            more.append({**line, "attributes": {"window_size": "7"}})
            if int(line["run_id"][6:8]) >= 8:
                more[-1].update(quantity_value=None, quantity_verdict="MISSING", **UNPRINTED)
    made.lines += more
    found = made.compare("2026-11-01..2026-11-07", "2026-11-08..2026-11-14")
    assert found.overall is Change.UNDECIDED
    assert "gave no number after" in found.reason


ONLY = (Filters(size=(MB,)), Filters(node=("n1",)), Filters(pair=("n1,n2",)))


@pytest.mark.parametrize("left", [{}, UNPRINTED, {**UNPRINTED, "nodes": []}])
@pytest.mark.parametrize("only", ONLY)
def test_a_filter_leaves_what_was_lost(
    tmp_path: Path, left: dict[str, object], only: Filters
) -> None:
    """A record of what was not printed has no size, and perhaps no node, and is no less lost."""
    made = Made(perflogs=tmp_path, noise=0.003)
    for day in range(1, 15):
        made.run(day)
    for line in made.lines:
        is_bad = line["kind"] == "quantity" and line["run_id"][6:8] in {"09", "12"}
        if is_bad and line["leg"] == "rail1" and line["quantity_message_size"] == MB:
            line.update({"quantity_value": None, "quantity_verdict": "MISSING", **left})
    found = made.compare("2026-11-01..2026-11-07", "2026-11-08..2026-11-14", filters=only)
    assert found.overall is Change.UNDECIDED
    assert "gave no number after" in found.reason


def test_a_filter_by_size_leaves_other_sizes_out(tmp_path: Path) -> None:
    """What was not printed of 1 MiB says nothing of 8 B."""
    made = Made(perflogs=tmp_path, noise=0.003)
    for day in range(1, 15):
        made.run(day)
    for line in made.lines:
        is_bad = line["kind"] == "quantity" and line["run_id"][6:8] in {"09", "12"}
        if is_bad and line["leg"] == "rail1" and line["quantity_message_size"] == MB:
            line.update({"quantity_value": None, "quantity_verdict": "MISSING", **UNPRINTED})
    only = Filters(size=(8,))
    found = made.compare("2026-11-01..2026-11-07", "2026-11-08..2026-11-14", filters=only)
    assert found.overall is Change.SAME


#: the own choice of a sweep, as a good night leaves it, and as nights that could not judge it do
OWN = {
    "program": "osu_bcast",
    "leg": "rail1.2x1.bcast.algorithms",
    "rails": ["rail1"],
    "attempt": 0,
    "attributes": {},
    "tool_version": None,
    "quantity_unit": "x",
    "quantity_name": "own_choice_64KiB",
    "quantity_message_size": 64 * KB,
    "quantity_upper": 1.25,
    "quantity_named": True,
}
SPOILED = {"quantity_value": None, "quantity_upper": None, "quantity_verdict": "MISSING"}
OF_ALL_SIZES = {**SPOILED, "quantity_name": "own_choice", "quantity_message_size": None}


@pytest.mark.parametrize("left", [SPOILED, OF_ALL_SIZES, {**OF_ALL_SIZES, "nodes": []}])
@pytest.mark.parametrize("bad_days", [(), (9, 11, 13)])
def test_a_relation_that_lost_its_number_is_no_same(
    tmp_path: Path, left: dict[str, object], bad_days: tuple[int, ...]
) -> None:
    """Without a number it has no bounds, and a spoiled sweep no sizes: it is lost all the same."""
    made = Made(perflogs=tmp_path, noise=0.003)
    for day in range(1, 15):
        made.run(day)
        own = {**made.lines[-1], **OWN, "quantity_value": 1.02 + made.rng.normal(0, 0.003)}
        made.lines.append({**own, **left} if day in bad_days else own)
    found = made.compare("2026-11-01..2026-11-07", "2026-11-08..2026-11-14")
    assert found.overall is (Change.UNDECIDED if bad_days else Change.SAME)
    assert not bad_days or "gave no number after" in found.reason


def test_a_rate_of_errors_that_is_none_is_not_lost(tmp_path: Path) -> None:
    """A few retransmissions on the first side, none on the second: nobody failed to count."""
    made = Made(perflogs=tmp_path, noise=0.003)
    for day in range(1, 15):
        made.run(day)
        rate: dict[str, object] = {
            "quantity_unit": "ppm",
            "quantity_name": "retransmitted_per_million_packets",
            "quantity_message_size": None,
            "quantity_named": False,
        }
        made.lines.append({**made.lines[-1], **rate, "quantity_value": 3.0 if day < 8 else 0.0})
    found = made.compare("2026-11-01..2026-11-07", "2026-11-08..2026-11-14")
    assert found.overall is Change.SAME


def test_losses_that_are_red_on_one_side_are_told(tmp_path: Path) -> None:
    """Recorded as a plain number while they are quiet, and with a verdict once they are red."""
    made = Made(perflogs=tmp_path, noise=0.003)
    for day in range(1, 15):
        made.run(day)
        bad = day > 8
        rate: dict[str, object] = {
            "quantity_unit": "ppm",
            "quantity_name": "retransmitted_per_million_packets",
            "quantity_message_size": None,
            "quantity_named": bad,
            "quantity_value": 300.0 if bad else 0.0,
            "quantity_verdict": "FAIL" if bad else "PASS",
        }
        made.lines.append({**made.lines[-1], **rate})
    found = made.compare("2026-11-01..2026-11-07", "2026-11-08..2026-11-14")
    told = [each for each in found.warnings if each.startswith("retransmitted_per_million")]
    assert len(told) == 1
    assert "red in 0 of 7 runs of the first side, in 6 of 7 of the second" in told[0]


def test_a_label_of_runs_that_are_gone_says_so(tmp_path: Path) -> None:
    """Fewer runs than a person named are never taken in silence."""
    made = Made(perflogs=tmp_path, noise=0.003)
    ids = [made.run(day) for day in range(1, 9)]
    (tmp_path / SITE).mkdir(parents=True, exist_ok=True)
    with (tmp_path / SITE / "labels.jsonl").open("w") as file:
        for run_id in [*ids[:4], "20261001T000000Z-000000"]:
            record = {"format": 1, "label": "base", "run_id": run_id, "given": True}
            file.write(json.dumps(record) + "\n")
    found = made.compare("base", "2026-11-05..2026-11-08")
    assert any("1 of 5 runs have no records" in each for each in found.warnings)
