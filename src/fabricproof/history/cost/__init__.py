"""What a run would cost, said before anything is submitted, and held against what runs took.

ReFrame itself is asked in a dry run, so that the checks' own choices are what is counted.
"""

from __future__ import annotations

from fabricproof.history.cost.case import Case, ask_reframe, read_cases
from fabricproof.history.cost.history import (
    DEFAULT_SESSION_SECONDS,
    DEFAULT_START_SECONDS,
    Lessons,
    PastRun,
    PastRuns,
    learn,
    read_history,
)
from fabricproof.history.cost.outlook import (
    NIGHT_SECONDS,
    Cost,
    Estimate,
    LeftOut,
    LevelCost,
    Outlook,
    RunCost,
    add_up,
    compare,
    estimate,
    licence_of,
    look_ahead,
    off_by,
    refusals,
    serialised_by,
)

__all__ = [
    "DEFAULT_SESSION_SECONDS",
    "DEFAULT_START_SECONDS",
    "NIGHT_SECONDS",
    "Case",
    "Cost",
    "Estimate",
    "LeftOut",
    "Lessons",
    "LevelCost",
    "Outlook",
    "PastRun",
    "PastRuns",
    "RunCost",
    "add_up",
    "ask_reframe",
    "compare",
    "estimate",
    "learn",
    "licence_of",
    "look_ahead",
    "off_by",
    "read_cases",
    "read_history",
    "refusals",
    "serialised_by",
]
