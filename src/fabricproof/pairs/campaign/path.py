"""The proof of the path of each pair in each round, from the counters in the kernel's record."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from fabricproof.job.evidence.ranks import gather
from fabricproof.pairs.campaign.record import RoundRecord, Value
from fabricproof.traffic import Expectation, RoadProof, prove_road

Pair = tuple[str, str]


def pairs_of(record: RoundRecord) -> dict[Pair, tuple[Value, ...]]:
    """Return the values of each pair of a round, named in either order."""
    found: dict[Pair, list[Value]] = {}
    for value in record.values:
        back = (value.destination, value.source)
        key = back if back in found else (value.source, value.destination)
        found.setdefault(key, []).append(value)
    return {pair: tuple(values) for pair, values in found.items()}


def prove_pair(
    record: RoundRecord, pair: Pair, values: Sequence[Value], rails: Sequence[str]
) -> RoadProof:
    """Compare what the counters of two nodes saw in a round with what the two moved in it.

    In a round a node has one partner, so that all that its rails moved is of this pair.

    Args:
        record: the round.
        pair: two nodes.
        values: theirs, all of the round.
        rails: interfaces or ports that had to carry them.
    """
    sent = dict.fromkeys(pair, 0)
    for value in values:
        forth, back = value.sent_bytes
        sent[value.source] += forth
        sent[value.destination] += back
    messages = sum(value.sent_messages for value in values)
    ranks = [replace(record.nodes[node], rank=number) for number, node in enumerate(pair)]
    expected = Expectation(
        rails=tuple(rails),
        sent_bytes=(sent[pair[0]], sent[pair[1]]),
        num_ranks=2,
        spread=len(rails) > 1,
        sent_messages=(messages, messages) if messages and len(rails) == 1 else None,
        ranks_per_node=1,
        nodes=tuple(sorted(pair)),
    )
    return prove_road(gather(ranks), expected)
