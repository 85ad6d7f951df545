"""The benchmarks: what their programs measure, and the parsers of what they print."""
