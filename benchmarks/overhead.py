"""What the harness costs over the bare benchmark: the quick suite against the same srun commands.

Both in one run on the same virtual cluster, so that the ratio means something on a noisy machine:

    .venv/bin/python benchmarks/overhead.py [--full | CLUSTER [OPTION_OF_RUN...]]

The short form is one stack, as ``overhead.py vcluster -p openmpi5``; ``--full`` is all.

Prints the wall time of ``fabricproof run -t quick -t ethernet``; the summed wall time of the same
programs, each as often as the suite started it (both directions, rounds, second looks), with the
same ranks on as many nodes, in one allocation per check, without wrapper, counters, judge or
ReFrame; their ratio, the number of jobs and node-seconds per verdict, and where the time went.
"""

from __future__ import annotations

import itertools
import json
import os
import re
import resource
import shlex
import subprocess
import sys
import time
from pathlib import Path

from fabricproof.job.leg import shell_name

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
    if not done.stdout:
        raise SystemExit(done.stderr or f"fabricproof run ended with {done.returncode}")
    return time.perf_counter() - start, json.loads(done.stdout)


def attempts(job: Path) -> list[tuple[Path, dict]]:
    """Return what the job's script started, in that order: the folder and the leg of each attempt.

    Second looks, rounds of relations and the legs that send the other way are programs too: the
    bare side runs them as often.  A leg that only looks (``true``) is no benchmark.
    """
    legs = {
        shell_name(leg["name"]): leg for leg in json.loads((job / "plan.json").read_text())["legs"]
    }
    made = [path for path in (job / "legs").glob("*") if not list(path.glob("no.*"))]
    made.sort(key=_began)
    pairs = [(path, legs[path.name.rpartition(".")[0]]) for path in made]
    return [(path, leg) for path, leg in pairs if leg["commands"] != [["true"]]]


def _began(path: Path) -> float:
    """Return when a file or folder was created, in s since 1970."""
    said = subprocess.run(["stat", "-c", "%.6W", path], capture_output=True, text=True, check=True)
    return float(said.stdout)


def _ended(path: Path) -> float:
    return path.stat().st_mtime


def bare_script(job: Path) -> str:
    """Return a shell script that runs a job's programs with nothing around them."""
    stack = job.parent.name
    lines = [
        "here=$PWD",
        ". /usr/share/lmod/lmod/init/bash",
        f"module use {ROOT}/.stacks/modulefiles",
    ]
    lines += [f"module load {stack}", 'hosts=$(scontrol show hostnames "$SLURM_JOB_NODELIST")']
    lines += re.findall(r"^export .*$", (job / "rfm_job.sh").read_text(), re.MULTILINE)
    pmi = "pmix" if stack.startswith("openmpi") else "pmi2"
    for number, (_, leg) in enumerate(attempts(job)):
        settings = {**leg["environment"], "FABRICPROOF_LEG": f"$PWD/bare.{number}"}
        words = " ".join(f'{key}="{value}"' for key, value in settings.items())
        # Words of a shell, as the job's own script joins them.
        launch = " ".join(leg["launch"]) or f"srun --mpi={pmi}"
        if "backwards.hosts" in launch:
            lines.append('tac <<<"$hosts" >"$here/backwards.hosts"')
        # iperf3 is started by a script of ours, which needs a folder for what it tells.
        lines.append(f"mkdir -p bare.{number}")
        lines += [f"env {words} {launch} {shlex.join(command)}" for command in leg["commands"]]
    return "\n".join(lines) + "\n"


def run_bare(cluster: str, jobs: list[Path]) -> float:
    """Return the summed wall time of the bare programs in seconds, each job in one allocation."""
    where = Path("/run/fabricproof/vcluster") / cluster
    environment = {
        **os.environ,
        "PATH": f"{where / 'bin'}:{os.environ['PATH']}",
        "SLURM_CONF": str(where / "etc" / "slurm.conf"),
    }
    total = 0.0
    for job in jobs:
        script = bare_script(job)
        options = re.findall(
            r"^#SBATCH (--(?:ntasks|ntasks-per-node|partition)=\S+)", _script(job), re.M
        )
        start = time.perf_counter()
        done = subprocess.run(
            ["salloc", "-Q", *options, "bash", "-e", "-c", script],
            cwd=job,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=600,
        )
        total += time.perf_counter() - start
        if done.returncode != 0:
            sys.exit(f"{job}: the bare commands failed\n{script}\n{done.stderr[-2000:]}")
    return total


def _script(job: Path) -> str:
    return (job / "rfm_job.sh").read_text()


def spent(jobs: list[Path], start: float, end: float) -> dict[str, float]:
    """Return where the wall time of the suite went, in s, by when its files were written.

    Args:
        jobs: their folders.
        start: when ``fabricproof run`` began, in s since 1970.
        end: when it ended, likewise.
    """
    begun = {job: _began(job / "rfm_job.err") for job in jobs}
    ended = {job: _ended(job / "job_end") for job in jobs}
    order = sorted(jobs, key=lambda job: begun[job])
    legs = looks = nodes = 0.0
    for job in order:
        runs = {path: _began(path) for path in (job / "legs").glob("*")}
        launched = sum(_ended(path / "status") - began for path, began in runs.items())
        nodes += min(runs.values()) - begun[job]
        legs += launched
        looks += ended[job] - min(runs.values()) - launched
    between = sum(max(0.0, begun[b] - ended[a]) for a, b in itertools.pairwise(order))
    return {
        "start to first job": begun[order[0]] - start,
        "modules and look at the nodes": nodes,
        "launches of the programs": legs,
        "judge in the job, squeue": looks,
        "from job to job": between,
        "last job to end": end - ended[order[-1]],
    }


def main() -> None:
    """Measure and print."""
    full = sys.argv[1:] == ["--full"]
    words = sys.argv[1:] if sys.argv[1:] and not full else ["vcluster"]
    options = words[1:] or ([] if full else ["-p", "openmpi5"])
    began = time.time()
    suite_seconds, result = run_suite(words[0], options)
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    stage = ROOT / "work" / "stage" / result["run_id"] / "vcluster"
    jobs = [plan.parent for plan in sorted(stage.glob("*/*/*/plan.json"))]
    jobs = [job for job in jobs if (job / "job_end").exists()]
    where = spent(jobs, began, began + suite_seconds)
    bare_seconds = run_bare(words[0], [job for job in jobs if attempts(job)])
    legs = [leg for leg in result["legs"] if leg["verdict"] != "SKIPPED"]
    launches = sum(len(leg["commands"]) for job in jobs for _, leg in attempts(job))
    verdicts = sum(len(leg["quantities"]) for leg in legs)
    print(f"verdict of the run        {result['verdict']}, {result['counts']}")
    print(f"quick suite               {suite_seconds:7.1f} s")
    print(f"same programs, bare       {bare_seconds:7.1f} s")
    print(f"ratio                     {suite_seconds / bare_seconds:7.2f}")
    print(f"jobs {len(jobs)}, launches {launches}, legs {len(legs)}, quantities judged {verdicts}")
    print(f"node-seconds per leg      {2 * suite_seconds / len(legs):7.1f}")
    print(f"node-seconds per quantity {2 * suite_seconds / verdicts:7.2f}")
    print(f"CPU of fabricproof and ReFrame outside the jobs {used.ru_utime + used.ru_stime:.1f} s")
    for name, seconds in where.items():
        print(f"    {name:32s}{seconds:7.1f} s")


if __name__ == "__main__":
    main()
