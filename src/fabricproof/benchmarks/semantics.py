"""What the numbers of each benchmark program mean: data, and one look-up.

A bandwidth of 7500 MB/s is a fine number from ``osu_bibw`` and an impossible one from ``osu_bw``
over the same QDR link.  The judge asks here before it compares anything.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum

from fabricproof.core.measure import Table


class Kind(StrEnum):
    """What a program is judged by first."""

    LATENCY = "latency"
    BANDWIDTH = "bandwidth"
    COLLECTIVE = "collective"
    ROUND_TRIP_FREE = "operation"
    """An accumulation or atomic operation: a time, part of which is arithmetic."""


class Consistency(StrEnum):
    """Arithmetic that binds the columns of one row together, where the tool defines it."""

    NONE = "none"
    SIZE_OVER_TIME = "bandwidth = message size / latency"
    TWICE_SIZE_OVER_TIME = "bandwidth = 2 x message size / t_max"
    FOUR_TIMES_SIZE_OVER_TIME = "bandwidth = 4 x message size / t_max"
    RATE_TIMES_SIZE = "bandwidth = message rate x message size"


@dataclass(frozen=True, kw_only=True)
class Meaning:
    """How one program's table is to be read.

    Attributes:
        kind: what is judged first.
        bidirectional: the bandwidth adds up both directions, so both directions' ceilings apply.
        pairs_share_rails: several pairs load the rails at once.
        crosses: each printed time holds at least one crossing of the fabric by its message, so
            that the latency floor binds.  Not so for collectives (the root of a broadcast is done
            when its buffer is free; the average over ranks prints less than one crossing), for
            completion at the origin only, and for times of a stream divided by its messages.
        round_trip: the printed time is there and back: a request, and the answer with the bytes.
        empty_crosses: a message of 0 bytes crosses as well; a put or get of nothing does not.
        last_send_uncounted: the printed time is the mean of both ends, and the end that sends last
            stops its clock when its buffer is free, before the message has arrived.
        consistency: the law between the columns of a row.
    """

    kind: Kind
    bidirectional: bool = False
    pairs_share_rails: bool = False
    crosses: bool = True
    round_trip: bool = False
    empty_crosses: bool = True
    last_send_uncounted: bool = False
    consistency: Consistency = Consistency.NONE


_LATENCY = Meaning(kind=Kind.LATENCY)
_BANDWIDTH = Meaning(kind=Kind.BANDWIDTH)
_BOTH_WAYS = Meaning(kind=Kind.BANDWIDTH, bidirectional=True)
_OPERATION = Meaning(kind=Kind.ROUND_TRIP_FREE)
_PING = Meaning(kind=Kind.BANDWIDTH, consistency=Consistency.SIZE_OVER_TIME)
_ONE_SIDED = replace(_PING, empty_crosses=False)

#: OSU: what each program times and adds up, from its source (c/mpi/pt2pt, c/mpi/one-sided; the
#: directories have been the same from 5.9 to 7.2).
_OSU: dict[str, Meaning] = {
    "osu_latency": _LATENCY,
    "osu_latency_mt": _LATENCY,
    "osu_latency_mp": _LATENCY,
    "osu_latency_persistent": _LATENCY,
    "osu_multi_lat": Meaning(kind=Kind.LATENCY, pairs_share_rails=True),
    "osu_bw": _BANDWIDTH,
    "osu_bw_persistent": _BANDWIDTH,
    "osu_bibw": _BOTH_WAYS,
    "osu_bibw_persistent": _BOTH_WAYS,
    "osu_mbw_mr": Meaning(
        kind=Kind.BANDWIDTH, pairs_share_rails=True, consistency=Consistency.RATE_TIMES_SIZE
    ),
    "osu_put_bw": _BANDWIDTH,
    "osu_get_bw": _BANDWIDTH,
    "osu_put_bibw": _BOTH_WAYS,
    "osu_put_latency": _LATENCY,
    "osu_get_latency": _LATENCY,
    "osu_acc_latency": _OPERATION,
    "osu_get_acc_latency": _OPERATION,
    "osu_fop_latency": _OPERATION,
    "osu_cas_latency": _OPERATION,
}

#: IMB: what each benchmark divides by what, from src_c/IMB_output.c (throughput = scale_bw x size
#: / t_max) and IMB_parse_name_mpi1.c, _ext.c, _rma.c (scale_bw) of release 2021.11: PingPong's t is
#: half the round trip; PingPing and the Bidir benchmarks load both directions and print one;
#: Sendrecv counts 2 and Exchange 4 messages a repetition.  Names in lower case: IMB-EXT says
#: ``Unidir_Put``, IMB-RMA ``Unidir_put``.
_IMB: dict[str, Meaning] = {
    "pingpong": _PING,
    "pingpongspecificsource": _PING,
    "pingponganysource": _PING,
    "pingping": _PING,
    "pingpingspecificsource": _PING,
    "pingpinganysource": _PING,
    "sendrecv": Meaning(
        kind=Kind.BANDWIDTH, bidirectional=True, consistency=Consistency.TWICE_SIZE_OVER_TIME
    ),
    "exchange": Meaning(
        kind=Kind.BANDWIDTH, bidirectional=True, consistency=Consistency.FOUR_TIMES_SIZE_OVER_TIME
    ),
    "uniband": Meaning(
        kind=Kind.BANDWIDTH, pairs_share_rails=True, consistency=Consistency.RATE_TIMES_SIZE
    ),
    "biband": Meaning(
        kind=Kind.BANDWIDTH,
        bidirectional=True,
        pairs_share_rails=True,
        consistency=Consistency.RATE_TIMES_SIZE,
    ),
    "unidir_get": _ONE_SIDED,
    "unidir_put": _ONE_SIDED,
    "bidir_get": _ONE_SIDED,
    "bidir_put": _ONE_SIDED,
    "accumulate": _OPERATION,
}

#: IMB-P2P adds up all ranks' messages, so that its PingPing counts both directions (src_c/P2P/
#: imb_p2p_pingping.c: iterations x ranks x size / time) where that of IMB-MPI1 counts one.  Its
#: random and stencil benchmarks have no fixed pairs; they are left to the references.  Its PingPong
#: prints the mean of both ends' times (imb_p2p_pingpong.c: aggregate_time), IMB-MPI1 the sender's.
_IMB_P2P: dict[str, Meaning] = {
    "pingpong": Meaning(
        kind=Kind.BANDWIDTH, consistency=Consistency.RATE_TIMES_SIZE, last_send_uncounted=True
    ),
    "pingping": Meaning(
        kind=Kind.BANDWIDTH, bidirectional=True, consistency=Consistency.RATE_TIMES_SIZE
    ),
    "sendrecv_replace": Meaning(
        kind=Kind.BANDWIDTH, bidirectional=True, consistency=Consistency.RATE_TIMES_SIZE
    ),
}

#: mpi4py's port of osu_bibw moves both directions and counts one (demo/osu_bibw.py, 4.1: size x
#: loop x window, without the C program's factor of 2).
_OSU_PORTS = {**_OSU, "osu_bibw": _BANDWIDTH}

#: perftest: a latency is half the round trip, of reads and atomics the whole (``rtt_factor`` in
#: print_report_lat, src/perftest_parameters.c of linux-rdma/perftest v4.5-0.20); the rate is that
#: of all messages of the printed bandwidth (print_report_bw).  ``-b`` stands in the title.
_STREAM = Meaning(kind=Kind.BANDWIDTH, consistency=Consistency.RATE_TIMES_SIZE)
_PERFTEST = {
    "ib_write_bw": _STREAM,
    "ib_read_bw": _STREAM,
    "ib_send_bw": _STREAM,
    "ib_write_lat": _LATENCY,
    "ib_send_lat": _LATENCY,
    "ib_read_lat": replace(_LATENCY, round_trip=True),
    "ib_atomic_bw": _OPERATION,
    "ib_atomic_lat": replace(_OPERATION, round_trip=True),
}

_BY_SUITE = {
    "osu": _OSU,
    "osu-mpi4py": _OSU_PORTS,
    "imb": _IMB,
    "iperf3": {"iperf3": Meaning(kind=Kind.BANDWIDTH)},
    "iperf": {"iperf": Meaning(kind=Kind.BANDWIDTH)},
    "perftest": _PERFTEST,
}

_UNKNOWN = Meaning(kind=Kind.COLLECTIVE, crosses=False)


def meaning(suite: str, program: str) -> Meaning:
    """Return how the table of ``program`` of ``suite`` is to be read.

    A program without an entry is read as a collective: times only, no ceiling and no floor.
    """
    name = program.lower() if suite == "imb" else program.replace("osu_xccl_", "osu_")
    return _BY_SUITE.get(suite, {}).get(name, _UNKNOWN)


def reading_of(table: Table) -> Meaning:
    """Return how ``table`` is to be read, with what its own words say of the run."""
    if table.suite == "imb" and _is_p2p(table):
        reading = _IMB_P2P.get(table.program.lower(), _UNKNOWN)
    else:
        reading = meaning(table.suite, table.program)
    said = table.attributes
    if said.get("both_ways"):
        return replace(reading, bidirectional=True)
    at_origin_only = "flush_local" in str(said.get("synchronization", ""))
    if at_origin_only or said.get("mode") == "AGGREGATE":
        return replace(reading, crosses=False)
    return reading


def _is_p2p(table: Table) -> bool:
    """Tell IMB-P2P from the other parts; a pasted table without header shows it by its columns.

    ``t[usec]`` and ``Msg/sec`` stand together in IMB-P2P alone (src_c/P2P/imb_p2p_*.c); Uniband
    and Biband of IMB-MPI1 print rates without times.
    """
    binary = table.attributes.get("binary")
    if binary is not None:
        return binary == "IMB-P2P"
    return {"latency_us", "message_rate_per_s"} <= set(table.columns)
