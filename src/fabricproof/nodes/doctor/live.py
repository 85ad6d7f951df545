"""Start two ranks for real, as the checks would, and ask them what world they see."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Mapping
from pathlib import Path

from fabricproof.core.errors import UnavailableError
from fabricproof.nodes.doctor.examination import run_command
from fabricproof.nodes.doctor.facts import Answer, World
from fabricproof.nodes.doctor.probes import render_script
from fabricproof.nodes.doctor.subject import Subject
from fabricproof.stacks import witness
from fabricproof.stacks.environment import shell_line

#: how each program without arguments of ours says how large its world is: osu_init 5.6 to 7.5
#: ("nprocs: 2, min: ..."), osu_hello ("This is a test with 2 processes"), IMB ("#processes = 2").
_SIZES = re.compile(r"nprocs: (\d+)|test with (\d+) processes|#processes = (\d+)")

_RANKS = 2

#: longest life of the two ranks.
_SECONDS = 60


def program_line(subject: Subject) -> list[str] | None:
    """Return the program that witnesses, None where the stack has none."""
    if subject.python:
        return [subject.python, "-EsP", str(Path(witness.__file__))]
    if not subject.programs:
        return None
    first = subject.programs[0]
    # IMB without -npmin would start at two ranks anyway; a world of one prints no such line.
    return [first, "-npmin", "1", "Barrier"] if first.endswith("IMB-MPI1") else [first]


def launch_line(subject: Subject) -> str:
    """Return the launch as the checks do it: srun, or the MPI's own launcher inside a job."""
    program = program_line(subject)
    assert program is not None
    assert subject.launch is not None
    if subject.launcher == "srun":
        options = [] if subject.same_node else ["--nodes=2", "--ntasks-per-node=1"]
        return shell_line(["srun", "--ntasks=2", *options, *subject.options, *program])
    return shell_line([subject.launch.launcher, "-np", "2", *subject.options, *program])


def render_job(subject: Subject) -> str:
    """Return the script that starts two ranks in the stack's environment."""
    assert subject.launch is not None
    net_path = next((net_path for net_path in subject.net_paths if net_path.environment), None)
    settings = {**subject.settings, **subject.launch.environment}
    settings |= net_path.environment if net_path else {}
    head = render_script(
        (),
        settings=settings,
        prepend=subject.prepend,
        modules=subject.modules,
        module_paths=subject.module_paths,
        modules_init=subject.modules_init,
    )
    return f"#!/bin/bash\n{head}timeout -k 2 {_SECONDS} {launch_line(subject)} 2>&1\n"


def start_world(
    subject: Subject, environment: Mapping[str, str], folder: Path, *, wait_seconds: int
) -> World:
    """Start two ranks and return what they say.

    The nodes see ``folder`` too; a job's output goes there and is removed.

    Raises:
        UnavailableError: the stack has no program to start, or no nodes were got.
    """
    if subject.launch is None or program_line(subject) is None:
        raise UnavailableError(
            f"{subject.stack} has nothing to start two ranks of",
            next_step=subject.mend or "suites of the stack in site.toml",
        )
    script = render_job(subject)
    if not subject.uses_slurm:
        answer = run_command(["bash", "-s"], environment, _SECONDS + 5, script)
        return judge_world_output(subject, answer.output)
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder, prefix="doctor-") as place:
        output = Path(place) / "ranks.txt"
        name = Path(place).name
        try:
            answer = run_command(
                _batch(subject, output, name), environment, _SECONDS + wait_seconds, script
            )
        finally:
            # A job that still waits, or whose answer came too late, must not stay behind.
            run_command(["scancel", "--quiet", f"--name={name}"], environment, 10)
        if not output.is_file():
            raise _no_nodes(answer, wait_seconds)
        return judge_world_output(subject, output.read_text(encoding="utf-8", errors="replace"))


def _batch(subject: Subject, output: Path, name: str) -> list[str]:
    nodes = [] if subject.same_node else ["--nodes=2", "--ntasks-per-node=1"]
    return [
        *("sbatch", "--wait", "--quiet", "--no-requeue", "--time=2", f"--job-name={name}"),
        *("--ntasks=2", *nodes, f"--output={output}", *subject.access),
    ]


def _no_nodes(answer: Answer, wait_seconds: int) -> UnavailableError:
    return UnavailableError(
        f"the two ranks were not started: {answer.fault or 'the job left no output'}",
        expected=f"two nodes within {wait_seconds} s",
        next_step="squeue; then try again with a longer --wait",
    )


def judge_world_output(subject: Subject, output: str) -> World:
    """Return the world that the ranks' output shows."""
    nodes = 1 if subject.same_node else 2
    if subject.python:
        said = witness.read_witnesses(output)
        fault = witness.world_fault(said, num_ranks=_RANKS, num_nodes=nodes)
    else:
        sizes = (int(next(filter(None, match.groups()))) for match in _SIZES.finditer(output))
        fault = _size_fault(tuple(sizes))
    command = launch_line(subject)
    return World(command=command, num_ranks=_RANKS, output=output, fault=fault)


def _size_fault(sizes: tuple[int, ...]) -> str | None:
    if not sizes:
        return "no rank said anything"
    if set(sizes) == {1}:
        return (
            "every rank started as its own world of one: the launcher's PMI does not fit this MPI"
        )
    return None if set(sizes) == {_RANKS} else f"the ranks see worlds of {sizes}, not of {_RANKS}"
