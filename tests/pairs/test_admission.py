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
from made_kernel import Edit, Lost, Rate
from made_machine import NODES, Machine, healthy, planned

from fabricproof.core.measure import Verdict
from fabricproof.job.evidence.error_rates import most_rate
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
    made: Machine,
    baseline: Any = None,
    **how: Any,
) -> dict[str, Row]:
    outcome, _ = climb(made, campaign_of(site, **how))
    outcome, _ = confirm(outcome, red)
    admitted = how.get("admitted", "vc1")
    seen = Admission(
        outcome=outcome, admitted=(admitted,), links_of=nothing_seen,
        machines={}, mtu=1500, baseline=baseline,
    )  # fmt: skip
    return {row.leg.name: row for row in seen.rows()}


def machine(
    rate: Rate = healthy, *, lost: Lost | None = lambda *_: 0, edit: Edit | None = None
) -> Machine:
    made = Machine(rate)
    made.lost, made.edit = lost, edit  # type: ignore[assignment]
    return made


def shown_as(node: str, interface: str, before: dict[str, int], after: dict[str, int]) -> Machine:
    """Return a machine on which a node's counters stand so around each round, all others at 0.

    So many packets went that a loss would show.
    """

    def edit(line: dict[str, Any]) -> dict[str, Any]:
        for when, stood in (("before", before), ("after", after)):
            if line["record"] == "counters":
                seen = line[when]
                seen["rail0"] = {name: 200 * each for name, each in seen.get("rail0", {}).items()}
                seen.get("node/tcp", {})["OutSegs"] = 150_000 * (when == "after")
                own = stood if line["node"] == node else dict.fromkeys(stood, 0)
                seen.setdefault(interface, {}).update(own)
        return line

    return machine(edit=edit)


def flapping() -> Machine:
    """Return a machine on which vc1's link goes down between rounds, which no round sees."""
    made = shown_as("vc1", "rail0", {}, {})
    enough = made.edit

    def edit(line: dict[str, Any]) -> dict[str, Any]:
        line = enough(line)  # type: ignore[misc]
        if line["record"] == "counters":
            for when in ("before", "after"):
                stood = 2 * line["round"] * (line["node"] == "vc1")
                line[when].setdefault("rail0", {})["carrier_changes"] = stood
        return line

    made.edit = edit
    return made


def elsewhere(*nodes: str) -> Machine:
    """Return a machine on which what these nodes send leaves by no rail that is looked at."""

    def edit(line: dict[str, Any]) -> dict[str, Any]:
        if line["record"] == "counters" and line["node"] in nodes:
            line["after"]["rail0"]["tx_bytes"] = line["before"]["rail0"]["tx_bytes"]
        return line

    return machine(edit=edit)


def slow(share: float, is_slow: Callable[[str, str], bool]) -> Machine:
    return machine(lambda a, b: healthy(a, b) * (share if is_slow(a, b) else 1))


QUIET = {"rx_errors": 0, "tx_errors": 0, "tx_packets": 0, "rx_packets": 0}
MANY = {**QUIET, "tx_packets": 10**6, "rx_packets": 10**6}
DOWN = {"carrier_changes": 0}, {"carrier_changes": 2}
P, F, V, M, U = Verdict.PASS, Verdict.FAIL, Verdict.INVALID, Verdict.MISSING, Verdict.UNJUDGED


@pytest.mark.parametrize(
    ("made", "value", "lost", "partners", "words"),
    [
        # Bandwidth of the node, what it lost, partners that are no PASS, words of the reasons.
        # The made machine counts some thousands of packets: too few to rule out a loss.
        (machine(), P, U, {}, ["with 3 partners", "must be ruled out"]),
        (shown_as("vc1", "rail0", {}, {}), P, P, {}, []),
        # Repaired in appearance only.
        (slow(0.5, lambda _, b: b == "vc1"), F, U, {}, ["vc1"]),
        (slow(0.5, lambda a, _: a == "vc1"), F, U, {}, ["vc1"]),
        # A bad partner is no fault of the node; with one good one nobody can tell.
        (slow(0.4, lambda a, b: "vc5" in {a, b}), P, U, {"vc5": F}, ["with 2 partners"]),
        (slow(0.4, lambda a, b: bool({"vc5", "vc7"} & {a, b})), M, U, {"vc5": F, "vc7": F}, []),
        # A slow leaf is no fault of its node, and does not admit it.
        (slow(0.5, lambda a, b: (LEAVES[a] == "leaf1") != (LEAVES[b] == "leaf1")), U, U, None, []),
        (slow(0.5, lambda *_: True), F, U, None, []),
        # The link went down in the rounds, or between them, of the node and of a partner.
        (shown_as("vc1", "rail0", *DOWN), U, F, {}, ["carrier_changes of rail0 on vc1 rose by 2"]),
        (shown_as("vc1", "rail0", {"aer_fatal": 0}, {"aer_fatal": 2}), U, P, {}, ["rose by 2"]),
        (flapping(), P, F, {}, ["vc1 rail0: its link went down"]),
        (shown_as("vc5", "rail0", *DOWN), P, P, {"vc5": U}, []),
        # Another path: of the node, of all pairs, of two nodes.
        (elsewhere("vc1"), V, U, {}, ["traffic took another path"]),
        (elsewhere(*FIVE), V, U, dict.fromkeys(FIVE[1:], V), [ALL_ALIKE]),
        (elsewhere("vc1", "vc3"), V, U, {"vc3": V}, []),
        # Counters that went back, or that nobody has, rule nothing out.
        (
            shown_as("vc1", "rail0", {"symbol_error": 9}, {"symbol_error": 0}),
            U, U, {}, ["ran backwards"],
        ),
        (
            shown_as("vc1", "node/tcp", {"RetransSegs": 90}, {"RetransSegs": 0}),
            U, U, {}, ["RetransSegs of vc1 went back while it ran: wrapped or reset"],
        ),
        (machine(lost=None), P, U, {}, ["nobody counted what vc1 lost"]),
        # Partners with a value that cannot be are no good ones.
        (
            machine(lambda a, b: 99.0 if {a, b} == {"vc3", "vc5"} else healthy(a, b)),
            M, U, {"vc3": V, "vc5": V}, ["1 partner on other leaves known good"],
        ),
        # Losses with bandwidth intact: of several pairs the node's, of one either end's.
        (machine(lost=lambda a, _: 9 * (a == "vc1")), P, F, {}, []),
        (
            machine(lost=lambda a, b: 90 * ((a, b) in {("vc1", "vc3"), ("vc5", "vc1")})),
            P, F, {}, [],
        ),
        (
            machine(lost=lambda a, b: 90 * ((a, b) == ("vc1", "vc3"))),
            P, U, {"vc3": U}, ["either end or what is between"],
        ),
        (
            machine(lost=lambda a, b: 90 * ((a, b) == ("vc3", "vc1"))),
            P, U, {"vc3": U}, ["either end or what is between"],
        ),
    ],
)  # fmt: skip
def test_whether_users_may_have_a_node(
    climb: Any, site: Site, made: Machine, value: Verdict, lost: Verdict,
    partners: dict[str, Verdict] | None, words: list[str],
) -> None:  # fmt: skip
    found = rows(climb, site, made)
    first, second = found["admit.vc1.rail0"].report.quantities
    assert (first.verdict, second.verdict) == (value, lost), (first.reason, second.reason)
    assert (first.unit, second.name, second.unit) == (
        "MB/s", "lost_per_million_packets", "ppm",
    ) or first.value is None  # fmt: skip
    for each in words:
        assert each in f"{first.reason}; {second.reason}"
    if value is P:
        reference, low, high, _ = bounds(first)
        assert reference * (1 + low) <= first.value <= reference * (1 + high)  # type: ignore[operator]
    if partners is not None:
        seen = {node: found[f"partner.{node}.rail0"].report.verdict for node in FIVE[1:]}
        assert seen == {**dict.fromkeys(FIVE[1:], P), **partners}
    if ALL_ALIKE not in words:
        assert ALL_ALIKE not in first.reason


def test_counts_of_damage_alone_rule_no_loss_out_over_tcp(climb: Any, site: Site) -> None:
    made = shown_as("vc1", "rail0", QUIET, MANY)
    made.lost = None  # type: ignore[assignment]
    lost = rows(climb, site, made)["admit.vc1.rail0"].report.quantities[1]
    assert lost.verdict is Verdict.UNJUDGED
    assert "nobody counted what vc1 lost" in lost.reason


def test_red_that_no_stock_program_saw_is_neither_pass_nor_fail(climb: Any, site: Site) -> None:
    outcome, _ = climb(slow(0.5, lambda _, b: b == "vc1"), campaign_of(site))
    outcome, _ = confirm(outcome, lambda look: replace(red(look), verdict=Verdict.PASS))
    seen = Admission(
        outcome=outcome, admitted=("vc1",), links_of=nothing_seen, machines={}, mtu=1500
    )
    assert next(seen.rows()).report.verdict is Verdict.UNJUDGED


@pytest.mark.parametrize("rounds", [0, 2])
def test_where_nothing_was_measured_the_last_words_of_the_job_are_told(
    climb: Any, site: Site, rounds: int
) -> None:
    outcome, _ = climb(machine(), campaign_of(site))
    seen = Admission(
        outcome=replace(outcome, rounds=rounds, results=()), admitted=("vc1",),
        links_of=nothing_seen, machines={}, mtu=1500, job_said="no such site",
    )  # fmt: skip
    first = next(seen.rows()).report.quantities[0]
    assert first.verdict is Verdict.MISSING
    assert ("; the job said: no such site" in first.reason) == (rounds == 0)


@pytest.mark.parametrize(("low", "verdict"), [(20.0, Verdict.PASS), (22.4, Verdict.UNJUDGED)])
def test_what_known_good_runs_never_had_is_no_pass(
    climb: Any, site: Site, low: float, verdict: Verdict
) -> None:
    place = {"partition": "compute", "fabric": "eth0", "stack": "openmpi5", "program": "pairs"}
    known = {"quantity": "bandwidth_64KiB", "unit": "MB/s", "low": low, "better": 1}
    baseline = SimpleNamespace(
        name="spring",
        groups=[
            SimpleNamespace(
                place=SimpleNamespace(**place, leg=leg), rows=[SimpleNamespace(**known | more)]
            )
            for leg, more in (("rail0", {}), ("rail1", {"low": 99.0}))
        ],
    )
    found = rows(climb, site, machine(), baseline)
    value = found["admit.vc1.rail0"].report.quantities[0]
    assert value.verdict is verdict
    assert f"baseline spring has {low:.4g} MB/s at least" in value.reason
    assert "spring" not in found["partner.vc3.rail0"].report.quantities[0].reason


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
    outcome, _ = climb(machine(), plan_admission(site, blank, new))
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
