"""Whether the nodes are what the site declares, judged from what was seen of them.  Pure.

Layers within: ``finding`` (records), ``soft``, ``rail`` and ``card`` (one rail of one node),
``judge`` (all of them over one fabric, and the nodes against each other).
"""
