"""Run inside the job after its legs: print what is to run next, a second look or more rounds.

It is asked again after each answer; nothing printed ends the job.

``python -m fabricproof.job.second_look FOLDER``
"""

from __future__ import annotations

import math
import os
import sys
from pathlib import Path

from fabricproof.job.leg import read_plan, shell_name
from fabricproof.job.outcomes import judge_legs
from fabricproof.job.relations.judge import legs_to_repeat, rounds_due
from fabricproof.job.script import LEGS_FIT


def doubtful_legs(folder: Path, most_in_turn: float = math.inf) -> list[str]:
    """Return the shell names of the legs below ``folder`` to run next, in that order.

    First those that a second look might clear, then those that a relation wants in turn.

    Args:
        folder: of the job.
        most_in_turn: legs that still fit in the job's time.  Rounds that do not fit are not asked
            for: a relation that is not decided is UNJUDGED, a job that was cut off leaves nothing.
    """
    plan = read_plan(folder)
    outcomes = judge_legs(folder, plan.legs)
    again = legs_to_repeat(plan.relations, outcomes)
    in_turn = () if again else rounds_due(plan.relations, outcomes, most_in_turn)
    return [
        *(shell_name(leg.name) for leg in plan.legs if leg.name in again),
        *map(shell_name, in_turn),
    ]


if __name__ == "__main__":
    fits = float(os.environ.get(LEGS_FIT, math.inf))
    sys.stdout.write("\n".join(doubtful_legs(Path(sys.argv[1]), fits)) + "\n")
