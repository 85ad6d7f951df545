"""The nodes of a job: inventory, preflight, topology, what a stack will use, a first site."""
