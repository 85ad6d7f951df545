"""No word decides: with every sentence in other letters nothing but the sentences is another."""

from __future__ import annotations

import contextlib
import io
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from report_data import report
from rich.console import Console

from fabricproof.benchmarks.parsers import read_tables
from fabricproof.cli.main import group
from fabricproof.cli.measure.run import result_record
from fabricproof.core.errors import FabricproofError
from fabricproof.core.findings import FindingKind
from fabricproof.core.measure import Table
from fabricproof.job.outcome import Outcome, judge_leg, needs_second_look
from fabricproof.job.recording import describe_outcome
from fabricproof.job.relation import Ratio, RatioSide, Relation
from fabricproof.job.relations.judge import judge_relations, legs_to_repeat
from fabricproof.job.run import RunResult, assemble
from fabricproof.physics import Fabric, find_link
from fabricproof.report.formats.junit import render_junit
from fabricproof.report.formats.prometheus import render_prometheus
from fabricproof.report.formats.record import report_record
from fabricproof.report.red import red_groups, told_of_passes
from fabricproof.report.text.drain import advise
from fabricproof.report.text.screen import summary
from fabricproof.report.text.terminal import render
from fabricproof.verdict.references import from_text
from fabricproof.verdict.table import judge_table
from fabricproof.verdict.value import Rules, at_least
from leg_folders import PUT_BW, PUT_BW_SENT, leave, make_leg, rank_text, slower
from reworded import reworded, same
from tables import latencies

TESTS = Path(__file__).parents[1]
REPLAYS = TESTS / "replays"
BENCHMARKS = {"osu", "osu-mpi4py", "imb", "iperf", "iperf3", "hpcc", "perftest", "collectives"}
ONE, OTHER = make_leg(name="one"), make_leg(name="other")
ALIKE = Relation(
    name="likeness",
    what=Ratio(
        over=RatioSide(legs=("other",), quantity="bandwidth", sizes=(1 << 20, 1 << 22)),
        under=RatioSide(legs=("one",), quantity="bandwidth", sizes=(1 << 20, 1 << 22)),
        reference=at_least(1.0, unit="x", tolerance=0.05, origin="test: alike"),
        most=1.2,
        hint="look at the cable",
    ),
    legs=("one", "other"),
    suite="osu",
    program="osu_put_bw",
)


def ranks(**changes: Any) -> tuple[str, ...]:
    return (
        rank_text(0, sent=PUT_BW_SENT, received=0, **changes),
        rank_text(1, sent=0, received=PUT_BW_SENT, **changes),
    )


def with_losses(text: str, lost: int) -> str:
    return text.replace(
        "RetransSegs=2 TCPDSACKRecvSegs=2\nstatus", f"RetransSegs={lost} TCPDSACKRecvSegs=2\nstatus"
    )


#: what the second of two legs left, attempt by attempt
LEFT: Mapping[str, tuple[Mapping[str, Any], ...]] = {
    "good": ({},),
    "slow once": ({"stdout": slower(PUT_BW, 2)}, {}),
    "slow twice": ({"stdout": slower(PUT_BW, 2)}, {"stdout": slower(PUT_BW, 2)}),
    "slow, no second look": ({"stdout": slower(PUT_BW, 2)},),
    "unlike its neighbour": ({"stdout": slower(PUT_BW, 1.06)}, {"stdout": slower(PUT_BW, 1.06)}),
    "impossible": ({"stdout": slower(PUT_BW, 0.3)},),
    "cut": ({"stdout": "\n".join(PUT_BW.splitlines()[:10])},),
    "hung": ({"status": "124\n", "stderr": "killed"}, {}),
    "never ended": ({"status": None},),
    "failed": ({"status": "1\n", "stderr": "Connection reset by peer"},),
    "refused": ({"status": "77\n", "stderr": "no such device"},),
    "wrong path": ({"ranks": ranks(interface="mgmt0")},),
    "a rank lost": ({"ranks": ranks(status=None)},),
    "one node": ({"ranks": ranks(node="n1")},),
    "no ranks": ({"ranks": ()},),
    "lossy": ({"ranks": tuple(with_losses(each, 900) for each in ranks())},) * 2,
    "hardly lossy": ({"ranks": tuple(with_losses(each, 4) for each in ranks())},),
    "nothing": (),
}
IDENTITY = {
    "run_id": "20261123T063937Z-da73d2",
    "check": "OsuPut",
    "unique_name": "OsuPut_0",
    "partition": "compute",
    "stack": "openmpi5",
    "fabric": "eth0",
    "job_id": "42",
    "stage_folder": "stage",
    "job_state": "COMPLETED",
}
CASE = {
    "name": "OsuPut",
    "unique_name": "OsuPut_0",
    "partition": "compute",
    "environ": "openmpi5",
    "fabric": "eth0",
    "jobid": "42",
    "run_index": 0,
}


def outcomes_of(folder: Path) -> list[Outcome]:
    """Return what the legs of a job and their relation came to."""
    outcomes = [judge_leg(folder, leg) for leg in (ONE, OTHER)]
    return [*outcomes, *judge_relations([ALIKE], outcomes)]


def told(outcomes: Sequence[Outcome]) -> dict[str, Any]:
    """Return all that the legs come to, as plain data, on the way from the judge to the readers."""
    records = [
        json.loads(json.dumps({"format": 1, **each}))
        for outcome in outcomes
        for each in describe_outcome(outcome, IDENTITY)
    ]
    is_green = all(each.report.verdict.value == "PASS" for each in outcomes)
    case = {**CASE, "result": "pass" if is_green else "fail"}
    session = RunResult(run_id=IDENTITY["run_id"], legs=assemble([case], records, ()))
    return {
        "again": [needs_second_look(each) for each in outcomes],
        "repeated": sorted(legs_to_repeat([ALIKE], outcomes[:2])),
        "records": records,
        **readers(session, records),
    }


def readers(session: RunResult, records: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return what every reader makes of a run."""
    screen = Console(width=400, record=True, file=io.StringIO())
    render(session, screen, "here")
    data = report(*session.legs)
    document = report_record(data, records)
    for each in document["drain"]["blamed"]:
        del each["line"]  # ASCII alone: other letters are no more there
    return {
        "verdict": session.verdict.value,
        "run": result_record(session),
        "screen": screen.export_text(),
        "document": document,
        "red": [asdict(replace(each, legs=())) for each in red_groups(session)],
        "of passes": told_of_passes(session.legs),
        "blamed": [asdict(each) for each in advise(data, records).blamed],
        "summary": [each.text for each in summary(data, records, width=400, whole=True)],
        "junit": render_junit(data),
        "prometheus": render_prometheus(data),
    }


@pytest.mark.parametrize("left", LEFT)
def test_no_word_decides_what_a_job_came_to(left: str, tmp_path: Path) -> None:
    leave(tmp_path, ONE)
    for number, each in enumerate(LEFT[left], start=1):
        leave(tmp_path, OTHER, attempt=number, **each)
    plain = told(outcomes_of(tmp_path))
    with reworded():
        other = told(outcomes_of(tmp_path))
    assert plain != other, "no sentence was another"
    for name, found in plain.items():
        assert same(found) == same(other[name]), name


@pytest.mark.parametrize(
    "file", sorted((*REPLAYS.glob("*.out"), *REPLAYS.glob("*.toml"))), ids=lambda each: each.name
)
def test_no_word_decides_what_judge_says(file: Path) -> None:
    arguments = ["judge", str(file)] + ["--link", "FDR"] * (file.suffix == ".out")
    for how in ([], ["--json"]):
        plain = CliRunner().invoke(group, [*arguments, *how])
        with reworded():
            other = CliRunner().invoke(group, [*arguments, *how])
        read = json.loads if how else str
        assert plain.exit_code == other.exit_code
        assert plain.output != other.output
        assert same(read(plain.output)) == same(read(other.output))


def tables_of_recordings() -> Iterator[Table]:
    for path in sorted((TESTS / "data").glob("*/*")):
        if path.parent.name in BENCHMARKS and path.is_file():
            with contextlib.suppress(FabricproofError, UnicodeDecodeError):
                yield from read_tables(path.read_text("utf-8"), path.name).tables


def with_a_switch() -> Table:
    times = {2**power: 1.0 + 2**power / 12000 for power in range(23)}
    return latencies(times | {32768: times[32768] * 2.4})


#: what the tables of the recordings are judged by: nothing, a path, a path and what somebody says
RULES = (
    Rules(fabric=None),
    Rules(fabric=Fabric(link=find_link("HDR100"))),
    Rules(
        fabric=Fabric(link=find_link("1GbE")),
        references=dict(
            from_text(text, tolerance=None, origin="site (measured)")
            for text in ("bandwidth=100 MB/s", "latency=1.2 us", "latency_1MiB=1 ms")
        ),
    ),
)


@pytest.mark.parametrize("rules", RULES, ids=("nothing", "a path", "references"))
def test_no_word_decides_about_a_recorded_table(rules: Rules) -> None:
    """The whole report: verdicts, numbers, bounds, kinds, and the sentences in their order."""
    tables = [*tables_of_recordings(), with_a_switch()]
    assert len(tables) > 100
    plain = [asdict(judge_table(each, rules)) for each in tables]
    with reworded():
        # References and paths that are made meanwhile have other letters too.
        again = replace(rules, references={k: replace(v) for k, v in rules.references.items()})
        other = [asdict(judge_table(each, again)) for each in tables]
    for table, first, second in zip(tables, plain, other, strict=True):
        assert same(first) == same(second), f"{table.source} {table.program}"
    kinds = {found["kind"] for each in other for found in each["findings"]}
    assert rules is not RULES[1] or FindingKind.PROTOCOL_SWITCH in kinds
