"""Whether a group of processes is gone: what was to be ended is looked for, not believed."""

from __future__ import annotations

import time
from pathlib import Path


def is_gone(group: int, within_seconds: float = 5.0) -> bool:
    """Tell whether all of ``group`` has ended within that time, if only to be reaped."""
    for _ in range(round(within_seconds / 0.05)):
        if not [each for each in _states(group) if each not in "ZX"]:
            return True
        time.sleep(0.05)
    return False


def _states(group: int) -> list[str]:
    states = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[2]) == group:
            states.append(fields[0])
    return states
