"""ReFrame's result store, ``results.db``: for runs of which neither record nor perflog is left.

It is only ever read, never waited for: SQLite's locks hang on some shared file systems.  Its
schema is that of ``reframe/frontend/reporting/storage.py``, version 1.0: each session holds
ReFrame's whole report as JSON, and a test case its ``perfvalues``:
``system:partition:variable`` to value, reference, lower and upper threshold, unit, result.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any, TypeVar

from fabricproof.core.records import parse_json
from fabricproof.history.store.copy import Copy
from fabricproof.history.store.files import look
from fabricproof.history.store.ingest import PERFLOG, RECORDS, RESULTS, Writer, new_source
from fabricproof.history.store.parse import Parsed
from fabricproof.history.store.perflog import COLUMNS, rows_of

Answer = TypeVar("Answer")

FILE = "results.db"

#: seconds that a writer is waited for
_PATIENCE = 2.0

#: sessions: (identity, name of its report's file)
_Sessions = list[tuple[str, str]]


def read_results(copy: Copy, site_folder: Path) -> None:
    """Add the sessions of which no file tells; what cannot be read is a note, never an error."""
    path = site_folder.parent / FILE
    name = f"../{FILE}"
    sources: dict[str, Any] = copy.manifest["sources"]
    if not path.exists():
        if sources.pop(name, None):
            copy.save()
        return
    known = _runs_of_files(copy)
    try:
        sessions = _ask(path, _sessions)
        source = sources.get(name) or new_source(RESULTS)
        read: list[str] = source["header"]
        if not set(read) <= {uuid for uuid, _ in sessions}:
            # ReFrame can delete sessions; what it no longer holds, nobody holds.
            source, read = new_source(RESULTS), []
            sources.pop(name, None)
        new = [
            uuid for uuid, report in sessions if uuid not in read and Path(report).stem not in known
        ]
        if new:
            _add(copy, name, source, _ask(path, lambda base: _reports(base, new)), site_folder.name)
            source["standing"] = look(path, 0, 0).plain()
            read += new
            sources[name] = source
            copy.save()
    except (sqlite3.Error, ValueError, KeyError, TypeError, OSError) as error:
        copy.notes.append(
            f"{path}: not read ({error}); a run that stands only there is left out this time"
        )


def _runs_of_files(copy: Copy) -> set[str]:
    runs = copy.manifest["runs"]
    return {
        runs[int(number)]
        for source in copy.manifest["sources"].values()
        if source["kind"] in {RECORDS, PERFLOG}
        for number in source["runs"]
    }


def _ask(path: Path, question: Callable[[sqlite3.Connection], Answer]) -> Answer:
    """Ask the store without changing it; where its file system has no locks, without them."""
    try:
        with closing(_opened(path, "mode=ro")) as base:
            return question(base)
    except sqlite3.OperationalError as error:
        if "database is locked" in str(error):
            raise
    with closing(_opened(path, "mode=ro&immutable=1")) as base:
        return question(base)


def _opened(path: Path, how: str) -> sqlite3.Connection:
    return sqlite3.connect(f"{path.absolute().as_uri()}?{how}", uri=True, timeout=_PATIENCE)


def _sessions(base: sqlite3.Connection) -> _Sessions:
    query = "SELECT uuid, report_file FROM sessions ORDER BY session_start_unix"
    return [(str(uuid), str(report or "")) for uuid, report in base.execute(query)]


def _reports(base: sqlite3.Connection, uuids: list[str]) -> list[Mapping[str, Any]]:
    query = "SELECT json_blob FROM sessions WHERE uuid = ?"
    return [parse_json(blob) for uuid in uuids for (blob,) in base.execute(query, (uuid,))]


def _add(
    copy: Copy,
    name: str,
    source: dict[str, Any],
    reports: list[Mapping[str, Any]],
    site: str,
) -> None:
    import polars as pl  # noqa: PLC0415 - start-up time

    rows = [row for report in reports for row in _rows(report, site)]
    if not rows:
        return
    columns = {**dict.fromkeys(COLUMNS, pl.String), "line": pl.Int64}
    raw = pl.DataFrame(rows, schema=columns)
    source["standing"] = {"head": ""}
    writer = Writer(copy=copy)
    writer.take(source, Parsed(rows=rows_of(raw)))
    writer.flush(name, source)


def _rows(report: Mapping[str, Any], site: str) -> Iterator[dict[str, Any]]:
    """Yield a row for each quantity of a session, in the columns of a perflog."""
    session = report["session_info"]
    begin = str(session["time_start"])[:15].replace("+", "")
    for run in report["runs"]:
        for case in run["testcases"]:
            if case["system"] != site:
                continue
            nodes = case.get("job_nodelist") or ()
            common = {
                **{each: _text(case.get(each)) for each in COLUMNS},
                "job_completion_time": _text(case.get("job_completion_time")),
                "job_nodelist": nodes if isinstance(nodes, str) else ",".join(nodes),
                "run_id": case.get("run_id") or f"{begin}Z-{str(session['uuid'])[:6]}",
                "line": None,
            }
            for variable, told in case["perfvalues"].items():
                value, reference, lower, upper, unit, *_ = told
                yield {
                    **common,
                    "perf_var": variable.rpartition(":")[2],
                    "perf_value": _text(value),
                    "perf_unit": _text(unit),
                    "perf_ref": _text(reference),
                    "perf_lower_thres": _text(lower),
                    "perf_upper_thres": _text(upper),
                }


def _text(value: object) -> str | None:
    return None if value is None or isinstance(value, list | dict) else str(value)
