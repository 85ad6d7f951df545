"""Which pairs and sets of nodes are taken."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from topologies import BLOCK, ISLANDS, TREE

from fabricproof.nodes.topology.model import (
    Topology,
    contiguous,
    pairs_by_hops,
    parse_topology,
    spread,
)


def test_the_virtual_cluster_has_a_pair_on_a_leaf_and_one_across_the_spine() -> None:
    tree = parse_topology(TREE)
    near, far = pairs_by_hops(tree, tree.nodes)
    assert (near.nodes, near.hops) == (("vc1", "vc2"), 1)
    assert (far.nodes, far.hops) == (("vc1", "vc3"), 3)


def test_pairs_of_blocks() -> None:
    blocks = parse_topology(BLOCK)
    far = pairs_by_hops(blocks, blocks.nodes)[-1]
    assert (far.nodes, far.hops) == (("gb01", "gb09"), 3)


@pytest.mark.parametrize(
    ("max_nodes", "hops"), [(2, [1]), (3, [1, 5]), (4, [1, 3, 5]), (9, [1, 3, 5])]
)
def test_few_nodes_keep_the_nearest_and_the_farthest(max_nodes: int, hops: list[int]) -> None:
    tree = parse_topology(ISLANDS)
    pairs = pairs_by_hops(tree, tree.nodes, max_nodes=max_nodes)
    assert [pair.hops for pair in pairs] == hops
    assert len({node for pair in pairs for node in pair.nodes}) <= max_nodes


def test_a_hub_that_sees_less_is_not_taken() -> None:
    tree = parse_topology(ISLANDS)
    # n3 and n4 sit together; n1 sees nobody on its own leaf.
    pairs = pairs_by_hops(tree, ["n1", "n3", "n4", "n8"])
    assert [(pair.nodes[0], pair.hops) for pair in pairs] == [("n3", 1), ("n3", 3), ("n3", 5)]


def test_nodes_that_slurm_does_not_place_are_left_out() -> None:
    assert pairs_by_hops(parse_topology(TREE), ["vc9", "vc1"]) == ()


def test_a_flat_network_has_no_pairs_to_choose() -> None:
    assert pairs_by_hops(parse_topology(""), ["a", "b"]) == ()


def test_contiguous_stays_and_spread_leaves() -> None:
    tree = parse_topology(ISLANDS)
    nodes = ["n1", "n3", "n4", "n5", "n7"]
    assert contiguous(tree, nodes, 2) == ("n3", "n4")
    assert spread(tree, nodes, 4) == ("n1", "n3", "n5", "n7")
    assert contiguous(parse_topology(""), nodes, 2) == spread(parse_topology(""), nodes, 2)


def _leaves(topology: Topology, nodes: tuple[str, ...]) -> int:
    return len({topology.leaf(node) for node in nodes})


@given(st.data(), st.sampled_from([parse_topology(ISLANDS), parse_topology(BLOCK)]))
def test_sets_have_the_nodes_asked_for_and_spread_never_sits_closer(
    data: st.DataObject, topology: Topology
) -> None:
    nodes = data.draw(st.lists(st.sampled_from(topology.nodes), min_size=1, unique=True))
    count = data.draw(st.integers(1, len(nodes)))
    close, apart = contiguous(topology, nodes, count), spread(topology, nodes, count)
    for chosen in (close, apart):
        assert len({*chosen}) == count
        assert {*chosen} <= {*nodes}
    assert _leaves(topology, close) <= _leaves(topology, apart)


@given(st.data())
def test_pairs_have_the_distance_they_claim_and_none_is_lost(data: st.DataObject) -> None:
    tree = parse_topology(ISLANDS)
    nodes = data.draw(st.lists(st.sampled_from(tree.nodes), min_size=2, unique=True))
    pairs = pairs_by_hops(tree, nodes)
    assert all(tree.hops(*pair.nodes) == pair.hops for pair in pairs)
    assert len({pair.hops for pair in pairs}) == len(pairs) >= 1
