"""What changed between two sides of history, how sure that is, and where."""

from __future__ import annotations

from fabricproof.history.compare.facts import Machines
from fabricproof.history.compare.join import Filters
from fabricproof.history.compare.model import (
    Comparison,
    FieldChange,
    Group,
    Side,
    SideError,
    comparison_record,
    parse_margins,
    parse_renamed,
)
from fabricproof.history.compare.plan import (
    InterleavedMeans,
    InterleavedPlan,
    RunOutcome,
    SwitchedError,
    conduct,
    fewest_rounds,
    make_plan,
    plan_lines,
    read_plan,
    state_file,
    switch_back,
    write_plan,
)
from fabricproof.history.compare.sides import ChosenSide, History, choose_side
from fabricproof.history.compare.text import columns, lines
from fabricproof.history.compare.whole import Asked, compare_sides
from fabricproof.history.stats.shifts import Change, Shift

__all__ = [
    "Asked",
    "Change",
    "ChosenSide",
    "Comparison",
    "FieldChange",
    "Filters",
    "Group",
    "History",
    "InterleavedMeans",
    "InterleavedPlan",
    "Machines",
    "RunOutcome",
    "Shift",
    "Side",
    "SideError",
    "SwitchedError",
    "choose_side",
    "columns",
    "compare_sides",
    "comparison_record",
    "conduct",
    "fewest_rounds",
    "lines",
    "make_plan",
    "parse_margins",
    "parse_renamed",
    "plan_lines",
    "read_plan",
    "state_file",
    "switch_back",
    "write_plan",
]
