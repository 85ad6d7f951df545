"""The nodes of a job: inventory, preflight, topology, what a stack will use, a first site."""

#: What other rooms may import beside this package itself.
FRONT: dict[str, str] = {
    "discover": "a first site folder from what a machine shows",
    "discover.cluster": "what a machine and its cluster are asked for that",
    "doctor": "what a stack will use, and what would go wrong",
    "inventory.changed": "whether a node is still what it was",
    "inventory.differences": "what differs between two nodes",
    "inventory.facts": "what a node is made of",
    "inventory.read": "that, read from what a node said",
    "inventory.remarks": "where the nodes of a run stand apart",
    "inventory.store": "inventories kept",
    "inventory.words": "facts of a node in words",
    "preflight": "whether nodes are what the site declares",
    "slurm": "the nodes of a partition, as Slurm has them",
    "topology": "leaves, hops; lists of hosts folded and unfolded",
}
