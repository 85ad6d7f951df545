"""The kind of network, hops between hosts, and where Slurm's file and the cables disagree."""

from __future__ import annotations

import pytest

from fabricproof.nodes.topology.text import parse_topology, torus_of
from fabricproof.subnet import Hops, Network, shape_of
from fabricproof.subnet.slurm import slurm_findings
from made_fabrics import changed, grid, make, tree, without


@pytest.mark.parametrize(
    ("network", "words"),
    [
        (
            tree(hosts=4, spines=4),
            "two-level fat tree: 2 leaves, 4 spines, not oversubscribed",
        ),
        (
            tree(hosts=8, spines=2, per_pair=2),
            "two-level fat tree: 2 leaves, 2 spines, oversubscribed 2:1",
        ),
        (grid((3, 3), (True, True)), "3x3 torus of switches"),
        (grid((4, 3), (False, False)), "4x3 mesh of switches"),
        (grid((4, 3, 2), (True, True, False)), "4x3x2 torus of switches"),
        (grid((4, 3), (True, False)), "4x3 torus, open along 3 of switches"),
        (grid((5,), (True,)), "ring of 5 of switches"),
        (grid((4,), (False,)), "chain of 4 of switches"),
        (grid((8, 8, 8), (True, True, True)), "8x8x8 torus of switches"),
        (grid((4, 4, 4), (True, True, True)), "4x4x4 torus of switches"),
        (grid((6, 5, 4), (False, False, False)), "6x5x4 mesh of switches"),
        (make([("s", 4)], [("n1 a", 1)], [("n1 a", 1, "s", 1)]), "one switch of 4 ports"),
        (
            make([], [("n1 a", 1), ("n2 a", 1)], [("n1 a", 1, "n2 a", 1)]),
            "no switch: hosts back to back",
        ),
    ],
)
def test_kinds_of_network(network: Network, words: str) -> None:
    assert shape_of(network).words == words


def test_a_torus_that_lacks_one_cable_is_none() -> None:
    words = shape_of(without(grid((3, 3), (True, True)), "s(0, 0)", 2)).words
    assert words == "irregular: 9 switches, 17 of their pairs joined"


def test_the_same_degrees_are_no_torus_yet() -> None:
    """Two torus cables crossed: every switch still has four neighbours."""
    network = grid((4, 4), (True, True))
    names = {network.name(guid): guid for guid in network.switches}
    crossed = {
        names["s(0, 0)"]: {"s(0, 1)": "s(2, 3)"},
        names["s(0, 1)"]: {"s(0, 0)": "s(2, 2)"},
        names["s(2, 2)"]: {"s(2, 3)": "s(0, 1)"},
        names["s(2, 3)"]: {"s(2, 2)": "s(0, 0)"},
    }
    graph = dict(network.beside)
    for guid, swaps in crossed.items():
        for old, new in swaps.items():
            graph[guid] = graph[guid] - {names[old]} | {names[new]}
    from fabricproof.subnet.shape import recognise  # noqa: PLC0415 - only here

    assert recognise(network.beside) is not None
    assert recognise(graph) is None


def test_oversubscription_counts_rates_and_not_cables() -> None:
    slow = tree(hosts=4, spines=4)
    for port in range(5, 9):
        slow = changed(slow, "leaf0", port, speed="FDR")
    words = shape_of(slow).words
    assert words.endswith("oversubscribed 1.83:1 at worst (leaf0)")


def test_an_aggregation_node_is_no_host() -> None:
    """A spine with SHARP shows an adapter of its own: it is still a spine."""
    agent = "Mellanox Technologies Aggregation Node"
    cables = [
        ("n1 a", 1, "leaf1", 1),
        ("n2 a", 1, "leaf2", 1),
        ("leaf1", 2, "spine", 1),
        ("leaf2", 2, "spine", 2),
        (agent, 1, "spine", 3),
    ]
    network = make(
        [(name, 3) for name in ("leaf1", "leaf2", "spine")],
        [("n1 a", 1), ("n2 a", 1), (agent, 1)],
        cables,
    )
    assert list(network.hosts) == ["n1", "n2"]
    assert shape_of(network).words == ("two-level fat tree: 2 leaves, 1 spine, not oversubscribed")


def test_three_levels() -> None:
    cables = [
        ("n1 a", 1, "leaf1", 1),
        ("n2 a", 1, "leaf2", 1),
        ("leaf1", 2, "mid1", 1),
        ("leaf2", 2, "mid2", 1),
        ("mid1", 2, "top", 1),
        ("mid2", 2, "top", 2),
    ]
    switches = [(name, 3) for name in ("leaf1", "leaf2", "mid1", "mid2", "top")]
    network = make(switches, [("n1 a", 1), ("n2 a", 1)], cables)
    assert shape_of(network).words == "3-level tree: 2 on level 0, 2 on level 1, 1 on level 2"
    assert Hops(network=network).between("n1", "n2") == 5


def test_hops_as_slurm_counts_them() -> None:
    hops = Hops(network=tree())
    assert hops.between("n0", "n1") == 1
    assert hops.between("n0", "n7") == 3
    assert hops.between("n0", "nobody") is None
    torus = Hops(network=grid((3, 3), (True, True)))
    told = torus_of(f"h{x}{y}0" for x in range(3) for y in range(3))
    assert [torus.between("h0", f"h{number}") for number in range(1, 9)] == [
        told.hops("h000", f"h{number // 3}{number % 3}0") for number in range(1, 9)
    ]


GOOD = """\
SwitchName=a Level=0 LinkSpeed=1 Nodes=n[0-3]
SwitchName=b Level=0 LinkSpeed=1 Nodes=n[4-7]
SwitchName=top Level=1 LinkSpeed=1 Nodes=n[0-7] Switches=a,b
"""
THREE = """\
SwitchName=a Nodes=n[0-1]
SwitchName=b Nodes=n[2-3]
SwitchName=c Nodes=n[4-7]
SwitchName=top Switches=a,b,c
"""
DEEP = """\
SwitchName=a Nodes=n[0-3]
SwitchName=b Nodes=n[4-7]
SwitchName=m Switches=b
SwitchName=top Switches=a,m
"""


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (GOOD, ""),
        (
            GOOD.replace("n[0-3]", "n[0-2,4]").replace("n[4-7]", "n[3,5-7]"),
            "Slurm puts n4 on a, whose hosts are cabled to leaf0; n4 is cabled to leaf1",
        ),
        (GOOD.replace("n[4-7]", "n[4-8]"), "Slurm's topology has n8"),
        (
            THREE,
            "Slurm has a and b, and the hosts of all are cabled to leaf0",
        ),
        (
            DEEP,
            "Slurm counts 4 switches, the cables 3 switches",
        ),
        ("SwitchName=a Nodes=n[0-7]\n", "whose hosts are cabled to leaf0; n4 is cabled to leaf1"),
    ],
)
def test_slurm_against_the_cables(text: str, words: str) -> None:
    findings, _ = slurm_findings(tree(), parse_topology(text))
    red = [each.sentence for each in findings if each.verdict.value != "PASS"]
    if words:
        assert any(words in sentence for sentence in red), red
    else:
        assert red == []
        assert findings[-1].sentence == "Slurm places 8 hosts as their cables do"


def test_hosts_that_slurm_does_not_know_are_told() -> None:
    text = GOOD.replace("n[0-3]", "n[0-2]").replace("n[0-7]", "n[0-2,4-7]")
    _, notes = slurm_findings(tree(), parse_topology(text))
    assert notes == ("not in Slurm's topology: n3",)


def test_a_flat_slurm_says_nothing() -> None:
    findings, notes = slurm_findings(tree(), parse_topology(""))
    assert findings == ()
    assert "knows no topology" in notes[0]
