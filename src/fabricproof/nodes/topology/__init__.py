"""Where the nodes hang: Slurm's topology as text, distances in switches, and pairs worth measuring.

Pure: the text of ``scontrol show topology`` goes in, records come out.
"""

from fabricproof.nodes.topology.choose import Pair, contiguous, pairs_by_hops, spread, words
from fabricproof.nodes.topology.model import Group, Shape, Topology
from fabricproof.nodes.topology.parse import expand, fold, parse_topology, torus_of

__all__ = [
    "Group",
    "Pair",
    "Shape",
    "Topology",
    "contiguous",
    "expand",
    "fold",
    "pairs_by_hops",
    "parse_topology",
    "spread",
    "torus_of",
    "words",
]
