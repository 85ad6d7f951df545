"""From which size on several rails help, and how evenly they carry: noise makes nothing of it."""

from __future__ import annotations

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from fabricproof.job.relations.rails import (
    Curve,
    balance,
    least_gain,
    shares_of,
    threshold_bytes,
    threshold_of,
)

SIZES = tuple(2**power for power in range(23))


def _rail(plateau: float, start_us: float = 1.0) -> Curve:
    return {size: size / (start_us + size / plateau) for size in SIZES}


def _two(single: Curve, threshold: int, gain: float) -> Curve:
    return {size: value * (gain if size > threshold else 1) for size, value in single.items()}


#: document 000: QDR on ConnectX-3, two ports of one HCA: as one rail up to 8 KiB, then 5.8 of 3.9
ONE, BOTH = _rail(3900), _two(_rail(3900), 8192, 5.8 / 3.9)
#: document 000, near socket: two rails gain three percent, which is no help
FDR = _rail(6300)
SLOW = {size: value * 0.8 for size, value in ONE.items()}


@pytest.mark.parametrize(
    ("singles", "together", "gain", "threshold"),
    [
        ((ONE, ONE), BOTH, 1.85, 16384),
        ((FDR, FDR), _two(FDR, 8192, 6.5 / 6.3), 1.15, None),
        ((ONE, ONE), {**BOTH, 1024: ONE[1024] * 1.8}, 1.9, 16384),  # one lucky size
        ((ONE, ONE), {**BOTH, 65536: ONE[65536]}, 1.9, 131072),  # one unlucky size
        ((ONE, SLOW), _two(ONE, 8192, 1.4), 1.5, None),  # rails that disagree raise the bar
        (({1: 1.0}, {1: 1.0}), {2: 1.0}, 2, None),  # no common size
    ],
)
def test_the_threshold(
    singles: tuple[Curve, Curve], together: Curve, gain: float, threshold: int | None
) -> None:
    curves = dict(zip("ab", singles, strict=True))
    assert threshold_bytes(curves, together, expected_gain=gain) == threshold


def test_a_few_bytes_or_a_counter_that_ran_back_tell_nothing() -> None:
    assert shares_of({"a": 1000, "b": 3000}) == {}
    assert shares_of({"a": 10**9, "b": -1}) == {}
    assert shares_of({}) == {}


@given(st.dictionaries(st.sampled_from(SIZES), st.floats(0.1, 3), min_size=1), st.floats(1.01, 2.5))
def test_every_size_from_the_threshold_on_gains_and_the_one_before_does_not(
    gains: dict[int, float], least: float
) -> None:
    threshold = threshold_of(gains, least)
    if threshold is None:
        assert gains[max(gains)] < least
        return
    assert all(gain >= least for size, gain in gains.items() if size >= threshold)
    before = [size for size in sorted(gains) if size < threshold]
    if before:
        assert gains[before[-1]] < least


@given(st.floats(1, 8), st.floats(0, 1))
def test_the_bar_is_above_one_and_rises_with_noise(expected: float, noise: float) -> None:
    assert least_gain(expected, noise) > 1
    assert least_gain(expected, noise) >= least_gain(expected, noise / 2)


@given(st.lists(st.floats(0.01, 1), min_size=2, max_size=4), st.data())
def test_balance_is_at_most_one_and_one_only_at_the_weights(
    parts: list[float], data: st.DataObject
) -> None:
    names = [f"rail{index}" for index in range(len(parts))]
    weights = {name: part / sum(parts) for name, part in zip(names, parts, strict=True)}
    assert balance(weights, weights) == pytest.approx(1)
    more = data.draw(st.floats(0.01, 0.2))
    shares = {name: weights[name] * (1 - more) for name in names}
    shares[names[0]] += more
    assume(shares[names[0]] > weights[names[0]] * 1.001)
    assert balance(shares, weights) < 1


def test_balance_of_62_to_38() -> None:
    assert balance({"a": 0.62, "b": 0.38}, {"a": 0.5, "b": 0.5}) == pytest.approx(0.806, abs=1e-3)
