"""What Slurm says of nodes when a check is planned, and of a job that has ended."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from fabricproof.core.errors import FabricproofError, ParseError, UnavailableError
from fabricproof.core.hostlist import expand, fold
from fabricproof.core.units import by_key, natural
from fabricproof.job.job_end import SchedulerSays
from fabricproof.nodes.slurm import ask, ask_states, read_states, usable
from fabricproof.nodes.topology import Shape, Topology, parse_topology
from fabricproof.site import PartitionSpec

_FACT = re.compile(r"(?:^|\s)(JobState|ExitCode|NodeList)=(\S+)")


def distances(partition: PartitionSpec, *, dry_run: bool) -> tuple[Topology, tuple[str, ...]] | str:
    """Return the topology and the usable nodes of ``partition``, or why nobody knows distances.

    ``dry_run``: nothing will run, so a Slurm that does not answer is a reason, not an error.

    Raises:
        UnavailableError: Slurm does not answer.
        ParseError: what it says is not understood.
    """
    unknown = "Slurm knows no topology here: no node is nearer than another"
    if not partition.uses_slurm:
        return unknown
    try:
        topology, nodes = ask_topology(), usable_nodes(partition)
    except FabricproofError as error:
        if dry_run:
            return f"only Slurm knows the distances: {error}"
        raise
    return unknown if topology.shape is Shape.FLAT else (topology, nodes)


#: what Slurm answered in this session, or how it did not: a plan has dozens of checks that ask
_answers: dict[tuple[str, ...], Any] = {}


def _ask_once(key: tuple[str, ...], ask_it: Callable[[], Any]) -> Any:
    """Return what ``ask_it`` returns, or raise what it raises; it is called once."""
    if key not in _answers:
        try:
            _answers[key] = ask_it()
        except (UnavailableError, ParseError) as error:
            _answers[key] = error
    if isinstance(_answers[key], FabricproofError):
        raise _answers[key]
    return _answers[key]


def ask_topology() -> Topology:
    """Return the topology that Slurm tells.

    Raises:
        UnavailableError: Slurm does not answer.
        ParseError: what it says is not understood.
    """
    # scontrol says on its error output that there is no topology, and ends well or not.
    command = ["scontrol", "show", "topology"]
    found: Topology = _ask_once(
        (), lambda: parse_topology(ask(command, os.environ, answer_in_error="topology"))
    )
    return found


def node_states(partition: PartitionSpec) -> Mapping[str, str]:
    """Return the nodes that a job of ``partition`` may get and their states.

    Raises:
        UnavailableError: Slurm does not answer.
        ParseError: what it says is not understood.
    """
    key = (partition.name, *partition.access)
    found: Mapping[str, str] = _ask_once(key, lambda: ask_states(partition, os.environ))
    return found


def usable_nodes(partition: PartitionSpec) -> tuple[str, ...]:
    """Return the nodes of a partition that may run a job, idle ones first.

    Raises:
        UnavailableError: Slurm does not answer.
        ParseError: what it says is not understood.
    """
    return usable(node_states(partition))


def require_not_due(
    reason: str,
    partition: PartitionSpec,
    topology: Topology,
    would: Callable[[tuple[str, ...]], bool],
) -> None:
    """Refuse to skip a check that has no plan for the usable nodes and would have one for all.

    Args:
        reason: why it has none.
        partition: whose usable nodes do not do.
        topology: of which the nodes have to be.
        would: tells whether nodes make a plan.

    Raises:
        UnavailableError: all nodes of the partition would: what is due is missing then.
    """
    states = node_states(partition)
    free = {*usable(states)}
    away = by_key((states[node], node) for node in sorted(states, key=natural) if node not in free)
    everybody = tuple(sorted({*states} & {*topology.nodes}, key=natural))
    if away and would(everybody):
        out = "; ".join(f"{fold(nodes)} {state}" for state, nodes in away.items())
        raise UnavailableError(reason, expected=f"more usable nodes of {partition.name}", got=out)


def lost_nodes(nodes: Sequence[str]) -> tuple[str, ...]:
    """Return which of a job's nodes are down as Slurm sees it; none where it does not answer."""
    command = ["sinfo", "-h", "-N", "-n", ",".join(nodes), "-o", "%N %t"]
    try:
        states = read_states(ask(command, os.environ)) if nodes else {}
    except (UnavailableError, ParseError):
        return ()  # a reason more or less changes no verdict
    return tuple(sorted(node for node, state in states.items() if state.startswith("down")))


def ask_job(job_id: str) -> SchedulerSays:
    """Return what the controller still knows of a job; nothing where it does not answer.

    It forgets a job ``MinJobAge`` after its end (slurm.conf(5); 300 s where nobody says).
    """
    try:
        said = ask(["scontrol", "-o", "show", "job", job_id], os.environ)
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
