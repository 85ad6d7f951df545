"""How fast history is asked: ours, pandas on perflogs and on our records, ReFrame's own way.

    .venv/bin/python benchmarks/history.py --rows 1e6 --pandas PYTHON

Makes a site of 100 nodes (50 pairs), 4 rails, 23 sizes and 2 stacks: 9200 quantities a night, as
many nights as ROWS need, as our records, as ReFrame's perflogs (for pandas), and as its result
store, in a folder that is removed at the end.  Two questions are put to each contender:

    five       median per quantity of 5 nights before and of 5 after a change, and their ratio
    all        median per quantity over all nights

Every contender is a process of its own; wall time is from its start to its answer, CPU time beside
it for machines that others use too, memory is its own peak (``ru_maxrss``).  The answers are
compared: medians that differ end the benchmark.
PYTHON is one that has pandas; it is no dependency of ours:

    python3 -m venv /tmp/pandas && /tmp/pandas/bin/pip install pandas pyarrow

Of ten million rows the records are 18 GB, and ReFrame decodes every session that it compares.

``--matrix`` measures the table of 100 nodes, 4 rails, 23 sizes and 30 nights alone.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import random
import resource
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
SITE = "bench"
SIZES = [1 << power for power in range(23)]
STACKS = ("openmpi5", "mpich5")
RAILS = ("rail0", "rail1", "rail2", "rail3")
PAIRS = [(f"n{2 * each:03}", f"n{2 * each + 1:03}") for each in range(50)]
PER_NIGHT = len(SIZES) * len(STACKS) * len(RAILS) * len(PAIRS)
FIRST = datetime.datetime(2023, 1, 1, 2, tzinfo=datetime.UTC)
DIGEST = "0123456789abcdef" * 4

COLUMNS = [
    "job_completion_time",
    "run_id",
    "version",
    "system",
    "partition",
    "environ",
    "stack_version",
    "unique_name",
    "fabric",
    "suite",
    "program",
    "jobid",
    "job_nodelist",
    "result",
    "perf_var",
    "perf_value",
    "perf_unit",
    "perf_ref",
    "perf_lower_thres",
    "perf_upper_thres",
    "environment_digest",
    "stack_digest",
    "stack_mpi",
    "stack_program",
    "stack_compiler",
    "stack_target",
]


def night_of(number: int) -> datetime.datetime:
    """Return the beginning of a night."""
    return FIRST + datetime.timedelta(days=number)


def run_of(number: int) -> str:
    """Return the identity of a night's run."""
    return f"{night_of(number):%Y%m%dT%H%M%SZ}-{number:06x}"


def jobs(number: int) -> Iterator[tuple[str, int, str, str, str, list[float]]]:
    """Yield the jobs of a night: stack, job, two nodes, rail, a value for each size."""
    noise = random.Random(number)
    for stack in STACKS:
        for at, (first, second) in enumerate(PAIRS):
            for rail in RAILS:
                values = [12000.0 * size / (size + 65536) * noise.gauss(1, 0.02) for size in SIZES]
                yield stack, number * 1000 + at, first, second, rail, values


def label(size: int) -> str:
    """Return a size as the glossary writes it."""
    for name, unit in (("MiB", 1 << 20), ("KiB", 1 << 10)):
        if size >= unit:
            return f"{size // unit}{name}"
    return f"{size}B"


def perflog_lines(number: int) -> str:
    """Return a night as ReFrame writes it."""
    start, run = f"{night_of(number):%Y-%m-%dT%H:%M:%S+00:00}", run_of(number)
    names = [label(size) for size in SIZES]
    lines = []
    for stack, job, first, second, rail, values in jobs(number):
        head = (
            f"{start}|{run}|4.10.4|{SITE}|compute|{stack}|{stack} 5.0|OsuBandwidth_0|ib0|osu|"
            f"osu_bw|{job}|{first},{second}|pass|{rail}.bandwidth_"
        )
        tail = f"|9c7a3c2831f2|{DIGEST[:12]}|{stack} 5.0|osu 7.5|gcc@12.2.0|x86_64_v3\n"
        lines += [
            f"{head}{name}|{value!r}|MB/s|12000.0|-0.1|0.05{tail}"
            for name, value in zip(names, values, strict=True)
        ]
    return "".join(lines)


def record_lines(number: int) -> str:
    """Return a night as our records."""
    run, over = run_of(number), night_of(number).timestamp() + 600
    lines = []
    for stack, job, first, second, rail, values in jobs(number):
        record = {
            "attempt": 1, "attributes": {"window_size": "64", "num_pairs": "1"},
            "check": "OsuBandwidth", "completed": over, "counts": True,
            "environment_digest": "9c7a3c2831f2", "fabric": "ib0", "format": 1,
            "inventory": {first: "d7fbc2c4eafcf509", second: "697166b4c69f111a"},
            "job_id": str(job), "job_state": "COMPLETED", "kind": "quantity", "leg": rail,
            "nodes": [first, second], "partition": "compute", "program": "osu_bw",
        }  # fmt: skip
        rest = {
            "rails": [rail], "road_state": "PROVEN", "run_id": run, "site": SITE, "stack": stack,
            "stack_identity": {
                "compiler": "gcc@12.2.0", "digest": DIGEST, "library": "", "mpi": f"{stack}@5.0",
                "origin": "spack", "program": "osu-micro-benchmarks@7.5", "target": "x86_64_v3",
            },
            "stack_version": f"{stack} 5.0", "suite": "osu", "tool_version": "v7.5",
            "stage_folder": f"/shared/stage/{run}/bench/compute/{stack}/OsuBandwidth_1c9cfaa8",
            "unique_name": "OsuBandwidth_0",
        }  # fmt: skip
        head, tail = json.dumps(record, sort_keys=True), json.dumps(rest, sort_keys=True)
        for size, value in zip(SIZES, values, strict=True):
            lines.append(
                f'{head[:-1]}, "quantity_ceiling": 12080.5, "quantity_ceiling_name": "link", '
                f'"quantity_lower": 10800.0, "quantity_message_size": {size}, '
                f'"quantity_name": "bandwidth_{label(size)}", "quantity_named": true, '
                f'"quantity_origin": "95 % of the link", "quantity_reason": "{value:.1f} MB/s of '
                f'12000 MB/s expected (95 % of the link)", "quantity_reference": 12000.0, '
                f'"quantity_unit": "MB/s", "quantity_upper": null, "quantity_value": {value!r}, '
                f'"quantity_verdict": "PASS", {tail[1:]}\n'
            )
    return "".join(lines)


def make(folder: Path, nights: int, lines: Callable[[int], str], name: str, head: str = "") -> int:
    """Write all nights into one file; return its bytes."""
    path = folder / SITE / "compute" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a") as file:
        file.write(head)
        for number in range(nights):
            file.write(lines(number))
    return path.stat().st_size


def make_records(folder: Path, nights: Iterable[int]) -> int:
    """Write the records of some nights, a file for each as runs do; return their bytes."""
    return sum(
        make(folder, 1, lambda _, at=number: record_lines(at), f"{run_of(number)}.jsonl")
        for number in nights
    )


def make_results(folder: Path, nights: int) -> int:
    """Write all nights into a result store of ReFrame's; return its bytes."""
    path = folder / "results.db"
    with sqlite3.connect(path) as base:
        base.executescript(
            "CREATE TABLE sessions(uuid TEXT PRIMARY KEY, session_start_unix REAL, "
            "session_end_unix REAL, json_blob TEXT, report_file TEXT);"
            "CREATE TABLE testcases(name TEXT, system TEXT, partition TEXT, environ TEXT, "
            "job_completion_time_unix REAL, session_uuid TEXT, uuid TEXT);"
            "CREATE INDEX index_testcases_time on testcases(job_completion_time_unix);"
            "CREATE TABLE metadata(schema_version TEXT);"
            "CREATE INDEX index_sessions_time on sessions(session_start_unix);"
            "INSERT INTO metadata VALUES('1.0');"
        )
        for number in range(nights):
            uuid, start = f"00000000-0000-4000-8000-{number:012}", night_of(number).timestamp()
            cases = list(_cases(number, uuid, start))
            report = {
                "session_info": {"uuid": uuid, "time_start_unix": start, "time_end_unix": start},
                "runs": [{"testcases": cases}],
            }
            base.execute(
                "INSERT INTO sessions VALUES(?, ?, ?, ?, '')",
                (uuid, start, start + 600, json.dumps(report)),
            )
            base.executemany(
                "INSERT INTO testcases VALUES(?, ?, ?, ?, ?, ?, ?)",
                [
                    (each["name"], SITE, "compute", each["environ"], start, uuid, each["uuid"])
                    for each in cases
                ],
            )
    return path.stat().st_size


def _cases(number: int, uuid: str, start: float) -> Iterator[dict[str, Any]]:
    """Yield the test cases of a night: one for each stack and pair, with all rails and sizes."""
    found: dict[tuple[str, str, str], dict[str, Any]] = {}
    for stack, job, first, second, rail, values in jobs(number):
        case = found.setdefault(
            (stack, first, second),
            {
                "name": "OsuBandwidth", "unique_name": "OsuBandwidth_0", "system": SITE,
                "partition": "compute", "environ": stack, "jobid": str(job),
                "job_nodelist": [first, second], "job_completion_time_unix": start,
                "job_completion_time": f"{night_of(number):%Y%m%dT%H%M%S+0000}",
                "result": "pass", "uuid": f"{uuid}:0:{len(found)}", "run_index": 0,
                "session_uuid": uuid, "fixture": False, "perfvalues": {},
                "display_name": "OsuBandwidth", "hashcode": "1c9cfaa8", "descr": "",
            },
        )  # fmt: skip
        case["perfvalues"] |= {
            f"{SITE}:compute:{rail}.bandwidth_{label(size)}": [
                value,
                12000.0,
                -0.1,
                0.05,
                "MB/s",
                "pass",
            ]
            for size, value in zip(SIZES, values, strict=True)
        }
    yield from found.values()


def sides(nights: int) -> tuple[list[str], list[str]]:
    """Return the two sides of the question: five nights before the middle, five after."""
    middle = nights // 2
    return [run_of(each) for each in range(middle - 5, middle)], [
        run_of(each) for each in range(middle, middle + 5)
    ]


def ours(folder: Path, question: str, nights: int) -> tuple[float, int, float]:
    """Answer with our store; return the sum of the medians, their number and a ratio's median."""
    sys.path.insert(0, str(ROOT / "src"))
    import numpy as np  # noqa: PLC0415 - a contender's own time

    from fabricproof.history.store import open_store  # noqa: PLC0415

    store = open_store(folder, SITE)
    if question == "all":
        matrix = store.matrix([each.run_id for each in store.runs])
        medians = np.nanmedian(matrix.values, axis=1)
        return float(medians.sum()), len(medians), 0.0
    before, after = sides(nights)
    matrix = store.matrix([*before, *after])
    first, second = (np.nanmedian(part, axis=1) for part in np.split(matrix.values, [5], axis=1))
    return float(first.sum()), len(first), float(np.median(second / first))


def with_pandas(
    folder: Path, question: str, nights: int, engine: str = "c"
) -> tuple[float, int, float]:
    """Answer with pandas, on the columns that the question needs and no others."""
    import pandas as pd  # noqa: PLC0415 - a contender's own time

    key = ["system", "partition", "environ", "stack_digest", "unique_name", "fabric", "suite",
           "program", "job_nodelist", "perf_var", "perf_unit"]  # fmt: skip
    frame = pd.concat(
        pd.read_csv(path, sep="|", usecols=[*key, "run_id", "perf_value"], engine=engine)
        for path in sorted((folder / SITE / "compute").glob("*.log"))
    )
    if question == "all":
        medians = frame.groupby(key, sort=False)["perf_value"].median()
        return float(medians.sum()), len(medians), 0.0
    first, second = (
        frame[frame["run_id"].isin(each)].groupby(key, sort=False)["perf_value"].median()
        for each in sides(nights)
    )
    both = first.to_frame("first").join(second.to_frame("second"), how="inner")
    return (
        float(both["first"].sum()),
        len(both),
        float((both["second"] / both["first"]).median()),
    )


def with_pyarrow(folder: Path, question: str, nights: int) -> tuple[float, int, float]:
    """Answer with pandas and the faster reader that it can be given."""
    return with_pandas(folder, question, nights, engine="pyarrow")


def pandas_on_records(folder: Path, question: str, nights: int) -> tuple[float, int, float]:
    """Answer with pandas' reader of JSON lines, on the same records, a piece at a time."""
    import pandas as pd  # noqa: PLC0415 - a contender's own time

    key = ["site", "partition", "stack", "unique_name", "fabric", "suite", "program", "leg",
           "nodes", "quantity_name", "quantity_unit"]  # fmt: skip
    pieces = []
    for path in sorted((folder / SITE).rglob("*.jsonl")):
        with pd.read_json(path, lines=True, chunksize=20_000, dtype=False) as chunks:
            for chunk in chunks:
                chunk["nodes"] = chunk["nodes"].str.join(",")
                pieces.append(chunk[[*key, "run_id", "quantity_value"]])
    frame = pd.concat(pieces)
    first, second = (
        frame[frame["run_id"].isin(each)].groupby(key, sort=False)["quantity_value"].median()
        for each in (sides(nights) if question == "five" else [frame["run_id"].unique()] * 2)
    )
    both = first.to_frame("first").join(second.to_frame("second"), how="inner")
    return (
        float(both["first"].sum()),
        len(both),
        float((both["second"] / both["first"]).median()) if question == "five" else 0.0,
    )


CONTENDERS: dict[str, Callable[[Path, str, int], tuple[float, int, float]]] = {
    "ours": ours,
    "pandas": with_pandas,
    "pandas+pyarrow": with_pyarrow,
    "pandas on records": pandas_on_records,
}


def contend(python: str, name: str, folder: Path, question: str, nights: int) -> dict[str, Any]:
    """Run one contender as a process of its own; return wall time, memory and answer."""
    command = [python, __file__, "--contender", name, str(folder), question, str(nights)]
    start = time.perf_counter()
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    seconds = time.perf_counter() - start
    if done.returncode:
        return {"seconds": seconds, "failed": done.stderr.strip().splitlines()[-1:]}
    told = {"seconds": seconds, **json.loads(done.stdout)}
    print(
        f"  {name} {question}: {seconds:.2f} s, {told['cpu_s']:.2f} s of CPU, "
        f"{told['peak_mib']:.0f} MiB",
        flush=True,
    )
    return told


def with_reframe(folder: Path, question: str, nights: int) -> dict[str, Any]:
    """Ask ReFrame's own comparison; its answer is a table, of which the rows are counted."""
    first = night_of(0 if question == "all" else nights // 2 - 5)
    middle = night_of(nights // 2)
    last = night_of(nights if question == "all" else nights // 2 + 5)
    begin, between, end = (
        f"{each - datetime.timedelta(hours=1):%Y%m%dT%H%M%S}" for each in (first, middle, last)
    )
    asked = f"--performance-compare={begin}:{between}/{between}:{end}/median:+job_nodelist/"
    environment = {
        **os.environ,
        "RFM_SQLITE_DB_FILE": str(folder / "results.db"),
        "RFM_ENABLE_RESULTS_STORAGE": "yes",
        "RFM_TABLE_FORMAT": "csv",
        "PYTHONPATH": "",
    }
    script = (
        "import resource,subprocess,sys;"
        f"done=subprocess.run([{str(ROOT / '.venv/bin/reframe')!r},{asked!r}],"
        "capture_output=True,text=True);"
        "used=resource.getrusage(resource.RUSAGE_CHILDREN);"
        "print(done.returncode,used.ru_maxrss,used.ru_utime+used.ru_stime,done.stdout.count(chr(10)),(done.stdout+done.stderr)[-300:])"
    )
    start = time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=True
    )
    status, peak, cpu_s, lines, *said = done.stdout.split(" ", 4)
    result: dict[str, Any] = {
        "seconds": time.perf_counter() - start,
        "peak_mib": int(peak) / 1024,
        "cpu_s": float(cpu_s),
    }
    if status != "0" or int(lines) < 100:
        result["failed"] = [" ".join(said)]
    return {**result, "answer": [0.0, int(lines), 0.0]}


def measure(rows: float, python: str) -> None:
    """Make the history, let all contend, print the table."""
    nights = max(12, round(rows / PER_NIGHT))
    with tempfile.TemporaryDirectory(prefix="history-", dir=os.environ.get("TMPDIR")) as place:
        logs, kept = Path(place) / "logs", Path(place) / "records"
        head = "|".join(COLUMNS) + "\n"
        size = make(logs, nights, perflog_lines, "OsuBandwidth.log", head)
        print(f"{nights * PER_NIGHT} rows, {nights} nights: {size / 1e6:.0f} MB of perflogs")
        table = list(_asked_pandas(logs, nights, python))
        size = make_records(kept, range(nights))
        print(f"{size / 1e6:.0f} MB of records")
        told = contend(python, "pandas on records", kept, "five", nights)
        table.append(("pandas, JSON lines, same records", "five", told))
        table += _asked_records(kept, nights)
        shutil.rmtree(kept)
        size = make_results(logs, nights)
        print(f"{size / 1e6:.0f} MB of results.db")
        for question in ("five", "all"):
            told = with_reframe(logs, question, nights)
            table.append(("reframe --performance-compare", question, told))
    show(table)


def _asked_pandas(
    logs: Path, nights: int, python: str
) -> Iterator[tuple[str, str, dict[str, Any]]]:
    for question in ("five", "all"):
        for name, contender in (
            ("pandas", "pandas"),
            ("pandas, pyarrow's reader", "pandas+pyarrow"),
        ):
            yield name, question, contend(python, contender, logs, question, nights)


def _asked_records(kept: Path, nights: int) -> Iterator[tuple[str, str, dict[str, Any]]]:
    yield (
        "ours, records, no copy yet",
        "five",
        contend(sys.executable, "ours", kept, "five", nights),
    )
    for question in ("five", "all"):
        yield "ours, records", question, contend(sys.executable, "ours", kept, question, nights)
    make_records(kept, [nights])
    yield (
        "ours, records, one new night",
        "five",
        contend(sys.executable, "ours", kept, "five", nights),
    )


def show(table: list[tuple[str, str, dict[str, Any]]]) -> None:
    """Print the table, with ratios to our warm answer to the same question."""
    ours_of = {
        question: told["seconds"] for name, question, told in table if name == "ours, records"
    }
    for question in ("five", "all"):
        answers = [
            told["answer"] for name, asked, told in table
            if asked == question and "failed" not in told and not name.startswith("reframe")
        ]  # fmt: skip
        first = answers[0]
        for each in answers:
            close = abs(each[0] / first[0] - 1) < 1e-9 and abs(each[2] - first[2]) < 1e-9
            if not close or each[1] != first[1]:
                sys.exit(f"the answers to {question!r} differ: {answers}")
    print(f"{'contender':32} {'question':9} {'seconds':>8} {'CPU s':>8} {'MiB':>7} {'of ours':>8}")
    for name, question, told in table:
        if "failed" in told:
            print(f"{name:32} {question:9} {told['seconds']:8.2f} failed: {told['failed']}")
            continue
        ratio = told["seconds"] / ours_of[question]
        print(
            f"{name:32} {question:9} {told['seconds']:8.2f} {told['cpu_s']:8.2f} "
            f"{told['peak_mib']:7.0f} {ratio:8.1f}"
        )


def measure_matrix() -> None:
    """Print what the table of 100 nodes, 4 rails, 23 sizes and 30 nights costs."""
    with tempfile.TemporaryDirectory(prefix="history-") as place:
        folder = Path(place)
        make_records(folder, range(30))
        for name in ("no copy yet", "warm"):
            told = contend(sys.executable, "ours", folder, "all", 30)
            print(f"matrix of {PER_NIGHT} quantities by 30 nights, {name}: "
                  f"{told['seconds']:.2f} s, {told['peak_mib']:.0f} MiB")  # fmt: skip


def main() -> None:
    """Measure, or be one of those that are measured."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--rows", type=float, nargs="+", help="instead of 50,000")
    parser.add_argument("--full", action="store_true", help="a million rows")
    parser.add_argument("--pandas", default=sys.executable, help="a Python that has pandas")
    parser.add_argument("--matrix", action="store_true")
    parser.add_argument("--contender", nargs=4, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.contender:
        name, folder, question, nights = asked.contender
        answer = CONTENDERS[name](Path(folder), question, int(nights))
        used = resource.getrusage(resource.RUSAGE_SELF)
        cpu_s = used.ru_utime + used.ru_stime
        print(json.dumps({"answer": answer, "peak_mib": used.ru_maxrss / 1024, "cpu_s": cpu_s}))
    elif asked.matrix:
        measure_matrix()
    else:
        for rows in asked.rows or ([1e6] if asked.full else [5e4]):
            measure(rows, asked.pandas)


if __name__ == "__main__":
    main()
