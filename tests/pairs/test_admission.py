"""Whether users may have a node back: what rounds with partners say of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from made_machine import NODES, Machine, healthy, planned

from fabricproof.core.measure import Verdict
from fabricproof.job.evidence.error_rates import UNCOUNTED, most_rate
from fabricproof.job.outcome import Outcome as Row
from fabricproof.nodes.inventory.facts import Machine as Seen
from fabricproof.nodes.preflight import FLEET, Preflight, preflight
from fabricproof.pairs.campaign.again import Confirmation, RedPair, confirm
from fabricproof.pairs.campaign.plan import Campaign, PlannedRound
from fabricproof.pairs.check.admission import LEFT, Admission, unlike
from fabricproof.pairs.check.partners import (
    ALL_ALIKE,
    LEAST_PARTNERS,
    PACKETS,
    PARTNERS,
    PASSES,
    admission_rounds,
    choose_partners,
    plan_admission,
    ruled_out_ppm,
)
from fabricproof.rfm.handover import bounds
from fabricproof.site import Site

LEAVES = {f"vc{number}": f"leaf{(number + 1) // 2}" for number in range(1, 9)}
FIVE = ("vc1", "vc2", "vc3", "vc5", "vc7")


def red(look: RedPair) -> Confirmation:
    """See with a stock program what the kernel saw."""
    return Confirmation(
        name=look.name, net_path=look.net_path, nodes=(look.source, look.destination),
        check="OsuBandwidth", verdict=Verdict.FAIL, reason="osu_bw saw it too",
    )  # fmt: skip


def campaign_of(site: Site, *, nodes: tuple[str, ...] = FIVE, admitted: str = "vc1") -> Campaign:
    blank = replace(
        planned(site), nodes=nodes, leaf_of=tuple(LEAVES[each] for each in nodes),
        rounds=(), is_full=True,
    )  # fmt: skip
    return plan_admission(site, blank, [admitted])


def nothing_seen(nodes: Sequence[str]) -> Preflight:
    return Preflight(fabric="eth0", nodes=tuple(nodes))


def rows(
    climb: Callable[..., tuple[Any, Path]],
    site: Site,
    machine: Machine,
    baseline: Any = None,
    **how: Any,
) -> dict[str, Row]:
    outcome, _ = climb(machine, campaign_of(site, **how))
    outcome, _ = confirm(outcome, red)
    admitted = how.get("admitted", "vc1")
    seen = Admission(
        outcome=outcome, admitted=(admitted,), links_of=nothing_seen,
        machines={}, mtu=1500, baseline=baseline,
    )  # fmt: skip
    return {row.leg.name: row for row in seen.rows()}


def counting(lost: Callable[[str, str], int] = lambda *_: 0) -> Machine:
    machine = Machine(healthy)
    machine.lost = lost
    return machine


def test_a_good_node_is_admitted_by_numbers_of_its_partners(climb: Any, site: Site) -> None:
    found = rows(climb, site, counting())
    row = found["admit.vc1.rail0"]
    value, lost = row.report.quantities
    assert value.verdict is Verdict.PASS, value.reason
    assert "of what partners have among themselves" in value.reason
    assert "with 3 partners" in value.reason, "the fourth is on its own leaf"
    assert (lost.name, lost.unit) == ("lost_per_million_packets", "ppm")
    assert {each.report.verdict for name, each in found.items() if name.startswith("partner")} == {
        Verdict.PASS
    }
    assert row.nodes == ("vc1",)
    reference, low, high, unit = bounds(value)
    assert isinstance(reference, float)
    assert isinstance(low, float)
    assert isinstance(high, float)
    assert value.value is not None
    assert reference * (1 + low) <= value.value <= reference * (1 + high)
    assert unit == "MB/s"


@pytest.mark.parametrize("way", ["in", "out"])
def test_a_node_repaired_in_appearance_only_is_refused(climb: Any, site: Site, way: str) -> None:
    machine = counting()
    machine.rate = lambda a, b: healthy(a, b) * (0.5 if (b if way == "in" else a) == "vc1" else 1)
    found = rows(climb, site, machine)
    assert found["admit.vc1.rail0"].report.verdict is Verdict.FAIL
    assert "vc1" in found["admit.vc1.rail0"].report.quantities[0].reason
    assert found["partner.vc3.rail0"].report.verdict is Verdict.PASS


def test_red_that_no_stock_program_saw_is_neither_pass_nor_fail(climb: Any, site: Site) -> None:
    machine = counting()
    machine.rate = lambda a, b: healthy(a, b) * (0.5 if b == "vc1" else 1)
    outcome, _ = climb(machine, campaign_of(site))
    outcome, _ = confirm(outcome, lambda look: replace(red(look), verdict=Verdict.PASS))
    seen = Admission(
        outcome=outcome, admitted=("vc1",), links_of=nothing_seen,
        machines={}, mtu=1500,
    )  # fmt: skip
    assert next(seen.rows()).report.verdict is Verdict.UNJUDGED


@pytest.mark.parametrize("rounds", [0, 2])
def test_where_nothing_was_measured_the_last_words_of_the_job_are_told(
    climb: Any, site: Site, rounds: int
) -> None:
    outcome, _ = climb(counting(), campaign_of(site))
    seen = Admission(
        outcome=replace(outcome, rounds=rounds, results=()), admitted=("vc1",),
        links_of=nothing_seen, machines={}, mtu=1500, job_said="no such site",
    )  # fmt: skip
    first = next(seen.rows()).report.quantities[0]
    assert first.verdict is Verdict.MISSING
    assert ("; the job said: no such site" in first.reason) == (rounds == 0)


def test_a_bad_partner_is_named_and_no_fault_of_the_node(climb: Any, site: Site) -> None:
    machine = counting()
    machine.rate = lambda a, b: healthy(a, b) * (0.4 if "vc5" in {a, b} else 1)
    found = rows(climb, site, machine)
    assert found["partner.vc5.rail0"].report.verdict is Verdict.FAIL
    value = found["admit.vc1.rail0"].report.quantities[0]
    assert value.verdict is Verdict.PASS, value.reason
    assert "with 2 partners" in value.reason


def test_with_one_good_partner_on_another_leaf_a_node_is_not_admitted(
    climb: Any, site: Site
) -> None:
    machine = counting()
    machine.rate = lambda a, b: healthy(a, b) * (0.4 if {"vc5", "vc7"} & {a, b} else 1)
    found = rows(climb, site, machine)
    value = found["admit.vc1.rail0"].report.quantities[0]
    assert value.verdict in {Verdict.MISSING, Verdict.UNJUDGED}, value.reason


def test_a_slow_leaf_is_no_fault_of_its_node_and_does_not_admit_it(climb: Any, site: Site) -> None:
    machine = counting()
    machine.rate = lambda a, b: (
        healthy(a, b) * (0.5 if (LEAVES[a] == "leaf1") != (LEAVES[b] == "leaf1") else 1)
    )
    value = rows(climb, site, machine)["admit.vc1.rail0"].report.quantities[0]
    assert value.verdict is Verdict.UNJUDGED, value.reason


def test_all_partners_as_slow_as_the_node_are_no_proof(climb: Any, site: Site) -> None:
    machine = counting()
    machine.rate = lambda a, b: 0.5 * healthy(a, b)
    value = rows(climb, site, machine)["admit.vc1.rail0"].report.quantities[0]
    assert value.verdict in {Verdict.FAIL, Verdict.UNJUDGED}, value.reason


def test_packets_too_few_to_rule_out_a_loss_admit_nobody(climb: Any, site: Site) -> None:
    # The made machine counts some thousands of packets.
    lost = rows(climb, site, counting())["admit.vc1.rail0"].report.quantities[1]
    assert lost.verdict is Verdict.UNJUDGED
    assert "must be ruled out" in lost.reason
    assert lost.value is not None
    assert lost.upper is not None
    assert lost.value > lost.upper


def shown_as(node: str, interface: str, before: dict[str, int], after: dict[str, int]) -> Machine:
    """Return a machine on which a node's counters stand so around each round, all others at 0."""
    machine = Machine(healthy)

    def edit(line: dict[str, Any]) -> dict[str, Any]:
        for when, stood in (("before", before), ("after", after)):
            if line["record"] == "counters":
                seen = line[when]
                rail = {name: 200 * count for name, count in seen.get("rail0", {}).items()}
                seen["rail0"] = rail  # so many that a loss would show
                seen.get("node/tcp", {})["OutSegs"] = 150_000 * (when == "after")
                own = stood if line["node"] == node else dict.fromkeys(stood, 0)
                seen.setdefault(interface, {}).update(own)
        return line

    machine.edit = edit
    return machine


def test_enough_packets_and_nothing_else_are_a_pass(climb: Any, site: Site) -> None:
    found = rows(climb, site, shown_as("vc1", "rail0", {}, {}))
    assert found["admit.vc1.rail0"].report.verdict is Verdict.PASS, (
        "else the next tests say nothing"
    )


@pytest.mark.parametrize("counter", ["carrier_changes", "link_downed", "aer_fatal"])
def test_a_link_that_went_down_meanwhile_is_no_pass(climb: Any, site: Site, counter: str) -> None:
    found = rows(climb, site, shown_as("vc1", "rail0", {counter: 0}, {counter: 2}))
    value = found["admit.vc1.rail0"].report.quantities[0]
    assert value.verdict is Verdict.UNJUDGED
    assert f"{counter} of rail0 on vc1 rose by 2" in value.reason
    assert found["partner.vc3.rail0"].report.verdict is Verdict.PASS


def test_a_link_that_went_down_between_rounds_refuses_its_node(climb: Any, site: Site) -> None:
    """No round saw it, and its counters stand higher before each: it was a PASS."""
    machine = shown_as("vc1", "rail0", {}, {})
    enough = machine.edit

    def edit(line: dict[str, Any]) -> dict[str, Any]:
        line = enough(line)
        if line["record"] == "counters":
            stood = 2 * line["round"] if line["node"] == "vc1" else 0
            for when in ("before", "after"):
                line[when].setdefault("rail0", {})["carrier_changes"] = stood
        return line

    machine.edit = edit
    found = rows(climb, site, machine)
    report = found["admit.vc1.rail0"].report
    assert report.verdict is Verdict.FAIL
    assert "vc1 rail0: its link went down" in " ".join(each.reason for each in report.quantities)
    assert found["partner.vc3.rail0"].report.verdict is Verdict.PASS


def test_a_node_whose_bytes_took_another_path_makes_its_partners_no_bad_ones(
    climb: Any, site: Site
) -> None:
    def edit(line: dict[str, Any]) -> dict[str, Any]:
        if line["record"] == "counters" and line["node"] == "vc1":
            line["after"]["rail0"]["tx_bytes"] = line["before"]["rail0"]["tx_bytes"]
        return line

    machine = counting()
    machine.edit = edit
    found = rows(climb, site, machine)
    value = found["admit.vc1.rail0"].report.quantities[0]
    assert value.verdict is Verdict.INVALID
    assert "traffic took another path" in value.reason
    for partner in ("vc2", "vc3", "vc5", "vc7"):
        assert found[f"partner.{partner}.rail0"].report.verdict is Verdict.PASS, partner


@pytest.mark.parametrize("admitted", ["vc1", "vc2"])
def test_another_path_of_all_pairs_is_of_no_node(climb: Any, site: Site, admitted: str) -> None:
    def edit(line: dict[str, Any]) -> dict[str, Any]:
        if line["record"] == "counters":
            line["after"]["rail0"]["tx_bytes"] = line["before"]["rail0"]["tx_bytes"]
        return line

    machine = counting()
    machine.edit = edit
    found = rows(climb, site, machine, admitted=admitted)
    assert len(found) == len(FIVE)
    for row in found.values():
        value = row.report.quantities[0]
        assert value.verdict is Verdict.INVALID
        assert value.reason.startswith(f"{ALL_ALIKE}: ")


def test_another_path_of_all_pairs_of_two_nodes_is_not_of_all(climb: Any, site: Site) -> None:
    def edit(line: dict[str, Any]) -> dict[str, Any]:
        if line["record"] == "counters" and line["node"] in {"vc1", "vc3"}:
            line["after"]["rail0"]["tx_bytes"] = line["before"]["rail0"]["tx_bytes"]
        return line

    machine = counting()
    machine.edit = edit
    found = rows(climb, site, machine)
    value = found["admit.vc1.rail0"].report.quantities[0]
    assert value.verdict is Verdict.INVALID
    assert ALL_ALIKE not in value.reason


def test_a_link_of_a_partner_that_went_down_is_the_partners(climb: Any, site: Site) -> None:
    counter = "carrier_changes"
    found = rows(climb, site, shown_as("vc5", "rail0", {counter: 0}, {counter: 2}))
    assert found["admit.vc1.rail0"].report.verdict is Verdict.PASS
    assert found["partner.vc5.rail0"].report.verdict is Verdict.UNJUDGED


def test_error_counters_that_went_back_say_nothing_of_the_node(climb: Any, site: Site) -> None:
    found = rows(climb, site, shown_as("vc1", "rail0", {"symbol_error": 9}, {"symbol_error": 0}))
    value, lost = found["admit.vc1.rail0"].report.quantities
    assert value.verdict is Verdict.UNJUDGED, "it was measured: nothing is missing"
    assert "ran backwards" in value.reason
    assert lost.verdict is Verdict.UNJUDGED


def test_what_tcp_sent_again_and_then_forgot_admits_nobody(climb: Any, site: Site) -> None:
    machine = shown_as("vc1", "node/tcp", {"RetransSegs": 90}, {"RetransSegs": 0})
    value, _ = rows(climb, site, machine)["admit.vc1.rail0"].report.quantities
    assert value.verdict is Verdict.UNJUDGED
    assert "RetransSegs of vc1 went back while it ran: wrapped or reset" in value.reason


def test_counts_of_damage_alone_rule_no_loss_out_over_tcp(climb: Any, site: Site) -> None:
    quiet = {"rx_errors": 0, "tx_errors": 0, "tx_packets": 0, "rx_packets": 0}
    machine = shown_as("vc1", "rail0", quiet, {**quiet, "tx_packets": 10**6, "rx_packets": 10**6})
    machine.lost = None  # type: ignore[assignment]
    lost = rows(climb, site, machine)["admit.vc1.rail0"].report.quantities[1]
    assert lost.verdict is Verdict.UNJUDGED
    assert "nobody counted what vc1 lost" in lost.reason


def test_partners_with_a_value_that_cannot_be_are_no_good_partners(climb: Any, site: Site) -> None:
    machine = counting()
    machine.rate = lambda a, b: 99.0 if {a, b} == {"vc3", "vc5"} else healthy(a, b)
    found = rows(climb, site, machine)
    assert found["partner.vc3.rail0"].report.verdict is Verdict.INVALID
    value = found["admit.vc1.rail0"].report.quantities[0]
    assert value.verdict is Verdict.MISSING
    assert "1 partner on other leaves known good" in value.reason


def test_a_node_that_nobody_counted_is_unjudged(climb: Any, site: Site) -> None:
    machine = Machine(healthy)
    machine.lost = None  # type: ignore[assignment]
    lost = rows(climb, site, machine)["admit.vc1.rail0"].report.quantities[1]
    assert lost.verdict is Verdict.UNJUDGED
    assert "nobody counted what vc1 lost" in lost.reason


@pytest.mark.parametrize(("low", "verdict"), [(20.0, Verdict.PASS), (22.4, Verdict.UNJUDGED)])
def test_what_known_good_runs_never_had_is_no_pass(
    climb: Any, site: Site, low: float, verdict: Verdict
) -> None:
    place = {"partition": "compute", "fabric": "eth0", "stack": "openmpi5", "program": "pairs"}
    known = {"quantity": "bandwidth_64KiB", "unit": "MB/s", "low": low, "better": 1}
    row = SimpleNamespace(**known)
    other = SimpleNamespace(**{**known, "low": 99.0})
    baseline = SimpleNamespace(
        name="spring",
        groups=[
            SimpleNamespace(place=SimpleNamespace(**place, leg="rail0"), rows=[row]),
            SimpleNamespace(place=SimpleNamespace(**place, leg="rail1"), rows=[other]),
        ],
    )
    found = rows(climb, site, counting(), baseline)
    value = found["admit.vc1.rail0"].report.quantities[0]
    assert value.verdict is verdict
    assert f"baseline spring has {low:.4g} MB/s at least" in value.reason
    assert "spring" not in found["partner.vc3.rail0"].report.quantities[0].reason


def test_losses_with_bandwidth_intact_refuse_a_node_and_not_its_partners(
    climb: Any, site: Site
) -> None:
    found = rows(climb, site, counting(lambda a, b: 9 if a == "vc1" else 0))
    assert found["admit.vc1.rail0"].report.verdict is Verdict.FAIL
    assert found["admit.vc1.rail0"].report.quantities[0].verdict is Verdict.PASS
    assert found["partner.vc3.rail0"].report.verdict is Verdict.PASS


@pytest.mark.parametrize("sender", ["vc1", "vc3"])
def test_losses_with_one_partner_alone_are_of_either_end(
    climb: Any, site: Site, sender: str
) -> None:
    """They were the node's FAIL, and the partner heard nothing of them."""
    ends = {"vc1", "vc3"}
    found = rows(climb, site, counting(lambda a, b: 90 if {a, b} == ends and a == sender else 0))
    report = found["admit.vc1.rail0"].report
    assert report.verdict is Verdict.UNJUDGED
    lost, partner = report.quantities[1], found["partner.vc3.rail0"].report.quantities[1]
    assert (lost.name, partner.name) == (UNCOUNTED, UNCOUNTED)
    assert "either end or what is between: of what" in lost.reason
    assert (partner.verdict, partner.reason) == (Verdict.UNJUDGED, lost.reason)
    for each in ("vc2", "vc5", "vc7"):
        assert found[f"partner.{each}.rail0"].report.verdict is Verdict.PASS


def test_losses_of_two_pairs_of_a_node_are_its_own(climb: Any, site: Site) -> None:
    def lost(a: str, b: str) -> int:
        return 90 if (a, b) in {("vc1", "vc3"), ("vc5", "vc1")} else 0

    found = rows(climb, site, counting(lost))
    report = found["admit.vc1.rail0"].report
    assert report.verdict is Verdict.FAIL
    assert "either end" not in report.quantities[1].reason
    for each in ("vc3", "vc5"):
        assert found[f"partner.{each}.rail0"].report.verdict is Verdict.PASS


def test_the_packets_that_are_planned_rule_out_what_must_be_even_with_one_lost() -> None:
    assert most_rate(1, PACKETS) < ruled_out_ppm(10) == 50
    assert most_rate(0, PACKETS // 2) > ruled_out_ppm(10), "half of them would not"
    assert ruled_out_ppm(0) == 50
    assert ruled_out_ppm(1000) == 5000


def test_partners_hang_on_other_leaves_by_turns_and_one_on_the_nodes_own() -> None:
    assert choose_partners(["vc1"], NODES, LEAVES, ()) == ("vc3", "vc5", "vc7", "vc2")
    assert choose_partners(["vc1"], NODES, LEAVES, ("vc3", "vc2")) == ("vc4", "vc5", "vc7", "vc6")
    assert choose_partners(["vc1"], NODES, {}, ()) == ("vc2", "vc3", "vc4", "vc5")
    assert choose_partners(["vc1"], ("vc1", "vc2"), LEAVES, ()) == ("vc2",)


@pytest.mark.parametrize("admitted", [(1, 9), (1, 2, 9, 10), (1, 9, 17), (1, 2, 3, 9, 10, 11, 12)])
@pytest.mark.parametrize("others", [(), (25,)])
def test_nodes_on_all_leaves_have_partners_on_others(
    admitted: tuple[int, ...], others: tuple[int, ...]
) -> None:
    """All partners were of the first leaf: its own nodes had none on another."""
    last = 24 if 17 in admitted else 16
    leaf_of = {f"n{at}": f"leaf{(at - 1) // 8}" for at in (*range(1, last + 1), *others)}
    nodes = [f"n{at}" for at in admitted]
    partners = choose_partners(nodes, tuple(leaf_of), leaf_of, ())
    assert len(partners) == max(PARTNERS, len(nodes))
    everybody = [*nodes, *partners]
    numbers = range(len(nodes)), range(len(nodes), len(everybody))
    rounds = admission_rounds(*numbers, (("rail0",),), 0)
    met = {(everybody[a], everybody[b]) for each in rounds for a, b in each.pairs}
    for node in nodes:
        far = [b for a, b in met if a == node and leaf_of[b] != leaf_of[node]]
        assert len(far) >= LEAST_PARTNERS, node


@given(st.integers(1, 9), st.integers(LEAST_PARTNERS, 9), st.integers(0, 3))
def test_each_node_meets_its_partners_and_these_each_other(
    num_nodes: int, num_partners: int, at_once: int
) -> None:
    admitted = list(range(num_nodes))
    partners = list(range(num_nodes, num_nodes + num_partners))
    net_paths = (("rail0",), ("rail1",), ("rail0", "rail1"))
    rounds = admission_rounds(admitted, partners, net_paths, at_once)
    assert [each.number for each in rounds] == list(range(len(rounds)))
    for each in rounds:
        ends = [node for pair in each.pairs for node in pair]
        assert ends
        assert len(set(ends)) == len(ends)
        assert at_once == 0 or len(each.pairs) <= at_once
    for net_path, passes in ((0, PASSES), (1, PASSES), (2, 1)):
        met = [frozenset(pair) for each in rounds if net_path in each.net_paths
               for pair in each.pairs]  # fmt: skip
        for node in admitted:
            mine = [pair for pair in met if node in pair]
            assert len(mine) == passes * min(PARTNERS, num_partners)
            assert len(set(mine)) == min(PARTNERS, num_partners)
        for node in partners:
            others = [pair for pair in met if node in pair and pair <= set(partners)]
            assert len(set(others)) == len(others) == min(2, num_partners - 1)
    assert not [each for each in rounds for pair in each.pairs if set(pair) <= set(admitted)]


def test_too_few_partners_are_no_campaign(site: Site) -> None:
    assert campaign_of(site, nodes=("vc1", "vc3")).nodes == ()
    assert campaign_of(site, admitted="vc8").nodes == ()


def test_what_a_node_alone_is_is_said_and_what_is_its_own_is_not() -> None:
    def seen(node: str, **facts: str) -> Seen:
        return Seen(node=node, facts={"node": {"kernel": "5.14", **facts}})

    machines = {
        "vc1": seen("vc1", kernel="5.15", microcode="1"),
        "vc2": seen("vc2", microcode="2"),
        "vc3": seen("vc3", microcode="3"),
    }
    (said,) = unlike("vc1", ("vc2", "vc3"), machines)
    assert "5.15" in said
    assert unlike("vc2", ("vc1", "vc3"), machines) == ()
    assert unlike("vc1", ("vc2",), machines) == ()


def without(climb: Any, site: Site, is_left: Callable[[set[str]], bool]) -> dict[str, Row]:
    """Return the rows of an admission of which such pairs hung in all their rounds."""
    whole = campaign_of(site)

    def cut(each: PlannedRound, *, left: bool) -> PlannedRound:
        chosen = [p for p in each.pairs if is_left({whole.nodes[at] for at in p}) is left]
        return replace(each, pairs=tuple(chosen))

    measured = replace(whole, rounds=tuple(cut(each, left=False) for each in whole.rounds))
    left = tuple(cut(each, left=True) for each in whole.rounds)
    outcome, _ = climb(shown_as("vc1", "rail0", {}, {}), measured)
    assert not outcome.left
    outcome, _ = confirm(outcome, red)
    seen = Admission(
        outcome=replace(outcome, campaign=whole, left={0: left}), admitted=("vc1",),
        links_of=nothing_seen, machines={}, mtu=1500,
    )  # fmt: skip
    return {row.leg.name: row for row in seen.rows()}


def test_a_pair_that_hangs_in_all_its_rounds_admits_nobody(climb: Any, site: Site) -> None:
    """It was a PASS with the two partners that were left."""
    found = without(climb, site, lambda pair: pair == {"vc1", "vc3"})
    report = found["admit.vc1.rail0"].report
    assert report.verdict is Verdict.MISSING
    (told,) = [each.reason for each in report.quantities if each.verdict is Verdict.MISSING]
    assert told == "vc1 - vc3 not measured over rail0 in 2 planned rounds"
    assert found["partner.vc3.rail0"].report.verdict is Verdict.MISSING, "another takes its place"
    assert found["partner.vc5.rail0"].report.verdict is Verdict.PASS


def test_a_partner_that_died_refuses_no_node_that_has_two_others(climb: Any, site: Site) -> None:
    found = without(climb, site, lambda pair: "vc3" in pair)
    assert found["partner.vc3.rail0"].report.verdict is Verdict.MISSING
    value, *others = found["admit.vc1.rail0"].report.quantities
    assert value.verdict is Verdict.PASS, value.reason
    assert "with 2 partners" in value.reason
    assert not [each for each in others if each.name == LEFT]


def test_with_two_partners_that_died_too_few_are_left(climb: Any, site: Site) -> None:
    found = without(climb, site, lambda pair: bool({"vc3", "vc5"} & pair))
    assert found["admit.vc1.rail0"].report.verdict is Verdict.MISSING


def test_many_new_nodes_are_no_majority_against_their_partners(climb: Any, site: Site) -> None:
    """Three new nodes with another driver than their two partners: not as on these."""
    new = ("vc1", "vc2", "vc4")
    nodes = (*new, "vc5", "vc7")
    spec = site.fabric_spec("eth0")

    def links_of(chosen: Sequence[str]) -> Preflight:
        machines = {
            node: Seen(
                node=node,
                facts={
                    f"interface {rail.interface}": {"driver": "new" if node in new else "old"}
                    for rail in spec.rails
                },
            )
            for node in chosen
        }
        return preflight(spec, machines)

    blank = replace(
        planned(site), nodes=nodes, leaf_of=tuple(LEAVES[each] for each in nodes), rounds=(),
    )  # fmt: skip
    outcome, _ = climb(counting(), plan_admission(site, blank, new))
    seen = Admission(
        outcome=outcome, admitted=new, links_of=links_of, machines={}, mtu=1500,
    )  # fmt: skip
    found = {
        row.leg.name: [each for each in row.report.quantities if each.name == FLEET]
        for row in seen.rows()
    }
    for node in new:
        (fleet,) = found[f"admit.{node}.rail0"]
        assert fleet.verdict is Verdict.FAIL
        assert f"new on {node} (1 of 3)" in fleet.reason
    for node in ("vc5", "vc7"):
        (fleet,) = found[f"partner.{node}.rail0"]
        assert fleet.verdict is Verdict.PASS
