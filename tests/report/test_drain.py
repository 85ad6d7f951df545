"""A node is blamed by evidence or not at all; nothing is executed, nothing breaks out of a line."""

from __future__ import annotations

import shlex
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from report_data import RUN, leg, quantity, reds, report, typed

from fabricproof.core.findings import Finding, FindingKind, Where
from fabricproof.core.measure import Verdict
from fabricproof.job.leg import ADMISSION_CHECK, CAMPAIGN_SUITE
from fabricproof.report.text.drain import REASON_LENGTH, Blamed, advise, render_drain, safe


def blamed(*arguments: Any) -> list[str]:
    return [each.node for each in advise(*arguments).blamed]


def test_red_with_two_partners_that_are_good_with_others_blames_a_node() -> None:
    data = reds([("n1", "n2"), ("n1", "n3")], [("n2", "n3")])
    (found,) = advise(data).blamed
    assert found.node == "n1"
    assert found.reason == "rail1 bandwidth_4MiB 48 % below 48.5 MB/s (red 2 times, 2 partners)"
    assert "n2 is good with n3" in found.evidence
    assert advise(data).unclear == ()


@pytest.mark.parametrize("verdict", [Verdict.FAIL, Verdict.UNJUDGED])
def test_whom_rounds_over_all_nodes_blame_is_blamed_where_that_is_confirmed(
    verdict: Verdict,
) -> None:
    said = "n3 rail1 receives at 30 %: 3 of 3 pairs; its other rail is fine"
    row = replace(
        leg(verdict, nodes=("n1", "n2", "n3", "n4")),
        suite=CAMPAIGN_SUITE,
        findings=(
            Finding(text=said, kind=FindingKind.BLAME, where=Where(node="n3", rail="rail1")),
        ),
    )
    data = report(row)
    assert blamed(data) == (["n3"] if verdict is Verdict.FAIL else [])
    assert advise(data).unclear == ()
    for line in (each.line for each in advise(data).blamed):
        assert line.startswith("scontrol update NodeName=n3 State=DRAIN")
        assert "n3 rail1 receives at 30 %: 3 of 3 pairs" in line


def test_red_with_one_partner_blames_nobody_and_says_what_would_tell() -> None:
    data = reds([("n1", "n2")], [("n2", "n3")])
    assert blamed(data) == []
    (said,) = advise(data).unclear
    assert "rail1 n1 - n2: n2 is good with n3, but seen together only" in said
    assert "FABRICPROOF_NODES=n1,n3 fabricproof run --site here -n OsuBandwidth" in said


def test_everybody_red_with_everybody_blames_nobody() -> None:
    data = reds([("n1", "n2"), ("n1", "n3"), ("n2", "n3")], [])
    assert blamed(data) == []
    assert len(advise(data).unclear) == 3


def test_a_node_that_is_good_with_anybody_is_not_blamed() -> None:
    data = reds([("n1", "n2"), ("n1", "n3")], [("n2", "n3"), ("n1", "n4")])
    assert blamed(data) == []
    assert "the way between them" in advise(data).unclear[0]


def test_unlike_rails_stacks_and_checks_are_no_two_partners() -> None:
    for other in ({"rails": ["rail0"]}, {"stack": "mpich5"}, {"check": "ImbPingPong"}):
        data = report(
            leg(Verdict.FAIL, nodes=("n1", "n2")),
            leg(Verdict.FAIL, nodes=("n1", "n3"), **other),
            leg(nodes=("n2", "n3")),
        )
        assert blamed(data) == []


@pytest.mark.parametrize("verdict", [Verdict.INVALID, Verdict.MISSING, Verdict.UNJUDGED])
def test_what_was_not_measured_is_no_evidence(verdict: Verdict) -> None:
    data = report(
        leg(verdict, nodes=("n1", "n2")),
        leg(verdict, nodes=("n1", "n3")),
        leg(nodes=("n2", "n3")),
    )
    assert blamed(data) == []


def look(nodes: list[str], verdict: str) -> dict[str, Any]:
    return {"nodes": nodes, "verdict": verdict, "run_id": "later", "reason": "", "outcome": ""}


def test_good_when_looked_at_again_blames_nobody() -> None:
    data = reds([("n1", "n2")], [("n1", "n2")])
    assert blamed(data) == []
    assert "rail1 n1 - n2: good when looked at again on the same nodes" in advise(data).unclear[0]


def test_the_looks_of_a_night_are_evidence() -> None:
    data = reds([("n1", "n2")], [])
    confirmation = {
        "kind": "confirmation",
        "check": "OsuBandwidth",
        "stack": "openmpi5",
        "leg": "rail1",
        "rails": ["rail1"],
        "looks": [look(["n1", "n3"], "FAIL"), look(["n2", "n4"], "PASS")],
    }
    assert blamed(data) == []
    assert blamed(data, [confirmation]) == ["n1"]
    unseen = {**confirmation, "looks": [look(["n1", "n3"], "MISSING"), look(["n2", "n4"], "PASS")]}
    assert blamed(data, [unseen]) == []


def links(*verdicts: str) -> Any:
    rows = tuple(
        quantity(each, name=f"n{number}.mtu", reason=f"rail1 on n{number} has another MTU")
        for number, each in enumerate(verdicts, start=1)
    )
    return leg(Verdict.FAIL, suite="preflight", program="links", quantities=rows)


def test_its_own_link_blames_a_node_unless_most_are_so() -> None:
    assert blamed(report(links("FAIL", "PASS", "PASS"))) == ["n1"]
    assert blamed(report(links("FAIL", "FAIL", "PASS"))) == []
    assert blamed(report(links("FAIL", "UNJUDGED", "UNJUDGED"))) == []


def test_a_benchmark_that_names_a_bad_link_blames_its_node() -> None:
    told = ("preflight: rail1 on n1 runs at 100 of 200 Mb/s",)
    data = report(leg(Verdict.FAIL, findings=typed(*told)))
    (found,) = advise(data).blamed
    assert (found.node, found.reason) == ("n1", "rail1 on n1 runs at 100 of 200 Mb/s")
    both = (*told, "preflight: rail1 on n2 runs at 100 of 200 Mb/s")
    assert blamed(report(leg(Verdict.FAIL, findings=typed(*both)))) == []


def test_a_strange_name_gets_no_line() -> None:
    data = reds([("n1;reboot", "n2"), ("n1;reboot", "n3")], [("n2", "n3")])
    assert blamed(data) == []
    assert "no name of Slurm's" in advise(data).unclear[0]


@settings(deadline=None)
@given(reason=st.text())
def test_no_reason_ends_its_quotes(reason: str) -> None:
    """One shell word for the reason, none of the shell's signs, and it stays short."""
    line = Blamed(node="n1", run_id="r", rails=(), reason=reason, evidence=()).line
    words = shlex.split(line)
    assert words[:4] == ["scontrol", "update", "NodeName=n1", "State=DRAIN"]
    assert len(words) == 5
    assert not set("\"'`$\\!\n\r") & set(words[4].removeprefix("Reason="))
    assert len(safe(reason)) <= REASON_LENGTH


@settings(deadline=None)
@given(words=st.text())
def test_every_line_is_a_comment(words: str) -> None:
    data = report(
        leg(
            Verdict.FAIL,
            findings=typed(f"preflight: rail1 on n1 {words}"),
            reason=words,
        )
    )
    text = render_drain(replace(data, run=RUN))
    assert all(line.startswith("#") for line in text.split("\n")[:-1])
    assert text.splitlines() == text.split("\n")[:-1]


@pytest.mark.parametrize("kind", ["admit", "partner"])
def test_whom_an_admission_finds_at_fault_is_blamed(kind: str) -> None:
    """What it lost is no blame of rounds, and ``fabricproof admit`` drains it all the same."""
    said = "n3 loses what it sends over rail1: 35 of 415925 packets"
    lost = quantity("FAIL", name="lost_per_million_packets", reason=said)
    row = leg(
        Verdict.FAIL, check=ADMISSION_CHECK, suite=CAMPAIGN_SUITE, nodes=("n3",),
        leg=f"{kind}.n3.rail1", quantities=(quantity(), lost),
    )  # fmt: skip
    (found,) = advise(report(row)).blamed
    assert (found.node, found.rails, found.reason) == ("n3", ("rail1",), said)
    assert blamed(report(replace(row, verdict=Verdict.PASS, quantities=(quantity(),)))) == []
    assert blamed(report(replace(row, check="AllPairsRound"))) == []
