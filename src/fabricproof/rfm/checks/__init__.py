"""The base classes of the checks."""
