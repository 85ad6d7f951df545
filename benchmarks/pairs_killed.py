"""Campaigns that are killed at a drawn moment and resumed, on a virtual cluster, with a table.

    .venv/bin/python benchmarks/pairs_killed.py HOW[:SEED] ...

HOW is ``SIGKILL``, ``SIGTERM`` or ``SIGINT`` of ``pairs run``, ``scancel`` of its job, or ``node``:
one dies.  Each brings up a cluster of its own (16 nodes, four leaves, two rails; root) and
takes it down.  No round may be measured twice, and none be lost.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pairs_live import ENVIRONMENT, NAME, NODES, WORK, cluster, vcluster

SIGNALS = ("SIGKILL", "SIGTERM", "SIGINT")
BIN = Path("/run/fabricproof/vcluster") / NAME / "bin"

#: runs with ``--resume`` at most, and words of progress before something is killed
_MOST_RESUMED, _MOST_WORDS = 3, 12


def ended_values(path: Path) -> Iterator[dict[str, Any]]:
    """Yield the values of the rounds that ended in a record, as it stands in the file."""
    values: list[dict[str, Any]] = []
    for line in path.read_text().splitlines(keepends=True):
        fields = json.loads(line) if line.endswith("\n") else {"record": "cut"}
        if fields["record"] == "value":
            values.append(fields)
        elif fields["record"] == "end":
            yield from values
            values = []


def counts(folder: Path) -> tuple[int, int, int]:
    """Return how many pairs in rounds were planned, how many are not there, and how many twice."""
    plan = json.loads((folder / "campaign.json").read_text())
    planned = {
        (net_path, each["number"], frozenset(plan["nodes"][end] for end in pair))
        for each in plan["rounds"]
        for net_path in each["net_paths"]
        for pair in each["pairs"]
    }
    seen = Counter(
        (net_path, each["round"], frozenset((each["from"], each["to"])))
        for launch in folder.glob("launch.*")
        if (launch / "record.jsonl").exists()
        for net_path in [json.loads((launch / "launch.json").read_text())["net_path"]]
        for each in ended_values(launch / "record.jsonl")
        if each["mode"] == "pingpong"
    )
    assert set(seen) <= planned
    return len(planned), len(planned - set(seen)), sum(each > 1 for each in seen.values())


def _kill(how: str, process: subprocess.Popen[str], node: str) -> None:
    if how in SIGNALS:
        number = getattr(signal, how)
        if how == "SIGINT":  # Ctrl-C reaches ReFrame as well
            os.killpg(process.pid, number)
        else:
            process.send_signal(number)
    elif how == "scancel":
        jobs = subprocess.run(
            [BIN / "squeue", "-h", "-o", "%A"], capture_output=True, text=True, check=True
        ).stdout.split()
        subprocess.run([BIN / "scancel", *jobs], check=True)
    else:
        vcluster("kill", node)


def _resumed(command: list[Path | str], folder: Path) -> dict[str, Any]:
    done = subprocess.run(
        [*command, "--no-confirm", "--resume", folder.name],
        env=ENVIRONMENT, capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    print(done.stderr, file=sys.stderr)
    return dict(json.loads(done.stdout))


def killed(how: str, seed: int) -> dict[str, Any]:
    """Kill one campaign, resume it, and return what it came to."""
    dice = random.Random(f"{how} {seed}")
    full = ["--full"] if dice.random() < 0.7 else []
    words, pause, node = dice.randint(1, _MOST_WORDS), dice.uniform(0, 2), dice.randint(1, NODES)
    with cluster() as command:
        process = subprocess.Popen(
            [*command, *full, "--no-confirm"],
            env=ENVIRONMENT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            start_new_session=True,
        )  # fmt: skip
        assert process.stderr is not None
        said = [process.stderr.readline() for _ in range(words)]
        time.sleep(pause)
        _kill(how, process, f"vc{node}")
        out, rest = process.communicate(timeout=300)
        print("".join(said), rest, file=sys.stderr)
        folder = max((WORK / "pairs").iterdir())
        row: dict[str, Any] = {"how": how, "seed": seed, "full": bool(full), "words": words}
        row |= {"pause_s": round(pause, 2), "status": process.returncode, "after": counts(folder)}
        record = json.loads(out) if out else {}
        if how == "node":
            left = [pair for each in record["left"] for pair in each["pairs"]]
            row |= {"node": f"vc{node}", "verdict_without": record["verdict"]}
            row["others_left"] = sum(f"vc{node}" not in pair for pair in left)
            row["of_others"] = sorted({each["verdict"] for each in record["results"]})
            vcluster("revive", f"vc{node}")
        row["resumed"] = 0
        while (not record or record["left"]) and row["resumed"] < _MOST_RESUMED:
            record = _resumed(command, folder)
            row["resumed"] += 1
    row |= {"verdict": record["verdict"], "end": counts(folder)}
    row["blame"] = [one["name"] for each in record["results"] for one in each["blame"]]
    return row


def main(words: list[str]) -> None:
    """Kill as the words say, and print a table."""
    print("| how, seed | after words, s | status | planned, lacking, twice | resumed | verdict |")
    print("| --- " * 6 + "|", flush=True)
    for how, _, seed in (word.partition(":") for word in words):
        row = killed(how, int(seed or 1))
        with (WORK / "killed.jsonl").open("a") as file:
            file.write(json.dumps(row) + "\n")
        cells = (f"{how}:{row['seed']}", f"{row['words']}, {row['pause_s']}", row["status"])
        cells += (f"{row['after']} then {row['end']}", row["resumed"], row["verdict"])
        print("| " + " | ".join(str(each) for each in cells) + " |", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
