"""Commands that measure: run, plan, nightly, pairs, ab, reframe."""
