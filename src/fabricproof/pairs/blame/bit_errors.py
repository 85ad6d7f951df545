"""Does each rail keep the bit error rate that the site states?  A soak must rule out a larger one.

A wrong bit damages its packet.  Whoever receives it counts it; a switch on the way may throw it
away first, and then it is only sent again.  So damage that is counted makes a rail red, and only a
rail of which neither says more than is allowed is good.  Each side of each node is judged by
itself: among a thousand rails one that is bad shows in no mean.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from fabricproof.core.measure import Verdict, worst
from fabricproof.job.evidence.error_rates import least_rate, most_rate
from fabricproof.pairs.blame.losses import SideCarried
from fabricproof.traffic.error_rates import ErrorKind

_MILLION = 1e6

#: what must be counted: damage, and what was thrown away for it on the way
_TELLING = frozenset({ErrorKind.DAMAGED, ErrorKind.RETRANSMITTED})


@dataclass(frozen=True, kw_only=True)
class BitErrors:
    """What a soak says of one rail.

    Attributes:
        verdict: FAIL, where a side of a node damages more than is stated; PASS, where of none more
            is credible at 95 %; else UNJUDGED.
        stated: the bit error rate that the site allows.
        node: whose side is the worst; empty where nobody counted anything.
        at_most: the largest rate that its counts leave credible; None where nobody counted.
        minutes_more: how much longer would rule out more than is stated, were nothing more
            damaged; 0 where the verdict stands.
    """

    verdict: Verdict
    rail: str
    stated: float
    node: str
    at_most: float | None
    minutes_more: float
    sentence: str


def judge_bits(
    rail: str, sides: Mapping[str, Sequence[SideCarried]], stated: float, minutes: float
) -> BitErrors:
    """Judge the bits of a rail on all nodes: the worst side of all counts."""
    found = [_of_node(rail, node, own, stated, minutes) for node, own in sides.items()]
    verdict = worst([each.verdict for each in found])
    mine = [each for each in found if each.verdict is verdict]
    if not mine:
        return _uncounted(rail, "", stated)
    return max(mine, key=lambda each: each.at_most or float("inf"))


def _of_node(
    rail: str, node: str, sides: Sequence[SideCarried], stated: float, minutes: float
) -> BitErrors:
    ways = []
    for direction in ("transmit", "receive"):
        own = [each for each in sides if each.direction == direction and each.bytes]
        if {each.what for each in own} >= _TELLING:
            ways.append(_of_way(rail, node, own, stated, minutes))
    if len(ways) < 2:
        return _uncounted(rail, node, stated)
    verdict = worst([each.verdict for each in ways])
    mine = [each for each in ways if each.verdict is verdict]
    return max(mine, key=lambda each: each.at_most or 0)


def _of_way(
    rail: str, node: str, own: Sequence[SideCarried], stated: float, minutes: float
) -> BitErrors:
    events = {kind: sum(each.events for each in own if each.what is kind) for kind in ErrorKind}
    damaged, again = events[ErrorKind.DAMAGED], events[ErrorKind.RETRANSMITTED]
    bits = 8 * max(each.bytes for each in own)
    at_most = most_rate(damaged + again, bits) / _MILLION
    said = (
        f"{node} {own[0].direction}s over {rail}: {damaged} packets damaged and {again} sent again "
        f"in {bits / 8e12:.3g} TB, at most {at_most:.1e} of bits (95 %); {stated:.1e} is allowed"
    )
    more = 0.0
    if least_rate(damaged, bits) / _MILLION > stated:
        verdict = Verdict.FAIL
    elif at_most <= stated:
        verdict = Verdict.PASS
    else:
        verdict = Verdict.UNJUDGED
        more = minutes * (at_most / stated - 1)
        said += f"; {more:.3g} minutes more would tell, were nothing more lost"
    return BitErrors(
        verdict=verdict,
        rail=rail,
        stated=stated,
        node=node,
        at_most=at_most,
        minutes_more=more,
        sentence=said,
    )


def _uncounted(rail: str, node: str, stated: float) -> BitErrors:
    whose = node or "any node"
    return BitErrors(
        verdict=Verdict.UNJUDGED,
        rail=rail,
        stated=stated,
        node=node,
        at_most=None,
        minutes_more=0.0,
        sentence=f"nobody counted both what was damaged and what was sent again of {whose} over "
        f"{rail}, both ways",
    )
