"""Whether others keep this machine busy, so that a judge may leave things open."""

from __future__ import annotations

import time
from pathlib import Path


def others_hold_the_cores() -> bool:
    """Tell whether less than half of this machine's cores is idle while nothing of ours runs."""

    def ticks() -> list[int]:
        line = Path("/proc/stat").read_text(encoding="ascii").splitlines()[0]
        return [int(each) for each in line.split()[1:9]]  # man 5 proc: user to steal

    before = ticks()
    time.sleep(3)
    spent = [now - then for now, then in zip(ticks(), before, strict=True)]
    return (spent[3] + spent[4]) * 2 < sum(spent)
