"""Whether the nodes are what the site declares, judged from what was seen of them.  Pure.

Layers within: ``finding`` (records), ``soft``, ``rail`` and ``card`` (one rail of one node),
``judge`` (all of them over one fabric, and the nodes against each other).
"""

from __future__ import annotations

from fabricproof.nodes.preflight.finding import FLEET, Preflight, RailFinding
from fabricproof.nodes.preflight.judge import preflight

__all__ = [
    "FLEET",
    "Preflight",
    "RailFinding",
    "preflight",
]
