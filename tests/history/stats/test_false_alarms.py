"""How often a comparison in which nothing changed says that something did: at most one in twenty.

A short form of ``benchmarks/false_alarms.py``, whose figures stand in ``docs/statistics.md``.
"""

from __future__ import annotations

import runpy
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

BENCHMARKS = Path(__file__).parents[3] / "benchmarks"
sys.path.insert(0, str(BENCHMARKS))
BENCHMARK = runpy.run_path(str(BENCHMARKS / "false_alarms.py"))
sys.path.remove(str(BENCHMARKS))


@pytest.mark.parametrize("noise", sorted(BENCHMARK["NOISES"]))
def test_false_alarms_are_as_rare_as_stated(noise: str) -> None:
    """80 null comparisons of 20 rows each: the lower end of their interval is below 5 %."""
    num = 80
    ours, *_ = BENCHMARK["false_alarms"](BENCHMARK["NOISES"][noise], (4, 4), 20, num)
    low, _ = BENCHMARK["bounds"](sum(ours), num)
    assert low <= 0.05


def test_a_rule_without_correction_cries_wolf() -> None:
    """The simulation can tell: Welch's t on each of 30 rows says something most of the time."""
    noise = BENCHMARK["NOISES"]["lognormal"]
    columns = BENCHMARK["false_alarms"](noise, (5, 5), 30, 40)
    welch = columns[1 + BENCHMARK["RULES"].index("Welch t")]
    assert np.mean(welch) > 0.5


def test_rows_that_changed_do_not_make_their_neighbours_wrong() -> None:
    """Half the rows lost 10 %, the others nothing: of those, one comparison in twenty at most."""
    random = np.random.default_rng(21)
    wrong, found = [], []
    for _ in range(100):
        values = np.exp(random.normal(0.0, 0.01, (20, 10)) + random.normal(0.0, 0.01, (1, 10)))
        values[:10, 5:] *= 0.9
        shifts = BENCHMARK["compare"](values, 5, margin=0.0001)
        wrong.append(BENCHMARK["said"](shifts[10:]))
        found.append(np.mean([BENCHMARK["said"]([each]) for each in shifts[:10]]))
    low, _ = BENCHMARK["bounds"](sum(wrong), len(wrong))
    assert low <= 0.05
    assert np.mean(found) > 0.9


@pytest.mark.parametrize("planted", BENCHMARK["PLANTED"][:8], ids=lambda each: each.name)
def test_as_much_is_found_as_by_limma_with_holm(planted: Any) -> None:
    """Both at their level: not 15 points less, over 5 comparisons of 5 v 5, 400 rows."""
    random = BENCHMARK["random_for"]("test", planted.name)
    told = [BENCHMARK["_planted"](planted, random) for _ in range(5)]
    ours, holm = (
        np.mean([(each[rule][: planted.changed] <= 0.05).mean() for each in told])
        for rule in (0, 1)
    )
    assert ours >= holm - 0.15


@pytest.mark.parametrize("name", BENCHMARK["UNEQUAL"])
def test_a_side_that_scatters_more_is_not_taken_for_another_level(name: str) -> None:
    """7 v 3, the three twice as wild: six of 40 at most, where one in twenty is two."""
    random = BENCHMARK["random_for"]("test", name)
    said = [
        BENCHMARK["adjusted"](BENCHMARK["unequal"](name, random, 7, 3), 7, [0] * 200)[0].min()
        for _ in range(40)
    ]
    assert np.mean(np.array(said) <= 0.05) <= 0.15
