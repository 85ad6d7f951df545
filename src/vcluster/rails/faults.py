"""What may be wrong with a rail: another rate or MTU, no carrier, losses, a pretended firmware.

Losses: not every kernel has netem or the action ``drop``.  A filter that redirects what it matches
to an interface that leads nowhere needs neither, and classic BPF draws the numbers.

Firmware: veth has none to flash, so ``ethtool -i`` of one node is made to tell another.  A wrapper
is bind-mounted over ethtool in that node's mount namespace only; it asks the real one and
changes a line of its answer.  Taking the last pretended firmware out takes the wrapper away.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from vcluster import cluster
from vcluster.errors import ConfigError
from vcluster.guests import guest
from vcluster.node import Space
from vcluster.plan import Node, Plan
from vcluster.processes import run
from vcluster.rails import shaping
from vcluster.rails.shaping import rate_label


@dataclass(frozen=True, kw_only=True)
class Fault:
    """What is to be wrong with a rail of one node; nothing where all is left out.

    Attributes:
        rate_bit_s: a line rate other than the planned one.
        cut: pull the cable at the switch: the node sees no carrier.
        mtu: another MTU on the node's end, in bytes.
        firmware: what ``ethtool -i`` on that node says of the rail's firmware.
        queue_bytes: what may wait to be sent on the node's end, in bytes.
        loss_percent: share of the packets that the switch's port loses, above 0 and up to 100.
        loss_direction: ``in`` to the node, ``out`` from it; None for both.
        rate_in: the rate holds for what the switch's port sends to the node, and for nothing else.
    """

    rate_bit_s: int | None = None
    cut: bool = False
    mtu: int | None = None
    firmware: str | None = None
    queue_bytes: int | None = None
    loss_percent: float | None = None
    loss_direction: str | None = None
    rate_in: bool = False

    def __str__(self) -> str:
        """Return it in words."""
        words = ["no carrier"] if self.cut else []
        way = " in" if self.rate_in else ""
        words += [f"rate {rate_label(self.rate_bit_s)}{way}"] if self.rate_bit_s else []
        words += [f"MTU {self.mtu}"] if self.mtu else []
        words += [f"firmware {self.firmware}"] if self.firmware else []
        words += [f"queue {self.queue_bytes} B"] if self.queue_bytes else []
        if self.loss_percent:
            way = f" {self.loss_direction}" if self.loss_direction else ""
            words.append(f"loss {self.loss_percent:g} %{way}")
        return ", ".join(words)


def put_in(
    plan: Plan,
    compute: Node,
    rail: int,
    space: Space,
    switches: Space,
    monitor: Path | None,
    wanted: Fault,
) -> None:
    """Make a rail of a node as ``wanted``; what is not mentioned becomes as planned.

    Args:
        plan: of the cluster.
        compute: the node.
        rail: index of its rail.
        space: where the node is.
        switches: where the other end of its cable is.
        monitor: socket of the node's QEMU; None where the node is no guest.
        wanted: what is to be wrong.

    Raises:
        ConfigError: the firmware cannot be.
        UnavailableError: a command failed.
    """
    interface, port = f"rail{rail}", compute.rail_port(rail)
    # First what may be refused, so that a refusal leaves the rail as it was.
    pretend(space, interface, wanted.firmware)
    planned = plan.rail_rates_bit_s[rail]
    rate = wanted.rate_bit_s or planned
    both_ways = planned if wanted.rate_in else rate
    cluster.shape_rail(plan, compute, rail, both_ways, switches, space, wanted.queue_bytes)
    if wanted.rate_in:
        switches.batch("tc", shaping.switch_commands(port, rate, plan.mtu))
    lose(switches, port, wanted.loss_percent or 0.0, wanted.loss_direction)
    space.batch("ip", [f"link set {interface} mtu {wanted.mtu or plan.mtu}"])
    if monitor is not None:
        guest.set_link(monitor, interface, up=not wanted.cut)
    else:
        switches.batch("ip", [f"link set {port} {'down' if wanted.cut else 'up'}"])


#: on the node's own file system: gone with the node
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
        ConfigError: no words that a firmware could be called.
        UnavailableError: ethtool is not there, or the node refuses.
    """
    if firmware is None:
        run([*space.enter(), "sh", "-c", _TAKE_OUT, "sh", interface])
        return
    if not _FIRMWARE.fullmatch(firmware):
        raise ConfigError(
            "not a firmware version",
            expected="up to 40 letters, digits and . _ - ( ) /",
            got=repr(firmware),
        )
    run([*space.enter(), "sh", "-c", _PUT_IN, "sh", interface, firmware, _WRAPPER])


#: a pair of interfaces between the switches that leads nowhere: what is lost goes there
_NOWHERE = ("nowhere", "nowhere2")
#: loads 32 random bits (<linux/filter.h>: SKF_AD_OFF + SKF_AD_RANDOM, as an unsigned number)
_RANDOM = 0xFFFFF000 + 56


def loss_program(share: float) -> list[tuple[int, int, int, int]]:
    """Return a classic BPF program that matches this share of packets, each by its own dice.

    Args:
        share: above 0, at most 1.
    """
    return [
        (0x20, 0, 0, _RANDOM),  # A = random
        (0x25, 0, 1, max(0, round(share * 2**32) - 1)),  # A above the limit: go on, else skip one
        (0x06, 0, 0, 0),  # return 0: no match
        (0x06, 0, 0, 0xFFFFFFFF),  # return -1: match
    ]


def nowhere_commands() -> list[str]:
    """Return the lines for ``ip -batch`` that make the interface where what is lost goes."""
    first, second = _NOWHERE
    return [
        f"link add {first} type veth peer name {second}",
        f"link set {first} up",
        f"link set {second} up",
    ]


def loss_commands(port: str, share_in: float, share_out: float) -> list[str]:
    """Return the lines for ``tc -batch`` that lose packets at a port of a switch.

    Args:
        port: the switch's end of a node's cable.
        share_in: of the packets to the node, 0 for none.
        share_out: of the packets from the node.
    """
    found = [f"qdisc add dev {port} clsact"]
    for hook, share in (("egress", share_in), ("ingress", share_out)):
        if share > 0:
            program = loss_program(share)
            bytecode = f"{len(program)}," + ",".join(" ".join(map(str, each)) for each in program)
            found.append(
                f'filter add dev {port} {hook} protocol ip bpf bytecode "{bytecode}" '
                f"action mirred egress redirect dev {_NOWHERE[0]}"
            )
    return found


def lose(switches: Space, port: str, percent: float, direction: str | None) -> None:
    """Let a switch's port lose packets, and no more what an earlier fault asked for.

    Args:
        switches: where the port is.
        port: the switch's end of a node's cable.
        percent: of the packets, 0 to 100; 0 for none.
        direction: ``in`` to the node, ``out`` from it; None for both.
    """
    switches.batch("tc", [f"qdisc del dev {port} clsact"], check=False)
    if percent <= 0:
        return
    switches.batch("ip", nowhere_commands(), check=False)
    share_in, share_out = (percent / 100 * (direction in {None, way}) for way in ("in", "out"))
    switches.batch("tc", loss_commands(port, share_in, share_out))
