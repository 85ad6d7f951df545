"""What is red is measured once more by a stock program, before it is called FAIL.

The kernel is ours; a red that osu_bw on the same two nodes does not see is none.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from fabricproof.core.errors import FabricproofError
from fabricproof.core.measure import Verdict
from fabricproof.job.run import LegResult, SessionResult
from fabricproof.pairs.blame.judged import MatrixVerdict
from fabricproof.pairs.blame.suspects import SuspectKind
from fabricproof.pairs.campaign.matrices import Quantity
from fabricproof.pairs.campaign.verdict import Outcome, Result
from fabricproof.pairs.said import Blame

#: pairs that are looked at again at most: each is a job of its own
MOST_LOOKS = 4

#: check that measures a quantity over one rail, and over several
_CHECKS = {
    Quantity.BANDWIDTH: ("OsuBandwidth", "OsuMultiRailBandwidth"),
    Quantity.BOTH_WAYS: ("OsuBidirectionalBandwidth", "OsuMultiRailBothWays"),
    Quantity.LATENCY: ("OsuLatency", "OsuLatency"),
}

#: runs ReFrame with arguments on nodes; None where it came to no result
Run = Callable[[Sequence[str], tuple[str, ...]], SessionResult | None]


@dataclass(frozen=True, kw_only=True)
class Confirmation:
    """A second look at something red.

    Attributes:
        name: what is red: a blamed place, or a quantity.
        net_path: over which.
        nodes: the pair that was measured again.
        check: that measured it.
        verdict: what the stock program came to; None where it came to nothing.
        reason: in words.
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
        result: that is red.
        name: what of it: a blamed place, or a quantity.
        net_path: over which.
        source: the node that sends.
        destination: the one that receives.
        blamed: the node that is blamed, if one is.
    """

    result: Result
    name: str
    net_path: str
    source: str
    destination: str
    blamed: str | None = None

    @property
    def nodes(self) -> tuple[str, str]:
        """The two, in the order in which a job has them: the first one sends."""
        ends = (self.source, self.destination)
        return min(ends), max(ends)

    @property
    def is_wide(self) -> bool:
        """Whether it is over several rails at once."""
        return "+" in self.net_path


#: measures a red pair once more
Look = Callable[[RedPair], Confirmation]


def reds_of(outcome: Outcome) -> list[RedPair]:
    """Return what is red, each with the pair that shows it best; over one rail before several."""
    found = [each for result in outcome.results for each in _reds_of(result)]
    return sorted(found, key=lambda red: red.is_wide)


def confirm(outcome: Outcome, look: Look) -> tuple[Outcome, tuple[Confirmation, ...]]:
    """Measure again what is red; what no stock program sees is UNJUDGED, not FAIL.

    Args:
        outcome: of the campaign.
        look: measures a pair once more.
    """
    reds = reds_of(outcome)
    if not reds:
        return outcome, ()
    done: list[Confirmation] = []
    stands: set[int] = set()
    blamed: set[str] = set()
    for red in reds:
        if red.is_wide and red.blamed in blamed:
            stands.add(id(red.result))  # one rail of several is slow: so are they together
        elif len(done) < MOST_LOOKS:
            done.append(look(red))
            if done[-1].is_red:
                stands.add(id(red.result))
                blamed |= {red.blamed} - {None}  # type: ignore[arg-type]
    results = tuple(_doubted(each, id(each) in stands) for each in outcome.results)
    return replace(outcome, results=results), tuple(done)


def _doubted(result: Result, stands: bool) -> Result:
    if result.judged.verdict is not MatrixVerdict.FAIL or result.why_told_only or stands:
        return result
    judged = replace(
        result.judged,
        verdict=MatrixVerdict.UNDECIDED,
        reason=f"{result.judged.reason}; no stock program confirmed it",
    )
    return replace(result, judged=judged)


def _reds_of(result: Result) -> Iterator[RedPair]:
    if result.judged.verdict is not MatrixVerdict.FAIL or result.why_told_only:
        return
    for blame in result.said.blame:
        row = _worst_row(result, blame)
        if row is not None:
            yield _red(result, blame.name, row, blame.node)
    if result.judged.below and not result.said.blame:
        yield _red(result, result.quantity.value, int(np.argmin(result.judged.alone)))


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


def _worst_row(result: Result, blame: Blame) -> int | None:
    """Return the lowest row that shows whom ``blame`` names; None where there is none."""
    judged, matrix = result.judged, result.judged.matrix
    mine = judged.low.copy()
    named = [blame.node] if blame.node else []
    if blame.kind is SuspectKind.PAIR:
        named = blame.name.split(" - ")
    for node in named:
        at = matrix.nodes.index(node)
        mine &= (matrix.source == at) | (matrix.destination == at)
    if blame.rail in matrix.rails:
        mine &= matrix.rail == matrix.rails.index(str(blame.rail))
    if not mine.any():
        return None
    return int(np.where(mine, judged.shortfall, np.inf).argmin())


def by_check(outcome: Outcome, run: Run) -> Look:
    """Return what has a check measure a red pair, in a job of its own."""
    return lambda red: _looked(outcome, red, run)


def _looked(outcome: Outcome, red: RedPair, run: Run) -> Confirmation:
    campaign = outcome.campaign
    check = _CHECKS[red.result.quantity][red.is_wide]
    arguments = [
        *("-r", f"--system={campaign.site_name}:{campaign.partition}"),
        *("-p", f"^{campaign.stack}$"),
        *("-n", f"^{check}%fabric={campaign.fabric}($|[%~])"),
    ]
    blank = Confirmation(
        name=red.name, net_path=red.net_path, nodes=red.nodes, check=check, verdict=None, reason=""
    )
    if red.is_wide and red.result.quantity is Quantity.BANDWIDTH and red.source != red.nodes[0]:
        # The checks over several rails send from a job's first node alone.
        return replace(blank, reason=f"no check has {red.source} send over several rails here")
    try:
        result = run(arguments, red.nodes)
    except FabricproofError as error:
        return replace(blank, reason=str(error))
    if result is None:
        return replace(blank, reason="the run came to no result")
    return _of_legs(blank, result)


def _of_legs(blank: Confirmation, result: SessionResult) -> Confirmation:
    """Return what the legs over the red path came to, there and back."""
    mine = [each for each in result.legs if _net_path(each) == blank.net_path and each.nodes]
    elsewhere = [each for each in mine if not set(each.nodes) <= set(blank.nodes)]
    if not mine or elsewhere:
        reason = "it ran on other nodes" if elsewhere else "no leg over this path was measured"
        return replace(blank, reason=reason, run_id=result.run_id)
    leg = next((each for each in mine if each.verdict is Verdict.FAIL), None)
    if leg is not None:
        reason = leg.reason
    else:
        leg = max(mine, key=lambda each: each.verdict is not Verdict.PASS)
        reason = leg.reason or "it is good there"
    return replace(blank, verdict=leg.verdict, reason=reason, run_id=result.run_id)


def _net_path(leg: LegResult) -> str:
    return leg.leg.partition(".")[0]
