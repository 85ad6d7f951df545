"""What a faulty port of a switch loses and lets pass, as command lists for ``tc -batch``.

Losses: not every kernel has netem or the action ``drop``.  A filter that redirects what it matches
to an interface that leads nowhere needs neither, and classic BPF draws the numbers.
"""

from __future__ import annotations

from vcluster.rails.faults import Cable, Sender
from vcluster.rails.shaping import (
    SOURCE_HOST,
    bytecode,
    peak_rate,
    sender_commands,
    switch_commands,
)

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
