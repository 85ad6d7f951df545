"""What a ring can carry: laws, an oracle that plays the rings, and verdicts on hpcc's numbers."""

from __future__ import annotations

import math
import random
from dataclasses import replace
from statistics import fmean

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from fabricproof.core.findings import texts_of
from fabricproof.core.measure import Table, Verdict
from fabricproof.physics import Fabric, bound, find_link
from fabricproof.physics.collective import RankLayout
from fabricproof.verdict.collective import (
    FEWEST_CROSSINGS,
    LEAST_STEPS,
    least_ring_bytes,
    ring_ceiling,
    ring_crossings,
)
from fabricproof.verdict.table import judge_table
from fabricproof.verdict.value import Rules, at_most

GIGABIT = Fabric(link=find_link("1GbE"), protocol="tcp", mtu=1500)

LAYOUTS = st.builds(
    lambda nodes, here: RankLayout(num_ranks=nodes * here, ranks_per_node=here),
    st.integers(2, 12),
    st.integers(1, 16),
)


def hpcc_order(ranks: int, chance: random.Random) -> list[int]:
    """The random order of ring_lat_bw_loop: a random place, else the next free one."""
    places = [-1] * ranks
    for rank in range(ranks):
        at = int(chance.random() * ranks)
        while places[at] != -1:
            at = (at + 1) % ranks
        places[at] = rank
    return places


def leaving(order: list[int], layout: RankLayout) -> list[int]:
    """Messages of one step that each node sends to others, one by one."""
    found = [0] * layout.num_nodes
    for at, rank in enumerate(order):
        for beside in (order[at - 1], order[(at + 1) % len(order)]):
            node = rank // layout.ranks_per_node
            found[node] += node != beside // layout.ranks_per_node
    return found


@given(LAYOUTS)
def test_in_the_order_of_the_ranks_two_messages_leave_each_node(layout: RankLayout) -> None:
    assert set(leaving(list(range(layout.num_ranks)), layout)) == {
        ring_crossings(layout, "natural")
    }


@given(LAYOUTS, st.randoms(use_true_random=False))
def test_no_random_order_leaves_the_bounds(layout: RankLayout, chance: random.Random) -> None:
    found = leaving(hpcc_order(layout.num_ranks, chance), layout)
    assert min(found) >= FEWEST_CROSSINGS
    assert max(found) <= ring_crossings(layout, "random")


@pytest.mark.parametrize(("nodes", "here"), [(2, 2), (4, 2), (3, 8)])
def test_the_nominal_rate_is_that_of_the_mean_random_order(nodes: int, here: int) -> None:
    layout = RankLayout(num_ranks=nodes * here, ranks_per_node=here)
    chance, ranks = random.Random(f"{nodes} x {here}"), list(range(nodes * here))
    found = [leaving(chance.sample(ranks, len(ranks)), layout) for _ in range(3000)]
    mean = ring_ceiling(GIGABIT, layout, "natural").nominal_mb_s * 2
    mean /= ring_ceiling(GIGABIT, layout, "random").nominal_mb_s
    assert fmean(map(fmean, found)) == pytest.approx(mean, rel=0.02)


@settings(deadline=None)
@given(LAYOUTS, st.sampled_from(["natural", "random"]))
def test_more_ranks_share_the_rail_and_never_widen_it(layout: RankLayout, name: str) -> None:
    ceiling = ring_ceiling(GIGABIT, layout, name)
    alone = ring_ceiling(GIGABIT, RankLayout(num_ranks=layout.num_nodes), name)
    assert ceiling.low_mb_s <= ceiling.nominal_mb_s <= ceiling.high_mb_s
    assert ceiling.low_mb_s <= alone.low_mb_s
    assert ceiling.low_mb_s == pytest.approx(
        alone.low_mb_s / (layout.ranks_per_node if name == "random" else 1)
    )


def test_one_rank_on_each_node_gets_the_rail() -> None:
    for name in ("natural", "random"):
        ceiling = ring_ceiling(GIGABIT, RankLayout(num_ranks=8), name)
        assert ceiling.high_mb_s == pytest.approx(bound(GIGABIT).high_mb_s, rel=0.03)
        assert ceiling.low_mb_s == pytest.approx(bound(GIGABIT).low_mb_s, rel=0.03)


def test_two_rails_carry_twice_a_ring() -> None:
    layout = RankLayout(num_ranks=16, ranks_per_node=4)
    one, two = (
        ring_ceiling(replace(GIGABIT, num_rails=rails), layout, "random") for rails in (1, 2)
    )
    assert two.low_mb_s == pytest.approx(2 * one.low_mb_s)


def test_what_a_run_moves_is_counted_from_its_loops() -> None:
    assert LEAST_STEPS == 198
    assert least_ring_bytes(RankLayout(num_ranks=4), 2_000_000) == 792_000_000
    assert least_ring_bytes(RankLayout(num_ranks=4, ranks_per_node=4), 2_000_000) == 0


def rings(natural: float, random_: float, *, ranks: int = 4, latency: float = 90.0) -> Table:
    values = {
        "message_size": 2e6, "num_processes": float(ranks), "natural_ring_latency_us": latency,
        "random_ring_latency_us": latency, "natural_ring_bandwidth_mb_s": natural,
        "random_ring_bandwidth_mb_s": random_, "latency_min_us": 50.0, "latency_avg_us": 60.0,
        "latency_max_us": 70.0, "bandwidth_min_mb_s": 100.0, "bandwidth_avg_mb_s": 110.0,
        "bandwidth_max_mb_s": 117.0,
    }  # fmt: skip
    return Table(
        suite="hpcc", program="LatencyBandwidth", version="1.5.0", columns=tuple(values),
        rows=(tuple(values.values()),), source="here", line=1, row_lines=(1,),
        attributes={"num_processes": ranks, "latency_message_size": 8, "success": 1},
    )  # fmt: skip


def verdicts(table: Table, layout: RankLayout | None, **references: object) -> dict[str, Verdict]:
    rules = Rules(fabric=GIGABIT, layout=layout, references=references)  # type: ignore[arg-type]
    return {each.name: each.verdict for each in judge_table(table, rules).quantities}


SPREAD, PACKED = RankLayout(num_ranks=4), RankLayout(num_ranks=4, ranks_per_node=2)


@pytest.mark.parametrize(
    ("natural", "random_", "layout", "expected"),
    [
        (115.0, 114.0, SPREAD, ("PASS", "PASS")),
        (115.0, 60.0, SPREAD, ("PASS", "FAIL")),
        (60.0, 60.0, SPREAD, ("FAIL", "FAIL")),
        (130.0, 114.0, SPREAD, ("INVALID", "PASS")),
        (115.0, 60.0, PACKED, ("PASS", "PASS")),
        (115.0, 114.0, PACKED, ("PASS", "PASS")),
        (115.0, 44.0, PACKED, ("PASS", "FAIL")),
        (95.0, 95.0, SPREAD, ("PASS", "PASS")),
        (90.0, 90.0, SPREAD, ("FAIL", "FAIL")),
        (300.0, 300.0, PACKED, ("INVALID", "INVALID")),
    ],
)
def test_the_verdict_follows_from_where_the_ranks_lay(
    natural: float, random_: float, layout: RankLayout, expected: tuple[str, str]
) -> None:
    found = verdicts(rings(natural, random_), layout)
    assert found == {
        "natural_ring_bandwidth": Verdict(expected[0]),
        "random_ring_bandwidth": Verdict(expected[1]),
    }


def test_a_tolerance_that_is_asked_for_is_not_widened() -> None:
    made = rings(95.0, 115.0)
    rules = Rules(fabric=GIGABIT, layout=SPREAD)
    usual, asked = (
        judge_table(made, replace(rules, tolerance_asked=each)) for each in (False, True)
    )
    assert usual.verdict is Verdict.PASS
    assert [each.name for each in asked.quantities if each.verdict is Verdict.FAIL] == [
        "natural_ring_bandwidth"
    ]


@pytest.mark.parametrize("layout", [None, RankLayout(num_ranks=8)])
def test_ranks_of_unknown_place_are_not_judged(layout: RankLayout | None) -> None:
    found = verdicts(rings(115.0, 114.0), layout)
    assert set(found.values()) == {Verdict.UNJUDGED}


def test_ranks_of_one_node_load_no_rail() -> None:
    one = RankLayout(num_ranks=4, ranks_per_node=4)
    assert set(verdicts(rings(9000.0, 9000.0), one).values()) == {Verdict.UNJUDGED}


def test_a_latency_below_the_floor_is_impossible_and_others_are_told() -> None:
    found = verdicts(rings(115.0, 114.0, latency=0.5), SPREAD)
    assert found["natural_ring_latency"] is Verdict.INVALID
    report = judge_table(rings(115.0, 60.0), Rules(fabric=GIGABIT, layout=PACKED))
    assert any(
        "0.52 of the natural one; by the nodes' rails alone 0.50 to 1.00" in each
        for each in texts_of(report.findings)
    )


def test_a_latency_with_a_reference_is_judged_by_it() -> None:
    limit = at_most(80.0, tolerance=0.0, origin="site")
    found = verdicts(rings(115.0, 114.0), SPREAD, random_ring_latency=limit)
    assert found["random_ring_latency"] is Verdict.FAIL


@given(st.floats(1, 400), LAYOUTS)
def test_what_is_impossible_is_never_good(value: float, layout: RankLayout) -> None:
    assume(layout.num_ranks > 1)
    ceiling = ring_ceiling(GIGABIT, layout, "random")
    found = verdicts(rings(value, value, ranks=layout.num_ranks), layout)
    assert (found["random_ring_bandwidth"] is Verdict.INVALID) == ceiling.excludes(value)
    assert not math.isnan(ceiling.high_mb_s)
