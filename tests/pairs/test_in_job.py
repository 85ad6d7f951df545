"""A campaign inside a job: which leg is asked for next, and what a good pair in turn tells."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from made_machine import Machine, healthy, planned

from fabricproof.core.measure import Verdict
from fabricproof.job.evidence.leg_folder import RankRecord
from fabricproof.job.leg import Leg, write_plan
from fabricproof.job.outcome import Attempt, Outcome
from fabricproof.pairs.campaign import launch
from fabricproof.pairs.campaign.again import RedPair, control_of, reds_of
from fabricproof.pairs.campaign.matrices import Quantity
from fabricproof.pairs.campaign.plan import CampaignRunsError, load, only_one, save
from fabricproof.pairs.check import in_job
from fabricproof.pairs.check.in_job import LegRole, leg_name, of_legs, seen_again
from fabricproof.site import Site
from fabricproof.traffic.disturbance import Disturbance, DisturbanceKind, Disturbances
from fabricproof.verdict.value import Judgement, Report

NOTHING = Report(verdict=Verdict.MISSING, quantities=())
LOWER, GOOD, LOW = 21.2, 23.1, 7.0
CUT = (0.0, 0.9)


def _leg(name: str) -> Leg:
    return Leg(
        name=name, rails=("rail0",), suite="osu", program="osu_bw", environment={}, commands=(),
        expected_sizes=(),
        spread=False, required=(), fabric=None, tolerance=0.1, in_turn=True, backward=True,
    )  # fmt: skip


def _attempt(ends: tuple[str, str], value: float, taken: float) -> Attempt:
    """One look of osu_bw; ``taken`` of the time others had its cores.  0 MB/s: it was cut short."""
    red = value < LOWER
    verdict = Verdict.PASS if not red else Verdict.UNJUDGED if taken else Verdict.FAIL
    judgement = Judgement(
        name="bandwidth_64KiB", value=value, unit="MB/s", message_size=65536, verdict=verdict,
        reason=f"{value:g} MB/s", lower=LOWER, reference=23.5,
        disturbance="starved_cores" if red and taken else None,
    )  # fmt: skip
    kind = DisturbanceKind.STARVED_CORES
    others = Disturbances(found=(Disturbance(kind=kind, share=taken, reason="others"),))
    report = Report(verdict=verdict, quantities=(judgement,)) if value else NOTHING
    return Attempt(
        number=1, folder=Path(), status=0, table=None,
        ranks=tuple(_rank(number, node) for number, node in enumerate(ends)),
        report=report, disturbances=others,
    )  # fmt: skip


def _rank(number: int, node: str) -> RankRecord:
    return RankRecord(
        rank=number, node=node, cpus="0", machine=node, status=0, before={}, after={}, facts={}
    )


def _legs(red: RedPair, looks: Any, controls: Any = ()) -> list[Outcome]:
    good = control_of(red)
    assert good is not None
    told = {
        LegRole.CONFIRM: [_attempt((red.source, red.destination), *each) for each in looks],
        LegRole.CONTROL: [_attempt(good, *each) for each in controls],
    }
    return [
        Outcome(
            leg=_leg(leg_name("rail0", role)),
            attempts=tuple(attempts),
            report=attempts[-1].report if attempts else NOTHING,
        )
        for role, attempts in told.items()
    ]  # fmt: skip


@pytest.fixture
def red(climb: Any, site: Site) -> RedPair:
    outcome, _ = climb(
        Machine(lambda a, b: healthy(a, b) * (0.3 if b == "vc3" else 1)), planned(site)
    )
    (found,) = reds_of(outcome)
    return found


def test_a_control_is_a_good_pair_without_the_blamed_node_over_the_same_path(red: RedPair) -> None:
    good = control_of(red)
    assert good is not None
    assert red.blamed == red.destination == "vc3"
    assert "vc3" not in good
    assert good[0] == red.source


def test_where_all_pairs_are_red_there_is_no_control(climb: Any, site: Site) -> None:
    outcome, _ = climb(Machine(lambda a, b: healthy(a, b) / 2), planned(site))
    (found,) = reds_of(outcome)
    assert control_of(found) is None


@pytest.mark.parametrize(
    ("looks", "controls", "verdict"),
    [
        ([(LOW, 0.0)], [], Verdict.FAIL),
        ([(GOOD, 0.9)], [], Verdict.PASS),
        ([], [], None),
        ([(LOW, 0.9)], [], Verdict.UNJUDGED),
        ([(LOW, 0.9), (GOOD, 0.9)], [], Verdict.PASS),
        # As disturbed, a good pair reached its rate in turn: others are no reason.
        ([(LOW, 0.9)] * 2, [(GOOD, 0.8)] * 2, Verdict.FAIL),
        # A look that was cut short counts for nothing, and against nothing.
        ([(LOW, 0.9), CUT, (LOW, 0.9)], [(GOOD, 0.8)] * 3, Verdict.FAIL),
        ([(LOW, 0.9), CUT], [(GOOD, 0.8)] * 2, Verdict.UNJUDGED),
        # Once is no turn; a control that was undisturbed tells nothing, nor one that is low itself.
        ([(LOW, 0.9)] * 2, [(GOOD, 0.8)], Verdict.UNJUDGED),
        ([(LOW, 0.9)], [(GOOD, 0.8)] * 2, Verdict.UNJUDGED),
        ([(LOW, 0.9)] * 2, [(GOOD, 0.0)] * 2, Verdict.UNJUDGED),
        ([(LOW, 0.9)] * 2, [(LOW, 0.9)] * 2, Verdict.UNJUDGED),
        # Little below, and a little more disturbed than the control: it may be that.
        ([(20.0, 0.9)] * 2, [(GOOD, 0.8)] * 2, Verdict.UNJUDGED),
    ],
)
def test_what_a_stock_program_says_of_a_red_pair(
    red: RedPair, looks: Any, controls: Any, verdict: Verdict | None
) -> None:
    legs = _legs(red, looks, controls)
    found = of_legs(red, legs)
    assert found.verdict is verdict
    assert (found.disturbance is not None) == (verdict is Verdict.UNJUDGED)
    rows = seen_again(legs, [found])
    confirm = [each for each in rows if each.leg.name == "rail0.confirm"]
    if verdict is Verdict.FAIL:
        assert [each.report.verdict for each in confirm] == [Verdict.FAIL]
        assert all(each.report.quantities[0].disturbance is None for each in confirm)


def test_a_red_latency_is_looked_at_by_legs_of_its_own(red: RedPair) -> None:
    """``osu_bw`` says nothing of a latency, whatever it says of the pair."""
    of_latency = replace(red, result=replace(red.result, quantity=Quantity.LATENCY))
    legs = _legs(red, [(LOW, 0.0)])
    assert of_legs(red, legs).verdict is Verdict.FAIL
    assert of_legs(of_latency, legs).verdict is None
    ends = (red.source, red.destination)
    slow = _attempt(ends, LOW, 0.9)
    leg = Outcome(leg=_leg("rail0.confirm_latency"), attempts=(slow,), report=slow.report)
    found = of_legs(of_latency, [*legs, leg])
    assert found.verdict is Verdict.UNJUDGED
    wanted = [role for role, _ in in_job.next_look(of_latency, found, [*legs, leg])]
    assert wanted == [LegRole.CONTROL]
    wanted = [role for role, _ in in_job.next_look(of_latency, of_legs(of_latency, legs), legs)]
    assert wanted == [LegRole.CONFIRM]


def test_a_look_that_went_the_other_way_says_nothing(red: RedPair) -> None:
    back = _attempt((red.destination, red.source), GOOD, 0.0)
    leg = Outcome(leg=_leg("rail0.confirm"), attempts=(back,), report=back.report)
    assert of_legs(red, [leg]).verdict is None


@pytest.fixture
def folder(tmp_path: Path, site: Site, monkeypatch: pytest.MonkeyPatch) -> Path:
    machine = Machine(lambda a, b: healthy(a, b) * (0.3 if b == "vc3" else 1))
    monkeypatch.setattr(launch, "run_script", machine.run_script)
    monkeypatch.setattr(launch, "render_launch", lambda *_: "")
    place = tmp_path / in_job.FOLDER
    place.mkdir()
    save(place, planned(site))
    write_plan(tmp_path, [_leg(leg_name("rail0", role)) for role in LegRole])
    return tmp_path


def test_the_job_measures_once_and_then_asks_for_the_pair_that_is_red(folder: Path) -> None:
    assert in_job.due(folder) == "rail0_confirm"
    source, destination = (folder / "nodes.rail0_confirm").read_text().split()
    assert destination == "vc3"
    launched = sorted((folder / in_job.FOLDER).glob("launch.*"))
    assert in_job.due(folder) == "rail0_confirm"  # nothing was left of it: once more
    assert sorted((folder / in_job.FOLDER).glob("launch.*")) == launched
    assert load(folder / in_job.FOLDER).num_adaptive == 2
    assert source != "vc3"


def test_a_campaign_in_a_job_is_not_resumed_from_outside_meanwhile(
    site: Site, tmp_path: Path
) -> None:
    place = tmp_path / in_job.FOLDER
    place.mkdir()
    save(place, replace(planned(site), rounds=()))
    write_plan(tmp_path, [_leg("there")])
    with only_one(place, "measure"), pytest.raises(CampaignRunsError):
        in_job.due(tmp_path)
