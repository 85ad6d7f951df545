"""Whether the nodes are what the site declares, judged from what was seen of them.  Pure.

Layers within: ``finding`` (records), ``soft``, ``rail``, ``card`` and ``fleet`` (the judges),
``judge`` (all of them over one fabric).
"""
