"""Line rate of a rail: what makes a veth pair behave as an Ethernet of its rate.

The node's end of a cable decides.  Its ``tbf`` is set so that a rail is never faster than the
wire it stands for, and loses little to the lateness of a busy machine:

- ``overhead 24``: tbf counts a full frame as 1514 bytes; on a wire it takes 1538 (preamble 8,
  frame check sequence 4, gap 12; IEEE 802.3), so that the ceiling of a real Ethernet holds.
- ``peakrate`` is the line rate, with a bucket just below two frames.  Without it, the bucket of
  the mean rate, full after every pause, would let a whole message pass in no time: a ping-pong
  of 16 KiB came out at 1.5 times the line rate.
- that small bucket has a second effect: tbf splits every packet larger than it into its frames
  (a TCP stack hands down up to 64 KiB as one packet), so that each is counted with its overhead.
- the mean rate is 0.5 % below, because tbf wants it below the peak.

What remains: the first two frames after a pause take no time.  The switch's end only limits
what several nodes send to one, and must not hold up again what comes from the first in bursts.
docs/virtual-cluster.md has measurements.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from vcluster.errors import ConfigError

#: preamble and start delimiter 8, frame check sequence 4, interpacket gap 12 bytes.
WIRE_OVERHEAD_BYTES = 24
_ETHERNET_HEADER_BYTES = 14
#: mean rate over peak rate.
_TRIM = 0.995
#: what a timer or a core may be late before the mean rate suffers.
_BUCKET_SECONDS = 0.002
#: what the timers of a virtual machine are late all the time: the peak's bucket must cover it.
_TIMER_SECONDS = 50e-6
#: of a guest's rail: 5 ms at 100 Mb/s
GUEST_BUCKET_BYTES = 65536
_QUEUE_BYTES = 4 * 1024 * 1024
#: classes of an uplink, for what each node sends
_SENDER_CLASSES = 64

_RATE = re.compile(r"([0-9]{1,12}(?:\.[0-9]{1,12})?)\s*(kbit|mbit|gbit)\Z", re.IGNORECASE)
_RATE_FACTOR = {"kbit": 10**3, "mbit": 10**6, "gbit": 10**9}
#: below this a tbf bucket of two frames is a second of traffic; above it veth is the limit.
_RATE_RANGE = (10**6, 100 * 10**9)


def parse_rate(text: str) -> int:
    """Read a rate as tc(8) writes it (``400mbit``, ``1gbit``) into bit/s.

    Raises:
        ConfigError: not such a rate, or outside 1 Mb/s to 100 Gb/s.
    """
    match = _RATE.match(text.strip())
    rate = round(float(match[1]) * _RATE_FACTOR[match[2].lower()]) if match else 0
    if not _RATE_RANGE[0] <= rate <= _RATE_RANGE[1]:
        raise ConfigError(
            "not a rate of a virtual rail",
            expected="a number from 1mbit to 100gbit, as 400mbit or 1gbit",
            got=repr(text),
        )
    return rate


def rate_label(rate_bit_s: int) -> str:
    """Return a rate as tc(8) reads it, in the largest unit that keeps it whole."""
    for unit in ("gbit", "mbit", "kbit"):
        if rate_bit_s % _RATE_FACTOR[unit] == 0:
            return f"{rate_bit_s // _RATE_FACTOR[unit]}{unit}"
    return f"{rate_bit_s}bit"


def frame_bytes(mtu: int) -> int:
    """Return what a full frame takes on the wire, in bytes."""
    return mtu + _ETHERNET_HEADER_BYTES + WIRE_OVERHEAD_BYTES


def bucket_bytes(rate_bit_s: int, mtu: int) -> int:
    """Return the mean rate's bucket: 2 ms of traffic, at least four full frames."""
    return max(4 * frame_bytes(mtu), round(rate_bit_s / 8 * _BUCKET_SECONDS))


def peak_bucket_bytes(rate_bit_s: int, mtu: int) -> int:
    """Return the peak rate's bucket: just below two frames, more on a fast rail.

    It must not hold two frames, or tbf would not split a packet of two.
    """
    below_two = 2 * (mtu + _ETHERNET_HEADER_BYTES) - 28
    return max(below_two, round(rate_bit_s / 8 * _TIMER_SECONDS))


def peak_rate(rate_bit_s: int, mtu: int) -> int:
    """Return the peak rate in bit/s: the line rate, less what may be uncounted on a fast rail.

    A packet that fits into the peak's bucket stays whole, and its second and later frames travel
    without their 24 bytes of overhead.
    """
    frames = max(1, peak_bucket_bytes(rate_bit_s, mtu) // (mtu + _ETHERNET_HEADER_BYTES))
    uncounted = WIRE_OVERHEAD_BYTES * (frames - 1) / (frames * frame_bytes(mtu))
    return round(rate_bit_s * (1 - uncounted))


def node_commands(
    interface: str, rate_bit_s: int, mtu: int, queue_bytes: int | None = None
) -> list[str]:
    """Return the lines for ``tc -batch`` that shape what a node sends on a rail.

    Args:
        interface: the node's end of the cable.
        rate_bit_s: line rate, in bits on the wire per second.
        mtu: of the rail, in bytes.
        queue_bytes: what may wait to be sent; None for as much as is ever useful.
    """
    peak = f"peakrate {rate_label(peak_rate(rate_bit_s, mtu))}"
    bucket = f"mtu {peak_bucket_bytes(rate_bit_s, mtu)}"
    return [f"{_mean(interface, rate_bit_s, mtu, queue_bytes)} {peak} {bucket}"]


def guest_commands(
    interface: str, rate_bit_s: int, mtu: int, queue_bytes: int | None = None
) -> list[str]:
    """Return the lines for ``tc -batch`` that shape what a guest sends on a rail.

    An emulated core is late by milliseconds, and a rail with a peak rate never makes up for them
    (measured: 8.7 MB/s of 12.3).  So a guest's bucket holds :data:`GUEST_BUCKET_BYTES`, which pass
    at once; what is sent for long keeps the rate.
    """
    rate = rate_label(round(rate_bit_s * _TRIM))
    burst = max(GUEST_BUCKET_BYTES, bucket_bytes(rate_bit_s, mtu))
    line = (
        f"qdisc replace dev {interface} root handle 1: tbf rate {rate} burst {burst} "
        f"limit {queue_bytes or _QUEUE_BYTES} overhead {WIRE_OVERHEAD_BYTES}"
    )
    return [line]


def switch_commands(interface: str, rate_bit_s: int, mtu: int) -> list[str]:
    """Return the lines for ``tc -batch`` that shape what a switch sends to a node."""
    return [_mean(interface, rate_bit_s, mtu)]


def _mean(interface: str, rate_bit_s: int, mtu: int, queue_bytes: int | None = None) -> str:
    rate = rate_label(round(peak_rate(rate_bit_s, mtu) * _TRIM))
    return (
        f"qdisc replace dev {interface} root handle 1: tbf rate {rate} "
        f"burst {bucket_bytes(rate_bit_s, mtu)} limit {queue_bytes or _QUEUE_BYTES} "
        f"overhead {WIRE_OVERHEAD_BYTES}"
    )


def uplink_commands(port: str, rate_bit_s: int, mtu: int) -> list[str]:
    """Return the lines for ``tc -batch`` that shape what a switch sends to another one.

    Every node that sends has a class of its own and so an even share, as the arbiter of a switch
    gives it to its input ports.  In one queue the node with the larger windows gets the link.

    Args:
        port: one switch's end of the cable.
        rate_bit_s: line rate, in bits on the wire per second.
        mtu: of the rail, in bytes.
    """
    rate = round(peak_rate(rate_bit_s, mtu) * _TRIM)
    quantum = f"quantum {mtu + _ETHERNET_HEADER_BYTES}"
    share = f"{_htb(max(rate // _SENDER_CLASSES, 8000), rate, mtu)} {quantum}"
    class_add = f"class add dev {port} parent"
    commands = [
        f"qdisc replace dev {port} root handle 1: htb default 2",
        f"{class_add} 1: classid 1:1 {_htb(rate, rate, mtu)} {quantum}",
        f"{class_add} 1:1 classid 1:2 {share}",
    ]
    commands += [
        f"{class_add} 1:1 classid 1:{number:x} {share}"
        for number in range(_FIRST_SENDER_CLASS, _FIRST_SENDER_CLASS + _SENDER_CLASSES)
    ]
    chosen = f'protocol ip bpf bytecode "{bytecode(source_program())}"'
    return [*commands, f"filter add dev {port} parent 1: {chosen}"]


def sender_commands(port: str, rate_bit_s: int, slowed: Mapping[int, int], mtu: int) -> list[str]:
    """Return the lines for ``tc -batch`` with which a port sends what some nodes sent more slowly.

    Args:
        port: the switch's end of the cable.
        rate_bit_s: of all that it sends.
        slowed: by the last byte of a sender's address, the most that it gets, bit/s.
        mtu: of the rail, in bytes.
    """
    rate, quantum = round(rate_bit_s * _TRIM), f"quantum {mtu + _ETHERNET_HEADER_BYTES}"
    shares = {host: round(peak_rate(most, mtu) * _TRIM) for host, most in slowed.items()}
    rest = max(rate - sum(shares.values()), rate // _SENDER_CLASSES)
    class_add = f"class add dev {port} parent"
    commands = [
        f"qdisc replace dev {port} root handle 1: htb default 2",
        f"{class_add} 1: classid 1:1 {_htb(rate, rate, mtu)} {quantum}",
        f"{class_add} 1:1 classid 1:2 {_htb(rest, rate, mtu)} {quantum}",
    ]
    for host, share in shares.items():
        number = _FIRST_SENDER_CLASS + host
        program = [
            (0x30, 0, 0, SOURCE_HOST),  # A = byte[29]
            (0x15, 1, 0, host),  # that host: skip one
            (0x06, 0, 0, 0),  # return 0: no match
            (0x06, 0, 0, (1 << 16) | number),  # return its class
        ]
        chosen = f'protocol ip bpf bytecode "{bytecode(program)}"'
        commands += [
            f"{class_add} 1:1 classid 1:{number:x} {_htb(share, share, mtu)} {quantum}",
            f"filter add dev {port} parent 1: {chosen}",
        ]
    return commands


def bytecode(program: Sequence[tuple[int, int, int, int]]) -> str:
    """Return a classic BPF program as tc-bpf(8) reads it."""
    return f"{len(program)}," + ",".join(" ".join(map(str, line)) for line in program)


def _htb(rate: int, ceil: int, mtu: int) -> str:
    buckets = [bucket_bytes(value, mtu) for value in (rate, ceil)]
    return (
        f"htb rate {rate_label(rate)} ceil {rate_label(ceil)} burst {buckets[0]} "
        f"cburst {buckets[1]} overhead {WIRE_OVERHEAD_BYTES}"
    )


_FIRST_SENDER_CLASS = 0x10
#: offset of the last byte of the source address in an Ethernet frame with an IPv4 header
SOURCE_HOST = 29


def source_program() -> list[tuple[int, int, int, int]]:
    """Return a classic BPF program that gives what a node sends its class.

    Class ``1:(0x10 + last byte of the source address % 64)``: up to 64 nodes that follow each other
    never share one.  Each line is (code, jump if true, jump if false, constant), with the codes of
    <linux/bpf_common.h>.
    """
    return [
        (0x30, 0, 0, SOURCE_HOST),  # A = byte[29]
        (0x54, 0, 0, _SENDER_CLASSES - 1),  # A &= 63
        (0x04, 0, 0, (1 << 16) | _FIRST_SENDER_CLASS),  # A += 1:10
        (0x16, 0, 0, 0),  # return A
    ]


def steering_script(cpu_count: int) -> str:
    """Return a shell script that keeps the frames of a flow on one CPU, in order.

    Without it a flow's frames pass the switches on whichever CPU a timer fired, overtake each
    other, and TCP sends some again.  The root of a user namespace may not set it: it goes on
    without.
    """
    words = []
    while cpu_count > 0:
        words.append(f"{(1 << min(cpu_count, 32)) - 1:x}")
        cpu_count -= 32
    mask = ",".join(reversed(words))
    return (
        "for queue in /sys/class/net/*/queues/rx-*/rps_cpus; do "
        f'if [ -w "$queue" ]; then (echo {mask} >"$queue") 2>/dev/null || true; fi; done'
    )
