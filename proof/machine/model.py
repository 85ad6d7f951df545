"""A machine that does not exist: nodes, two rails, noise, counters that only rise, programs.

What is published of scatter is drawn, one kind a campaign: lognormal, with heavy tails (Student's t
of 3 degrees), bimodal (one number in fifty 8 % worse), stalls (one in a hundred a fifth worse),
quantised.  A part of it is a node's own, a part the night's, a part the leg's; the rest is each
number's.  Noise only ever costs: nothing is faster than its wire.

Programs print in their own formats what their command lines ask for: ``osu_bw`` and ``osu_latency``
as of OSU 7.5, IMB's PingPong as of 2021.11, with titles, columns and digits of recorded outputs
(``tests/data``).  How long a message takes says a function.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from fabricproof.physics import Fabric, find_link


class NoiseKind(StrEnum):
    """How the numbers of one campaign scatter."""

    LOGNORMAL = "lognormal"
    HEAVY = "heavy tails"
    BIMODAL = "bimodal"
    STALLS = "stalls"
    QUANTISED = "quantised"


@dataclass(frozen=True, kw_only=True)
class ModelFabric:
    """A fabric of the model.

    Attributes:
        name: of the fabric, in records.
        rails: interfaces or ports.
        facts: as a site would declare it.
        rate_mb_s: what one healthy rail carries, MB/s; below the low end of its ceiling.
        start_us: what a message costs before its bytes count, us, one way.
        gap_us: the same where many are in flight.
        frame_bytes: payload of a full packet.
        header_bytes: of each packet, as its counters count them.
        reference_factor: how many times the right one the site's reference of latency is.
    """

    name: str
    rails: tuple[str, ...]
    facts: Fabric
    rate_mb_s: float
    start_us: float
    gap_us: float
    frame_bytes: int
    header_bytes: int
    reference_factor: float = 1.0

    @property
    def is_verbs(self) -> bool:
        """Whether the rails are ports of HCAs."""
        return ":" in self.rails[0]


#: ConnectX-6 HDR: 24.5 GB/s and 1.0 us are what osu_bw and osu_latency are published to show
#: (MVAPICH, "Performance", HDR); frames of 4096 B (IBA specification vol. 1, 14.2.5.6)
VERBS = ModelFabric(
    name="ib0",
    rails=("mlx5_0:1", "mlx5_1:1"),
    facts=Fabric(link=find_link("HDR 4x"), protocol="ib", mtu=4096),
    rate_mb_s=24_500.0,
    start_us=1.05,
    gap_us=0.30,
    frame_bytes=4096,
    header_bytes=30,
)

#: 25GbE: 14 us for a message of TCP; segments of 1448 B, 66 B before them (Ethernet, IP, TCP)
SOCKETS = ModelFabric(
    name="eth0",
    rails=("eth0", "eth1"),
    facts=Fabric(link=find_link("25GbE"), protocol="tcp", mtu=1500),
    rate_mb_s=2_925.0,
    start_us=14.0,
    gap_us=1.5,
    frame_bytes=1448,
    header_bytes=66,
)

#: interfaces that every node has beside its rails
MANAGEMENT, LOOPBACK, IPOIB = "eno1", "lo", "ibp0"

#: standard deviations on a logarithm: between nodes, nights, legs, and of each number: of
#: bandwidths.  Times scatter :data:`TIMES_SCATTER` times as much.
NODE_SCATTER, NIGHT_SCATTER, LEG_SCATTER, NUMBER_SCATTER = 0.003, 0.003, 0.004, 0.006
TIMES_SCATTER = 2.5

#: probability and depth of the second mode, and of a stall
MODE, STALL = (0.02, 0.08), (0.01, 0.20)

#: step of what is quantised, as a part of the number
STEP = 0.02


@dataclass(kw_only=True)
class ModelMachine:
    """Nodes of one campaign.

    Attributes:
        fabric: what joins them.
        nodes: names.
        chance: draws everything.
        noise: how numbers scatter.
        counters: (node, interface) -> counter -> where it stands.
    """

    fabric: ModelFabric
    nodes: tuple[str, ...]
    chance: random.Random
    noise: NoiseKind = NoiseKind.LOGNORMAL
    counters: dict[tuple[str, str], dict[str, int]] = field(default_factory=dict)
    clock_us: int = 1_700_000_000_000_000

    def __post_init__(self) -> None:
        """Draw what is a node's own, the night, and where counters stand."""
        self.own = {node: abs(self.chance.gauss(0, NODE_SCATTER)) for node in self.nodes}
        self.night = abs(self.chance.gauss(0, NIGHT_SCATTER))
        for node in self.nodes:
            for name in self.interfaces:
                self.counters[node, name] = dict.fromkeys(_PORT if ":" in name else _ETHERNET, 0)
                for key in _TRAFFIC:
                    self.counters[node, name][key] = self.chance.randrange(10**9, 10**12) // 4 * 4
            self.counters[node, "node/tcp"] = dict.fromkeys(_TCP, 1000)
            self.counters[node, "node/cores"] = dict.fromkeys(_CORES, 1000)

    @property
    def interfaces(self) -> tuple[str, ...]:
        """Return what a node has, beside its TCP and its cores."""
        below = (IPOIB,) if self.fabric.is_verbs else ()
        return (*self.fabric.rails, *below, MANAGEMENT, LOOPBACK)

    def leg_cost(self, nodes: Sequence[str]) -> float:
        """Draw what one start of a leg costs more than nothing, on a logarithm."""
        common = self.night + abs(self.chance.gauss(0, LEG_SCATTER))
        return common + max((self.own.get(node, 0.0) for node in nodes), default=0.0)

    def number_cost(self) -> float:
        """Draw what one number costs more than nothing, on a logarithm."""
        chance, scatter = self.chance, NUMBER_SCATTER
        if self.noise is NoiseKind.HEAVY:
            spread = chance.gauss(0, 1) / max(math.sqrt(chance.gammavariate(1.5, 2 / 3)), 0.1)
            return abs(spread) * scatter
        cost = abs(chance.gauss(0, scatter))
        if self.noise is NoiseKind.QUANTISED:
            return round(cost / STEP + 0.5) * STEP
        rare = {NoiseKind.BIMODAL: MODE, NoiseKind.STALLS: STALL}.get(self.noise)
        return cost + rare[1] if rare and chance.random() < rare[0] else cost


_TRAFFIC = ("tx_bytes", "rx_bytes", "tx_packets", "rx_packets")
_ETHERNET = (*_TRAFFIC, "tx_errors", "rx_errors", "tx_dropped", "rx_dropped", "carrier_changes")
_PORT = (
    *_TRAFFIC,
    *("symbol_error", "link_error_recovery", "link_downed", "port_rcv_errors"),
    *("port_xmit_discards", "local_link_integrity_errors", "excessive_buffer_overrun_errors"),
    *("port_xmit_wait", "packet_seq_err", "out_of_sequence", "local_ack_timeout_err"),
)
_TCP = ("OutSegs", "RetransSegs", "TCPDSACKRecv", "TCPDSACKOfoRecv")
_CORES = ("busy_ticks", "idle_ticks", "steal_ticks", "own_ticks", "waited_us", "clock_us")


@dataclass(kw_only=True)
class Moved:
    """Payload and messages that one half of the ranks sent, and how long it all took, us."""

    messages: list[tuple[int, int]] = field(default_factory=list)
    """(size, how many), in bytes."""
    answers: list[tuple[int, int]] = field(default_factory=list)
    """The same of the other half."""
    seconds: float = 0.0


#: (size in bytes) -> us for one message: in a window, or one way of a ping-pong
Cost = Callable[[int], float]

#: bytes of the answer to a window (osu_bw.c)
ANSWER_BYTES = 4


def option(argv: Sequence[str], name: str) -> str:
    """Return what stands after an option."""
    return argv[list(argv).index(name) + 1]


def osu(argv: Sequence[str], cost: Cost) -> tuple[str, Moved]:
    """Return what ``osu_bw`` or ``osu_latency`` prints, and what it moves."""
    low, high = map(int, option(argv, "-m").split(":"))
    iterations, warmups = int(option(argv, "-i")), int(option(argv, "-x"))
    is_latency = "-W" not in argv
    window = 1 if is_latency else int(option(argv, "-W"))
    title = "Latency" if is_latency else "Bandwidth"
    column = "Latency (us)" if is_latency else "Bandwidth (MB/s)"
    lines = [f"# OSU MPI {title} Test v7.5", "# Datatype: MPI_CHAR.", f"# Size      {column}"]
    moved, size = Moved(), low
    while size <= high:
        taken = cost(size)
        value = taken if is_latency else size / taken
        lines.append(f"{size:<10d}{value:18.2f}")
        count = (iterations + warmups) * window
        moved.messages.append((size, count))
        moved.answers.append((size, count) if is_latency else (ANSWER_BYTES, count // window))
        moved.seconds += count * taken * (2 if is_latency else 1) / 1e6
        size *= 2
    return "\n".join(lines) + "\n", moved


_IMB_HEAD = """\
#----------------------------------------------------------------
#    Intel(R) MPI Benchmarks 2021.11, MPI-1 part
#----------------------------------------------------------------
# Date                  : Fri Nov 20 17:33:55 2026
# Machine               : x86_64
# System                : Linux
# Release               : 6.8.0
# Version               : #1 SMP PREEMPT_DYNAMIC @0
# MPI Version           : 4.1
# MPI Thread Environment: 


# Calling sequence was: 

# {call} 

# Minimum message length in bytes:   0
# Maximum message length in bytes:   {most}
#
# MPI_Datatype                   :   MPI_BYTE 
# MPI_Datatype for reductions    :   MPI_FLOAT 
# MPI_Op                         :   MPI_SUM  
# 
# 

# List of Benchmarks to run:

# PingPong

#---------------------------------------------------
# Benchmarking PingPong 
# #processes = 2 
#---------------------------------------------------
       #bytes #repetitions      t[usec]   Mbytes/sec
"""  # noqa: W291 - as IMB prints it

_IMB_END = "\n\n# All processes entering MPI_Finalize\n\n"


def ping_pong(argv: Sequence[str], cost: Cost) -> tuple[str, Moved]:
    """Return what IMB's PingPong prints, and what it moves: once unseen, once measured."""
    low, high = map(int, option(argv, "-msglog").split(":"))
    most, volume = map(int, option(argv, "-iter").split(","))
    sizes = [0, *(2**power for power in range(low, high + 1))]
    lines, moved = [], Moved()
    for size in sizes:
        count = max(1, min(most, volume * 1_000_000 // max(size, 1)))
        printed = f"{cost(size):.2f}"
        rate = size / float(printed)
        lines.append(f"{size:13d}{count:13d}{printed:>13}{rate:13.2f}")
        moved.messages.append((size, 2 * count))
        moved.answers.append((size, 2 * count))
        moved.seconds += 4 * count * float(printed) / 1e6
    head = _IMB_HEAD.format(call=" ".join(argv), most=2**high)
    return head + "\n".join(lines) + _IMB_END, moved


#: program -> how it is played
PLAYED = {"osu_bw": osu, "osu_latency": osu, "PingPong": ping_pong}
