"""How many payload bytes a program moves: what the road's counters must show.

From the programs' own loops: OSU 7.4 (c/mpi/pt2pt/standard, c/mpi/one-sided), mpi4py's demo/osu_*
and IMB 2021.11 (src_c, src_cpp), and measured with interface counters: with 16 KiB to 1 MiB
messages the counters showed 0.4 to 1.5 % more (headers and acknowledgements; see docs/stacks.md).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from fabricproof.stacks.workload import Segment, imb_binary


@dataclass(frozen=True, kw_only=True)
class BytesMoved:
    """Payload and messages of one run.

    Attributes:
        sent_by_first: bytes sent by the first half of the ranks.
        sent_by_second: bytes sent by the second half.
        messages_by_first: messages of the first half that wait for an answer each, None where
            messages follow each other and may share packets.
        messages_by_second: likewise of the second half.
    """

    sent_by_first: int
    sent_by_second: int
    messages_by_first: int | None = None
    messages_by_second: int | None = None


@dataclass(frozen=True, kw_only=True)
class _Round:
    """Messages of one iteration of a pair: from first to second, and back."""

    forth: int = 0
    back: int = 0
    windowed: bool = False
    in_turn: bool = False
    answer_bytes: int = 0


_PING_PONG = _Round(forth=1, back=1, in_turn=True)
_BOTH = _Round(forth=1, back=1)
_FORTH = _Round(forth=1)
_BACK = _Round(back=1)
#: the receiver of a window answers with 4 bytes in the ports and 5.x, 1 byte in 7.4.
_WINDOW = _Round(forth=1, windowed=True, answer_bytes=1)
_WINDOW_BACK = _Round(back=1, windowed=True)
_WINDOW_BOTH = _Round(forth=1, back=1, windowed=True)

_OSU: Mapping[str, _Round] = {
    "osu_latency": _PING_PONG,
    "osu_latency_persistent": _PING_PONG,
    "osu_multi_lat": _PING_PONG,
    "osu_bw": _WINDOW,
    "osu_bw_persistent": _WINDOW,
    "osu_mbw_mr": _WINDOW,
    "osu_bibw": _WINDOW_BOTH,
    "osu_bibw_persistent": _WINDOW_BOTH,
    "osu_put_bw": _Round(forth=1, windowed=True),
    "osu_get_bw": _WINDOW_BACK,
    "osu_put_bibw": _WINDOW_BOTH,
    "osu_put_latency": _FORTH,
    "osu_get_latency": _BACK,
    "osu_acc_latency": _FORTH,
}

_IMB: Mapping[str, _Round] = {
    "PingPong": _PING_PONG,
    "PingPongSpecificSource": _PING_PONG,
    "PingPongAnySource": _PING_PONG,
    "PingPing": _BOTH,
    "PingPingSpecificSource": _BOTH,
    "PingPingAnySource": _BOTH,
    "Sendrecv": _BOTH,
    "Exchange": _Round(forth=2, back=2),
    "Uniband": _Round(forth=1, windowed=True),
    "Biband": _WINDOW_BOTH,
    "P2P/PingPong": _PING_PONG,
    "P2P/PingPing": _BOTH,
    "SendRecv_Replace": _BOTH,
    "Birandom": _Round(forth=2, back=2),
    "Unidir_put": _FORTH,
    "Unidir_get": _BACK,
    "Bidir_put": _BOTH,
    "Bidir_get": _BOTH,
    "Exchange_put": _Round(forth=2, back=2),
    "Exchange_get": _Round(forth=2, back=2),
    "Accumulate": _FORTH,
}

#: perftest moves what it is told, no more (run_iter_bw and run_iter_lat*, src/perftest_resources.c
#: of v4.5-0.20): a bandwidth is the client's stream, a latency goes forth and back, what is read
#: comes back.
_PERFTEST: Mapping[str, _Round] = {
    "ib_write_bw": _FORTH,
    "ib_send_bw": _FORTH,
    "ib_read_bw": _BACK,
    "ib_write_lat": _BOTH,
    "ib_send_lat": _BOTH,
    "ib_read_lat": _BACK,
}

_TABLES = {"imb": _IMB, "perftest": _PERFTEST}


def _rounds(suite: str, program: str, segment: Segment) -> int:
    """Return how often the loop body runs for each size.

    IMB with ``-iter_policy off`` runs the whole benchmark once unseen before it measures
    (IMB_init_buffers_iter, src_c/IMB_mem_manager.c), twice in all; IMB-P2P runs a
    tenth, at least one, unseen.
    """
    if suite != "imb":
        return segment.iterations + segment.warmups
    if imb_binary(program) == "IMB-P2P":
        return segment.iterations + max(1, segment.iterations // 10)
    return 2 * segment.iterations


def expected_bytes(
    suite: str, program: str, segments: Sequence[Segment], *, num_ranks: int = 2
) -> BytesMoved | None:
    """Return what the ranks send, told by :func:`~fabricproof.stacks.workload.command_lines`.

    Args:
        suite: ``osu``, ``osu-mpi4py``, ``imb`` or ``perftest``.
        program: of the suite.
        segments: what it is told to measure.
        num_ranks: an even number; pairs move their bytes each.

    Returns:
        None for a program whose traffic is not a fixed exchange between pairs (collectives,
        random partners): its bytes cannot be foretold here.
    """
    table = _TABLES.get(suite, _OSU)
    if program not in table:
        return None
    body = table[program]
    forth = back = rounds = 0
    for segment in segments:
        loops = _rounds(suite, program, segment) * _pairs(program, num_ranks)
        messages = segment.window_size if body.windowed else 1
        payload = loops * messages * sum(segment.sizes)
        answers = loops * len(segment.sizes) * body.answer_bytes
        forth += body.forth * payload
        back += body.back * payload + answers
        rounds += loops * len(segment.sizes)
    turns = rounds if body.in_turn else None
    return BytesMoved(
        sent_by_first=forth,
        sent_by_second=back,
        messages_by_first=turns,
        messages_by_second=turns,
    )


def _pairs(program: str, num_ranks: int) -> int:
    """Return how many pairs talk: IMB's PingPong and one-sided pairs leave further ranks idle."""
    several = {"osu_multi_lat", "osu_mbw_mr", "Uniband", "Biband"}
    return max(1, num_ranks // 2) if program in several else 1
