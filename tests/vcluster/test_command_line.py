"""What the command says without a cluster, to the letter: golden copies in golden/command.

After a change that is meant: run this file with FABRICPROOF_REWRITE_GOLDEN=1, then read the
difference.
"""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

_GOLDEN = Path(__file__).parent / "golden" / "command"
_NOBODY = "--name nobody-has-this-one"
#: name of the golden file -> arguments
CASES = {
    "none": "",
    "help": "--help",
    **{
        f"help-{verb}": f"{verb} -h"
        for verb in ("up", "down", "status", "env", "exec", "shell", "kill", "revive", "fault")
    },
    "unknown-command": "fly",
    "unknown-option": "up --speed=1gbit",
    "unknown-option-of-all": "--verbose up",
    "kind": "up --kind vm",
    "rate": "up --rate fast",
    "rate-range": "up --rate 1000gbit",
    "rail-rate": "up --rail-rate 200mbit",
    "share": "up --share /no/such/folder",
    "empty": "status --name ''",
    "status-down": f"status {_NOBODY}",
    "status-down-json": f"status --json {_NOBODY}",
    "env-down": f"env {_NOBODY}",
    "exec-nothing": "exec vc1",
    "fault-none": f"fault vc1 rail0 {_NOBODY}",
    "fault-two": f"fault vc1 rail0 --down --clear {_NOBODY}",
    "fault-direction": f"fault vc1 rail0 --queue 5000 --direction in {_NOBODY}",
    "fault-cpu": f"fault vc1 --cpu 0.5 {_NOBODY}",
    "fault-loss": f"fault vc1 rail0 --loss 101 {_NOBODY}",
    "fault-queue": f"fault vc1 rail0 --queue 5 {_NOBODY}",
    "fault-mtu": f"fault vc1 rail0 --mtu 9001 {_NOBODY}",
}


def said(program: list[str], arguments: str) -> str:
    """Return status, output and errors of a call, as a golden file has them."""
    environment = {**os.environ, "COLUMNS": "100", "TERM": "dumb"}
    environment.pop("FABRICPROOF_VCLUSTER", None)
    done = subprocess.run(
        [*program, *shlex.split(arguments)], env=environment, capture_output=True, text=True,
        timeout=60, check=False,
    )  # fmt: skip
    return f"status {done.returncode}\n--- out\n{done.stdout}--- err\n{done.stderr}"


@pytest.mark.parametrize("case", CASES)
def test_fabricproof_vcluster_says_what_it_always_said(case: str) -> None:
    text = said([sys.executable, "-m", "fabricproof.cli", "vcluster"], CASES[case])
    golden = _GOLDEN / f"{case}.txt"
    if os.environ.get("FABRICPROOF_REWRITE_GOLDEN"):
        golden.write_text(text)
    assert text == golden.read_text()


@pytest.mark.parametrize("case", CASES)
def test_vcluster_says_the_same_of_itself(case: str) -> None:
    text = said([sys.executable, "-m", "vcluster"], CASES[case])
    told = (_GOLDEN / f"{case}.txt").read_text()
    for ours, theirs in (("fabricproof vcluster", "vcluster"), ("fabricproof:", "vcluster:")):
        told = told.replace(ours, theirs)
    assert text.split() == told.split(), "but for where lines are broken"
