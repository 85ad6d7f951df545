"""What the benchmarks print and move, from their command lines, in their own formats.

``osu_bw`` and ``osu_latency`` as of OSU 7.5, IMB's PingPong as of 2021.11: titles, columns and
digits of recorded outputs (``tests/data``).  How long a message takes says a function.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field


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
