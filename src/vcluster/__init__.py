"""A virtual Slurm cluster on one Linux machine: nodes, switches, rails and real daemons.

Nodes are namespaces; nothing touches the machine's own network.  Nothing outside the command
line and the tests imports this package: for everything else the cluster is just a site.
"""
