"""InfiniBand subnets in words: managers, LIDs, prefixes."""

from __future__ import annotations

import pytest

from fabricproof.nodes.inventory.facts import Machine, Value
from fabricproof.nodes.inventory.remarks import DEFAULT_PREFIX, subnet_notes

RAIL0: dict[str, Value] = {
    "state": "ACTIVE", "layer": "InfiniBand", "lid": "0x3", "sm_lid": "0x1",
    "gid_prefix": DEFAULT_PREFIX,
}  # fmt: skip
RAIL1 = RAIL0 | {"lid": 4}
BLIND = {key: RAIL0[key] for key in ("state", "layer")}


@pytest.mark.parametrize(
    ("ports", "words"),
    [
        ([RAIL0], []),
        # Source document 000: dual-rail QDR on one subnet manager, the warning safely ignored.
        ([RAIL0, RAIL1], ["harmless here (btl_openib_warn_default_gid_prefix=0)"]),
        (
            [RAIL0, RAIL1 | {"sm_lid": 9}],
            ["has 2 subnet managers (LID 1: mlx5_0:1; LID 9: mlx5_1:1)"],
        ),
        ([RAIL0, RAIL1 | {"sm_lid": 9, "gid_prefix": "fe80:0000:0000:0001"}], []),
        ([RAIL0 | {"state": "INIT", "lid": 0, "sm_lid": 0}], ["no subnet manager: start opensm"]),
        ([RAIL0 | {"sm_lid": 0}], ["no subnet manager: start opensm"]),
        ([RAIL0 | {"state": "DOWN", "lid": 0, "sm_lid": 0}], []),
        ([RAIL0, RAIL0], ["LID 3 is given to mlx5_0:1 and mlx5_1:1", "harmless"]),
        ([BLIND, BLIND], []),
        ([RAIL0, RAIL1 | {"layer": "Ethernet"}], []),
    ],
)
def test_what_is_said_of_the_ports_of_a_node(
    ports: list[dict[str, Value]], words: list[str]
) -> None:
    facts = {f"port mlx5_{number}:1": each for number, each in enumerate(ports)}
    notes = list(subnet_notes(Machine(node="n1", facts={**facts, "interface ib0": {}})))
    assert len(notes) == len(words)
    for note, each in zip(notes, words, strict=True):
        assert each in note
