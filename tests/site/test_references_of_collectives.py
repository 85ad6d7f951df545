"""What a site expects of a collective: named, and for a layout where it says one."""

from __future__ import annotations

from pathlib import Path

import pytest

from fabricproof.core.errors import ConfigError
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


@pytest.mark.parametrize(
    ("more", "said", "expected"),
    [
        ("num_nodes = 3", "num_nodes = 3 would judge nothing", "one of 2, 4"),
        ("num_nodes = 64", "num_nodes = 64", "one of 2, 4"),
        ("ranks_per_node = 7", "ranks_per_node = 7", "one of 1, 2"),
        ("num_rails = 3", "num_rails = 3", "one of 1, 2"),
    ],
)
def test_a_layout_that_nothing_is_measured_on_is_refused(
    folder: Path, more: str, said: str, expected: str
) -> None:
    entry = ENTRY.format(
        quantity="latency_4KiB", value="1 ms", more=f'program = "osu_bcast"\n{more}'
    )
    path = folder / "references.toml"
    path.write_text(path.read_text() + entry)
    with pytest.raises(ConfigError, match=said) as caught:
        load_site(str(folder))
    assert expected in str(caught.value.expected)
    assert caught.value.line == path.read_text().splitlines().index(more) + 1


def test_a_number_of_ranks_stands_once(folder: Path) -> None:
    """Two legs of one name would share a folder."""
    path = folder / "site.toml"
    text = path.read_text()
    before = next(line for line in text.splitlines() if line.startswith("ranks_per_node"))
    path.write_text(text.replace(before, "ranks_per_node = [2, 1, 2]"))
    with pytest.raises(ConfigError, match="ranks_per_node") as caught:
        load_site(str(folder))
    assert caught.value.expected == "each number once"
