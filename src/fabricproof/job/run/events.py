"""What the checks tell of their jobs while ReFrame runs: one line of JSON each, on its output.

Records say what was measured, and nothing is judged by these lines: they only say how far a run is.
They are told where somebody listens, which :data:`LISTENS_VARIABLE` says.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
from collections.abc import Mapping
from enum import StrEnum
from typing import Any

#: set where the reader of ReFrame's output takes these lines
LISTENS_VARIABLE = "FABRICPROOF_LISTENS"

_START = '{"fabricproof_job": '


class JobEvent(StrEnum):
    """What became of a job."""

    PLANNED = "planned"
    SUBMITTED = "submitted"
    JUDGED = "judged"


def tell(event: JobEvent, facts: Mapping[str, Any]) -> None:
    """Print one event, where somebody listens; that nobody does any more is no trouble."""
    if os.environ.get(LISTENS_VARIABLE):
        with contextlib.suppress(OSError):
            sys.stdout.write(json.dumps({"fabricproof_job": event, **facts}) + "\n")
            sys.stdout.flush()


def heard(line: str) -> tuple[JobEvent, dict[str, Any]] | None:
    """Return the event of a line of ReFrame's output; None where the line is none."""
    if not line.startswith(_START):
        return None
    with contextlib.suppress(ValueError, TypeError, KeyError):
        facts = json.loads(line)
        return JobEvent(facts.pop("fabricproof_job")), facts
    return None
