"""Which nodes of a partition can be had now, which not, and where they hang, as Slurm says."""

from __future__ import annotations

import os
import shlex
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from fabricproof.core.errors import FabricproofError, UnavailableError
from fabricproof.core.hostlist import expand
from fabricproof.core.project import site_option
from fabricproof.core.units import natural
from fabricproof.nodes.slurm import BUSY, FREE, ask, ask_states
from fabricproof.nodes.topology import Shape, parse_topology
from fabricproof.pairs.campaign.plan import Campaign
from fabricproof.site import PartitionSpec, Site

#: how long nodes whose job has just ended are waited for, in s
ENDING_SECONDS = 20


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


def admit_command(site: Site, partition: PartitionSpec, node: str) -> str:
    """Return the command that says whether users may have a node, to be copied into a shell."""
    words = [f"fabricproof admit {shlex.quote(node)}", site_option(site.name)]
    if partition.name != site.partitions[0].name:
        words.append(f"--only {shlex.quote(f'partition={partition.name}')}")
    return " ".join(filter(None, words))


def once_ended(nodes: Collection[str], standing: Callable[[], Standing]) -> Standing:
    """Return how nodes stand once the job before has left those of ``nodes`` that it had."""
    for _ in range(ENDING_SECONDS):
        found = standing()
        if not set(found.ending) & set(nodes):
            break
        time.sleep(1)
    return found


def ask_standing(
    partition: PartitionSpec, environment: Mapping[str, str], *, reservation: str = ""
) -> Standing:
    """Return how the nodes stand that ``access`` leaves to a job of a partition.

    ``reservation``: that the job will be in; as access says if empty.
    """
    if not partition.uses_slurm:
        raise UnavailableError(
            f"partition {partition.name!r} has no Slurm",
            expected="nodes that a job can have",
            next_step="name another: --only partition=NAME",
        )
    return standing_of(ask_states(partition, environment, reservation=reservation))


def standing_of(states: Mapping[str, str]) -> Standing:
    """Return how nodes stand by the state of each."""
    order = sorted(states, key=natural)
    return Standing(
        free=tuple(node for node in order if states[node] in FREE),
        busy=tuple(node for node in order if states[node] in BUSY),
        ending=tuple(node for node in order if states[node] == "comp"),
        out={node: states[node] for node in order if states[node] not in FREE + BUSY},
    )


def left_out_by_site(partition: PartitionSpec) -> dict[str, str]:
    """Return the nodes that a site leaves out of all pairs -> that it does."""
    without = partition.pairs_without
    return dict.fromkeys(expand(without) if without else (), "left out by the site")


def with_nodes(campaign: Campaign, standing: Standing, left_out: Mapping[str, str]) -> Campaign:
    """Return a campaign over all nodes that can be had, now or later, and names the others.

    ``left_out``: nodes that are left out by choice -> why; those of other partitions do not count.
    """
    known = {*standing.free, *standing.busy, *standing.out}
    return replace(
        campaign,
        nodes=tuple(sorted({*standing.free, *standing.busy} - set(left_out), key=natural)),
        out={node: state for node, state in standing.out.items() if node not in left_out},
        skipped={node: left_out[node] for node in sorted(known & set(left_out), key=natural)},
    )


def ask_leaves(nodes: Sequence[str], environment: Mapping[str, str]) -> tuple[str, ...]:
    """Return the leaf of each node by Slurm's topology; nothing if it does not know them all."""
    try:
        topology = parse_topology(ask(["scontrol", "show", "topology"], environment))
    except FabricproofError:
        return ()
    if topology.shape is not Shape.TREE or not set(nodes) <= set(topology.nodes):
        return ()
    return tuple(topology.leaf(node) for node in nodes)


def ask_others(environment: Mapping[str, str]) -> frozenset[str]:
    """Return the nodes on which jobs of other users run."""
    said = ask(["squeue", "-h", "-t", "running", "-o", "%U %N"], environment)
    return others_of(said, os.getuid())


def others_of(said: str, user_id: int) -> frozenset[str]:
    """Return the nodes of lines ``UID NODES`` that are another user's."""
    rows = [line.split() for line in said.splitlines()]
    foreign = [row[1] for row in rows if len(row) == 2 and row[0] != str(user_id)]
    return frozenset(node for nodes in foreign for node in expand(nodes))


def end_job(job_id: str, environment: Mapping[str, str]) -> bool:
    """Cancel a job that an earlier program left, and wait for its end; False if there is none.

    It would measure what is to be measured now.  What it has measured is kept.

    Raises:
        UnavailableError: Slurm does not answer, or the job does not end.
    """
    asked = ["squeue", "-h", "-u", str(os.getuid()), "-o", "%A"]
    if not job_id or job_id not in ask(asked, environment).split():
        return False
    ask(["scancel", "--quiet", job_id], environment)
    for _ in range(60):  # Slurm kills after KillWait, 30 s
        if job_id not in ask(asked, environment).split():
            return True
        time.sleep(1)
    raise UnavailableError(
        f"a job that an earlier program left of this campaign does not end: {job_id}",
        next_step=f"scancel {job_id}",
    )
