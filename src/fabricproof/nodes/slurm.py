"""What Slurm says when it is asked: of the nodes of a partition, and of anything else."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from fabricproof.core.errors import ParseError, UnavailableError
from fabricproof.site import PartitionSpec
from fabricproof.site.scheduling import asked_partitions
from fabricproof.stacks.environment import answer_of

#: a controller that does not answer by then is away
ANSWER_SECONDS = 20

#: states of sinfo's ``%t`` of nodes that are free now, and of those that will be; a mark behind one
#: (``idle*``: does not answer, ``idle~``: powered down) is another state; ``plnd`` is idle and kept
#: for a job that waits (sinfo(1), NODE STATE CODES).  Two marks are none: :func:`read_states`
FREE, BUSY = ("idle",), ("mix", "alloc", "comp", "plnd")

#: idle nodes that a reservation has: only its own jobs get them
RESERVED = ("maint", "resv")


def slurm_partition(partition: PartitionSpec, environment: Mapping[str, str]) -> str:
    """Return where Slurm puts a job of the site's partition: as access says, else its default.

    Raises:
        UnavailableError: Slurm does not answer, or has no default partition.
    """
    if asked := asked_partitions(partition.access):
        return ",".join(asked)
    for name in ask(["sinfo", "-h", "-o", "%P"], environment).split():
        if name.endswith("*"):
            return name.rstrip("*")
    raise UnavailableError(
        f"access of partition {partition.name} names no partition, and Slurm has no default",
        next_step='access = ["--partition=NAME"] in site.toml',
    )


def ask(
    command: Sequence[str],
    environment: Mapping[str, str],
    *,
    seconds: float = ANSWER_SECONDS,
    answer_in_error: str = "",
) -> str:
    """Return what a command of Slurm prints.

    ``PATH`` of ``environment`` says where it is.  Where its error output has ``answer_in_error``
    and it prints nothing else, that is its answer.

    Raises:
        UnavailableError: it is not there, does not answer, or fails.
    """
    name = command[0]
    program = shutil.which(name, path=environment.get("PATH"))
    if program is None:
        raise UnavailableError("Slurm is not here", expected=f"{name} on PATH")
    config = environment.get("SLURM_CONF")
    if config and not Path(config).is_file():
        # Slurm's commands would look for it once a second for a minute.
        raise UnavailableError(f"{name} cannot answer: SLURM_CONF names no file: {config}")
    try:
        done = answer_of([program, *command[1:]], environment, seconds=seconds)
    except subprocess.TimeoutExpired:
        raise UnavailableError(f"{name} did not answer within {seconds:g} s") from None
    except OSError as error:
        raise UnavailableError(f"{name} cannot be run: {error.strerror}") from None
    if answer_in_error and not done.stdout and answer_in_error in done.stderr:
        return done.stderr
    if done.returncode != 0:
        said = " ".join(done.stderr.split())[-200:]
        raise UnavailableError(f"{name} failed", got=said or f"status {done.returncode}")
    return done.stdout


def ask_states(partition: str, environment: Mapping[str, str]) -> dict[str, str]:
    """Return the nodes of a partition, by Slurm's name for it -> their state (sinfo's ``%t``).

    Raises:
        UnavailableError: Slurm does not answer, or the partition has no node.
        ParseError: what it says is not understood.
    """
    command = ["sinfo", "-h", "-N", "-p", partition, "-o", "%N %t"]
    states = read_states(ask(command, environment))
    if not states:  # sinfo ends well, too, where there is no such partition
        raise UnavailableError(f"Slurm's partition {partition} has no node", expected="nodes")
    return states


def read_states(text: str) -> dict[str, str]:
    """Return the nodes and states of ``sinfo -h -N -o '%N %t'``.

    A node that jobs have is no other for what waits for it (``mix-``: the backfill scheduler keeps
    it) or for one that ends there (``alloc+``): these marks are left out, all others kept.

    Raises:
        ParseError: a line is no node and its state.
    """
    states = {}
    for line in text.splitlines():
        words = line.split()
        if len(words) != 2:
            raise ParseError("sinfo's list of nodes", expected="a node and its state", got=line)
        state = words[1].rstrip("+-")
        states[words[0]] = state if state in BUSY else words[1]
    return states


def usable(states: Mapping[str, str]) -> tuple[str, ...]:
    """Return the nodes that may run a job now or soon, the free ones first."""
    return tuple(node for state in FREE + BUSY for node, its in states.items() if its == state)
