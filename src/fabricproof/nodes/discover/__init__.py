"""Look at a machine and write a first site folder from what it shows, guesses marked."""

from __future__ import annotations

from fabricproof.nodes.discover.cluster import Cluster
from fabricproof.nodes.discover.draft import Guess, find_guesses
from fabricproof.nodes.discover.write import used_partitions, write_site

__all__ = [
    "Cluster",
    "Guess",
    "find_guesses",
    "used_partitions",
    "write_site",
]
