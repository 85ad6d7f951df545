"""A fabric under a subnet manager: its switches, cables, LIDs and managers, read and judged.

What preflight cannot know from hosts: it looks from the manager's side, through the tools of
infiniband-diags.  Readers and judgement are pure; ``live`` runs the tools, ``look`` keeps them.
"""

from __future__ import annotations

from fabricproof.subnet.cables import read_ibnetdiscover
from fabricproof.subnet.judge import Expected, judge_look
from fabricproof.subnet.linkinfo import read_iblinkinfo, with_states
from fabricproof.subnet.live import SubnetAccess, ask
from fabricproof.subnet.look import join, read_folder, write_folder
from fabricproof.subnet.model import Cable, End, Manager, Network, Node, NodeKind, Port, SubnetLook
from fabricproof.subnet.result import SubnetResult
from fabricproof.subnet.tables import read_ibqueryerrors, read_issm, read_managers

#: What other rooms may import beside this package itself.
FRONT: dict[str, str] = {}

__all__ = [
    "Cable",
    "End",
    "Expected",
    "Manager",
    "Network",
    "Node",
    "NodeKind",
    "Port",
    "SubnetAccess",
    "SubnetLook",
    "SubnetResult",
    "ask",
    "join",
    "judge_look",
    "read_folder",
    "read_iblinkinfo",
    "read_ibnetdiscover",
    "read_ibqueryerrors",
    "read_issm",
    "read_managers",
    "with_states",
    "write_folder",
]
