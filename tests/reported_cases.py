"""Legs, partitions and test cases of ReFrame's reports, for tests of what reads them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from fabricproof.job.leg import Leg
from fabricproof.physics import Fabric, find_link
from fabricproof.site.schema import PartitionSpec


def make_leg(**changes: Any) -> Leg:
    facts: dict[str, Any] = {
        "name": "rail0",
        "rails": ("rail0",),
        "suite": "osu",
        "program": "osu_bw",
        "environment": {},
        "commands": (("osu_bw", "-m", "1:4"),),
        "expected_sizes": (1, 2, 4),
        "spread": False,
        "required": (),
        "fabric": Fabric(link=find_link("1GbE"), protocol="tcp", mtu=1500),
        "tolerance": 0.1,
    }
    return Leg(**{**facts, **changes})


def make_partition(**changes: Any) -> PartitionSpec:
    facts = {"name": "compute", "fabrics": ["eth0"], "stacks": ["openmpi5"], "max_jobs": 4}
    return PartitionSpec(**{**facts, **changes})


def reported_case(check: str = "OsuBandwidth", **changes: Any) -> dict[str, Any]:
    """Return a test case as ReFrame 4.10 reports it, cut down to what is read of it."""
    facts: dict[str, Any] = {
        "name": f"{check} %fabric=eth0",
        "unique_name": f"{check}_0",
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
