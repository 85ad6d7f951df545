"""What changed when, over many runs, and what else changed then."""
