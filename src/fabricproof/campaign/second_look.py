"""Run inside the job after its legs: print the legs that deserve a second attempt.

``python -m fabricproof.campaign.second_look FOLDER``
"""

from __future__ import annotations

import sys
from pathlib import Path

from fabricproof.campaign.leg import read_plan
from fabricproof.campaign.outcome import judge_leg, needs_second_look
from fabricproof.campaign.script import shell_name


def doubtful_legs(folder: Path) -> list[str]:
    """Return the shell names of the legs below ``folder`` that a second look might clear."""
    return [
        shell_name(leg.name)
        for leg in read_plan(folder)
        if needs_second_look(judge_leg(folder, leg))
    ]


if __name__ == "__main__":
    sys.stdout.write("\n".join(doubtful_legs(Path(sys.argv[1]))) + "\n")
