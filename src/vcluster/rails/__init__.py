"""Switches, cables, their rates, and what may be wrong with them."""
