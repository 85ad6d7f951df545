"""Which algorithm a collective takes: what can be forced, whether it loses, and the mending.

Pure but for reading its own data files: tables in, decisions and the text of tuning files out.
"""

from __future__ import annotations

from fabricproof.tuning.decision import Bar, Choice, ChoiceResult, Times, decide
from fabricproof.tuning.knobs import COLLECTIVES, Knobs, find_knobs
from fabricproof.tuning.proposal import Proposal, Trial, in_words, propose, read_trial, toml_line
from fabricproof.tuning.sweeps import AUTO, OWN, UNTUNED, Sweep, sweeps_of
from fabricproof.tuning.write import table_in

#: What other rooms may import beside this package itself.
FRONT: dict[str, str] = {}

__all__ = [
    "AUTO",
    "COLLECTIVES",
    "OWN",
    "UNTUNED",
    "Bar",
    "Choice",
    "ChoiceResult",
    "Knobs",
    "Proposal",
    "Sweep",
    "Times",
    "Trial",
    "decide",
    "find_knobs",
    "in_words",
    "propose",
    "read_trial",
    "sweeps_of",
    "table_in",
    "toml_line",
]
