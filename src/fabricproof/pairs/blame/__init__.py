"""Which pairs are low, and whose fault that is."""
