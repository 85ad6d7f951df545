"""Whether a soak rules out a larger bit error rate than the site states."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from made_machine import Machine, healthy, planned

from fabricproof.core.measure import Verdict
from fabricproof.job.evidence.error_rates import ErrorLimit, LimitSource
from fabricproof.pairs.blame.bit_errors import BitErrors, judge_bits
from fabricproof.pairs.blame.losses import SideCarried
from fabricproof.pairs.campaign.ledger import measured
from fabricproof.pairs.campaign.verdict import judge_campaign
from fabricproof.site import Site
from fabricproof.site.schema import ErrorsSpec
from fabricproof.traffic.error_rates import ErrorKind

LIMIT = ErrorLimit(per_million_packets=0.0, source=LimitSource.NO_DAMAGE)
STATED = 1e-12


def side(way: str, kind: ErrorKind, events: int, terabytes: float) -> SideCarried:
    size = int(terabytes * 1e12)
    return SideCarried(
        net_path="rail0", what=kind, events=events, packets=size // 1500, bytes=size,
        direction=way, limit=LIMIT,
    )  # fmt: skip


def node(
    damaged: int = 0, again: int = 0, terabytes: float = 1.0, ways: tuple[str, ...] = ()
) -> tuple[SideCarried, ...]:
    return tuple(
        side(way, kind, events, terabytes)
        for way in ways or ("transmit", "receive")
        for kind, events in ((ErrorKind.DAMAGED, damaged), (ErrorKind.RETRANSMITTED, again))
    )


def judge(**nodes: tuple[SideCarried, ...]) -> BitErrors:
    return judge_bits("rail0", nodes, STATED, 30)


def test_enough_bits_without_damage_rule_a_larger_rate_out() -> None:
    # Nothing among 8e12 bits says below 3.7e-13.
    found = judge(vc1=node(), vc2=node())
    assert (found.verdict, found.minutes_more) == (Verdict.PASS, 0)
    assert found.at_most == pytest.approx(2.9957 / 8e12, rel=1e-3)


def test_too_few_bits_are_unjudged_and_say_how_much_longer_it_takes() -> None:
    found = judge(vc1=node(), vc2=node(terabytes=0.1))
    assert (found.verdict, found.node) == (Verdict.UNJUDGED, "vc2")
    assert found.minutes_more == pytest.approx(30 * (2.9957 / 8e11 / STATED - 1), rel=1e-3)
    assert "minutes more would tell" in found.sentence
    longer = 0.1 * (30 + found.minutes_more) / 30
    assert judge(vc1=node(), vc2=node(terabytes=longer * 1.001)).verdict is Verdict.PASS


def test_one_bad_side_among_many_good_ones_is_red_by_name() -> None:
    good = {f"vc{number}": node() for number in range(1, 100)}
    found = judge(**good, bad=node(damaged=60))
    assert (found.verdict, found.node) == (Verdict.FAIL, "bad")
    assert "60 packets damaged" in found.sentence


def test_what_was_only_sent_again_is_neither_red_nor_ruled_out() -> None:
    assert judge(vc1=node(again=60)).verdict is Verdict.UNJUDGED


def test_as_many_as_are_allowed_are_not_red() -> None:
    assert judge(vc1=node(damaged=8)).verdict is Verdict.UNJUDGED


@pytest.mark.parametrize(
    "sides",
    [(), node(ways=("transmit",)), tuple(each for each in node() if each.what is not
                                         ErrorKind.DAMAGED), node(terabytes=0),
     tuple(each for each in node() if each.what is ErrorKind.DAMAGED)],
)  # fmt: skip
def test_what_nobody_counted_is_no_pass(sides: tuple[SideCarried, ...]) -> None:
    found = judge(vc1=node(), vc2=sides)
    assert (found.verdict, found.node, found.at_most) == (Verdict.UNJUDGED, "vc2", None)
    assert judge().verdict is Verdict.UNJUDGED


@given(st.integers(0, 200), st.integers(0, 200), st.floats(0.01, 100))
def test_more_damage_never_makes_a_verdict_better(
    damaged: int, again: int, terabytes: float
) -> None:
    rank = [Verdict.PASS, Verdict.UNJUDGED, Verdict.FAIL]
    here = judge(vc1=node(damaged, again, terabytes))
    worse = judge(vc1=node(damaged + 1, again, terabytes))
    assert rank.index(here.verdict) <= rank.index(worse.verdict)


def test_a_stated_rate_says_what_may_be_damaged_in_every_leg(site: Site) -> None:
    spec = site.fabric_spec("eth0").model_copy(
        update={"errors": ErrorsSpec(bit_error_rate=1e-12, origin="IEEE 802.3")}
    )
    assert spec.error_limits == {
        "damaged_per_million_packets": pytest.approx(1e-12 * 8 * 1500 * 1e6)
    }
    own = spec.model_copy(
        update={"errors": ErrorsSpec(
            bit_error_rate=1e-12, damaged_per_million_packets=3, origin="x")}
    )  # fmt: skip
    assert own.error_limits == {"damaged_per_million_packets": 3}
    assert site.fabric_spec("eth0").error_limits == {}


def test_only_a_soak_judges_it(climb: Any, site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    stated = site.fabric_spec("eth0").model_copy(
        update={"errors": ErrorsSpec(bit_error_rate=1e-12, origin="IEEE 802.3")}
    )
    monkeypatch.setattr(Site, "fabric_spec", lambda *_: stated)
    campaign = planned(site)
    outcome, folder = climb(Machine(healthy), campaign)
    assert outcome.bit_errors == ()
    soak = judge_campaign(site, replace(campaign, minutes=5), measured(folder, campaign))
    (found,) = soak.bit_errors
    assert (found.verdict, found.rail) == (Verdict.UNJUDGED, "rail0")
    assert soak.verdict is Verdict.UNJUDGED
