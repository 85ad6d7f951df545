"""What earlier runs measured: store, comparison, trend, baselines, cost, statistics."""
