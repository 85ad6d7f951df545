"""InfiniBand subnets in words: managers, LIDs, prefixes."""

from __future__ import annotations

from dataclasses import replace

import pytest

from fabricproof.nodes.inventory.facts import Machine
from fabricproof.nodes.inventory.remarks import (
    DEFAULT_PREFIX,
    SubnetPort,
    ports_of,
    subnet_notes,
)

RAIL0 = SubnetPort(
    node="n1", name="mlx5_0:1", state="ACTIVE", lid=3, sm_lid=1, prefix=DEFAULT_PREFIX
)
RAIL1 = replace(RAIL0, name="mlx5_1:1", lid=4)


def test_one_port_of_a_managed_subnet_needs_no_words() -> None:
    assert subnet_notes([RAIL0]) == ()
    assert subnet_notes([RAIL0, replace(RAIL0, node="n2", lid=7)]) == ()


def test_two_rails_of_one_subnet_explain_open_mpis_warning() -> None:
    """Source document 000: dual-rail QDR on one subnet manager, the warning safely ignored."""
    (note,) = subnet_notes([RAIL0, RAIL1])
    assert "mlx5_0:1 and mlx5_1:1 on n1 share GID prefix" in note
    assert "harmless here (btl_openib_warn_default_gid_prefix=0)" in note


def test_two_networks_of_one_prefix_are_no_harmless_warning() -> None:
    notes = subnet_notes([RAIL0, replace(RAIL1, sm_lid=9)])
    assert len(notes) == 1
    assert "has 2 subnet managers (LID 1: mlx5_0:1 on n1; LID 9: mlx5_1:1 on n1)" in notes[0]
    assert "need prefixes of their own" in notes[0]


def test_networks_with_prefixes_of_their_own_are_fine() -> None:
    assert subnet_notes([RAIL0, replace(RAIL1, sm_lid=9, prefix="fe80:0000:0000:0001")]) == ()


@pytest.mark.parametrize(
    "port",
    [replace(RAIL0, state="INIT", lid=0, sm_lid=0), replace(RAIL0, sm_lid=0)],
    ids=["init", "active without manager"],
)
def test_a_port_without_a_manager_says_what_to_start(port: SubnetPort) -> None:
    (note,) = subnet_notes([port])
    assert "no subnet manager: start opensm" in note


def test_a_port_that_is_down_waits_for_nobody() -> None:
    assert subnet_notes([replace(RAIL0, state="DOWN", lid=0, sm_lid=0)]) == ()


def test_one_lid_for_two_ports_is_said() -> None:
    notes = subnet_notes([RAIL0, replace(RAIL0, node="n2")])
    assert any("LID 3 is given to mlx5_0:1 on n1 and mlx5_0:1 on n2" in note for note in notes)


def test_what_nobody_read_is_not_guessed() -> None:
    blind = replace(RAIL0, lid=None, sm_lid=None, prefix="")
    assert subnet_notes([blind, replace(blind, name="mlx5_1:1")]) == ()


def test_ports_come_from_an_inventory_and_roce_is_none() -> None:
    ib = {"state": "ACTIVE", "layer": "InfiniBand", "lid": "0x3", "sm_lid": "0x1"}
    machine = Machine(
        node="n1",
        facts={
            "port mlx5_0:1": {**ib, "gid_prefix": DEFAULT_PREFIX},
            "port mlx5_1:1": {**ib, "layer": "Ethernet"},
            "interface ib0": {"state": "up"},
        },
    )
    assert ports_of(machine) == (RAIL0,)
