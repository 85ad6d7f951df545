"""Learn baselines from known-good runs, and say what they would have said of the past."""

from __future__ import annotations

from fabricproof.history.baseline.freezing import Ask, Frozen, freeze
from fabricproof.history.baseline.review import (
    BaselineCoverage,
    Replay,
    Turned,
    Unlike,
    against_run,
    differences,
    replay,
    standing,
)

__all__ = [
    "Ask",
    "BaselineCoverage",
    "Frozen",
    "Replay",
    "Turned",
    "Unlike",
    "against_run",
    "differences",
    "freeze",
    "replay",
    "standing",
]
