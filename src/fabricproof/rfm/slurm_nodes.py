"""What Slurm says of nodes when a check is planned, and of a job that has ended."""

from __future__ import annotations

import functools
import os
import re
import subprocess
from collections.abc import Sequence
from pathlib import Path

from fabricproof.core.errors import FabricproofError, ParseError, UnavailableError
from fabricproof.job.evidence.whole_job import SchedulerSays
from fabricproof.nodes.topology import Shape, Topology
from fabricproof.nodes.topology_text import expand, parse_topology, torus_of
from fabricproof.site.schema import PartitionSpec

#: a controller that does not answer by then holds up no planning
ANSWER_SECONDS = 10

#: states of sinfo's ``%t`` whose nodes may come to run a job, the ones that do so first in front;
#: a mark behind them (``idle*``: does not answer) rules a node out
USABLE = ("idle", "mix", "alloc", "comp")

_FACT = re.compile(r"(?:^|\s)(JobState|ExitCode|NodeList)=(\S+)")
_PARTITION = re.compile(r"^(?:--partition=|-p ?)(\S+)$")


def slurm_partition(partition: PartitionSpec) -> str:
    """Return what Slurm calls the site's partition: as its access options say, else its name."""
    found = [match[1] for option in partition.access if (match := _PARTITION.match(option))]
    return found[-1] if found else partition.name


def places(partition: PartitionSpec) -> tuple[Topology | None, tuple[str, ...]]:
    """Return the topology and the usable nodes of ``partition``; None where there is no Slurm.

    Raises:
        UnavailableError: Slurm does not answer.
        ParseError: what it says is not understood.
    """
    if partition.scheduler not in {"slurm", "squeue"}:
        return None, ()
    return ask_topology(), usable_nodes(slurm_partition(partition))


def ask_topology() -> Topology:
    """Return the topology that Slurm tells; it is asked once, also where it does not answer.

    Raises:
        UnavailableError: Slurm does not answer.
        ParseError: what it says is not understood.
    """
    found = _topology()
    if isinstance(found, FabricproofError):
        raise found
    return found


@functools.cache
def _topology() -> Topology | UnavailableError | ParseError:
    # A plan has dozens of checks that ask: each would wait for a controller that is away.
    try:
        return _asked_topology()
    except (UnavailableError, ParseError) as error:
        return error


def _asked_topology() -> Topology:
    # scontrol says on its error output that there is no topology, and ends well or not.
    text = _ask("scontrol", "show", "topology", errors_are_answers=True)
    topology = parse_topology(text)
    if topology.shape is Shape.FLAT and "3d_torus" in _ask("scontrol", "show", "config"):
        return torus_of(_ask("sinfo", "-h", "-N", "-o", "%N").split())
    return topology


@functools.cache
def usable_nodes(partition: str) -> tuple[str, ...]:
    """Return the nodes of a partition of Slurm that may run a job, idle ones first.

    Raises:
        UnavailableError: Slurm does not answer.
        ParseError: what it says is not understood.
    """
    said = _ask("sinfo", "-h", "-N", "-p", partition, "-o", "%N %t").splitlines()
    states: dict[str, str] = {}
    for line in said:
        node, _, state = line.strip().partition(" ")
        if not state:
            raise ParseError("sinfo's list of nodes", expected="a node and its state", got=line)
        states[node] = state
    return tuple(node for usable in USABLE for node, state in states.items() if state == usable)


def lost_nodes(nodes: Sequence[str]) -> tuple[str, ...]:
    """Return which of a job's nodes are down as Slurm sees it; none where it does not answer."""
    try:
        said = _ask("sinfo", "-h", "-N", "-n", ",".join(nodes), "-o", "%N %t") if nodes else ""
    except UnavailableError:
        return ()  # a reason more or less changes no verdict
    states = dict(line.split() for line in said.splitlines() if len(line.split()) == 2)
    return tuple(sorted(node for node, state in states.items() if state.startswith("down")))


def ask_job(job_id: str) -> SchedulerSays:
    """Return what the controller still knows of a job; nothing where it does not answer.

    It forgets a job ``MinJobAge`` after its end (slurm.conf(5); 300 s where nobody says).
    """
    try:
        said = _ask("scontrol", "-o", "show", "job", job_id)
    except UnavailableError:
        return SchedulerSays()
    facts = dict(_FACT.findall(said))
    status = re.match(r"(\d+):(\d+)$", facts.get("ExitCode", ""))
    try:
        nodes = expand(facts.get("NodeList", ""))
    except FabricproofError:
        nodes = ()
    # A signal counts as sacct's exit status does not: 0:9 is no good end.
    exit_status = (int(status[1]) or int(status[2])) if status else None
    return SchedulerSays(state=facts.get("JobState"), exit_status=exit_status, nodes=nodes)


def _ask(*command: str, errors_are_answers: bool = False) -> str:
    config = os.environ.get("SLURM_CONF")
    if config and not Path(config).is_file():
        # Slurm's commands would look for it once a second for a minute.
        raise UnavailableError(f"{command[0]} cannot answer: SLURM_CONF names no file: {config}")
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=ANSWER_SECONDS, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise UnavailableError(f"{command[0]} does not answer: {error}") from None
    if errors_are_answers and not done.stdout and "topology" in done.stderr:
        return done.stderr
    if done.returncode != 0:
        said = done.stderr.strip().splitlines()
        raise UnavailableError(f"{' '.join(command)} failed: {said[-1] if said else 'in silence'}")
    return done.stdout
