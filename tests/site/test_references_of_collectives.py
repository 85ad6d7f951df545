"""What a site expects of a collective: named, and for a layout where it says one."""

from __future__ import annotations

from pathlib import Path

import pytest

from fabricproof.site import load_site

SITES = Path(__file__).parents[2] / "site-configs"

ENTRY = """
[[references]]
quantity = "{quantity}"
value = "{value}"
fabric = "eth0"
origin = "measured when it was new"
{more}
"""

#: (quantity, value, program, num_nodes, ranks_per_node)
STATED = [
    ("latency", "50 us", "", 0, 0),
    ("latency_64KiB", "900 us", "osu_bcast", 0, 0),
    ("latency_64KiB", "4 ms", "osu_bcast", 4, 0),
    ("latency_64KiB", "8 ms", "osu_bcast", 4, 2),
]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "vcluster"
    made.mkdir()
    for name in ("site.toml", "fabric.toml"):
        (made / name).write_text((SITES / "vcluster" / name).read_text())
    entries = []
    for quantity, value, program, nodes, ranks in STATED:
        more = [
            f'program = "{program}"' * bool(program),
            f"num_nodes = {nodes}" * bool(nodes),
            f"ranks_per_node = {ranks}" * bool(ranks),
        ]
        entries.append(ENTRY.format(quantity=quantity, value=value, more="\n".join(more)))
    (made / "references.toml").write_text("".join(entries))
    return made


def applied(folder: Path, program: str, **layout: int) -> dict[str, float]:
    found = load_site(str(folder)).references_for(
        fabric="eth0", suite="osu", program=program, stack="mpich5", num_rails=1, **layout
    )
    return {quantity: reference.value for quantity, reference in found.items()}


def test_a_pairs_latency_is_no_expectation_of_a_collective(folder: Path) -> None:
    assert applied(folder, "osu_latency") == {"latency": 50}
    assert applied(folder, "osu_allreduce", num_nodes=4, ranks_per_node=2) == {}


def test_the_layout_that_is_said_is_the_one_that_it_holds_for(folder: Path) -> None:
    size = "latency_64KiB"
    assert applied(folder, "osu_bcast", num_nodes=2, ranks_per_node=1) == {size: 900}
    assert applied(folder, "osu_bcast", num_nodes=4, ranks_per_node=1) == {size: 4000}
    assert applied(folder, "osu_bcast", num_nodes=4, ranks_per_node=2) == {size: 8000}
    assert applied(folder, "osu_bcast") == {size: 900}
