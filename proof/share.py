"""So many of so many, and which rates that leaves credible."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from fabricproof.core.student import beta

#: of the bounds: 95 %, both sides together
ALPHA = 0.05


@dataclass(frozen=True, kw_only=True)
class Share:
    """So many of so many, with the exact bounds of Clopper and Pearson (Biometrika 26, 1934)."""

    hits: int
    of: int

    @property
    def bounds(self) -> tuple[float, float]:
        """Return the least and the largest rate that the count leaves credible, at 95 %."""
        low = 0.0
        if self.hits:
            low = _crossing(lambda rate: _at_most(self.hits - 1, self.of, rate), 1 - ALPHA / 2)
        high = 1.0
        if self.hits < self.of:
            high = _crossing(lambda rate: _at_most(self.hits, self.of, rate), ALPHA / 2)
        return low, high

    def __str__(self) -> str:
        """``59 of 59 (94 to 100 %)``."""
        if not self.of:
            return "-"
        low, high = self.bounds
        return f"{self.hits} of {self.of} ({_percent(low)} to {_percent(high)} %)"


def _percent(rate: float) -> str:
    """Return a rate in percent with the digits that say something."""
    value = 100 * rate
    return f"{value:.2g}" if 0 < value < 1 else f"{value:.0f}" if value < 99 else f"{value:.3g}"


def _at_most(hits: int, of: int, rate: float) -> float:
    """Return P(X <= hits) of a binomial, hits below ``of`` (A. and S. 26.5.24)."""
    return beta(of - hits, hits + 1, 1 - rate)


def _crossing(chance: Callable[[float], float], wanted: float) -> float:
    """Return the rate at which a chance that falls with it is as wanted."""
    low, high = 0.0, 1.0
    for _ in range(50):
        middle = (low + high) / 2
        low, high = (middle, high) if chance(middle) > wanted else (low, middle)
    return (low + high) / 2
