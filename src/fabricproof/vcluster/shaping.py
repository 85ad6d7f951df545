"""Line rate of a rail: what makes a veth pair behave as a true Ethernet of its rate.

Both ends of a cable send through ``tbf``.  Three things make the rate exact:

- ``overhead 24``: tbf counts a full frame as 1514 bytes; on a wire it takes 1538 (preamble 8,
  frame check sequence 4, gap 12; IEEE 802.3), so that the ceiling of a real Ethernet holds.
- ``gso_max_segs 1``: tbf adds the overhead once per packet it is given.  A TCP stack hands down
  up to 64 KiB as one packet, whose frames after the first would travel without their overhead.
- a small burst: a bucket that has filled up lets a transfer of T seconds run above the rate by
  burst / T bytes per second.
"""

from __future__ import annotations

from fabricproof.vcluster.plan import rate_label

#: preamble and start delimiter 8, frame check sequence 4, interpacket gap 12 bytes.
WIRE_OVERHEAD_BYTES = 24
#: header of an Ethernet frame, which tbf does count.
_ETHERNET_HEADER_BYTES = 14
#: burst as time: what the kernel's timers may be late on a busy machine without losing rate.
_BURST_SECONDS = 0.0005
_BURST_FRAMES = 4
#: queue of a port, as of a shallow-buffered switch; TCP needs more than a window of all peers.
_QUEUE_BYTES = 4 * 1024 * 1024
#: classes that flows are hashed into when one flow is limited: two flows of a job share one with
#: a probability of 1/64.
_FLOW_CLASSES = 64


def burst_bytes(rate_bit_s: int, mtu: int) -> int:
    """Return the token bucket's size: 0.5 ms of traffic, at least four full frames."""
    frame = mtu + _ETHERNET_HEADER_BYTES + WIRE_OVERHEAD_BYTES
    return max(_BURST_FRAMES * frame, round(rate_bit_s / 8 * _BURST_SECONDS))


def rail_commands(
    interface: str, rate_bit_s: int, mtu: int, flow_limit_bit_s: int | None
) -> list[str]:
    """Return the lines for ``tc -batch`` that shape what ``interface`` sends.

    Args:
        interface: one end of a cable.
        rate_bit_s: line rate, in bits on the wire per second.
        mtu: of the interface, in bytes.
        flow_limit_bit_s: most that one TCP or UDP flow gets, or None.
    """
    if flow_limit_bit_s is not None and flow_limit_bit_s < rate_bit_s:
        return _flow_commands(interface, rate_bit_s, mtu, flow_limit_bit_s)
    bucket = f"rate {rate_label(rate_bit_s)} burst {burst_bytes(rate_bit_s, mtu)}"
    limits = f"limit {_QUEUE_BYTES} overhead {WIRE_OVERHEAD_BYTES}"
    return [f"qdisc replace dev {interface} root handle 1: tbf {bucket} {limits}"]


def _flow_commands(interface: str, rate: int, mtu: int, flow: int) -> list[str]:
    share = max(rate // _FLOW_CLASSES, 8000)
    commands = [
        f"qdisc replace dev {interface} root handle 1: htb default 2",
        f"class add dev {interface} parent 1: classid 1:1 {_htb(rate, rate, mtu)}",
        f"class add dev {interface} parent 1:1 classid 1:2 {_htb(share, rate, mtu)}",
    ]
    commands += [
        f"class add dev {interface} parent 1:1 classid 1:{number:x} {_htb(share, flow, mtu)}"
        for number in range(_FIRST_FLOW_CLASS, _FIRST_FLOW_CLASS + _FLOW_CLASSES)
    ]
    program = flow_program()
    bytecode = f"{len(program)}," + ",".join(" ".join(map(str, line)) for line in program)
    commands.append(f'filter add dev {interface} parent 1: protocol ip bpf bytecode "{bytecode}"')
    return commands


def _htb(rate: int, ceil: int, mtu: int) -> str:
    return (
        f"htb rate {rate_label(rate)} ceil {rate_label(ceil)} burst {burst_bytes(rate, mtu)} "
        f"cburst {burst_bytes(ceil, mtu)} overhead {WIRE_OVERHEAD_BYTES}"
    )


_FIRST_FLOW_CLASS = 0x10
#: offsets in an Ethernet frame with an IPv4 header without options.
_PROTOCOL, _SOURCE_PORT, _DESTINATION_PORT = 23, 34, 36
_TCP, _UDP = 6, 17


def flow_program() -> list[tuple[int, int, int, int]]:
    """Return a classic BPF program that gives a TCP or UDP flow its class.

    Class ``1:(0x10 + (source port ^ destination port) % 64)``; anything else matches nothing and
    goes to the default class.  Each line is (code, jump if true, jump if false, constant), with
    the codes of <linux/filter.h>.
    """
    return [
        (0x30, 0, 0, _PROTOCOL),  # A = byte[23]
        (0x15, 1, 0, _TCP),  # TCP: skip one
        (0x15, 0, 7, _UDP),  # not UDP: to the last line
        (0x28, 0, 0, _SOURCE_PORT),  # A = half word[34]
        (0x07, 0, 0, 0),  # X = A
        (0x28, 0, 0, _DESTINATION_PORT),  # A = half word[36]
        (0xAC, 0, 0, 0),  # A ^= X
        (0x54, 0, 0, _FLOW_CLASSES - 1),  # A &= 63
        (0x04, 0, 0, (1 << 16) | _FIRST_FLOW_CLASS),  # A += 1:10
        (0x16, 0, 0, 0),  # return A
        (0x06, 0, 0, 0),  # return 0: no match
    ]
