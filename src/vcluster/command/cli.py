"""The subcommands of ``vcluster``: their options, and what they print."""

from __future__ import annotations

import json
import os
import re
import signal
import time
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, NoReturn

import click

from vcluster import cluster, outside
from vcluster.command import service, status
from vcluster.errors import ExitStatus, program
from vcluster.paths import Paths
from vcluster.plan import KINDS, RDMA, Wishes
from vcluster.rails import faults
from vcluster.rails.shaping import parse_rate

DEFAULT_NAME = "vcluster"

_name = click.option(
    "--name",
    default=DEFAULT_NAME,
    show_default=True,
    envvar="FABRICPROOF_VCLUSTER",
    help="Which cluster of this machine; $FABRICPROOF_VCLUSTER names it as well.",
)
_json = click.option("--json", "as_json", is_flag=True, help="Print JSON for machines.")


@click.group(
    "vcluster",
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
def group() -> None:
    r"""A virtual Slurm cluster on this machine.

    Real munge, slurmctld, slurmdbd with MariaDB, and one slurmd per node; each node is a set of
    namespaces with a management interface and rails whose line rate is kept by the kernel.
    Needs root.  Nothing touches the machine's own network.

    \b
    PROGRAM up
    eval "$(PROGRAM env)"
    srun -N4 hostname
    PROGRAM down
    """


class _Progress:
    """Tell each phase as it begins and how long it took: a line each, or one live line."""

    def __init__(self, *, quiet: bool) -> None:
        from rich.console import Console  # noqa: PLC0415 - slow, and only progress needs it

        self._console = Console(stderr=True, quiet=quiet, highlight=False)
        self._status = self._console.status("") if self._console.is_terminal else None
        self._phase: str | None = None
        self._since = self.begin = time.monotonic()

    def __enter__(self) -> Callable[[str], None]:
        if self._status:
            self._status.start()
        return self._next

    def _next(self, phase: str) -> None:
        self._end_phase()
        self._phase, self._since = phase, time.monotonic()
        if self._status:
            self._status.update(phase)

    def _end_phase(self) -> None:
        if self._phase:
            self._console.print(f"{time.monotonic() - self._since:6.2f} s  {self._phase}")

    def __exit__(self, kind: object, *_: object) -> None:
        if kind is None:
            self._end_phase()
        if self._status:
            self._status.stop()


def _interrupt(*_: object) -> NoReturn:
    raise KeyboardInterrupt


def _rate(text: str | None) -> int | None:
    return parse_rate(text) if text else None


def _rates(texts: tuple[str, ...]) -> dict[int, int]:
    found = {}
    for text in texts:
        rail, mark, rate = text.partition("=")
        if not mark or not re.fullmatch("[0-9]{1,3}", rail):
            raise click.BadParameter(f"{text!r}: expected RAIL=RATE, as 1=200mbit")
        found[int(rail)] = parse_rate(rate)
    return found


@group.command("up")
@_name
@click.option(
    "--kind",
    type=click.Choice(KINDS),
    help="What nodes are: namespaces of this machine, or small virtual machines with a Soft-RoCE "
    "device for each rail, for everything tagged infiniband.  [default: namespaces]",
)
@click.option("--nodes", type=int, help="Compute nodes, 2 to 64.  [default: 4; rdma: 2]")
@click.option("--rails", type=int, help="Rails of each node, 1 to 8.  [default: 2]")
@click.option(
    "--leaves", type=int, help="Leaf switches of each rail, at most one a node.  [default: 2]"
)
@click.option("--rate", help="Line rate of the rails.  [default: 200mbit; rdma: 80mbit]")
@click.option("--rail-rate", multiple=True, help="Line rate of one rail, as 1=200mbit.")
@click.option(
    "--uplink", help="Line rate between a leaf and the spine, each way.  [default: unlimited]"
)
@click.option("--mtu", type=int, help="MTU of the rails in bytes.  [default: 1500; rdma: 4200]")
@click.option("--cpus", type=int, help="CPUs that Slurm gives away per node.  [default: 4]")
@click.option("--memory", "memory_mb", type=int, help="Of a guest, in MB.  [default: 1280]")
@click.option(
    "--accel",
    "acceleration",
    type=click.Choice(["kvm", "tcg"]),
    help="What guests run with.  [default: KVM where it works, else software emulation]",
)
@click.option(
    "--share",
    multiple=True,
    type=click.Path(exists=True, file_okay=False),
    help="A folder that every node must see at the same path.  Guests need it for all but the "
    "project's own folder, other nodes only below /tmp, /run and /dev/shm, which each has for "
    "itself.",
)
@click.option(
    "--accounting/--no-accounting",
    default=None,
    help="Without: no slurmdbd and no database, as on many a small cluster.  [default: with]",
)
@click.option(
    "--slurm",
    multiple=True,
    metavar="KEY=VALUE",
    help="A line of slurm.conf as another site has it, as PrivateData=jobs or "
    "'PartitionName=DEFAULT OverSubscribe=FORCE:4'; it stands in front of the nodes and the "
    "partition.",
)
@_json
def up(name: str, *, as_json: bool, **options: Any) -> None:
    r"""Bring the cluster up, or repair it; at once when it is up already.

    \b
    PROGRAM up --rate 200mbit
    PROGRAM up --nodes 16 --leaves 4 --rate 25mbit --uplink 50mbit
    PROGRAM up --kind rdma
    """
    wishes = Wishes(
        rate_bit_s=_rate(options.pop("rate")),
        rail_rates_bit_s=_rates(options.pop("rail_rate")),
        uplink_bit_s=_rate(options.pop("uplink")),
        shares=options.pop("share"),
        **options,
    )
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, _interrupt)
    progress = _Progress(quiet=as_json)
    with progress as report:
        changed = service.ensure_up(name, wishes, report)
    known = service.running(name)
    took = time.monotonic() - progress.begin
    if as_json:
        told = {
            "name": name,
            "changed": changed,
            "seconds": round(took, 3),
            "env": str(Paths(name).run / "env.sh"),
            "faults": faults.in_words(known.faults),
            "acceleration": known.acceleration,
        }
        click.echo(json.dumps(told))
        return
    verb = f"is up after {took:.1f} s" if changed else "was up and is healthy"
    click.echo(f"virtual cluster {name!r} {verb}: {service.describe(known.plan)}")
    if known.acceleration:
        click.echo(f"guests run with {known.acceleration}")
    for place, text in faults.in_words(known.faults).items():
        click.echo(f"note: a fault is in place on {place}: {text}")
    click.echo(f'next: eval "$({program()} env{_name_option(name)})"; srun -N2 hostname')


def _name_option(name: str) -> str:
    return "" if name == DEFAULT_NAME else f" --name {name}"


@group.command("down")
@_name
@click.option(
    "--of-another-checkout", is_flag=True, help="Also where another checkout brought it up."
)
def down(name: str, *, of_another_checkout: bool) -> None:
    """Take the cluster down; nothing of it is left."""
    was_there = service.down(name, of_another_checkout=of_another_checkout)
    click.echo(f"virtual cluster {name!r} {'is down' if was_there else 'was not up'}")


@group.command("status")
@_name
@_json
def show_status(name: str, *, as_json: bool) -> int:
    """Show nodes, daemons and interfaces; exit status 69 unless all is healthy."""
    seen = status.observe(name)
    click.echo(json.dumps(seen, indent=1) if as_json else status.text(seen))
    return ExitStatus.DONE if seen["healthy"] else ExitStatus.UNAVAILABLE


@group.command("env")
@_name
def env(name: str) -> None:
    r"""Print the shell lines with which Slurm's commands reach the cluster.

    \b
    eval "$(PROGRAM env)"
    """
    service.running(name)
    click.echo(outside.render_environment(Paths(name)), nl=False)


@group.command("exec", context_settings={"ignore_unknown_options": True})
@_name
@click.argument("host")
@click.argument("argv", nargs=-1, required=True, type=click.UNPROCESSED)
def execute(name: str, host: str, argv: tuple[str, ...]) -> None:
    r"""Run a command on HOST (vc1, vc2... or head), in this folder; its status is ours.

    \b
    PROGRAM exec vc1 ip -br address
    """
    _enter(name, host, list(argv))


@group.command("shell")
@_name
@click.argument("host", default="head")
def shell(name: str, host: str) -> None:
    """Open a shell on HOST (the head when none is given)."""
    _enter(name, host, [os.environ.get("SHELL", "/bin/sh")])


def _enter(name: str, host: str, argv: list[str]) -> NoReturn:
    cluster.require_root()
    space = service.space_of(service.running(name), host)
    go = ["sh", "-c", 'cd "$1" 2>/dev/null || cd /; shift; exec "$@"', "sh", os.getcwd()]  # noqa: PTH109
    environment = {**os.environ, "SLURM_CONF": str(Paths(name).slurm_conf)}
    for ours in ("VCLUSTER_PROGRAM", "VCLUSTER_INSTEAD"):
        environment.pop(ours, None)
    whole = [*space.enter(), *go, *argv]
    os.execvpe(whole[0], whole, environment)  # noqa: S606 (the user's own command)


@group.command("kill")
@_name
@click.argument("node")
def kill(name: str, node: str) -> None:
    """Let NODE die at once, as if its power had failed."""
    service.kill(name, node)
    # SlurmdTimeout and the pings of slurm.conf; measured 15 to 18 s and 126 s.
    seen = "2 min" if service.running(name).plan.kind == RDMA else "15 s"
    click.echo(f"{node} is dead; Slurm sees it within some {seen}")


@group.command("revive")
@_name
@click.argument("node")
def revive(name: str, node: str) -> None:
    """Boot NODE again, without its faults, and wait until Slurm uses it."""
    service.revive(name, node)
    click.echo(f"{node} is back")


@group.command("fault")
@_name
@click.argument("place")
@click.argument("interface", required=False)
@click.option("--with", "peer", metavar="NODE", help="Only what passes between PLACE and NODE.")
@click.option(
    "--rate", help="Another line rate, as 100mbit, or a share of the planned one, as 30%."
)
@click.option(
    "--loss",
    "loss_percent",
    type=click.FloatRange(0, 100, min_open=True),
    metavar="PERCENT",
    help="Packets that the switch's port loses, seen by no counter of a node.",
)
@click.option(
    "--direction",
    type=click.Choice(faults.WAYS),
    help="Of --rate or --loss: to PLACE, or from it; of an uplink: from the spine, or to it.  'in' "
    "is done at the switch's port alone.  Both ways where not said.",
)
@click.option("--down", "cut", is_flag=True, help="Pull the cable: no carrier.")
@click.option("--mtu", type=click.IntRange(576, 9000), help="Another MTU on the node's end.")
@click.option("--firmware", help="What ethtool -i tells of its firmware, on this node only.")
@click.option(
    "--queue",
    "queue_bytes",
    type=click.IntRange(3200, 2**30),
    metavar="BYTES",
    help="A shorter queue on the node's end: bursts are dropped.",
)
@click.option(
    "--cpu",
    "cpu_percent",
    type=click.FloatRange(1, 100),
    metavar="PERCENT",
    help="What all processes of a node get of one core, together.",
)
@click.option("--crossed", is_flag=True, help="Its cable is in the switch of the next rail.")
@click.option("--clear", is_flag=True, help="Take the fault out again.")
def fault(
    name: str,
    place: str,
    interface: str | None,
    *,
    peer: str | None,
    direction: str | None,
    rate: str | None,
    clear: bool,
    **options: Any,
) -> None:
    r"""Put a fault into PLACE, or take it out.

    PLACE is a node (vc2), a leaf switch with all its cables to nodes (leaf2), or the link between a
    leaf and the spine (uplink2); INTERFACE is its rail (rail0, rail1...), all rails where not said.
    Nodes have all of these faults, leaves and uplinks --rate, --loss and --down, pairs --rate and
    --loss.  A place has one fault at a time; places have theirs at once.

    \b
    PROGRAM fault vc2 rail1 --rate 100mbit
    PROGRAM fault vc2 rail1 --rate 30% --direction in
    PROGRAM fault vc2 rail1 --with vc5 --loss 1
    PROGRAM fault vc2 --cpu 5
    PROGRAM fault vc2 --crossed
    PROGRAM fault leaf2 --rate 50%
    PROGRAM fault uplink2 rail0 --rate 8mbit --direction out
    PROGRAM fault vc2 rail1 --clear
    """
    given = [*options.values(), rate]
    if [value not in {None, False} for value in given].count(True) + clear != 1:
        raise click.UsageError(
            "exactly one of --rate, --loss, --down, --mtu, --firmware, --queue, --cpu, --crossed, "
            "--clear is needed"
        )
    if direction and not (rate or options["loss_percent"]):
        raise click.UsageError("--direction goes with --rate and --loss")
    wanted = faults.Fault(direction=direction, **options)
    hit = service.fault(name, place, interface, peer, wanted, rate)
    done = "healthy again" if clear else "fault is in place"
    for each in hit:
        click.echo(f"{each.replace('/', ' ')}: {done}")


#: the help of each command as it is written, without a program's name
_WRITTEN: dict[click.Command, str] = {}


def whole_group() -> click.Group:
    """Return the command; its help names the program as it was called, and it takes no empty text.

    ``vcluster down --name "$NAME"`` with an empty NAME would take another cluster down than meant.
    """
    for each in (group, *group.commands.values()):
        is_first = each not in _WRITTEN
        # The mark against rewrapping, two characters in a raw docstring.
        written = _WRITTEN.setdefault(each, (each.help or "").replace("\\b\n", "\b\n"))
        each.help = written.replace("PROGRAM", program())
        for parameter in each.params if is_first else ():
            if parameter.type is not click.UNPROCESSED:
                consume = partial(_consumed, parameter.consume_value, parameter)
                parameter.consume_value = consume  # type: ignore[method-assign]
    return group


def _consumed(
    consume: Callable[..., tuple[Any, click.core.ParameterSource]],
    parameter: click.Parameter,
    context: click.Context,
    given: Mapping[str, Any],
) -> tuple[Any, click.core.ParameterSource]:
    value, source = consume(context, given)
    if source is click.core.ParameterSource.COMMANDLINE:
        texts = value if isinstance(value, list | tuple) else (value,)
        if any(isinstance(each, str) and not each.strip() for each in texts):
            raise click.BadParameter("it is empty: say what is meant", context, parameter)
    return value, source
