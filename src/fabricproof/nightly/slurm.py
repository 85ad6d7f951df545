"""Which nodes of a partition may run a job now, as Slurm says."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Mapping

from fabricproof.core.errors import ParseError, UnavailableError
from fabricproof.site.schema import PartitionSpec

#: a controller that does not answer by then gives no partners
ANSWER_SECONDS = 20

#: states of sinfo's ``%t`` whose nodes may come to run a job; a mark behind one (``idle*``: does
#: not answer, ``idle~``: powered down) rules a node out
USABLE = frozenset({"idle", "mix", "alloc", "comp"})

_PARTITION = re.compile(r"(?:--partition=|-p ?)(\S+)")


def usable_nodes(partition: PartitionSpec, environment: Mapping[str, str]) -> tuple[str, ...]:
    """Return the nodes that may be a partner, sorted; none where there is no Slurm.

    Raises:
        UnavailableError: Slurm does not answer.
        ParseError: what it says is not understood.
    """
    if partition.scheduler not in {"slurm", "squeue"}:
        return ()
    program = shutil.which("sinfo", path=environment.get("PATH"))
    if program is None:
        raise UnavailableError("Slurm is not here", expected="sinfo on PATH")
    named = [match[1] for text in partition.access if (match := _PARTITION.fullmatch(text))]
    name = named[-1] if named else partition.name
    try:
        said = subprocess.run(
            [program, "-h", "-N", "-p", name, "-o", "%N %t"],
            env=dict(environment),
            capture_output=True,
            text=True,
            timeout=ANSWER_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise UnavailableError(f"sinfo does not answer: {error}") from None
    if said.returncode != 0:
        raise UnavailableError("sinfo failed", got=" ".join(said.stderr.split())[-200:])
    return read_nodes(said.stdout)


def read_nodes(text: str) -> tuple[str, ...]:
    """Return the usable nodes of ``sinfo -h -N -o '%N %t'``.

    Raises:
        ParseError: a line is no node and its state.
    """
    nodes = set()
    for line in text.splitlines():
        words = line.split()
        if len(words) != 2:
            raise ParseError("sinfo's list of nodes", expected="a node and its state", got=line)
        if words[1] in USABLE:
            nodes.add(words[0])
    return tuple(sorted(nodes))
