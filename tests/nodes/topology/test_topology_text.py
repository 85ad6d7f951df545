"""The topology that Slurm prints: read whole or refused, and distances that obey their laws."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from topologies import BLOCK, DATA, ISLANDS, TREE

from fabricproof.core.errors import ConfigError, ParseError
from fabricproof.nodes.topology.model import Shape, parse_topology


def test_the_recorded_tree() -> None:
    tree = parse_topology(TREE)
    assert tree.shape is Shape.TREE
    assert tree.nodes == ("vc1", "vc2", "vc3", "vc4")
    assert tree.leaf("vc2") == "leaf1"
    assert (tree.hops("vc1", "vc2"), tree.hops("vc1", "vc3")) == (1, 3)


def test_islands_are_five_switches_apart() -> None:
    tree = parse_topology(ISLANDS)
    assert [tree.hops("n1", node) for node in ("n2", "n3", "n5", "n8")] == [1, 3, 5, 5]


def test_trees_that_nothing_connects_have_no_known_distance() -> None:
    text = "".join(line for line in ISLANDS.splitlines(keepends=True) if "core" not in line)
    assert parse_topology(text).hops("n1", "n8") is None
    assert parse_topology(text).hops("n1", "n4") == 3


def test_blocks_count_the_sizes_that_must_be_left() -> None:
    blocks = parse_topology(BLOCK)
    assert blocks.shape is Shape.BLOCK
    assert blocks.leaf("gb02") == "b0"
    assert [blocks.hops("gb01", node) for node in ("gb02", "gb05", "gb09")] == [1, 2, 3]


def test_blocks_of_one_size_are_alike_however_many_nodes_they_have() -> None:
    text = (
        "BlockName=b1 BlockIndex=0 Nodes=gb[01-18] BlockSize=16\n"
        "BlockName=b2 BlockIndex=1 Nodes=gb[19-35] BlockSize=16\n"
        "AggregatedBlock=b[1-2] BlockIndex=2 Nodes=gb[01-35] BlockSize=32\n"
    )
    blocks = parse_topology(text)
    far = [blocks.hops(one, other) for one, other in (("gb01", "gb02"), ("gb19", "gb20"))]
    assert (far, blocks.hops("gb01", "gb20")) == ([1, 1], 2)
    assert (blocks.leaf("gb18"), blocks.leaf("gb19")) == ("b1", "b2")
    # Slurm of before says no sizes: the number of nodes.
    plain = parse_topology(BLOCK.replace(" BlockSize=4", "").replace(" BlockSize=8", ""))
    assert [plain.hops("gb01", node) for node in ("gb02", "gb05", "gb09")] == [1, 2, 3]


@pytest.mark.parametrize("text", ["", "\n", (DATA / "topology-none.txt").read_text()])
def test_no_topology_is_flat_and_knows_no_distance(text: str) -> None:
    flat = parse_topology(text)
    assert flat.shape is Shape.FLAT
    assert flat.hops("a", "b") is None


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (TREE.rstrip("\n"), "newline"),
        (TREE + "Switch=x Level=0\n", "SwitchName"),
        (TREE + "SwitchName=leaf1 Level=0 Nodes=a\n", "not there yet"),
        (TREE + "SwitchName=top Level=2 Switches=spine,lost\n", "lost"),
        (TREE + "SwitchName=x Level=zero Nodes=a\n", "Level"),
        (BLOCK.replace("BlockSize=8", "BlockSize=eight"), "BlockSize"),
        (TREE + "SwitchName=x Level=0 Nodes=a[1-\n", "hostlist"),
        (TREE + "SwitchName=x Level=0 Colour=red\n", "Colour"),
        (TREE + "SwitchName= Level=0\n", "NAME"),
        (TREE + "SwitchName=x Level=0 Level=1\n", "key=value"),
        (TREE + BLOCK, "not both"),
        (TREE.replace("Nodes=", "Nodes "), "key=value"),
    ],
)
def test_damage_is_refused_never_a_smaller_tree(text: str, says: str) -> None:
    with pytest.raises(ParseError, match=r"topology|switches below") as caught:
        parse_topology(text)
    assert says in str(caught.value)


def test_a_node_that_is_not_there_or_a_pair_of_one_is_refused() -> None:
    tree = parse_topology(TREE)
    with pytest.raises(ConfigError, match="vc9"):
        tree.hops("vc1", "vc9")
    with pytest.raises(ConfigError, match="two nodes"):
        tree.hops("vc1", "vc1")


@given(st.data())
def test_distances_are_a_metric(data: st.DataObject) -> None:
    tree = parse_topology(ISLANDS)
    one, two, three = data.draw(
        st.lists(st.sampled_from(tree.nodes), min_size=3, max_size=3, unique=True)
    )
    there, back = tree.hops(one, two), tree.hops(two, one)
    assert there == back
    assert there is not None
    direct, rest = tree.hops(one, three), tree.hops(two, three)
    assert direct is not None
    assert rest is not None
    # Each end's own leaf is counted in both halves of a detour.
    assert direct <= there + rest - 1
