"""Files that the version before wrote are read, and mean what they meant."""

from __future__ import annotations

import io
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from report_data import report
from rich.console import Console

from fabricproof.core.measure import FindingKind
from fabricproof.core.records import findings_of
from fabricproof.job.run import SessionResult, assemble, read_report, read_run
from fabricproof.report.red import red_groups, told_of_passes
from fabricproof.report.text.drain import advise
from fabricproof.report.text.terminal import render
from fabricproof.verdict.baseline.file import read_baseline
from reworded import reworded_record, same

EARLIER = Path(__file__).parents[1] / "data" / "earlier"
RECORDS = EARLIER / "compute" / "records.jsonl.gz"
RUNS = sorted(path.stem for path in (EARLIER / "reports").glob("*.json"))


def session_of(run_id: str, records: Sequence[Mapping[str, Any]]) -> SessionResult:
    """Return the result of one of the recorded runs, of ``records``."""
    return assemble(run_id, read_report(EARLIER / "reports" / f"{run_id}.json"), records, ())


def meaning(session: SessionResult, records: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return all that a run comes to for its readers, as plain data."""
    console = Console(width=400, record=True, file=io.StringIO())
    render(session, console, "vcluster")
    advice = advise(report(*session.legs), records)
    return {
        "verdict": session.verdict.value,
        "verdicts": [[leg.leg, leg.verdict.value] for leg in session.legs],
        "screen": console.export_text().splitlines(),
        "red": [
            [each.verdict.value, each.net_path, *each.nodes, each.worst, each.sure]
            for each in red_groups(session)
        ],
        "told": told_of_passes(session.legs),
        "blamed": [[each.node, *each.rails, each.reason, *each.evidence] for each in advice.blamed],
    }


def records_of(run_id: str) -> list[dict[str, Any]]:
    """Return the records of one of the recorded runs."""
    return read_run([RECORDS], run_id)[0]


def seen_on_one_node(records: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return the records as if preflight had found the link of vc1 alone to be slow."""
    return [
        {**each, "findings": [one for one in each["findings"] if "on vc2 runs" not in one]}
        if each["kind"] == "leg"
        else dict(each)
        for each in records
    ]


def with_kinds(record: Mapping[str, Any]) -> dict[str, Any]:
    """Return a record of the version before as this one writes it."""
    if record["kind"] == "leg":
        return {**record, "finding_kinds": [each.record() for each in findings_of(record)]}
    return dict(record)


def meanings() -> dict[str, Any]:
    """Return what meaning.json holds."""
    found = {run: meaning(session_of(run, records_of(run)), records_of(run)) for run in RUNS}
    one = seen_on_one_node(records_of(RUNS[0]))
    return {**found, "slow on vc1 alone": meaning(session_of(RUNS[0], one), one)}


def test_records_of_the_version_before_mean_what_they_meant():
    found = meanings()
    for each in found.values():
        del each["screen"]  # how it is shown may change
    assert found == json.loads((EARLIER / "meaning.json").read_text())


def test_the_recorded_runs_show_what_had_no_kind():
    found = json.loads((EARLIER / "meaning.json").read_text())
    assert any("red twice on the same nodes" in str(each["red"]) for each in found.values())
    assert any("second look: passed" in each for each in found[RUNS[0]]["told"])
    assert [each[0] for each in found["slow on vc1 alone"]["blamed"]] == ["vc1"]


def test_no_word_decides_anything():
    """All sentences in other letters, as a translation would change them: nothing else changes."""
    for run in RUNS:
        for records in (records_of(run), seen_on_one_node(records_of(run))):
            typed = [with_kinds(each) for each in records]
            plain = meaning(session_of(run, typed), typed)
            other = [reworded_record(each) for each in typed]
            assert same(meaning(session_of(run, other), other)) == same(plain)
            assert same(plain) == same(meaning(session_of(run, records), records))


def test_a_finding_of_a_later_version_is_a_note():
    (found,) = findings_of({"findings": ["new"], "finding_kinds": [{"kind": "of tomorrow"}]})
    assert (found.text, found.kind) == ("new", FindingKind.NOTE)


def test_a_baseline_of_the_version_before_is_read():
    baseline = read_baseline(EARLIER / "baseline.json")
    assert baseline.name == "old-spring"
    assert sorted(baseline.runs) == RUNS
