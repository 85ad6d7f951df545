"""The example sites agree with the documents that they come from, and claim no host of ours."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from fabricproof.physics import bound
from fabricproof.site import Site, load_site
from fabricproof.site.model import to_reference

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ("openhpc-ethernet", "infiniband-ndr", "cloud-efa", "fdr-lab", "dual-rail-torus")

EVERY = pytest.mark.parametrize("name", EXAMPLES)


def example(name: str) -> Site:
    return load_site(str(ROOT / "site-configs" / name))


def packages(name: str) -> dict[str, Any]:
    path = ROOT / "site-configs" / name / "spack" / "packages.yaml"
    return yaml.safe_load(path.read_text(encoding="utf-8"))["packages"]


#: site, fabric, rails, what the document prints in MB/s, and where it lies: a ``fine`` number is
#: within a tenth of the ceiling, a ``low`` one is not, an ``impossible`` one is above it
#: (the verdicts of tests/replays).
PUBLISHED = [
    ("openhpc-ethernet", "eth1g", ["eno1"], 116.96, "fine"),
    ("openhpc-ethernet", "eth1g", ["eno1"], 115.62, "fine"),
    ("openhpc-ethernet", "eth40g", ["eth40"], 4986.11, "impossible"),
    ("fdr-lab", "ib0", ["mlx4_0:1"], 6300, "fine"),
    ("fdr-lab", "ib0", ["mlx4_0:1"], 5600, "low"),
    ("fdr-lab", "ib0", ["mlx4_0:1", "mlx4_0:2"], 6500, "fine"),
    ("dual-rail-torus", "ib0", ["mlx4_0:1"], 3867, "fine"),
    ("dual-rail-torus", "ib0", ["mlx4_1:1"], 3376, "fine"),
    ("dual-rail-torus", "ib0", ["mlx4_0:1"], 3376, "low"),
    ("cloud-efa", "eth0", ["eth0"], 1181, "fine"),
    ("cloud-efa", "eth0", ["eth0"], 2853, "impossible"),
    ("cloud-efa", "eth0-many-flows", ["eth0"], 2853, "low"),
    ("cloud-efa", "eth0-many-flows", ["eth0"], 13011, "impossible"),
]


@pytest.mark.parametrize(
    ("name", "fabric", "rails", "value", "where"),
    PUBLISHED,
    ids=[f"{row[0]}-{row[1]}-{len(row[2])}-{row[3]}" for row in PUBLISHED],
)
def test_what_was_published_lies_where_the_replays_say(
    name: str, fabric: str, rails: list[str], value: float, where: str
) -> None:
    site = example(name)
    ceiling = bound(site.fabric(fabric, rails))
    least = (1 - site.spec.tolerance) * ceiling.low_mb_s
    found = "impossible" if value > ceiling.high_mb_s else "fine" if value >= least else "low"
    assert found == where


def test_the_slower_slot_of_the_second_torus_binds() -> None:
    site = example("dual-rail-torus")
    assert bound(site.fabric("ib0", ["mlx4_0:1"])).name == "protocol"
    assert bound(site.fabric("ib0", ["mlx4_1:1"])).name == "slot_packet"


def test_a_core_and_not_the_card_binds_many_flows() -> None:
    capability = example("cloud-efa").fabric("eth0-many-flows", ["eth0"]).capability_mb_s
    assert capability == pytest.approx(25.4 * 125)
    assert 0.85 < 2853 / capability < 1


@EVERY
def test_a_bandwidth_that_a_document_gives_is_possible(name: str) -> None:
    site = example(name)
    for spec in site.references:
        assert spec.origin.startswith("document 00")
        if spec.quantity.startswith("bandwidth"):
            rails = [rail.interface for rail in site.fabric_spec(spec.fabric).rails]
            chosen = rails[: spec.num_rails or 1]
            assert to_reference(spec).value <= bound(site.fabric(spec.fabric, chosen)).high_mb_s


@EVERY
def test_an_example_is_chosen_by_no_host(name: str) -> None:
    assert example(name).spec.hostnames == []


@EVERY
def test_every_stack_of_spack_has_a_recipe(name: str) -> None:
    site = example(name)
    built = [stack for stack in site.stacks if stack.spack]
    assert built
    for stack in built:
        assert (ROOT / "spack-envs" / str(stack.spack) / "spack.yaml").is_file()
        for option in stack.options:
            assert (ROOT / "spack-envs" / "options" / f"{option}.yaml").is_file()


@EVERY
def test_a_stack_without_recipe_says_modules_and_programs(name: str) -> None:
    for stack in example(name).stacks:
        if stack.spack is None:
            assert stack.modules
            assert stack.suites


@EVERY
def test_every_external_has_a_version_and_a_place_and_asks_for_review(name: str) -> None:
    text = (ROOT / "site-configs" / name / "spack" / "packages.yaml").read_text(encoding="utf-8")
    externals = [each for entry in packages(name).values() for each in entry.get("externals", [])]
    assert externals
    for external in externals:
        assert "@" in external["spec"]
        assert external["prefix"].startswith(("/usr", "/opt"))
        (line,) = (line for line in text.splitlines() if external["spec"] in line)
        assert "# review: " in line


@EVERY
def test_slurm_and_drivers_are_never_built(name: str) -> None:
    declared = packages(name)
    assert "slurm" in declared
    for package in ("slurm", "pmix", "rdma-core", "intel-oneapi-mpi"):
        if package in declared:
            assert declared[package]["buildable"] is False
