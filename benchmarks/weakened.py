"""A rail that receives ever less slowly, until nobody sees it: made for real, and simulated.

    .venv/bin/python benchmarks/weakened.py [--live DRAWS] [--tries N] [--picture FILE.svg]

Without ``--live`` it simulates alone (``--tries`` campaigns of 16 nodes on four leaves for each
rate and noise).  With it a virtual cluster of the same shape comes up (root), one node and rail a
draw receive at each rate, and the kernel's word counts (``--no-confirm``); rows go to
``work/weakened.jsonl``, of which ``--picture`` draws what is there beside what is simulated.
"""

from __future__ import annotations

import argparse
import json
import random
import subprocess
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from pairs_live import ENVIRONMENT, LEAVES, NODES, ROOT, cluster, vcluster
from simulated_pairs import Setting, run_campaign

from fabricproof.pairs import SuspectKind

ROWS = ROOT / "work" / "weakened.jsonl"

#: what the rail still receives, in percent of its rate
RATES = (95, 92, 90, 89, 88, 87, 86, 84, 80, 70, 50)

#: standard deviation of a value, as a part of it: what the model has, and what was seen live
NOISES = (0.03, 0.005)

_WIDTH, _HEIGHT, _LEFT, _BOTTOM = 640, 300, 60, 250


def simulated(rate: int, noise: float, tries: int) -> tuple[int, int]:
    """Return how many campaigns were red, and in how many the rail alone was blamed."""
    setting = Setting(
        num_nodes=NODES,
        per_leaf=NODES // LEAVES,
        num_faults=1,
        noise=noise,
        strength=(rate / 100, rate / 100),
        kinds=(SuspectKind.RAIL,),
    )
    came = [run_campaign(setting, seed) for seed in range(tries)]
    red = [each for each in came if each.verdict == "FAIL"]
    return len(red), sum(len(each.blamed) == 1 and bool(each.located) for each in red)


def measured(draws: int) -> Iterator[dict[str, object]]:
    """Yield the rows of so many draws of a node and a rail, each at every rate."""
    with cluster() as command:
        for draw in range(1, draws + 1):
            dice = random.Random(f"weakened {draw}")
            place = (f"vc{dice.randint(1, NODES)}", f"rail{dice.randint(0, 1)}")
            for rate in RATES:
                vcluster("fault", *place, "--rate", f"{rate}%", "--direction", "in")
                done = subprocess.run(
                    [*command, "--no-confirm"],
                    env=ENVIRONMENT,
                    capture_output=True,
                    text=True,
                    timeout=560,
                    check=False,
                )
                vcluster("fault", *place, "--clear")
                if not done.stdout:
                    raise SystemExit(done.stderr)
                record = json.loads(done.stdout)
                blame = [each for result in record["results"] for each in result["blame"]]
                names = {(each["name"], each["where"]["direction"]) for each in blame}
                yield {
                    "draw": draw,
                    "rate": rate,
                    "verdict": record["verdict"],
                    "blamed": sorted(map(list, names)),
                    "is_right": names == {(" ".join(place), "receive")},
                }


def kept() -> dict[int, list[dict[str, object]]]:
    """Return the rows that were measured so far, by rate."""
    found: dict[int, list[dict[str, object]]] = defaultdict(list)
    for line in ROWS.read_text().splitlines() if ROWS.exists() else ():
        row = json.loads(line)
        found[row["rate"]].append(row)
    return found


def _place(rate: float, share: float) -> str:
    across = _LEFT + (RATES[0] - rate) / (RATES[0] - RATES[-1]) * (_WIDTH - _LEFT - 20)
    return f"{across:.1f},{_BOTTOM - share * (_BOTTOM - 40):.1f}"


def _text(at: str, words: str, more: str = "") -> str:
    x, y = at.split(",")
    return f'<text x="{x}" y="{y}" {more}>{words}</text>'


def picture(lines: Mapping[float, Sequence[float]], live: Mapping[int, float], title: str) -> str:
    """Return shares of right blame against rates as SVG: a line for each noise, dots for live."""
    parts = [f'<rect width="{_WIDTH}" height="{_HEIGHT}" fill="#fff"/>', _text("20,20", title)]
    for share in (0, 0.5, 1):
        parts.append(_text(_place(RATES[0] + 0.5, share), f"{share:.0%}", 'text-anchor="end"'))
        ends = f"{_place(RATES[0], share)} {_place(RATES[-1], share)}"
        parts.append(f'<polyline points="{ends}" stroke="#ddd"/>')
    for rate in (95, 90, 86, 80, 70, 50):
        x, y = _place(rate, 0).split(",")
        parts.append(_text(f"{x},{float(y) + 20:.0f}", f"{rate} %", 'text-anchor="middle"'))
    for (noise, shares), colour in zip(lines.items(), ("#d55e00", "#0072b2"), strict=True):
        points = " ".join(_place(*each) for each in zip(RATES, shares, strict=True))
        parts.append(f'<polyline points="{points}" fill="none" stroke="{colour}"/>')
        words = f"simulated, values scatter by {noise:.1%}"
        at = f"380,{160 + 20 * list(lines).index(noise)}"
        parts.append(_text(at, words, f'fill="{colour}"'))
    for rate, share in live.items():
        x, y = _place(rate, share).split(",")
        parts.append(f'<circle cx="{x}" cy="{y}" r="4" fill="#000"/>')
    parts.append(_text("380,200", "dots: live"))
    style = 'xmlns="http://www.w3.org/2000/svg" font-family="sans-serif" font-size="12"'
    return f'<svg {style} viewBox="0 0 {_WIDTH} {_HEIGHT}">\n' + "\n".join(parts) + "\n</svg>\n"


def main() -> None:
    """Measure and simulate; print a table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--live", type=int, default=0, help="draws")
    parser.add_argument("--tries", type=int, default=5, help="campaigns of each rate and noise")
    parser.add_argument("--picture", type=Path)
    given = parser.parse_args()
    for row in measured(given.live) if given.live else ():
        ROWS.parent.mkdir(exist_ok=True)
        with ROWS.open("a") as file:
            file.write(json.dumps(row) + "\n")
        print(row, flush=True)
    seen, lines = kept(), {noise: [0.0] * len(RATES) for noise in NOISES}
    print("| receives | " + " | ".join(f"scatter {noise:.1%}" for noise in NOISES) + " | live |")
    print("| --- " * (len(NOISES) + 2) + "|")
    for at, rate in enumerate(RATES):
        cells = []
        for noise in NOISES:
            red, right = simulated(rate, noise, given.tries)
            lines[noise][at] = right / given.tries
            cells.append(f"{red} red, {right} right of {given.tries}")
        rows = seen[rate]
        red, right = (sum(map(bool, each)) for each in _told(rows))
        print(f"| {rate} % | {' | '.join(cells)} | {red} red, {right} right of {len(rows)} |")
    if given.picture:
        live = {
            rate: sum(bool(each["is_right"]) for each in rows) / len(rows)
            for rate, rows in seen.items()
            if rows
        }
        title = "A rail that receives less than it should: blamed, it alone (16 nodes)"
        given.picture.write_text(picture(lines, live, title))


def _told(rows: Sequence[Mapping[str, object]]) -> tuple[list[bool], list[bool]]:
    red = [each["verdict"] == "FAIL" for each in rows]
    return red, [bool(each["is_right"]) and is_red for each, is_red in zip(rows, red, strict=True)]


if __name__ == "__main__":
    main()
