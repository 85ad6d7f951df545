"""Outputs that people posted, each with the truth that was found: what is said of them.

The file, the declared fabric, the verdict, and the causes of its last red number, surest first.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from fabricproof.benchmarks.parsers.detect import read_tables
from fabricproof.core.findings import texts_of
from fabricproof.core.measure import Verdict, worst
from fabricproof.physics import Fabric, find_link
from fabricproof.verdict.causes.suspects import causes_of
from fabricproof.verdict.limits import loaded_fabric
from fabricproof.verdict.references import from_texts
from fabricproof.verdict.table import judge_table
from fabricproof.verdict.value import Report, Rules

DATA = Path(__file__).parents[1] / "data" / "cases"
PASS, FAIL, INVALID, UNJUDGED, *_ = Verdict


def of(name: str, reference: str = "", **facts: Any) -> tuple[Fabric, str]:
    return Fabric(link=find_link(name), **facts), reference


ROCE_100 = of("100GbE", protocol="rocev2")
CASES: list[tuple[str, tuple[Fabric, str], Verdict, list[str]]] = [
    ("09-softroce-rxe0", of("100GbE"), FAIL, ["soft_device", "other_link"]),
    ("13-apptainer-bibw-slow", of("EDR"), FAIL, ["one_direction"]),
    ("15-intelmpi-tcp-25gbe", of("EDR"), FAIL, ["sockets"]),
    ("37b-imb37-restored", of("HDR100"), FAIL, ["falls"]),
    ("50-hyades-iperf3", of("10GbE"), FAIL, ["one_connection"]),
    ("51-win-iperf3-p2", of("10GbE"), FAIL, ["one_core", "smaller_port"]),
    ("74-cx5-vf-25g", of("100GbE"), FAIL, ["other_link"]),
    ("77-two-hcas-one-declared", of("EDR"), UNJUDGED, []),
    ("77-two-hcas-one-declared", of("EDR", num_rails=2), FAIL, ["one_rail"]),
    ("78-latency-inverted-host", of("Slingshot 200", "latency=12 us"), PASS, []),
    ("81-ucx6242-lat-cpufreq", of("25GbE", "latency=2 us"), FAIL, ["cpu_frequency"]),
    ("82-openshift-with-ruler", ROCE_100, FAIL, ["stalls"]),
    ("86-nccl2409-before", of("400GbE", num_rails=8), FAIL, ["gpu_path"]),
    ("07-openshift-rdma-slow", ROCE_100, FAIL, ["stalls"]),
    ("25-ucx8852-no-rulers", of("HDR"), UNJUDGED, []),
    ("26-perftest-out-json", ROCE_100, FAIL, ["stalls"]),
    # its percentiles were made of its averages: a quarter of 1 MiB would outrun the link
    ("27-osu74-z25-75-95", of("EDR"), INVALID, []),
    ("28-osu74-bw-z95", of("EDR"), PASS, []),
    ("31b-osu74-latency-ddt", of("EDR", "latency=1.2 us"), PASS, []),
    ("34-nccl2196-json", of("NDR"), PASS, []),
    ("48-iperf1088-debug", of("25GbE"), FAIL, ["one_connection"]),
    ("71-huawei-hccn", of("200GbE"), PASS, []),
    ("79-perftest-no-last-ruler", ROCE_100, PASS, []),
]


def judged(name: str, declared: tuple[Fabric, str]) -> tuple[list[Report], list[str]]:
    """Return the reports of all tables, and the causes of the last number that is red."""
    fabric, reference = declared
    references = from_texts([reference] if reference else [], origin="given")
    read = read_tables((DATA / f"{name}.txt").read_text("utf-8"), name)
    assert not read.damages
    rules = Rules(fabric=fabric, references=references)
    reports: list[Report] = []
    causes: list[str] = []
    for table in read.tables:
        report = judge_table(table, rules)
        reports.append(report)
        for each in report.quantities:
            found = [name for name, _ in causes_of(each, table, loaded_fabric(table, fabric))]
            causes = found or causes
    return reports, causes


@pytest.mark.parametrize(
    ("name", "declared", "verdict", "causes"),
    CASES,
)
def test_a_posted_output(
    name: str, declared: tuple[Fabric, str], verdict: Verdict, causes: list[str]
) -> None:
    reports, found = judged(name, declared)
    assert (worst([each.verdict for each in reports]), found) == (verdict, causes)


def test_latencies_that_are_upside_down_are_a_note() -> None:
    (report,), _ = judged("78-latency-inverted-host", of("Slingshot 200", "latency=12 us"))
    assert any(
        each.startswith("256B takes 3.76 us, 128B 12.45") for each in texts_of(report.findings)
    )


def test_a_program_without_mpi_is_refused() -> None:
    read = read_tables((DATA / "42-nccltests182-nompi.txt").read_text("utf-8"), "42")
    (damage,) = read.damages
    assert read.tables == ()
    assert "2 starts of rank 0 on n1 and n2: built without MPI" in str(damage)
