"""Print how fast OSU output is parsed, and against the least that reading its lines could cost.

    python benchmarks/parse_rate.py [MEGABYTES]

The yardstick is ``str.split`` of the same lines: no parser of columns can do without it.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable

from fabricproof.benchmarks.parsers import parse_text

RUNS = 9


def osu_text(megabytes: float) -> str:
    """Return many whole runs of osu_bw and osu_mbw_mr, one after the other."""
    sizes = [2**power for power in range(23)]
    bandwidth = (
        "# OSU MPI Bandwidth Test v7.2\n# Size      Bandwidth (MB/s)\n# Datatype: MPI_CHAR.\n"
    )
    bandwidth += "".join(f"{size:<10d}{size * 0.47:>18.2f}\n" for size in sizes)
    rates = (
        "# OSU MPI Multiple Bandwidth / Message Rate Test v7.2\n"
        "# [ pairs: 2 ] [ window size: 64 ]\n# Size                  MB/s        Messages/s\n"
    )
    rates += "".join(f"{size:<10d}{size * 0.9:>18.2f}{9e5:>18.2f}\n" for size in sizes)
    both = bandwidth + rates
    return both * max(1, int(megabytes * 1e6 / len(both)))


def best_times(*calls: Callable[[], object]) -> list[float]:
    """Return the least CPU time of each call, in s, out of a few runs in turn.

    In turn, so that what else runs on the machine disturbs all of them alike.
    """
    times: list[list[float]] = [[] for _ in calls]
    for _ in range(RUNS):
        for call, taken in zip(calls, times, strict=True):
            start = time.process_time()
            call()
            taken.append(time.process_time() - start)
    return [min(taken) for taken in times]


def main() -> None:
    """Measure and print."""
    text = osu_text(float(sys.argv[1]) if sys.argv[1:] not in ([], ["--full"]) else 4.0)
    megabytes = len(text) / 1e6
    small = osu_text(megabytes / 4)
    parsing, splitting, quarter = best_times(
        lambda: parse_text(text),
        lambda: [line.split() for line in text.split("\n")],
        lambda: parse_text(small),
    )
    print(f"parsed {megabytes:.1f} MB of OSU output at {megabytes / parsing:.1f} MB/s")
    ratio = parsing / splitting
    print(f"str.split of the same lines: {megabytes / splitting:.1f} MB/s, ratio {ratio:.1f}")
    print(f"a quarter of the text took {quarter / parsing:.2f} of the time (linear: 0.25)")


if __name__ == "__main__":
    main()
