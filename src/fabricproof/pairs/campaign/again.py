"""What is measured again, and how two looks become one verdict.

A pair that was low once, or whose values did not count, gets a further round of the kernel.  What
is red then is measured once more by a stock program: the kernel is ours, and a red that ``osu_bw``
on the same two nodes does not see is none.  A link that pairs share may be slow for several at once
and still carry one: of that a pair alone tells nothing.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from fabricproof.core.measure import Verdict
from fabricproof.job.outcome import Attempt
from fabricproof.pairs.blame.judge import MatrixVerdict
from fabricproof.pairs.blame.say import (
    DIRECTIONS,
    Blame,
    WhyUndecided,
    place,
    undecided_finding,
)
from fabricproof.pairs.blame.suspects import SuspectKind
from fabricproof.pairs.campaign.kernel import as_pairs
from fabricproof.pairs.campaign.matrices import Quantity
from fabricproof.pairs.campaign.plan import Campaign, NodePair
from fabricproof.pairs.campaign.verdict import Outcome, Result
from fabricproof.pairs.ladder import MOST_AGAIN, Ladder
from fabricproof.pairs.matrix import Flags
from fabricproof.traffic.disturbance import share_beyond, share_taken

#: second looks at a pair whose values did not count, for what others did at the time
MOST_OF_DISTURBED = 2

#: red pairs that a stock program looks at, at most
MOST_LOOKS = 4

#: looks of a stock program at one pair, where others had its cores or its rails
MOST_TRIES = 3

#: of a pair and of a good one in turn with it, before the one tells of the other
_TURNS = 2

#: blame of what several pairs share
_SHARED = frozenset({SuspectKind.LEAF, SuspectKind.UPLINK})

#: rounds in which a shared link was low, before that needs no stock program: one is a moment
_ROUNDS_OF_A_LINK = 2

#: the node that sends, and the one that receives
Ends = tuple[str, str]


@dataclass(frozen=True, kw_only=True)
class Further:
    """A round to be added."""

    pairs: tuple[NodePair, ...]
    net_paths: tuple[int, ...]
    why: str
    is_again: bool = False


def next_round(outcome: Outcome) -> Further | None:
    """Return the next round after the planned ones; None at the end of the campaign.

    Of a ladder first suspects with partners that were good.  Then second looks, at low pairs of
    which no end is suspect: a value that was low once says nothing yet.
    """
    campaign = outcome.campaign
    ladder = Ladder(leaves=campaign.leaves, seed=campaign.seed)
    if not campaign.is_full:
        pairs, net_paths = _suspects(outcome, ladder)
        if pairs:
            why = "suspects with partners that were good"
            return Further(pairs=pairs, net_paths=net_paths, why=why)
    for net_path in range(len(campaign.net_paths)):
        if again := _low_once(outcome, net_path, ladder):
            why = f"{campaign.path_name(net_path)}: a second look at low pairs"
            return Further(pairs=again, net_paths=(net_path,), why=why, is_again=True)
    return None


def _suspects(outcome: Outcome, ladder: Ladder) -> tuple[tuple[NodePair, ...], tuple[int, ...]]:
    """Return the pairs of the next round of suspects, and the paths that have some."""
    campaign = outcome.campaign
    names = [campaign.path_name(net_path) for net_path in range(len(campaign.net_paths))]
    used: set[int] = set()
    pairs: list[NodePair] = []
    net_paths: set[int] = set()
    for result in outcome.results:
        if result.quantity is not Quantity.BANDWIDTH:
            continue
        found = as_pairs([ladder.further(result.judged, campaign.num_adaptive).tolist()])[0]
        for pair in found:
            if not used & set(pair):
                used |= set(pair)
                pairs.append(pair)
        if found:
            net_paths |= {names.index(each) for each in result.net_paths}
    return tuple(pairs), tuple(sorted(net_paths))


def _low_once(outcome: Outcome, net_path: int, ladder: Ladder) -> tuple[NodePair, ...]:
    """Return the pairs of a round of second looks over a path; nothing if none is due."""
    campaign = outcome.campaign
    again = [each for each in campaign.rounds if each.is_again and net_path in each.net_paths]
    if sum(each.part == 0 for each in again) >= MOST_AGAIN:
        return ()
    seen = Counter(frozenset(pair) for each in again for pair in each.pairs)
    used: set[int] = set()
    found = []
    for most, pair in _doubtful(outcome, campaign.path_name(net_path), ladder):
        if seen[frozenset(pair)] < most and not used & set(pair):
            used |= set(pair)
            found.append(pair)
    return tuple(found)


def _doubtful(outcome: Outcome, net_path: str, ladder: Ladder) -> Iterator[tuple[int, NodePair]]:
    """Yield pairs of nodes over a path, each with the number of second looks that it may have."""
    number = {name: at for at, name in enumerate(outcome.campaign.nodes)}
    for result in outcome.results:
        if not result.why_told_only:
            suspects = ladder.suspects(result.judged)
            pairs = result.doubtful_pairs(net_path)
            yield from ((1, pair) for pair in pairs if not suspects & set(pair))
    open_pairs = [
        (MOST_OF_DISTURBED, each.pair)
        for each in outcome.troubles
        if each.net_path == net_path and each.verdict is Verdict.UNJUDGED
    ]
    # What a pair loses in one round is a burst of a moment, or this pair.
    open_pairs += [
        (1, (each.ends[0], each.ends[1]))
        for each in outcome.losses
        if each.net_path == net_path and each.verdict is Verdict.UNJUDGED and len(each.ends) == 2
    ]
    for most, (one, other) in open_pairs:
        yield most, (min(number[one], number[other]), max(number[one], number[other]))


@dataclass(frozen=True, kw_only=True)
class Confirmation:
    """A look of a stock program at something red.

    Attributes:
        name: what is red: a blamed place, or a quantity.
        check: the program.
        verdict: what it came to; None if it came to nothing.
        disturbance: what others took from it, as a quantity has it; None if nothing.
    """

    name: str
    net_path: str
    nodes: tuple[str, ...]
    check: str
    verdict: Verdict | None
    reason: str
    disturbance: str | None = None

    @property
    def is_red(self) -> bool:
        """Whether the stock program saw red, too; one that took another path saw nothing."""
        return self.verdict is Verdict.FAIL


@dataclass(frozen=True, kw_only=True)
class RedPair:
    """Something red, and the pair that shows it best.

    Attributes:
        name: what of it: a blamed place, or a quantity.
        blame: who is blamed; None if the whole quantity is red.
        why_good_alone: why it is red and one pair alone has its rate; empty if it has not.
    """

    result: Result
    name: str
    net_path: str
    source: str
    destination: str
    blame: Blame | None = None
    why_good_alone: str = ""

    @property
    def blamed(self) -> str:
        """The node that is blamed; empty if it is none."""
        return self.blame.where.node if self.blame else ""

    @property
    def is_wide(self) -> bool:
        """Whether it is over several rails at once."""
        return "+" in self.net_path


#: measures a red pair once more
Look = Callable[[RedPair], Confirmation]


def reds_of(outcome: Outcome) -> list[RedPair]:
    """Return what is red, each with the pair that shows it best; over one rail before several."""
    found = [each for result in outcome.results for each in _reds_of(result, outcome.campaign)]
    return sorted(found, key=lambda red: red.is_wide)


def _reds_of(result: Result, campaign: Campaign) -> Iterator[RedPair]:
    judged, matrix = result.judged, result.judged.matrix
    if judged.verdict is not MatrixVerdict.FAIL or result.why_told_only:
        return

    def red(name: str, row: int, blame: Blame | None = None, why: str = "") -> RedPair:
        return RedPair(
            result=result,
            name=name,
            net_path=matrix.rails[matrix.rail[row]],
            source=matrix.nodes[matrix.source[row]],
            destination=matrix.nodes[matrix.destination[row]],
            blame=blame,
            why_good_alone=why,
        )

    for blame in result.said.blame:
        rows = _low_rows(result, blame)
        if rows.any():
            shared = blame.fact in _SHARED and result.quantity is Quantity.BANDWIDTH
            why = _why_good_alone(result, rows, campaign) if shared else ""
            lowest = int(np.where(rows, judged.shortfall, np.inf).argmin())
            yield red(blame.name, lowest, blame, why)
    if judged.below_rails and not result.said.blame:
        yield red(result.quantity.value, int(np.argmin(matrix.goodness)))


def _low_rows(result: Result, blame: Blame) -> Flags:
    judged, matrix, where = result.judged, result.judged.matrix, blame.where
    mine = judged.low.copy()
    for node in where.hosts if where.node or blame.fact == SuspectKind.PAIR else ():
        at = matrix.nodes.index(node)
        mine &= (matrix.source == at) | (matrix.destination == at)
    if where.rail in matrix.rails:
        mine &= matrix.rail == matrix.rails.index(where.rail)
    if blame.fact in _SHARED:
        named_so = [
            at
            for at, found in enumerate(judged.explanation.found)
            if found.suspect.kind in _SHARED
            and place(judged, found.suspect) == blame.name
            and DIRECTIONS[found.suspect.side] == where.direction
        ]
        mine &= np.isin(judged.explanation.by, named_so)
    return mine


def _why_good_alone(result: Result, rows: Flags, campaign: Campaign) -> str:
    """Return why one pair has its rate over a shared link that is low for several at once.

    Each time it was low it carried as much as one healthy pair takes, or more.
    """
    judged, matrix = result.judged, result.judged.matrix
    begun = {(each.number, *pair) for each in campaign.rounds for pair in each.pairs}
    carried: dict[tuple[int, int, bool], float] = {}  # MB/s
    healthy = 0.0
    for at in np.flatnonzero(rows).tolist():
        number, rail = int(matrix.round[at]), int(matrix.rail[at])
        # All pairs of a round send one way, then all the other way.
        is_first_way = (number, int(matrix.source[at]), int(matrix.destination[at])) in begun
        moment = (number, rail, is_first_way)
        carried[moment] = carried.get(moment, 0.0) + float(matrix.value[at])
        healthy = max(healthy, judged.yardsticks.get(rail, math.inf))
    least, num_rounds = min(carried.values()), len({number for number, _, _ in carried})
    is_alone = bool((matrix.round[rows] < 0).any())
    if is_alone or num_rounds < _ROUNDS_OF_A_LINK or least < healthy:
        return ""
    return (
        f"the link carried {least:.4g} MB/s for several pairs at once in {num_rounds} rounds, "
        f"and one pair takes {healthy:.4g}"
    )


def control_of(red: RedPair) -> Ends | None:
    """Return the best pair over a red path without the blamed node; None if there is none."""
    judged, matrix = red.result.judged, red.result.judged.matrix
    number = {name: at for at, name in enumerate(matrix.nodes)}
    ends = [number[red.source], number[red.destination]]
    fits = ~judged.low & ~red.result.doubtful
    fits &= matrix.rail == matrix.rails.index(red.net_path)
    if red.blamed in number:
        bad = number[red.blamed]
        fits &= (matrix.source != bad) & (matrix.destination != bad)
    fits &= ~(np.isin(matrix.source, ends) & np.isin(matrix.destination, ends))
    if not fits.any():
        return None
    # One that sends as the red one does tells most.
    rank = judged.shortfall + (matrix.source == ends[0])
    row = int(np.where(fits, rank, -np.inf).argmax())
    return matrix.nodes[matrix.source[row]], matrix.nodes[matrix.destination[row]]


def low_beside_good_ones(found: Sequence[Attempt], controls: Sequence[Attempt]) -> str:
    """Return why what was disturbed is red all the same; empty if others may explain it.

    What others took from a good pair in turn with it, on the same machine, explains nothing.
    """
    good = [
        each for each in controls if each.report.verdict is Verdict.PASS and each.report.quantities
    ]
    if min(len(found), len(good)) < _TURNS:
        return ""
    usual = min(share_taken(each.disturbances.found) for each in good)
    values = []
    for look in found:
        low = next((each for each in look.report.quantities if each.disturbance), None)
        if low is None or low.value is None:
            return ""
        left = 1 - share_beyond(share_taken(look.disturbances.found), usual)
        is_low = low.lower is not None and low.value / left < low.lower
        is_late = low.lower is None and low.upper is not None and low.value * left > low.upper
        if not is_low and not is_late:
            return ""
        values.append(f"{low.value:.4g}")
    beside = ", ".join(f"{each.report.quantities[0].value:.4g}" for each in good)
    unit = good[0].report.quantities[0].unit
    return f"{', '.join(values)} {unit}; a good pair in turn, as disturbed: {beside}"


def confirm(outcome: Outcome, look: Look) -> tuple[Outcome, tuple[Confirmation, ...]]:
    """Measure again what is red; what no stock program sees is UNJUDGED, not FAIL.

    Who was looked at and not seen is blamed no longer.  Who was not looked at, as there are more
    than :data:`MOST_LOOKS`, stays blamed where all that were looked at were seen.
    """
    looks: list[Confirmation] = []
    stands: set[int] = set()
    unseen: dict[int, list[tuple[Blame, Confirmation | None]]] = {}
    blamed: set[str] = set()
    for red in reds_of(outcome):
        # One rail of several is slow: so are they together.
        is_seen, found = red.is_wide and red.blamed in blamed, None
        if not is_seen and len(looks) < MOST_LOOKS:
            found = look(red)
            is_seen = found.is_red
            if is_seen and red.blamed:
                blamed.add(red.blamed)
            if red.why_good_alone and found.verdict is Verdict.PASS:
                found = replace(found, reason=f"{found.reason}; {red.why_good_alone}")
                is_seen = True
            looks.append(found)
        if is_seen:
            stands.add(id(red.result))
        elif red.blame is not None:
            unseen.setdefault(id(red.result), []).append((red.blame, found))
    results = tuple(
        _seen_alone(each, unseen.get(id(each), ())) if id(each) in stands else _doubted(each)
        for each in outcome.results
    )
    return replace(outcome, results=results), tuple(looks)


def _doubted(result: Result) -> Result:
    if result.judged.verdict is not MatrixVerdict.FAIL or result.why_told_only:
        return result
    reason = f"{result.judged.reason}; no stock program confirmed it"
    return replace(
        result,
        judged=replace(result.judged, verdict=MatrixVerdict.UNDECIDED, reason=reason),
    )


def _seen_alone(result: Result, unseen: Sequence[tuple[Blame, Confirmation | None]]) -> Result:
    """Return a result that stands, without the blame of those that no stock program saw."""
    if not any(look is not None for _, look in unseen):
        return result
    gone = [each for each, _ in unseen]
    undecided = []
    for each, look in unseen:
        said = "no stock program looked, and it did not see others of them"
        if look is not None:
            said = f"{look.check or 'no stock program'} did not see it: {look.reason}"
        undecided.append(
            undecided_finding(
                WhyUndecided.UNCONFIRMED,
                look.nodes if look else (),
                f"{each.text}; {said}",
                each.next_step or "the same campaign once more",
            )
        )
    said_now = replace(
        result.said,
        blame=tuple(each for each in result.said.blame if each not in gone),
        undecided=(*undecided, *result.said.undecided),
    )
    return replace(result, said=said_now)
