"""A campaign over a machine that does not exist: judged, killed, resumed, and whose fault."""

from __future__ import annotations

import json
import subprocess
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from made_kernel import Rate, lines_of
from made_machine import NODES, Machine, healthy, planned

from fabricproof.cli.measure import pairs_display as shown
from fabricproof.core.errors import ConfigError, InputMissingError, ParseError, UnavailableError
from fabricproof.core.measure import Verdict
from fabricproof.core.records import QuantityRecord
from fabricproof.job.run import LegResult, RunResult
from fabricproof.nodes.slurm import read_states
from fabricproof.pairs import ladder
from fabricproof.pairs.blame.judged import MatrixVerdict
from fabricproof.pairs.campaign import conduct as conducted
from fabricproof.pairs.campaign import confirm as confirmed
from fabricproof.pairs.campaign import job, ledger
from fabricproof.pairs.campaign.conduct import pairs_at_once, planned_rounds, rounds_for
from fabricproof.pairs.campaign.confirm import (
    Confirmation,
    by_check,
    confirm,
    reds_of,
    share_of_leg,
)
from fabricproof.pairs.campaign.further import all_on_one
from fabricproof.pairs.campaign.ledger import (
    CampaignRunsError,
    Readings,
    launches,
    left_over,
    load,
    measured,
    only_one,
    save,
)
from fabricproof.pairs.campaign.matrices import Quantity
from fabricproof.pairs.campaign.nodes import others_of, standing_of
from fabricproof.pairs.campaign.path import pairs_of
from fabricproof.pairs.campaign.verdict import Outcome
from fabricproof.pairs.fabric import leaves_by_name, leaves_of
from fabricproof.pairs.schedule import Order
from fabricproof.site import Site, load_site
from fabricproof.stacks.stack import resolve


def _pairs_measured(folder: Path) -> Counter[tuple[int, int, frozenset[str]]]:
    done = measured(folder, load(folder))
    return Counter(
        (net_path, record.number, frozenset(pair))
        for net_path, record in done.rounds
        for pair in pairs_of(record)
    )


def _result(outcome: Outcome, quantity: Quantity = Quantity.BANDWIDTH) -> Any:
    return next(each for each in outcome.results if each.quantity is quantity)


@pytest.mark.parametrize(("count", "nodes"), [(1, 4), (3, 4), (7, 4), (40, 16)])
def test_rounds_for_so_long_measure_each_pair_before_any_again(count: int, nodes: int) -> None:
    rounds = rounds_for(all_on_one(nodes), 2, count=count, order=Order.LEAFWISE, seed=3)
    assert [each.number for each in rounds] == list(range(count))
    for begin in range(0, count, nodes - 1):
        met = [frozenset(pair) for each in rounds[begin : begin + nodes - 1] for pair in each.pairs]
        assert len(met) == len(set(met))
    if count >= nodes - 1:
        first = {frozenset(pair) for each in rounds[: nodes - 1] for pair in each.pairs}
        assert len(first) == nodes * (nodes - 1) // 2


def test_a_clean_ladder_passes_and_asks_for_no_more_rounds(climb: Any, site: Site) -> None:
    outcome, _ = climb(Machine(healthy), planned(site, net_paths=(("rail0",), ("rail1",))))
    assert outcome.verdict is Verdict.PASS
    assert outcome.rounds == 8
    assert outcome.proven == 32
    assert not outcome.left
    assert _result(outcome).said.blame == ()


def test_a_clean_full_matrix_has_every_pair_once(climb: Any, site: Site) -> None:
    outcome, folder = climb(Machine(healthy), planned(site, is_full=True))
    assert outcome.verdict is Verdict.PASS
    seen = Counter(pair for _, _, pair in _pairs_measured(folder))
    assert set(seen.values()) == {1}
    assert len(seen) == 28


def test_latency_is_judged_and_stated_by_the_leaves_on_the_way(climb: Any, site: Site) -> None:
    names = tuple(f"vc{number}" for number in range(1, 17))
    leaf_of = {name: f"leaf{at // 8}" for at, name in enumerate(names)}

    def delay(one: str, other: str) -> float:
        # A pair of vc7 on its own leaf is slow, and still faster than any between two leaves.
        us = 8.0 if leaf_of[one] == leaf_of[other] else 24.0
        return us * (1.5 if "vc7" in (one, other) else 1.0)

    machine = Machine(healthy)
    machine.delay, machine.free = delay, set(names)
    first = planned_rounds(all_on_one(16), 1, is_full=True, order=Order.LEAFWISE, seed=3)
    campaign = replace(planned(site, is_full=True), nodes=names, rounds=first)
    outcome, _ = climb(machine, replace(campaign, leaf_of=tuple(leaf_of.values())))
    found = _result(outcome, Quantity.LATENCY)
    (blame,) = found.said.blame
    assert (blame.where.node, "15 of 15 pairs" in blame.text) == ("vc7", True)
    stated = [(each.name, each.count, each.least, each.most) for each in found.populations]
    assert stated == [
        ("rail0", 120, 4.0, 18.0),
        ("rail0 on one leaf", 56, 4.0, 6.0),
        ("rail0 between leaves", 64, 12.0, 18.0),
    ]
    own = [each for each in _result(outcome).populations if each.together is None]
    assert len(own) == 1  # a bandwidth is that of the slowest link
    text = shown.campaign_text(outcome, ())
    assert "  rail0 on one leaf: 56 values, least 4, " in text
    rows = shown.campaign_record(outcome, ())["results"][-1]["population"]
    assert [each["distance"] for each in rows] == [None, "on one leaf", "between leaves"]


def test_where_nobody_knows_the_leaves_a_latency_is_stated_whole(climb: Any, site: Site) -> None:
    outcome, _ = climb(Machine(healthy), planned(site))
    assert [each.name for each in _result(outcome, Quantity.LATENCY).populations] == ["rail0"]


def test_a_receive_side_is_blamed_by_node_rail_and_direction(climb: Any, site: Site) -> None:
    class Slow(Machine):
        def follow(self, folder: Path, *_: Any, **__: Any) -> job.Ended:
            net_path = json.loads((folder / "launch.json").read_text())["net_path"]
            self.rate = slow if net_path == 0 else healthy
            return super().follow(folder)

    def slow(source: str, destination: str) -> float:
        return healthy(source, destination) * (0.3 if destination == "vc3" else 1)

    outcome, _ = climb(Slow(healthy), planned(site, net_paths=(("rail0",), ("rail1",))))
    assert outcome.verdict is Verdict.FAIL
    (blame,) = _result(outcome).said.blame
    assert (blame.fact, blame.name, blame.where.direction) == ("rail", "vc3 rail0", "receive")
    assert blame.text == "vc3 rail0 receives at 30 %: 5 of 5 pairs; its other rail is fine"
    # Four rounds of all, then two of the suspect alone, over both rails.
    assert outcome.rounds == 12


@pytest.mark.parametrize("most_more", [0, 4])
def test_rounds_are_added_while_somebody_is_undecided(
    climb: Any, site: Site, monkeypatch: pytest.MonkeyPatch, most_more: int
) -> None:
    names = tuple(f"vc{number}" for number in range(1, 17))
    sends, receives = {"vc2", "vc13", "vc14", "vc15"}, {"vc7", "vc10", "vc11", "vc12"}

    def half_bad(source: str, destination: str) -> float:
        bad = source in sends or destination in receives
        return healthy(source, destination) * (0.4 if bad else 1)

    monkeypatch.setattr(ladder, "MORE_ROUNDS", most_more)
    machine = Machine(half_bad)
    machine.free = set(names)
    first = planned_rounds(all_on_one(16), 1, is_full=False, order=Order.LEAFWISE, seed=3)
    outcome, folder = climb(machine, replace(planned(site), nodes=names, rounds=first))
    found = {(each.where.node, each.where.direction) for each in _result(outcome).said.blame}
    true = {(name, "transmit") for name in sends} | {(name, "receive") for name in receives}
    assert (found == true) == bool(most_more)
    assert outcome.rounds == (8 if most_more else 6)
    assert sum(each.is_adaptive for each in load(folder).rounds) == outcome.rounds - 4
    again, _ = climb(machine, load(folder))
    assert again.rounds == outcome.rounds


def test_a_round_of_which_nothing_can_be_had_is_the_last_one(climb: Any, site: Site) -> None:
    def slow(source: str, destination: str) -> float:
        return healthy(source, destination) * (0.3 if destination == "vc3" else 1)

    class Dies(Machine):
        def follow(self, folder: Path, *_: Any, **__: Any) -> job.Ended:
            ended = super().follow(folder)
            self.free = {"vc3"}
            return ended

    outcome, folder = climb(Dies(slow), planned(site))
    assert outcome.rounds == 4
    assert sum(each.is_adaptive for each in load(folder).rounds) == 1
    assert [each.number for each in outcome.left[0]] == [4]


@pytest.mark.parametrize("is_full", [False, True])
@pytest.mark.parametrize("ended", [0, 1, 3])
def test_killed_and_resumed_no_round_is_measured_twice_and_none_is_lost(
    climb: Any, site: Site, ended: int, is_full: bool
) -> None:
    machine = Machine(healthy)
    machine.dies_after = [ended]
    outcome, folder = climb(machine, planned(site, is_full=is_full))
    assert outcome.verdict is Verdict.PASS
    assert len(launches(folder)) == 2
    seen = _pairs_measured(folder)
    assert set(seen.values()) == {1}
    assert outcome.rounds == (7 if is_full else 4)
    assert any("cut off" in each or "did not end" in each for each in outcome.notes)


def test_a_kernel_that_never_comes_to_a_round_is_left_after_three_tries(
    climb: Any, site: Site
) -> None:
    machine = Machine(healthy)
    machine.dies_after = [0, 0, 0]
    outcome, folder = climb(machine, planned(site, net_paths=(("rail0",), ("rail1",))))
    assert len(launches(folder)) == 4
    # What was measured over the other rail says nothing of this one.
    assert {each.net_paths for each in outcome.results} == {("rail1",)}
    assert outcome.verdict is Verdict.MISSING


def test_a_node_that_dies_leaves_its_pairs_missing_and_the_others_judged(
    climb: Any, site: Site
) -> None:
    machine = Machine(healthy)
    machine.dies_after, machine.lost_on_death = [1], {"vc5"}
    outcome, folder = climb(machine, planned(site, is_full=True))
    assert outcome.verdict is Verdict.MISSING
    assert _result(outcome).judged.verdict is MatrixVerdict.PASS
    (rounds,) = outcome.left.values()
    at = NODES.index("vc5")
    assert all(at in pair for each in rounds for pair in each.pairs)
    assert sum(len(each.pairs) for each in rounds) == 6
    machine.free.add("vc5")
    outcome, _ = climb(machine, load(folder))
    assert outcome.verdict is Verdict.PASS
    assert set(_pairs_measured(folder).values()) == {1}


def test_a_rail_that_is_down_costs_its_node_and_not_the_path(climb: Any, site: Site) -> None:
    class Down(Machine):
        def follow(self, folder: Path, *_: Any, **__: Any) -> job.Ended:
            if "node vc3\n" in (folder / "schedule").read_text():
                (folder / "down").write_text("vc3 rail0 down\n")
                return job._ended(folder, "")
            return super().follow(folder)

    outcome, folder = climb(Down(healthy), planned(site))
    assert len(launches(folder)) == 2
    assert outcome.verdict is Verdict.MISSING
    assert outcome.notes == ("not up: vc3 rail0 down",)
    assert outcome.proven == 12
    (left,) = outcome.left.values()
    assert all(NODES.index("vc3") in pair for each in left for pair in each.pairs)


def test_a_pair_that_hangs_is_left_out_and_named(climb: Any, site: Site) -> None:
    campaign = planned(site)
    one, other = (NODES[at] for at in campaign.rounds[2].pairs[0])
    said = f"fabricproof kernel: stuck {one} with {other} in round 2, uni of 65536 bytes\n"

    class Hangs(Machine):
        def follow(self, folder: Path, *_: Any, **__: Any) -> job.Ended:
            if len(launches(folder.parent)) == 1:
                (folder / "stderr").write_text(f"fabricproof kernel: stuck x after round 2\n{said}")
                self.dies_after = [2]
            return super().follow(folder)

    outcome, folder = climb(Hangs(healthy), campaign)
    assert len(launches(folder)) == 2
    assert outcome.proven == 15
    assert outcome.notes[0] == f"hung in round 2: {' - '.join(sorted((one, other)))}"
    assert outcome.verdict is Verdict.MISSING


@settings(deadline=None)
@given(st.sets(st.integers(0, 6)), st.sampled_from([True, False]))
def test_what_is_left_and_what_is_measured_make_the_plan(ended: set[int], is_full: bool) -> None:
    from fabricproof.pairs.campaign.ledger import Measured  # noqa: PLC0415
    from fabricproof.pairs.campaign.record import read_record  # noqa: PLC0415

    campaign = planned(load_site("vcluster"), is_full=is_full)
    mine = [each for each in campaign.rounds if each.number in ended]
    plan = job.KernelPlan(
        nodes=NODES,
        steps=conducted.steps_of(load_site("vcluster"), campaign, 0),
        rounds=tuple((each.number, each.pairs) for each in mine),
    )
    text = "".join(lines_of(job.render_schedule(plan), healthy, ("rail0",)))
    rounds = tuple((0, each) for each in read_record(text, "r").rounds)
    left = left_over(campaign, Measured(rounds=rounds, lost=(), binaries=()))
    assert [each for each in campaign.rounds if each.number not in ended] == list(left.get(0, ()))


def test_bytes_that_took_another_rail_are_invalid_and_judge_nobody(climb: Any, site: Site) -> None:
    machine = Machine(healthy)
    machine.rails = ("rail1", "rail0")  # the made kernel lets the first of two carry all
    outcome, _ = climb(machine, planned(site))
    assert outcome.verdict is Verdict.INVALID
    assert outcome.results == ()
    assert len(outcome.troubles) == 16
    assert (
        "took another path" in outcome.troubles[0].reason or "rail0" in outcome.troubles[0].reason
    )


def test_a_crossed_node_is_named_with_where_its_own_traffic_comes_in(
    climb: Any, site: Site
) -> None:
    """Of three rails its rail2 is in the switch of rail0, and its rail0 in that of rail1."""
    partners: dict[int, str] = {}

    def crossed(line: dict[str, Any]) -> dict[str, Any]:
        if line["record"] == "value" and "vc3" in (ends := {line["from"], line["to"]}):
            partners[line["round"]] = min(ends - {"vc3"})
        if line["record"] == "counters":
            met = {"vc3": "rail2", partners.get(line["round"]): "rail1"}
            if line["round"] in partners and (rail := met.get(line["node"])):
                before, after = line["before"], line["after"]
                before[rail], after[rail] = dict(before["rail0"]), dict(after["rail0"])
                after["rail0"]["rx_bytes"] = before["rail0"]["rx_bytes"]
                after[rail]["tx_bytes"] = before[rail]["tx_bytes"]
        return line

    machine = Machine(healthy)
    machine.edit = crossed
    outcome, _ = climb(machine, planned(site, is_full=True))
    (found,) = outcome.wrong_paths
    assert found.where.node == "vc3"
    assert "with all 7 partners" in found.text
    assert "comes in by rail2" in found.text
    reasons = [each.reason for each in outcome.troubles]
    assert any(", rail1 " in each for each in reasons)


@pytest.mark.parametrize(
    ("facts", "words"),
    [
        ({"link_layer": "InfiniBand", "uevent": "DRIVER=mlx5_core"}, "measured over InfiniBand"),
        ({"link_layer": "InfiniBand", "uevent": "DRIVER=hfi1"}, "measured over Omni-Path"),
        ({"link_layer": "Ethernet", "parent": "eth0"}, "measured on Soft-RoCE"),
    ],
)
def test_a_rail_of_another_kind_on_one_node_is_invalid_and_the_node_is_named(
    climb: Any, site: Site, facts: dict[str, str], words: str
) -> None:
    def another(line: dict[str, Any]) -> dict[str, Any]:
        if line["record"] == "rank" and line["node"] == "vc3":
            line["facts"] = {"rail0": facts}
        return line

    machine = Machine(healthy)
    machine.edit = another
    outcome, _ = climb(machine, planned(site, is_full=True))
    assert outcome.verdict is Verdict.INVALID
    over = [each for each in outcome.troubles if each.verdict is Verdict.INVALID]
    assert {"vc3" in each.pair and each.reason.startswith(words) for each in over} == {True}
    assert [each.where.node for each in outcome.wrong_paths] == ["vc3"]
    others = outcome.results[0].judged.matrix
    assert others.nodes.index("vc3") not in {*others.source.tolist(), *others.destination.tolist()}


def test_faster_than_physics_is_invalid(climb: Any, site: Site) -> None:
    outcome, _ = climb(Machine(lambda *_: 40.0), planned(site))
    assert outcome.verdict is Verdict.INVALID


def test_all_slow_alike_misses_what_the_link_allows(climb: Any, site: Site) -> None:
    outcome, _ = climb(Machine(lambda a, b: healthy(a, b) / 2), planned(site))
    assert outcome.verdict is Verdict.FAIL
    assert _result(outcome).said.blame == ()


def _with_vc3(share: float) -> Rate:
    return lambda a, b: healthy(a, b) * (share if "vc3" in {a, b} else 1)


def test_a_node_whose_cores_others_took_is_not_blamed(climb: Any, site: Site) -> None:
    machine = Machine(_with_vc3(0.5))
    machine.taken = lambda node: 0.6 if node == "vc3" else 0.0
    outcome, _ = climb(machine, planned(site))
    assert outcome.verdict is Verdict.UNJUDGED
    assert _result(outcome).said.blame == ()
    assert all("vc3" in each.pair and "disturbed" in each.reason for each in outcome.troubles)
    assert _result(outcome).judged.verdict is MatrixVerdict.UNJUDGED


def test_what_good_pairs_bore_as_well_excuses_nobody(climb: Any, site: Site) -> None:
    machine = Machine(_with_vc3(0.5))
    machine.taken = lambda node: 0.4
    outcome, _ = climb(machine, planned(site))
    assert outcome.verdict is Verdict.FAIL
    assert [each.where.node for each in _result(outcome).said.blame] == ["vc3"]


def test_a_rail_that_loses_packets_at_full_bandwidth_is_red_and_named(
    climb: Any, site: Site
) -> None:
    machine = Machine(healthy)
    machine.lost = lambda source, destination: 9 if "vc3" in {source, destination} else 0
    outcome, _ = climb(machine, planned(site))
    assert outcome.verdict is Verdict.FAIL
    (loss,) = outcome.losses
    assert (loss.name, loss.direction, loss.events) == ("vc3 rail0", "both", 72)
    assert (loss.pairs, loss.measured_pairs) == (4, 4)
    assert _result(outcome).judged.verdict is MatrixVerdict.PASS
    kept, looks = confirm(outcome, lambda *_: None)
    assert (kept.verdict, looks) == (Verdict.FAIL, ())
    assert "vc3 sends and receives over rail0" in shown.campaign_text(outcome, ())
    assert shown.campaign_record(outcome, ())["losses"][0]["kind"] == "rail"


@pytest.mark.parametrize("turn", [0.8, 0.4])
def test_what_all_of_a_round_bore_excuses_no_single_pair(
    climb: Any, site: Site, turn: float
) -> None:
    """Nodes that share the cores of one machine: rounds with more and with less of others."""
    machine = Machine(_with_vc3(0.5))
    calls = Counter[str]()

    def taken(node: str) -> float:
        calls[node] += 1
        return turn if calls[node] % 2 else 0.1

    machine.taken = taken
    outcome, _ = climb(machine, planned(site))
    assert [each.where.node for each in _result(outcome).said.blame] == ["vc3"]
    assert all(each.round >= 4 for each in outcome.troubles), "of one pair nobody else tells"


def test_little_that_others_took_excuses_no_large_fault(climb: Any, site: Site) -> None:
    machine = Machine(_with_vc3(0.3))
    machine.taken = lambda node: 0.1 if node == "vc3" else 0.0
    outcome, _ = climb(machine, planned(site))
    assert outcome.verdict is Verdict.FAIL


def test_where_others_had_all_cores_a_slow_path_is_unjudged(climb: Any, site: Site) -> None:
    machine = Machine(lambda a, b: healthy(a, b) / 2)
    machine.taken = lambda node: 0.5
    outcome, _ = climb(machine, planned(site))
    assert outcome.verdict is Verdict.UNJUDGED
    assert len(outcome.troubles) == 64  # four rounds, and four second looks: no better


def test_another_mpi_than_the_stack_is_invalid(
    climb: Any, site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("made_kernel.MPI", "MPICH Version:      5.0.2")
    outcome, _ = climb(Machine(healthy), planned(site))
    assert outcome.verdict is Verdict.INVALID
    assert any("another MPI" in each for each in outcome.notes)


def test_nodes_that_are_out_are_missing_and_those_left_out_are_not(climb: Any, site: Site) -> None:
    campaign = planned(site)
    outcome, _ = climb(Machine(healthy), replace(campaign, out={"vc9": "drain"}))
    assert outcome.verdict is Verdict.MISSING
    outcome, _ = climb(Machine(healthy), replace(campaign, skipped={"vc9": "left out"}))
    assert outcome.verdict is Verdict.PASS


def _leg(verdict: Verdict, leg: str, nodes: tuple[str, ...]) -> LegResult:
    return LegResult(
        verdict=verdict, check="OsuBandwidth", partition="compute", stack="openmpi5", suite="osu",
        program="osu_bw", fabric="eth0", leg=leg, nodes=nodes, reason="",
    )  # fmt: skip


@pytest.mark.parametrize(
    ("legs", "verdict"),
    [
        ({"rail0": Verdict.PASS, "rail0.back": Verdict.FAIL}, Verdict.FAIL),
        ({"rail0": Verdict.PASS, "rail0.back": Verdict.PASS}, Verdict.UNJUDGED),
        ({"rail1": Verdict.FAIL}, Verdict.UNJUDGED),
        ({"rail0": Verdict.UNJUDGED}, Verdict.UNJUDGED),
        # It took another path: it saw nothing of the red one.
        ({"rail0": Verdict.INVALID}, Verdict.UNJUDGED),
        ({}, Verdict.UNJUDGED),
    ],
)
def test_red_is_fail_only_where_a_stock_program_sees_it(
    climb: Any, site: Site, legs: dict[str, Verdict], verdict: Verdict
) -> None:
    def slow(source: str, destination: str) -> float:
        return healthy(source, destination) * (0.3 if destination == "vc3" else 1)

    outcome, _ = climb(Machine(slow), planned(site))
    asked: list[tuple[str, ...]] = []

    def look(arguments: Any, nodes: tuple[str, ...]) -> RunResult:
        asked.append(nodes)
        found = tuple(_leg(each, name, nodes) for name, each in legs.items())
        return RunResult(run_id="r", legs=found)

    seen, looks = confirm(outcome, by_check(outcome, look))
    assert seen.verdict is verdict
    # Nobody is to be drained for what no stock program saw.
    assert ("scontrol" in shown.campaign_text(seen, looks)) == (verdict is Verdict.FAIL)
    assert [each.name for each in looks] == ["vc3"]
    assert len(asked) == 1
    assert "vc3" in asked[0]
    assert asked[0] == tuple(sorted(asked[0]))


@pytest.mark.parametrize(
    ("path", "verdict"),
    [("eth0.100", Verdict.FAIL), ("eth0.101", Verdict.PASS), ("eth0", None), ("eth0.1", None)],
)
def test_an_interface_may_have_a_dot_in_its_name(path: str, verdict: Verdict | None) -> None:
    """A second look at one rail is answered by the legs over that rail, and by no others."""
    nodes = ("vc1", "vc3")
    found = {"eth0.100": Verdict.PASS, "eth0.100.back": Verdict.FAIL, "eth0.101": Verdict.PASS}
    legs = [
        replace(_leg(each, name, nodes), rails=(name.removesuffix(".back"),))
        for name, each in found.items()
    ]
    # What is judged across legs is of no rail, and what all legs lost together names its own.
    legs += [
        replace(_leg(Verdict.FAIL, "scaling", nodes), rails=("eth0.101",), relation="scaling"),
        _leg(Verdict.FAIL, "eth0.100.all_legs", nodes),
    ]
    blank = Confirmation(
        name="vc3", net_path=path, nodes=nodes, check="OsuBandwidth", verdict=None, reason=""
    )
    said, look = confirmed._of_legs(blank, RunResult(run_id="r", legs=tuple(legs)), lambda *_: 0.0)
    assert (said.verdict, look is not None) == (verdict, verdict is not None)


def test_a_node_that_was_seen_in_one_quantity_and_not_in_another_keeps_its_line(
    climb: Any, site: Site
) -> None:
    outcome, _ = climb(Machine(_with_vc3(0.5)), planned(site))
    first = next(each for each in outcome.results if each.said.blame)
    second = replace(first, quantity=Quantity.LATENCY)
    (blame,) = first.said.blame

    def look(red: Any) -> Confirmation:
        verdict = Verdict.FAIL if red.result.quantity is first.quantity else Verdict.PASS
        return Confirmation(
            name=red.name, net_path=red.net_path, nodes=(red.source, red.destination),
            check="osu_bw", verdict=verdict, reason="",
        )  # fmt: skip

    seen, looks = confirm(replace(outcome, results=(first, second)), look)
    assert [each.is_red for each in looks] == [True, False]
    record = shown.campaign_record(seen, looks)
    drains = [each["drain"] for result in record["results"] for each in result["blame"]]
    assert drains == [f"{shown.drain_line(blame)}", None]
    assert "scontrol" in drains[0]


def test_a_pair_is_looked_at_in_the_order_in_which_slurm_has_its_nodes(
    climb: Any, site: Site
) -> None:
    """vc9 comes before vc10: a job over several rails sends from its first node alone."""
    nodes = tuple(f"vc{number}" for number in range(3, 11))
    machine = Machine(lambda a, b: healthy(a, b) / 2)
    machine.free = set(nodes)
    outcome, _ = climb(machine, planned(site, nodes=nodes))
    asked: list[tuple[str, ...]] = []

    def look(arguments: Any, nodes: tuple[str, ...]) -> RunResult:
        asked.append(nodes)
        return RunResult(run_id="r", legs=(_leg(Verdict.FAIL, "rail0", nodes),))

    (red,) = reds_of(outcome)
    said = by_check(outcome, look)(replace(red, source="vc9", destination="vc10"))
    assert asked == [("vc9", "vc10")] == [said.nodes]


@pytest.mark.parametrize(
    ("share", "alone", "verdict"),
    [
        # Four pairs at once carry 1.6 times what one takes: that one has its rate says nothing.
        (0.4, Verdict.PASS, Verdict.FAIL),
        (0.4, Verdict.FAIL, Verdict.FAIL),
        # It did not look.
        (0.4, Verdict.INVALID, Verdict.UNJUDGED),
        # The link carries less than one pair takes, and one pair has its rate: both cannot be.
        (0.2, Verdict.PASS, Verdict.UNJUDGED),
        (0.2, Verdict.FAIL, Verdict.FAIL),
    ],
)
def test_of_a_shared_link_a_pair_alone_tells_only_where_the_link_carries_less(
    climb: Any, site: Site, share: float, alone: Verdict, verdict: Verdict
) -> None:
    outcome = _slow_into_a_leaf(climb, site, share)
    (blame,) = outcome.results[0].said.blame
    assert (blame.name, blame.where.direction) == (
        "leaf1 rail0",
        "receive",
    ) or blame.name == "leaf1"

    def look(arguments: Any, nodes: tuple[str, ...]) -> RunResult:
        return RunResult(run_id="r", legs=(_leg(alone, "rail0", nodes),))

    seen, (found,) = confirm(outcome, by_check(outcome, look))
    assert seen.verdict is verdict
    assert ("pairs at once" in found.reason) == ((share, alone) == (0.4, Verdict.PASS))


def test_a_shared_link_that_was_low_in_one_round_is_not_red_by_the_kernel_alone(
    climb: Any, site: Site
) -> None:
    outcome = _slow_into_a_leaf(climb, site, 0.4)
    (red,) = reds_of(outcome)
    assert red.why_good_alone
    first = outcome.campaign.rounds[0]
    matrix = outcome.results[0].judged.matrix
    one = replace(matrix, round=np.full(len(matrix.source), first.number, dtype=np.int32))
    result = replace(outcome.results[0], judged=replace(outcome.results[0].judged, matrix=one))
    (red,) = reds_of(replace(outcome, results=(result,)))
    assert not red.why_good_alone


def _slow_into_a_leaf(climb: Any, site: Site, share: float) -> Outcome:
    """A full matrix of 16 nodes on four leaves, where what comes to one leaf is slow."""
    names = tuple(f"vc{number}" for number in range(1, 17))
    leaf_of = {name: f"leaf{at // 4}" for at, name in enumerate(names)}

    def slow(source: str, destination: str) -> float:
        into = leaf_of[destination] == "leaf1" != leaf_of[source]
        return healthy(source, destination) * (share if into else 1)

    machine = Machine(slow)
    machine.free = set(names)
    rounds = planned_rounds(leaves_of(16, 4), 1, is_full=True, order=Order.LEAFWISE, seed=3)
    campaign = replace(
        planned(site, is_full=True, nodes=names), leaf_of=tuple(leaf_of.values()), rounds=rounds
    )
    return climb(machine, campaign)[0]


def _disturbed(name: str, nodes: tuple[str, ...], value: float, quantity: str) -> LegResult:
    """Return a leg out of its bounds while others had its cores."""
    bounds = {"lower": 21.2} if quantity.startswith("bandwidth") else {"upper": 40.0}
    one = QuantityRecord.read(
        {
            "quantity_name": quantity,
            "quantity_value": value,
            "quantity_unit": "MB/s",
            "quantity_verdict": "UNJUDGED",
            "quantity_disturbance": "starved_cores",
            **{f"quantity_{key}": bound for key, bound in bounds.items()},
        }
    )
    return replace(_leg(Verdict.UNJUDGED, name, nodes), quantities=(one,))


def _good(name: str, nodes: tuple[str, ...]) -> LegResult:
    one = QuantityRecord.read(
        {"quantity_name": "b", "quantity_value": 23.1, "quantity_verdict": "PASS"}
    )
    return replace(_leg(Verdict.PASS, name, nodes), quantities=(one,))


@pytest.mark.parametrize(
    ("reds", "good", "taken", "verdict", "looks"),
    [
        # Twice low and twice good in turn, as disturbed: others are no reason.
        ([7.0] * 3, True, (0.9, 0.9), Verdict.FAIL, 2),
        # The good pair is low too: it may be the machine.
        ([7.0] * 3, False, (0.9, 0.9), Verdict.UNJUDGED, 3),
        # A little low, and more disturbed than the good pair: it may be that.
        ([20.0] * 3, True, (0.9, 0.8), Verdict.UNJUDGED, 3),
        # Good when nobody disturbs it: a busy machine makes no red.
        ([7.0, 0.0], True, (0.9, 0.9), Verdict.UNJUDGED, 2),
    ],
)
def test_a_good_pair_is_measured_in_turn_where_others_had_the_cores(
    climb: Any, site: Site, reds: list[float], good: bool, taken: Any, verdict: Verdict, looks: int
) -> None:
    machine = Machine(lambda a, b: healthy(a, b) * (0.3 if b == "vc3" else 1))
    outcome, _ = climb(machine, planned(site))
    asked: list[tuple[str, ...]] = []

    def look(arguments: Any, nodes: tuple[str, ...]) -> RunResult:
        asked.append(nodes)
        name = "rail0"
        if "vc3" in nodes:
            value = reds[sum("vc3" in each for each in asked) - 1]
            is_low = value > 0
            found = _disturbed(name, nodes, value, "bandwidth_64KiB") if is_low else None
        else:
            found = None if good else _disturbed(name, nodes, 7.0, "bandwidth_64KiB")
        run_id = "red" if "vc3" in nodes else "good"
        return RunResult(run_id=run_id, legs=(found or _good(name, nodes),))

    share = dict(zip(("red", "good"), taken, strict=True))
    seen, (said,) = confirm(outcome, by_check(outcome, look, lambda run_id, _: share[run_id]))
    assert seen.verdict is verdict
    assert sum("vc3" in each for each in asked) == looks
    assert ("a good pair in turn" in said.reason) is (verdict is Verdict.FAIL)


def test_what_others_cost_a_leg_is_that_of_its_last_attempt() -> None:
    def environment(attempt: int, leg: str, *shares: float) -> dict[str, Any]:
        found = [{"kind": "starved_cores", "share": each, "reason": "x"} for each in shares]
        return {"kind": "environment", "attempt": attempt, "leg": leg, "disturbances": found}

    records = [
        environment(2, "rail0", 0.3, 0.2, 0.1),
        environment(1, "rail0", 0.9),
        environment(1, "rail1", 0.9),
        {"kind": "leg", "leg": "rail0"},
    ]
    assert share_of_leg(records, "rail0") == pytest.approx(0.5), "both ends of a message"
    assert share_of_leg(records, "rail2") == 0


def test_a_second_look_that_cannot_be_had_makes_no_fail(climb: Any, site: Site) -> None:
    outcome, _ = climb(Machine(lambda a, b: healthy(a, b) / 2), planned(site))

    def away(arguments: Any, nodes: tuple[str, ...]) -> RunResult:
        raise UnavailableError("Slurm is away")

    seen, (look,) = confirm(outcome, by_check(outcome, away))
    assert seen.verdict is Verdict.UNJUDGED
    assert look.reason == "Slurm is away"


def test_an_interrupt_during_a_second_look_begins_no_other(climb: Any, site: Site) -> None:
    outcome, _ = climb(Machine(_with_vc3(0.5)), planned(site))
    red = next(each for each in outcome.results if each.said.blame)
    twice = replace(outcome, results=(red, replace(red, quantity=Quantity.LATENCY)))
    asked: list[tuple[str, ...]] = []

    def interrupted(arguments: Any, nodes: tuple[str, ...]) -> RunResult:
        asked.append(nodes)
        raise KeyboardInterrupt

    assert len(reds_of(twice)) == 2
    with pytest.raises(KeyboardInterrupt):
        confirm(twice, by_check(twice, interrupted))
    assert len(asked) == 1


def test_a_clean_campaign_is_not_looked_at_again(climb: Any, site: Site) -> None:
    outcome, _ = climb(Machine(healthy), planned(site))
    assert confirm(outcome, lambda *_: pytest.fail("looked")) == (outcome, ())


def _at_first(factor: float, *names: str, looks: int = 1) -> Callable[[str, str], float]:
    """Return rates of which what the first name sends the second is low the first times."""
    seen: Counter[tuple[str, str]] = Counter()

    def rate(source: str, destination: str) -> float:
        seen[source, destination] += 1
        is_low = (source, destination) == names and seen[source, destination] <= looks
        return healthy(source, destination) * (factor if is_low else 1)

    return rate


@pytest.mark.parametrize("is_full", [False, True])
def test_a_value_that_was_low_once_is_measured_again_and_both_are_told(
    climb: Any, site: Site, is_full: bool
) -> None:
    clean = planned(site, is_full=is_full)
    one, other = (NODES[at] for at in clean.rounds[0].pairs[0])
    outcome, folder = climb(Machine(_at_first(0.8, one, other)), clean)
    assert outcome.verdict is Verdict.PASS
    (added,) = outcome.campaign.rounds[len(clean.rounds) :]
    assert (added.is_again, added.is_adaptive, added.pairs) == (
        True,
        False,
        (tuple(sorted(clean.rounds[0].pairs[0])),),
    )
    (look,) = outcome.second_looks
    said = look.text
    assert said.startswith(f"{one} to {other} over rail0 was low once (")
    assert max(_pairs_measured(folder).values()) == 1  # in a round of its own
    assert said in shown.campaign_text(outcome, ())


def test_a_value_that_is_low_twice_is_not_cleared(climb: Any, site: Site) -> None:
    clean = planned(site, is_full=True)
    one, other = (NODES[at] for at in clean.rounds[0].pairs[0])
    outcome, _ = climb(Machine(_at_first(0.5, one, other, looks=99)), clean)
    assert outcome.verdict is Verdict.UNJUDGED
    assert outcome.second_looks == ()
    assert len(outcome.campaign.rounds) == len(clean.rounds) + 1


def test_where_all_missed_the_link_for_a_moment_all_are_measured_again(
    climb: Any, site: Site
) -> None:
    seen: Counter[tuple[str, str]] = Counter()

    def rate(source: str, destination: str) -> float:
        seen[source, destination] += 1
        return healthy(source, destination) * (0.7 if seen[source, destination] == 1 else 1)

    names = NODES[:4]
    first = planned_rounds(
        all_on_one(4), 1, is_full=False, order=Order.LEAFWISE, seed=3, first_rounds=1
    )
    outcome, _ = climb(Machine(rate), replace(planned(site), nodes=names, rounds=first))
    assert outcome.verdict is Verdict.PASS
    assert len(outcome.second_looks) == 4


def test_where_nodes_share_cores_pairs_take_turns(climb: Any, site: Site) -> None:
    wide = planned(site, net_paths=(("rail0",), ("rail0", "rail1")))
    assert pairs_at_once(site, planned(site), 2) == 1
    assert pairs_at_once(site, planned(site), 16) == 8
    assert pairs_at_once(site, wide, 16) == 4
    real = load_site("infiniband-ndr")
    where = real.partitions[0]
    there = {"partition": where.name, "fabric": where.fabrics[0], "stack": where.stacks[0]}
    assert pairs_at_once(real, replace(planned(site), **there), 2) == 0

    parts = planned_rounds(all_on_one(8), 1, is_full=True, order=Order.LEAFWISE, seed=3, at_once=3)
    assert [len(each.pairs) for each in parts] == [3, 1] * 7
    assert [each.part for each in parts] == [0, 1] * 7
    assert [each.number for each in parts] == list(range(14))
    outcome, folder = climb(
        Machine(_with_vc3(0.3)), replace(planned(site, is_full=True), rounds=parts, at_once=3)
    )
    (blame,) = _result(outcome).said.blame
    assert blame.where.node == "vc3"
    assert load(folder) == outcome.campaign
    assert "pairs take turns, 3 at once" in shown.campaign_text(outcome, ())


@pytest.mark.parametrize("num_nodes", [2, 3, 5, 9])
@pytest.mark.parametrize("first_rounds", [1, 4])
def test_no_node_is_left_out_for_a_bye(num_nodes: int, first_rounds: int) -> None:
    rounds = planned_rounds(
        all_on_one(num_nodes), 1, is_full=False, order=Order.LEAFWISE, seed=3,
        first_rounds=first_rounds,
    )  # fmt: skip
    assert {node for each in rounds for pair in each.pairs for node in pair} == set(
        range(num_nodes)
    )
    for each in rounds:
        named = [node for pair in each.pairs for node in pair]
        assert len(named) == len(set(named))


def test_leaves_of_unlike_size_leave_nobody_out() -> None:
    leaves = leaves_by_name(("a", "b", "c", "d", "e"), dict(zip("abcde", "xxxxy", strict=True)))
    rounds = planned_rounds(leaves, 1, is_full=False, order=Order.LEAFWISE, seed=3, first_rounds=1)
    assert {node for each in rounds for pair in each.pairs for node in pair} == set(range(5))


def test_a_round_of_suspects_in_turns_is_one_round_of_the_ladder(site: Site) -> None:
    campaign = replace(planned(site), at_once=1).with_round(((0, 1), (2, 3)), (0,))
    assert [each.part for each in campaign.rounds[-2:]] == [0, 1]
    assert campaign.num_adaptive == 1
    assert campaign.with_round(((0, 1),), (0,), is_again=True).num_adaptive == 1


def test_text_and_json_name_the_blamed_the_missing_and_what_comes_later(
    climb: Any, site: Site
) -> None:
    machine = Machine(_with_vc3(0.3))
    machine.free = set(NODES) - {"vc8"}
    outcome, _ = climb(machine, replace(planned(site), out={"vc9": "drain"}))
    text = shown.campaign_text(outcome, ())
    assert text.startswith("FAIL: 8 nodes of compute, openmpi5, ")
    assert "node: vc3 runs at 30 %: 5 of 5 pairs" in text or "vc3 rail0 runs at 30 %" in text
    assert "# scontrol update NodeName=vc3" in text
    assert "MISSING: vc9 is drain" in text
    assert "MISSING: over rail0 " in text
    assert "later: fabricproof pairs run --resume test" in text
    there = replace(outcome.campaign, id="/a folder/vc")
    assert there.resume == "fabricproof pairs run --resume '/a folder/vc'"
    record = json.loads(json.dumps(shown.campaign_record(outcome, ())))
    assert record["verdict"] == "FAIL"
    assert [each["where"]["node"] for each in record["results"][0]["blame"]] == ["vc3"]
    assert all("vc8" in pair for each in record["left"] for pair in each["pairs"])
    assert record["out"] == {"vc9": "drain"}


def test_a_record_that_cannot_be_read_is_not_taken_for_none(climb: Any, site: Site) -> None:
    """Its rounds were missing, or measured again, without a word."""
    _, folder = climb(Machine(healthy), planned(site))
    path = folder / "launch.0" / "record.jsonl"
    path.rename(folder / "elsewhere")
    path.mkdir()
    with pytest.raises(InputMissingError, match=r"launch\.0/record\.jsonl: cannot read what was"):
        measured(folder, load(folder))


def test_a_plan_that_is_damaged_or_not_there_is_said(tmp_path: Path, site: Site) -> None:
    with pytest.raises(InputMissingError):
        load(tmp_path)
    save(tmp_path, planned(site))
    assert load(tmp_path) == planned(site)
    text = (tmp_path / "campaign.json").read_text()
    for damaged in (text[:50], "[]", text.replace('"format": 1', '"format": 9'), "{}"):
        (tmp_path / "campaign.json").write_text(damaged)
        with pytest.raises(ParseError):
            load(tmp_path)


@pytest.mark.parametrize(
    "change",
    [
        {"nodes": ["vc1", ["vc2"]]}, {"out": 3}, {"fabric": {}}, {"size": "large"},
        {"at_once": 0.5}, {"seconds": None},
    ],
)  # fmt: skip
def test_a_plan_of_other_types_is_damaged(
    tmp_path: Path, site: Site, change: dict[str, Any]
) -> None:
    save(tmp_path, planned(site))
    plan = json.loads((tmp_path / "campaign.json").read_text())
    (tmp_path / "campaign.json").write_text(json.dumps({**plan, **change}))
    with pytest.raises(ParseError, match="damaged plan of a campaign"):
        load(tmp_path)


def test_a_record_of_another_message_size_is_refused(climb: Any, site: Site) -> None:
    _, folder = climb(Machine(healthy), planned(site))
    with pytest.raises(ParseError, match=r"messages of 4MiB, got .*: 3 values, messages of 64KiB"):
        measured(folder, replace(planned(site), size=4 * 2**20))


def test_a_record_of_other_pairs_is_refused(climb: Any, site: Site) -> None:
    _, folder = climb(Machine(healthy), planned(site))
    other = replace(planned(site), rounds=planned(site).rounds[:2])
    with pytest.raises(ParseError, match="none of this campaign's"):
        measured(folder, other)


def test_each_launch_is_read_for_the_plan_once_however_many_follow(
    climb: Any, site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: Counter[str] = Counter()
    real = ledger.read_launch

    def counted(place: Path) -> Any:
        read[place.name] += 1
        return real(place)

    def slow(source: str, destination: str) -> float:
        return healthy(source, destination) * (0.3 if destination == "vc3" else 1)

    monkeypatch.setattr(ledger, "read_launch", counted)
    machine = Machine(slow)
    machine.dies_after = [1, 1]
    _, folder = climb(machine, planned(site, net_paths=(("rail0",), ("rail1",))))
    assert len(launches(folder)) > 5
    assert read == dict.fromkeys((each.name for each in launches(folder)), 1)


def test_a_launch_that_grew_is_read_again(climb: Any, site: Site) -> None:
    """The job of a program that was killed goes on writing."""
    campaign = planned(site)
    _, folder = climb(Machine(healthy), campaign)
    path = folder / "launch.0" / "record.jsonl"
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    readings = Readings(folder)
    assert 0 < len(readings.measured(campaign).rounds) < 4
    path.write_bytes(whole)
    assert readings.measured(campaign) == measured(folder, campaign)
    assert len(readings.measured(campaign).rounds) == 4


def test_a_measured_round_is_checked_against_its_own_pairs_alone(climb: Any, site: Site) -> None:
    """Against those of all rounds it was quadratic in their number."""
    looked = []

    class Pairs(tuple[Any, ...]):
        def __iter__(self) -> Iterator[Any]:
            looked.append(self)
            return super().__iter__()

    campaign = planned(site, is_full=True)
    _, folder = climb(Machine(healthy), campaign)
    rounds = tuple(replace(each, pairs=Pairs(each.pairs)) for each in campaign.rounds)
    assert len(measured(folder, replace(campaign, rounds=rounds)).rounds) == len(rounds) == 7
    assert len(looked) == 7


def test_two_programs_do_not_go_on_with_one_campaign(tmp_path: Path) -> None:
    with only_one(tmp_path), pytest.raises(CampaignRunsError), only_one(tmp_path):
        pass
    with only_one(tmp_path):
        pass


def test_nodes_of_other_users_jobs_are_told_from_ones_own() -> None:
    said = "0 vc[1-2]\n1000 vc[3-4],vc7\n1000\n"
    assert others_of(said, 0) == {"vc3", "vc4", "vc7"}
    assert others_of(said, 1000) == {"vc1", "vc2"}
    assert others_of("", 0) == frozenset()


def test_sinfo_tells_free_busy_and_out() -> None:
    text = "vc10 idle\nvc2 mix\nvc1 idle\nvc3 drain\nvc4 down*\nvc5 idle*\nvc6 comp\nvc1 idle\n"
    standing = standing_of(read_states(text))
    assert standing.free == ("vc1", "vc10")
    assert standing.busy == ("vc2", "vc6")
    assert standing.ending == ("vc6",)
    assert standing.out == {"vc3": "drain", "vc4": "down*", "vc5": "idle*"}
    with pytest.raises(ParseError):
        read_states("vc1\n")


def test_nodes_with_jobs_that_others_wait_for_or_that_end_are_busy() -> None:
    """Both are marks of sinfo: kept by the backfill scheduler (-), a job of it ends (+)."""
    standing = standing_of(read_states("vc1 mix-\nvc2 alloc+\nvc3 idle\nvc4 alloc-\nvc5 mix*\n"))
    assert (standing.free, standing.busy) == (("vc3",), ("vc1", "vc2", "vc4"))
    assert standing.out == {"vc5": "mix*"}


@pytest.mark.parametrize("launcher", ["srun", "mpirun"])
@pytest.mark.parametrize("stack", ["openmpi5", "mpich5", "intelmpi"])
def test_the_job_starts_one_rank_on_each_node(
    site: Site, tmp_path: Path, launcher: str, stack: str
) -> None:
    spec = site.stack(stack).model_copy(update={"launcher": launcher})
    subject = replace(
        resolve(site, site.partition("compute"), spec), absent="", stale="", launch_fault=""
    )
    if subject.launch is None:
        pytest.skip("no PMI-2 library here")
    campaign = planned(site)
    plan = job.KernelPlan(
        nodes=NODES, steps=conducted.steps_of(site, campaign, 0), rounds=((0, ((0, 1),)),)
    )
    net_path = conducted.path_of(subject, campaign, 0)
    text = job.render_job(subject, net_path, plan, tmp_path)
    lines = [each for each in text.splitlines() if each.strip().startswith("timeout")]
    assert len(lines) == 2
    assert all(("--ntasks=8" if launcher == "srun" else "-np 8") in each for each in lines)
    checked = subprocess.run(["bash", "-n"], input=text, text=True, check=False)
    assert checked.returncode == 0
    assert "rail0" in text
    assert "bash build.sh >build.log" in text
    assert text.endswith("fabricproof_reached=yes\n")


_SQUEUE = """#!/bin/bash
printf '%s\\n' "$*" >>{folder}/asked
cat {folder}/queue 2>/dev/null
exit 0
"""

_SCANCEL = """#!/bin/bash
echo "scancel $*" >>{folder}/asked
"""


def _slurm_with(folder: Path, queue: str) -> dict[str, str]:
    (folder / "queue").write_text(queue)
    for name, text in (("squeue", _SQUEUE), ("scancel", _SCANCEL)):
        (folder / name).write_text(text.format(folder=folder))
        (folder / name).chmod(0o755)
    return {"PATH": f"{folder}:/usr/bin:/bin"}


def test_jobs_that_a_killed_program_left_are_cancelled_and_waited_for(tmp_path: Path) -> None:
    environment = _slurm_with(tmp_path, "17\n18\n")
    campaign = tmp_path / "20261125T094228Z-6f82fc"
    waits: list[float] = []

    def sleep(seconds: float) -> None:
        waits.append(seconds)
        (tmp_path / "queue").write_text("18\n" if len(waits) == 1 else "")

    assert job.end_left(campaign, environment, sleep=sleep) == ("17", "18")
    assert len(waits) == 2
    asked = (tmp_path / "asked").read_text()
    assert "-n pairs-6f82fc" in asked
    assert "scancel --quiet 17\nscancel --quiet 18\n" in asked
    assert job.end_left(campaign, environment) == ()


def test_the_campaigns_of_two_checks_do_not_cancel_each_others_jobs(tmp_path: Path) -> None:
    """Each check's campaign lies in a folder that is called campaign."""
    environment = _slurm_with(tmp_path, "")
    stages = [tmp_path / name for name in ("AllPairs_1", "AllPairs_2")]
    for stage in stages:
        (stage / "campaign").mkdir(parents=True)
        assert job.end_left(stage / "campaign", environment) == ()
    (tmp_path / "moved").symlink_to(stages[0])
    assert job.end_left(tmp_path / "moved" / "campaign", environment) == ()
    asked = (tmp_path / "asked").read_text().splitlines()
    first, second, again = (line.split("-n ")[1].split()[0] for line in asked)
    assert first != second
    assert first == again


def test_a_job_that_does_not_end_is_named(tmp_path: Path) -> None:
    environment = _slurm_with(tmp_path, "17\n")
    with pytest.raises(UnavailableError, match="does not end: 17"):
        job.end_left(tmp_path / "x-6f82fc", environment, sleep=lambda _: None)


def test_a_stack_that_is_not_there_starts_no_job(site: Site, tmp_path: Path) -> None:
    subject = resolve(site, site.partition("compute"), site.stack("openmpi5"))
    plan = job.KernelPlan(nodes=NODES, steps=(), rounds=())
    net_path = conducted.path_of(subject, planned(site), 0)
    with pytest.raises(ConfigError):
        job.render_job(replace(subject, absent="it is gone"), net_path, plan, tmp_path)
    with pytest.raises(ConfigError):
        job.render_job(subject, replace(net_path, refusal="not over this"), plan, tmp_path)


def test_both_ways_at_once_are_a_quantity_of_their_own(climb: Any, site: Site) -> None:
    outcome, _ = climb(Machine(healthy), replace(planned(site), both_ways=True))
    (result,) = [each for each in outcome.results if each.quantity is Quantity.BOTH_WAYS]
    assert result.judged.matrix.kinds[0].quantity == "bandwidth both ways"
    assert not result.judged.matrix.kinds[0].lower_is_better
    assert result.populations[0].count == len(result.judged.matrix)
