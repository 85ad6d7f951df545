"""Cases, past jobs and dry-run reports for the tests of the plan."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from fabricproof.core.records import append_records
from fabricproof.history.cost.case import Case, PlannedPath
from fabricproof.history.cost.history import PastJob, PastRun
from fabricproof.job.leg import Leg
from fabricproof.physics import Fabric, find_link
from fabricproof.site.schema import PartitionSpec

GIGABIT = Fabric(link=find_link("1GbE"), protocol="tcp", mtu=1500)


def make_planned_leg(
    suite: str, program: str, *commands: tuple[str, ...], **changes: object
) -> Leg:
    leg = Leg(
        name="rail0",
        rails=("rail0",),
        suite=suite,
        program=program,
        environment={},
        commands=commands,
        expected_sizes=(1, 2, 4),
        sent_bytes=None,
        sent_per_message=None,
        sent_messages=None,
        spread=False,
        required=(),
        fabric=GIGABIT,
        tolerance=0.1,
    )
    return replace(leg, **changes)  # type: ignore[arg-type]


def make_case(**changes: Any) -> Case:
    facts: dict[str, Any] = {
        "check": "OsuBandwidth",
        "fabric": "eth0",
        "partition": "compute",
        "stack": "openmpi5",
        "suite": "osu",
        "tags": ("ethernet", "full", "nightly", "pt2pt", "quick"),
        "nodes": 2,
        "limit_seconds": 300.0,
        "net_paths": (make_path("rail0"), make_path("rail1")),
    }
    return Case(**{**facts, **changes})


def make_path(name: str, seconds: float = 2.0, **changes: Any) -> PlannedPath:
    return PlannedPath(
        **{"name": name, "sizes": (1, 2, 4), "starts": 1, "seconds": seconds, **changes}
    )


def make_job(run_id: str, job_id: str, **changes: Any) -> PastJob:
    facts: dict[str, Any] = {
        "run_id": run_id,
        "key": make_case().key,
        "suite": "osu",
        "job_id": job_id,
        "submitted": 100.0,
        "ended": 106.0,
        "nodes": 2,
        "attempts": (1, 1),
        "seconds": 6.0,
    }
    return PastJob(**{**facts, **changes})


def make_run(run_id: str, *jobs: PastJob, seconds: float = 10.0, **builds: float) -> PastRun:
    return PastRun(run_id=run_id, seconds=seconds, builds=builds, jobs=jobs)


def make_partition(**changes: Any) -> PartitionSpec:
    facts = {"name": "compute", "fabrics": ["eth0"], "stacks": ["openmpi5"], "max_jobs": 4}
    return PartitionSpec(**{**facts, **changes})


def reported_case(check: str = "OsuBandwidth", **changes: Any) -> dict[str, Any]:
    """Return a test case as ReFrame 4.10 reports it, cut down to what the plan reads."""
    facts: dict[str, Any] = {
        "name": f"{check} %fabric=eth0",
        "environ": "openmpi5",
        "fabric": "eth0",
        "partition": "compute",
        "system": "vcluster",
        "result": "pass",
        "fail_reason": None,
        "skip_reason": "",
        "fixture": False,
        "job_submit_time": 100.5,
        "job_completion_time_unix": 107.0,
        "jobid": "7",
        "job_nodelist": ["n1", "n2"],
        "num_tasks": 2,
        "num_tasks_per_node": 1,
        "stagedir": None,
        "suite": "osu",
        "tags": ["quick", "pt2pt"],
        "time_limit": 300.0,
    }
    return {**facts, **changes}


def write_report(perflogs: Path, run_id: str, cases: Sequence[Mapping[str, Any]]) -> Path:
    path = perflogs / "reports" / f"{run_id}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    report = {"session_info": {"time_elapsed": 9.5}, "runs": [{"testcases": list(cases)}]}
    path.write_text(json.dumps(report))
    return path


def write_leg(perflogs: Path, run_id: str, **changes: Any) -> None:
    facts = {
        "kind": "leg",
        "run_id": run_id,
        "job_id": "7",
        "attempts": 1,
        "verdict": "PASS",
        "job_state": "COMPLETED",
    }
    append_records(perflogs / "vcluster" / "compute" / "records.jsonl", [{**facts, **changes}])
