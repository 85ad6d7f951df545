"""Clean nights in other orders: no fewer false alarms and no lower floor than the noise allows."""

from __future__ import annotations

import datetime
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fabricproof.history.prove import clean
from fabricproof.history.prove.clean import (
    STRENGTHS,
    CleanNights,
    bounds_of,
    judge_baseline,
    judge_clean,
    kinds_of,
    losses_needed,
    places_of,
    weakened,
)
from fabricproof.history.prove.model import CallRule, Shuffled, Strength
from fabricproof.history.stats.share import Share
from fabricproof.history.store import Key, Run

NODES = ("n1", "n2", "n3")


def key(quantity: str, rails: str, nodes: str, unit: str = "MB/s") -> Key:
    return Key(
        site="made",
        partition="compute",
        fabric="ib0",
        stack="openmpi5",
        build="*",
        suite="osu",
        program="osu_bw",
        tool_version="*",
        check="OsuBandwidth",
        leg=rails,
        rails=rails,
        nodes=nodes,
        settings="",
        quantity=quantity,
        unit=unit,
        message_size=1 << 20 if unit == "MB/s" else 8,
        better=1 if unit == "MB/s" else -1,
    )


KEYS = tuple(
    key("bandwidth_1MiB" if unit == "MB/s" else "latency_8B", rail, f"n1,{node}", unit)
    for rail in ("rail0", "rail1")
    for node in ("n2", "n3")
    for unit in ("MB/s", "us")
)


def nights(count: int, noise: float, seed: int, year: int = 2026) -> CleanNights:
    """Return nights whose noise is the same but for its size, whatever the size."""
    chance = np.random.default_rng(seed)
    first = datetime.datetime(year, 11, 1, 22, tzinfo=datetime.UTC)
    starts = [first + datetime.timedelta(days=each) for each in range(count)]
    return CleanNights(
        keys=KEYS,
        runs=tuple(Run(run_id=f"{each:%Y%m%dT%H%M%SZ}-000000", start=each) for each in starts),
        values=1000 * np.exp(noise * chance.normal(size=(len(KEYS), count))),
    )


def silent(_what: str, _done: int, _of: int) -> None:
    """Tell nobody."""


@pytest.fixture
def few_tries(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clean, "MOST_TRIES", 6)
    monkeypatch.setattr(clean, "FEWEST_TRIES", 6)


def losses(found: tuple, rule: CallRule, share: str = "half") -> list[float]:
    each = [floor for kind in found[1] for floor in kind.floors if floor.rule is rule]
    strengths: list[Strength | None] = [getattr(floor, share) for floor in each]
    return [math.inf if strength is None else strength.loss for strength in strengths]


@given(seed=st.integers(0, 1000), noise=st.floats(0.02, 0.05))
def test_more_noise_never_lowers_the_loss_that_a_baseline_notices(seed, noise):
    """On the average of its tries: a single one may have a lucky night."""
    means = []
    for size in (noise, 2 * noise):
        _, _, tried = judge_baseline(nights(12, size, seed), silent)
        means.append([np.mean(each) for of_kind in tried.values() for each in of_kind.values()])
    assert np.all(np.array(means[1]) >= np.array(means[0]))


@given(seed=st.integers(0, 1000), loss=st.sampled_from(STRENGTHS), count=st.sampled_from((1, 3)))
def test_the_loss_that_is_needed_is_the_one_from_which_on_the_bound_is_crossed(seed, loss, count):
    made = nights(12, 0.03, seed)
    bounds = bounds_of(made.keys, made.values[:, :-3])
    needed = losses_needed(made.keys, made.values[:, -count:], bounds)
    rows = np.arange(len(KEYS))
    after = weakened(made.keys, made.values, rows, count, loss)[:, -count:]
    better = np.array([each.better for each in KEYS])[:, None]
    crossed = np.where(better > 0, after < bounds[:, None], after > bounds[:, None]).any(axis=1)
    assert crossed.tolist() == (needed < loss).tolist()


@given(
    loss=st.sampled_from(STRENGTHS),
    count=st.sampled_from((1, 3)),
    rows=st.sets(st.integers(0, len(KEYS) - 1), min_size=1),
)
def test_a_loss_touches_its_rows_and_the_newest_nights_alone(loss, count, rows):
    made = nights(8, 0.02, 1)
    rows = np.array(sorted(rows))
    after = weakened(made.keys, made.values, rows, count, loss)
    changed = after != made.values
    assert changed[rows, -count:].all()
    assert changed.sum() == len(rows) * count
    worse = np.array([(1 if each.better < 0 else -1) for each in KEYS])[:, None]
    assert (np.sign(after - made.values) * worse >= 0).all()


def test_nights_renamed_change_nothing(few_tries):
    assert judge_clean(nights(14, 0.02, 3), silent) == judge_clean(
        nights(14, 0.02, 3, year=2001), silent
    )


def test_trend_notices_a_smaller_loss_where_there_is_less_noise(few_tries):
    quiet, loud = (judge_clean(nights(24, size, 5), silent) for size in (0.01, 0.08))
    assert sum(losses(quiet, CallRule.TREND)) < sum(losses(loud, CallRule.TREND))
    assert losses(quiet, CallRule.BASELINE) <= losses(loud, CallRule.BASELINE)


def test_three_nights_are_noticed_no_later_than_one(few_tries):
    _, floors = judge_clean(nights(20, 0.03, 7), silent)
    for kind in floors:
        one, three = (
            next(each for each in kind.floors if each.nights == count and each.rule is rule)
            for count, rule in ((1, CallRule.BASELINE), (3, CallRule.BASELINE))
        )
        assert one.half is not None
        assert three.half is not None
        assert three.half.loss <= one.half.loss


def test_a_quantity_with_too_few_nights_has_no_bound_and_is_never_noticed():
    made = nights(12, 0.02, 1)
    made.values[0, 4:] = np.nan
    bounds = bounds_of(made.keys, made.values)
    assert np.isnan(bounds[0])
    assert np.isfinite(bounds[1:]).all()
    assert losses_needed(made.keys, made.values, bounds)[0] == math.inf


def test_a_night_far_off_is_counted_as_red():
    made = nights(20, 0.01, 2)
    made.values[:, 4] *= np.array([0.7 if each.better > 0 else 1.4 for each in KEYS])
    red, judged, _ = judge_baseline(made, silent)
    assert made.runs[4] in red
    assert judged == 20


def test_a_night_that_no_other_can_judge_is_none_that_was_judged():
    made = nights(12, 0.02, 1)
    made.values[:, 4:] = np.nan
    red, judged, _ = judge_baseline(made, silent)
    assert (red, judged) == ((), 0), "four nights leave no baseline"


def test_a_rail_that_a_night_did_not_measure_is_no_try(few_tries):
    made = nights(16, 0.02, 2)
    rail1 = [row for row, each in enumerate(KEYS) if each.rails == "rail1"]
    made.values[np.ix_(rail1, range(8))] = np.nan
    _, _, tried = judge_baseline(made, silent)
    assert {len(each[1]) for each in tried.values()} == {16 * 3 + 8 * 3}
    assert np.isfinite(tried["ib0", "bandwidth"][1]).all()


def test_a_rail_that_no_night_measured_often_enough_has_no_floor(few_tries):
    made = nights(12, 0.02, 2)
    made.values[:, 3:] = np.nan
    made.values[0, 3:] = 1000.0
    _, floors = judge_clean(made, silent)
    latency = next(each for each in floors if each.metric == "latency")
    assert all(each.half is None for each in latency.floors)


def test_who_looks_each_night_sees_what_is_over_by_the_last_one():
    """Six bad nights of forty: at the last look it is a step to the better that lasts."""
    made = nights(40, 0.01, 11)
    orders = clean.DrawnOrders(keys=made.keys, values=made.values)
    assert not orders.is_told_by_night(made.values)
    made.values[:, 12:18] *= np.array([0.5 if each.better > 0 else 2.0 for each in KEYS])[:, None]
    assert orders.is_told_by_night(made.values)


def test_a_place_is_a_rail_of_a_node_and_a_leg_over_two_rails_is_none():
    keys = (*KEYS, key("bandwidth_1MiB", "rail0,rail1", "n1,n2"), key("r", "rail0", "n1,n2", "x"))
    assert kinds_of(keys) == [("ib0", "bandwidth"), ("ib0", "latency")]
    places = places_of(keys, "ib0", "bandwidth")
    assert list(places) == [(node, rail) for node in NODES for rail in ("rail0", "rail1")]
    assert [keys[row].nodes for row in places["n2", "rail0"]] == ["n1,n2"]
    assert all("," not in keys[row].rails for rows in places.values() for row in rows)


def test_where_no_leg_has_a_rail_alone_all_of_its_rails_are_the_place():
    keys = (key("bandwidth_1MiB", "rail0,rail1", "n1,n2"),)
    assert [rail for _, rail in places_of(keys, "ib0", "bandwidth")] == ["rail0,rail1"] * 2


@pytest.mark.parametrize(("hits", "broken"), [(0, False), (2, False), (6, True), (30, True)])
def test_a_promise_is_broken_only_where_chance_hardly_explains_it(hits, broken):
    """1 % is promised: two of 30 nights happen once in 30 histories, six hardly ever."""
    shuffled = Shuffled(
        told={CallRule.BASELINE: Share(hits=hits, of=30)},
        promised={CallRule.BASELINE: 0.01},
        by_night=Share(hits=0, of=0),
        red=(),
    )
    assert shuffled.broken() == [CallRule.BASELINE] * broken
