"""Ask everything, here for Slurm and once on the node: answers become facts, rules judge them.

Two ranks are started for real, as the checks would start them, and asked what world they see.
"""

from __future__ import annotations

import re
import shutil
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from fabricproof.core.errors import UnavailableError
from fabricproof.core.findings import Finding, Where
from fabricproof.core.group import run_group
from fabricproof.core.records import text_of
from fabricproof.nodes.doctor.facts import (
    Answer,
    Facts,
    LibraryFacts,
    World,
    read_asker,
    read_ldd,
    read_mpi,
    read_node,
    read_slurm,
)
from fabricproof.nodes.doctor.probes import (
    CONTAINER,
    MODULE,
    Probe,
    node_probes,
    read_answers,
    render_script,
    slurm_probes,
)
from fabricproof.nodes.doctor.rules.launch import judge_launch, judge_world
from fabricproof.nodes.doctor.rules.path import judge_paths
from fabricproof.nodes.doctor.rules.stack import judge_node, judge_stack
from fabricproof.stacks import witness
from fabricproof.stacks.environment import shell_line, shell_word
from fabricproof.stacks.stack import ResolvedStack

#: a script for bash, and the seconds it may take, to what it printed.
Shell = Callable[[str, float], Answer]

#: for all probes of a node together, after it was got.
_NODE_SECONDS = 120.0
_SLURM_SECONDS = 50.0


def make_shell(environment: Mapping[str, str], before: Sequence[str] = ()) -> Shell:
    """Return a shell that runs scripts in ``environment``.

    ``before`` is a launcher with its options, to run it elsewhere.
    """

    def run(script: str, seconds: float) -> Answer:
        return run_command([*before, "bash", "-s"], environment, seconds, script)

    return run


def run_command(
    command: Sequence[str], environment: Mapping[str, str], seconds: float, text: str = ""
) -> Answer:
    """Run a command with ``text`` as its input; after ``seconds`` it and its children are ended."""
    program = shutil.which(command[0], path=environment.get("PATH"))
    if program is None:
        return Answer(command=" ".join(command), output="", status=127)
    whole = [program, *command[1:]]
    status, output, _ = run_group(whole, seconds, environment=environment, text=text)
    status = 124 if status is None else status
    return Answer(command=" ".join(command), output=output, status=status)


def node_launcher(subject: ResolvedStack, wait_seconds: int) -> list[str]:
    """Return the srun that gives one node of the partition, or gives up after ``wait_seconds``."""
    return ["srun", *_access(subject), "-N1", "-n1", "-t2", f"--immediate={wait_seconds}", "-Q"]


def _access(subject: ResolvedStack) -> list[str]:
    """Return the site's access without ``--export``: a probe needs the variables that it is given.

    Of sbatch(1) ``--export=NONE`` is meant for the shell of who submits.
    """
    kept: list[str] = []
    words = iter(subject.access)
    for word in words:
        if word == "--export":
            next(words, None)
        elif not word.startswith("--export="):
            kept.append(word)
    return kept


def examine(
    subject: ResolvedStack, here: Shell, node: Shell | None = None, *, wait_seconds: int = 60
) -> Facts:
    """Ask everything about ``subject``.

    ``node`` runs on a node; None asks this machine.

    Raises:
        UnavailableError: no node answered.
    """
    facts = Facts(subject=subject)
    if subject.partition.uses_slurm:
        facts = _ask_slurm(facts, here)
    probes = node_probes(subject)
    script = render_script(probes, subject)
    reply = (node or here)(script, _NODE_SECONDS + (wait_seconds if node else 0))
    uses = [f"module use {shell_word(path)}" for path in subject.module_paths]
    loads = "; ".join([*uses, f"module load {shell_line(subject.modules)}"])
    answers = read_answers(reply.output, _shown(probes) | {MODULE: loads})
    if "host" not in answers:
        where = "no node answered" if node else "this machine's bash did not answer"
        raise UnavailableError(
            f"{where}: {reply.fault or 'it printed nothing'}",
            expected=f"what {reply.command} prints",
            next_step="ask this machine instead, without --on-node" if node else "install bash",
        )
    is_node = node is not None or not subject.partition.uses_slurm
    return replace(
        gather(facts, answers, is_node=is_node),
        commands={**facts.commands, **{name: each.command for name, each in answers.items()}},
    )


def _shown(probes: Sequence[Probe]) -> dict[str, str]:
    return {probe.name: probe.shown or probe.command for probe in probes}


def _ask_slurm(facts: Facts, here: Shell) -> Facts:
    probes = slurm_probes()
    reply = here(render_script(probes), _SLURM_SECONDS)
    answers = read_answers(reply.output, _shown(probes))
    nothing = Answer(command="srun", output=reply.output, status=reply.status or 127)
    slurm = read_slurm(
        answers.get("mpi_list", nothing), answers.get("config", nothing), answers.get("partitions")
    )
    return replace(facts, slurm=slurm, commands=_shown(probes))


def gather(facts: Facts, answers: Mapping[str, Answer], *, is_node: bool) -> Facts:
    """Return ``facts`` with what a node answered in them."""
    asker = answers.get("asker")
    return replace(
        facts,
        library=read_asker(asker) if asker else LibraryFacts(fault="it was not asked"),
        mpi=read_mpi(*(answers.get(name) for name in ("ompi_info", "pmix_info", "mpichversion"))),
        programs=tuple(
            read_ldd(name.removeprefix("ldd:"), answer)
            for name, answer in answers.items()
            if name.startswith("ldd:")
        ),
        node=read_node(
            answers,
            is_node=is_node,
            rails=tuple(each.interface for spec in facts.subject.fabrics for each in spec.rails),
        ),
        module=answers.get(MODULE),
        launcher=answers.get("launcher"),
        container=answers.get(CONTAINER),
    )


def diagnose(facts: Facts) -> tuple[Finding, ...]:
    """Return everything that is to be said of ``facts``, each thing once, in order of reading."""
    rules = [judge_stack, judge_launch, judge_paths, judge_node, judge_world]
    here = Where(partition=facts.subject.partition.name, node=facts.node.host)
    found = (finding for rule in rules for finding in rule(facts))
    return tuple(
        dict.fromkeys(
            replace(each, where=here if each.where == Where() else each.where) for each in found
        )
    )


#: how each program without arguments of ours says how large its world is: osu_init 5.6 to 7.5
#: ("nprocs: 2, min: ..."), osu_hello ("This is a test with 2 processes"), IMB ("#processes = 2").
_SIZES = re.compile(r"nprocs: (\d+)|test with (\d+) processes|#processes = (\d+)")

_RANKS = 2

#: longest life of the two ranks.
_SECONDS = 60


def program_line(subject: ResolvedStack) -> list[str] | None:
    """Return the program that witnesses, None where the stack has none."""
    if subject.python:
        return [subject.python, "-EsP", str(Path(witness.__file__))]
    if not subject.programs:
        return None
    first = subject.programs[0]
    # IMB without -npmin would start at two ranks anyway; a world of one prints no such line.
    return [first, "-npmin", "1", "Barrier"] if first.endswith("IMB-MPI1") else [first]


def launch_line(subject: ResolvedStack) -> str:
    """Return the launch as the checks do it: srun, or the MPI's own launcher inside a job."""
    program = program_line(subject)
    assert program is not None
    assert subject.launch is not None
    if subject.launcher == "srun":
        options = [] if subject.partition.same_node else ["--nodes=2", "--ntasks-per-node=1"]
        return shell_line(["srun", "--ntasks=2", *options, *subject.options, *program])
    return shell_line([subject.launch.launcher, "-np", "2", *subject.options, *program])


def render_job(subject: ResolvedStack) -> str:
    """Return the script that starts two ranks in the stack's environment."""
    assert subject.launch is not None
    net_path = next((net_path for net_path in subject.net_paths if net_path.environment), None)
    settings = {**subject.launch.environment, **(net_path.environment if net_path else {})}
    head = render_script((), subject, settings=settings)
    return f"#!/bin/bash\n{head}timeout -k 2 {_SECONDS} {launch_line(subject)} 2>&1\n"


def start_world(
    subject: ResolvedStack, environment: Mapping[str, str], folder: Path, *, wait_seconds: int
) -> World:
    """Start two ranks and return what they say.

    The nodes see ``folder`` too; a job's output goes there and is removed.

    Raises:
        UnavailableError: the stack has no program to start, or no nodes were got.
    """
    if subject.launch is None or program_line(subject) is None:
        raise UnavailableError(
            f"{subject.name} has nothing to start two ranks of",
            next_step=subject.mend or "suites of the stack in site.toml",
        )
    script = render_job(subject)
    if not subject.partition.uses_slurm:
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
            raise UnavailableError(
                f"the two ranks were not started: {answer.fault or 'the job left no output'}",
                expected=f"two nodes within {wait_seconds} s",
                next_step="squeue; then try again with a longer --wait",
            )
        return judge_world_output(subject, text_of(output, errors="replace"))


def _batch(subject: ResolvedStack, output: Path, name: str) -> list[str]:
    nodes = [] if subject.partition.same_node else ["--nodes=2", "--ntasks-per-node=1"]
    return [
        *("sbatch", "--wait", "--quiet", "--no-requeue", "--time=2", f"--job-name={name}"),
        *("--ntasks=2", *nodes, f"--output={output}", *_access(subject)),
    ]


def judge_world_output(subject: ResolvedStack, output: str) -> World:
    """Return the world that the ranks' output shows."""
    nodes = 1 if subject.partition.same_node else 2
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
