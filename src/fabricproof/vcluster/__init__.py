"""vcluster."""
