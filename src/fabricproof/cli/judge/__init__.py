"""Commands that judge what was measured elsewhere: judge, parse, ceiling."""
