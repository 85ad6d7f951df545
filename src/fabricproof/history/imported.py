"""Runs of ReFrame that knew nothing of us, as records: shown and compared, never PASS.

A report of ReFrame (``--report-file``; data versions 3 and 4, releases 4.0 to 4.10) has each
number with its unit, and nodes and job, and nothing of the path that the bytes took.
"""

from __future__ import annotations

import datetime
import hashlib
import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from fabricproof.core.errors import InputMissingError, ParseError, UnitError, words_of
from fabricproof.core.hostlist import SAFE_NAME
from fabricproof.core.measure import Quantity, Verdict
from fabricproof.core.records import read_json
from fabricproof.core.units import convert, dimension
from fabricproof.job.recording import describe_numbers

#: dimension of a unit -> the unit in which we keep it
_OWN_UNIT = {"bandwidth": "MB/s", "time": "us"}


def read_reframe_report(path: Path) -> tuple[str, list[dict[str, Any]]]:
    """Return the identity of the run that a report of ReFrame tells, and its records.

    The identity begins with the session's own start and ends with its digest: a report that is read
    twice has the same.

    Raises:
        ParseError: it is no such report, or has no number.
        InputMissingError: it cannot be read.
    """
    try:
        report = read_json(path)
        session = report["session_info"]
        start = _start(session)
        name = hashlib.sha256(f"{session.get('uuid')} {session['time_start']}".encode())
        run_id = f"{start:%Y%m%dT%H%M%SZ}-{name.hexdigest()[:6]}"
        cases = [case for run in report["runs"] for case in run["testcases"]]
        records = [
            {**record, "run_id": run_id} for case in cases for record in _records(case, path.name)
        ]
    except OSError as error:
        raise InputMissingError(
            f"cannot read: {error.strerror}", source=str(path), expected="a report of ReFrame"
        ) from None
    except (ValueError, LookupError, TypeError, AttributeError) as error:
        raise ParseError(
            "no report of ReFrame",
            source=str(path),
            expected="what reframe --report-file writes: session_info, runs, testcases",
            got=words_of(error),
        ) from None
    if not records:
        raise ParseError(
            "a report without a number",
            source=str(path),
            expected="test cases with perfvalues",
            got=f"{len(cases)} test cases without",
        )
    return run_id, records


def _start(session: Mapping[str, Any]) -> datetime.datetime:
    start = datetime.datetime.fromisoformat(str(session["time_start"]))
    return start.astimezone(datetime.UTC)


def _records(case: Mapping[str, Any], source: str) -> Iterator[dict[str, Any]]:
    """Yield a record for each number of a test case, and one of the case."""
    values = dict(case.get("perfvalues") or {})
    if not values:
        return
    partition = str(case["partition"])
    if SAFE_NAME.fullmatch(partition) is None:  # it becomes a folder's name
        raise ValueError(f"partition {partition!r:.40}")
    check = str(case["name"]).split(" ", maxsplit=1)[0]
    said = f"imported from {source}: ReFrame says {case['result']}"
    base: dict[str, Any] = {
        "unique_name": str(case.get("unique_name") or check),
        "partition": partition,
        "stack": str(case["environ"]),
        "stack_version": "",
        "job_id": str(case.get("jobid") or ""),
        "stage_folder": "",
        "completed": case.get("job_completion_time_unix"),
    }
    quantities = []
    for name, (value, _, _, _, unit, *_) in values.items():
        number, own = _in_own_unit(value, str(unit or ""))
        verdict, why = Verdict.UNJUDGED, "no path was proven"
        if number is None:  # also of one that failed; NaN would be no JSON
            verdict, why = Verdict.MISSING, f"{value} is no finite number"
        quantities.append(
            Quantity(
                name=name.rpartition(":")[2],
                value=number,
                unit=own,
                message_size=None,
                verdict=verdict,
                reason=f"{said}; {why}",
            )
        )
    nodes = tuple(map(str, case.get("job_nodelist") or ()))
    yield from describe_numbers(base, quantities, check=check, leg="imported", nodes=nodes)


def _in_own_unit(value: Any, unit: str) -> tuple[float | None, str]:
    """Return a number in MB/s or us if its unit is a bandwidth or a time, else as it is.

    None for what is no finite number.
    """
    number = None if value is None or not math.isfinite(value) else float(value)
    try:
        own = _OWN_UNIT.get(dimension(unit), unit)
        return (number if number is None else convert(number, unit, own)), own
    except UnitError:
        return number, unit
