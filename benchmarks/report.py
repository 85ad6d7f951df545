"""Print how large and how slow the HTML report of a large site is, and what each number costs.

    python benchmarks/report.py [NODES RAILS NIGHTS]

By default 100 nodes x 4 rails x 23 sizes x 30 nights: 276 000 raw numbers.  The yardsticks are the
same raw numbers as plain JSON, and ``json.dumps`` of them.
"""

from __future__ import annotations

import dataclasses
import json
import resource
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "report" / "html"))

from made_report import made_report

from fabricproof.report.formats.page import render_html
from fabricproof.report.model import ReportData

MB = 1e6


def plain_json(data: ReportData) -> str:
    """Return every raw number with its key, as JSON lines would have them."""
    return "\n".join(
        json.dumps({**dataclasses.asdict(key), **dataclasses.asdict(each)})
        for key, numbers in data.raw.items()
        for each in numbers
    )


def main() -> None:
    """Measure and print."""
    sizes = ("100", "4", "30") if sys.argv[1:] == ["--full"] else sys.argv[1:4] or ("20", "4", "10")
    nodes, rails, nights = map(int, sizes)
    data = made_report(
        num_nodes=nodes, num_rails=rails, nights=nights, all_pairs=False, latency=False
    )
    num = sum(map(len, data.raw.values()))
    start = time.perf_counter()
    page = render_html(data)
    rendering = time.perf_counter() - start
    start = time.perf_counter()
    plain = plain_json(data)
    writing = time.perf_counter() - start
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"{nodes} nodes, {rails} rails, 23 sizes, {nights} nights: {num} raw numbers")
    print(f"page {len(page) / MB:.2f} MB, {len(page) / num:.1f} bytes a number")
    print(f"the same numbers as plain JSON: {len(plain) / len(page):.0f} times as large")
    print(f"rendered in {rendering:.1f} s, {rendering / writing:.2f} of the time of plain JSON")
    print(f"peak memory of all of this {peak:.0f} MiB")


if __name__ == "__main__":
    main()
