"""Whether others keep this machine busy, and whether that is all that a run left open.

``python tests/busy_machine.py SITE`` says so of the last run of a site: status 0 where UNJUDGED is
what the judge has to say on a busy machine, else 1 with the first thing that speaks against it.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any


def others_hold_the_cores() -> bool:
    """Tell whether less than half of this machine's cores is idle while nothing of ours runs."""

    def ticks() -> list[int]:
        line = Path("/proc/stat").read_text(encoding="ascii").splitlines()[0]
        return [int(each) for each in line.split()[1:9]]  # man 5 proc: user to steal

    before = ticks()
    time.sleep(3)
    spent = [now - then for now, then in zip(ticks(), before, strict=True)]
    return (spent[3] + spent[4]) * 2 < sum(spent)


def other_cause(report: Mapping[str, Any]) -> str:
    """Return what a busy machine does not explain in a report; empty where it explains all.

    A busy machine leaves quantities UNJUDGED that say so: disturbed, or open for want of rounds.
    A leg without a reference or a proof of its path is open on a quiet machine too.

    Args:
        report: what ``fabricproof report --json`` prints.
    """
    if not report["counts"].get("PASS"):
        return "nothing is PASS"
    for leg in report["legs"]:
        if leg["verdict"] in ("PASS", "SKIPPED"):
            continue
        unjudged = [each for each in leg["quantities"] if each["verdict"] == "UNJUDGED"]
        explained = all(each.get("disturbance") or each.get("is_open") for each in unjudged)
        if leg["verdict"] != "UNJUDGED" or not unjudged or not explained:
            return f"{leg['verdict']} {leg['check']} {leg['stack']}: {leg['reason']}"
    return ""


def run_of(runs: Sequence[Mapping[str, Any]]) -> str:
    """Return the newest run that was no second look at another one."""
    return next(each["run_id"] for each in reversed(runs) if "night-look" not in each["labels"])


def _told(*arguments: str) -> Any:
    """Return what a command says as JSON; its status is that of the verdict."""
    program = Path(sys.executable).with_name("fabricproof")
    words = [program, *arguments, "--json"]
    return json.loads(subprocess.run(words, stdout=subprocess.PIPE, check=False).stdout)


def main(site: str) -> str | int:
    """Say of the last run of a site whether a busy machine explains what is open in it."""
    if not others_hold_the_cores():
        return "UNJUDGED, and nobody else holds the cores of this machine: red"
    run_id = run_of(_told("runs", "--site", site)["runs"])
    if cause := other_cause(_told("report", run_id, "--site", site)):
        return f"a busy machine does not explain this in run {run_id}: {cause}"
    sys.stdout.write("== UNJUDGED for what others do on the cores of this machine: not red\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
