"""What changed between two sides of history, how sure that is, and where."""
