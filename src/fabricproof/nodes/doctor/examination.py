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
from fabricproof.nodes.doctor import facts as read
from fabricproof.nodes.doctor.facts import Answer, Facts, LibraryFacts, World
from fabricproof.nodes.doctor.probes import (
    CONTAINER,
    MODULE,
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

#: for all probes of a node together, after it was got; for Slurm's; for two ranks
_NODE_SECONDS, _SLURM_SECONDS, _RANKS_SECONDS = 120.0, 50.0, 60

_RANKS = 2


def make_shell(environment: Mapping[str, str], before: Sequence[str] = ()) -> Shell:
    """Return a shell that runs scripts in ``environment``.

    ``before`` is a launcher with its options, to run it elsewhere.
    """
    return lambda script, seconds: run_command(
        [*before, "bash", "-s"], environment, seconds, script
    )


def run_command(
    command: Sequence[str], environment: Mapping[str, str], seconds: float, text: str = ""
) -> Answer:
    """Run a command with ``text`` as its input; after ``seconds`` it and its children are ended."""
    program, line = shutil.which(command[0], path=environment.get("PATH")), " ".join(command)
    if program is None:
        return Answer(command=line, output="", status=127)
    whole = [program, *command[1:]]
    status, output, _ = run_group(whole, seconds, environment=environment, text=text)
    return Answer(command=line, output=output, status=124 if status is None else status)


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
        shown = {probe.name: probe.command for probe in slurm_probes()}
        reply = here(render_script(slurm_probes()), _SLURM_SECONDS)
        said = read_answers(reply.output, shown)
        nothing = Answer(command="srun", output=reply.output, status=reply.status or 127)
        asked = (said.get("mpi_list", nothing), said.get("config", nothing), said.get("partitions"))
        facts = replace(facts, slurm=read.read_slurm(*asked), commands=shown)
    probes = node_probes(subject)
    script = render_script(probes, subject)
    reply = (node or here)(script, _NODE_SECONDS + (wait_seconds if node else 0))
    uses = [f"module use {shell_word(path)}" for path in subject.module_paths]
    shown = {probe.name: probe.shown or probe.command for probe in probes}
    shown[MODULE] = "; ".join([*uses, f"module load {shell_line(subject.modules)}"])
    answers = read_answers(reply.output, shown)
    if "host" not in answers:
        where = "no node answered" if node else "this machine's bash did not answer"
        raise UnavailableError(
            f"{where}: {reply.fault or 'it printed nothing'}",
            expected=f"what {reply.command} prints",
            next_step="ask this machine instead, without --on-node" if node else "install bash",
        )
    facts = gather(facts, answers, is_node=node is not None or not subject.partition.uses_slurm)
    commands = {name: each.command for name, each in answers.items()}
    return replace(facts, commands={**facts.commands, **commands})


def gather(facts: Facts, answers: Mapping[str, Answer], *, is_node: bool) -> Facts:
    """Return ``facts`` with what a node answered in them."""
    rails = [each.interface for spec in facts.subject.fabrics for each in spec.rails]
    asker, begin = answers.get("asker"), "ldd:"
    return replace(
        facts,
        library=read.read_asker(asker) if asker else LibraryFacts(fault="it was not asked"),
        mpi=read.read_mpi(*map(answers.get, ("ompi_info", "pmix_info", "mpichversion"))),
        programs=tuple(
            read.read_ldd(name.removeprefix(begin), answer)
            for name, answer in answers.items()
            if name.startswith(begin)
        ),
        node=read.read_node(answers, is_node=is_node, rails=rails),
        module=answers.get(MODULE),
        launcher=answers.get("launcher"),
        container=answers.get(CONTAINER),
    )


def diagnose(facts: Facts) -> tuple[Finding, ...]:
    """Return everything that is to be said of ``facts``, each thing once, in order of reading."""
    rules = [judge_stack, judge_launch, judge_paths, judge_node, judge_world]
    here = Where(partition=facts.subject.partition.name, node=facts.node.host)
    found = (finding for rule in rules for finding in rule(facts))
    placed = (replace(each, where=here) if each.where == Where() else each for each in found)
    return tuple(dict.fromkeys(placed))


#: how each program without arguments of ours says how large its world is: osu_init 5.6 to 7.5
#: ("nprocs: 2, min: ..."), osu_hello ("This is a test with 2 processes"), IMB ("#processes = 2").
_SIZES = re.compile(r"(?:nprocs: |test with |#processes = )(\d+)")


def launch_line(subject: ResolvedStack) -> str:
    """Return the launch as the checks do it: srun, or the MPI's own launcher inside a job.

    Raises:
        UnavailableError: the stack has no program to start.
    """
    first = next(iter(subject.programs), "")
    program = [subject.python, "-EsP", str(Path(witness.__file__))] if subject.python else [first]
    # IMB without -npmin would start at two ranks anyway; a world of one prints no such line.
    program += (
        ["-npmin", "1", "Barrier"] if first.endswith("IMB-MPI1") and not subject.python else []
    )
    if subject.launch is None or not program[0]:
        raise UnavailableError(
            f"{subject.name} has nothing to start two ranks of",
            next_step=subject.mend or "suites of the stack in site.toml",
        )
    if subject.launcher == "srun":
        options = [] if subject.partition.same_node else ["--nodes=2", "--ntasks-per-node=1"]
        return shell_line(["srun", f"--ntasks={_RANKS}", *options, *subject.options, *program])
    return shell_line([subject.launch.launcher, "-np", f"{_RANKS}", *subject.options, *program])


def render_job(subject: ResolvedStack) -> str:
    """Return the script that starts two ranks in the stack's environment."""
    line = launch_line(subject)
    net_path = next((each.environment for each in subject.net_paths if each.environment), {})
    settings = {**(subject.launch.environment if subject.launch else {}), **net_path}
    head = render_script((), subject, settings=settings)
    return f"#!/bin/bash\n{head}timeout -k 2 {_RANKS_SECONDS} {line} 2>&1\n"


def start_world(
    subject: ResolvedStack, environment: Mapping[str, str], folder: Path, *, wait_seconds: int
) -> World:
    """Start two ranks and return what they say.

    The nodes see ``folder`` too; a job's output goes there and is removed.

    Raises:
        UnavailableError: the stack has no program to start, or no nodes were got.
    """
    script = render_job(subject)
    if not subject.partition.uses_slurm:
        answer = run_command(["bash", "-s"], environment, _RANKS_SECONDS + 5, script)
        return judge_world_output(subject, answer.output)
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder, prefix="doctor-") as place:
        output, name = Path(place) / "ranks.txt", Path(place).name
        nodes = [] if subject.partition.same_node else ["--nodes=2", "--ntasks-per-node=1"]
        batch = [
            *("sbatch", "--wait", "--quiet", "--no-requeue", "--time=2", f"--job-name={name}"),
            *(f"--ntasks={_RANKS}", *nodes, f"--output={output}", *_access(subject)),
        ]
        try:
            answer = run_command(batch, environment, _RANKS_SECONDS + wait_seconds, script)
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


def judge_world_output(subject: ResolvedStack, output: str) -> World:
    """Return the world that the ranks' output shows."""
    sizes = {int(each) for each in _SIZES.findall(output)}
    fault: str | None = None
    if subject.python:
        nodes = 1 if subject.partition.same_node else 2
        said = witness.read_witnesses(output)
        fault = witness.world_fault(said, num_ranks=_RANKS, num_nodes=nodes)
    elif not sizes:
        fault = "no rank said anything"
    elif sizes == {1}:
        fault = (
            "every rank started as its own world of one: the launcher's PMI does not fit this MPI"
        )
    elif sizes != {_RANKS}:
        fault = f"the ranks see worlds of {sorted(sizes)}, not of {_RANKS}"
    return World(command=launch_line(subject), num_ranks=_RANKS, output=output, fault=fault)
