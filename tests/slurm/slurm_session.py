"""How the tests of this folder call ``fabricproof run`` on a real Slurm."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

#: a job waits for the two cores of this machine, and for the jobs of others before it
PATIENCE_SECONDS = 540


@dataclass(frozen=True, kw_only=True)
class Session:
    """An environment in which ``fabricproof`` finds the cluster, and how to call it."""

    environment: dict[str, str]

    def run(self, *arguments: str) -> tuple[int, dict[str, Any]]:
        """Run ``fabricproof run --json ARGUMENTS``; return its status and what it printed."""
        ended = subprocess.run(
            [
                Path(sys.executable).parent / "fabricproof",
                "run",
                *("--site", "vcluster", "--json"),
                *arguments,
            ],
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=PATIENCE_SECONDS,
            check=False,
        )
        assert ended.stdout, ended.stderr
        return ended.returncode, json.loads(ended.stdout)
