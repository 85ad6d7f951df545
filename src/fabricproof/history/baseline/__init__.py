"""Learn baselines from known-good runs, and say what they would have said of the past."""
