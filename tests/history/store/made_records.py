"""Small histories as files: records as we write them, perflogs and a store as ReFrame does."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from fabricproof.core.records import append_records
from fabricproof.rfm.settings import PERFLOG_COLUMNS

SITE = "made"
COLUMNS = [each[2:-2].removeprefix("check_") for each in PERFLOG_COLUMNS]


def run_id(day: int, digits: str = "a1b2c3") -> str:
    """Return the identity of the run of a day of November."""
    return f"202611{day:02}T020000Z-{digits}"


def quantity(
    run: str, value: float | None = 1000.0, *, name: str = "bandwidth_4MiB", **other: Any
) -> dict[str, Any]:
    """Return the record of one quantity, complete as rfm.recording leaves it."""
    record: dict[str, Any] = {
        "kind": "quantity", "run_id": run, "check": "OsuBandwidth", "site": SITE,
        "partition": "compute", "stack": "openmpi5", "fabric": "ib0", "job_id": "7",
        "leg": "rail0", "rails": ["rail0"], "suite": "osu", "program": "osu_bw",
        "inventory": {"n1": "aa", "n2": "bb"}, "attempt": 1, "counts": True,
        "tool_version": "v7.5", "attributes": {"window_size": "64", "retransmits": "3"},
        "nodes": ["n2", "n1"], "environment_digest": "9c7a", "completed": 1795287899.0,
        "stage_folder": "/stage/OsuBandwidth", "unique_name": "OsuBandwidth_0",
        "stack_identity": {"origin": "spack", "digest": "0123456789abcdef", "mpi": "openmpi@5"},
        "road_state": "PROVEN", "quantity_name": name, "quantity_value": value,
        "quantity_unit": "MB/s", "quantity_verdict": "PASS", "quantity_reason": "good enough",
        "quantity_ceiling": 1200.0, "quantity_ceiling_name": "link", "quantity_reference": 1000.0,
        "quantity_lower": 900.0, "quantity_upper": None, "quantity_origin": "the site",
        "quantity_message_size": 4194304, "quantity_named": True,
    }  # fmt: skip
    return {**record, **other}


def leg(run: str, verdict: str = "PASS", **other: Any) -> dict[str, Any]:
    """Return the record of one leg."""
    return {"kind": "leg", "run_id": run, "verdict": verdict, "leg": "rail0", **other}


def write(folder: Path, records: Iterable[dict[str, Any]], name: str = "records.jsonl") -> Path:
    """Append records to a file of the partition; return it."""
    path = folder / SITE / "compute" / name
    append_records(path, records)
    return path


def perflog(folder: Path, rows: Iterable[dict[str, str]], name: str = "OsuBandwidth.log") -> Path:
    """Append rows to a perflog of ReFrame's, heading first; return it."""
    path = folder / SITE / "compute" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = [] if path.exists() else ["|".join(COLUMNS)]
    lines += ["|".join(row.get(name, "null") for name in COLUMNS) for row in rows]
    with path.open("a", encoding="utf-8") as file:
        file.write("\n".join(lines) + "\n")
    return path


def perflog_row(run: str, value: str = "1000.0", **other: str) -> dict[str, str]:
    """Return what ReFrame logs of :func:`quantity`."""
    return {
        "job_completion_time": "2026-11-01T02:10:00+00:00", "run_id": run, "version": "4.10.4",
        "system": SITE, "partition": "compute", "environ": "openmpi5",
        "unique_name": "OsuBandwidth_0", "fabric": "ib0", "suite": "osu", "program": "osu_bw",
        "jobid": "7", "job_nodelist": "n2,n1", "result": "pass",
        "perf_var": "rail0.bandwidth_4MiB", "perf_value": value, "perf_unit": "MB/s",
        "perf_ref": "1000.0", "perf_lower_thres": "-0.1", "environment_digest": "9c7a",
        "stack_digest": "0123456789ab", **other,
    }  # fmt: skip


def results(folder: Path, run: str, value: float = 1000.0) -> Path:
    """Make a result store with one session of one test case, as ReFrame 4.10.4 lays it out."""
    path = folder / "results.db"
    folder.mkdir(parents=True, exist_ok=True)
    row = perflog_row(run)
    case = {
        **{each: row[each] for each in ("system", "partition", "environ", "unique_name", "fabric",
                                        "suite", "program", "jobid", "result", "stack_digest")},
        "run_id": run,
        "job_nodelist": ["n2", "n1"],
        "job_completion_time": "2026-11-01T02:10:00+00:00",
        "perfvalues": {
            f"{SITE}:compute:rail0.bandwidth_4MiB": [value, 1000.0, -0.1, None, "MB/s", "pass"]
        },
    }  # fmt: skip
    session = {"uuid": f"uuid-{run}", "time_start": "20261101T020000+0000"}
    report = {"session_info": session, "runs": [{"testcases": [case]}]}
    with sqlite3.connect(path) as base:
        base.execute(
            "CREATE TABLE IF NOT EXISTS sessions(uuid TEXT PRIMARY KEY, session_start_unix REAL, "
            "session_end_unix REAL, json_blob TEXT, report_file TEXT)"
        )
        base.execute(
            "INSERT INTO sessions VALUES(?, 0, 0, ?, ?)",
            (session["uuid"], json.dumps(report), f"/reports/{run}.json"),
        )
    base.close()
    return path
