"""Rules that judge facts: one file for each thing that can be wrong."""
