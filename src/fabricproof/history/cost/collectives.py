"""How long a leg of a collective measures: its operations by the model that made its effort.

The effort leaves a slack of two for algorithms worse than the best; on the virtual cluster the
programs took what the model says.
"""

from __future__ import annotations

from collections.abc import Iterable

from fabricproof.benchmarks.program import Collective
from fabricproof.physics.collective import Channel, Layout, best_model

#: A non-blocking program runs the operation by itself, then the same again beside a computation of
#: the same length (OSU: osu_iallreduce.c; IMB: IMB_iallreduce.c measures the three in turn).
NON_BLOCKING_RUNS = 3.0

#: IMB spends this on each message size beside its repetitions, in seconds; a non-blocking benchmark
#: also finds out how long its computation must be (48 legs of 15 sizes on the virtual cluster)
IMB_SIZE_SECONDS, IMB_NON_BLOCKING_SIZE_SECONDS = 0.13, 0.5


def operations_us(
    known: Collective, counts: Iterable[tuple[int, int]], layout: Layout, channel: Channel
) -> float:
    """Return what the operations of a run take together, in us.

    Args:
        known: what the program measures.
        counts: message sizes in bytes, and how often each is sent.
        layout: the ranks.
        channel: what a message is thought to cost.
    """
    runs = NON_BLOCKING_RUNS if known.non_blocking else 1.0
    return runs * sum(
        count * best_model(known.operation, size, layout, channel)[1] for size, count in counts
    )
