"""How many payload bytes a program moves: what the road's counters must show.

From the programs' own loops: OSU 7.4 (c/mpi/pt2pt/standard, c/mpi/one-sided), mpi4py's demo/osu_*
and IMB 2021.11 (src_c, src_cpp), and measured with interface counters: with 16 KiB to 1 MiB
messages the counters showed 0.4 to 1.5 % more (headers and acknowledgements; see docs/stacks.md).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from fabricproof.benchmarks.catalogue import program_of
from fabricproof.benchmarks.program import Program
from fabricproof.stacks.workload import Segment


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


def _rounds(suite: str, program: Program, segment: Segment) -> int:
    """Return how often the loop body runs for each size.

    IMB with ``-iter_policy off`` runs the whole benchmark once unseen before it measures
    (IMB_init_buffers_iter, src_c/IMB_mem_manager.c), twice in all; IMB-P2P runs a
    tenth, at least one, unseen.
    """
    if suite != "imb":
        return segment.iterations + segment.warmups
    if program.binary == "IMB-P2P":
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
    row = program_of(suite, program)
    if row is None or row.messages is None:
        return None
    body = row.messages
    # IMB's PingPong and one-sided pairs leave further ranks idle.
    pairs = max(1, num_ranks // 2) if row.meaning.pairs_share_rails else 1
    forth = back = rounds = 0
    for segment in segments:
        loops = _rounds(suite, row, segment) * pairs
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
