"""What the command line does with a cluster: ensure it is up, take it down, kill, revive, fault."""

from __future__ import annotations

import os
import sys
from dataclasses import replace
from pathlib import Path

from vcluster import cluster, node, slurm, state
from vcluster.cluster import HEAD, SWITCHES, Report
from vcluster.errors import ConfigError, UnavailableError, program
from vcluster.guests import guest
from vcluster.guests import rdma as guests
from vcluster.node import Space
from vcluster.paths import Paths, project_root
from vcluster.plan import (
    DEFAULT_LEAVES,
    PRIVATE_FOLDERS,
    RDMA,
    Plan,
    Wishes,
    inherit,
    make_plan,
    unmet,
)
from vcluster.processes import end, run
from vcluster.rails import apply, faults
from vcluster.rails.faults import Fault
from vcluster.rails.shaping import rate_label
from vcluster.state import State

#: without accounting the head has the first and the last of them alone
_ACCOUNTING_DAEMONS = ("mariadbd", "slurmdbd")
NODE_DAEMONS = ("munged", "slurmd")
_NODE_TIMEOUT_S = 30.0


def ensure_up(name: str, wishes: Wishes, report: Report) -> bool:
    """Make sure that a healthy cluster with these properties runs.

    A healthy one is left alone; one that lost nodes gets them back; anything else is removed and
    built again.

    Returns:
        Whether anything had to be done.

    Raises:
        ConfigError: it runs with other options, or another checkout brought it up.
        NeedsPrivilegeError: not root.
        UnavailableError: it cannot be brought up, or another command is changing it.
    """
    cluster.require_root()
    paths = Paths(name)
    with state.locked(paths):
        known = state.load(paths)
        _refuse_anothers(known)
        accounting = wishes.accounting
        if accounting is None:
            accounting = known.plan.accounting if known else True
        cluster.require_machine(accounting=accounting)
        asked = replace(wishes, shares=_shares(wishes, known.plan if known else None))
        if known is None or not known.complete or not _head_serves(paths, known):
            same = known and known.complete and asked.kind in {None, known.plan.kind}
            whole = inherit(asked, known.plan) if known and same else asked
            cluster.up(make_plan(name, whole, _memory_mb()), report)
            return True
        _refuse_other_options(known.plan, asked)
        absent = tuple(share for share in asked.shares if share not in known.plan.shares)
        if absent:
            return _rebuild_with(paths, known.plan, absent, report)
        return _revive_lost(paths, known, report)


def _shares(wishes: Wishes, plan: Plan | None) -> tuple[str, ...]:
    """Return the folders that nodes must be given, the project's own too.

    Nodes that are namespaces see all but what their own /tmp, /run and /dev/shm hide; guests see
    nothing that they are not given.
    """
    kind = wishes.kind or (plan.kind if plan else None)
    everything = [project_root(), *(Path(share) for share in wishes.shares)]
    for folder in everything:
        if not folder.is_dir():
            raise ConfigError("cannot share this folder", expected="a folder", got=str(folder))
    resolved = dict.fromkeys(str(folder.resolve()) for folder in everything)
    # Jobs run the Python that runs this, which an installed package need not have in its folder.
    python = str(Path(sys.prefix).resolve())
    if sys.prefix != sys.base_prefix and not any(
        f"{python}/".startswith(f"{path}/") for path in resolved
    ):
        resolved[python] = None
    return tuple(
        path
        for path in resolved
        if kind == RDMA or any(f"{path}/".startswith(f"{hidden}/") for hidden in PRIVATE_FOLDERS)
    )


def _memory_mb() -> int:
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2**20


def _refuse_other_options(plan: Plan, wishes: Wishes) -> None:
    difference = unmet(plan, wishes)
    if difference:
        raise ConfigError(
            f"the virtual cluster {plan.name!r} is up with other options",
            expected=difference,
            got=describe(plan),
            next_step=f"{program()} down --name {plan.name}, or another --name",
        )


def describe(plan: Plan) -> str:
    """Return a plan in one line for people."""
    rates = " and ".join(rate_label(rate) for rate in plan.rail_rates_bit_s)
    more = "" if plan.accounting else ", no accounting"
    more += "".join(f", {line}" for line in plan.slurm)
    default = plan.leaf_count == DEFAULT_LEAVES and plan.uplink_bit_s is None
    uplink = rate_label(plan.uplink_bit_s) if plan.uplink_bit_s else "no limit"
    more += "" if default else f", {plan.leaf_count} leaves with uplinks at {uplink}"
    what = "guests with Soft-RoCE" if plan.kind == RDMA else "nodes"
    return f"{plan.node_count} {what}, rails at {rates}, MTU {plan.mtu}{more}"


def head_daemons(plan: Plan) -> tuple[str, ...]:
    """Return the daemons of the head."""
    return ("munged", *(_ACCOUNTING_DAEMONS if plan.accounting else ()), "slurmctld")


def _refuse_anothers(known: State | None) -> None:
    """Refuse a cluster that runs for another checkout: its jobs and its faults are not ours."""
    ours = str(project_root())
    if known is None or known.project in {"", ours}:
        return
    if not any(space.alive() for space in known.spaces.values()):
        return
    name = known.plan.name
    raise ConfigError(
        f"the virtual cluster {name!r} was brought up by another checkout",
        expected=f"one of {ours}, or none",
        got=known.project,
        next_step=f"another --name; or, if nobody needs it: {program()} down "
        f"--name {name} --of-another-checkout",
    )


def lost_daemons(known: State) -> dict[str, list[str]]:
    """Return, by host name, the daemons that do not run; empty when all is well."""
    running = slurm.programs_by_space(known.spaces.values())
    wanted = {HEAD: head_daemons(known.plan)} | {
        compute.name: NODE_DAEMONS for compute in known.plan.nodes
    }
    lost = {
        name: [daemon for daemon in names if daemon not in running.get(name, ())]
        for name, names in wanted.items()
    }
    if SWITCHES not in known.spaces or not known.spaces[SWITCHES].alive():
        lost[SWITCHES] = ["the switches"]
    return {name: names for name, names in lost.items() if names}


def _head_serves(paths: Paths, known: State) -> bool:
    lost = lost_daemons(known)
    if HEAD in lost or SWITCHES in lost:
        return False
    try:
        cluster.node_states(paths)
    except UnavailableError:
        return False
    return True


def _rebuild_with(paths: Paths, plan: Plan, absent: tuple[str, ...], report: Report) -> bool:
    """Build an idle cluster again, because folders cannot be added to running nodes."""
    if jobs(paths):
        raise UnavailableError(
            f"the virtual cluster {plan.name!r} runs jobs and its nodes cannot see "
            f"{', '.join(absent)}",
            next_step="wait for the jobs, or use another --name",
        )
    report(f"again, so that the nodes see {', '.join(absent)}")
    cluster.up(replace(plan, shares=plan.shares + absent), report)
    return True


def jobs(paths: Paths) -> list[str]:
    """Return the ids of the jobs that wait or run."""
    command = [str(paths.bin / "squeue"), "--noheader", "--format=%i"]
    return run(command, environment=cluster.client_environment(paths)).stdout.split()


def _revive_lost(paths: Paths, known: State, report: Report) -> bool:
    lost = [name for name in lost_daemons(known) if name != HEAD]
    for name in lost:
        report(f"{name} again")
        known = _revive(paths, known, name)
    if lost:
        cluster.first_job(paths, known.plan)
    return bool(lost)


def down(name: str, *, of_another_checkout: bool = False) -> bool:
    """Remove a cluster and everything of it; return whether there was anything.

    Raises:
        ConfigError: another checkout brought it up, and nobody said that it may go.
        NeedsPrivilegeError: not root.
        UnavailableError: a process cannot be killed, or another command is changing it.
    """
    cluster.require_root()
    paths = Paths(name)
    with state.locked(paths):
        if not of_another_checkout:
            _refuse_anothers(state.load(paths))
        was_there = paths.run.exists() or cluster.has_processes(paths)
        cluster.clear(paths)
        return was_there


def running(name: str) -> State:
    """Return the state of a cluster that is up.

    Raises:
        UnavailableError: it is not.
    """
    known = state.load(Paths(name))
    if known is None or not known.complete or not known.spaces[HEAD].alive():
        raise UnavailableError(
            f"the virtual cluster {name!r} is down",
            next_step=f"{program()} up" + (f" --name {name}" if name != "vcluster" else ""),
        )
    return known


def space_of(known: State, host: str) -> Space:
    """Return the namespaces of a node or of the head.

    Raises:
        ConfigError: there is no such host.
        UnavailableError: it is dead.
    """
    if host != HEAD:
        known.plan.node(host)
    space = known.spaces[host]
    if not space.alive():
        raise UnavailableError(f"{host} is dead", next_step=f"{program()} revive {host}")
    return space


def kill(name: str, host: str) -> None:
    """Let a compute node die at once, as if its power had failed.

    Raises:
        ConfigError: there is no such node.
        UnavailableError: the cluster is down, or the node cannot be killed.
    """
    cluster.require_root()
    with state.locked(Paths(name)):
        known = running(name)
        known.plan.node(host)
        if end([known.spaces[host].init]):
            raise UnavailableError(f"the processes of {host} cannot be killed")


def revive(name: str, host: str) -> None:
    """Boot a compute node again, whether it lives or not, and wait until Slurm uses it.

    Raises:
        ConfigError: there is no such node.
        UnavailableError: the cluster is down, or the node does not come back.
    """
    cluster.require_root()
    paths = Paths(name)
    with state.locked(paths):
        known = running(name)
        known.plan.node(host)
        _revive(paths, known, host)


def _revive(paths: Paths, known: State, host: str) -> State:
    if end([known.spaces[host].init]):
        raise UnavailableError(f"the processes of {host} cannot be killed")
    again = _boot_guest if known.plan.kind == RDMA else _boot_namespaces
    fresh = again(paths, known, host)
    cluster.wait_for_nodes(paths, fresh.spaces, fresh.plan, host)
    return fresh


def _with_space(paths: Paths, known: State, space: Space) -> State:
    """Return the state with a node that was started again, without its faults, and keep it."""
    spaces = {**known.spaces, space.name: space}
    fresh = replace(apply.without_node(known, space.name), spaces=spaces)
    state.save(paths, fresh)
    return fresh


def _boot_namespaces(paths: Paths, known: State, host: str) -> State:
    compute, switches = known.plan.node(host), known.spaces[SWITCHES]
    cluster.unplug(known.plan, compute, switches)
    space = node.start_space(paths, host, "node", known.plan.shares)
    fresh = _with_space(paths, known, space)
    cluster.wire_node(known.plan, compute, switches, space)
    apply.restore(paths, fresh, compute)
    for touched in (switches, space):
        cluster.steer(touched)
    for daemon in (slurm.munged(paths, host), slurm.slurmd(paths, host)):
        daemon.start(space)
        daemon.wait(space, _NODE_TIMEOUT_S)
    return fresh


def _boot_guest(paths: Paths, known: State, host: str) -> State:
    image, how = guests.prepare(known.plan, lambda _: None)
    compute, switches = known.plan.node(host), known.spaces[SWITCHES]
    apply.forget_port(known.plan, compute, switches)
    for rail, rate in enumerate(known.plan.rail_rates_bit_s):
        guests.shape_port(known.plan, compute, rail, rate, switches)
    booted = guest.start_guest(known.plan, paths, compute, switches, image, how)
    fresh = _with_space(paths, known, booted)
    guest.wait_until_up(paths, [booted])
    apply.restore(paths, fresh, compute)
    return fresh


def fault(
    name: str,
    host: str,
    interface: str | None,
    peer: str | None,
    wanted: Fault,
    rate: str | None = None,
) -> list[str]:
    """Put a fault into places of a cluster, or take all of theirs out again.

    Args:
        name: of the cluster.
        host: a node, ``leafN`` or ``uplinkN``.
        interface: ``rail0``, ``rail1``...; all rails where None.
        peer: another node, where what passes between the two alone is meant.
        wanted: what is to be wrong; nothing takes out what was put in.
        rate: its line rate in words, also as a share of the planned one.

    Returns:
        The places, in words.

    Raises:
        ConfigError: there is no such place, or it cannot have this fault.
        UnavailableError: the cluster is down or the node is dead.
    """
    cluster.require_root()
    paths = Paths(name)
    with state.locked(paths):
        known = running(name)
        places = faults.places(known.plan, host, interface, peer)
        for each in (host, peer):
            if each in known.spaces:
                space_of(known, each)
        if wanted.cpu_percent:
            places = [faults.cpu_place(known.plan, host, interface, peer)]
        elif not str(wanted) and rate is None and interface is None:
            places += [at for at in known.faults if at.rail < 0 and at.host == host and not peer]
        rates = {at: faults.rate_of(known.plan, at, rate) for at in places} if rate else {}
        each_its = {at: replace(wanted, rate_bit_s=rates.get(at)) for at in places}
        state.save(paths, apply.put_in(paths, known, each_its))
        return [str(at) for at in places]
