"""Near and far: the scripts that ask and bind on pretended nodes, and what is judged of them."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest
from looks import bandwidths, look_at

import fabricproof.job
from fabricproof.core.findings import texts_of
from fabricproof.core.measure import Verdict
from fabricproof.job.outcome import Outcome, judge_leg
from fabricproof.job.relation import Bind, Ratio, RatioSide, Relation
from fabricproof.job.relations.judge import judge_relation, legs_to_repeat
from fabricproof.job.relations.measures import why_loose
from fabricproof.verdict.value import at_least
from leg_folders import leave, make_leg

SCRIPTS = Path(fabricproof.job.__file__).parent

TOLD = "bind near\nrail mlx4_0:1\nhome 1\nnuma 0 0-9\nnuma 1 10-19\nchosen 19\nran 19\n"


def make_node(folder: Path, *numa: str, home: str | None = "1", rail: str = "rail0") -> Path:
    """Return a sysfs with NUMA nodes of these CPUs and a rail on node ``home``."""
    for number, cpus in enumerate(numa):
        node = folder / "devices" / "system" / "node" / f"node{number}"
        node.mkdir(parents=True)
        (node / "cpulist").write_text(f"{cpus}\n")
    device = folder / "class" / "net" / rail / "device"
    device.mkdir(parents=True)
    if home is not None:
        (device / "numa_node").write_text(f"{home}\n")
    return folder


def run(script: str, *arguments: str, leg: Path, **environment: str) -> int:
    clean = {"PATH": os.environ["PATH"], "FABRICPROOF_LEG": str(leg), "HOSTNAME": "n1"}
    done = subprocess.run(
        ["bash", str(SCRIPTS / script), *arguments],
        env={**clean, **environment},
        timeout=30,
        check=False,
    )
    return done.returncode


@pytest.fixture
def leg(tmp_path: Path) -> Path:
    (tmp_path / "leg").mkdir()
    return tmp_path / "leg"


TWO = ("0-3", "4-7")


@pytest.mark.parametrize(
    ("numa", "home", "rail", "cpus", "said"),
    [
        (("0-3",), "0", "rail0", "0-7", "one NUMA node on"),
        *((TWO, home, "rail0", "0-7", "is not known") for home in ("-1", None)),
        # a rail that is gone is a fault and no reason to skip
        *((TWO, "1", rail, "0-7", "") for rail in ("rail9", "mlx5_9:1")),
        # a job with CPUs on one side only
        *((TWO, "1", "rail0", cpus, f"may use CPUs {cpus} of") for cpus in ("0-3", "5")),
        # two sockets and a known home
        ((*TWO, ""), "1", "rail0", "0-7", ""),
    ],
)
def test_a_node_says_whether_near_and_far_differ(
    tmp_path: Path, leg: Path, numa: tuple[str, ...], home: str | None, rail: str, cpus: str,
    said: str,
) -> None:  # fmt: skip
    sys, proc = make_node(tmp_path / "sys", *numa, home=home), _allowed(tmp_path / "proc", cpus)
    asked = {"FABRICPROOF_SYS": str(sys), "FABRICPROOF_PROC": proc, "PMIX_RANK": "1"}
    assert run("ask.sh", "two_sockets", rail, leg=leg, **asked) == 0
    if said:
        assert said in (leg / "no.1").read_text()
    else:
        run("ask.sh", "settle", leg=leg)
        assert list(leg.iterdir()) == []


def _allowed(folder: Path, cpus: str) -> str:
    (folder / "self").mkdir(parents=True)
    (folder / "self" / "status").write_text(f"Name:\tx\nCpus_allowed_list:\t{cpus}\n")
    return str(folder)


ROUTES = """\
Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\t\tMTU\tWindow\tIRTT
rail0\t000013C6\t00000000\t0001\t0\t0\t0\t00FFFFFF\t0\t0\t0
rail1\t000113C6\t00000000\t0001\t0\t0\t0\t00FFFFFF\t0\t0\t0
"""


def _reach(tmp_path: Path, leg: Path, *rails: str, **more: str) -> list[str]:
    (tmp_path / "net").mkdir(exist_ok=True)
    (tmp_path / "net" / "route").write_text(ROUTES)
    for rank in ("0", "1"):
        node = {"SLURMD_NODENAME": f"vc{int(rank) + 1}", "PMIX_RANK": rank}
        run("ask.sh", "reach", *rails, leg=leg, FABRICPROOF_PROC=str(tmp_path), **node, **more)
    run("ask.sh", "settle", leg=leg)
    return [path.read_text() for path in sorted(leg.glob("no.*"))]


@pytest.mark.parametrize(
    "rails", [("rail1", "rail1"), ("rail0", "rail7"), ("mlx5_0:1", "mlx5_1:1")]
)
def test_one_network_or_a_rail_without_an_address_is_no_reason_to_skip(
    tmp_path: Path, leg: Path, rails: tuple[str, str]
) -> None:
    assert _reach(tmp_path, leg, *rails, FABRICPROOF_SYS=str(tmp_path / "sys")) == []


def test_rails_of_two_networks_say_both_addresses(tmp_path: Path, leg: Path) -> None:
    (said,) = _reach(tmp_path, leg, "rail0", "rail1")
    assert "rail0 of vc1 is in 198.19.0.0 mask 255.255.255.0" in said
    assert "rail1 of vc2 is in 198.19.1.0" in said


@pytest.mark.parametrize("says", ["parent", "ports/1/gid_attrs/ndevs/0"])
def test_roce_ports_are_in_the_networks_of_their_interfaces(
    tmp_path: Path, leg: Path, says: str
) -> None:
    for number in (0, 1):
        file = tmp_path / "sys" / "class" / "infiniband" / f"rxe{number}" / says
        file.parent.mkdir(parents=True)
        file.write_text(f"rail{number}\n")
    (said,) = _reach(tmp_path, leg, "rxe0:1", "rxe1:1", FABRICPROOF_SYS=str(tmp_path / "sys"))
    assert "rxe0:1 of vc1 is in 198.19.0.0 mask 255.255.255.0, rxe1:1 of vc2 is in" in said


def test_a_leg_that_a_node_refuses_is_skipped_and_so_is_its_relation(tmp_path: Path) -> None:
    near, far = make_leg(name="near"), make_leg(name="far")
    for each in (near, far):
        folder = leave(tmp_path, each, "", ranks=())
        (folder / "no.0").write_text("one NUMA node on n1: near and far are the same\n")
        (folder / "no.1").write_text("one NUMA node on n2: near and far are the same\n")
    outcomes = [judge_leg(tmp_path, each) for each in (near, far)]
    relation = judge_relation(RELATION, outcomes)
    for outcome in (*outcomes, relation):
        assert outcome.report.verdict is Verdict.SKIPPED
        assert "one NUMA node on n1" in outcome.report.quantities[0].reason
    assert legs_to_repeat([RELATION], outcomes) == frozenset()


def test_a_launcher_that_fails_to_ask_is_missing_not_skipped(tmp_path: Path) -> None:
    folder = leave(tmp_path, make_leg(), "", status="1\n", stderr="srun: error\n", ranks=())
    (folder / "no.0").write_text("one NUMA node on n1\n")
    assert judge_leg(tmp_path, make_leg()).report.verdict is Verdict.MISSING


def test_a_rank_told_nothing_keeps_its_cpus_and_its_status_is_passed_on(
    tmp_path: Path, leg: Path
) -> None:
    sys = make_node(tmp_path / "sys", "0", "1")
    status = run(
        "bind.sh", "as_launched", "rail0", "sh", "-c", "sleep 0.3; exit 7",
        leg=leg, FABRICPROOF_SYS=str(sys), PMIX_RANK="3", FABRICPROOF_PART="1",
    )  # fmt: skip
    told = (leg / "bind.3.1").read_text().splitlines()
    assert status == 7
    assert {"bind as_launched", "home 1", "numa 0 0", "numa 1 1"} <= {*told}


@pytest.mark.parametrize("bind", list(Bind))
def test_a_bound_rank_runs_where_it_was_sent(tmp_path: Path, leg: Path, bind: Bind) -> None:
    mine = sorted(os.sched_getaffinity(0))
    if len(mine) < 2:
        pytest.skip("one CPU: nothing is far from it")
    sys = make_node(tmp_path / "sys", str(mine[0]), ",".join(map(str, mine[1:])))
    run("bind.sh", bind, "rail0", "sleep", "0.5", leg=leg, FABRICPROOF_SYS=str(sys))
    path = leg / "bind.0.0"
    look = look_at("near", bandwidths({1: 1.0}), folder=leg)
    assert "1 ranks said 1 times where they ran, 2 were due" in why_loose(look, bind)
    (leg / "bind.1.0").write_text(path.read_text())
    assert why_loose(look, bind) == ""
    twice = replace(look, leg=replace(look.leg, commands=(("sleep", "0.5"),) * 2))
    assert why_loose(twice, bind) == "2 ranks said 2 times where they ran, 4 were due"


RELATION = Relation(
    name="near_over_far",
    what=Ratio(
        over=RatioSide(legs=("near",), quantity="bandwidth", sizes=(4194304,)),
        under=RatioSide(legs=("far",), quantity="bandwidth", sizes=(4194304,)),
        reference=at_least(1.0, unit="x", tolerance=0.05, origin="its own socket"),
        held={"near": Bind.NEAR, "far": Bind.FAR},
        names={"near": "near", "far": "far"},
    ),
    legs=("near", "far"),
    suite="osu",
    program="osu_bw",
)


def _looks(
    tmp_path: Path, near: float, far: float, ran: Mapping[str, str] = MappingProxyType({})
) -> dict[str, Outcome]:
    looks = {}
    for name, value in (("near", near), ("far", far)):
        folder = tmp_path / name
        folder.mkdir()
        cpus = ran.get(name, "19" if name == "near" else "9")
        text = TOLD.replace("bind near", f"bind {name}").replace("ran 19", f"ran {cpus}")
        for rank in (0, 1):
            (folder / f"bind.{rank}.0").write_text(text)
        looks[name] = look_at(name, bandwidths({4194304: value}), folder=folder)
    return looks


@pytest.mark.parametrize(
    ("near", "far", "verdict", "said"),
    [  # document 000: near wins
        (6300, 5600, Verdict.PASS, "best first: near 6.3 GB/s, far 5.6 GB/s"),
        (5600, 6300, Verdict.FAIL, "best first: far 6.3 GB/s, near 5.6 GB/s"),
    ],
)
def test_near_must_win_and_the_report_names_who_did(
    tmp_path: Path, near: float, far: float, verdict: Verdict, said: str
) -> None:
    report = judge_relation(RELATION, list(_looks(tmp_path, near, far).values())).report
    assert (report.verdict, texts_of(report.findings)) == (verdict, [said])
    assert report.quantities[0].value == pytest.approx(near / far)


@pytest.mark.parametrize(
    ("leg_name", "cpus"), [("near", "0-19"), ("far", "10-19"), ("far", "unknown")]
)
def test_a_binding_that_did_not_hold_leaves_nothing_green(
    tmp_path: Path, leg_name: str, cpus: Any
) -> None:
    report = judge_relation(
        RELATION, list(_looks(tmp_path, 6300, 5600, {leg_name: cpus}).values())
    ).report
    assert report.verdict is Verdict.UNJUDGED
    assert f"leg {leg_name}: rank 0 was not held {leg_name}" in report.quantities[0].reason


# GPUs.


@pytest.mark.parametrize(
    ("kind", "file"), [("cuda", "nvidia0"), ("rocm", "kfd"), ("level-zero", "dri/renderD128")]
)
def test_a_node_without_the_gpu_that_the_leg_needs_says_so(
    leg: Path, tmp_path: Path, kind: str, file: str
) -> None:
    devices = tmp_path / "dev"
    (devices / "dri").mkdir(parents=True)
    (devices / "nvidiactl").touch()  # the driver is there, and no GPU
    asked = {"leg": leg, "FABRICPROOF_DEV": str(devices), "PMIX_RANK": "1"}
    assert run("ask.sh", "gpus", kind, **asked) == 0  # type: ignore[arg-type]
    assert (leg / "no.1").read_text().startswith("n1 shows this job no GPU: there is no ")
    (leg / "no.1").unlink()
    (devices / file).touch()
    assert run("ask.sh", "gpus", kind, **asked) == 0  # type: ignore[arg-type]
    assert not (leg / "no.1").exists()
