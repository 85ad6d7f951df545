"""The word of a comparison: right where something changed, never green for what is not known."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from made import KB, MB, Made, Where, nights, node_facts

from fabricproof.history.compare.changes import causes
from fabricproof.history.compare.doubts import resemblance, unreachable_notes
from fabricproof.history.compare.model import (
    Comparison,
    FieldChange,
    Group,
    NothingComparedError,
    SideError,
    comparison_record,
    parse_margins,
)
from fabricproof.history.compare.text import headline, next_step
from fabricproof.history.stats.shifts import Change
from fabricproof.history.store.model import MARGINS

BEFORE, AFTER = "2026-11-01..2026-11-10", "2026-11-11.."


def group(comparison: Comparison, kind: str, name: str, metric: str = "bandwidth") -> Group:
    wanted = (kind, name, metric)
    return next(e for e in comparison.groups if (e.kind, e.name, e.metric) == wanted)


def slower(
    factor: float, metric: str = "bandwidth", hit: Callable[[Where], bool] | None = None
) -> Callable[[Where], float]:
    """Return numbers of one metric times a factor, on rail 1 or where ``hit`` says."""
    is_hit = hit or (lambda where: where[0] == "rail1")
    return lambda where: factor if is_hit(where) and where[2] == metric else 1.0


def made_sides(folder: Path, count: int = 6, noise: float = 0.01, **after: Any) -> Made:
    """Return so many nights before and as many after, alike but for ``after``."""
    made = Made(folder, noise=noise)
    nights(made, range(1, 1 + count))
    nights(made, range(11, 11 + count), **after)
    return made


# --- the word


@pytest.mark.parametrize(
    ("factor", "metric", "word"),
    [
        (0.9, "bandwidth", Change.WORSE),
        (1.12, "latency", Change.WORSE),
        (0.85, "latency", Change.BETTER),
        (1.0, "bandwidth", Change.SAME),
    ],
)
def test_a_rail_that_changed_is_told_by_its_direction(
    tmp_path: Path, factor: float, metric: str, word: Change
) -> None:
    found = made_sides(tmp_path, factor=slower(factor, metric)).compare(BEFORE, AFTER)
    assert found.overall is word, found.reason
    row = group(found, "rail", "rail1", metric)
    assert row.change is word
    assert row.shift
    assert row.shift.ratio == pytest.approx(factor, abs=0.02)
    assert group(found, "rail", "rail0", metric).change is Change.SAME
    assert headline(found).startswith(f"{word}: ")
    assert "rail1" in headline(found) or word is Change.SAME


def test_noisy_runs_are_undecided_not_same(tmp_path: Path) -> None:
    found = made_sides(tmp_path, count=4, noise=0.4).compare(BEFORE, AFTER)
    assert found.overall is Change.UNDECIDED


@pytest.mark.parametrize(
    ("is_hit", "named"),
    [
        (lambda where: where[0] == "rail1", " of rail1 "),
        (lambda where: where[1] == ("n1", "n2"), " of pair n1 - n2 "),
        (lambda where: "n2" in where[1], " of node n2 "),
        (lambda _: True, " of everything together "),
    ],
    ids=["rail", "pair", "node", "everything"],
)
def test_the_headline_names_the_place(
    tmp_path: Path, is_hit: Callable[[Where], bool], named: str
) -> None:
    """The largest group of which nearly all lost, not an average over what did not."""
    made, four = Made(tmp_path), ("n1", "n2", "n3", "n4")
    nights(made, range(1, 7), nodes=four)
    nights(made, range(11, 17), nodes=four, factor=slower(0.9, hit=is_hit))
    found = made.compare(BEFORE, AFTER)
    assert found.overall is Change.WORSE
    assert named in headline(found)


def test_worse_beats_better(tmp_path: Path) -> None:
    factors = {"rail0": 1.2, "rail1": 0.8}
    found = made_sides(
        tmp_path, factor=lambda where: factors[where[0]] if where[2] == "bandwidth" else 1.0
    ).compare(BEFORE, AFTER)
    assert found.overall is Change.WORSE
    assert "BETTER" in found.reason


def test_a_sure_loss_below_the_margin_is_no_same_alone(tmp_path: Path) -> None:
    """A firmware that costs 2 % of every link: SAME within 3 %, and surely lower."""
    made = Made(tmp_path, noise=0.003)
    nights(made, range(1, 11))
    nights(made, range(11, 21), factor=slower(0.98, hit=lambda _: True))
    found = made.compare(BEFORE, AFTER)
    assert found.overall is Change.SAME
    assert found.slight
    assert "of everything together lower by 1.8 %" in headline(found)
    rail = Made(tmp_path / "rail", noise=0.003)
    nights(rail, range(1, 11))
    nights(rail, range(11, 21), factor=slower(0.98))
    assert "of rail1 lower by 1.9 %" in headline(rail.compare(BEFORE, AFTER))
    quiet = Made(tmp_path / "quiet", noise=0.003)
    nights(quiet, range(1, 21))
    assert quiet.compare(BEFORE, AFTER).slight == ()


def test_one_quantity_that_fell_far_forbids_same(tmp_path: Path) -> None:
    """One point of one pair 30 % down, too few runs to prove it: every run after is below."""
    place = ("rail1", ("n1", "n2"), "bandwidth", MB)
    made = made_sides(
        tmp_path, count=3, noise=0.005, factor=lambda where: 0.7 if where == place else 1.0
    )
    found = made.compare(BEFORE, AFTER)
    assert found.overall is Change.UNDECIDED
    assert any(each.key.quantity == "bandwidth_1MiB" for each in found.suspects)


def test_one_run_on_a_side_proves_nothing(tmp_path: Path) -> None:
    made = Made(tmp_path)
    nights(made, range(1, 12))
    found = made.compare(BEFORE, AFTER)
    assert found.overall is not Change.SAME
    assert any("one run only on the second side" in each for each in found.warnings)


@pytest.mark.parametrize(
    ("counts", "more"),
    [((2, 2), 2), ((3, 3), 1), ((4, 4), 0), ((2, 5), 0), ((19, 1), 0), ((18, 1), 1), ((0, 4), 0)],
)
def test_words_out_of_reach_are_said(counts: tuple[int, int], more: int) -> None:
    """Nobody looks for a WORSE that so few runs cannot give."""
    told = "".join(unreachable_notes(counts, 0.05))
    assert (f"that takes {more} more" in told) if more else not told


@pytest.mark.parametrize(("noises", "word"), [((0.004, 0.02), "more"), ((0.02, 0.004), "less")])
def test_a_side_that_only_scatters_more_is_told_so(
    tmp_path: Path, noises: tuple[float, float], word: str
) -> None:
    """Five times the scatter, level unchanged: said with its word, never BETTER or WORSE."""
    made = Made(tmp_path, noise=noises[0])
    nights(made, range(1, 7))
    made.noise = noises[1]
    nights(made, range(11, 17))
    found = made.compare(BEFORE, AFTER)
    assert found.overall not in {Change.WORSE, Change.BETTER}
    assert any(f"scatter {word} on the second side" in each for each in found.warnings)
    noisy = [each for each in found.quantities if each.shift.scatter is not None]
    assert all(f"scatters {word}" in each.note for each in noisy)
    assert noisy


def test_consecutive_nights_that_resemble_each_other_are_told() -> None:
    """A room that warms: nights with a memory of 0.9 are told, nights without are not."""
    lot = np.random.default_rng(5)
    free = np.exp(lot.normal(0, 0.01, (20, 30)))
    memory = np.zeros(30)
    for at in range(1, 30):
        memory[at] = 0.9 * memory[at - 1] + lot.normal(0, 0.02)
    assert resemblance(free * np.exp(memory), 15) > 0.3
    worlds = [np.exp(np.random.default_rng(n).normal(0, 0.01, (20, 30))) for n in range(40)]
    assert sum(resemblance(each, 15) > 0 for each in worlds) <= 6


# --- what is lost between the sides


UNPRINTED: dict[str, Any] = {
    "attributes": {},
    "tool_version": None,
    "quantity_unit": "",
    "quantity_message_size": None,
}


def long_on_rail1(place: Where) -> bool:
    rail, _, metric, size = place
    return rail == "rail1" and metric == "bandwidth" and size > KB


def place_of(line: Mapping[str, Any]) -> Where:
    metric = line["quantity_name"].partition("_")[0]
    return line["leg"], tuple(line["nodes"]), metric, line["quantity_message_size"]


def spoilt(
    folder: Path, days: set[int], change: Mapping[str, Any], hit: Callable[[Where], bool]
) -> Made:
    """Return seven nights and seven after; on some days what ``hit`` marks is changed."""
    made = Made(perflogs=folder, noise=0.003)
    nights(made, [*range(1, 8), *range(11, 18)])
    for line in made.lines:
        if line["kind"] == "quantity" and int(line["run_id"][6:8]) in days and hit(place_of(line)):
            line.update(change)
    return made


MISSING = {"quantity_value": None, "quantity_verdict": "MISSING"}


@pytest.mark.parametrize(
    "change",
    [
        {"quantity_verdict": "FAIL", "quantity_value": 0.0},
        {"quantity_verdict": "FAIL", "quantity_value": -1.0},
        {"quantity_verdict": "INVALID"},
        {"quantity_verdict": "UNJUDGED", "quantity_value": None},
        MISSING,
        {**MISSING, **UNPRINTED},
        {**MISSING, **UNPRINTED, "nodes": []},
    ],
)
@pytest.mark.parametrize("days", [{12, 15}, {11, 12, 13, 14, 15, 16, 17}])
@pytest.mark.parametrize("only", [{}, {"size": ("1MiB",)}, {"node": ("n1",)}, {"pair": ("n1,n2",)}])
def test_a_rail_without_usable_numbers_is_no_same(
    tmp_path: Path, change: dict[str, Any], days: set[int], only: dict[str, Any]
) -> None:
    """Zero, negative or nothing, in some runs or in all, whatever is asked for."""
    found = spoilt(tmp_path, days, change, long_on_rail1).compare(BEFORE, AFTER, only=only)
    assert found.overall is Change.UNDECIDED
    assert "gave no number after" in found.reason
    assert any(each.change is Change.UNDECIDED for each in found.groups)


def test_the_same_history_without_the_loss_is_same(tmp_path: Path) -> None:
    """One mishap is no loss, nor is what was lost of another size than was asked for."""
    hit = spoilt(tmp_path, {12, 15}, {**MISSING, **UNPRINTED}, long_on_rail1)
    assert hit.compare(BEFORE, AFTER, only={"size": ("8B",)}).overall is Change.SAME
    once = spoilt(tmp_path / "b", {12}, MISSING, long_on_rail1)
    assert once.compare(BEFORE, AFTER).overall is Change.SAME


def test_a_rail_that_is_not_measured_any_more_is_no_same(tmp_path: Path) -> None:
    found = made_sides(tmp_path, noise=0.003, rails=("rail0",)).compare(BEFORE, AFTER)
    assert found.overall is Change.UNDECIDED
    assert "rail1" in found.reason


def test_a_gain_does_not_hide_what_was_lost(tmp_path: Path) -> None:
    found = made_sides(
        tmp_path,
        factor=slower(1.2, hit=lambda where: where[0] == "rail0"),
        verdict=lambda where: "MISSING" if where[0] == "rail1" else "PASS",
    ).compare(BEFORE, AFTER)
    assert found.overall is Change.UNDECIDED


@pytest.mark.parametrize(
    ("bad_days", "change"), [(set(), Change.SAME), ({12, 15}, Change.UNDECIDED)]
)
@pytest.mark.parametrize(
    ("field", "value", "named"),
    [
        ("tool_version", "9.9", "tool_version"),
        ("stack_identity", {"digest": "b" * 64}, "build"),
        ("attributes", {"window_size": "7"}, "settings"),
    ],
)
def test_what_printed_nothing_may_have_been_of_the_new_version(
    tmp_path: Path, field: str, value: Any, named: str, bad_days: set[int], change: Change
) -> None:
    """The old version was not tried in vain; that the new one failed in several runs is told."""
    after = set(range(11, 18))
    made = spoilt(tmp_path, after, {field: value}, long_on_rail1)
    for line in made.lines:
        is_bad = line["kind"] == "quantity" and int(line["run_id"][6:8]) in bad_days
        if is_bad and long_on_rail1(place_of(line)):
            line.update({**MISSING, **UNPRINTED})
    found = made.compare(BEFORE, AFTER)
    assert found.overall is change
    (reason,) = {each.reason for each in found.not_compared if each.side == 1}
    assert reason.startswith(f"{named} ")


#: the own choice of a sweep, as a good night leaves it
OWN: dict[str, Any] = {
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
OF_ALL_SIZES = {**MISSING, "quantity_name": "own_choice", "quantity_message_size": None}


@pytest.mark.parametrize("left", [MISSING, OF_ALL_SIZES, {**OF_ALL_SIZES, "nodes": []}])
@pytest.mark.parametrize("bad_days", [(), (11, 13, 15)])
def test_a_relation_that_lost_its_number_is_no_same(
    tmp_path: Path, left: dict[str, Any], bad_days: tuple[int, ...]
) -> None:
    """Without a number it has no bounds, and a spoiled sweep no sizes: it is lost all the same."""
    made = Made(perflogs=tmp_path, noise=0.003)
    for day in (*range(1, 8), *range(11, 18)):
        made.run(day)
        own = {**made.lines[-1], **OWN, "quantity_value": 1.02 + made.rng.normal(0, 0.003)}
        bad = {**own, **left, "quantity_upper": None}
        made.lines.append(bad if day in bad_days else own)
    found = made.compare(BEFORE, AFTER)
    assert found.overall is (Change.UNDECIDED if bad_days else Change.SAME)


@pytest.mark.parametrize("is_red", [False, True])
def test_rates_of_errors_are_told_by_the_runs_that_they_made_red(
    tmp_path: Path, *, is_red: bool
) -> None:
    """A quiet rate is a plain number, a red one carries a verdict; none after is no loss."""
    made = Made(perflogs=tmp_path, noise=0.003)
    for day in (*range(1, 8), *range(11, 18)):
        made.run(day)
        bad = is_red and day > 11
        rate: dict[str, Any] = {
            "quantity_unit": "ppm",
            "quantity_name": "retransmitted_per_million_packets",
            "quantity_message_size": None,
            "quantity_named": bad,
            "quantity_value": 300.0 if bad else 3.0 if day < 8 else 0.0,
            "quantity_verdict": "FAIL" if bad else "PASS",
        }
        made.lines.append({**made.lines[-1], **rate})
    found = made.compare(BEFORE, AFTER)
    told = [each for each in found.warnings if each.startswith("retransmitted_per_million")]
    assert found.overall is Change.SAME
    assert bool(told) is is_red
    assert all("red in 0 of 7 runs of the first side, in 6 of 7" in each for each in told)


def test_zero_and_negative_numbers_are_set_aside_and_counted(tmp_path: Path) -> None:
    made = Made(tmp_path)
    nights(made, [*range(1, 7), *range(11, 16)])
    made.run(16, factor=lambda where: 0.0 if where[3] == 8 else 1.0)
    found = made.compare(BEFORE, AFTER)
    assert any("set aside" in each for each in found.warnings)
    row = next(each for each in found.quantities if each.key.message_size == 8)
    assert len(row.second) == 5
    assert "set aside" in row.note


# --- like with like


def test_a_run_on_both_sides_is_refused_by_name(tmp_path: Path) -> None:
    made = Made(tmp_path)
    ids = nights(made, range(1, 5))
    with pytest.raises(SideError, match=rf"2 runs on both sides: {ids[1]}, {ids[2]}"):
        made.compare("2026-11-01..2026-11-03", "2026-11-02..")


UNLIKE: list[tuple[dict[str, Any], str]] = [
    ({"stacks": {"openmpi5": "b" * 64}}, "build"),
    ({"tool_version": "7.5"}, "tool_version"),
    ({"attributes": {"num_pairs": 2}}, "settings"),
    ({"partition": "gpu"}, "partition"),
    ({"stacks": {"mpich5": "a" * 64}}, "stack"),
]


@pytest.mark.parametrize(("after", "field"), UNLIKE)
def test_unlike_quantities_are_joined_only_where_asked(
    tmp_path: Path, after: dict[str, Any], field: str
) -> None:
    """Another build, version, setting, partition or stack is never joined in silence."""
    made = made_sides(tmp_path, count=3, **after)
    with pytest.raises(NothingComparedError, match=rf"{field} .* against .*--across {field}"):
        made.compare(BEFORE, AFTER)
    found = made.compare(BEFORE, AFTER, across=(field,))
    assert {getattr(each.key, field) for each in found.quantities} == {"*"}
    assert any(f"unlike {field}" in each for each in found.warnings)


@pytest.mark.parametrize("field", ["quantity", "unit", "message_size", "nonsense"])
def test_across_what_is_measured_is_refused(tmp_path: Path, field: str) -> None:
    with pytest.raises(SideError, match=f"--across {field}"):
        made_sides(tmp_path, count=1).compare(BEFORE, AFTER, across=(field,))


def test_unlike_units_are_not_compared(tmp_path: Path) -> None:
    made = made_sides(tmp_path, count=2)
    for line in made.lines:
        if line["run_id"] > "20261111" and line.get("quantity_unit") == "MB/s":
            line["quantity_unit"] = "MiB/s"
    made.lines = [each for each in made.lines if each["program"] == "osu_bw"]
    with pytest.raises(NothingComparedError, match="unit MB/s against MiB/s"):
        made.compare(BEFORE, AFTER)


def test_a_side_without_usable_numbers_is_empty(tmp_path: Path) -> None:
    made = made_sides(tmp_path, count=2, verdict=lambda _: "MISSING")
    with pytest.raises(NothingComparedError, match="no usable number on the side"):
        made.compare(BEFORE, AFTER)


def test_what_one_side_alone_has_is_counted_with_its_reason(tmp_path: Path) -> None:
    made = Made(tmp_path)
    nights(made, range(1, 7), stacks={"openmpi5": "a" * 64, "mpich5": "b" * 64})
    nights(made, range(11, 17), stacks={"openmpi5": "a" * 64, "mpich5": "c" * 64})
    found = made.compare(BEFORE, AFTER)
    reasons = {each.reason for each in found.not_compared}
    assert reasons == {f"build {'b' * 12} against {'c' * 12}"}
    assert {each.key.stack for each in found.quantities} == {"openmpi5"}
    assert [each.part for each in found.changes] == ["stack mpich5"]


def test_a_filter_narrows_what_is_compared_and_is_told(tmp_path: Path) -> None:
    """SAME of rail 0 alone is no SAME of a cluster whose rail 1 lost half its bandwidth."""
    made = made_sides(tmp_path, factor=slower(0.5))
    found = made.compare(BEFORE, AFTER, only={"rail": ("rail0",), "size": ("1KiB",)})
    assert found.overall is Change.SAME, found.reason
    assert {(each.key.rails, each.key.message_size) for each in found.quantities} == {("rail0", KB)}
    asked = "SAME of what was asked for (--only rail=rail0 --only size=1KiB): "
    assert headline(found).startswith(asked)
    assert f"fabricproof compare {BEFORE} {AFTER} --site made" in next_step(found)[1]
    assert comparison_record(found)["filters"] == {"rail": ["rail0"], "size": ["1KiB"]}
    worse = made.compare(BEFORE, AFTER, only={"rail": ("rail1",)})
    assert next_step(worse)[1] == "fabricproof trend --only rail=rail1 --site made"
    with pytest.raises(NothingComparedError, match=r"--only pair=n1,n9.*n1,n2"):
        made.compare(BEFORE, AFTER, only={"pair": ("n1,n9",)})


# --- the next step


def test_more_runs_than_anyone_starts_are_no_advice(tmp_path: Path) -> None:
    found = made_sides(tmp_path, noise=0.4).compare(BEFORE, AFTER, only={"rail": ("rail0",)})
    assert found.overall is Change.UNDECIDED
    assert (found.more_runs or 0) > 30
    assert f"{found.more_runs} more runs on each side would decide" in headline(found)
    why, command = next_step(found)
    assert "ask of less with --only" in why
    assert not command


def test_one_run_on_a_side_asks_for_runs_and_not_for_a_thousand(tmp_path: Path) -> None:
    made = Made(tmp_path)
    nights(made, [1, *range(11, 15)])
    assert next_step(made.compare("2026-11-01", AFTER))[1] == (
        "fabricproof run -t quick --site made"
    )


@pytest.mark.parametrize(("count", "holds"), [(4, False), (6, True)])
def test_a_baseline_is_proposed_only_of_runs_that_freeze_takes(
    tmp_path: Path, count: int, *, holds: bool
) -> None:
    found = made_sides(tmp_path).compare(BEFORE, AFTER)
    second = replace(found.second, runs=found.second.runs[:count])
    _, command = next_step(replace(found, second=second))
    assert (command == f"fabricproof baseline freeze NAME {AFTER} --site made") is holds


def test_the_next_step_asks_as_this_one_did(tmp_path: Path) -> None:
    found = made_sides(tmp_path).compare(
        BEFORE,
        AFTER,
        only={"rail": ("rail0",)},
        across=("build",),
        margins={**MARGINS, "message rate": 0.1},
    )
    assert found.overall is Change.SAME, found.reason
    options = "--across build --margin message-rate=10%"
    assert f"compare {BEFORE} {AFTER} {options} --site made" in next_step(found)[1]
    assert parse_margins(["message-rate=10%"])["message rate"] == 0.1


# --- what else differs


def test_the_fields_that_changed_are_named_with_values_and_nodes(tmp_path: Path) -> None:
    """Firmware and kernel together cannot be told apart; firmware alone is one cause."""
    after = node_facts(firmware="28.41.1000")
    found = made_sides(tmp_path, count=3, facts=after).compare(BEFORE, AFTER)
    assert {(each.part, each.first, each.second, each.nodes) for each in found.changes} == {
        (f"interface rail{rail}", "28.39.1002", "28.41.1000", ("n1", "n2", "n3")) for rail in (0, 1)
    }
    assert not any("tell them apart" in each for each in found.warnings)
    after = node_facts(firmware="28.41.1000", kernel="6.6.1")
    found = made_sides(tmp_path / "two", count=3, facts=after).compare(BEFORE, AFTER)
    assert any("firmware, kernel changed" in each for each in found.warnings)


def test_facts_of_one_cause_are_one() -> None:
    def change(fact: str) -> FieldChange:
        return FieldChange(
            part="interface rail0", fact=fact, nodes=("n1",), first="1", second="2", sentence=""
        )

    assert len(causes([change("mac"), change("guid"), change("addresses")])) == 1
    assert len(causes([change("rate_gbit_s"), change("width")])) == 1
    assert causes([change("mac"), change("mtu")]) == ["MTU", "parts replaced or moved"]


def test_a_field_that_varies_within_a_side_is_warned_of(tmp_path: Path) -> None:
    made = Made(tmp_path)
    nights(made, range(1, 4))
    nights(made, (11, 12), facts=node_facts(rail1_mtu=1400))
    nights(made, (13, 14))
    found = made.compare(BEFORE, AFTER)
    assert any("MTU changed within the second side" in each for each in found.warnings)
    assert all(each.partly for each in found.changes)


def test_nodes_that_nobody_looked_at_are_said(tmp_path: Path) -> None:
    unseen = {"n1": None, "n2": node_facts(), "n3": node_facts()}
    made = made_sides(tmp_path, count=3, facts=unseen)
    for side, words in (("second", (BEFORE, AFTER)), ("first", (AFTER, BEFORE))):
        found = made.compare(*words)
        assert any(f"3 of 3 runs of the {side} side" in each for each in found.warnings)
        assert found.changes == ()


def test_how_the_sides_lie_in_time_is_said(tmp_path: Path) -> None:
    made = Made(tmp_path)
    ids = nights(made, range(1, 9))
    mixed = made.compare(",".join(ids[::2]), ",".join(ids[1::2]))
    assert any("alternate in time" in each for each in mixed.warnings)
    backwards = made.compare("2026-11-05..", "..2026-11-04")
    assert any("is the later one" in each for each in backwards.warnings)
