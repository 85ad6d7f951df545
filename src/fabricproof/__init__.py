"""fabricproof: proves that a cluster's interconnect performs as it should."""

__version__ = "0.1.0"
