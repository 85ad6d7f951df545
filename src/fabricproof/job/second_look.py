"""The judge inside a job: one process beside the script of the legs, asked what is to run next.

``python -m fabricproof.job.second_look FOLDER`` says ``ready``, and then answers each line of its
input with one line.  A line holds how many legs still fit in the job's time (empty: unknown); the
answer holds the legs to run next, a second look or more rounds.  An empty answer ends the job.
"""

from __future__ import annotations

import math
import os
import sys
from collections.abc import Callable, Iterable
from pathlib import Path

from fabricproof.core.errors import FabricproofError
from fabricproof.job.leg import read_plan, shell_name
from fabricproof.job.outcomes import judge_legs
from fabricproof.job.relations.judge import legs_to_repeat, rounds_due


def doubtful_legs(folder: Path, most_in_turn: float = math.inf) -> list[str]:
    """Return the shell names of the legs below ``folder`` to run next, in that order.

    First those that a second look might clear, then those that a relation wants in turn.
    ``most_in_turn`` legs still fit in the job's time, and rounds that do not are not asked for: a
    relation that is not decided is UNJUDGED, a job that was cut off leaves nothing.
    """
    plan = read_plan(folder)
    outcomes = judge_legs(folder, plan.legs)
    again = legs_to_repeat(plan.relations, outcomes)
    in_turn = () if again else rounds_due(plan.relations, outcomes, most_in_turn)
    return [shell_name(leg.name) for leg in plan.legs if leg.name in again] + [
        *map(shell_name, in_turn)
    ]


def answer(next_legs: Callable[[Path, float], Iterable[str]]) -> None:
    """Answer the script's questions about the folder on the command line, until it ends.

    What ``next_legs`` itself starts or prints has no part in the conversation.
    """
    folder = Path(sys.argv[1])
    questions, answers = os.fdopen(os.dup(0)), os.fdopen(os.dup(1), "w")
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(2, 1)
    print("ready", file=answers, flush=True)
    try:
        for line in questions:
            legs = next_legs(folder, float(line.strip() or math.inf))
            print(*legs, file=answers, flush=True)
    except FabricproofError as error:
        sys.exit(str(error))


if __name__ == "__main__":
    answer(doubtful_legs)
