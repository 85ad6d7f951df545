"""Bounds hold what they were learnt from, move with the numbers, and keep their promise."""

from __future__ import annotations

import math
import random
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fabricproof.history.baseline.bounds import (
    FLOORS,
    Samples,
    learn,
    print_step,
    prior,
)

NUMBERS = st.lists(st.floats(50, 150), min_size=3, max_size=12)


def samples_of(values: list[float], **changes: object) -> Samples:
    facts: dict[str, object] = {
        "values": {f"run{number:03}": value for number, value in enumerate(values)},
        "unit": "MB/s",
        "kind": ("k",),
    }
    return Samples(**{**facts, **changes})  # type: ignore[arg-type]


@settings(deadline=None)
@given(several=st.lists(NUMBERS, min_size=1, max_size=6))
def test_bounds_hold_every_number_that_is_no_outlier(several: list[list[float]]) -> None:
    """What was called good is not red by what was learnt of it."""
    asked = {number: samples_of(values) for number, values in enumerate(several)}
    for number, found in learn(asked).items():
        assert found.low < found.median < found.high
        for run, value in asked[number].values.items():
            assert run in found.aside or found.low <= value <= found.high


@settings(deadline=None)
@given(values=NUMBERS, seed=st.integers())
def test_the_order_of_the_runs_means_nothing(values: list[float], seed: int) -> None:
    items = list(samples_of(values).values.items())
    random.Random(seed).shuffle(items)
    one = learn({0: samples_of(values)})[0]
    other = learn({0: replace(samples_of(values), values=dict(items))})[0]
    assert one == other


@settings(deadline=None)
@given(values=NUMBERS, factor=st.floats(0.01, 100))
def test_the_unit_means_nothing(values: list[float], factor: float) -> None:
    """Of numbers without a step of the print, which a unit would move."""
    values = [each * math.pi for each in values]
    one = learn({0: samples_of(values)})[0]
    other = learn({0: samples_of([each * factor for each in values])})[0]
    assert other.low / other.median == pytest.approx(one.low / one.median, rel=3e-4)


@pytest.mark.parametrize("unit", ["MB/s", "us", "x"])
def test_no_bound_is_tighter_than_its_floor(unit: str) -> None:
    """Ten equal prints are no proof that the eleventh is equal."""
    found = learn({0: samples_of([100.0] * 10, unit=unit)})[0]
    floor = FLOORS.get(unit, 0.05)
    assert found.low <= found.median * (1 - floor)
    assert found.high >= found.median * (1 + floor)


def test_few_runs_make_wide_bounds() -> None:
    """The same scatter in three runs and in twelve: the bound of the three is far wider."""
    few = learn({0: samples_of([99.0, 100.0, 101.0])})[0]
    many = learn({0: samples_of([99.0, 100.0, 101.0] * 4)})[0]
    assert 1 - few.low / few.median > 2 * (1 - many.low / many.median)


def test_points_of_a_curve_do_not_blunt_what_carries_the_verdict() -> None:
    """A thousand points of curves cost the few named quantities half of the rate, no more."""
    values = [99.0, 100.0, 101.0, 100.5, 99.5]
    named = samples_of(values, family="named", kind=("named",))
    curve = {n: samples_of(values, family="curve") for n in range(1, 1000)}
    few = {1: samples_of(values, family="curve")}
    assert learn({0: named, **curve})[0] == learn({0: named, **few})[0]


def test_one_number_far_off_is_set_aside_and_told() -> None:
    values = [100.1, 99.9, 100.0, 100.2, 99.8, 100.05, 60.0]
    found = learn({0: samples_of(values)})[0]
    assert list(found.aside) == ["run006"]
    assert "60.0% of the median 100 MB/s of 7 runs" in found.aside["run006"]
    assert found.low > 95


def test_two_states_of_a_machine_are_no_outliers() -> None:
    """Where a third of the runs is slow, nobody knows which state is the good one."""
    values = [100.1, 99.9, 100.0, 100.2, 60.1, 60.0]
    found = learn({0: samples_of(values)})[0]
    assert found.aside == {}
    assert found.low < 60


def test_alike_quantities_lend_each_other_their_scatter() -> None:
    """Five numbers that agree by chance get a wider bound among noisy ones of their kind."""
    quiet = [100.0, 100.01, 100.02, 100.0, 100.01]
    noisy = {n: samples_of([100.0, 98.0 + n / 10, 102.0, 101.0, 99.0]) for n in range(1, 9)}
    lonely = learn({0: samples_of(quiet)}, false_alarms=0.01 / 9)[0]
    among = learn({0: samples_of(quiet), **noisy})[0]
    assert among.low < lonely.low
    assert among.spread > lonely.spread


def test_a_prior_of_like_variances_is_strong_and_of_unlike_ones_weak() -> None:
    generator = random.Random(7)

    def variance(scale: float) -> float:
        draws = [generator.gauss(0, scale) for _ in range(5)]
        return sum((each - sum(draws) / 5) ** 2 for each in draws) / 4

    like, _ = prior([(variance(1.0), 4) for _ in range(300)])
    unlike, _ = prior([(variance(10 ** generator.uniform(-2, 2)), 4) for _ in range(300)])
    assert like > 30
    assert unlike < 2
    assert prior([(1.0, 4)]) == (0.0, 1.0)


@pytest.mark.parametrize("runs", [5, 10])
def test_the_rate_of_false_alarms_is_kept(runs: int) -> None:
    """Nights without any change: at most about one in a hundred has even one number red.

    Noise of unlike scale from quantity to quantity, the case the moderation is made for.  300
    nights over 10 baselines; more than 9 red ones would have a probability below 0.2 % at 1 %.
    """
    generator = random.Random(20261121)
    red = 0
    for _ in range(10):
        scales = [0.01 * math.exp(generator.gauss(0, 0.4)) for _ in range(60)]

        def night(scales: list[float] = scales) -> list[float]:
            return [100 * math.exp(generator.gauss(0, scale)) for scale in scales]

        history = [night() for _ in range(runs)]
        found = learn({n: samples_of([each[n] for each in history]) for n in range(60)})
        for _ in range(30):
            now = night()
            red += any(now[number] < found[number].low for number in range(60))
    assert red <= 9


def test_the_step_of_the_print_is_part_of_the_bound() -> None:
    """Ten runs printed 0.02: 0.01 and 0.03 may be the same rate, and 0.5 % below 20.00 may not."""
    small = learn({0: samples_of([0.02] * 10)})[0]
    assert small.low <= 0.01
    assert small.high >= 0.03
    large = learn({0: samples_of([20.0, 20.01, 19.99] * 4)})[0]
    assert large.low > 19.6


@pytest.mark.parametrize(
    ("values", "step"),
    [([0.02, 0.15], 0.01), ([7.0, 3.0], 0.01), ([1.125, 2.0], 0.001), ([0.0209715], 0.0),
     ([1e-7], 0.0)],
)  # fmt: skip
def test_the_step_of_the_print_is_seen_by_the_decimals(values: list[float], step: float) -> None:
    """What was calculated, as from MiB, has none."""
    assert print_step(values) == pytest.approx(step)
