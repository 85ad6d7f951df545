"""Each launcher is told a layout in its own words; the real ones are asked on the cluster."""

from __future__ import annotations

import subprocess

import pytest

from fabricproof.stacks.launch import OWN_LAUNCHER, Layout, layout_options, naming_the_nodes

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


def test_only_pmix_is_told_that_the_jobs_nodes_are_those_of_the_step() -> None:
    told = naming_the_nodes(("srun", "--mpi=pmix_v4", "-N2"), ("n3", "n1"))
    assert told[2:] == ("srun", "--mpi=pmix_v4", "-N2")
    listed = """printf '%s\\n' n1 n2 n3 n11"""  # as Slurm lists the nodes of the job
    line = told[1].replace('scontrol show hostnames "$SLURM_JOB_NODELIST"', listed)
    ended = subprocess.run(
        ["bash", "-c", f'{line}; echo "$SLURM_JOB_NODELIST"'], capture_output=True, check=False
    )
    assert ended.stdout == b"n1,n3\n", ended.stderr
    assert naming_the_nodes(("srun", "--mpi=pmi2"), ("n3",)) == ("srun", "--mpi=pmi2")
    assert naming_the_nodes(("mpirun",), ("n3",)) == ("mpirun",)
