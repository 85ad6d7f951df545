"""The word of a comparison: right where something changed, never green for what is not known."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from made import Made, Where, nights

from fabricproof.history.compare.doubts import unreachable_notes
from fabricproof.history.compare.join import Filters
from fabricproof.history.compare.model import (
    Comparison,
    Group,
    NothingComparedError,
    comparison_record,
    parse_margins,
)
from fabricproof.history.compare.text import lines, next_step
from fabricproof.history.stats.shifts import Change
from fabricproof.history.store.model import MARGINS

BEFORE, AFTER = "2026-11-01..2026-11-10", "2026-11-11.."


def group(comparison: Comparison, kind: str, name: str, metric: str) -> Group:
    """Return one row of the table."""
    return next(
        each
        for each in comparison.groups
        if (each.kind, each.name, each.metric) == (kind, name, metric)
    )


def of_rail1(factor: float, metric: str = "bandwidth") -> object:
    """Return numbers of rail 1 times a factor."""

    def change(where: Where) -> float:
        return factor if where[0] == "rail1" and where[2] == metric else 1.0

    return change


def made_sides(folder: Path, count: int = 6, **after: object) -> Made:
    """Return so many nights before and as many after, alike but for ``after``."""
    made = Made(folder)
    nights(made, range(1, 1 + count))
    nights(made, range(11, 11 + count), **after)
    return made


def test_a_rail_that_lost_bandwidth_is_worse_and_named(tmp_path: Path) -> None:
    """10 % less on rail 1 is WORSE overall, on rail 1 and on no rail 0."""
    found = made_sides(tmp_path, factor=of_rail1(0.9)).compare(BEFORE, AFTER)
    assert found.overall is Change.WORSE
    row = group(found, "rail", "rail1", "bandwidth")
    assert row.change is Change.WORSE
    assert row.shift is not None
    assert row.shift.ratio == pytest.approx(0.9, abs=0.01)
    assert group(found, "rail", "rail0", "bandwidth").change is not Change.WORSE
    assert "rail1" in next(iter(lines(found)))


def test_a_latency_that_rises_is_worse_though_the_number_is_larger(tmp_path: Path) -> None:
    """Direction is the quantity's own: +12 % latency is WORSE and the screen says worse."""
    found = made_sides(tmp_path, factor=of_rail1(1.12, "latency")).compare(BEFORE, AFTER)
    assert found.overall is Change.WORSE
    headline = next(iter(lines(found)))
    assert "+1" in headline
    assert "which is worse" in headline


def test_a_latency_that_falls_is_better(tmp_path: Path) -> None:
    """The other direction is BETTER, with nothing else in doubt."""
    found = made_sides(tmp_path, factor=of_rail1(0.85, "latency")).compare(BEFORE, AFTER)
    assert found.overall is Change.BETTER


def test_nothing_that_changed_is_same_with_quiet_runs(tmp_path: Path) -> None:
    """Six quiet nights against six are SAME within the margins, on every row of the table."""
    found = made_sides(tmp_path).compare(BEFORE, AFTER)
    assert found.overall is Change.SAME, found.reason
    assert {each.change for each in found.groups} == {Change.SAME}
    assert next(iter(lines(found))).startswith("SAME: ")


def test_noisy_runs_are_undecided_not_same(tmp_path: Path) -> None:
    """Where scatter is larger than the margin nobody says SAME, and more runs are asked for."""
    made = Made(tmp_path, noise=0.4)
    nights(made, range(1, 5))
    nights(made, range(11, 15))
    found = made.compare(BEFORE, AFTER)
    assert found.overall is Change.UNDECIDED
    told = list(lines(found))
    assert "which is" not in told[0], "nothing undecided is called worse or better"
    assert any("more run" in each for each in told)


@pytest.mark.parametrize("word", ["MISSING", "INVALID"])
def test_what_was_measured_before_and_failed_after_is_never_same(tmp_path: Path, word: str) -> None:
    """All else equal, a rail without usable numbers after forbids SAME and BETTER."""
    found = made_sides(
        tmp_path, verdict=lambda where: word if where[0] == "rail1" else "PASS"
    ).compare(BEFORE, AFTER)
    assert found.overall is Change.UNDECIDED
    assert "gave no number after" in found.reason
    assert group(found, "rail", "rail1", "bandwidth").change is Change.UNDECIDED
    assert group(found, "pair", "n1 - n2", "bandwidth").change is Change.UNDECIDED


def test_what_failed_in_most_runs_after_forbids_same_too(tmp_path: Path) -> None:
    """The two good runs of six are no fair sample of a rail that mostly fails."""
    made = Made(tmp_path)
    nights(made, range(1, 7))
    nights(made, range(11, 13))
    nights(made, range(13, 17), verdict=lambda where: "INVALID" if where[0] == "rail1" else "PASS")
    found = made.compare(BEFORE, AFTER)
    assert found.overall is Change.UNDECIDED
    assert "no number in 4 of 6 runs of the second side" in found.reason


def test_a_gain_does_not_hide_what_was_lost(tmp_path: Path) -> None:
    """BETTER on one rail and nothing on the other is UNDECIDED, not BETTER."""
    found = made_sides(
        tmp_path,
        factor=lambda where: 1.2 if where[0] == "rail0" and where[2] == "bandwidth" else 1.0,
        verdict=lambda where: "MISSING" if where[0] == "rail1" else "PASS",
    ).compare(BEFORE, AFTER)
    assert found.overall is Change.UNDECIDED
    assert "better in places" in found.reason


def test_worse_beats_better(tmp_path: Path) -> None:
    """One rail up and the other down is WORSE, and the gain is mentioned."""
    found = made_sides(
        tmp_path,
        factor=lambda where: (
            {"rail0": 1.2, "rail1": 0.8}[where[0]] if where[2] == "bandwidth" else 1.0
        ),
    ).compare(BEFORE, AFTER)
    assert found.overall is Change.WORSE
    assert "BETTER" in found.reason


def test_one_quantity_that_fell_far_forbids_same(tmp_path: Path) -> None:
    """One point of one pair 30 % down, too few runs to prove it: never SAME.

    Its groups average over dozens of others; every run after is below every run before.
    """
    place = ("rail1", ("n1", "n2"), "bandwidth", 1024 * 1024)
    made = Made(tmp_path, noise=0.005)
    nights(made, range(1, 4))
    nights(made, range(11, 14), factor=lambda where: 0.7 if where == place else 1.0)
    found = made.compare(BEFORE, AFTER)
    assert found.overall in {Change.UNDECIDED, Change.WORSE}
    if found.overall is Change.UNDECIDED:
        assert any(each.key.quantity == "bandwidth_1MiB" for each in found.suspects)


def test_one_run_on_a_side_proves_nothing(tmp_path: Path) -> None:
    """Ten runs against one: nothing SAME, and the reason is said."""
    made = Made(tmp_path)
    nights(made, range(1, 11))
    nights(made, range(11, 12))
    found = made.compare(BEFORE, AFTER)
    assert found.overall is not Change.SAME
    assert any("one run only on the second side" in each for each in found.warnings)


def test_a_filter_narrows_what_is_compared(tmp_path: Path) -> None:
    """With --only rail=rail0 the fall of rail 1 is not part of the question."""
    made = made_sides(tmp_path, factor=of_rail1(0.8))
    found = made.compare(BEFORE, AFTER, filters=Filters(rail=("rail0",)))
    assert found.overall is Change.SAME
    assert {each.key.rails for each in found.quantities} == {"rail0"}


def test_a_filter_that_nothing_passes_is_named(tmp_path: Path) -> None:
    """A typing error in a pair compares nothing, and says which pairs there are."""
    made = made_sides(tmp_path, count=2)
    with pytest.raises(NothingComparedError, match=r"--only pair=n1,n9.*n1,n2"):
        made.compare(BEFORE, AFTER, filters=Filters(pair=("n1,n9",)))


def test_zero_and_negative_numbers_are_set_aside_and_counted(tmp_path: Path) -> None:
    """A zero in one run of each pair is no measurement, and not silently dropped."""
    made = Made(tmp_path)
    nights(made, range(1, 7))
    nights(made, range(11, 16))
    made.run(16, factor=lambda where: 0.0 if where[3] == 8 else 1.0)
    found = made.compare(BEFORE, AFTER)
    assert any("set aside" in each for each in found.warnings)
    row = next(each for each in found.quantities if each.key.message_size == 8)
    assert len(row.second) == 5
    assert "set aside" in row.note


@pytest.mark.parametrize(
    ("is_hit", "named"),
    [
        (lambda where: where[0] == "rail1", "of rail1 "),
        (lambda where: where[1] == ("n1", "n2"), "of pair n1 - n2 "),
        (lambda where: "n2" in where[1], "of node n2 "),
        (lambda _: True, "of everything together "),
    ],
    ids=["rail", "pair", "node", "everything"],
)
def test_the_headline_names_the_place(
    tmp_path: Path, is_hit: Callable[[Where], bool], named: str
) -> None:
    """A rail, a pair, a node or all: the largest group of which nearly all lost is named."""
    made = Made(tmp_path)
    four = ("n1", "n2", "n3", "n4")
    nights(made, range(1, 7), nodes=four)
    nights(
        made,
        range(11, 17),
        nodes=four,
        factor=lambda where: 0.9 if is_hit(where) and where[2] == "bandwidth" else 1.0,
    )
    found = made.compare(BEFORE, AFTER)
    assert found.overall is Change.WORSE
    assert named in next(iter(lines(found)))


def test_a_filter_is_told_wherever_the_word_is(tmp_path: Path) -> None:
    """SAME of rail 0 alone is no SAME of a cluster whose rail 1 lost half its bandwidth."""
    made = made_sides(tmp_path, factor=of_rail1(0.5))
    asked = Filters(rail=("rail0",), size=(1024,))
    found = made.compare(BEFORE, AFTER, filters=asked)
    assert found.overall is Change.SAME, found.reason
    told = list(lines(found))
    assert told[0].startswith("SAME of what was asked for (--only rail=rail0 --only size=1KiB): ")
    assert "nothing is said of the rest" in told[2]
    assert told[-1].startswith(f"Next: fabricproof compare {BEFORE} {AFTER} --site made")
    assert comparison_record(found)["filters"] == {"rail": ["rail0"], "size": ["1KiB"]}
    whole = made.compare(BEFORE, AFTER)
    assert whole.overall is Change.WORSE
    assert comparison_record(whole)["filters"] == {}


def test_the_next_step_of_a_part_asks_trend_for_that_part(tmp_path: Path) -> None:
    """WORSE of rail 1 goes on with the trend of rail 1."""
    made = made_sides(tmp_path, factor=of_rail1(0.5))
    found = made.compare(BEFORE, AFTER, filters=Filters(rail=("rail1",)))
    told = list(lines(found))
    assert told[0].startswith("WORSE of what was asked for (--only rail=rail1): ")
    assert "fabricproof trend --only rail=rail1 --site made" in told[-1]


def test_more_runs_than_anyone_starts_are_no_advice(tmp_path: Path) -> None:
    """Less must be asked for; the number is that of all."""
    made = Made(tmp_path, noise=0.4)
    nights(made, range(1, 7))
    nights(made, range(11, 17))
    found = made.compare(BEFORE, AFTER, filters=Filters(rail=("rail0",)))
    more = found.more_runs
    assert found.overall is Change.UNDECIDED
    assert more is not None
    assert more > 30, "more than anyone runs: less must be asked for"
    told = list(lines(found))
    assert f"; all that is open needs {more} more runs on each side" in told[0]
    assert told[-1].startswith(f"Next: nothing   (all of it would need {more} more runs on each")
    assert "ask of less with --only" in told[-1]


def test_everything_together_is_called_so_in_the_reason(tmp_path: Path) -> None:
    """Nobody reads ``overall all``; one more run is no ``1 more runs``."""
    made = Made(tmp_path, noise=0.4)
    nights(made, range(1, 5))
    nights(made, range(11, 15))
    found = made.compare(BEFORE, AFTER)
    assert " of everything together: " in found.reason
    assert not any("overall all" in each or " 1 more runs" in each for each in lines(found))


def test_one_run_on_a_side_asks_for_runs_and_not_for_a_thousand(tmp_path: Path) -> None:
    """Of one run no scatter is known: nothing is said of what no number of runs would decide."""
    made = Made(tmp_path)
    nights(made, [1, *range(11, 15)])
    told = list(lines(made.compare("2026-11-01", AFTER), whole=True))
    assert told[0].endswith("one run on a side: its scatter cannot be known")
    assert not any("1000" in each for each in told)
    assert "fabricproof run -t quick --site made" in told[-1]


@pytest.mark.parametrize(("count", "holds"), [(4, False), (6, True)])
def test_a_baseline_is_proposed_only_of_runs_that_freeze_takes(
    tmp_path: Path, count: int, *, holds: bool
) -> None:
    """SAME goes on with a baseline in the words of its help, or says how many runs it takes."""
    found = made_sides(tmp_path).compare(BEFORE, AFTER)
    assert found.overall is Change.SAME
    second = replace(found.second, runs=found.second.runs[:count])
    step = next_step(replace(found, second=second))
    assert (f"baseline freeze NAME {AFTER} --site made" in step) is holds
    assert ("takes 5 runs" in step) is not holds
    assert "--runs" not in step


def test_the_next_step_asks_as_this_one_did(tmp_path: Path) -> None:
    """What was let differ, or made the margin is in the command that goes on."""
    made = made_sides(tmp_path)
    found = made.compare(
        BEFORE,
        AFTER,
        filters=Filters(rail=("rail0",)),
        across=("build",),
        margins={**MARGINS, "message rate": 0.1},
    )
    assert found.overall is Change.SAME, found.reason
    options = "--across build --margin message-rate=10%"
    assert f"compare {BEFORE} {AFTER} {options} --site made" in next_step(found)
    assert parse_margins(["message-rate=10%"])["message rate"] == 0.1


@pytest.mark.parametrize(
    ("counts", "told"),
    [
        ((2, 2), "nor SAME, however far apart they are: that takes 2 more"),
        ((3, 3), "cannot be BETTER or WORSE, however far apart they are: that takes 1 more"),
        ((4, 4), ""),
        ((2, 5), ""),
        ((19, 1), ""),
        ((18, 1), "nor SAME, however far apart they are: that takes 1 more"),
        ((0, 4), ""),
    ],
)
def test_words_out_of_reach_are_said(counts: tuple[int, int], told: str) -> None:
    """Nobody looks for a WORSE that so few runs cannot give."""
    found = list(unreachable_notes(counts, 0.05))
    assert bool(found) is bool(told)
    assert all(told in each for each in found)


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
    told = [each for each in found.warnings if f"scatter {word} on the second side" in each]
    assert len(told) == 1
    noisy = [each for each in found.quantities if each.shift.scatter is not None]
    assert noisy
    assert all((each.shift.scatter or 0) > 1 for each in noisy) is (word == "more")
    assert f"scatters {word}" in "\n".join(lines(found, whole=True))
    assert f"scatters {word}" in noisy[0].note
    quantities = comparison_record(found)["quantities"]
    assert any(each["shift"]["scatter"] for each in quantities)


def test_sides_that_scatter_alike_are_not_told_apart(tmp_path: Path) -> None:
    """Nothing changed: no word about scatter."""
    found = made_sides(tmp_path).compare(BEFORE, AFTER)
    assert not [each for each in found.warnings if "on the second side, by the rows" in each]
    assert all(each.shift.scatter is None for each in found.quantities)
