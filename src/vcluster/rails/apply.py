"""Put faults into a running cluster, and take them out: every cable they touch is set anew.

Losses: not every kernel has netem or the action ``drop``.  A filter that redirects what it matches
to an interface that leads nowhere needs neither, and classic BPF draws the numbers.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace

from vcluster import cluster
from vcluster.cluster import SWITCHES
from vcluster.errors import ConfigError
from vcluster.guests import guest
from vcluster.node import Space
from vcluster.paths import Paths
from vcluster.plan import RDMA, Node, Plan
from vcluster.processes import in_namespaces, run
from vcluster.rails import starve
from vcluster.rails.faults import (
    IN,
    OUT,
    Cable,
    Fault,
    Faults,
    Place,
    Sender,
    cable,
    is_uplink,
    leaf_number,
    require_fit,
    uplink,
)
from vcluster.rails.network import leaf_bridge, uplink_ports
from vcluster.rails.shaping import (
    SOURCE_HOST,
    bytecode,
    peak_rate,
    sender_commands,
    switch_commands,
    uplink_commands,
)
from vcluster.state import State

#: a pair of interfaces between the switches that leads nowhere: what is lost goes there
_NOWHERE = ("nowhere", "nowhere2")
#: loads 32 random bits (<linux/filter.h>: SKF_AD_OFF + SKF_AD_RANDOM, as an unsigned number)
_RANDOM = 0xFFFFF000 + 56

Program = list[tuple[int, int, int, int]]


def loss_program(share: float, host: int | None = None) -> Program:
    """Return a classic BPF program that matches this share of packets, each by its own dice.

    Args:
        share: above 0, at most 1.
        host: last byte of the address that alone loses packets; None for all that send.
    """
    ours: Program = [
        (0x30, 0, 0, SOURCE_HOST),  # A = byte[29]
        (0x15, 1, 0, host or 0),  # that host: skip one
        (0x06, 0, 0, 0),  # return 0: no match
    ]
    dice: Program = [
        (0x20, 0, 0, _RANDOM),  # A = random
        (0x25, 0, 1, max(0, round(share * 2**32) - 1)),  # A above the limit: go on, else skip one
        (0x06, 0, 0, 0),  # return 0: no match
        (0x06, 0, 0, 0xFFFFFFFF),  # return -1: match
    ]
    return dice if host is None else ours + dice


def nowhere_commands() -> list[str]:
    """Return the lines for ``ip -batch`` that make the interface where what is lost goes."""
    first, second = _NOWHERE
    return [
        f"link add {first} type veth peer name {second}",
        f"link set {first} up",
        f"link set {second} up",
    ]


def loss_commands(
    port: str, share_in: float, share_out: float, senders: tuple[Sender, ...] = ()
) -> list[str]:
    """Return the lines for ``tc -batch`` that lose packets at a port of a switch.

    Args:
        port: the switch's end of a cable.
        share_in: of the packets that leave the switch by it, 0 for none.
        share_out: of the packets that come to the switch by it.
        senders: single nodes whose packets are lost on leaving the switch.
    """
    programs = [("egress", loss_program(each.lost, each.host)) for each in senders if each.lost]
    hooks = (("egress", share_in), ("ingress", share_out))
    programs += [(hook, loss_program(share)) for hook, share in hooks if share > 0]
    lines = [
        f'filter add dev {port} {hook} protocol ip bpf bytecode "{bytecode(program)}" '
        f"action mirred egress redirect dev {_NOWHERE[0]}"
        for hook, program in programs
    ]
    return [f"qdisc add dev {port} clsact", *lines] if lines else []


def rate_commands(port: str, wanted: Cable, mtu: int) -> list[str]:
    """Return the lines for ``tc -batch`` with which a switch sends to a node as it is to."""
    slowed = {each.host: each.rate_bit_s for each in wanted.senders if each.rate_bit_s}
    if not slowed:
        return switch_commands(port, wanted.rate_in, mtu)
    rates = {host: min(rate, wanted.rate_in) for host, rate in slowed.items()}
    return sender_commands(port, peak_rate(wanted.rate_in, mtu), rates, mtu)


#: A veth has no firmware to flash.  A wrapper is bind-mounted over ethtool in that node's mount
#: namespace only; it asks the real one and changes a line of its answer.  Taking the last
#: pretended firmware out takes the wrapper away.  The folder is of the node's own: gone with it
_FOLDER = "/run/fabricproof-ethtool"

#: what vendors write: "16.35.4030 (MT_0000000008)", "229.1.123.0/pkg 229.1.123.0"
_FIRMWARE = re.compile(r"[A-Za-z0-9_.()/ -]{1,40}")

_WRAPPER = rf"""#!/bin/sh
if [ "$1" = -i ] && [ -r "{_FOLDER}/firmware/$2" ]; then
    {_FOLDER}/real "$@" | while IFS= read -r line; do
        case $line in
        firmware-version:*) echo "firmware-version: $(cat "{_FOLDER}/firmware/$2")" ;;
        *) printf '%s\n' "$line" ;;
        esac
    done
    exit
fi
exec {_FOLDER}/real "$@"
"""

_PUT_IN = rf"""set -eu
tool=$(command -v ethtool)
mkdir -p {_FOLDER}/firmware
printf '%s\n' "$2" >"{_FOLDER}/firmware/$1"
if [ ! -x {_FOLDER}/real ]; then
    cp "$tool" {_FOLDER}/real
    printf '%s' "$3" >{_FOLDER}/wrapper
    chmod 755 {_FOLDER}/wrapper
    mount --bind {_FOLDER}/wrapper "$tool"
fi
"""

_TAKE_OUT = rf"""
rm -f "{_FOLDER}/firmware/$1"
[ -d {_FOLDER}/firmware ] || exit 0
rmdir {_FOLDER}/firmware 2>/dev/null || exit 0
umount "$(command -v ethtool)" && rm -rf {_FOLDER}
"""


def pretend(space: Space, interface: str, firmware: str | None) -> None:
    """Let a node's ethtool tell ``firmware`` of an interface; None: the truth again.

    Raises:
        UnavailableError: ethtool is not there, or the node refuses.
    """
    if firmware is None:
        run([*space.enter(), "sh", "-c", _TAKE_OUT, "sh", interface])
        return
    run([*space.enter(), "sh", "-c", _PUT_IN, "sh", interface, firmware, _WRAPPER])


def require_firmware(firmware: str | None) -> None:
    """Refuse what no firmware is called.

    Raises:
        ConfigError: no words that a firmware could be called.
    """
    if firmware is not None and not _FIRMWARE.fullmatch(firmware):
        raise ConfigError(
            "not a firmware version",
            expected="up to 40 letters, digits and . _ - ( ) /",
            got=repr(firmware),
        )


def put_in(paths: Paths, known: State, wanted: Faults) -> State:
    """Give places of a cluster faults; what was wrong with them before is taken out.

    Args:
        paths: of the cluster.
        known: what runs.
        wanted: what is to be wrong; an empty fault makes its place healthy.

    Returns:
        The state with the faults that are in place now.

    Raises:
        ConfigError: a place cannot have its fault; nothing has changed then.
        UnavailableError: a command failed.
    """
    for at, what in wanted.items():
        require_fit(known.plan, at, what)
        require_firmware(what.firmware)
    # A pair is the same one from either end.
    gone = {*wanted, *(replace(at, host=at.peer, peer=at.host) for at in wanted if at.peer)}
    there = {at: what for at, what in known.faults.items() if at not in gone}
    there |= {at: what for at, what in wanted.items() if str(what)}
    fresh = replace(known, faults=there)
    for at in wanted:
        _set_place(paths, fresh, at)
    return fresh


def _set_place(paths: Paths, known: State, at: Place) -> None:
    if at.rail < 0:
        _set_cpu(known, at)
    elif is_uplink(at.host):
        _set_uplink(known, leaf_number(known.plan, at.host) or 0, at.rail)
    else:
        leaf = leaf_number(known.plan, at.host)
        hit = [each for each in known.plan.nodes if at.is_of(each.name) or each.leaf == leaf]
        for compute in hit:
            # The cable of a dead node is made when it is revived.
            if known.spaces[compute.name].alive():
                set_cable(paths, known, compute, at.rail)


def _set_cpu(known: State, at: Place) -> None:
    what, space = known.faults.get(at), known.spaces[at.host]
    if what is None or not what.cpu_percent:
        starve.feed(known.plan.name, at.host)
        return
    pids = in_namespaces("pid", [space.pid_space])
    starve.starve(known.plan.name, at.host, pids, what.cpu_percent)


def _set_uplink(known: State, leaf: int, rail: int) -> None:
    plan, switches = known.plan, known.spaces[SWITCHES]
    up, down = uplink_ports(rail, leaf)
    for port, way in ((up, OUT), (down, IN)):
        wanted = uplink(plan, known.faults, leaf, rail, way)
        _forget(switches, port)
        if wanted.rate_bit_s is not None:
            switches.batch("tc", uplink_commands(port, wanted.rate_bit_s, plan.mtu))
        _lose(switches, loss_commands(port, wanted.lost, 0.0))
    cut = known.faults.get(Place(host=f"uplink{leaf}", rail=rail), Fault()).cut
    switches.batch("ip", [f"link set {up} {'down' if cut else 'up'}"])


def set_cable(paths: Paths, known: State, compute: Node, rail: int) -> None:
    """Make the cable of a node's rail as the faults in place want it.

    Raises:
        UnavailableError: a command failed.
    """
    plan, space, switches = known.plan, known.spaces[compute.name], known.spaces[SWITCHES]
    wanted = cable(plan, known.faults, compute, rail)
    interface, port = f"rail{rail}", compute.rail_port(rail)
    pretend(space, interface, wanted.firmware)
    _forget(switches, port)
    cluster.shape_rail(plan, compute, rail, wanted.rate_out, switches, space, wanted.queue_bytes)
    if wanted.rate_in != wanted.rate_out or wanted.senders:
        _forget(switches, port)
        switches.batch("tc", rate_commands(port, wanted, plan.mtu))
    losses = loss_commands(port, wanted.lost_in, wanted.lost_out, wanted.senders)
    _lose(switches, losses)
    space.batch("ip", [f"link set {interface} mtu {wanted.mtu}"])
    switches.batch("ip", [f"link set {port} master {leaf_bridge(wanted.switch, compute.leaf)}"])
    if plan.kind == RDMA:
        guest.set_link(guest.monitor(paths, compute.name), interface, up=not wanted.cut)
    else:
        switches.batch("ip", [f"link set {port} {'down' if wanted.cut else 'up'}"])


def _forget(switches: Space, port: str) -> None:
    """Take rates and losses from a port; there may be none."""
    lines = [f"qdisc del dev {port} clsact", f"qdisc del dev {port} root"]
    for line in lines:  # a batch ends at its first failure
        switches.batch("tc", [line], check=False)


def _lose(switches: Space, commands: list[str]) -> None:
    if commands:
        switches.batch("ip", nowhere_commands(), check=False)
        switches.batch("tc", commands)


def forget_port(plan: Plan, compute: Node, switches: Space) -> None:
    """Take everything that faults put there from the switch's ports of a node."""
    for rail in plan.rails:
        _forget(switches, compute.rail_port(rail))


def restore(paths: Paths, known: State, compute: Node) -> None:
    """Give a node that was started again the faults of its leaf and of its pairs."""
    touched: Iterable[int] = {
        at.rail for at in known.faults if at.is_of(compute.name) or at.host == f"leaf{compute.leaf}"
    }
    for rail in sorted(touched):
        set_cable(paths, known, compute, rail)


def without_node(known: State, host: str) -> State:
    """Return the state of a node that was started again: its own faults went with it."""
    starve.feed(known.plan.name, host)
    left = {at: what for at, what in known.faults.items() if at.host != host or at.peer}
    return replace(known, faults=left)
