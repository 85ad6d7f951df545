"""Packets that a switch's port loses: a fault that no counter of a node shows.

Not every kernel has netem or the action ``drop``.  A filter that redirects what it matches to an
interface that leads nowhere needs neither, and classic BPF draws the numbers.
"""

from __future__ import annotations

from vcluster.node import Space

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
    switches.batch_quietly("tc", [f"qdisc del dev {port} clsact"])
    if percent <= 0:
        return
    switches.batch_quietly("ip", nowhere_commands())
    share_in, share_out = (percent / 100 * (direction in {None, way}) for way in ("in", "out"))
    switches.batch("tc", loss_commands(port, share_in, share_out))
