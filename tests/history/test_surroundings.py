"""What others did beside two sides: it excuses what it explains, and nothing else."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from fabricproof.history.stats.shifts import Change
from fabricproof.history.store import open_store
from fabricproof.history.surroundings import (
    Beside,
    Taken,
    beside,
    taken_from,
)
from proof.histories import (
    HistoryEffect,
    compare_nights,
    history_of,
    sides_of,
    trend_of,
)
from proof.library import FABRICS
from proof.machine.model import ModelMachine
from proof.nights import run_id_of, write_nights

SHARES = st.floats(0, 1)
RATIOS = st.floats(0.2, 5)


def _machine() -> ModelMachine:
    return ModelMachine(fabric=FABRICS["verbs"], nodes=("n1", "n2", "n3"), chance=random.Random(2))


def _beside(first: float, second: float, ratio: float = 1.0) -> Beside:
    """Return five runs on each side, of which the second has this ratio to the first."""
    seen = [Taken(cores=first)] * 5 + [Taken(cores=second)] * 5
    found = beside(seen, [100.0] * 5 + [100.0 * ratio] * 5, 5)
    assert found is not None
    return found


def _explained(first: float, second: float, ratio: float, better: int) -> bool:
    return _beside(first, second, ratio).explains(ratio, better, 0.03)


@given(share=SHARES, ratio=RATIOS, better=st.sampled_from([1, -1]))
def test_what_disturbed_both_sides_alike_explains_nothing(share, ratio, better):
    assert not _explained(share, share, ratio, better)


@example(first=0.0, second=1.0, ratio=1.0, better=1)
@given(first=SHARES, second=SHARES, ratio=RATIOS, better=st.sampled_from([1, -1]))
def test_sides_swapped_are_explained_alike(first, second, ratio, better):
    there = _explained(first, second, ratio, better)
    assert there == _explained(second, first, 1 / ratio, better)


@given(first=SHARES, second=SHARES, more=SHARES, ratio=st.floats(0.2, 0.96))
def test_who_took_more_explains_no_less(first, second, more, ratio):
    if _explained(first, second, ratio, 1):
        assert _explained(first, second + more, ratio, 1)


@pytest.mark.parametrize(
    ("ratio", "better", "explained"),
    [(0.7, 1, True), (0.5, 1, False), (1.4, -1, True), (2, -1, False)],
)
def test_a_fifth_more_of_the_time_explains_twice_a_fifth_of_a_change(ratio, better, explained):
    assert _explained(0.02, 0.22, ratio, better) is explained


def test_the_side_that_was_quick_cannot_be_excused_by_its_own_others():
    assert not _explained(0.5, 0.0, 0.8, 1)
    assert _explained(0.5, 0.0, 1.25, 1), "mended only once they had gone"


def _waiting(level_us: float, *, in_us: bool = True) -> bool:
    """Tell whether three times the latency is explained by bursts of 1 ms on 15 % of the wire."""
    seen = [Taken(wire=0.0)] * 5 + [Taken(wire=0.15, burst_us=1000.0)] * 5
    found = beside(seen, [level_us] * 5 + [3 * level_us] * 5, 5)
    assert found is not None
    return found.explains(3.0, -1, 0.03, in_us=in_us)


def test_a_message_waits_for_bursts_of_others_on_the_wire():
    assert _waiting(100.0)
    assert not _waiting(10_000.0)


def test_what_is_no_time_waits_for_no_burst():
    """The numbers of a group are shares of what is typical, about 1."""
    assert not _waiting(1.0, in_us=False)


def test_what_was_read_on_one_side_only_explains_nothing() -> None:
    """Cores are not read in a leg of less than a second: that is no side without others."""
    seen = [Taken(wire=0.0)] * 7 + [Taken(wire=0.0, cores=0.3)] * 7
    found = beside(seen, [100.0] * 7 + [80.0] * 7, 7)
    assert found is not None
    assert not found.explains(0.8, 1, 0.03)


def test_one_run_that_is_known_does_not_speak_for_its_side() -> None:
    seen = [Taken(cores=0.0), *[Taken()] * 6, Taken(cores=0.3), *[Taken()] * 6]
    assert beside(seen, [100.0] * 7 + [80.0] * 7, 7) is None


def test_quiet_runs_of_the_disturbed_side_that_are_slow_too_prove_the_change() -> None:
    shares = [0.02] * 7 + [0.02] * 3 + [0.5] * 4
    seen = [Taken(cores=each) for each in shares]
    slow = beside(seen, [100.0] * 7 + [80.0] * 7, 7)
    quiet = beside(seen, [100.0] * 10 + [80.0] * 4, 7)
    assert slow is not None
    assert not slow.explains(0.8, 1, 0.03)
    assert quiet is not None
    assert quiet.explains(0.8, 1, 0.03)


def test_a_difference_within_the_scatter_of_the_quick_side_explains_nothing() -> None:
    seen = [Taken(cores=each) for each in (0.1, 0.2, 0.3, 0.6, 0.7, 0.4, 0.4, 0.4, 0.4, 0.4)]
    found = beside(seen, [100.0] * 5 + [80.0] * 5, 5)
    assert found is not None
    assert not found.explains(0.8, 1, 0.03)


@pytest.mark.parametrize("across", [(), ("stack",)])
def test_fields_that_may_differ_lose_nobody(tmp_path: Path, across: tuple[str, ...]) -> None:
    before, after = sides_of(HistoryEffect.SIDES_DISTURBED, 0.3, _machine())
    found = compare_nights(tmp_path, before, after, across=across)
    assert (found.overall, found.disturbed) == (Change.UNDECIDED, "second")
    assert {each.change for each in found.groups} == {Change.UNDECIDED}


def test_a_slow_rail_is_worse_though_others_disturbed_both_sides(tmp_path: Path) -> None:
    before, after = (
        [replace(each, others=0.3) for each in side]
        for side in sides_of(HistoryEffect.SIDES_RAIL, 0.1, _machine())
    )
    found = compare_nights(tmp_path, before, after)
    assert (found.overall, found.disturbed) == (Change.WORSE, "")


def test_what_was_mended_only_in_that_others_left_is_not_better(tmp_path: Path) -> None:
    before, after = sides_of(HistoryEffect.SIDES_DISTURBED, 0.3, _machine())
    found = compare_nights(tmp_path, after, before)
    assert (found.overall, found.disturbed) == (Change.UNDECIDED, "first")
    assert "others took 2% of its time on the second side, 32% on the first" in found.reason


def test_a_disturbance_of_one_night_excuses_no_side(tmp_path: Path) -> None:
    before, after = sides_of(HistoryEffect.SIDES_RAIL, 0.1, _machine())
    nights = [*after[:-1], replace(after[-1], others=0.9)]
    assert compare_nights(tmp_path, before, nights).overall is Change.WORSE


def test_a_step_that_others_explain_is_told_and_not_called(tmp_path: Path) -> None:
    nights = history_of(HistoryEffect.TREND_DISTURBED, 0.3, _machine(), 8)
    found = trend_of(tmp_path, nights)
    assert (found.is_worse_now, found.looks_worse_now) == (False, True)
    (event,) = found.events
    assert "others took 32% of its time since, 2% before, which explains it" in event.sentence


def test_of_an_environment_that_is_damaged_nobody_is_known(tmp_path: Path) -> None:
    night = replace(sides_of(HistoryEffect.SIDES_RAIL, 0.0, _machine())[0][0], others=0.3)
    store = write_nights(tmp_path, [night])
    taken = taken_from(store, [run_id_of(0)])
    assert {each.cores for each in taken.values()} == {0.3}
    (file,) = tmp_path.rglob("records.jsonl")
    file.write_text(file.read_text().replace('"share": 0.3', '"share": "much"'))
    taken = taken_from(open_store(tmp_path, store.site), [run_id_of(0)])
    assert {each.cores for each in taken.values()} == {None}
