"""What is said of the sharing of messages among rails, and what noise must not make of it."""

from __future__ import annotations

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from fabricproof.verdict.sharing import (
    Curve,
    Large,
    Small,
    balance,
    large_rule,
    least_gain,
    read_policy,
    sentences,
    shares_of,
    small_rule,
    threshold_of,
)

SIZES = tuple(2**power for power in range(23))


def _rail(plateau: float, start_us: float = 1.0) -> Curve:
    return {size: size / (start_us + size / plateau) for size in SIZES}


def _two(single: Curve, threshold: int, gain: float) -> Curve:
    return {size: value * (gain if size > threshold else 1) for size, value in single.items()}


#: document 000: QDR on ConnectX-3, two ports of one HCA: as one rail up to 8 KiB, then 5.8 of 3.9
ONE, BOTH = _rail(3900), _two(_rail(3900), 8192, 5.8 / 3.9)


def test_document_000_two_rails_help_above_8_kib() -> None:
    policy = read_policy({"port1": ONE, "port2": ONE}, BOTH, expected_gain=1.85)
    assert policy.threshold_bytes == 16384
    assert policy.steady
    assert sentences(policy)[0] == (
        "several rails help from 16KiB on (x1.49, x1.49 at 4MiB); up to 8KiB they equal one"
    )
    assert policy.small is Small.UNSEEN


def test_document_000_near_socket_two_rails_gain_three_percent_which_is_no_help() -> None:
    fdr = _rail(6300)
    policy = read_policy({"a": fdr, "b": fdr}, _two(fdr, 8192, 6.5 / 6.3), expected_gain=1.15)
    assert policy.threshold_bytes is None
    assert "never help" in sentences(policy)[0]


def test_one_lucky_size_is_no_threshold() -> None:
    both = {**BOTH, 1024: ONE[1024] * 1.8}
    policy = read_policy({"a": ONE, "b": ONE}, both, expected_gain=1.9)
    assert policy.threshold_bytes == 16384
    assert not policy.steady
    assert "some smaller sizes gain too" in sentences(policy)[0]


def test_one_unlucky_size_moves_the_threshold_above_it() -> None:
    both = {**BOTH, 65536: ONE[65536]}
    assert read_policy({"a": ONE, "b": ONE}, both, expected_gain=1.9).threshold_bytes == 131072


def test_rails_that_disagree_raise_the_bar() -> None:
    slow = {size: value * 0.8 for size, value in ONE.items()}
    policy = read_policy({"a": ONE, "b": slow}, _two(ONE, 8192, 1.4), expected_gain=1.5)
    assert policy.threshold_bytes is None


@pytest.mark.parametrize(
    ("shares", "rule"),
    [
        ({"a": 0.5, "b": 0.5}, Small.IN_TURN),
        ({"a": 0.3, "b": 0.7}, Small.IN_TURN),
        ({"a": 0.15, "b": 0.85}, Small.UNEVEN),
        ({"a": 0.97, "b": 0.03}, Small.ONE_RAIL),
        ({}, Small.UNSEEN),
        ({"a": 1.0}, Small.UNSEEN),
    ],
)
def test_small_messages(shares: dict[str, float], rule: Small) -> None:
    assert small_rule(shares) is rule


@pytest.mark.parametrize(
    ("shares", "rule"),
    [
        ({"a": 0.52, "b": 0.48}, Large.EVEN),
        ({"a": 0.66, "b": 0.34}, Large.WEIGHTED),
        ({"a": 0.60, "b": 0.40}, Large.UNEVEN),
        ({"a": 0.99, "b": 0.01}, Large.ONE_RAIL),
        ({}, Large.UNSEEN),
    ],
)
def test_large_messages(shares: dict[str, float], rule: Large) -> None:
    assert large_rule(shares, {"a": 2 / 3, "b": 1 / 3}) is rule


def test_a_few_bytes_or_a_counter_that_ran_back_tell_nothing() -> None:
    assert shares_of({"a": 1000, "b": 3000}) == {}
    assert shares_of({"a": 10**9, "b": -1}) == {}
    assert shares_of({}) == {}


def test_shares_are_said_per_rail() -> None:
    policy = read_policy(
        {"rail0": ONE, "rail1": ONE},
        BOTH,
        expected_gain=2.0,
        small_bytes={"rail0": 10**6, "rail1": 10**6},
        large_bytes={"rail0": 6 * 10**7, "rail1": 4 * 10**7},
    )
    assert sentences(policy)[1:] == [
        "small messages: in turn (rail0 50%, rail1 50%)",
        "large messages: shared unevenly (rail0 60%, rail1 40%)",
    ]


_gains = st.dictionaries(st.sampled_from(SIZES), st.floats(0.1, 3), min_size=1)


@given(_gains, st.floats(1.01, 2.5))
def test_every_size_from_the_threshold_on_gains_and_the_one_before_does_not(
    gains: dict[int, float], least: float
) -> None:
    threshold, steady = threshold_of(gains, least)
    if threshold is None:
        assert gains[max(gains)] < least
        assert steady == all(gain < least for gain in gains.values())
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


def test_curves_without_a_common_size_say_so() -> None:
    policy = read_policy({"a": {1: 1.0}, "b": {1: 1.0}}, {2: 1.0}, expected_gain=2)
    assert policy.threshold_bytes is None
    assert "no message size" in sentences(policy)[0]
