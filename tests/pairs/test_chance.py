"""Chance is not blamed: what few values, many low ones and many candidates are worth."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from fabricproof.pairs import Matrix, judge_matrix, say
from fabricproof.pairs.blame.explain import MARGIN, beyond_chance, explain
from fabricproof.pairs.matrix import Kind


def matrix(num: int, rails: int, *, triangle: bool) -> Matrix:
    first, second = np.triu_indices(num, 1)
    if not triangle:
        first, second = np.concatenate([first, second]), np.concatenate([second, first])
    count = len(first) * rails
    return Matrix(
        nodes=tuple(f"n{node}" for node in range(num)),
        rails=tuple(f"rail{rail}" for rail in range(rails)),
        kind=Kind(quantity="bandwidth", unit="GB/s"),
        source=np.tile(first, rails).astype(np.int32),
        destination=np.tile(second, rails).astype(np.int32),
        both_ways=np.full(count, triangle),
        rail=np.repeat(np.arange(rails, dtype=np.int32), len(first)),
        round=np.full(count, -1, dtype=np.int32),
        value=np.ones(count),
    )


@pytest.mark.parametrize("rate", [0.02, 0.1, 0.25, 0.5, 0.75, 0.9])
@pytest.mark.parametrize("alike", [True, False])
@pytest.mark.parametrize(
    ("num", "rails", "triangle"),
    [(4, 1, True), (4, 1, False), (5, 2, True), (6, 1, False), (8, 1, False), (16, 2, True)],
)
def test_chance_at_any_rate_blames_nobody(
    num: int, rails: int, triangle: bool, rate: float, alike: bool
) -> None:
    whole = matrix(num, rails, triangle=triangle)
    random = np.random.default_rng([num, rails, triangle, int(1000 * rate), alike])
    blamed = 0
    for _ in range(100):
        share = np.full(len(whole), 0.5) if alike else random.uniform(0.3, 0.8, len(whole))
        low = random.random(len(whole)) < rate
        value = np.where(low, share, 1.0) * (1 + 0.03 * random.normal(size=len(whole)))
        blamed += bool(say(judge_matrix(replace(whole, value=value))).blame)
    # At the worst rate for each of them it is 0.1 to 0.5 %; it was 1 to 10 %, and 28 % of 16 nodes.
    assert blamed <= 3


def test_evidence_grows_with_rows_and_falls_with_what_else_is_low() -> None:
    assert beyond_chance(3, 3, 3, 0) < beyond_chance(6, 6, 6, 0) < beyond_chance(6, 6, 60, 0)
    assert beyond_chance(6, 6, 60, 0) > beyond_chance(6, 6, 60, 6) > beyond_chance(6, 6, 60, 30)
    assert beyond_chance(6, 5, 60, 0) < beyond_chance(6, 6, 60, 0)
    # Many others tell the rate of chance by themselves.
    sure = 6 * math.log(0.95 / 0.01)
    assert beyond_chance(6, 6, 100_000, 1000) == pytest.approx(sure, rel=0.01)


@pytest.mark.parametrize(("rails", "blamed"), [(1, True), (200, False)])
def test_the_bar_counts_who_could_be_at_fault(rails: int, blamed: bool) -> None:
    """The same low rows of one node blame it among few suspects, and not among many."""
    whole = matrix(6, 1, triangle=True)
    low = (whole.source == 0) | (whole.destination == 0)
    if rails > 1:
        # Each good row is of another rail, whose nodes are suspects, too.
        rail = np.where(low, 0, np.arange(len(low)) + 1).astype(np.int32)
        names = tuple(f"rail{number}" for number in range(rails))
        whole = replace(whole, rail=rail, rails=names)
    explanation = explain(whole, low, None)
    assert [each.suspect.number for each in explanation.found] == ([0] if blamed else [])
    assert [each.suspect.number for each in explanation.weak] == ([] if blamed else [0])
    assert math.exp(-MARGIN) == pytest.approx(1 / 2000)
