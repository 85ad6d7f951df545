"""Run inside the job after its legs: print the legs that deserve a second attempt.

``python -m fabricproof.campaign.second_look FOLDER``
"""

from __future__ import annotations

import sys
from pathlib import Path

from fabricproof.campaign.across import legs_to_repeat
from fabricproof.campaign.all_legs import judge_legs
from fabricproof.campaign.planned import read_plan
from fabricproof.campaign.script import shell_name


def doubtful_legs(folder: Path) -> list[str]:
    """Return the shell names of the legs below ``folder`` that a second look might clear."""
    plan = read_plan(folder)
    outcomes = judge_legs(folder, plan.legs)
    again = legs_to_repeat(plan.relations, outcomes)
    return [shell_name(leg.name) for leg in plan.legs if leg.name in again]


if __name__ == "__main__":
    sys.stdout.write("\n".join(doubtful_legs(Path(sys.argv[1]))) + "\n")
