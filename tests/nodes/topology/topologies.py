"""Topologies for the tests of this folder."""

from __future__ import annotations

from pathlib import Path

DATA = Path(__file__).parents[2] / "data" / "slurm"
TREE = (DATA / "topology-tree.txt").read_text()
BLOCK = (DATA / "topology-block.txt").read_text()

#: two islands of two leaves each: 1, 3 and 5 switches between nodes
ISLANDS = """\
SwitchName=l1 Level=0 LinkSpeed=1 Nodes=n[1-2]
SwitchName=l2 Level=0 LinkSpeed=1 Nodes=n[3-4]
SwitchName=l3 Level=0 LinkSpeed=1 Nodes=n[5-6]
SwitchName=l4 Level=0 LinkSpeed=1 Nodes=n[7-8]
SwitchName=s1 Level=1 LinkSpeed=1 Nodes=n[1-4] Switches=l[1-2]
SwitchName=s2 Level=1 LinkSpeed=1 Nodes=n[5-8] Switches=l[3-4]
SwitchName=core Level=2 LinkSpeed=1 Nodes=n[1-8] Switches=s[1-2]
"""
