"""Legs with buffers on GPUs as they are planned: where, with which options, held against what."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from plans import FOUR_GPUS, SITES, due, gpu_planner, plan_of, planner, why_not
from pretended_build import make_built

from fabricproof.benchmarks.parsers import parse_text
from fabricproof.core.errors import ConfigError
from fabricproof.core.measure import Verdict
from fabricproof.job.evidence.leg_folder import read_table
from fabricproof.job.leg import Leg, read_plan, write_plan
from fabricproof.job.outcome import judge_leg
from fabricproof.physics import bound
from fabricproof.rfm.families.gpus import BusBenchmark, GpuBenchmark
from fabricproof.rfm.staging import digest_of_program
from fabricproof.site import GpuSpec, load_site
from fabricproof.stacks.family import bus_environment, gpu_environment
from fabricproof.traffic import PathProof, PathState
from fabricproof.verdict.table import judge_table
from leg_folders import leave, make_leg

sys.path.append(str(Path(__file__).parents[1] / "benchmarks"))
from nccl_outputs import Made, text_of

PROVEN = PathProof(state=PathState.PROVEN, reason="")


def legs(program: str = "osu_bw", **gpus: Any) -> dict[str, Leg]:
    return due(plan_of(GpuBenchmark, gpu_planner(program, **gpus)))


def bus(program: str = "all_reduce_perf", **gpus: Any) -> Leg:
    (leg,) = plan_of(BusBenchmark, gpu_planner(program, **gpus)).legs
    return leg


def test_each_rail_is_measured_with_buffers_on_both_gpus_and_on_either() -> None:
    assert list(legs()) == [
        f"{rail}.{places}" for rail in ("mlx5_0:1", "mlx5_3:1") for places in ("DD", "HD", "DH")
    ]


@pytest.mark.parametrize(
    ("program", "quantity"),
    [
        ("osu_bw", "host_to_device_bandwidth_4MiB"),
        ("osu_bibw", "host_to_device_bandwidth_4MiB"),
        ("osu_latency", "host_to_device_latency_1B"),
    ],
)
def test_what_is_due_has_the_name_of_its_buffers(program: str, quantity: str) -> None:
    leg = legs(program)["mlx5_0:1.HD"]
    assert leg.required == (quantity,)
    assert all(argv[0].endswith(program) for argv in leg.commands)
    assert all(argv[-4:] == ("-d", "cuda", "H", "D") for argv in leg.commands)
    assert leg.ask == ("gpus", "cuda")


def test_a_rail_is_measured_with_the_gpu_that_the_site_says_is_beside_it() -> None:
    """Every rail's leg used the node's first GPU, whatever fabric.toml said."""
    own = gpu_planner()
    rails = [own.spec.rails[0], own.spec.rails[1].model_copy(update={"gpu": 3})]
    fabric = own.spec.model_copy(update={"rails": rails})
    own = replace(own, site=replace(own.site, fabrics=(fabric,)))
    plan = due(plan_of(GpuBenchmark, own))
    assert plan["mlx5_0:1.DD"].commands[0][0] != "env", "unknown: the node's first one"
    leg = plan["mlx5_3:1.DD"]
    assert leg.commands[0][:2] == ("env", "CUDA_VISIBLE_DEVICES=3")
    assert leg.environment["FABRICPROOF_PROGRAM"] == own.argv[0]
    assert digest_of_program(leg) == digest_of_program(plan["mlx5_0:1.DD"])


def test_the_slot_of_the_gpu_is_a_ceiling_also_after_the_plan_was_read_back(tmp_path: Path) -> None:
    write_plan(tmp_path, [legs(pcie="3.0x8")["mlx5_0:1.DD"]])
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
    assert gpu_environment("intelmpi", "cuda", {}) == {"I_MPI_OFFLOAD": "1"}
    with pytest.raises(ConfigError, match="unknown MPI family"):
        gpu_environment("lam", "cuda", {})


def test_no_gpus_no_legs_and_each_with_its_reason() -> None:
    for check in (GpuBenchmark, BusBenchmark):
        none = why_not(check, planner("vcluster", "osu", "osu_bw"))
        assert none == "partition compute has no GPUs: site.toml has no gpus there"
    kind = GpuBenchmark.why_not_of_kind
    assert why_not(GpuBenchmark, gpu_planner(), why_not_of_kind=lambda _: "") == ""
    assert kind(None, gpu_planner()) == ""  # type: ignore[arg-type]
    plain = gpu_planner(stack="mvapich")
    assert "takes no buffers on GPUs" in kind(None, plain)  # type: ignore[arg-type]
    named = gpu_planner(stack="mvapich", stacks=["mvapich"])
    assert kind(None, named) == ""  # type: ignore[arg-type]
    plan = plan_of(GpuBenchmark, replace(gpu_planner(), suite="osu-mpi4py"))
    assert "OSU's C programs have" in plan.reason


def test_imb_has_both_buffers_on_gpus(tmp_path: Path) -> None:
    own = gpu_planner("GPU/PingPong")
    plan = due(plan_of(GpuBenchmark, own))
    assert list(plan) == ["mlx5_0:1.DD", "mlx5_3:1.DD"]
    leg = plan["mlx5_0:1.DD"]
    assert (leg.program, leg.required) == ("PingPong", ("device_bandwidth_4MiB",))
    (argv,) = leg.commands
    assert (argv[:2], argv[-2:]) == (
        ("IMB-MPI1-GPU", "PingPong"), ("-mem_alloc_type", "device"),
    )  # fmt: skip
    # One that Spack built without it is nothing that was lost.
    built = make_built("openmpi-cuda", tmp_path)
    built = replace(built, programs={**built.programs, "imb": built.programs["osu"]})
    found = replace(own.stack, built=built, absent="", assumed=False).find("imb", "GPU/PingPong")
    assert (found.argv, found.lost) == (None, False)


# nccl-tests.


def test_nccl_goes_over_efa_by_its_plugin() -> None:
    gpus = GpuSpec.model_validate({**FOUR_GPUS, "stacks": ["openmpi"]})
    suites = {"suites": {"osu": "PATH", "nccl-tests": "/opt/nccl-tests"}}
    own = planner(
        "cloud-efa", "nccl-tests", "all_reduce_perf", "openmpi", stated=suites,
        partition="compute", gpus=gpus,
    )  # fmt: skip
    (leg,) = plan_of(BusBenchmark, replace(own, fabric="efa0")).legs
    told = {"NCCL_NET": "AWS Libfabric", "FI_PROVIDER": "efa", "FI_EFA_IFACE": "efa_0"}
    assert told.items() <= leg.environment.items()


def test_nccl_takes_all_gpus_of_all_nodes_over_all_rails_and_no_other() -> None:
    leg = bus()
    assert leg.name == "mlx5_0:1+mlx5_3:1.2x4"
    assert (leg.num_nodes, leg.ranks_per_node, leg.spread) == (2, 4, True)
    assert leg.environment["NCCL_IB_HCA"] == "=mlx5_0:1,mlx5_3:1"
    assert leg.environment["NCCL_NET"] == "IB"
    assert leg.required == ("device_busbw_128MiB",)
    assert leg.commands[0][0] == "/opt/nccl/all_reduce_perf"
    assert (leg.expected_sizes[0], leg.expected_sizes[-1]) == (1024, 128 * 2**20)
    fabric = leg.rules().fabric
    assert fabric is not None
    assert fabric.gpus is not None
    assert (fabric.num_rails, fabric.gpus.num_gpus) == (2, 4)
    assert leg.limit_seconds >= 60


def test_what_nccl_must_move_is_what_no_algorithm_does_with_less() -> None:
    sizes = sum(1024 << step for step in range(18))
    # Each size 20 times out of place and 20 in place, one message of each node to the next.
    assert bus("sendrecv_perf").traffic.at_least == ((40 * sizes, 40 * sizes, 0),) * 2
    summed = bus().traffic.at_least
    assert summed
    assert all(40 * sizes / 2 <= sent <= 2 * 40 * sizes for sent, *_ in summed)


def test_nccl_needs_gpus_of_its_kind_and_two_nodes() -> None:
    assert bus_environment("tcp", ["rail0"])["NCCL_SOCKET_IFNAME"] == "=rail0"
    with pytest.raises(ConfigError, match="no network module"):
        bus_environment("opa", ["hfi1_0:1"])
    own = gpu_planner("all_reduce_perf")
    for changes, words in (
        ({"num_nodes": 1}, "num_nodes"),
        ({"gpus": GpuSpec(kind="level-zero")}, "level-zero"),
        ({}, ""),
    ):
        partition = own.partition.model_copy(update=changes)
        check = type("Check", (), {})()
        reason = BusBenchmark.why_not_of_kind(check, replace(own, partition=partition))
        assert words in reason
        assert bool(reason) is bool(words)


@pytest.mark.parametrize("version", ["2.19.6", "2.13.9"])
def test_of_two_tables_the_one_out_of_place_is_the_legs_with_or_without_its_name(
    tmp_path: Path, version: str
) -> None:
    def read(name: str, made: Made) -> Any:
        (tmp_path / name).mkdir()
        (tmp_path / name / "stdout").write_text(text_of(made))
        return read_table(tmp_path / name, bus("sendrecv_perf"))

    made = Made(
        name="sendrecv", here=4, gb_s=90.0, least=1024, most=2**27, factor=2, version=version
    )
    table, trouble = read("a", made)
    assert trouble is None
    assert (table.program, table.attributes["placement"]) == ("sendrecv_perf", "out-of-place")
    assert read("b", replace(made, most=2**20))[0] is None


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
    made = Made(here=4, gb_s=gb_s, least=1024, most=2**27, factor=2, start_us=20.0)
    report = judge_table(parse_text(text_of(made))[0], bus(**gpus).rules(), PROVEN)
    assert report.verdict is verdict
    assert words in report.quantities[-1].reason


def test_one_rail_of_our_own_run_is_known_to_be_all() -> None:
    rules = bus().rules()
    assert rules.fabric is not None
    rules = replace(rules, fabric=replace(rules.fabric, num_rails=1))
    table = parse_text(text_of(Made(here=4, gb_s=47.0, most=2**27, start_us=20.0)))[0]
    assert judge_table(table, rules, PROVEN).verdict is Verdict.PASS


def test_a_program_that_put_its_buffers_elsewhere_measured_nothing_that_was_due(
    tmp_path: Path,
) -> None:
    leg = make_leg(required=("device_bandwidth_4MiB",), ask=("gpus", "cuda"))
    leave(tmp_path, leg)  # a table of buffers of hosts
    report = judge_leg(tmp_path, leg).report
    missing = [each.name for each in report.quantities if each.verdict is Verdict.MISSING]
    assert (report.verdict, missing) == (Verdict.MISSING, ["device_bandwidth_4MiB"])


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
    ],
)
def test_gpus_that_cannot_be_are_one_message(tmp_path: Path, line: str, words: str) -> None:
    for each in (SITES / "infiniband-ndr").glob("*.toml"):
        text, at = each.read_text(), 'fabrics = ["ndr"]\n'
        assert at in text or each.name != "site.toml"
        (tmp_path / each.name).write_text(text.replace(at, f"{at}{line}\n"))
    with pytest.raises(ConfigError, match=words) as caught:
        load_site(str(tmp_path))
    assert "site.toml" in str(caught.value)
