"""What a leg says of the links that it used, and the check that judges nothing else."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from fabricproof.core.findings import as_notes, texts_of
from fabricproof.core.measure import Verdict
from fabricproof.job.evidence.leg_folder import RankRecord
from fabricproof.job.links import (
    PROGRAM,
    SUITE,
    against_links,
    judge_looks,
    read_looks,
    rows_of_links,
)
from fabricproof.job.outcome import Attempt, Outcome
from fabricproof.nodes.preflight import Preflight
from fabricproof.site.schema import FabricSpec
from fabricproof.verdict.value import Judgement, Report
from leg_folders import make_leg

DATA = Path(__file__).resolve().parents[1] / "data" / "inventory"

SPEC = FabricSpec.model_validate(
    {
        "name": "eth0",
        "link": "200MbE",
        "protocol": "tcp",
        "mtu": 1500,
        "shaper": {"burst_bytes": 3200},
        "rails": [{"interface": "rail0"}, {"interface": "rail1"}],
    }
)


def _look(folder: Path, node: str, old: str = "", new: str = "") -> None:
    text = (DATA / "virtual-cluster.json").read_text().replace('"name": "vc1"', f'"name": "{node}"')
    text = text.replace(".11/24", f".1{node[-1]}/24")  # addresses of its own
    assert old in text
    (folder / f"{node}.txt").write_text(text.replace(old, new))


def _outcome(verdict: Verdict = Verdict.FAIL, *, rail: str = "rail1") -> Outcome:
    judgement = Judgement(
        name="bandwidth_1MiB", value=1.0, unit="MB/s", message_size=1 << 20, verdict=verdict,
        reason="50% of 24 MB/s",
    )  # fmt: skip
    report = Report(verdict=verdict, quantities=(judgement,), findings=as_notes(["dip"]))
    ranks = tuple(
        RankRecord(rank=number, node=node, cpus="0-1", status=0)
        for number, node in enumerate(("vc1", "vc2"))
    )
    attempt = Attempt(number=1, folder=Path(), status=0, table=None, ranks=ranks, report=report)
    leg = make_leg(name=rail, rails=(rail,))
    return Outcome(leg=leg, attempts=(attempt,), report=report)


def with_preflight(outcome: Outcome, result: Preflight) -> Outcome:
    objections, findings = against_links(outcome, result)
    return outcome.objected(objections, findings)


HALF = ("dev rail1 root refcnt 3 rate 199Mbit", "dev rail1 root refcnt 3 rate 99500Kbit")
WARNING = "preflight: rail1 on vc2 runs at 100 of 200 Mb/s"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    _look(tmp_path, "vc1")
    _look(tmp_path, "vc2", *HALF)
    return tmp_path


def test_red_over_a_bad_link_says_so_first(folder: Path) -> None:
    outcome = _outcome()
    result = judge_looks(SPEC, read_looks(folder, [outcome]))
    told = with_preflight(outcome, result)
    assert texts_of(told.report.findings) == [WARNING, "dip"]
    assert told.report.quantities[0].reason == f"{WARNING}; 50% of 24 MB/s"
    assert told.report.verdict is Verdict.FAIL
    # The counted number is still the attempt's own.
    assert told.counted is told.attempts[0]
    assert told.takes(told.attempts[0].report.quantities[0])


@pytest.mark.parametrize(("unit", "verdict"), [("MB/s", Verdict.FAIL), ("us", Verdict.UNJUDGED)])
def test_no_load_beside_it_excuses_the_bandwidth_of_a_slow_link(
    folder: Path, unit: str, verdict: Verdict
) -> None:
    before = _outcome(Verdict.UNJUDGED)
    (number,) = before.report.quantities
    excused = replace(number, disturbance="starved_cores", unit=unit)
    outcome = replace(before, report=replace(before.report, quantities=(excused,)))
    told = with_preflight(outcome, judge_looks(SPEC, read_looks(folder, [outcome])))
    assert (told.report.verdict, told.report.quantities[0].verdict) == (verdict, verdict)
    fine = with_preflight(outcome, judge_looks(SPEC, read_looks(folder.parent, [outcome])))
    assert fine.report.verdict is Verdict.UNJUDGED


def test_a_pass_over_a_bad_link_stays_one_and_carries_the_note(folder: Path) -> None:
    outcome = _outcome(Verdict.PASS)
    told = with_preflight(outcome, judge_looks(SPEC, read_looks(folder, [outcome])))
    assert told.report.verdict is Verdict.PASS
    assert texts_of(told.report.findings)[0] == WARNING
    assert told.report.quantities == outcome.report.quantities


def test_a_leg_over_another_rail_or_other_nodes_says_nothing(folder: Path) -> None:
    other = _outcome(rail="rail0")
    result = judge_looks(SPEC, read_looks(folder, [other]))
    assert with_preflight(other, result) == other
    elsewhere = replace(
        _outcome(),
        attempts=tuple(
            replace(each, ranks=(replace(each.ranks[0], node="vc1"),))
            for each in _outcome().attempts
        ),
    )
    assert with_preflight(elsewhere, result) == elsewhere


def test_a_relation_speaks_of_the_nodes_of_its_legs(folder: Path) -> None:
    relation = replace(_outcome(), attempts=(), nodes=("vc1", "vc2"))
    told = with_preflight(relation, judge_looks(SPEC, read_looks(folder, [])))
    assert texts_of(told.report.findings)[0] == WARNING


def test_a_look_that_left_nothing_changes_no_verdict(tmp_path: Path) -> None:
    outcome = _outcome(Verdict.PASS)
    looks = read_looks(tmp_path, [outcome])
    assert looks.machines == {"vc1": None, "vc2": None}
    assert with_preflight(outcome, judge_looks(SPEC, looks)) == outcome


@pytest.mark.parametrize("text", ["", "rubbish\n", "{}"])
def test_an_empty_look_is_no_machine(text: str, tmp_path: Path) -> None:
    (tmp_path / "vc1.txt").write_text(text)
    looks = read_looks(tmp_path, [])
    assert looks.machines == {"vc1": None}
    assert "left nothing" in looks.reasons["vc1"] or "cut off" in looks.reasons["vc1"]


# The check that only looks.


def test_each_rail_is_a_row_with_a_quantity_for_each_node_and_fact(folder: Path) -> None:
    looks = read_looks(folder, [], ["vc1", "vc2"])
    first, second = rows_of_links(["rail0", "rail1"], judge_looks(SPEC, looks), looks, 2)
    assert (first.leg.name, first.leg.suite, first.leg.program) == ("rail0", SUITE, PROGRAM)
    assert first.report.verdict is Verdict.PASS
    assert [each.name for each in first.report.quantities] == [
        *("vc1.state", "vc1.rate", "vc1.mtu"),
        *("vc2.state", "vc2.rate", "vc2.mtu"),
        "fleet",
    ]
    assert [each.name for each in first.report.quantities if each.named] == ["fleet"]
    assert second.report.verdict is Verdict.FAIL
    assert second.nodes == ("vc1", "vc2")
    named = {each.name for each in second.report.quantities if each.named}
    assert named == {"vc2.rate", "fleet"}
    assert all(each.value is not None for each in second.report.quantities)


def test_a_node_that_was_due_and_left_nothing_is_missing(folder: Path) -> None:
    looks = read_looks(folder, [], ["vc1", "vc2", "vc3"])
    (rail,) = rows_of_links(["rail0"], judge_looks(SPEC, looks), looks, 3)
    assert rail.report.verdict is Verdict.MISSING
    assert "vc3.state" in {each.name for each in rail.report.quantities}


def test_fewer_nodes_than_asked_for_are_missing(folder: Path) -> None:
    looks = read_looks(folder, [])
    (rail,) = rows_of_links(["rail0"], judge_looks(SPEC, looks), looks, 4)
    assert rail.report.verdict is Verdict.MISSING
    assert rail.report.quantities[-1].reason == "4 nodes were due, 2 were seen: vc1, vc2"


def test_a_job_that_saw_nothing_at_all_is_missing_and_not_empty(tmp_path: Path) -> None:
    looks = read_looks(tmp_path, [])
    for rail in rows_of_links(["rail0", "rail1"], judge_looks(SPEC, looks), looks, 2):
        assert rail.report.verdict is Verdict.MISSING
