"""What one job is told: its legs, how hard to measure, commands and script."""
