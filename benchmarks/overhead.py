"""What the harness costs over the bare benchmark: the quick suite against the same srun commands.

Both in one run on the same virtual cluster, so that the ratio means something on a noisy machine:

    .venv/bin/python benchmarks/overhead.py [--full | CLUSTER [OPTION_OF_RUN...]]

The short form is one stack, as ``overhead.py vcluster -p openmpi5``; ``--full`` is all.

Prints the wall time of ``fabricproof run -t quick -t ethernet``, the summed wall time of the same
``srun`` commands started one after the other without wrapper, counters, judge, ReFrame or job
scripts, their ratio, the number of jobs and node-seconds per verdict, and where the rest goes.
"""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).parents[1]
FABRICPROOF = ROOT / "bin" / "fabricproof"
SRUN_OPTIONS = "-N2 -n2 --ntasks-per-node=1"


def run_suite(cluster: str, options: list[str]) -> tuple[float, dict]:
    """Return the wall time of the quick suite in seconds, and its result."""
    start = time.perf_counter()
    done = subprocess.run(
        [
            FABRICPROOF,
            *("run", "--site", "vcluster", "--json", "-t", "quick", "-t", "ethernet"),
            "--keep-stage-files",
            *options,
        ],
        env={**os.environ, "FABRICPROOF_VCLUSTER": cluster},
        capture_output=True,
        text=True,
        check=False,
    )
    return time.perf_counter() - start, json.loads(done.stdout)


def bare_script(folder: Path, stack: str) -> str:
    """Return a shell script that runs the legs of one job with nothing around the benchmark."""
    plan = json.loads((folder / "plan.json").read_text())
    lines = [". /usr/share/lmod/lmod/init/bash", f"module use {ROOT}/.stacks/modulefiles"]
    lines.append(f"module load {stack}")
    pmi = "pmix" if stack.startswith("openmpi") else "pmi2"
    for leg in plan["legs"]:
        settings = " ".join(
            f"{key}={shlex.quote(value)}" for key, value in leg["environment"].items()
        )
        lines += [
            f"env {settings} srun --mpi={pmi} {SRUN_OPTIONS} {shlex.join(command)}"
            for command in leg["commands"]
        ]
    return "\n".join(lines) + "\n"


def run_bare(cluster: str, run_id: str) -> float:
    """Return the summed wall time of the bare srun commands in seconds."""
    where = Path("/run/fabricproof/vcluster") / cluster
    environment = {
        **os.environ,
        "PATH": f"{where / 'bin'}:{os.environ['PATH']}",
        "SLURM_CONF": str(where / "etc" / "slurm.conf"),
    }
    total = 0.0
    for plan in sorted((ROOT / "work" / "stage" / run_id / "vcluster").glob("*/*/*/plan.json")):
        script = bare_script(plan.parent, plan.parent.parent.name)
        # Legs between two nodes without MPI (iperf3) are a script of ours beside the plan, which
        # needs a folder for what it tells.
        with tempfile.TemporaryDirectory(dir=plan.parent) as leg:
            start = time.perf_counter()
            done = subprocess.run(
                ["bash", "-e", "-c", script],
                cwd=plan.parent,
                env={**environment, "FABRICPROOF_LEG": leg},
                capture_output=True,
                text=True,
                check=False,
                timeout=300,
            )
            total += time.perf_counter() - start
        if done.returncode != 0:
            sys.exit(f"{plan.parent}: the bare commands failed\n{script}\n{done.stderr[-2000:]}")
    return total


def main() -> None:
    """Measure and print."""
    full = sys.argv[1:] == ["--full"]
    words = sys.argv[1:] if sys.argv[1:] and not full else ["vcluster"]
    options = words[1:] or ([] if full else ["-p", "openmpi5"])
    suite_seconds, result = run_suite(words[0], options)
    bare_seconds = run_bare(words[0], result["run_id"])
    legs = [leg for leg in result["legs"] if leg["verdict"] != "SKIPPED"]
    jobs = {leg["job_id"] for leg in legs}
    verdicts = sum(len(leg["quantities"]) for leg in legs)
    print(f"verdict of the run        {result['verdict']}, {result['counts']}")
    print(f"quick suite               {suite_seconds:7.1f} s")
    print(f"same srun commands, bare  {bare_seconds:7.1f} s")
    print(f"ratio                     {suite_seconds / bare_seconds:7.2f}")
    print(f"jobs {len(jobs)}, legs {len(legs)}, quantities judged {verdicts}")
    print(f"node-seconds per leg      {2 * suite_seconds / len(legs):7.1f}")
    print(f"node-seconds per quantity {2 * suite_seconds / verdicts:7.2f}")


if __name__ == "__main__":
    main()
