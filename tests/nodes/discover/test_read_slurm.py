"""What slurm.sh printed, read."""

from __future__ import annotations

import pytest
from seen_clusters import DATA, cluster

from fabricproof.nodes.discover.cluster import Slurm, read_slurm


def slurm(name: str) -> Slurm:
    found = cluster(name).slurm
    assert found is not None
    return found


def test_the_virtual_cluster_says_what_it_is() -> None:
    seen = slurm("virtual-cluster")
    assert (seen.version, seen.licenses, seen.settings["MpiDefault"]) == (
        "22.05.8",
        ("fabric",),
        "none",
    )
    assert seen.mpi_types == ("pmix", "none", "cray_shasta", "pmi2")
    (partition,) = seen.partitions
    assert (partition.name, partition.num_nodes, partition.cpus) == ("compute", 4, 4)
    assert (partition.limit_minutes, partition.is_default) == (None, True)


def test_the_states_of_a_partition_are_one_partition() -> None:
    cpu = slurm("infiniband-two-rails").partitions[0]
    assert (cpu.num_nodes, cpu.num_usable, cpu.limit_minutes) == (48, 47, 2 * 24 * 60)


def test_a_partition_may_be_down_or_short() -> None:
    partitions = {each.name: each for each in slurm("infiniband-two-rails").partitions}
    assert not partitions["maint"].is_up
    assert partitions["debug"].limit_minutes == 5
    assert not partitions["gpu"].is_default


def test_nodes_that_a_cloud_starts_on_demand_are_usable() -> None:
    (partition,) = slurm("cloud-efa").partitions
    assert partition.num_usable == 8


def test_an_old_srun_lists_its_plugins_with_its_own_name_before_them() -> None:
    assert slurm("two-ports-one-card").mpi_types == ("none", "openmpi", "pmi2")


@pytest.mark.parametrize(
    ("state", "usable"),
    [("idle", 1), ("mix", 1), ("idle*", 0), ("down", 0), ("drain", 0), ("alloc#", 1)],
)
def test_only_nodes_that_run_jobs_count(state: str, usable: int) -> None:
    text = (DATA / "cloud-efa" / "slurm.txt").read_text(encoding="utf-8")
    line = "compute|up|infinite|8|72|idle~|compute-dy-c5n18xlarge-[1-8]"
    assert line in text
    seen = read_slurm(text.replace(line, f"p|up|1:00:00|1|8|{state}|n1"))
    assert seen is not None
    (found,) = seen.partitions
    assert (found.num_usable, found.limit_minutes) == (usable, 60)


def test_no_slurm_and_a_silent_slurm_are_none() -> None:
    assert read_slurm("") is None
    assert cluster("one-machine").slurm is None
    assert "Slurm is installed and does not answer" in cluster("one-machine").troubles


def test_accounts_and_shared_nodes_are_seen() -> None:
    text = (DATA / "virtual-cluster" / "slurm.txt").read_text(encoding="utf-8")
    more = "#== sharing\nPartitionName=compute OverSubscribe=FORCE:4\n#== topology\n"
    bare = text.replace("#== config\n", "#== config\nAccountingStorageType   = (null)\n")
    seen = read_slurm(bare.replace("#== topology\n", more))
    assert seen is not None
    assert seen.traits.accounting == "(null)"
    assert dict(seen.traits.oversubscribe) == {"compute": "FORCE:4"}
