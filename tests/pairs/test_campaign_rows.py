"""A campaign as rows of a run: what a path came to, who is blamed, who took no part."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from made_machine import NODES, Machine, healthy, planned

from fabricproof.cli.measure.pairs_display import campaign_record
from fabricproof.core.findings import Finding, FindingKind, findings_of
from fabricproof.core.measure import Verdict
from fabricproof.pairs.campaign.again import Confirmation, RedPair, confirm
from fabricproof.pairs.campaign.kernel import Binary
from fabricproof.pairs.check.rows import rows_of
from fabricproof.rfm.handover import bounds
from fabricproof.site import Site
from fabricproof.traffic.disturbance import DisturbanceKind

RAILS = (("rail0",), ("rail1",))


def test_a_path_over_which_a_node_loses_packets_is_red(climb: Any, site: Site) -> None:
    machine = Machine(healthy)
    machine.lost = lambda source, destination: 9 if source == "vc3" else 0
    outcome, _ = climb(machine, planned(site))
    (row,) = rows_of(outcome, ())
    assert row.report.verdict is Verdict.FAIL
    assert "of what vc3 sends over rail0" in row.report.quantities[0].reason


class SlowOverOne(Machine):
    """vc3's rail0 receives at a part of its rate."""

    share = 0.3

    def run_script(self, folder: Any, *_: Any) -> None:
        is_rail0 = '"net_path": 0' in (folder / "launch.json").read_text()
        share = self.share if is_rail0 else 1
        self.rate = lambda a, b: healthy(a, b) * (share if b == "vc3" else 1)
        super().run_script(folder)


def look(verdict: Verdict | None, **more: Any) -> Callable[[RedPair], Confirmation]:
    return lambda red: Confirmation(
        name=red.name, net_path=red.net_path, nodes=(red.source, red.destination),
        check="osu_bw", verdict=verdict, reason="6.9 MB/s", **more,
    )  # fmt: skip


def test_a_clean_path_is_a_pass_with_bounds_that_reframe_accepts(climb: Any, site: Site) -> None:
    outcome, _ = climb(Machine(healthy), planned(site, net_paths=RAILS))
    rows = rows_of(outcome, ())
    assert [(each.leg.name, each.report.verdict) for each in rows] == [
        ("rail0", Verdict.PASS),
        ("rail1", Verdict.PASS),
    ]
    (judgement,) = rows[0].report.quantities
    assert judgement.name == "bandwidth_64KiB"
    value, low, high, unit = bounds(judgement)
    assert isinstance(value, float)
    assert isinstance(low, float)
    assert isinstance(high, float)
    assert judgement.value is not None
    assert value * (1 + low) <= judgement.value + 1e-9 <= value * (1 + high)
    assert (unit, judgement.reason) == ("MB/s", "lowest of 16 pairs")
    assert rows[0].nodes == NODES
    assert not [each for each in rows[0].report.findings if each.kind is FindingKind.BLAME]


def test_a_row_keeps_the_digest_of_the_kernel_that_measured_it(climb: Any, site: Site) -> None:
    outcome, _ = climb(Machine(healthy), planned(site))
    binary = Binary(mpi="MPICH Version: 5.0.2", build="abi", sha256="0a" * 32)
    (row,) = rows_of(replace(outcome, binaries=(binary,)), ())
    kept = Finding(text=binary.sentence, kind=FindingKind.KERNEL, fact=binary.sha256)
    assert kept in row.report.findings
    assert FindingKind.KERNEL not in {
        each.kind for row in rows_of(outcome, ()) for each in row.report.findings
    }


def test_a_value_that_misses_its_bound_twice_is_no_pass_though_its_like_are_no_better(
    climb: Any, site: Site
) -> None:
    # Healthy pairs are just above the bound, one is just below it: not low by its population.
    machine = Machine(lambda a, b: 21.3 * (0.985 if (a, b) == ("vc1", "vc2") else 1))
    outcome, _ = climb(machine, planned(site, is_full=True))
    (row,) = rows_of(outcome, ())
    (judgement,) = row.report.quantities
    assert outcome.verdict is row.report.verdict is Verdict.UNJUDGED
    assert judgement.value == pytest.approx(21.3 * 0.985)
    assert "1 values miss" not in judgement.reason
    assert "2 values miss the reference, at the second look too" in judgement.reason
    assert judgement.is_open
    value, low, _, _ = bounds(judgement)
    assert judgement.value < value * (1 + low)  # type: ignore[operator]


def test_a_confirmed_fault_is_fail_on_its_own_rail_alone_and_names_the_node(
    climb: Any, site: Site
) -> None:
    outcome, looks = confirm(
        climb(SlowOverOne(healthy), planned(site, net_paths=RAILS))[0], look(Verdict.FAIL)
    )
    red, green = rows_of(outcome, looks)
    assert (red.report.verdict, green.report.verdict) == (Verdict.FAIL, Verdict.PASS)
    (judgement,) = red.report.quantities
    assert judgement.reason.startswith("vc3 rail0 receives at 30 %: ")
    (blame,) = (each for each in red.report.findings if each.kind is FindingKind.BLAME)
    assert (blame.where.node, blame.where.rail) == ("vc3", "rail0")
    assert blame.text == judgement.reason
    value, low, _, _ = bounds(judgement)
    assert judgement.value < value * (1 + low)  # type: ignore[operator]


BEHIND = ("vc5", "vc6")


@pytest.mark.parametrize(
    ("kind", "nodes", "is_slow"),
    [
        ("pair", ("vc2", "vc5"), lambda one, other: {one, other} == {"vc2", "vc5"}),
        ("uplink", BEHIND, lambda one, other: one not in BEHIND and other in BEHIND),
    ],
)
def test_a_blame_of_no_one_node_says_which_nodes_it_concerns(
    kind: str, nodes: tuple[str, ...], is_slow: Any, climb: Any, site: Site
) -> None:
    machine = Machine(lambda one, other: 21.3 * (0.3 if is_slow(one, other) else 1))
    leaf_of = tuple(f"leaf{number // 2}" for number, _ in enumerate(NODES))
    campaign = replace(planned(site, is_full=True), leaf_of=leaf_of)
    outcome, looks = confirm(climb(machine, campaign)[0], look(Verdict.FAIL))
    (row,) = rows_of(outcome, looks)
    found = [each for each in row.report.findings if each.kind is FindingKind.BLAME]
    assert [(each.where.node, each.fact, each.where.nodes) for each in found] == [("", kind, nodes)]
    record = {"findings": [each.record() for each in found]}
    assert findings_of(record) == tuple(found)


@pytest.mark.parametrize(
    ("verdict", "disturbance"),
    [(Verdict.PASS, None), (None, None), (Verdict.UNJUDGED, DisturbanceKind.STARVED_CORES)],
)
def test_red_that_no_stock_program_saw_is_unjudged_with_what_it_said(
    climb: Any, site: Site, verdict: Verdict | None, disturbance: str | None
) -> None:
    outcome, looks = confirm(
        climb(SlowOverOne(healthy), planned(site, net_paths=RAILS))[0],
        look(verdict, disturbance=disturbance),
    )
    red, green = rows_of(outcome, looks)
    assert (red.report.verdict, green.report.verdict) == (Verdict.UNJUDGED, Verdict.PASS)
    (judgement,) = red.report.quantities
    assert "vc3 rail0 receives at 30 %" in judgement.reason
    assert "osu_bw on vc" in judgement.reason
    assert (judgement.disturbance, judgement.is_open) == (disturbance, True)
    assert not [each for each in red.report.findings if each.kind is FindingKind.BLAME]


def test_nodes_that_are_out_are_missing_and_those_left_out_skipped(climb: Any, site: Site) -> None:
    campaign = replace(
        planned(site), out={"vc9": "drain"}, skipped={"vc10": "left out by the site"}
    )
    *_, row = rows_of(climb(Machine(healthy), campaign)[0], ())
    assert [(each.name, each.verdict) for each in row.report.quantities] == [
        ("node_vc9", Verdict.MISSING),
        ("node_vc10", Verdict.SKIPPED),
    ]
    assert row.report.verdict is Verdict.MISSING
    alone = replace(campaign, out={})
    *_, row = rows_of(climb(Machine(healthy), alone)[0], ())
    assert row.report.verdict is Verdict.SKIPPED


def test_pairs_that_were_not_measured_are_missing_by_name(climb: Any, site: Site) -> None:
    machine = Machine(healthy)
    machine.free = set(NODES) - {"vc8"}
    (row,) = rows_of(climb(machine, planned(site))[0], ())
    (judgement,) = row.report.quantities
    assert judgement.verdict is Verdict.MISSING
    assert judgement.reason.startswith("4 pairs not measured: ")
    (row,) = rows_of(climb(machine, planned(site))[0], (), "rail0: it was killed")
    said, later = row.report.quantities[0].reason.split("; ")[-2:]
    assert said == "the job said: rail0: it was killed"
    assert later == "later: fabricproof pairs run --resume test"
    machine.free = set()
    (row,) = rows_of(climb(machine, replace(planned(site), id="none"))[0], ())
    assert row.report.verdict is Verdict.MISSING


def test_a_path_that_was_not_taken_is_invalid(climb: Any, site: Site) -> None:
    machine = Machine(healthy)
    machine.rails = ("rail1", "rail0")  # the made kernel lets the first of two carry all
    (row,) = rows_of(climb(machine, planned(site))[0], ())
    assert row.report.verdict is Verdict.INVALID


def test_what_others_disturbed_says_so_and_by_what(climb: Any, site: Site) -> None:
    machine = Machine(lambda a, b: healthy(a, b) / 2)
    machine.taken = lambda node: 0.5
    (row,) = rows_of(climb(machine, planned(site))[0], ())
    (judgement,) = row.report.quantities
    assert judgement.verdict is Verdict.UNJUDGED
    assert judgement.disturbance is DisturbanceKind.STARVED_CORES


LEAVES = tuple(f"leaf{number // 4}" for number in range(len(NODES)))


def two_to_one(over_rail1: Callable[[str, str], float] = lambda *_: 1.0) -> Machine:
    """Return a machine of two leaves whose uplinks give each pair between them half.

    Args:
        over_rail1: what a pair has of that over rail1.
    """

    def rate(source: str, destination: str) -> float:
        between = LEAVES[NODES.index(source)] != LEAVES[NODES.index(destination)]
        return healthy(source, destination) * (0.5 if between else 1)

    class OfTwoLeaves(Machine):
        def run_script(self, folder: Any, *_: Any) -> None:
            is_rail1 = '"net_path": 1' in (folder / "launch.json").read_text()
            part = over_rail1 if is_rail1 else lambda *_: 1.0
            self.rate = lambda a, b: rate(a, b) * part(a, b)
            super().run_script(folder)

    return OfTwoLeaves(rate)


def on_leaves(site: Site, net_paths: Any = RAILS[:1]) -> Any:
    """Return a full matrix in leaf-wise rounds: in each of four all pairs are between leaves."""
    return planned(site, net_paths=net_paths, is_full=True, leaf_of=LEAVES)


def test_where_nobody_knows_the_uplinks_no_path_between_leaves_is_green(
    climb: Any, site: Site
) -> None:
    # Something is low over rail1 besides, which is no reason for rail0 to be good.
    machine = two_to_one(lambda a, b: 0.8 if {a, b} == {"vc1", "vc2"} else 1)
    outcome, _ = climb(machine, on_leaves(site, net_paths=RAILS))
    for row in rows_of(outcome, ()):
        assert row.report.verdict is Verdict.UNJUDGED
        assert "pairs between leaves have" in row.report.quantities[0].reason


@pytest.mark.parametrize("is_full", [False, True])
def test_two_nodes_are_one_pair_that_is_judged(climb: Any, site: Site, is_full: bool) -> None:
    campaign = planned(site, is_full=is_full, nodes=NODES[:2], net_paths=RAILS)
    outcome, _ = climb(Machine(healthy), campaign)
    assert outcome.rounds == 2  # one over each rail
    rows = rows_of(outcome, ())
    assert [each.report.verdict for each in rows] == [Verdict.PASS, Verdict.PASS]
    told = [each.text for each in rows[0].report.findings]
    assert "2 nodes: vc1, vc2; one pair, of which neither end can be blamed" in told


class OneRailOfThePair(Machine):
    """What a pair has over rail0 is a part of its rate, both ways or from vc2 alone."""

    slow = ("vc1", "vc2")

    def run_script(self, folder: Any, *_: Any) -> None:
        is_rail0 = '"net_path": 0' in (folder / "launch.json").read_text()
        self.rate = lambda a, b: healthy(a, b) * (0.3 if is_rail0 and a in self.slow else 1)
        super().run_script(folder)


@pytest.mark.parametrize("slow", [("vc1", "vc2"), ("vc2",)])
@pytest.mark.parametrize("is_full", [False, True])
def test_two_nodes_of_which_a_rail_is_slow_at_both_looks_are_red_and_nobody_is_blamed(
    climb: Any, site: Site, slow: tuple[str, ...], is_full: bool
) -> None:
    machine = OneRailOfThePair(healthy)
    machine.slow = slow
    campaign = planned(site, is_full=is_full, nodes=NODES[:2], net_paths=RAILS)
    outcome, looks = confirm(climb(machine, campaign)[0], look(Verdict.FAIL))
    assert [(each.net_path, each.nodes[0] in slow) for each in looks] == [("rail0", True)]
    red, green = rows_of(outcome, looks)
    assert (red.report.verdict, green.report.verdict) == (Verdict.FAIL, Verdict.PASS)
    assert "whose fault it is, 2 nodes do not tell" in red.report.quantities[0].reason
    assert not [each for each in red.report.findings if each.kind is FindingKind.BLAME]


def test_two_nodes_that_were_slow_once_are_good_at_the_second_look(climb: Any, site: Site) -> None:
    class Once(Machine):
        def run_script(self, folder: Any, *_: Any) -> None:
            share = 0.3 if folder.name == "launch.0" else 1
            self.rate = lambda a, b: healthy(a, b) * share
            super().run_script(folder)

    outcome, _ = climb(Once(healthy), planned(site, nodes=NODES[:2]))
    (row,) = rows_of(outcome, ())
    assert row.report.verdict is Verdict.PASS
    assert len([each for each in outcome.second_looks if "was low once" in each.text]) == 2


@pytest.mark.parametrize("is_full", [False, True])
def test_three_nodes_that_are_slow_at_both_looks_miss_the_reference(
    climb: Any, site: Site, is_full: bool
) -> None:
    machine = Machine(lambda a, b: healthy(a, b) / 2)
    outcome, looks = confirm(
        climb(machine, planned(site, is_full=is_full, nodes=NODES[:3]))[0], look(Verdict.FAIL)
    )
    (row,) = rows_of(outcome, looks)
    assert row.report.verdict is Verdict.FAIL
    assert "3 nodes do not tell" in row.report.quantities[0].reason


@pytest.mark.parametrize(
    ("counter", "rounds", "verdict"),
    [
        ("link_error_recovery", {0}, Verdict.PASS),
        ("link_error_recovery", {0, 1}, Verdict.UNJUDGED),
        ("aer_nonfatal", {1, 2}, Verdict.UNJUDGED),
    ],
)
def test_an_error_that_rose_in_two_rounds_is_not_cleared_by_a_good_second_look(
    counter: str, rounds: set[int], verdict: Verdict, climb: Any, site: Site
) -> None:
    def edit(line: dict[str, Any]) -> dict[str, Any]:
        if line["record"] == "counters":
            rose = line["node"] == "vc1" and line["round"] in rounds
            line["before"].setdefault("rail0", {})[counter] = 4
            line["after"].setdefault("rail0", {})[counter] = 4 + rose
        return line

    machine = Machine(healthy)
    machine.edit = edit
    outcome, _ = climb(machine, planned(site))
    assert len(outcome.second_looks) == len(rounds) * (verdict is Verdict.PASS)
    (row,) = rows_of(outcome, ())
    assert outcome.verdict is row.report.verdict is verdict
    told = json.loads(json.dumps(campaign_record(outcome, ())))["troubles"]
    assert all(each["rose"] == [["vc1", "rail0", counter]] for each in told)
    if verdict is Verdict.UNJUDGED:
        assert told
        assert f"{counter} of rail0 on vc1 rose by 1" in row.report.quantities[0].reason


def test_whom_the_stock_program_cleared_is_blamed_no_longer(climb: Any, site: Site) -> None:
    machine = Machine(lambda a, b: healthy(a, b) * (0.5 if b in {"vc1", "vc4"} else 1))
    found, _ = climb(machine, planned(site, is_full=True))
    assert {each.where.node for each in found.results[0].said.blame} == {"vc1", "vc4"}

    def seen(red: RedPair) -> Confirmation:
        verdict = Verdict.PASS if red.blamed == "vc1" else Verdict.FAIL
        return look(verdict)(red)

    outcome, looks = confirm(found, seen)
    assert [each.where.node for each in outcome.results[0].said.blame] == ["vc4"]
    told = outcome.results[0].said.undecided[0]
    assert "vc1 rail0 receives at 5" in told.text
    assert "osu_bw did not see it" in told.text
    (row,) = rows_of(outcome, looks)
    assert row.report.verdict is Verdict.FAIL
    blamed = [each.where.node for each in row.report.findings if each.kind is FindingKind.BLAME]
    assert blamed == ["vc4"]


def test_a_row_says_which_node_takes_another_path_and_not_one_pair_of_it(
    climb: Any, site: Site
) -> None:
    def edit(line: dict[str, Any]) -> dict[str, Any]:
        if line["record"] == "counters" and line["node"] == "vc3":
            line["after"]["rail0"]["tx_bytes"] = line["before"]["rail0"]["tx_bytes"]
        return line

    machine = Machine(healthy)
    machine.edit = edit
    (row,) = rows_of(climb(machine, planned(site, is_full=True))[0], ())
    assert row.report.verdict is Verdict.INVALID
    assert row.report.quantities[0].reason.startswith("vc3: traffic over rail0 takes another path")
