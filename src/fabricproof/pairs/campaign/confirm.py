"""What is red is measured once more by a stock program, before it is called FAIL.

The kernel is ours; a red that osu_bw on the same two nodes does not see is none.  A link that pairs
share may be slow for several at once and still carry one: of that a pair alone tells nothing.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from fabricproof.core.errors import FabricproofError
from fabricproof.core.measure import Quantity as Measured
from fabricproof.core.measure import Verdict
from fabricproof.core.units import natural
from fabricproof.job.run import ALL_LEGS, LegResult, RunResult
from fabricproof.pairs.blame.judged import MatrixVerdict, WhyUndecided
from fabricproof.pairs.blame.suspects import SuspectKind
from fabricproof.pairs.campaign.ledger import Campaign
from fabricproof.pairs.campaign.matrices import Quantity
from fabricproof.pairs.campaign.verdict import Outcome, Result
from fabricproof.pairs.matrix import Flags
from fabricproof.pairs.said import DIRECTIONS, Blame, place, undecided_finding
from fabricproof.traffic.disturbance import (
    Disturbance,
    DisturbanceKind,
    share_beyond,
    share_taken,
)

#: pairs that are looked at again at most: each is a job of its own
MOST_LOOKS = 4

#: check that measures a quantity over one rail, and over several
_CHECKS = {
    Quantity.BANDWIDTH: ("OsuBandwidth", "OsuMultiRailBandwidth"),
    Quantity.BOTH_WAYS: ("OsuBidirectionalBandwidth", "OsuMultiRailBothWays"),
    Quantity.LATENCY: ("OsuLatency", "OsuLatency"),
}

#: blame of what several pairs share
_SHARED = frozenset({SuspectKind.LEAF, SuspectKind.UPLINK})

#: rounds in which a shared link was low, before that needs no stock program: one is a moment
_ROUNDS_OF_A_LINK = 2

#: looks of a stock program at one pair, where others had its cores or its rails
MOST_TRIES = 3

#: of a pair and of a good one in turn with it, before the one tells of the other
_TURNS = 2

#: the node that sends, and the one that receives
Ends = tuple[str, str]

#: runs ReFrame with arguments on nodes; None where it came to no result
Run = Callable[[Sequence[str], tuple[str, ...]], RunResult | None]

#: what share of a leg's time others cost it at most, 0 to 1, of the run and the leg's name
Taken = Callable[[str, str], float]


@dataclass(frozen=True, kw_only=True)
class Confirmation:
    """A second look at something red.

    Attributes:
        name: what is red: a blamed place, or a quantity.
        verdict: what the stock program came to; None where it came to nothing.
        run_id: of that run; empty where there was none.
        disturbance: what others took from it, as a quantity has it; None where nothing.
    """

    name: str
    net_path: str
    nodes: tuple[str, ...]
    check: str
    verdict: Verdict | None
    reason: str
    run_id: str = ""
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
        why_good_alone: why it is red and one pair alone has its rate; empty where it has not.
        blame: who is blamed; None where the whole quantity is red.
    """

    result: Result
    name: str
    net_path: str
    source: str
    destination: str
    blamed: str | None = None
    why_good_alone: str = ""
    blame: Blame | None = None

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


def confirm(outcome: Outcome, look: Look) -> tuple[Outcome, tuple[Confirmation, ...]]:
    """Measure again what is red; what no stock program sees is UNJUDGED, not FAIL.

    Who was looked at and not seen is blamed no longer.  Who was not looked at, as there are more
    than :data:`MOST_LOOKS`, stays blamed where all that were looked at were seen.
    """
    reds = reds_of(outcome)
    if not reds:
        return outcome, ()
    done: list[Confirmation] = []
    stands: set[int] = set()
    unseen: dict[int, list[tuple[Blame, Confirmation | None]]] = {}
    blamed: set[str] = set()
    for red in reds:
        is_seen, found = False, None
        if red.is_wide and red.blamed in blamed:
            is_seen = True  # one rail of several is slow: so are they together
        elif len(done) < MOST_LOOKS:
            found = look(red)
            is_seen = found.is_red
            if is_seen and red.blamed is not None:
                blamed.add(red.blamed)
            if red.why_good_alone and found.verdict is Verdict.PASS:
                found, is_seen = (
                    replace(found, reason=f"{found.reason}; {red.why_good_alone}"),
                    True,
                )
            done.append(found)
        if is_seen:
            stands.add(id(red.result))
        elif red.blame is not None:
            unseen.setdefault(id(red.result), []).append((red.blame, found))
    results = tuple(
        _seen_alone(each, unseen.get(id(each), ())) if id(each) in stands else _doubted(each)
        for each in outcome.results
    )
    return replace(outcome, results=results), tuple(done)


def _doubted(result: Result) -> Result:
    if result.judged.verdict is not MatrixVerdict.FAIL or result.why_told_only:
        return result
    judged = replace(
        result.judged,
        verdict=MatrixVerdict.UNDECIDED,
        reason=f"{result.judged.reason}; no stock program confirmed it",
    )
    return replace(result, judged=judged)


def _seen_alone(result: Result, unseen: Sequence[tuple[Blame, Confirmation | None]]) -> Result:
    if not any(look is not None for _, look in unseen):
        return result
    gone = [each for each, _ in unseen]
    undecided = tuple(
        undecided_finding(
            WhyUndecided.UNCONFIRMED,
            look.nodes if look else (),
            f"{each.text}; {_not_seen(look)}",
            each.next_step or "the same campaign once more",
        )
        for each, look in unseen
    )
    said = replace(
        result.said,
        blame=tuple(each for each in result.said.blame if each not in gone),
        undecided=(*undecided, *result.said.undecided),
    )
    return replace(result, said=said)


def _not_seen(look: Confirmation | None) -> str:
    if look is None:
        return "no stock program looked, and it did not see others of them"
    return f"{look.check or 'no stock program'} did not see it: {look.reason}"


def _reds_of(result: Result, campaign: Campaign) -> Iterator[RedPair]:
    if result.judged.verdict is not MatrixVerdict.FAIL or result.why_told_only:
        return
    for blame in result.said.blame:
        rows = _low_rows(result, blame)
        if rows.any():
            row = int(np.where(rows, result.judged.shortfall, np.inf).argmin())
            red = _red(result, blame.name, row, blame.where.node or None)
            shared = blame.fact in _SHARED and result.quantity is Quantity.BANDWIDTH
            why = _why_good_alone(result, rows, campaign) if shared else ""
            yield replace(red, why_good_alone=why, blame=blame)
    if result.judged.below and not result.said.blame:
        yield _red(result, result.quantity.value, int(np.argmin(result.judged.matrix.goodness)))


def _red(result: Result, name: str, row: int, blamed: str | None = None) -> RedPair:
    matrix = result.judged.matrix
    return RedPair(
        result=result,
        name=name,
        net_path=matrix.rails[matrix.rail[row]],
        source=matrix.nodes[matrix.source[row]],
        destination=matrix.nodes[matrix.destination[row]],
        blamed=blamed,
    )


def _low_rows(result: Result, blame: Blame) -> Flags:
    judged, matrix = result.judged, result.judged.matrix
    mine = judged.low.copy()
    where = blame.where
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

    ``campaign``: its rounds tell who sent at the same time.
    """
    judged, matrix = result.judged, result.judged.matrix
    begun = {(each.number, *pair) for each in campaign.rounds for pair in each.pairs}
    carried: dict[tuple[int, int, bool], float] = {}
    healthy = 0.0
    for at in np.flatnonzero(rows).tolist():
        number, rail = int(matrix.round[at]), int(matrix.rail[at])
        ends = (int(matrix.source[at]), int(matrix.destination[at]))
        # All pairs of a round send one way, then all the other way.
        moment = (number, rail, (number, *ends) in begun)
        carried[moment] = carried.get(moment, 0.0) + float(matrix.value[at])
        healthy = max(healthy, judged.yardsticks.get((int(matrix.kind[at]), rail), math.inf))
    is_alone = bool((matrix.round[rows] < 0).any())
    num_rounds = len({number for number, _, _ in carried})
    if is_alone or num_rounds < _ROUNDS_OF_A_LINK or min(carried.values()) < healthy:
        return ""
    return (
        f"the link carried {min(carried.values()):.4g} MB/s for several pairs at once in "
        f"{num_rounds} rounds, and one pair takes {healthy:.4g}"
    )


def control_of(red: RedPair) -> Ends | None:
    """Return the best pair over a red path without the node that is blamed; None: there is none."""
    judged, matrix = red.result.judged, red.result.judged.matrix
    number = {name: at for at, name in enumerate(matrix.nodes)}
    source, destination = number[red.source], number[red.destination]
    fits = ~judged.low & ~red.result.doubtful
    fits &= matrix.rail == matrix.rails.index(red.net_path)
    if red.blamed in number:
        bad = number[red.blamed]
        fits &= (matrix.source != bad) & (matrix.destination != bad)
    both = np.isin(matrix.source, [source, destination])
    fits &= ~(both & np.isin(matrix.destination, [source, destination]))
    if not fits.any():
        return None
    # One that sends as the red one does tells most.
    rank = judged.shortfall + (matrix.source == source)
    row = int(np.where(fits, rank, -np.inf).argmax())
    return matrix.nodes[matrix.source[row]], matrix.nodes[matrix.destination[row]]


@dataclass(frozen=True, kw_only=True)
class PairLook:
    """One look of a stock program at a pair.

    Attributes:
        taken: what share of its time others cost it at most, 0 to 1.
    """

    verdict: Verdict
    quantities: Sequence[Measured]
    taken: float


def low_beside_good_ones(found: Sequence[PairLook], controls: Sequence[PairLook]) -> str:
    """Return why what was disturbed is red all the same; empty where others may explain it.

    What a good pair bore in turn with it, at the same time on the same machine, explains nothing.
    """
    good = [each for each in controls if each.verdict is Verdict.PASS and each.quantities]
    if min(len(found), len(good)) < _TURNS:
        return ""
    borne = min(each.taken for each in good)
    values = []
    for look in found:
        first = next((each for each in look.quantities if each.disturbance), None)
        if first is None or first.value is None or _may_be_good(first, look.taken, borne):
            return ""
        values.append(f"{first.value:.4g}")
    beside = [f"{each.quantities[0].value:.4g}" for each in good]
    unit = good[0].quantities[0].unit
    return f"{', '.join(values)} {unit}; a good pair in turn, as disturbed: {', '.join(beside)}"


def _may_be_good(each: Measured, taken: float, borne: float) -> bool:
    """Tell whether a number is within its bounds without what others took beyond the good one."""
    left = 1 - share_beyond(taken, borne)
    assert each.value is not None, "the caller asked"
    if each.lower is not None:
        return each.value / left >= each.lower
    return each.upper is None or each.value * left <= each.upper


def by_check(outcome: Outcome, run: Run, taken: Taken = lambda *_: 0.0) -> Look:
    """Return what has a check measure a red pair, in a job of its own.

    Where others disturbed it, a good pair is measured in turn with it, and it once more.
    """

    def look(red: RedPair) -> Confirmation:
        found: list[PairLook] = []
        controls: list[PairLook] = []
        good = control_of(red)
        while True:
            said, seen = _looked(outcome, red, (red.source, red.destination), run, taken)
            found += [seen] if seen else []
            if not said.disturbance:
                return said
            if good is not None and (beside := _looked(outcome, red, good, run, taken)[1]):
                controls.append(beside)
            if words := low_beside_good_ones(found, controls):
                return replace(said, verdict=Verdict.FAIL, reason=words, disturbance=None)
            if len(found) == MOST_TRIES:
                return said

    return look


def _looked(
    outcome: Outcome, red: RedPair, ends: Ends, run: Run, taken: Taken
) -> tuple[Confirmation, PairLook | None]:
    campaign = outcome.campaign
    nodes = tuple(sorted(ends, key=natural))  # a job has them so, and its first one sends
    check = _CHECKS[red.result.quantity][red.is_wide]
    arguments = [
        *("-r", f"--system={campaign.site_name}:{campaign.partition}"),
        *("-p", f"^{campaign.stack}$"),
        *("-n", f"^{check}%fabric={campaign.fabric}($|[%~])"),
    ]
    blank = Confirmation(
        name=red.name, net_path=red.net_path, nodes=nodes, check=check, verdict=None, reason=""
    )
    if red.is_wide and red.result.quantity is Quantity.BANDWIDTH and ends != nodes:
        # The checks over several rails send from a job's first node alone.
        return replace(blank, reason=f"no check has {ends[0]} send over several rails here"), None
    try:
        result = run(arguments, nodes)
    except FabricproofError as error:
        return replace(blank, reason=str(error)), None
    if result is None:
        return replace(blank, reason="the run came to no result"), None
    return _of_legs(blank, result, taken)


def _of_legs(
    blank: Confirmation, result: RunResult, taken: Taken
) -> tuple[Confirmation, PairLook | None]:
    mine = [each for each in result.legs if _is_over(each, blank.net_path) and each.nodes]
    elsewhere = [each for each in mine if not set(each.nodes) <= set(blank.nodes)]
    if not mine or elsewhere:
        reason = "it ran on other nodes" if elsewhere else "no leg over this path was measured"
        return replace(blank, reason=reason, run_id=result.run_id), None
    leg = next((each for each in mine if each.verdict is Verdict.FAIL), None)
    if leg is not None:
        reason = leg.reason
    else:
        leg = max(mine, key=lambda each: each.verdict is not Verdict.PASS)
        reason = leg.reason or "it is good there"
    others = [each.disturbance for each in leg.quantities if each.disturbance]
    said = replace(
        blank,
        verdict=leg.verdict,
        reason=reason,
        run_id=result.run_id,
        disturbance=others[0] if others and leg.verdict is Verdict.UNJUDGED else None,
    )
    share = taken(result.run_id, leg.leg)
    return said, PairLook(verdict=leg.verdict, quantities=leg.quantities, taken=share)


def share_of_leg(records: Iterable[Mapping[str, Any]], leg: str) -> float:
    """Return what share of its time others cost the last attempt at a leg, by a run's records."""
    found = [
        each for each in records if each.get("kind") == "environment" and each.get("leg") == leg
    ]
    last = max(found, key=lambda each: int(each["attempt"]), default={"disturbances": ()})
    return share_taken(
        Disturbance(kind=DisturbanceKind(each["kind"]), share=each["share"], reason="")
        for each in last["disturbances"]
    )


def _is_over(leg: LegResult, net_path: str) -> bool:
    """Tell whether a leg went over a path; an interface may have a dot in its name: eth0.100."""
    if leg.relation or leg.rails:
        return not leg.relation and "+".join(leg.rails) == net_path
    rail, _, rest = leg.leg.rpartition(".")
    if rest == ALL_LEGS:
        return rail == net_path
    return leg.leg == net_path or leg.leg.startswith(f"{net_path}.")
