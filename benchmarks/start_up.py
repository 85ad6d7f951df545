"""How long until something happens: ``judge`` from cold, a plan, ReFrame's first job submitted.

    .venv/bin/python benchmarks/start_up.py [CLUSTER]

Times are printed beside that of ``python -c pass`` in the same run, as ratios.  Without a virtual
cluster the last part is left out, and says so.
"""

from __future__ import annotations

import os
import resource
import statistics
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).parents[1]
FABRICPROOF = ROOT / "bin" / "fabricproof"
TABLE = ROOT / "tests" / "replays" / "c5n_osu_bw.out"
REPEATS = 7


def median_seconds(command: list[str]) -> float:
    """Return the median wall time of ``command`` over some runs, in seconds."""
    times = []
    for _ in range(REPEATS):
        start = time.perf_counter()
        subprocess.run(command, capture_output=True, check=False)
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def cpu_seconds(*command: str) -> float:
    """Return the CPU time of ``command`` and of what it starts, in seconds."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    environment = {**os.environ, "FABRICPROOF_SITE": "vcluster"}
    subprocess.run(command, env=environment, capture_output=True, check=False)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def first_job_seconds(cluster: str) -> float | None:
    """Return the time from the start of a run to ReFrame's first submitted job, in seconds."""
    if not (Path("/run/fabricproof/vcluster") / cluster).is_dir():
        return None
    start = time.perf_counter()
    process = subprocess.Popen(
        [
            *(FABRICPROOF, "run", "--site", "vcluster"),
            *("-t", "ethernet", "-n", "OsuLatency", "-p", "openmpi5"),
        ],
        env={**os.environ, "FABRICPROOF_VCLUSTER": cluster},
        stdout=subprocess.PIPE,
        text=True,
    )
    queue = Path("/run/fabricproof/vcluster") / cluster / "bin" / "squeue"
    while process.poll() is None:
        if subprocess.run([queue, "-h"], capture_output=True, text=True, check=False).stdout:
            break
        time.sleep(0.02)
    seconds = time.perf_counter() - start
    process.communicate()
    return seconds


def main() -> None:
    """Measure and print."""
    cluster = sys.argv[1] if sys.argv[1:] not in ([], ["--full"]) else "vcluster"
    bare = median_seconds([sys.executable, "-c", "pass"])
    judge = median_seconds([str(FABRICPROOF), "judge", str(TABLE), "--link", "100GbE"])
    print(f"python -c pass      {bare:6.3f} s")
    print(f"fabricproof judge   {judge:6.3f} s, {judge / bare:.1f} times as long")
    listed = cpu_seconds(str(FABRICPROOF.with_name("reframe")), "-l")
    planned = cpu_seconds(str(FABRICPROOF), "plan")
    print(f"fabricproof plan    {planned:6.1f} s of CPU, {planned / listed:.1f} times reframe -l")
    first = first_job_seconds(cluster)
    if first is None:
        print(f"first job submitted: left out, no virtual cluster {cluster!r} is up")
    else:
        print(f"first job submitted {first:6.3f} s after `fabricproof run`")


if __name__ == "__main__":
    main()
