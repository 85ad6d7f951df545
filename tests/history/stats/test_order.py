"""Does the order of the runs matter: a trend within a side, or nights that remember."""

from __future__ import annotations

import runpy
from pathlib import Path

import numpy as np
import pytest

ORDER = Path(__file__).parents[3] / "benchmarks" / "order.py"
order_matters = runpy.run_path(str(ORDER))["order_matters"]


def nights(seed: int, runs: int) -> np.ndarray:
    """Return 30 rows with nights in common."""
    random = np.random.default_rng(seed)
    return np.exp(random.normal(0.0, 0.01, (30, runs)) + random.normal(0.0, 0.01, (1, runs)))


def test_a_drift_within_the_sides_is_told() -> None:
    """Half a percent a night, over ten nights before and ten after."""
    values = nights(1, 20) * np.exp(-0.005 * np.arange(20))
    assert order_matters(values, [False] * 10 + [True] * 10) < 0.01


def test_a_step_between_the_sides_is_no_drift() -> None:
    """What was changed between them is what is asked about, not what is warned of."""
    values = nights(2, 20)
    values[:, 10:] *= 0.5
    assert order_matters(values, [False] * 10 + [True] * 10) > 0.05


def test_of_exchangeable_nights_one_in_twenty_is_warned_of() -> None:
    """Also with a quarter of the numbers missing: at most 1 of 20, four standard errors allowed."""
    told = []
    for seed in range(30):
        values = nights(seed, 16)
        values[np.random.default_rng(seed).random(values.shape) < 0.25] = np.nan
        told.append(order_matters(values, [False] * 8 + [True] * 8) <= 0.05)
    assert np.mean(told) <= 0.05 + 4 * (0.05 * 0.95 / 30) ** 0.5


@pytest.mark.parametrize("runs", [0, 2, 4])
def test_two_runs_on_a_side_say_nothing_of_order(runs: int) -> None:
    """No trend can be seen in two."""
    values = nights(3, runs)
    assert order_matters(values, [run >= runs // 2 for run in range(runs)]) == 1.0
