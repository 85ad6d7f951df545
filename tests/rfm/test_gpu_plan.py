"""Legs with buffers on GPUs as they are planned: where, with which options, held against what."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from fabricproof.core.errors import ConfigError
from fabricproof.job.leg import Leg, read_plan, write_plan
from fabricproof.physics import bound
from fabricproof.rfm.legs.gpu import pair_plan, why_no_gpus
from fabricproof.rfm.legs.leg import LegPlanner
from fabricproof.site import GpuSpec, Site, load_site
from fabricproof.stacks.family import gpu_environment

SITES = Path(__file__).parents[2] / "site-configs"

FOUR = {"kind": "cuda", "per_node": 4, "pcie": "5.0x16", "direct": True}


def planner(program: str = "osu_bw", stack: str = "openmpi-cuda", **gpus: Any) -> LegPlanner:
    site = load_site(str(SITES / "infiniband-ndr"))
    partition = site.partition("gpu").model_copy(
        update={"gpus": GpuSpec.model_validate({**FOUR, **gpus})}
    )
    return LegPlanner(
        site=site,
        partition=partition,
        stack=site.stack(stack),
        fabric="ndr",
        suite="osu",
        program=program,
        assumed=True,
    )


def legs(program: str = "osu_bw", **gpus: Any) -> dict[str, Leg]:
    return {leg.name: leg for leg in pair_plan(planner(program, **gpus)).legs}


def test_each_rail_is_measured_with_buffers_on_both_gpus_and_on_either() -> None:
    assert list(legs()) == [
        f"{rail}.{places}" for rail in ("mlx5_0:1", "mlx5_3:1") for places in ("DD", "HD", "DH")
    ]


@pytest.mark.parametrize(
    ("program", "due"),
    [
        ("osu_bw", "host_to_device_bandwidth_4MiB"),
        ("osu_bibw", "host_to_device_bandwidth_4MiB"),
        ("osu_latency", "host_to_device_latency_1B"),
    ],
)
def test_what_is_due_has_the_name_of_its_buffers(program: str, due: str) -> None:
    leg = legs(program)["mlx5_0:1.HD"]
    assert leg.required == (due,)
    assert all(argv[0].endswith(program) for argv in leg.commands)
    assert all(argv[-4:] == ("-d", "cuda", "H", "D") for argv in leg.commands)
    assert leg.ask == ("gpus", "cuda")


def test_the_slot_of_the_gpu_is_a_ceiling_also_after_the_plan_was_read_back(tmp_path: Path) -> None:
    narrow = legs(pcie="3.0x8")["mlx5_0:1.DD"]
    write_plan(tmp_path, [narrow])
    fabric = read_plan(tmp_path).legs[0].rules().fabric
    assert fabric is not None
    assert fabric.gpus is not None
    assert (fabric.gpus.direct, fabric.gpus.num_gpus) == (True, 1)
    assert bound(fabric).resource == "GPU's slot"
    unstated = legs(pcie=None, direct=None)["mlx5_0:1.DD"].rules().fabric
    assert unstated is not None
    assert unstated.gpus is not None
    assert (unstated.gpus.slot, unstated.gpus.direct) == (None, None)
    assert bound(unstated).resource == "link"


def test_ucx_may_copy_to_a_gpu_and_carries_nothing_else_beside_the_path() -> None:
    leg = legs()["mlx5_0:1.DD"]
    assert leg.environment["UCX_TLS"] == "rc,ud,self,cuda"
    assert leg.environment["UCX_NET_DEVICES"] == "mlx5_0:1"
    assert gpu_environment("openmpi", "rocm", {"UCX_TLS": "ud,self"})["UCX_TLS"] == "ud,self,rocm"
    assert gpu_environment("openmpi", "rocm", {}) == {}
    assert gpu_environment("intelmpi", "cuda", {}) == {"I_MPI_OFFLOAD": "1"}
    with pytest.raises(ConfigError, match="unknown MPI family"):
        gpu_environment("lam", "cuda", {})


def test_no_gpus_no_legs_and_each_with_its_reason() -> None:
    site: Site = load_site(str(SITES / "vcluster"))
    reason = why_no_gpus(site.partitions[0], site.stacks[0])
    assert reason == "partition compute has no GPUs: site.toml has no gpus there"
    cuda = planner()
    assert why_no_gpus(cuda.partition, cuda.stack) == ""
    plain = planner(stack="mvapich")
    assert "stack mvapich takes no buffers on GPUs" in why_no_gpus(plain.partition, plain.stack)
    named = planner(stack="mvapich", stacks=["mvapich"])
    assert why_no_gpus(named.partition, named.stack) == ""


def test_the_ports_have_no_buffers_on_gpus() -> None:
    plan = pair_plan(replace(planner(), suite="osu-mpi4py"))
    assert not plan.legs
    assert "OSU's C programs have" in plan.reason


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ('gpus = { kind = "cuda", stacks = ["no-such"] }', "name another stack"),
        ('gpus = { kind = "cuda", pcie = "9.0x3" }', "unknown PCIe slot"),
        ('gpus = { kind = "tpu" }', "kind"),
        ('gpus = { kind = "cuda", per_node = 0 }', "per_node"),
    ],
)
def test_gpus_that_cannot_be_are_one_message(tmp_path: Path, line: str, words: str) -> None:
    folder = tmp_path / "site"
    folder.mkdir()
    for each in (SITES / "infiniband-ndr").glob("*.toml"):
        text = each.read_text()
        if each.name == "site.toml":
            at = 'fabrics = ["ndr"]\n'
            assert at in text
            text = text.replace(at, f"{at}{line}\n")
        (folder / each.name).write_text(text)
    with pytest.raises(ConfigError) as caught:
        load_site(str(folder))
    assert words in str(caught.value)
    assert "site.toml" in str(caught.value)
