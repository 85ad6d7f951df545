"""What a check plans, asked without a session of ReFrame."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

from fabricproof.job.leg import Leg, Plan
from fabricproof.job.relation import Ratio, Relation
from fabricproof.rfm.checks.base import FabricBenchmark
from fabricproof.rfm.legs.leg import LegPlanner
from fabricproof.site import GpuSpec, Site, load_site
from fabricproof.stacks.stack import resolve
from fabricproof.stacks.wheels import ports_folder
from fabricproof.verdict.value import Reference

SITES = Path(__file__).parents[2] / "site-configs"
FOUR_GPUS = {"kind": "cuda", "per_node": 4, "pcie": "5.0x16", "direct": True}


def install_ports(root: Path, *stacks: str, programs: str) -> None:
    """Lay mpi4py's ports of ``programs`` out for stacks from wheels: there only in name."""
    for stack in stacks:
        folder = ports_folder(root / stack)
        folder.mkdir(parents=True)
        for program in programs.split():
            (folder / f"{program}.py").touch()


def planner(
    site: Site | str,
    suite: str,
    program: str,
    stack: str | None = None,
    *,
    stated: dict[str, Any] | None = None,
    partition: str | None = None,
    **changes: Any,
) -> LegPlanner:
    """Return a planner on the first fabric of a site's partition.

    ``stated``: keys of the stack that the site states otherwise; ``changes``: of the partition.
    """
    site = load_site(str(SITES / site)) if isinstance(site, str) else site
    spec = site.partition(partition) if partition else site.partitions[0]
    spec = spec.model_copy(update=changes)
    of = site.stack(stack or spec.stacks[0]).model_copy(update=stated or {})
    return LegPlanner(
        site=site,
        partition=spec,
        stack=resolve(site, spec, of, assumed=bool(of.spack)),
        fabric=spec.fabrics[0],
        suite=suite,
        program=program,
    )


def gpu_planner(program: str = "osu_bw", stack: str = "openmpi-cuda", **gpus: Any) -> LegPlanner:
    """Return a planner on the nodes with GPUs of infiniband-ndr."""
    suite = {"GPU/PingPong": "imb", "osu_bw": "osu"}.get(program, "nccl-tests")
    suite = "osu" if program.startswith("osu") else suite
    spec = GpuSpec.model_validate({**FOUR_GPUS, **gpus})
    stated = {"suites": {"nccl-tests": "/opt/nccl"}} if suite == "nccl-tests" else {}
    return planner(
        "infiniband-ndr", suite, program, stack, stated=stated, partition="gpu", gpus=spec
    )


def plan_of(check: type[FabricBenchmark], planner: LegPlanner, **variables: Any) -> Plan:
    """Return what a check of this class plans; ``variables`` are those of the check."""
    return check.plan(_check(planner, variables), planner)


def why_not(check: type[FabricBenchmark], planner: LegPlanner, **variables: Any) -> str:
    """Return why such a check has nothing to measure."""
    return check.why_not(_check(planner, variables), planner)


def _check(planner: LegPlanner, variables: dict[str, Any]) -> Any:
    known = {"own_launcher": False, "suite": planner.suite, "program": planner.program}
    return SimpleNamespace(**{"fabric": planner.fabric, **known, **variables})


def due(plan: Plan) -> dict[str, Leg]:
    """Return the legs that are measured whatever a relation asks for, by name."""
    return {leg.name: leg for leg in plan.legs if not leg.in_turn}


def ratio(relation: Relation) -> tuple[Ratio, Reference]:
    """Return what is to hold, and by what it is judged."""
    assert isinstance(relation.what, Ratio)
    assert relation.what.reference is not None
    return relation.what, relation.what.reference
