"""Whether the nodes are what the site declares, judged from what was seen of them.  Pure.

Layers within: ``sight`` (a rail as it was seen), ``rail`` and ``card`` (one rail of one node),
``fleet`` (the nodes against each other), ``judge`` (all of them over one fabric).
"""

from __future__ import annotations

from fabricproof.nodes.preflight.judge import fabrics_of, look_here, preflight
from fabricproof.nodes.preflight.sight import FLEET, Preflight

__all__ = ["FLEET", "Preflight", "fabrics_of", "look_here", "preflight"]
