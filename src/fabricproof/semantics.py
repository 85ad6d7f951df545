"""What the numbers of each benchmark program mean: data, and one look-up.

A bandwidth of 7500 MB/s is a fine number from ``osu_bibw`` and an impossible one from ``osu_bw``
over the same QDR link.  The judge asks here before it compares anything.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Kind(StrEnum):
    """What a program is judged by first."""

    LATENCY = "latency"
    BANDWIDTH = "bandwidth"
    COLLECTIVE = "collective"
    ROUND_TRIP_FREE = "operation"
    """A one-sided or atomic operation: a time, without a one-way meaning."""


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
        pairs_share_rails: several pairs are added up in one number.
        consistency: the law between the columns of a row.
    """

    kind: Kind
    bidirectional: bool = False
    pairs_share_rails: bool = False
    consistency: Consistency = Consistency.NONE


_LATENCY = Meaning(kind=Kind.LATENCY)
_BANDWIDTH = Meaning(kind=Kind.BANDWIDTH)
_BOTH_WAYS = Meaning(kind=Kind.BANDWIDTH, bidirectional=True)
_OPERATION = Meaning(kind=Kind.ROUND_TRIP_FREE)

#: OSU: what each program times and adds up, from its source (c/mpi/pt2pt, c/mpi/one-sided; the
#: directories have been the same from 5.9 to 7.2).
_OSU: dict[str, Meaning] = {
    "osu_latency": _LATENCY,
    "osu_latency_mt": _LATENCY,
    "osu_latency_mp": _LATENCY,
    "osu_latency_persistent": _LATENCY,
    "osu_multi_lat": _LATENCY,
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
    "osu_put_latency": _OPERATION,
    "osu_get_latency": _OPERATION,
    "osu_acc_latency": _OPERATION,
    "osu_get_acc_latency": _OPERATION,
    "osu_fop_latency": _OPERATION,
    "osu_cas_latency": _OPERATION,
}

#: IMB: from the benchmarks' definitions in Intel's user guide, "MPI-1 Benchmarks", "IMB-P2P
#: Benchmarks" and "IMB-RMA Benchmarks": PingPong's t is half the round trip; Sendrecv counts 2
#: and Exchange 4 messages a repetition, both ways through the wire.
_IMB: dict[str, Meaning] = {
    "PingPong": Meaning(kind=Kind.BANDWIDTH, consistency=Consistency.SIZE_OVER_TIME),
    "PingPongSpecificSource": Meaning(kind=Kind.BANDWIDTH, consistency=Consistency.SIZE_OVER_TIME),
    "PingPongAnySource": Meaning(kind=Kind.BANDWIDTH, consistency=Consistency.SIZE_OVER_TIME),
    "PingPing": Meaning(kind=Kind.BANDWIDTH, consistency=Consistency.SIZE_OVER_TIME),
    "PingPingSpecificSource": Meaning(kind=Kind.BANDWIDTH, consistency=Consistency.SIZE_OVER_TIME),
    "PingPingAnySource": Meaning(kind=Kind.BANDWIDTH, consistency=Consistency.SIZE_OVER_TIME),
    "Sendrecv": Meaning(
        kind=Kind.BANDWIDTH, bidirectional=True, consistency=Consistency.TWICE_SIZE_OVER_TIME
    ),
    "Exchange": Meaning(
        kind=Kind.BANDWIDTH, bidirectional=True, consistency=Consistency.FOUR_TIMES_SIZE_OVER_TIME
    ),
    "Uniband": Meaning(
        kind=Kind.BANDWIDTH, pairs_share_rails=True, consistency=Consistency.RATE_TIMES_SIZE
    ),
    "Biband": Meaning(
        kind=Kind.BANDWIDTH,
        bidirectional=True,
        pairs_share_rails=True,
        consistency=Consistency.RATE_TIMES_SIZE,
    ),
    "Unirandom": _BANDWIDTH,
    "Birandom": _BOTH_WAYS,
    "Corandom": _BOTH_WAYS,
    "Unidirectional": _BANDWIDTH,
    "Bidirectional": _BOTH_WAYS,
    "Sendrecv_Replace": _BOTH_WAYS,
    "Unidir_Get": _BANDWIDTH,
    "Unidir_Put": _BANDWIDTH,
    "Bidir_Get": _BOTH_WAYS,
    "Bidir_Put": _BOTH_WAYS,
    "Accumulate": _OPERATION,
}

_BY_SUITE = {
    "osu": _OSU,
    "osu-mpi4py": _OSU,
    "imb": _IMB,
    "iperf3": {"iperf3": Meaning(kind=Kind.BANDWIDTH)},
    "iperf": {"iperf": Meaning(kind=Kind.BANDWIDTH)},
}


def meaning(suite: str, program: str) -> Meaning:
    """Return how the table of ``program`` of ``suite`` is to be read.

    A program without an entry is read as a collective: times only, no ceiling assumed.
    """
    return _BY_SUITE.get(suite, {}).get(program, Meaning(kind=Kind.COLLECTIVE))
