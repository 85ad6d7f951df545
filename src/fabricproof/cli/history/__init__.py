"""Commands that ask the runs so far: report, compare, trend, baseline, runs."""
