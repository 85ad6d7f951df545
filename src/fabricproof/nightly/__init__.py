"""The unattended run: one at a time, red confirmed elsewhere, told only on a change."""

from __future__ import annotations

from fabricproof.nightly.changes import red_of
from fabricproof.nightly.conduct import Budget, Confirmer, keep
from fabricproof.nightly.confirm import Blame, Confirmation, LookColour, LookResult, record
from fabricproof.nightly.course import NightMeans, NightOutcome, alive, spend
from fabricproof.nightly.display import render_night, write_reports
from fabricproof.nightly.lock import night_lock
from fabricproof.nightly.looks import settled
from fabricproof.nightly.notify import channels, what_was_sent
from fabricproof.nightly.retention import prune, what_was_removed
from fabricproof.nightly.state import now, read_history, state_file

#: What other rooms may import beside this package itself.
FRONT: dict[str, str] = {"admission": "whether users get a repaired node back"}

__all__ = [
    "Blame",
    "Budget",
    "Confirmation",
    "Confirmer",
    "LookColour",
    "LookResult",
    "NightMeans",
    "NightOutcome",
    "alive",
    "channels",
    "keep",
    "night_lock",
    "now",
    "prune",
    "read_history",
    "record",
    "red_of",
    "render_night",
    "settled",
    "spend",
    "state_file",
    "what_was_removed",
    "what_was_sent",
    "write_reports",
]
