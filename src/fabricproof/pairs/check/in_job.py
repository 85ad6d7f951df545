"""A campaign inside the job of a check: measure all of it, then have red seen by a stock program.

``python -m fabricproof.pairs.check.in_job FOLDER`` stands where other jobs ask for second looks:
it is asked again after each answer, and nothing printed ends the job.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from enum import StrEnum
from functools import partial
from pathlib import Path

from fabricproof.core.measure import Verdict
from fabricproof.core.whole_file import write_whole
from fabricproof.job.leg import read_plan, shell_name
from fabricproof.job.outcome import Attempt
from fabricproof.job.outcome import Outcome as LegOutcome
from fabricproof.job.outcomes import judge_legs
from fabricproof.job.script import chosen_file
from fabricproof.job.second_look import answer
from fabricproof.pairs.campaign.conduct import Means, conduct
from fabricproof.pairs.campaign.confirm import (
    MOST_TRIES,
    Confirmation,
    Ends,
    PairLook,
    RedPair,
    confirm,
    control_of,
    low_beside_good_ones,
)
from fabricproof.pairs.campaign.ledger import load, measured, only_one
from fabricproof.pairs.campaign.matrices import Quantity
from fabricproof.pairs.campaign.nodes import Standing
from fabricproof.pairs.campaign.verdict import Outcome, judge_campaign
from fabricproof.site import Site, load_site
from fabricproof.stacks.stack import resolve
from fabricproof.traffic.disturbance import share_taken
from fabricproof.verdict.objections import Objection, ObjectionKind
from fabricproof.verdict.value import Report

#: of the campaign, below the job's
FOLDER = "campaign"

#: The same pair is measured over each path, and several times where anything is low: each time
#: gets this part of a leg's time.
PART_OF_LEG = 4

#: says that the rounds have been run
_MEASURED_FILE = "measured"


class LegRole(StrEnum):
    """What a leg of a stock program is for, behind its path in the leg's name."""

    CONFIRM = "confirm"
    """It looks at a red pair."""
    CONTROL = "control"
    """It looks at a good pair in turn with that."""
    CONFIRM_LATENCY = "confirm_latency"
    """It looks at a pair whose latency is red."""
    CONTROL_LATENCY = "control_latency"
    """It looks at a good pair in turn with that."""

    @property
    def is_of_latency(self) -> bool:
        """Whether its program measures latencies, and no bandwidth."""
        return self in {LegRole.CONFIRM_LATENCY, LegRole.CONTROL_LATENCY}


def leg_name(net_path: str, role: LegRole) -> str:
    """Return the name of the leg that looks at pairs over a path."""
    return f"{net_path}.{role}"


def confirming(red: RedPair) -> LegRole:
    """Return what the leg is for that looks at a red pair."""
    return LegRole.CONFIRM_LATENCY if _is_latency(red) else LegRole.CONFIRM


def controlling(red: RedPair) -> LegRole:
    """Return what the leg is for that looks at a good pair in turn with a red one."""
    return LegRole.CONTROL_LATENCY if _is_latency(red) else LegRole.CONTROL


def _is_latency(red: RedPair) -> bool:
    return red.result.quantity is Quantity.LATENCY


def _attempts(
    net_path: str, role: LegRole, legs: Iterable[LegOutcome]
) -> Iterator[tuple[Ends, Attempt]]:
    """Yield the looks over a path, each with the node that sends and the other."""
    for leg in legs:
        for attempt in leg.attempts if leg.leg.name == leg_name(net_path, role) else ():
            nodes = [node for _, node in sorted((rank.rank, rank.node) for rank in attempt.ranks)]
            if len(nodes) == 2:
                yield (nodes[0], nodes[1]), attempt


def looks_at(red: RedPair, legs: Iterable[LegOutcome]) -> tuple[Attempt, ...]:
    """Return the attempts of the legs at a red pair."""
    ends = (red.source, red.destination)
    return tuple(
        each for seen, each in _attempts(red.net_path, confirming(red), legs) if seen == ends
    )


def controls_of(red: RedPair, legs: Iterable[LegOutcome]) -> tuple[Attempt, ...]:
    """Return the attempts over the red path at other pairs, without the node that is blamed."""
    ends = {red.source, red.destination}
    return tuple(
        each
        for seen, each in _attempts(red.net_path, controlling(red), legs)
        if set(seen) != ends and red.blamed not in seen
    )


def of_legs(red: RedPair, legs: Sequence[LegOutcome]) -> Confirmation:
    """Return what the stock program said of a red pair; of several tries the first that says it."""
    found = looks_at(red, legs)
    said = [each for each in found if each.report.verdict in {Verdict.FAIL, Verdict.PASS}]
    # A look that was cut short left nothing, and takes nothing from the others.
    left = [each for each in found if each.report.verdict is not Verdict.MISSING]
    mine = leg_name(red.net_path, confirming(red))
    program = next((each.leg.program for each in legs if each.leg.name == mine), "")
    blank = Confirmation(
        name=red.name,
        net_path=red.net_path,
        nodes=(red.source, red.destination),
        check=program,
        verdict=None,
        reason=f"{program or 'no program'} did not measure {red.source} to {red.destination}",
    )
    if not found:
        return blank
    chosen = said[0] if said else (left or found)[-1]
    verdict = chosen.report.verdict
    told = [each for each in chosen.report.quantities if each.verdict is verdict]
    controls = controls_of(red, legs)
    if not said and (words := low_beside_good_ones(_seen(left), _seen(controls))):
        return replace(blank, verdict=Verdict.FAIL, reason=words)
    return replace(
        blank,
        verdict=verdict,
        reason=told[0].reason if told else "it left nothing",
        disturbance=told[0].disturbance if told else None,
    )


def _seen(attempts: Iterable[Attempt]) -> list[PairLook]:
    return [
        PairLook(
            verdict=each.report.verdict,
            quantities=each.report.quantities,
            taken=share_taken(each.disturbances.found),
        )
        for each in attempts
    ]


def seen_again(legs: Iterable[LegOutcome], looks: Iterable[Confirmation]) -> list[LegOutcome]:
    """Return the legs that looked at red pairs, and at good ones in turn, as rows of the run.

    What a pair in turn showed to be red is no longer excused by what others did.
    """
    roles = (LegRole.CONFIRM, LegRole.CONFIRM_LATENCY)
    red = {
        (leg_name(each.net_path, role), each.check): each
        for each in looks
        if each.is_red
        for role in roles
    }
    rows = []
    for leg in legs:
        look = red.get((leg.leg.name, leg.leg.program))
        if leg.attempts:
            rows.append(leg if look is None else leg.objected(partial(_no_excuse, look)))
    return rows


def _no_excuse(look: Confirmation, report: Report) -> Iterator[Objection]:
    names = frozenset(each.name for each in report.quantities if each.disturbance)
    yield Objection(kind=ObjectionKind.RED_IN_TURN, reason=look.reason, quantities=names)


def judged(
    site: Site, folder: Path, legs: Sequence[LegOutcome]
) -> tuple[Outcome, tuple[Confirmation, ...]]:
    """Return what the campaign of a job came to, red only where a stock program saw it too."""
    campaign = load(folder / FOLDER)
    outcome = judge_campaign(site, campaign, measured(folder / FOLDER, campaign))
    return confirm(outcome, lambda red: of_legs(red, legs))


def due(folder: Path) -> str:
    """Measure what is to be measured, and return the leg to run next; empty where none is."""
    campaign = load(folder / FOLDER)
    site = load_site(campaign.site)
    place = folder / FOLDER
    if not (place / _MEASURED_FILE).exists():
        partition = site.partition(campaign.partition)
        means = Means(
            site=site,
            subject=resolve(site, partition, site.stack(campaign.stack)),
            folder=place,
            environment=os.environ,
            standing=lambda: Standing(free=campaign.nodes, busy=(), out={}),
            say=lambda text: sys.stderr.write(f"{text}\n"),
            inside=True,
        )
        # Nobody resumes it from outside meanwhile.
        with only_one(place):
            conduct(campaign, means)
        write_whole(place / _MEASURED_FILE, "")
    return _next_leg(site, folder)


def _next_leg(site: Site, folder: Path) -> str:
    plan = read_plan(folder)
    there = {each.name for each in plan.legs}
    legs = judge_legs(folder, [each for each in plan.legs if each.in_turn])
    due_now: list[tuple[str, Ends]] = []  # leg, and the two nodes of it

    def look(red: RedPair) -> Confirmation:
        found = of_legs(red, legs)
        for role, ends in _next_look(red, found, legs):
            if leg_name(red.net_path, role) in there:
                due_now.append((leg_name(red.net_path, role), ends))
        return found

    campaign = load(folder / FOLDER)
    confirm(judge_campaign(site, campaign, measured(folder / FOLDER, campaign)), look)
    if not due_now:
        return ""
    name, (source, destination) = due_now[0]
    write_whole(folder / chosen_file(name), f"{source}\n{destination}\n")
    return shell_name(name)


def _next_look(
    red: RedPair, found: Confirmation, legs: Sequence[LegOutcome]
) -> Iterator[tuple[LegRole, Ends]]:
    """Yield which two nodes are to be measured next for a red pair; nothing where none are.

    Where others disturbed the look at it, a good pair is measured in turn with it.
    """
    if found.verdict in {Verdict.FAIL, Verdict.PASS, Verdict.INVALID}:
        return
    tries, controls = len(looks_at(red, legs)), len(controls_of(red, legs))
    good = control_of(red)
    if found.disturbance and good is not None and controls < tries:
        yield controlling(red), good
    elif tries < MOST_TRIES:
        yield confirming(red), (red.source, red.destination)


if __name__ == "__main__":
    answer(lambda folder, _: [due(folder)])
