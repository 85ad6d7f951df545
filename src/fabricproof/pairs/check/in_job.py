"""A campaign inside the job of a check: measure all of it, then have red seen by a stock program.

``python -m fabricproof.pairs.check.in_job FOLDER`` stands where other jobs ask for second looks:
it is asked again after each answer, and nothing printed ends the job.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from enum import StrEnum
from pathlib import Path

from fabricproof.core.measure import Verdict
from fabricproof.core.plain import plain, typed
from fabricproof.core.records import text_if_there
from fabricproof.core.whole_file import write_whole
from fabricproof.job.leg import read_plan, shell_name
from fabricproof.job.outcome import Attempt
from fabricproof.job.outcome import Outcome as LegOutcome
from fabricproof.job.outcomes import judge_legs
from fabricproof.job.script import chosen_file
from fabricproof.job.second_look import answer
from fabricproof.pairs.campaign.again import (
    MOST_TRIES,
    Confirmation,
    Ends,
    RedPair,
    confirm,
    control_of,
    low_beside_good_ones,
)
from fabricproof.pairs.campaign.launch import Means, conduct
from fabricproof.pairs.campaign.matrices import Quantity
from fabricproof.pairs.campaign.plan import load, only_one
from fabricproof.pairs.campaign.record import measured
from fabricproof.pairs.campaign.verdict import Outcome, judge_campaign
from fabricproof.site import Site, load_site
from fabricproof.stacks.stack import resolve
from fabricproof.verdict.objections import Objection, ObjectionKind
from fabricproof.verdict.value import Report

#: of the campaign, below the job's; of one that several jobs measure a link to it
FOLDER = "campaign"

#: The same pair is measured over each path, and several times where anything is low: each time
#: gets this part of a leg's time.
PART_OF_LEG = 4

#: in the job's folder: says that the rounds have been run
_MEASURED_FILE = "measured"

#: in the campaign's folder: the job that measures it, and what stock programs said of red pairs
JOB_FILE, LOOKS_FILE = "job", "looks.json"


class LegRole(StrEnum):
    """What a leg of a stock program is for, behind its path in the leg's name."""

    CONFIRM = "confirm"
    """It looks at a red pair."""
    CONTROL = "control"
    """It looks at a good pair in turn with that."""


#: program that looks at what is red -> how the names of its legs end
PROGRAMS = {
    Quantity.BANDWIDTH: ("osu_bw", ""),
    Quantity.BOTH_WAYS: ("osu_bibw", "_both_ways"),
    Quantity.LATENCY: ("osu_latency", "_latency"),
}


def leg_name(net_path: str, role: LegRole, quantity: Quantity = Quantity.BANDWIDTH) -> str:
    """Return the name of the leg that looks at pairs over a path for a quantity."""
    return f"{net_path}.{role}{PROGRAMS[quantity][1]}"


def _leg_of(red: RedPair, role: LegRole) -> str:
    return leg_name(red.net_path, role, red.result.quantity)


def looks_at(red: RedPair, legs: Sequence[LegOutcome]) -> tuple[list[Attempt], list[Attempt]]:
    """Return the attempts at a red pair, and those over its path at good pairs in turn."""
    looks, controls = [], []
    for leg in legs:
        for attempt in leg.attempts:
            # The node that sends is the first.
            nodes = [node for _, node in sorted((rank.rank, rank.node) for rank in attempt.ranks)]
            if leg.leg.name == _leg_of(red, LegRole.CONFIRM):
                looks += [attempt] * (nodes == [red.source, red.destination])
            elif leg.leg.name == _leg_of(red, LegRole.CONTROL) and len(nodes) == 2:
                is_other = set(nodes) != {red.source, red.destination}
                controls += [attempt] * (is_other and red.blamed not in nodes)
    return looks, controls


def of_legs(red: RedPair, legs: Sequence[LegOutcome]) -> Confirmation:
    """Return what the stock program said of a red pair; of several tries the first that says it."""
    found, controls = looks_at(red, legs)
    said = [each for each in found if each.report.verdict in {Verdict.FAIL, Verdict.PASS}]
    # A look that was cut short left nothing, and takes nothing from the others.
    left = [each for each in found if each.report.verdict is not Verdict.MISSING]
    mine = _leg_of(red, LegRole.CONFIRM)
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
    if not said and (words := low_beside_good_ones(left, controls)):
        return replace(blank, verdict=Verdict.FAIL, reason=words)
    chosen = said[0] if said else (left or found)[-1]
    verdict = chosen.report.verdict
    told = [each for each in chosen.report.quantities if each.verdict is verdict]
    return replace(
        blank,
        verdict=verdict,
        reason=told[0].reason if told else "it left nothing",
        disturbance=told[0].disturbance if told else None,
    )


def seen_again(legs: Iterable[LegOutcome], looks: Iterable[Confirmation]) -> list[LegOutcome]:
    """Return the legs that looked at red pairs, and at good ones in turn, as rows of the run.

    What a pair in turn showed to be red is no longer excused by what others did.
    """
    red = {
        (leg_name(each.net_path, LegRole.CONFIRM, quantity), each.check): each
        for each in looks
        if each.is_red
        for quantity in Quantity
    }

    def no_excuse(look: Confirmation, report: Report) -> Objection:
        names = frozenset(each.name for each in report.quantities if each.disturbance)
        return Objection(kind=ObjectionKind.RED_IN_TURN, reason=look.reason, quantities=names)

    rows = []
    for leg in legs:
        look = red.get((leg.leg.name, leg.leg.program))
        if leg.attempts:
            rows.append(leg if look is None else leg.objected([no_excuse(look, leg.report)]))
    return rows


def outcome_of(site: Site, place: Path) -> Outcome:
    """Return what the campaign in ``place`` came to, by the kernel alone."""
    campaign = load(place)
    return judge_campaign(site, campaign, measured(place, campaign))


def judged(
    site: Site, folder: Path, legs: Sequence[LegOutcome]
) -> tuple[Outcome, tuple[Confirmation, ...]]:
    """Return what the campaign of a job came to, red only where a stock program saw it too.

    What the programs said is kept beside the campaign.
    """
    place = folder / FOLDER
    outcome, looks = confirm(outcome_of(site, place), lambda red: of_legs(red, legs))
    write_whole(place / LOOKS_FILE, json.dumps([plain(each) for each in looks]) + "\n")
    return outcome, looks


def confirmed(site: Site, place: Path) -> tuple[Outcome, tuple[Confirmation, ...]]:
    """Return what a campaign came to, by what stock programs said in its last job."""
    text = text_if_there(place / LOOKS_FILE, "looks of stock programs", "remove it") or "[]"
    said = [typed(Confirmation, each) for each in json.loads(text)]

    def look(red: RedPair) -> Confirmation:
        for each in said:
            if (each.name, each.net_path) == (red.name, red.net_path):
                return each
        return of_legs(red, ())

    return confirm(outcome_of(site, place), look)


def due(folder: Path) -> str:
    """Measure what is to be measured, and return the leg to run next; empty if none is."""
    place = (folder / FOLDER).resolve()
    campaign = load(place)
    site = load_site(campaign.site)
    plan = read_plan(folder)
    if not (folder / _MEASURED_FILE).exists():
        means = Means(
            site=site,
            subject=resolve(site, site.partition(campaign.partition), site.stack(campaign.stack)),
            folder=place,
            environment=os.environ,
            nodes=plan.legs[0].nodes or campaign.nodes,
            say=lambda text: sys.stderr.write(f"{text}\n"),
        )
        with only_one(place, "measure"):
            write_whole(place / JOB_FILE, os.environ.get("SLURM_JOB_ID", ""))
            conduct(campaign, means)
        write_whole(folder / _MEASURED_FILE, "")
    there = {each.name for each in plan.legs}
    legs = judge_legs(folder, [each for each in plan.legs if each.in_turn])
    wanted: list[tuple[str, Ends]] = []  # leg, and the two nodes of it

    def look(red: RedPair) -> Confirmation:
        found = of_legs(red, legs)
        for role, ends in next_look(red, found, legs):
            if _leg_of(red, role) in there:
                wanted.append((_leg_of(red, role), ends))
        return found

    confirm(outcome_of(site, place), look)
    if not wanted:
        return ""
    name, (source, destination) = wanted[0]
    write_whole(folder / chosen_file(name), f"{source}\n{destination}\n")
    return shell_name(name)


def next_look(
    red: RedPair, found: Confirmation, legs: Sequence[LegOutcome]
) -> Iterator[tuple[LegRole, Ends]]:
    """Yield which two nodes are to be measured next for a red pair; nothing if none are.

    Where others disturbed the look at it, a good pair is measured in turn with it.
    """
    if found.verdict in {Verdict.FAIL, Verdict.PASS, Verdict.INVALID}:
        return
    looks, controls = looks_at(red, legs)
    good = control_of(red)
    if found.disturbance and good is not None and len(controls) < len(looks):
        yield LegRole.CONTROL, good
    elif len(looks) < MOST_TRIES:
        yield LegRole.CONFIRM, (red.source, red.destination)


if __name__ == "__main__":
    answer(lambda folder, _: [due(folder)])
