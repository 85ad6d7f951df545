"""Print what one night more costs the commands that look back, in a short and in a long history.

    python benchmarks/growth.py [NIGHTS LONGER]

Nights are those of the model of ``make proof``, of four nodes.  What counts is the last column: the
CPU time of a night in the longer history over that in the shorter, 1 where each costs the same.
"""

from __future__ import annotations

import json
import random
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from fabricproof.history.compare.comparison import Asked, compare_sides
from fabricproof.history.compare.sides import History, choose_side
from fabricproof.history.machines import Machines
from fabricproof.history.store import Store, open_store
from fabricproof.history.trend.find import Question, find_trend
from proof.machine.model import SOCKETS, ModelMachine
from proof.nights import SITE, night_of, run_id_of, write_nights

NODES = ("n1", "n2", "n3", "n4")


def first_question(perflogs: Path, name: str, *, turned: bool) -> None:
    """Read all records anew, as they are or with the keys of each in another order."""
    path = perflogs / name / SITE / "compute" / "records.jsonl"
    path.parent.mkdir(parents=True)
    text = (perflogs / SITE / "compute" / "records.jsonl").read_text()
    if turned:
        records = map(json.loads, text.splitlines())
        text = "".join(f"{json.dumps(dict(reversed(each.items())))}\n" for each in records)
    path.write_text(text)
    open_store(perflogs / name, SITE)


def compared(store: Store, machines: Machines) -> None:
    """Compare the first half of the nights with the second."""
    history = History(runs=store.runs, machines=machines)
    half = len(store.runs) // 2
    sides = (range(half), range(half, 2 * half))
    first, second = (choose_side(",".join(map(run_id_of, each)), history) for each in sides)
    compare_sides(store, history, first, second, Asked())


def seconds_of(nights: int) -> dict[str, float]:
    """Return the CPU seconds that each command takes over so many nights."""
    machine = ModelMachine(fabric=SOCKETS, nodes=NODES, chance=random.Random(nights))
    with tempfile.TemporaryDirectory(prefix="growth-") as place:
        perflogs = Path(place)
        store = write_nights(perflogs, [night_of(machine) for _ in range(nights)])
        machines = Machines.of_site(perflogs, SITE)
        asked: dict[str, Callable[[], object]] = {
            "first question": lambda: first_question(perflogs, "again", turned=False),
            "... of another hand": lambda: first_question(perflogs, "turned", turned=True),
            "trend": lambda: find_trend(store, Question(last=nights), machines),
            "compare": lambda: compared(store, machines),
        }
        found = {}
        for name, call in asked.items():
            start = time.process_time()
            call()
            found[name] = time.process_time() - start
    return found


def main() -> None:
    """Measure and print."""
    words = ["36", "336"] if sys.argv[1:] == ["--full"] else sys.argv[1:3] or ["12", "24"]
    short, long = map(int, words)
    seconds_of(7)  # what is loaded once
    few, many = seconds_of(short), seconds_of(long)
    print(f"{'CPU ms a night':20} {short:>4} nights {long:>4} nights  ratio")
    for name in few:
        less, more = 1000 * few[name] / short, 1000 * many[name] / long
        print(f"{name:20} {less:11.1f} {more:11.1f} {more / less:6.2f}")


if __name__ == "__main__":
    main()
