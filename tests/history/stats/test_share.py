"""So many of so many, with exact bounds."""

from __future__ import annotations

import pytest

from proof.share import Share


@pytest.mark.parametrize(
    ("hits", "of", "low", "high"),
    # 1 - 0.025 ** (1 / n) for none, 0.025 ** (1 / n) for all; the third is R's binom.test(3, 10)
    [(0, 3000, 0, 0.001229), (59, 59, 0.93939, 1), (3, 10, 0.06674, 0.65245)],
)
def test_bounds_are_the_exact_ones(hits, of, low, high):
    assert Share(hits=hits, of=of).bounds == pytest.approx((low, high), abs=1e-5)
