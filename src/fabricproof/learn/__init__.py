"""Learn baselines from known-good runs, and say what they would have said of the past."""

from fabricproof.learn.keys import samples_in, samples_of

__all__ = ["samples_in", "samples_of"]
