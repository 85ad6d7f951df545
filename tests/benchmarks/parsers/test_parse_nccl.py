"""nccl-tests: its report in JSON, and what several starts in one text mean."""

from __future__ import annotations

import json
from typing import Any

import pytest
from recordings import DATA

from fabricproof.benchmarks.parsers import parse_text
from fabricproof.core.errors import ParseError
from fabricproof.core.measure import Table

REPORT = (DATA / "nccl/all_reduce-2x1-report.txt").read_text("utf-8")
TEXT = (DATA / "nccl/all_reduce-2x8.txt").read_text("utf-8")


def report_of(tables: tuple[Table, ...]) -> dict[str, Any]:
    """The report of the run that a recorded text is of: members by src/util.cu of 2.19.6."""
    report = json.loads(REPORT)
    halves = [
        [
            {
                "time": row["latency_avg_us"],
                "alg_bw": row["bandwidth_mb_s"] / 1e3,
                "bus_bw": row["bus_bandwidth_mb_s"] / 1e3,
                "nwrong": row["wrong_values"],
            }
            for row in table.named_rows
        ]
        for table in tables
    ]
    key = {"count": 1, "type": "float", "redop": "sum", "root": "    -1"}
    report["results"] = [
        {"size": size, **key, "out_of_place": out, "in_place": within}
        for size, out, within in zip(tables[0].column("message_size"), *halves, strict=True)
    ]
    rates = [half["bus_bw"] for rows in halves for half in rows]
    report["average_bus_bandwidth"]["bandwidth"] = sum(rates) / len(rates)
    config = report["config"]
    config |= {"minimum_bytes": 8, "maximum_bytes": 8 * 2**30, "step_factor": 4, "ngpus": 8}
    config["devices"] = [
        {"rank": 8 * node, "group": 0, "hostname": f"gpu{node:02d}"} for node in range(2)
    ]
    return report


def parsed(report: dict[str, Any]) -> tuple[Table, ...]:
    return parse_text(json.dumps(report))


def test_a_report_reads_as_the_text_of_its_run() -> None:
    """It names one rank of each process, which has ``nthreads`` times ``ngpus``."""
    of_text = parse_text(TEXT)
    of_report = parsed(report_of(of_text))
    assert [(each.program, each.columns, each.rows, each.attributes) for each in of_report] == [
        (each.program, each.columns, each.rows, each.attributes) for each in of_text
    ]


def test_a_report_of_less_memory_ends_before_the_size_that_was_asked_for() -> None:
    report = report_of(parse_text(TEXT))
    report["config"]["maximum_bytes"] *= 16
    assert [each.rows for each in parsed(report)] == [each.rows for each in parse_text(TEXT)]


def test_a_report_in_place_alone_and_unchecked() -> None:
    report = report_of(parse_text(TEXT))
    for each in report["results"]:
        each["out_of_place"], each["in_place"]["nwrong"] = None, None
    rates = [each["in_place"]["bus_bw"] for each in report["results"]]
    report["average_bus_bandwidth"] = {"bandwidth": sum(rates) / len(rates), "okay": "false"}
    (table,) = parsed(report)
    assert table.rows == tuple(row[:-1] for row in parse_text(TEXT)[1].rows)
    said = table.attributes
    assert (said["placement"], said["checked"], said["own_minimum"]) == ("in-place", 0, "FAILED")


def damaged(**changes: Any) -> str:
    return json.dumps({**report_of(parse_text(TEXT)), **changes})


DAMAGE = {
    "cut": REPORT[:-40],
    "an error": damaged(errors=["Test CUDA failure"]),
    "no results": damaged(results=[]),
    "another mean": damaged(average_bus_bandwidth={"bandwidth": 1.0, "okay": "unchecked"}),
    "no places": REPORT.replace('"devices"', '"devises"'),
    "a number that is none": REPORT.replace("41.620123711340206", '"nan"'),
    "no mean": REPORT.replace('"average_bus_bandwidth"', '"average"'),
    "a mean that is no number": TEXT.replace(
        "# Avg bus bandwidth    : 1", "# Avg bus bandwidth : 1.1."
    ),
    "died": REPORT + "\nKilled\n",
}


@pytest.mark.parametrize("text", DAMAGE.values(), ids=DAMAGE)
def test_a_report_that_is_not_whole_is_refused(text: str) -> None:
    with pytest.raises(ParseError):
        parse_text(text)


def test_two_starts_of_rank_0_are_a_build_without_mpi() -> None:
    text = (DATA / "nccl/damaged/all_reduce-without-mpi.txt").read_text("utf-8")
    with pytest.raises(ParseError, match="2 starts of rank 0 on n1 and n2: built without MPI"):
        parse_text(text)
