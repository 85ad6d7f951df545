"""What one node says against itself, and how far its cards are from the ranks."""

from __future__ import annotations

import pytest
from recorded_nodes import machine

from fabricproof.core.findings import texts_of
from fabricproof.nodes.inventory.facts import Machine
from fabricproof.nodes.inventory.remarks import distances, notes


@pytest.mark.parametrize("name", ["mlx5-healthy", "bnxt-healthy", "hfi1", "virtual-cluster"])
def test_a_healthy_node_does_what_it_can(name: str) -> None:
    assert notes(machine(name)) == ()


def test_a_card_below_its_best_is_named_with_the_cause() -> None:
    said = notes(machine("mlx5-degraded"))
    assert (
        "port mlx5_0:1: trained to PCIe 4.0 x8, the card is able to PCIe 4.0 x16: narrow slot or "
        "riser, or the card sits badly"
    ) in texts_of(said)


def test_a_slot_that_can_no_more_is_the_cause() -> None:
    slot = {"pcie": "3.0x8", "pcie_best": "3.0x16", "pcie_best_of_slot": "3.0x8"}
    (said,) = notes(Machine(node="n", facts={"interface a": slot}))
    assert said.text.endswith("the slot can no more")


def test_a_link_below_its_best_is_named() -> None:
    (said,) = notes(machine("bnxt-degraded"))
    assert said.text.startswith("interface enp182s0f0np0: link at 10000 of 25000 Mb/s")


@pytest.mark.parametrize(
    ("cpus", "words"),
    [
        ("0-3", "distance 10 (near)"),
        ("40", "distance 21 (far)"),
        ("0-63", "distance 10 to 21 (far)"),
    ],
)
def test_how_far_a_card_is_from_the_cores_of_a_rank(cpus: str, words: str) -> None:
    said = {each.part: each for each in distances(machine("mlx5-healthy"), cpus)}
    assert said["port mlx5_0:1"].place == f"NUMA node 0: {words}"
    assert said["port mlx5_0:1"].is_far is ("far" in words)


@pytest.mark.parametrize(("name", "cpus"), [("mlx5-healthy", "unknown"), ("one-machine", "0-1")])
def test_where_nothing_can_be_far_or_nothing_is_known_nothing_is_said(name: str, cpus: str) -> None:
    assert distances(machine(name), cpus) == ()


def test_without_the_kernels_distances_near_and_far_are_left() -> None:
    one = machine("mlx5-healthy")
    bare = {
        part: {key: value for key, value in facts.items() if key != "distance"}
        for part, facts in one.facts.items()
    }
    far = {each.part: each for each in distances(Machine(node="n", facts=bare), "40")}
    assert far["port mlx5_0:1"].place == "NUMA node 0: distance not known, far"
    assert far["port mlx5_0:1"].is_far


def _addressed(**addresses: str) -> Machine:
    facts = {f"interface {name}": {"addresses": each} for name, each in addresses.items()}
    return Machine(node="c1", facts=facts)


def test_networks_that_overlap_are_named_with_both_addresses() -> None:
    # source document 004: a 40 GbE network in 10.0.0.0/8 beside 1 GbE in 10.10.1.0/24
    (said,) = notes(_addressed(enp97s0="10.10.1.1/24", ens4="10.0.0.1/8"))
    assert said.text.startswith(
        "enp97s0 (10.10.1.1/24) and ens4 (10.0.0.1/8) on c1 are in IP networks"
    )


def test_two_rails_of_one_network_overlap() -> None:
    assert len(notes(_addressed(rail0="10.1.0.1/16", rail1="10.1.0.2/16"))) == 1


@pytest.mark.parametrize(
    "other",
    ["10.2.0.1/16", "fd00::1/64", "169.254.0.9/16", "10.1.0.7/32", "", "10.1/x", "10.1.0.300/16"],
)
def test_networks_of_their_own_say_nothing(other: str) -> None:
    both = _addressed(rail0="10.1.0.1/16 fe80::1/64", rail1=f"fe80::2/64 {other}")
    assert notes(both) == ()
