"""Bring a virtual cluster up, take it down, and repair it."""

from __future__ import annotations

import os
import re
import secrets
import shutil
import time
from collections.abc import Callable

from vcluster import node, outside, slurm, state
from vcluster.errors import NeedsPrivilegeError, UnavailableError, or_else
from vcluster.guests import guest
from vcluster.guests import rdma as guests
from vcluster.guests.accel import Acceleration
from vcluster.guests.guest import Guest
from vcluster.guests.image import Image
from vcluster.node import Space
from vcluster.paths import Paths
from vcluster.plan import RDMA, Node, Plan
from vcluster.processes import (
    Process,
    clean_environment,
    end,
    find_program,
    in_namespaces,
    marked,
    process,
    run,
)
from vcluster.rails import network, shaping, starve
from vcluster.state import State

Report = Callable[[str], None]

SWITCHES = "switches"
HEAD = "head"
#: what sinfo calls a node that jobs can run on; a trailing * would mean "does not answer".
USABLE_STATES = frozenset({"idle", "mixed", "allocated", "completing"})
_DAEMON_TIMEOUT_S = 30.0
_NODES_TIMEOUT_S = 40.0
#: software emulation: a slurmd takes seconds to start, a job too
_GUESTS_TIMEOUT_S = 180.0
_PROGRAMS = (
    *("ip", "tc", "unshare", "nsenter", "mount"),
    *("munged", "slurmctld", "slurmd", "srun", "sinfo"),
)


_ACCOUNTING_PROGRAMS = ("mariadbd", "mariadb-install-db", "slurmdbd")


def require_machine(*, accounting: bool) -> None:
    """Refuse a machine on which no virtual cluster can be brought up, whatever its kind.

    Raises:
        NeedsPrivilegeError: not root.
        UnavailableError: programs are missing.
    """
    require_root()
    wanted = _PROGRAMS + (_ACCOUNTING_PROGRAMS if accounting else ())
    missing = [program for program in wanted if find_program(program) is None]
    if missing:
        raise UnavailableError(
            f"programs are missing: {', '.join(missing)}", next_step="ci/bootstrap.sh packages"
        )


def require_root() -> None:
    """Refuse anyone but root.

    Raises:
        NeedsPrivilegeError: not root; says what can be done without.
    """
    if os.geteuid() != 0:
        raise NeedsPrivilegeError(
            "the virtual cluster needs root, for namespaces and virtual networks",
            next_step=or_else("sudo"),
        )


def up(plan: Plan, report: Report) -> State:
    """Build a cluster from nothing; what is left of a broken one is removed first.

    The caller holds the lock.  Whatever goes wrong, Ctrl-C included, nothing is left behind.

    Raises:
        UnavailableError: a namespace, a program or a daemon failed; its log is kept.
    """
    if plan.kind == RDMA:
        guests.require_machine()
    paths = Paths(plan.name)
    clear(paths)
    if plan.kind == RDMA:
        guests.require_memory(plan)  # what a broken cluster of that name had is free again
    try:
        return _build(plan, paths, report)
    except BaseException as failure:
        with state.uninterrupted():
            kept = state.keep_logs(paths)
            clear(paths)
        if isinstance(failure, UnavailableError) and state.is_log(paths, failure.source):
            raise state.with_kept_log(failure, kept) from None
        raise


def _build(plan: Plan, paths: Paths, report: Report) -> State:
    prepared = guests.prepare(plan, report) if plan.kind == RDMA else None
    report("configuration")
    _write_configuration(plan, paths)
    report("namespaces")
    spaces = _start_spaces(plan, paths)
    report("switches, cables and rails")
    _wire_all(plan, spaces)
    if prepared:
        report(f"guests ({prepared[1].reason})")
        _start_guests(plan, paths, spaces, *prepared)
    report("munged on every node" + (", MariaDB" if plan.accounting else ""))
    _start_munge_and_database(plan, paths, spaces)
    if plan.accounting:
        report("slurmdbd")
        _serve(slurm.slurmdbd(paths), spaces[HEAD])
    report("slurmctld")
    _serve(slurm.slurmctld(paths), spaces[HEAD])
    outside.write_wrappers(paths, spaces[HEAD])
    (paths.run / "env.sh").write_text(outside.render_environment(paths))
    (paths.run / "kind").write_text(f"{plan.kind}\n")
    if prepared:
        report("guests come up")
        guest.wait_until_up(paths, [each for each in spaces.values() if isinstance(each, Guest)])
    report("slurmd on every node")
    for compute in plan.nodes:
        if not prepared:
            slurm.slurmd(paths, compute.name).start(spaces[compute.name])
    wait_for_nodes(paths, spaces, plan)
    report("first job")
    first_job(paths, plan)
    how = prepared[1].reason if prepared else ""
    built = State(plan=plan, spaces=spaces, complete=True, acceleration=how)
    state.save(paths, built)
    return built


def _start_guests(
    plan: Plan, paths: Paths, spaces: dict[str, Space], image: Image, how: Acceleration
) -> None:
    """Start every guest, and put each on file at once, so that a crash leaves a trace."""
    guests.write_reach(paths, spaces[HEAD])
    for compute in plan.nodes:
        spaces[compute.name] = guest.start_guest(plan, paths, compute, spaces[SWITCHES], image, how)
        state.save(paths, State(plan=plan, spaces=spaces, complete=False))


def _write_configuration(plan: Plan, paths: Paths) -> None:
    for folder in (paths.run, paths.etc, paths.log, paths.bin, paths.munge, paths.head):
        folder.mkdir(mode=0o755, parents=True, exist_ok=True)
    texts = {
        "slurm.conf": slurm.render_slurm_conf(plan, paths),
        "topology.conf": slurm.render_topology_conf(plan),
        "cgroup.conf": slurm.render_cgroup_conf(slurm_version()),
        "hosts": network.render_hosts(plan),
        "epilog": slurm.EPILOG,
    }
    for name, text in texts.items():
        (paths.etc / name).write_text(text)
    if plan.accounting:
        (paths.etc / "slurmdbd.conf").touch(mode=0o600)
        (paths.etc / "slurmdbd.conf").write_text(slurm.render_slurmdbd_conf(paths))
    (paths.etc / "epilog").chmod(0o755)
    key = paths.etc / "munge.key"
    key.touch(mode=0o600)
    key.write_bytes(secrets.token_bytes(128))
    if plan.kind == RDMA:
        guests.write_configuration(plan, paths)


def slurm_version() -> tuple[int, int]:
    """Return the year and month of this machine's Slurm release (``slurm-wlm 22.05.8``)."""
    text = run(["slurmd", "-V"]).stdout
    match = re.search(r"(\d+)\.(\d+)", text)
    if match is None:
        raise UnavailableError("slurmd does not tell its version", got=text.strip())
    return int(match[1]), int(match[2])


def _start_spaces(plan: Plan, paths: Paths) -> dict[str, Space]:
    """Start every namespace, and put each on file at once, so that a crash leaves a trace."""
    spaces: dict[str, Space] = {}
    wanted = [(SWITCHES, "switches"), (HEAD, "head")]
    if plan.kind != RDMA:
        wanted += [(compute.name, "node") for compute in plan.nodes]
    for name, kind in wanted:
        shares = plan.shares if kind == "node" else ()
        spaces[name] = node.start_space(paths, name, kind, shares)
        state.save(paths, State(plan=plan, spaces=spaces, complete=False))
    return spaces


def _wire_all(plan: Plan, spaces: dict[str, Space]) -> None:
    switches, head = spaces[SWITCHES], spaces[HEAD]
    commands = network.switch_commands(plan) + network.head_cable_commands(head.init.pid)
    switches.batch("ip", commands)
    switches.batch("tc", network.uplink_rate_commands(plan))
    head.batch("ip", network.head_interface_commands())
    for compute in plan.nodes:
        if plan.kind == RDMA:
            guests.wire(plan, compute, switches)
        else:
            wire_node(plan, compute, switches, spaces[compute.name])
    for space in spaces.values():
        steer(space)


def wire_node(plan: Plan, compute: Node, switches: Space, space: Space) -> None:
    """Connect a node's interfaces to the switches and give its rails their rates."""
    switches.batch("ip", network.node_cable_commands(plan, compute, space.init.pid))
    space.batch("ip", network.node_interface_commands(plan, compute))
    for rail, rate in enumerate(plan.rail_rates_bit_s):
        shape_rail(plan, compute, rail, rate, switches, space)


def unplug(plan: Plan, compute: Node, switches: Space) -> None:
    """Remove the switches' ends of a dead node's cables; the kernel may have done so already."""
    ports = [compute.management_port(), *(compute.rail_port(rail) for rail in plan.rails)]
    for port in ports:
        command = [*switches.enter(only_network=True), "ip", "link", "delete", port]
        run(command, check=False)


def shape_rail(
    plan: Plan,
    compute: Node,
    rail: int,
    rate_bit_s: int,
    switches: Space,
    space: Space,
    queue_bytes: int | None = None,
) -> None:
    """Give both ends of a node's rail a line rate, and the node's end a queue."""
    if isinstance(space, Guest):
        commands = shaping.guest_commands(f"rail{rail}", rate_bit_s, plan.mtu, queue_bytes)
        space.batch("tc", commands)
        guests.shape_port(plan, compute, rail, rate_bit_s, switches)
        return
    interface, port = f"rail{rail}", compute.rail_port(rail)
    space.batch("tc", shaping.node_commands(interface, rate_bit_s, plan.mtu, queue_bytes))
    switches.batch("tc", shaping.switch_commands(port, rate_bit_s, plan.mtu))


def steer(space: Space) -> None:
    """Keep the frames of a flow in order on their way through the CPUs."""
    script = shaping.steering_script(os.cpu_count() or 1)
    run([*space.enter(), "sh", "-c", script])


def _start_munge_and_database(plan: Plan, paths: Paths, spaces: dict[str, Space]) -> None:
    # A guest starts its own.
    own = [name for name in spaces if name != SWITCHES and not isinstance(spaces[name], Guest)]
    for name in own:
        slurm.munged(paths, name).start(spaces[name])
    if plan.accounting:
        _start_database(paths, spaces[HEAD])
    for name in own:
        slurm.munged(paths, name).wait(spaces[name], _DAEMON_TIMEOUT_S)


def _start_database(paths: Paths, head: Space) -> None:
    command = ["mariadb-install-db", *slurm.MARIADB_OPTIONS, "--skip-test-db"]
    command += ["--auth-root-authentication-method=socket", f"--datadir={paths.head}/db"]
    run([*head.enter(), *command], timeout_s=60)
    _serve(slurm.mariadbd(paths), head)


def _serve(daemon: slurm.Daemon, space: Space) -> None:
    daemon.start(space)
    daemon.wait(space, _DAEMON_TIMEOUT_S)


def client_environment(paths: Paths) -> dict[str, str]:
    """Return the environment in which Slurm's commands reach the cluster."""
    path = f"{paths.bin}:{clean_environment()['PATH']}"
    return clean_environment(SLURM_CONF=str(paths.slurm_conf), PATH=path)


def node_states(paths: Paths) -> dict[str, str]:
    """Return what slurmctld says of each node, as ``idle`` or ``down*``."""
    command = [str(paths.bin / "sinfo"), "--noheader", "--Node", "--format=%N %T"]
    lines = run(command, environment=client_environment(paths)).stdout.splitlines()
    pairs = (line.split(None, 1) for line in lines)
    return {name: text.strip() for name, text in pairs}


def wait_for_nodes(
    paths: Paths, spaces: dict[str, Space], plan: Plan, host: str | None = None
) -> None:
    """Wait until Slurm would give jobs to the nodes.

    ``host`` is the one node to wait for; all of them where None.

    Raises:
        UnavailableError: a slurmd died, or does not register in time.
    """
    wanted = [each for each in plan.nodes if host in {None, each.name}]
    limit_s = _GUESTS_TIMEOUT_S if plan.kind == RDMA else _NODES_TIMEOUT_S
    deadline = time.monotonic() + limit_s
    while True:
        states = node_states(paths)
        waiting = [n for n in wanted if states.get(n.name) not in USABLE_STATES]
        if not waiting:
            return
        first = waiting[0].name
        dead = not _serves(spaces[first])
        if time.monotonic() > deadline or dead:
            log = paths.log / f"slurmd-{first}.log"
            raise UnavailableError(
                f"slurmd on {first} {'has died' if dead else 'does not register'}: Slurm says "
                f"{states.get(first)!r} of the node",
                source=str(log),
                got=node.last_lines(log, 4) or "an empty log",
            )
        time.sleep(0.05)


def _serves(space: Space) -> bool:
    """Tell whether a node may still register; a guest is not asked, for that costs it a second."""
    return space.alive() if isinstance(space, Guest) else "slurmd" in space.programs()


def first_job(paths: Paths, plan: Plan) -> None:
    """Run a job on all nodes: the cluster is up when this works, and not before.

    Raises:
        UnavailableError: it failed, or another node answered.
    """
    count = str(plan.node_count)
    command = [str(paths.bin / "srun"), "--nodes", count, "--ntasks", count, "hostname"]
    done = run(command, environment=client_environment(paths), timeout_s=90)
    answered = sorted(done.stdout.split())
    wanted = sorted(compute.name for compute in plan.nodes)
    if answered != wanted:
        raise UnavailableError(
            "the first job did not run on every node",
            expected=" ".join(wanted),
            got=" ".join(answered) or "nothing",
        )


def has_processes(paths: Paths) -> bool:
    """Tell whether inits of this cluster run, with or without a state file."""
    return bool(marked(f"{node.MARK}={paths.name}"))


def clear(paths: Paths) -> None:
    """Remove everything of a cluster, whatever state it is in.

    Raises:
        UnavailableError: a process cannot be killed.
    """
    known = state.load(paths)
    spaces = list(known.spaces.values()) if known else []
    inits = {space.init for space in spaces if space.alive()}
    inits |= {found for pid in marked(f"{node.MARK}={paths.name}") if (found := process(pid))}
    visitors = _visitors(spaces)
    left = end(inits) + end(visitors)
    if left:
        names = ", ".join(str(one.pid) for one in left)
        raise UnavailableError(f"processes of the virtual cluster cannot be killed: {names}")
    starve.feed(paths.name)
    shutil.rmtree(paths.run, ignore_errors=True)


def _visitors(spaces: list[Space]) -> list[Process]:
    """Return processes outside that use a network of the cluster, as a waiting srun does."""
    pids = in_namespaces("net", [space.net for space in spaces])
    own = os.getpid()
    return [found for pid in pids if pid != own and (found := process(pid))]
