"""Which nodes of a partition can be had now, which not, and where they hang, as Slurm says."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from fabricproof.core.errors import FabricproofError, ParseError, UnavailableError
from fabricproof.nodes.topology import Shape
from fabricproof.nodes.topology_text import parse_topology
from fabricproof.pairs.fabric import natural
from fabricproof.site.schema import PartitionSpec

#: a controller that does not answer by then is away
ANSWER_SECONDS = 20

#: states of sinfo's ``%t`` of nodes that are free now, and of those that will be; a mark behind one
#: (``idle*``: does not answer, ``idle~``: powered down) is another state
FREE, BUSY = frozenset({"idle"}), frozenset({"mix", "alloc", "comp"})

_PARTITION = re.compile(r"(?:--partition=|-p ?)(\S+)")


@dataclass(frozen=True, kw_only=True)
class Standing:
    """The nodes of a partition.

    Attributes:
        free: can be had now, in natural order.
        busy: run other jobs.
        ending: of these, nodes whose job has just ended.
        out: cannot be had -> their state in Slurm.
    """

    free: tuple[str, ...]
    busy: tuple[str, ...]
    out: Mapping[str, str]
    ending: tuple[str, ...] = ()


def ask(command: Sequence[str], environment: Mapping[str, str]) -> str:
    """Return what a command of Slurm prints.

    Raises:
        UnavailableError: it is not there, does not answer, or fails.
    """
    program = shutil.which(command[0], path=environment.get("PATH"))
    if program is None:
        raise UnavailableError("Slurm is not here", expected=f"{command[0]} on PATH")
    try:
        done = subprocess.run(
            [program, *command[1:]],
            env=dict(environment),
            capture_output=True,
            text=True,
            timeout=ANSWER_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise UnavailableError(f"{command[0]} does not answer: {type(error).__name__}") from None
    if done.returncode != 0:
        said = " ".join(done.stderr.split())[-200:]
        raise UnavailableError(f"{command[0]} failed", got=said or f"status {done.returncode}")
    return done.stdout


def ask_standing(partition: PartitionSpec, environment: Mapping[str, str]) -> Standing:
    """Return how the nodes of a partition stand.

    Raises:
        UnavailableError: Slurm does not answer, or the partition has no Slurm.
        ParseError: what it says is not understood.
    """
    if partition.scheduler not in {"slurm", "squeue"}:
        raise UnavailableError(
            f"partition {partition.name!r} has no Slurm",
            expected="nodes that a job can have",
            next_step="name another: --only partition=NAME",
        )
    named = [match[1] for text in partition.access if (match := _PARTITION.fullmatch(text))]
    name = named[-1] if named else partition.name
    return read_standing(ask(["sinfo", "-h", "-N", "-p", name, "-o", "%N %t"], environment))


def read_standing(text: str) -> Standing:
    """Return how nodes stand by ``sinfo -h -N -o '%N %t'``.

    Raises:
        ParseError: a line is no node and its state.
    """
    states: dict[str, str] = {}
    for line in text.splitlines():
        words = line.split()
        if len(words) != 2:
            raise ParseError("sinfo's list of nodes", expected="a node and its state", got=line)
        states[words[0]] = words[1]
    order = sorted(states, key=natural)
    return Standing(
        free=tuple(node for node in order if states[node] in FREE),
        busy=tuple(node for node in order if states[node] in BUSY),
        ending=tuple(node for node in order if states[node] == "comp"),
        out={node: states[node] for node in order if states[node] not in FREE | BUSY},
    )


def ask_leaves(nodes: Sequence[str], environment: Mapping[str, str]) -> tuple[str, ...]:
    """Return the leaf of each node by Slurm's topology; nothing where it does not know them all."""
    try:
        topology = parse_topology(ask(["scontrol", "show", "topology"], environment))
    except FabricproofError:
        return ()
    if topology.shape is not Shape.TREE or not set(nodes) <= set(topology.nodes):
        return ()
    return tuple(topology.leaf(node) for node in nodes)
