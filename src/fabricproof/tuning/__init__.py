"""Which algorithm a collective takes: what can be forced, whether the own choice loses.

Pure but for reading its own data files.
"""

from __future__ import annotations

from fabricproof.tuning.decision import AUTO, OWN, Bar, Choice, ChoiceResult, Times, decide
from fabricproof.tuning.knobs import COLLECTIVES, Knobs, find_knobs

#: What other rooms may import beside this package itself.
FRONT: dict[str, str] = {}

__all__ = [
    "AUTO",
    "COLLECTIVES",
    "OWN",
    "Bar",
    "Choice",
    "ChoiceResult",
    "Knobs",
    "Times",
    "decide",
    "find_knobs",
]
