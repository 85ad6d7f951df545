"""Legs with buffers on GPUs as they are planned: where, with which options, held against what."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pretended_build import make_built

from fabricproof.benchmarks.parsers import parse_text
from fabricproof.core.errors import ConfigError
from fabricproof.core.measure import Verdict
from fabricproof.job.evidence.leg_folder import read_table
from fabricproof.job.leg import Leg, read_plan, write_plan
from fabricproof.job.outcome import judge_leg
from fabricproof.physics import bound
from fabricproof.rfm.families.gpus import bus_plan, pair_plan, why_no_bus, why_no_gpus
from fabricproof.rfm.legs.leg import LegPlanner
from fabricproof.site import GpuSpec, Site, load_site
from fabricproof.stacks.family import bus_environment, gpu_environment
from fabricproof.stacks.stack import resolve
from fabricproof.traffic import PathProof, PathState
from fabricproof.verdict.table import judge_table
from leg_folders import leave, make_leg

sys.path.append(str(Path(__file__).parents[1] / "benchmarks"))
from nccl_outputs import Made, text_of

SITES = Path(__file__).parents[2] / "site-configs"

FOUR = {"kind": "cuda", "per_node": 4, "pcie": "5.0x16", "direct": True}


def planner(
    program: str = "osu_bw", stack: str = "openmpi-cuda", suite: str = "osu", **gpus: Any
) -> LegPlanner:
    site = load_site(str(SITES / "infiniband-ndr"))
    partition = site.partition("gpu").model_copy(
        update={"gpus": GpuSpec.model_validate({**FOUR, **gpus})}
    )
    return LegPlanner(
        site=site,
        partition=partition,
        stack=resolve(site, partition, site.stack(stack), assumed=True),
        fabric="ndr",
        suite=suite,
        program=program,
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
    assert leg.environment["UCX_CUDA_IPC_ENABLE_MNNVL"] == "n"
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
    assert why_no_gpus(cuda.partition, cuda.stack.spec) == ""
    plain = planner(stack="mvapich")
    assert "stack mvapich takes no buffers on GPUs" in why_no_gpus(
        plain.partition, plain.stack.spec
    )
    named = planner(stack="mvapich", stacks=["mvapich"])
    assert why_no_gpus(named.partition, named.stack.spec) == ""


def test_the_ports_have_no_buffers_on_gpus() -> None:
    plan = pair_plan(replace(planner(), suite="osu-mpi4py"))
    assert not plan.legs
    assert "OSU's C programs have" in plan.reason


def test_imb_has_both_buffers_on_gpus() -> None:
    plan = pair_plan(planner("GPU/PingPong", suite="imb"))
    assert [leg.name for leg in plan.legs] == ["mlx5_0:1.DD", "mlx5_3:1.DD"]
    leg = plan.legs[0]
    assert leg.program == "PingPong"
    assert leg.required == ("device_bandwidth_4MiB",)
    (argv,) = leg.commands
    assert argv[:2] == ("IMB-MPI1-GPU", "PingPong")
    assert argv[-2:] == ("-mem_alloc_type", "device")


def test_imb_that_spack_built_has_no_gpu_binary_and_is_nothing_that_was_lost(
    tmp_path: Path,
) -> None:
    stack = planner().stack
    built = make_built("openmpi-cuda", tmp_path)
    built = replace(built, programs={**built.programs, "imb": built.programs["osu"]})
    stack = replace(stack, built=built, absent="")
    found = stack._built_program("imb", "IMB-MPI1-GPU")
    assert (found.argv, found.lost) == (None, False)
    assert "built without IMB-MPI1-GPU" in found.reason


# nccl-tests.


def with_nccl(program: str = "all_reduce_perf", **gpus: Any) -> LegPlanner:
    found = planner(program, suite="nccl-tests", **gpus)
    suites = {"suites": {"nccl-tests": "/opt/nccl-tests/build"}}
    stack = replace(found.stack, spec=found.stack.spec.model_copy(update=suites), assumed=True)
    return replace(found, stack=stack)


def test_nccl_goes_over_efa_by_its_plugin() -> None:
    site = load_site(str(SITES / "cloud-efa"))
    gpus = {"gpus": GpuSpec.model_validate(FOUR), "stacks": ["openmpi"]}
    partition = site.partition("compute").model_copy(update=gpus)
    suites = {"osu": "PATH", "nccl-tests": "/opt/nccl-tests"}
    spec = site.stack("openmpi").model_copy(update={"suites": suites})
    (leg,) = bus_plan(
        LegPlanner(
            site=site,
            partition=partition,
            stack=resolve(site, partition, spec, assumed=True),
            fabric="efa0",
            suite="nccl-tests",
            program="all_reduce_perf",
        )
    ).legs
    told = {"NCCL_NET": "AWS Libfabric", "FI_PROVIDER": "efa", "FI_EFA_IFACE": "efa_0"}
    assert told.items() <= leg.environment.items()


def test_nccl_takes_all_gpus_of_all_nodes_over_all_rails_and_no_other() -> None:
    (leg,) = bus_plan(with_nccl()).legs
    assert leg.name == "mlx5_0:1+mlx5_3:1.2x4"
    assert (leg.num_nodes, leg.ranks_per_node, leg.spread) == (2, 4, True)
    assert leg.environment["NCCL_IB_HCA"] == "=mlx5_0:1,mlx5_3:1"
    assert leg.environment["NCCL_NET"] == "IB"
    assert leg.required == ("device_busbw_128MiB",)
    assert leg.commands[0][0] == "/opt/nccl-tests/build/all_reduce_perf"
    assert leg.expected_sizes[0] == 1024
    assert leg.expected_sizes[-1] == 128 * 2**20
    fabric = leg.rules().fabric
    assert fabric is not None
    assert fabric.num_rails == 2
    assert fabric.gpus is not None
    assert fabric.gpus.num_gpus == 4
    assert leg.limit_seconds >= 60


def test_what_nccl_must_move_is_what_no_algorithm_does_with_less() -> None:
    sizes = sum(1024 << step for step in range(18))
    (ring,) = bus_plan(with_nccl("sendrecv_perf")).legs
    # each size 20 times out of place and 20 in place, one message of each node to the next
    assert ring.traffic.at_least == ((40 * sizes, 40 * sizes, 0),) * 2
    (summed,) = bus_plan(with_nccl()).legs
    assert summed.traffic.at_least
    assert all(40 * sizes / 2 <= sent <= 2 * 40 * sizes for sent, *_ in summed.traffic.at_least)


def test_sockets_are_named_too_and_what_nccl_does_not_speak_is_a_reason() -> None:
    assert bus_environment("tcp", ["rail0"])["NCCL_SOCKET_IFNAME"] == "=rail0"
    with pytest.raises(ConfigError, match="no network module"):
        bus_environment("opa", ["hfi1_0:1"])


def test_nccl_needs_gpus_of_its_kind_and_two_nodes() -> None:
    partition = planner().partition
    assert why_no_bus(partition) == ""
    one = partition.model_copy(update={"num_nodes": 1})
    assert "num_nodes" in why_no_bus(one)
    other = partition.model_copy(update={"gpus": GpuSpec(kind="level-zero")})
    assert "level-zero" in why_no_bus(other)
    none = partition.model_copy(update={"gpus": None})
    assert "has no gpus" in why_no_bus(none)


def left(folder: Path, leg: Leg, text: str) -> Leg:
    folder.mkdir()
    (folder / "stdout").write_text(text)
    return leg


@pytest.mark.parametrize("version", ["2.19.6", "2.13.9"])
def test_of_two_tables_the_one_out_of_place_is_the_legs_with_or_without_its_name(
    tmp_path: Path, version: str
) -> None:
    (leg,) = bus_plan(with_nccl("sendrecv_perf")).legs
    made = Made(
        name="sendrecv", here=4, gb_s=90.0, least=1024, most=2**27, factor=2, version=version
    )
    table, trouble = read_table(tmp_path / "a", left(tmp_path / "a", leg, text_of(made)))
    assert trouble is None
    assert table is not None
    assert (table.program, table.attributes["placement"]) == ("sendrecv_perf", "out-of-place")
    cut = replace(made, most=2**20)
    assert read_table(tmp_path / "b", left(tmp_path / "b", leg, text_of(cut)))[0] is None


@pytest.mark.parametrize(
    ("gb_s", "gpus", "verdict", "words"),
    [
        (92.0, {}, Verdict.PASS, ""),
        (50.0, {}, Verdict.FAIL, "below the lower bound"),
        (50.0, {"direct": None}, Verdict.UNJUDGED, "GPUDirect is possible here is not stated"),
        (92.0, {"direct": None}, Verdict.PASS, ""),
        (250.0, {}, Verdict.INVALID, "ceiling"),
        (26.0, {"pcie": "3.0x8"}, Verdict.PASS, "GPU's slot"),
    ],
)
def test_a_bus_bandwidth_is_held_against_the_rails_and_the_slots_of_the_gpus(
    gb_s: float, gpus: dict[str, Any], verdict: Verdict, words: str
) -> None:
    (leg,) = bus_plan(with_nccl(**gpus)).legs
    made = Made(here=4, gb_s=gb_s, least=1024, most=2**27, factor=2, start_us=20.0)
    proof = PathProof(state=PathState.PROVEN, reason="")
    report = judge_table(parse_text(text_of(made))[0], leg.rules(), proof)
    assert report.verdict is verdict
    assert words in report.quantities[-1].reason


def test_one_rail_of_our_own_run_is_known_to_be_all() -> None:
    (leg,) = bus_plan(with_nccl()).legs
    fabric = leg.rules().fabric
    assert fabric is not None
    rules = replace(leg.rules(), fabric=replace(fabric, num_rails=1))
    table = parse_text(text_of(Made(here=4, gb_s=47.0, most=2**27, start_us=20.0)))[0]
    proof = PathProof(state=PathState.PROVEN, reason="")
    assert judge_table(table, rules, proof).verdict is Verdict.PASS


def test_a_program_that_put_its_buffers_elsewhere_measured_nothing_that_was_due(
    tmp_path: Path,
) -> None:
    leg = make_leg(required=("device_bandwidth_4MiB",), ask=("gpus", "cuda"))
    leave(tmp_path, leg)  # a table of buffers of hosts
    report = judge_leg(tmp_path, leg).report
    assert report.verdict is Verdict.MISSING
    assert [each.name for each in report.quantities if each.verdict is Verdict.MISSING] == [
        "device_bandwidth_4MiB"
    ]


def test_a_node_that_shows_no_gpu_makes_the_leg_skipped_with_its_words(tmp_path: Path) -> None:
    leg = make_leg(required=("device_bandwidth_4MiB",), ask=("gpus", "cuda"))
    folder = leave(tmp_path, leg, stdout="", ranks=())
    (folder / "no.1").write_text("n2 shows this job no GPU\n")
    report = judge_leg(tmp_path, leg).report
    assert report.verdict is Verdict.SKIPPED
    assert report.quantities[0].reason == "n2 shows this job no GPU"


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ('gpus = { kind = "cuda", stacks = ["no-such"] }', "an unknown stack"),
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
