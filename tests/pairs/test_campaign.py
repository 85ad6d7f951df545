"""A campaign over a machine that does not exist: judged, killed, resumed, and whose fault."""

from __future__ import annotations

import errno
import json
import subprocess
from collections import Counter
from collections.abc import Callable
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
from fabricproof.nodes.slurm import read_states
from fabricproof.pairs import ladder
from fabricproof.pairs.blame.judge import MatrixVerdict
from fabricproof.pairs.campaign import nodes as room
from fabricproof.pairs.campaign import plan as plans
from fabricproof.pairs.campaign.again import Confirmation, RedPair, confirm, reds_of
from fabricproof.pairs.campaign.kernel import KernelPlan, render_schedule
from fabricproof.pairs.campaign.launch import path_of, render_launch
from fabricproof.pairs.campaign.matrices import Quantity
from fabricproof.pairs.campaign.nodes import others_of, standing_of
from fabricproof.pairs.campaign.plan import (
    CampaignRunsError,
    load,
    only_one,
    pairs_at_once,
    rounds_for,
    save,
    steps_of,
)
from fabricproof.pairs.campaign.record import (
    Measured,
    launches,
    left_over,
    measured,
    read_record,
)
from fabricproof.pairs.campaign.verdict import Outcome
from fabricproof.pairs.schedule import Order
from fabricproof.site import Site, load_site
from fabricproof.stacks.stack import resolve


def _pairs_measured(folder: Path) -> Counter[tuple[int, int, frozenset[str]]]:
    return Counter(
        (net_path, record.number, frozenset(pair))
        for net_path, record in measured(folder, load(folder)).rounds
        for pair in record.pairs
    )


def _result(outcome: Outcome, quantity: Quantity = Quantity.BANDWIDTH) -> Any:
    return next(each for each in outcome.results if each.quantity is quantity)


def _into(node: str, share: float) -> Rate:
    """Return rates of which what comes to a node is a share."""
    return lambda a, b: healthy(a, b) * (share if b == node else 1)


def _with_vc3(share: float) -> Rate:
    return lambda a, b: healthy(a, b) * (share if "vc3" in {a, b} else 1)


def look(verdict: Verdict | None, **more: Any) -> Callable[[RedPair], Confirmation]:
    return lambda red: Confirmation(
        name=red.name, net_path=red.net_path, nodes=(red.source, red.destination),
        check="osu_bw", verdict=verdict, reason="", **more,
    )  # fmt: skip


@pytest.mark.parametrize(("count", "nodes"), [(1, 4), (3, 4), (7, 4), (40, 16)])
def test_rounds_for_so_long_measure_each_pair_before_any_again(
    site: Site, count: int, nodes: int
) -> None:
    campaign = planned(site, nodes=tuple(f"n{number}" for number in range(nodes)))
    rounds = rounds_for(campaign, count, Order.LEAFWISE)
    assert [each.number for each in rounds] == list(range(count))
    for begin in range(0, count, nodes - 1):
        met = [frozenset(pair) for each in rounds[begin : begin + nodes - 1] for pair in each.pairs]
        assert len(met) == len(set(met))
    if count >= nodes - 1:
        first = {frozenset(pair) for each in rounds[: nodes - 1] for pair in each.pairs}
        assert len(first) == nodes * (nodes - 1) // 2


@pytest.mark.parametrize("num_nodes", [2, 3, 5, 9])
@pytest.mark.parametrize("first_rounds", [1, 4])
@pytest.mark.parametrize("leaf_of", ["", "xxxxyzzzz"])
def test_no_node_is_left_out_for_a_bye(
    site: Site, num_nodes: int, first_rounds: int, leaf_of: str
) -> None:
    nodes = tuple("abcdefghi"[:num_nodes])
    places = tuple(leaf_of[:num_nodes])
    rounds = planned(site, nodes=nodes, first_rounds=first_rounds, leaf_of=places).rounds
    met = {node for each in rounds for pair in each.pairs for node in pair}
    assert met == set(range(num_nodes))
    for each in rounds:
        named = [node for pair in each.pairs for node in pair]
        assert len(named) == len(set(named))


def test_a_clean_ladder_passes_and_asks_for_no_more_rounds(climb: Any, site: Site) -> None:
    outcome, _ = climb(Machine(healthy), planned(site, net_paths=(("rail0",), ("rail1",))))
    assert outcome.verdict is Verdict.PASS
    assert (outcome.rounds, outcome.proven, outcome.left) == (8, 32, {})
    assert _result(outcome).said.blame == ()
    assert confirm(outcome, lambda *_: pytest.fail("looked"))[1] == ()


def test_a_clean_full_matrix_has_every_pair_once(climb: Any, site: Site) -> None:
    outcome, folder = climb(Machine(healthy), replace(planned(site, is_full=True), both_ways=True))
    assert outcome.verdict is Verdict.PASS
    seen = Counter(pair for _, _, pair in _pairs_measured(folder))
    assert set(seen.values()) == {1}
    assert len(seen) == 28
    both = _result(outcome, Quantity.BOTH_WAYS).judged.matrix
    assert both.kind.quantity == "bandwidth both ways"


def test_latency_is_judged_and_stated_by_the_leaves_on_the_way(climb: Any, site: Site) -> None:
    names = tuple(f"vc{number}" for number in range(1, 17))
    leaf_of = {name: f"leaf{at // 8}" for at, name in enumerate(names)}

    def delay(one: str, other: str) -> float:
        # A pair of vc7 on its own leaf is slow, and still faster than any between two leaves.
        us = 8.0 if leaf_of[one] == leaf_of[other] else 24.0
        return us * (1.5 if "vc7" in (one, other) else 1.0)

    machine = Machine(healthy)
    machine.delay, machine.free = delay, set(names)
    campaign = planned(site, is_full=True, nodes=names)
    outcome, _ = climb(machine, replace(campaign, leaf_of=tuple(leaf_of.values())))
    found = _result(outcome, Quantity.LATENCY)
    (blame,) = found.said.blame
    assert (blame.where.node, "15 of 15 pairs" in blame.text) == ("vc7", True)
    assert [(each.name, each.count) for each in found.populations] == [
        ("rail0", 120), ("rail0 on one leaf", 56), ("rail0 between leaves", 64),
    ]  # fmt: skip
    rows = shown.campaign_record(outcome, ())["results"][-1]["population"]
    assert [each["distance"] for each in rows] == [None, "on one leaf", "between leaves"]


def test_a_receive_side_is_blamed_by_node_rail_and_direction(climb: Any, site: Site) -> None:
    class Slow(Machine):
        def run_script(self, folder: Path, *_: Any) -> None:
            net_path = json.loads((folder / "launch.json").read_text())["net_path"]
            self.rate = _into("vc3", 0.3) if net_path == 0 else healthy
            super().run_script(folder)

    outcome, _ = climb(Slow(healthy), planned(site, net_paths=(("rail0",), ("rail1",))))
    assert outcome.verdict is Verdict.FAIL
    (blame,) = _result(outcome).said.blame
    assert (blame.fact, blame.name, blame.where.direction) == ("rail", "vc3 rail0", "receive")
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
    campaign = replace(planned(site, nodes=names), seed=0)
    outcome, folder = climb(machine, replace(campaign, rounds=planned(site, nodes=names).rounds))
    found = {(each.where.node, each.where.direction) for each in _result(outcome).said.blame}
    true = {(name, "transmit") for name in sends} | {(name, "receive") for name in receives}
    assert (found == true) == bool(most_more)
    assert outcome.rounds == (8 if most_more else 6)
    assert sum(each.is_adaptive for each in load(folder).rounds) == outcome.rounds - 4
    again, _ = climb(machine, load(folder))
    assert again.rounds == outcome.rounds


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
    assert set(_pairs_measured(folder).values()) == {1}
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
    outcome, folder = climb(machine, planned(site, is_full=True), jobs=2)
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
        def run_script(self, folder: Path, *_: Any) -> None:
            if "node vc3\n" in (folder / "schedule").read_text():
                (folder / "down").write_text("vc3 rail0 down\n")
            else:
                super().run_script(folder)

    outcome, folder = climb(Down(healthy), planned(site))
    assert len(launches(folder)) == 2
    assert outcome.verdict is Verdict.MISSING
    assert "not up: vc3 rail0 down" in outcome.notes[0]
    assert outcome.proven == 12
    (left,) = outcome.left.values()
    assert all(NODES.index("vc3") in pair for each in left for pair in each.pairs)


def test_a_pair_that_hangs_is_left_out_and_named(climb: Any, site: Site) -> None:
    campaign = planned(site)
    one, other = (NODES[at] for at in campaign.rounds[2].pairs[0])
    said = f"fabricproof kernel: stuck {one} with {other} in round 2, uni of 65536 bytes\n"

    class Hangs(Machine):
        def run_script(self, folder: Path, *_: Any) -> None:
            if len(launches(folder.parent)) == 1:
                (folder / "stderr").write_text(f"fabricproof kernel: stuck x after round 2\n{said}")
                self.dies_after = [2]
            super().run_script(folder)

    outcome, folder = climb(Hangs(healthy), campaign)
    assert len(launches(folder)) == 2
    assert outcome.proven == 15
    assert outcome.verdict is Verdict.MISSING
    assert [[campaign.names(pair) for pair in each.pairs] for each in outcome.left[0]] == [
        [frozenset((one, other))]
    ]


@settings(deadline=None)
@given(st.sets(st.integers(0, 6)), st.sampled_from([True, False]))
def test_what_is_left_and_what_is_measured_make_the_plan(ended: set[int], is_full: bool) -> None:
    campaign = planned(load_site("vcluster"), is_full=is_full)
    mine = [each for each in campaign.rounds if each.number in ended]
    plan = KernelPlan(
        nodes=NODES,
        steps=steps_of(load_site("vcluster"), campaign, 0),
        rounds=tuple((each.number, each.pairs) for each in mine),
    )
    text = "".join(lines_of(render_schedule(plan), healthy, ("rail0",)))
    rounds = tuple((0, each) for each in read_record(text, "r").rounds)
    left = left_over(campaign, Measured(rounds=rounds))
    assert [each for each in campaign.rounds if each.number not in ended] == list(left.get(0, ()))


def test_bytes_that_took_another_rail_are_invalid_and_judge_nobody(climb: Any, site: Site) -> None:
    machine = Machine(healthy)
    machine.rails = ("rail1", "rail0")  # the made kernel lets the first of two carry all
    outcome, _ = climb(machine, planned(site))
    assert outcome.verdict is Verdict.INVALID
    assert outcome.results == ()
    assert len(outcome.troubles) == 16


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
    assert "comes in by rail2" in found.text
    assert any(", rail1 " in each.reason for each in outcome.troubles)


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


@pytest.mark.parametrize(
    ("rate", "taken", "verdict", "blamed"),
    [
        (lambda *_: 40.0, None, Verdict.INVALID, []),  # faster than physics
        (lambda a, b: healthy(a, b) / 2, None, Verdict.FAIL, []),  # all miss what the link allows
        # Others had the cores of one node, and that explains what is low.
        (_with_vc3(0.5), lambda node: 0.6 * (node == "vc3"), Verdict.UNJUDGED, []),
        # What good pairs bore as well excuses nobody.
        (_with_vc3(0.5), lambda _: 0.4, Verdict.FAIL, ["vc3"]),
        # The little that others took excuses no large fault.
        (_with_vc3(0.3), lambda node: 0.1 * (node == "vc3"), Verdict.FAIL, ["vc3"]),
    ],
)
def test_what_is_low_is_judged_by_physics_by_its_like_and_by_what_others_took(
    climb: Any, site: Site, rate: Any, taken: Any, verdict: Verdict, blamed: list[str]
) -> None:
    machine = Machine(rate)
    machine.taken = taken
    outcome, _ = climb(machine, planned(site))
    assert outcome.verdict is verdict
    assert [each.where.node for each in _result(outcome).said.blame] == blamed


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


def test_where_others_had_all_cores_a_slow_path_is_unjudged(climb: Any, site: Site) -> None:
    machine = Machine(lambda a, b: healthy(a, b) / 2)
    machine.taken = lambda node: 0.5
    outcome, _ = climb(machine, planned(site))
    assert outcome.verdict is Verdict.UNJUDGED
    assert len(outcome.troubles) == 64  # four rounds, and four second looks: no better


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
    assert shown.campaign_record(outcome, ())["losses"][0]["kind"] == "rail"


def test_another_mpi_than_the_stack_is_invalid(
    climb: Any, site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("made_kernel.MPI", "MPICH Version:      5.0.2")
    outcome, _ = climb(Machine(healthy), planned(site))
    assert outcome.verdict is Verdict.INVALID
    assert outcome.strangers


def test_nodes_that_are_out_are_missing_and_those_left_out_are_not(climb: Any, site: Site) -> None:
    campaign = planned(site)
    outcome, _ = climb(Machine(healthy), replace(campaign, out={"vc9": "drain"}))
    assert outcome.verdict is Verdict.MISSING
    outcome, _ = climb(Machine(healthy), replace(campaign, skipped={"vc9": "left out"}))
    assert outcome.verdict is Verdict.PASS


@pytest.mark.parametrize("seen", [*Verdict, None])
def test_red_is_fail_only_where_a_stock_program_sees_it(
    climb: Any, site: Site, seen: Verdict | None
) -> None:
    outcome, _ = climb(Machine(_into("vc3", 0.3)), planned(site))
    found, looks = confirm(outcome, look(seen))
    assert found.verdict is (Verdict.FAIL if seen is Verdict.FAIL else Verdict.UNJUDGED)
    # Nobody is to be drained for what no stock program saw.
    assert ("scontrol" in shown.campaign_text(found, looks)) == (seen is Verdict.FAIL)
    assert [each.name for each in looks] == ["vc3"]


def test_a_node_that_was_seen_in_one_quantity_and_not_in_another_keeps_its_line(
    climb: Any, site: Site
) -> None:
    outcome, _ = climb(Machine(_with_vc3(0.5)), planned(site))
    first = next(each for each in outcome.results if each.said.blame)
    second = replace(first, quantity=Quantity.LATENCY)

    def one(red: RedPair) -> Confirmation:
        return look(Verdict.FAIL if red.result.quantity is first.quantity else Verdict.PASS)(red)

    seen, looks = confirm(replace(outcome, results=(first, second)), one)
    assert [each.is_red for each in looks] == [True, False]
    record = shown.campaign_record(seen, looks)
    drains = [each["drain"] for result in record["results"] for each in result["blame"]]
    assert drains[1] is None
    assert "scontrol" in drains[0]


def _slow_into_a_leaf(climb: Any, site: Site, share: float) -> Outcome:
    """A full matrix of 16 nodes on four leaves, where what comes to one leaf is slow."""
    names = tuple(f"vc{number}" for number in range(1, 17))
    leaf_of = {name: f"leaf{at // 4}" for at, name in enumerate(names)}

    def slow(source: str, destination: str) -> float:
        into = leaf_of[destination] == "leaf1" != leaf_of[source]
        return healthy(source, destination) * (share if into else 1)

    machine = Machine(slow)
    machine.free = set(names)
    campaign = planned(site, is_full=True, nodes=names, leaf_of=tuple(leaf_of.values()))
    return climb(machine, campaign)[0]


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
    assert (blame.name.split()[0], blame.where.direction) == ("leaf1", "receive")
    seen, (found,) = confirm(outcome, look(alone))
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


def _at_first(factor: float, *names: str, looks: int = 1) -> Callable[[str, str], float]:
    """Return rates of which what the first name sends the second is low the first times.

    Without names all pairs are low the first times.
    """
    seen: Counter[tuple[str, str]] = Counter()

    def rate(source: str, destination: str) -> float:
        seen[source, destination] += 1
        is_low = (source, destination) == (names or (source, destination))
        is_low = is_low and seen[source, destination] <= looks
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
    assert (added.is_again, added.is_adaptive) == (True, False)
    assert added.pairs == (tuple(sorted(clean.rounds[0].pairs[0])),)
    (seen,) = outcome.second_looks
    assert seen.where.nodes == (one, other)
    assert max(_pairs_measured(folder).values()) == 1  # in a round of its own


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
    first = planned(site, nodes=NODES[:4], first_rounds=1)
    outcome, _ = climb(Machine(_at_first(0.7)), first)
    assert outcome.verdict is Verdict.PASS
    assert len(outcome.second_looks) == 4


def test_where_nodes_share_cores_pairs_take_turns(climb: Any, site: Site) -> None:
    wide = planned(site, net_paths=(("rail0",), ("rail0", "rail1")))
    assert [pairs_at_once(site, planned(site), cores) for cores in (2, 16)] == [1, 8]
    assert pairs_at_once(site, wide, 16) == 4
    real = load_site("infiniband-ndr")
    where = real.partitions[0]
    there = {"partition": where.name, "fabric": where.fabrics[0], "stack": where.stacks[0]}
    assert pairs_at_once(real, replace(planned(site), **there), 2) == 0

    campaign = planned(site, is_full=True, at_once=3)
    assert [len(each.pairs) for each in campaign.rounds] == [3, 1] * 7
    assert [each.part for each in campaign.rounds] == [0, 1] * 7
    assert [each.number for each in campaign.rounds] == list(range(14))
    outcome, folder = climb(Machine(_with_vc3(0.3)), campaign)
    (blame,) = _result(outcome).said.blame
    assert blame.where.node == "vc3"
    assert load(folder) == outcome.campaign
    # A round of suspects in turns is one round of the ladder.
    more = replace(planned(site), at_once=1).with_round(((0, 1), (2, 3)), (0,))
    assert [each.part for each in more.rounds[-2:]] == [0, 1]
    assert more.num_adaptive == more.with_round(((0, 1),), (0,), is_again=True).num_adaptive == 1


def test_text_and_json_name_the_blamed_the_missing_and_what_comes_later(
    climb: Any, site: Site
) -> None:
    machine = Machine(_with_vc3(0.3))
    machine.free = set(NODES) - {"vc8"}
    outcome, _ = climb(machine, replace(planned(site), out={"vc9": "drain"}))
    text = shown.campaign_text(outcome, ())
    assert text.startswith("FAIL: 8 nodes of compute, openmpi5, ")
    for words in ("# scontrol update NodeName=vc3", "vc9 is drain", "over rail0 "):
        assert words in text
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
    path.unlink()
    path.mkdir()
    with pytest.raises(InputMissingError, match=r"launch\.0/record\.jsonl: cannot read what was"):
        measured(folder, load(folder))


def test_a_plan_that_is_damaged_or_not_there_is_said(tmp_path: Path, site: Site) -> None:
    with pytest.raises(InputMissingError):
        load(tmp_path)
    save(tmp_path, planned(site))
    assert load(tmp_path) == planned(site)
    text = (tmp_path / "campaign.json").read_text()
    other_types = {"nodes": ["vc1", ["vc2"]], "out": 3, "size": "large", "seconds": None}
    for damaged in (
        text[:50], "[]", text.replace('"format": 1', '"format": 9'), "{}",
        *(json.dumps({**json.loads(text), name: value}) for name, value in other_types.items()),
    ):  # fmt: skip
        (tmp_path / "campaign.json").write_text(damaged)
        with pytest.raises(ParseError):
            load(tmp_path)


def test_a_record_of_another_plan_is_refused(climb: Any, site: Site) -> None:
    _, folder = climb(Machine(healthy), planned(site))
    for other in (
        replace(planned(site), size=4 * 2**20),
        replace(planned(site), rounds=planned(site).rounds[:2]),
    ):
        with pytest.raises(ParseError, match="none of this campaign's"):
            measured(folder, other)


def test_a_launch_that_grew_is_read_again(climb: Any, site: Site) -> None:
    """The job of a program that was killed goes on writing."""
    campaign = planned(site)
    _, folder = climb(Machine(healthy), campaign)
    path = folder / "launch.0" / "record.jsonl"
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    assert 0 < len(measured(folder, campaign).rounds) < 4
    path.write_bytes(whole)
    assert len(measured(folder, campaign).rounds) == 4


def test_two_programs_do_not_go_on_with_one_campaign(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with only_one(tmp_path, "run"):
        with pytest.raises(CampaignRunsError), only_one(tmp_path, "run"):
            pass
        with only_one(tmp_path, "measure"):
            pass

    def refuse(*_: object) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(plans.fcntl, "flock", refuse)
    with only_one(tmp_path, "run"):
        pass


def test_nodes_of_other_users_jobs_are_told_from_ones_own() -> None:
    said = "0 vc[1-2]\n1000 vc[3-4],vc7\n1000\n"
    assert others_of(said, 0) == {"vc3", "vc4", "vc7"}
    assert others_of(said, 1000) == {"vc1", "vc2"}
    assert others_of("", 0) == frozenset()


def test_sinfo_tells_free_busy_and_out() -> None:
    """Marks of sinfo: kept by the backfill scheduler (-), a job of it ends (+)."""
    text = "vc10 idle\nvc2 mix\nvc1 idle\nvc3 drain\nvc4 down*\nvc5 idle*\nvc6 comp\nvc1 idle\n"
    standing = standing_of(read_states(text))
    assert standing.free == ("vc1", "vc10")
    assert standing.busy == ("vc2", "vc6")
    assert standing.ending == ("vc6",)
    assert standing.out == {"vc3": "drain", "vc4": "down*", "vc5": "idle*"}
    standing = standing_of(read_states("vc1 mix-\nvc2 alloc+\nvc3 idle\nvc4 alloc-\nvc5 mix*\n"))
    assert (standing.free, standing.busy) == (("vc3",), ("vc1", "vc2", "vc4"))
    with pytest.raises(ParseError):
        read_states("vc1\n")


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
    plan = KernelPlan(nodes=NODES, steps=steps_of(site, campaign, 0), rounds=((0, ((0, 1),)),))
    text = render_launch(subject, path_of(subject, campaign, 0), plan, tmp_path)
    lines = [each for each in text.splitlines() if each.strip().startswith("timeout")]
    assert len(lines) == 2
    assert all(("--ntasks=8" if launcher == "srun" else "-np 8") in each for each in lines)
    checked = subprocess.run(["bash", "-n"], input=text, text=True, check=False)
    assert checked.returncode == 0
    assert "bash build.sh >build.log" in text


def test_a_stack_that_is_not_there_starts_nothing(site: Site, tmp_path: Path) -> None:
    subject = resolve(site, site.partition("compute"), site.stack("openmpi5"))
    plan = KernelPlan(nodes=NODES, steps=(), rounds=())
    net_path = path_of(subject, planned(site), 0)
    with pytest.raises(ConfigError):
        render_launch(replace(subject, absent="it is gone"), net_path, plan, tmp_path)
    with pytest.raises(ConfigError):
        render_launch(subject, replace(net_path, refusal="not over this"), plan, tmp_path)


@pytest.mark.parametrize(
    ("queues", "found"), [(["18"], False), (["17 18", "17 18", "18"], True), (["17"] * 99, None)]
)
def test_the_job_that_a_killed_program_left_is_cancelled_and_waited_for(
    monkeypatch: pytest.MonkeyPatch, queues: list[str], found: bool | None
) -> None:
    cancelled: list[str] = []

    def ask(command: list[str], _: Any) -> str:
        if command[0] == "scancel":
            cancelled.append(command[-1])
            return ""
        return queues.pop(0)

    monkeypatch.setattr(room, "ask", ask)
    monkeypatch.setattr(room.time, "sleep", lambda _: None)
    if found is None:
        with pytest.raises(UnavailableError, match="does not end: 17"):
            room.end_job("17", {})
    else:
        assert room.end_job("17", {}) is found
        assert cancelled == ["17"] * found
    assert not room.end_job("", {})
