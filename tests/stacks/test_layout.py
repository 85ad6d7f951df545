"""Each launcher is told a layout in its own words; the real ones are asked on the cluster."""

from __future__ import annotations

import pytest

from fabricproof.stacks.launch import OWN_LAUNCHER, Layout, layout_options

PAIR = Layout(num_nodes=2, ranks_per_node=4)
NAMED = Layout(num_nodes=2, ranks_per_node=4, nodes=("n3", "n1"))


@pytest.mark.parametrize("family", sorted(OWN_LAUNCHER))
def test_srun_is_told_nodes_ranks_and_blocks_whatever_the_family(family: str) -> None:
    options = layout_options(family, "srun", NAMED)
    assert options == (
        "--nodes=2",
        "--ntasks=8",
        "--ntasks-per-node=4",
        "--nodelist=n3,n1",
        "--distribution=block",
    )
    assert not any("nodelist" in each for each in layout_options(family, "srun", PAIR))


def test_open_mpis_own_launcher_fills_each_node_before_the_next() -> None:
    assert layout_options("openmpi", "mpirun", PAIR) == ("--map-by", "ppr:4:node")
    named = layout_options("openmpi", "mpirun", NAMED)
    assert named == ("--host", "n3:4,n1:4", "--map-by", "ppr:4:node")


@pytest.mark.parametrize("family", ["mpich", "intelmpi", "mvapich"])
def test_hydra_takes_hosts_and_processes_per_node(family: str) -> None:
    assert layout_options(family, "mpiexec", PAIR) == ("-ppn", "4")
    assert layout_options(family, "mpiexec", NAMED) == ("-hosts", "n3,n1", "-ppn", "4")


def test_a_layout_counts_its_ranks() -> None:
    assert PAIR.num_ranks == 8
    assert Layout().num_ranks == 2
