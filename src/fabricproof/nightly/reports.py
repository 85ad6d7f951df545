"""The reports that a site wants after each night, by ``fabricproof report`` itself."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from fabricproof.core.errors import ExitStatus
from fabricproof.site import Site

#: a report of a large site takes seconds; one that takes this long is stuck
REPORT_SECONDS = 900


def write_reports(site: Site, run_id: str) -> Iterator[str]:
    """Write the reports that the site asks for; one that fails changes no verdict and is said."""
    wanted = {
        kind: path
        for kind in ("html", "junit", "prometheus")
        if (path := getattr(site.night, kind)) is not None
    }
    if not wanted or not run_id:
        return
    options = [part for kind, path in wanted.items() for part in (f"--{kind}", path)]
    program = str(Path(sys.executable).with_name("fabricproof"))
    try:
        done = subprocess.run(
            [program, "report", run_id, "--site", str(site.folder), *options],
            capture_output=True,
            text=True,
            timeout=REPORT_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        yield f"no report: {error}"
        return
    if done.returncode >= int(ExitStatus.DATA) or done.returncode == int(ExitStatus.USAGE):
        yield f"no report: {' '.join(done.stderr.split())[-300:]}"
    else:
        yield f"reports: {', '.join(wanted.values())}"
