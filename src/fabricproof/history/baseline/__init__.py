"""Learn baselines from known-good runs, and say what they would have said of the past."""

from fabricproof.history.baseline.past import keyed, samples_in, samples_of

__all__ = ["keyed", "samples_in", "samples_of"]
