"""Commands that measure: run, plan, nightly, pairs, reframe."""
