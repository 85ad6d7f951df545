"""From modules and programs to stacks."""

from __future__ import annotations

import tomllib
from typing import Any

import pytest
from seen_clusters import cluster

from fabricproof.nodes.discover.cluster import Host, Slurm
from fabricproof.nodes.discover.stacks import family_of, find_stacks, version_of
from fabricproof.site.schema import StackSpec
from fabricproof.stacks.wheels import WheelStack, wheel_stacks

SLURM = Slurm(mpi_types=("none", "pmi2", "pmix", "pmix_v4"))


def stacks(
    host: Host, slurm: Slurm | None = SLURM, *provisioned: WheelStack
) -> dict[str, dict[str, Any]]:
    drafts, _ = find_stacks(host, slurm, provisioned)
    found = {}
    for draft in drafts:
        values = tomllib.loads("\n".join(draft.lines))
        StackSpec.model_validate(values)
        assert values["name"] == draft.name
        found[draft.name] = values
    return found


def with_modules(*names: str, **more: Any) -> Host:
    return Host(name="n1", modules=names, pmi2_library="/usr/lib64/libpmi2.so", **more)


@pytest.mark.parametrize(
    ("module", "family"),
    [
        ("openmpi/5.0.3", "openmpi"),
        ("openmpi4/4.1.4", "openmpi"),
        ("OpenMPI/4.1.5-GCC-12.3.0", "openmpi"),
        ("mpi/openmpi-x86_64", "openmpi"),
        ("hpcx-mt-ompi/2.20", "openmpi"),
        ("impi/2021.9.0-intel-compilers-2023.1.0", "intelmpi"),
        ("intel-oneapi-mpi/2021.12.1", "intelmpi"),
        ("intelmpi/2021.13.1", "intelmpi"),
        ("mpich/3.4.3-ofi", "mpich"),
        ("mpi/mpich-x86_64", "mpich"),
        ("mvapich2/2.3.7", "mvapich2"),
        ("mvapich-plus/4.0", "mvapich"),
        ("psmpi/5.9.2-1", "parastation"),
        ("cray-mpich/8.1.29", "craympich"),
        ("mvapich/4.0", "mvapich"),
        ("gcc/12.3.0", None),
        ("intel/2023", None),
        ("mpi4py/3.1.4", None),
    ],
)
def test_a_module_name_tells_its_family(module: str, family: str | None) -> None:
    assert family_of(module) == family


def test_the_newest_module_is_taken_and_the_others_are_said() -> None:
    host = with_modules("openmpi/4.1.6", "openmpi/5.0.10", "openmpi/5.0.9", "osu/7.4")
    drafts, passed_over = find_stacks(host, SLURM, ())
    assert stacks(host)["openmpi"]["modules"] == ["openmpi/5.0.10", "osu/7.4"]
    assert passed_over == [
        "module openmpi/4.1.6: an older openmpi",
        "module openmpi/5.0.9: an older openmpi",
    ]
    assert len(drafts) == 1


def test_mvapich2_is_another_family_than_mvapich() -> None:
    for module, family in (("mvapich2/2.3.7", "mvapich2"), ("mvapich/4.0", "mvapich")):
        assert family in stacks(with_modules(module))


def test_a_launcher_of_its_own_where_srun_lacks_the_pmi() -> None:
    old = Slurm(mpi_types=("none", "openmpi", "pmi2"))
    assert stacks(with_modules("openmpi/5.0.3"), old)["openmpi"]["launcher"] == "mpirun"
    assert "launcher" not in stacks(with_modules("openmpi/5.0.3"))["openmpi"]
    versioned = Slurm(mpi_types=("pmix_v5",))
    assert "launcher" not in stacks(with_modules("openmpi/5.0.3"), versioned)["openmpi"]
    assert stacks(with_modules("mpich/4.1"), versioned)["mpich"]["launcher"] == "mpiexec"


def test_intel_mpi_needs_libpmi2_under_srun() -> None:
    there = with_modules("impi/2021.9")
    gone = Host(name="n1", modules=("impi/2021.9",))
    assert "launcher" not in stacks(there)["intelmpi"]
    assert stacks(gone)["intelmpi"]["launcher"] == "mpirun"
    assert stacks(there)["intelmpi"]["suites"] == {"imb": "PATH"}


@pytest.mark.parametrize(
    ("said", "family", "version"),
    [
        ("mpirun (Open MPI) 4.1.4", "openmpi", "4.1.4"),
        ("Version:                                 4.0.2", "mpich", "4.0.2"),
        ("Intel(R) MPI Library for Linux* OS, Version 2021.9 Build 20230307", "intelmpi", "2021.9"),
    ],
)
def test_the_mpi_on_path_is_a_stack_where_no_module_is(
    said: str, family: str, version: str
) -> None:
    programs = {"mpirun": ("/usr/bin/mpirun", said)}
    found = stacks(Host(name="n1", programs=programs), None)[f"{family}-system"]
    assert (found["family"], found["version"]) == (family, version)


def test_programs_on_path_make_a_stack_whole() -> None:
    programs = {
        "mpirun": ("/usr/bin/mpirun", "mpirun (Open MPI) 4.1.4"),
        "osu_bw": ("/usr/bin/osu_bw", ""),
    }
    found = stacks(Host(name="n1", programs=programs))
    assert list(found) == ["openmpi-system"]
    assert found["openmpi-system"]["suites"] == {"osu": "PATH"}


def test_where_nothing_has_programs_one_stack_is_to_be_built() -> None:
    assert stacks(Host(name="n1"))["openmpi"]["spack"] == "openmpi"
    both = stacks(with_modules("openmpi/5.0.3"))
    assert both["openmpi-spack"]["spack"] == "openmpi"
    assert "suites" not in both["openmpi"]


def test_provisioned_stacks_come_first_and_their_modules_not_again() -> None:
    ours = wheel_stacks()["openmpi5"]
    found = stacks(with_modules("openmpi5/5.0.11", "mpich/4.1"), SLURM, ours)
    assert list(found) == ["openmpi5", "mpich"]
    assert found["openmpi5"]["provisioned"] is True


def test_a_version_is_a_number_with_a_dot() -> None:
    assert version_of("openmpi-x86_64") == "unknown"
    assert version_of("slurm-wlm 22.05.8") == "22.05.8"


def test_the_recorded_clusters_have_the_stacks_that_their_modules_say() -> None:
    seen = cluster("infiniband-two-rails")
    found = stacks(seen.nodes["cpu"], seen.slurm)
    assert list(found) == ["openmpi", "mvapich2", "intelmpi"]
    assert found["openmpi"]["version"] == "5.0.3"
