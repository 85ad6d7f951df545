"""Which round comes next, by what a campaign has measured: suspects, then second looks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from fabricproof.core.measure import Verdict
from fabricproof.pairs.campaign.ledger import Campaign
from fabricproof.pairs.campaign.matrices import Quantity
from fabricproof.pairs.campaign.plan import as_pairs
from fabricproof.pairs.campaign.verdict import Outcome, places_of
from fabricproof.pairs.fabric import Leaves, leaves_of
from fabricproof.pairs.ladder import MOST_AGAIN, Ladder

#: second looks at a pair whose values did not count, for what others did at the time
MOST_OF_DISTURBED = 2


def all_on_one(num_nodes: int) -> Leaves:
    """Return ``num_nodes`` nodes of which nobody knows where they hang."""
    return leaves_of(num_nodes, num_nodes)


@dataclass(frozen=True, kw_only=True)
class Further:
    """A round to be added."""

    pairs: tuple[tuple[int, int], ...]
    net_paths: tuple[int, ...]
    why: str
    is_again: bool = False


def next_round(outcome: Outcome) -> Further | None:
    """Return the next round behind the planned ones; None where the campaign is at its end.

    Of a ladder first suspects with partners that were good.  Then second looks, at low pairs of
    which no end is suspect: a value that was low once says nothing yet.
    """
    campaign = outcome.campaign
    if not campaign.is_full:
        pairs, net_paths = _suspects(outcome, campaign.num_adaptive)
        if pairs:
            why = "suspects with partners that were good"
            return Further(pairs=pairs, net_paths=net_paths, why=why)
    for net_path in range(len(campaign.net_paths)):
        if pairs := _low_once(outcome, net_path):
            why = f"{campaign.path_name(net_path)}: a second look at low pairs"
            return Further(pairs=pairs, net_paths=(net_path,), why=why, is_again=True)
    return None


def _low_once(outcome: Outcome, net_path: int) -> tuple[tuple[int, int], ...]:
    """Return the pairs of a round of second looks over a path; nothing where none is due."""
    campaign = outcome.campaign
    name = campaign.path_name(net_path)
    again = [each for each in campaign.rounds if each.is_again and net_path in each.net_paths]
    if sum(each.part == 0 for each in again) >= MOST_AGAIN:
        return ()
    seen = Counter(frozenset(pair) for each in again for pair in each.pairs)
    used: set[int] = set()
    found = []
    for most, pair in _to_be_seen_again(outcome, name):
        if seen[frozenset(pair)] < most and not used & set(pair):
            used |= set(pair)
            found.append(pair)
    return tuple(found)


def _to_be_seen_again(outcome: Outcome, net_path: str) -> Iterator[tuple[int, tuple[int, int]]]:
    """Yield pairs of nodes over a path, each with the number of second looks that it may have."""
    number = {name: at for at, name in enumerate(outcome.campaign.nodes)}
    ladder = _ladder_of(outcome.campaign)
    for result in outcome.results:
        if not result.why_told_only:
            suspects = ladder.suspects(result.judged)
            pairs = result.doubtful_pairs(net_path)
            yield from ((1, pair) for pair in pairs if not suspects & set(pair))
    for each in outcome.troubles:
        if each.net_path == net_path and each.verdict is Verdict.UNJUDGED:
            one, other = (number[name] for name in each.pair)
            yield MOST_OF_DISTURBED, (min(one, other), max(one, other))
    for loss in outcome.losses:
        # What a pair loses in one round is a burst of a moment, or this pair.
        if loss.net_path == net_path and loss.verdict is Verdict.UNJUDGED and len(loss.ends) == 2:
            one, other = (number[name] for name in loss.ends)
            yield 1, (min(one, other), max(one, other))


def _suspects(outcome: Outcome, made: int) -> tuple[tuple[tuple[int, int], ...], tuple[int, ...]]:
    """Return the pairs of the next round of suspects, and the paths that have some."""
    campaign = outcome.campaign
    ladder = _ladder_of(campaign)
    names = [campaign.path_name(net_path) for net_path in range(len(campaign.net_paths))]
    pairs: dict[int, tuple[int, int]] = {}
    net_paths: dict[int, None] = {}
    for result in outcome.results:
        if result.quantity is not Quantity.BANDWIDTH:
            continue
        found = as_pairs([ladder.further(result.judged, made).tolist()])[0]
        for one, other in found:
            if one not in pairs and other not in pairs:
                pairs[one] = pairs[other] = (one, other)
        if found:
            net_paths |= dict.fromkeys(names.index(each) for each in result.net_paths)
    return tuple(dict.fromkeys(pairs.values())), tuple(net_paths)


def _ladder_of(campaign: Campaign) -> Ladder:
    leaves = places_of(campaign) or all_on_one(len(campaign.nodes))
    return Ladder(leaves=leaves, seed=campaign.seed)
