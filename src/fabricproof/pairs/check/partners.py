"""With whom a node is measured before users get it back, in which rounds, and for how long.

It is never its own yardstick: its partners also measure among themselves, in the same rounds.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import zip_longest

from fabricproof.core.units import by_key, natural
from fabricproof.pairs.campaign.plan import (
    Campaign,
    NodePair,
    PlannedRound,
    pairs_at_once,
    parts_of_rounds,
    physics,
)
from fabricproof.physics import bound
from fabricproof.site import Site

#: what is no fault of a node
ALL_ALIKE = "all pairs alike, also those of partners among themselves: the stack or the site"

#: partners known good that a node needs, as before it is blamed: one alone may be the bad one
LEAST_PARTNERS = 2

#: partners of each node: one that turns out bad leaves three, two of them on other leaves
PARTNERS = 4

#: each pair is measured in so many rounds: what is lost in one only may be a burst of a moment
PASSES = 2

#: What an admission must rule out, as a multiple of what may be lost, and at least so much, in
#: events per million packets.  Of a node that loses 1 in 10,000 (100 per million) the chance to
#: show none in the packets that this takes is exp(-6), a quarter of a percent: our choice.
RULED_OUT_FACTOR, LEAST_RULED_OUT_PPM = 5.0, 50.0

#: Full packets that each side of a node carries over a rail: with one lost by chance among them
#: (virtual rails, docs/errors.md) 4.74 / 110,000 is 43 per million, and that is still ruled out.
PACKETS = 110_000

#: What part of its rate a rail is taken to carry in the seconds of a round: 0.77 was seen (84,439
#: packets of 110,000 on eight virtual nodes), as rounds begin, end and change sides.
CARRIED_SHARE = 0.7


def ruled_out_ppm(limit: float) -> float:
    """Return the rate, per million packets, that is to be ruled out where ``limit`` may be lost."""
    return max(RULED_OUT_FACTOR * limit, LEAST_RULED_OUT_PPM)


def choose_partners(
    admitted: Sequence[str], free: Sequence[str], leaf_of: Mapping[str, str], bad: Sequence[str]
) -> tuple[str, ...]:
    """Return the partners of nodes that are to be admitted, those on other leaves first.

    Other leaves take turns; the last one hangs on a leaf of the nodes themselves, where there is
    one to be had, and tells a node from the links of its leaf.  Where there are too few others,
    leaves of the nodes take turns as well: each is another leaf to the nodes on the others.
    """
    own = {leaf_of.get(node, "") for node in admitted}
    usable = [node for node in sorted(free, key=natural) if node not in {*admitted, *bad}]
    far = [node for node in usable if leaf_of.get(node, "") not in own]
    near = _leaf_by_leaf([node for node in usable if node not in far], leaf_of)
    count = max(PARTNERS, len(admitted))
    chosen = _leaf_by_leaf(far, leaf_of)[: count - bool(near)]
    return (*chosen, *near[: count - len(chosen)])


def _leaf_by_leaf(nodes: Sequence[str], leaf_of: Mapping[str, str]) -> list[str]:
    """Return nodes in such an order that their leaves take turns."""
    by_leaf = by_key((leaf_of.get(node, ""), node) for node in nodes)
    return [node for row in zip_longest(*by_leaf.values()) for node in row if node is not None]


def admission_rounds(
    admitted: Sequence[int],
    partners: Sequence[int],
    net_paths: Sequence[Sequence[str]],
    at_once: int,
) -> tuple[PlannedRound, ...]:
    """Return the rounds of an admission: each node with each of its partners.

    Who is free meanwhile measures with another partner, so that each partner has met two others in
    the end: once, as each pair over several rails together, where no loss is told apart.

    ``admitted`` and ``partners``, two at least, are numbers of nodes; ``at_once``: pairs of a round
    that measure at the same time at most; 0: all.
    """
    narrow = [number for number, rails in enumerate(net_paths) if len(rails) == 1]
    found = list(parts_of_rounds(_once(admitted, partners), range(len(net_paths)), at_once))
    for _ in range(PASSES - 1):
        again = [
            tuple(pair for pair in pairs if set(pair) & set(admitted))
            for pairs in _once(admitted, partners)
        ]
        more = parts_of_rounds(filter(None, again), narrow, at_once, first=len(found))
        found += more if narrow else ()
    return tuple(found)


def _once(admitted: Sequence[int], partners: Sequence[int]) -> Iterator[tuple[NodePair, ...]]:
    """Yield rounds in which each node meets each of its partners once, and partners each other."""
    count = len(partners)
    ends = reversed(range(count if count > 2 else 1))  # so that four leave no pair over
    ring = [(partners[at], partners[(at + 1) % count]) for at in ends]
    for begin in range(0, len(admitted), count):
        group = admitted[begin : begin + count]
        for turn in range(min(count, PARTNERS)):
            pairs = [(node, partners[(at + turn) % count]) for at, node in enumerate(group)]
            yield (*pairs, *_taken_from(ring, {each for pair in pairs for each in pair}))
    while ring:
        yield tuple(_taken_from(ring, set()))


def _taken_from(ring: list[NodePair], busy: set[int]) -> list[NodePair]:
    """Return the pairs of ``ring`` whose ends are free, and take them out of it."""
    taken = []
    for pair in list(ring):
        if not busy & set(pair):
            busy |= set(pair)
            ring.remove(pair)
            taken.append(pair)
    return taken


def plan_admission(site: Site, blank: Campaign, admitted: Sequence[str]) -> Campaign:
    """Return the campaign of an admission: each node with partners, long enough to show losses.

    ``blank``: a campaign without rounds; the seconds that it has for a measurement are the least.
    ``admitted``: nodes that are to be admitted; the others are partners.  Where there are none, or
    fewer than two partners, nothing can be measured: it has no nodes then.
    """
    mine = [at for at, node in enumerate(blank.nodes) if node in admitted]
    others = [at for at, node in enumerate(blank.nodes) if node not in admitted]
    if not mine or len(others) < LEAST_PARTNERS:
        return replace(blank, nodes=(), leaf_of=())
    slowest = min(
        bound(physics(site, blank, at)).low_mb_s
        for at, rails in enumerate(blank.net_paths)
        if len(rails) == 1
    )
    blank = replace(blank, at_once=pairs_at_once(site, blank, os.cpu_count() or 1))
    rounds = PASSES * min(len(others), PARTNERS)
    one_round = PACKETS * site.fabric_spec(blank.fabric).full_packet_bytes / rounds
    return replace(
        blank,
        seconds=max(blank.seconds, one_round / (CARRIED_SHARE * slowest * 1e6)),
        rounds=admission_rounds(mine, others, blank.net_paths, blank.at_once),
    )
