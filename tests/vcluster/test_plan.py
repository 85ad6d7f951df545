from __future__ import annotations

import ipaddress
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vcluster.errors import ConfigError
from vcluster.plan import (
    HEAD_ADDRESS,
    MAX_NODES,
    MAX_RAILS,
    Plan,
    Wishes,
    inherit,
    make_plan,
    unmet,
)
from vcluster.rails.network import leaf_bridge, render_hosts, uplink_ports
from vcluster.rails.shaping import parse_rate, rate_label

_BENCHMARKING = ipaddress.ip_network("198.18.0.0/15")


@pytest.mark.parametrize(
    ("text", "bit_s"),
    [("400mbit", 400_000_000), ("1gbit", 10**9), ("2.5Gbit", 2_500_000_000), ("1500kbit", 1500000)],
)
def test_rates_are_read_as_tc_writes_them(text: str, bit_s: int) -> None:
    assert parse_rate(text) == bit_s


@pytest.mark.parametrize(
    "text",
    [
        "400", "400MB", "mbit", "-1mbit", "0mbit", "1tbit", "101gbit", "\u00b2mbit",
        "9" * 400 + "mbit",
    ],
)  # fmt: skip
def test_what_is_not_a_rate_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(ConfigError, match="400mbit"):
        parse_rate(text)


@given(st.integers(min_value=10**6, max_value=10**11))
def test_a_rate_survives_its_label(bit_s: int) -> None:
    label = rate_label(bit_s)
    assert label.endswith("bit")
    if bit_s % 1000 == 0:
        assert parse_rate(label) == bit_s


@given(
    nodes=st.integers(min_value=2, max_value=MAX_NODES),
    rails=st.integers(min_value=1, max_value=MAX_RAILS),
)
def test_addresses_are_distinct_and_in_the_benchmarking_block(nodes: int, rails: int) -> None:
    plan = make_plan("x", Wishes(nodes=nodes, rails=rails), 8000)
    addresses = [HEAD_ADDRESS, *(node.management_address for node in plan.nodes)]
    addresses += [node.rail_address(rail) for node in plan.nodes for rail in plan.rails]
    assert len(set(addresses)) == 1 + nodes * (1 + rails)
    assert all(ipaddress.ip_address(address) in _BENCHMARKING for address in addresses)


@given(nodes=st.integers(min_value=2, max_value=MAX_NODES))
def test_both_leaves_have_nodes_and_each_node_one_leaf(nodes: int) -> None:
    leaves = [node.leaf for node in make_plan("x", Wishes(nodes=nodes), 8000).nodes]
    assert leaves == sorted(leaves)
    assert set(leaves) == {1, 2}


@given(st.data())
def test_nodes_hang_on_all_leaves_as_evenly_as_can_be(data: st.DataObject) -> None:
    nodes = data.draw(st.integers(2, MAX_NODES))
    leaves = data.draw(st.integers(1, nodes))
    plan = make_plan("x", Wishes(nodes=nodes, leaves=leaves), 8000)
    hangs = [node.leaf for node in plan.nodes]
    sizes = [hangs.count(leaf) for leaf in plan.leaves]
    assert hangs == sorted(hangs)
    assert sizes == sorted(sizes, reverse=True)
    assert sum(sizes) == nodes
    assert sizes[0] - sizes[-1] <= 1


def test_interface_names_fit_the_kernel() -> None:
    plan = make_plan("x", Wishes(nodes=MAX_NODES, rails=MAX_RAILS, leaves=MAX_NODES), 8000)
    names = [node.rail_port(rail) for node in plan.nodes for rail in plan.rails]
    names += [leaf_bridge(rail, leaf) for rail in plan.rails for leaf in plan.leaves]
    names += [p for rail in plan.rails for leaf in plan.leaves for p in uplink_ports(rail, leaf)]
    names += [node.management_port() for node in plan.nodes]
    assert len(set(names)) == len(names)
    assert max(len(name) for name in names) <= 15


@pytest.mark.parametrize(
    "wishes",
    [
        Wishes(nodes=1), Wishes(nodes=MAX_NODES + 1), Wishes(rails=MAX_RAILS + 1),
        Wishes(leaves=0), Wishes(nodes=4, leaves=5), Wishes(mtu=100), Wishes(mtu=65000),
        Wishes(cpus=5000),
        Wishes(rails=2, rail_rates_bit_s={2: 10**8}),
        Wishes(shares=("/tmp",)), Wishes(shares=("/",)), Wishes(shares=("relative/folder",)),
        Wishes(shares=("/dev",)),
    ],
)  # fmt: skip
def test_wishes_out_of_range_are_refused(wishes: Wishes) -> None:
    with pytest.raises(ConfigError, match="expected"):
        make_plan("x", wishes, 8000)


def test_a_folder_below_a_private_one_can_be_shared() -> None:
    assert make_plan("x", Wishes(shares=("/tmp/clone",)), 8000).shares == ("/tmp/clone",)


def test_a_plan_survives_its_state_file(plan: Plan) -> None:
    assert Plan.from_json(plan.as_json()) == plan


@pytest.mark.parametrize(
    ("wishes", "difference"),
    [
        (Wishes(), None),
        (Wishes(nodes=3, rails=2), None),
        (Wishes(rate_bit_s=200_000_000, rail_rates_bit_s={1: 200_000_000}), None),
        (Wishes(rate_bit_s=400_000_000), "rate 400mbit"),
        (Wishes(rail_rates_bit_s={1: 10**8}), "rail 1 at 100mbit"),
        (Wishes(rail_rates_bit_s={5: 10**8}), "rail 5 at 100mbit"),
        (Wishes(nodes=4), "nodes 4"),
        (Wishes(leaves=2), None),
        (Wishes(leaves=3), "leaves 3"),
        (Wishes(uplink_bit_s=10**8), "uplinks in bit/s 100000000"),
        (Wishes(mtu=9000), "MTU 9000"),
        (Wishes(cpus=1), "CPUs 1"),
        (Wishes(accounting=True, slurm=()), None),
        (Wishes(accounting=False), "accounting no"),
        (Wishes(slurm=("PrivateData=jobs",)), "in slurm.conf PrivateData=jobs"),
    ],
)
def test_only_wishes_that_were_made_can_be_unmet(
    plan: Plan, wishes: Wishes, difference: str | None
) -> None:
    assert unmet(plan, wishes) == difference


def test_a_broken_cluster_comes_back_as_it_was(plan: Plan) -> None:
    assert make_plan("tiny", inherit(Wishes(), plan), 6000) == plan
    bare = replace(plan, accounting=False, slurm=("PrivateData=jobs",))
    assert make_plan("tiny", inherit(Wishes(), bare), 6000) == bare
    leafy = replace(plan, leaf_count=3, uplink_bit_s=10**8)
    assert make_plan("tiny", inherit(Wishes(), leafy), 6000) == leafy


def test_a_plan_of_an_earlier_version_has_two_leaves_without_a_limit(plan: Plan) -> None:
    written = plan.as_json()
    del written["leaf_count"], written["uplink_bit_s"]
    assert Plan.from_json(written) == plan


def test_what_a_plan_of_another_version_has_more_is_left_out(plan: Plan) -> None:
    """Else the state counts as none, and ``down`` no longer sees whose cluster it ends."""
    assert Plan.from_json({**plan.as_json(), "flow_limit_bit_s": None}) == plan


def test_what_is_asked_of_a_broken_cluster_comes_first(plan: Plan) -> None:
    asked = Wishes(nodes=5, rate_bit_s=10**8, rails=3, shares=("/tmp/a",))
    rebuilt = make_plan("tiny", inherit(asked, plan), 6000)
    assert (rebuilt.node_count, rebuilt.rail_rates_bit_s) == (5, (10**8,) * 3)
    assert unmet(rebuilt, asked) is None


def test_unknown_nodes_and_rails_are_named_with_the_known_ones(plan: Plan) -> None:
    with pytest.raises(ConfigError, match="vc1 to vc3"):
        plan.node("vc4")
    with pytest.raises(ConfigError, match="rail0, rail1"):
        plan.rail("eth0")


def test_hosts_names_every_node_and_rail(plan: Plan) -> None:
    lines = render_hosts(plan).splitlines()
    assert "198.18.0.13 vc3" in lines
    assert "198.19.1.12 vc2-rail1" in lines
    assert len(lines) == 2 + 3 * 3
