"""What Slurm says when it is asked: of the nodes of a partition, and of anything else."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

from fabricproof.core.errors import ParseError, UnavailableError
from fabricproof.core.hostlist import expand
from fabricproof.site import PartitionSpec
from fabricproof.site.scheduling import access_options, asked_partitions
from fabricproof.stacks.environment import answer_of

#: a controller that does not answer by then is away
ANSWER_SECONDS = 20

#: states of sinfo's ``%t`` of nodes that are free now, and of those that will be; ``plnd`` is idle
#: and kept for a job that waits (sinfo(1), NODE STATE CODES)
FREE, BUSY = ("idle",), ("mix", "alloc", "comp", "plnd")

#: Marks behind a state that keep no job away: of power saving (Slurm starts a node that it powered
#: down for the job that gets it), of what waits for the node, of a job that ends there.  With
#: another (``idle*``: does not answer) it is another state.
_HARMLESS_MARKS = "~#%!+-"

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


def ask_states(
    partition: PartitionSpec, environment: Mapping[str, str], *, reservation: str = ""
) -> dict[str, str]:
    """Return the nodes that ``access`` leaves to a job -> their state (sinfo's ``%t``).

    ``--constraint``, ``--exclude`` and ``--nodelist`` leave nodes out, a reservation all but its
    own, which can be had.  A node of a reservation that the job is not in is ``resv`` or ``maint``.

    Args:
        partition: of the site.
        environment: PATH says where Slurm's commands are.
        reservation: that the job will be in; as access says if empty.

    Raises:
        UnavailableError: Slurm does not answer, or there is no such node.
        ParseError: what it says is not understood.
    """
    name = slurm_partition(partition, environment)
    asked = access_options(partition.access)
    said = ask(["sinfo", "-h", "-N", "-p", name, "-o", "%N %t %f"], environment)
    states, features = read_states(said), _features(said)
    states = _in_reservation(states, reservation or asked.reservation, environment)
    named, without = (expand(each) if each else () for each in (asked.nodelist, asked.exclude))
    left = {
        node: state
        for node, state in states.items()
        if (not named or node in named)
        and node not in without
        and satisfies(features.get(node, frozenset()), asked.constraint)
    }
    if not left:  # sinfo ends well, too, where there is no such partition
        leaves = f" that access leaves: {' '.join(partition.access)}" if states else ""
        raise UnavailableError(f"Slurm's partition {name} has no node{leaves}", expected="nodes")
    return left


def _in_reservation(
    states: dict[str, str], name: str, environment: Mapping[str, str]
) -> dict[str, str]:
    """Return the states as a job in reservation ``name``, or in none, finds them."""
    said = ask(
        ["scontrol", "-o", "show", "reservation", *filter(None, [name])],
        environment,
        answer_in_error="eservation" if not name else "",
    )
    lines = [dict(re.findall(r"(\w+)=(\S+)", line)) for line in said.splitlines()]
    found = [each for each in lines if "Nodes" in each and (name or each.get("State") == "ACTIVE")]
    nodes = {node for each in found if each["Nodes"] != "(null)" for node in expand(each["Nodes"])}
    if not name:  # sinfo says nothing of it while the node is busy, and some time after it began
        free = {*BUSY, *FREE}
        return {n: "resv" if n in nodes and s in free else s for n, s in states.items()}
    if not found:
        raise ParseError(
            "a reservation that names no nodes", expected="Nodes=LIST", got=said.strip()[:200]
        )
    flexible = "FLEX" in found[0].get("Flags", "").split(",")  # its jobs may have others, too
    return {
        node: FREE[0] if node in nodes and state in RESERVED else state
        for node, state in states.items()
        if node in nodes or flexible
    }


def satisfies(features: Collection[str], constraint: str) -> bool:
    """Tell whether a node with ``features`` has what ``--constraint`` asks of one (sbatch(1)).

    Of alternatives for all nodes (``[rack1|rack2]``) any will do, and counts (``*4``) are not held.
    """
    text = re.sub(r"\*\d+", "", constraint).translate(str.maketrans("[]", "()")).replace(" ", "")
    while inner := re.search(r"\(([^()]*)\)", text):
        yes = satisfies(features, inner[1])
        text = text[: inner.start()] + ("" if yes else "&no such feature") + text[inner.end() :]
    choices = [re.split(r"[&,]", choice) for choice in text.split("|")]
    return any(all(not word or word in features for word in words) for words in choices)


def read_states(text: str) -> dict[str, str]:
    """Return the nodes and states of ``sinfo -h -N -o '%N %t %f'``, without harmless marks.

    Raises:
        ParseError: a line is no node and its state.
    """
    states = {}
    for line in text.splitlines():
        words = line.split()
        if len(words) not in {2, 3}:
            raise ParseError("sinfo's list of nodes", expected="a node and its state", got=line)
        state = words[1].rstrip(_HARMLESS_MARKS)
        states[words[0]] = state if state in FREE + BUSY else words[1]
    return states


def _features(text: str) -> dict[str, frozenset[str]]:
    rows = [line.split() for line in text.splitlines()]
    return {row[0]: frozenset(re.split(r"[,&]", row[2])) for row in rows if len(row) == 3}


def usable(states: Mapping[str, str]) -> tuple[str, ...]:
    """Return the nodes that may run a job now or soon, the free ones first."""
    return tuple(node for state in FREE + BUSY for node, its in states.items() if its == state)
