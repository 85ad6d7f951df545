"""How the tests of this folder call ``fabricproof run`` on a real Slurm."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]

#: a job waits for the two cores of this machine, and for the jobs of others before it
PATIENCE_SECONDS = 540


@dataclass(frozen=True, kw_only=True)
class Session:
    """An environment in which ``fabricproof`` finds the cluster, and how to call it."""

    environment: dict[str, str]

    def run(self, *arguments: str) -> tuple[int, dict[str, Any]]:
        """Run ``fabricproof run --json ARGUMENTS``; return its status and what it printed."""
        return self.ask("run", *arguments, seconds=PATIENCE_SECONDS)

    def ask(
        self, command: str, *arguments: str, seconds: float = 120
    ) -> tuple[int, dict[str, Any]]:
        """Return exit status and answer of a command of ours with ``--json``."""
        ended = subprocess.run(
            [
                Path(sys.executable).parent / "fabricproof",
                command,
                *("--site", "vcluster", "--json"),
                *arguments,
            ],
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=seconds,
            check=False,
        )
        assert ended.stdout, ended.stderr
        return ended.returncode, json.loads(ended.stdout)


def bandwidth(session: Session) -> dict[str, dict[str, Any]]:
    """Run ``OsuBandwidth`` on Open MPI; return its legs by path."""
    check = str(ROOT / "checks" / "pt2pt" / "pairs.py")
    _, result = session.run("-c", check, "-n", "^OsuBandwidth%", "-p", "openmpi5")
    rows = [each for each in result["legs"] if each["verdict"] != "SKIPPED"]
    legs = {each["leg"]: each for each in rows if not each["relation"]}
    assert legs, "nothing was measured"
    return legs


def is_starved(leg: dict[str, Any]) -> bool:
    """Tell whether a leg is UNJUDGED and each bad number of it says that others took the cores."""
    bad = [each for each in leg["quantities"] if each["verdict"] not in {None, "", "PASS"}]
    causes = {each["disturbance"] for each in bad}
    return bool(leg["verdict"] == "UNJUDGED" and causes == {"starved_cores"})


def is_green(leg: dict[str, Any]) -> bool:
    """Tell whether a leg is PASS, or what a busy machine makes of it; never FAIL."""
    return leg["verdict"] == "PASS" or is_starved(leg)


def is_red(leg: dict[str, Any]) -> bool:
    """Tell whether a leg is FAIL, or what a busy machine makes of it; never PASS."""
    return leg["verdict"] == "FAIL" or is_starved(leg)


def quantity(leg: dict[str, Any], name: str) -> dict[str, Any]:
    """Return one quantity of a leg."""
    (found,) = (each for each in leg["quantities"] if each["name"] == name)
    return dict(found)
