"""What Slurm says of its nodes when a check is planned: where they hang, and which may be used."""

from __future__ import annotations

import functools
import re
import subprocess
from collections.abc import Sequence

from fabricproof.errors import ParseError, UnavailableError
from fabricproof.site.schema import PartitionSpec
from fabricproof.topology import Shape, Topology, parse_topology, torus_of

#: a controller that does not answer by then holds up no planning
ANSWER_SECONDS = 10

#: states of sinfo's ``%t`` whose nodes may come to run a job, the ones that do so first in front;
#: a mark behind them (``idle*``: does not answer) rules a node out
USABLE = ("idle", "mix", "alloc", "comp")

_PARTITION = re.compile(r"^(?:--partition=|-p ?)(\S+)$")


def slurm_partition(partition: PartitionSpec) -> str:
    """Return what Slurm calls the site's partition: as its access options say, else its name."""
    found = [match[1] for option in partition.access if (match := _PARTITION.match(option))]
    return found[-1] if found else partition.name


@functools.cache
def ask_topology() -> Topology:
    """Return the topology that Slurm tells.

    Raises:
        UnavailableError: Slurm does not answer.
        ParseError: what it says is not understood.
    """
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


def _ask(*command: str, errors_are_answers: bool = False) -> str:
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
