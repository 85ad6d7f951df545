"""Find what a verdict is made of: ReFrame's report, the records, the roll, what was noted.

A run that our own commands start leaves a note beside ReFrame's log: what was asked for, whether it
came to its end, and what ReFrame's report does not tell.  So a report of later finds what the run
itself found.
"""

from __future__ import annotations

import datetime
import difflib
import json
import re
import shlex
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from fabricproof.core.errors import ParseError
from fabricproof.core.measure import Verdict
from fabricproof.core.project import site_word
from fabricproof.core.records import read_json, read_records, record_files
from fabricproof.core.whole_file import write_whole
from fabricproof.job.run.join import assemble, pooled_errors
from fabricproof.job.run.result import OF_REFRAME, LegResult, RunResult
from fabricproof.job.run.start import Workplace
from fabricproof.physics import find_link
from fabricproof.site import Site
from fabricproof.site.roll import ROLL_FILE, due_entries, read_roll, values_of


@dataclass(frozen=True, kw_only=True)
class RunNote:
    """What is known of a run besides ReFrame's report and the records."""

    site: str
    arguments: Sequence[str]  # of ReFrame
    perflogs: str  # folder that the run writes to
    ended: bool = False  # ReFrame came to its end; until then nobody knows what is lost
    ran_nothing: bool = False  # it had no check to run, and so left no report
    missing: Sequence[Sequence[str]] = ()  # what was due and is not there, each with the reason
    doubts: Sequence[Sequence[str]] = ()  # verdict and reason of what takes away the run's green

    def write(self, place: Workplace, run_id: str) -> None:
        """Keep it; OutputError leaves what was there before."""
        path = place.note_file(run_id)
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, json.dumps(asdict(self)))


def read_note(place: Workplace, run_id: str) -> RunNote | None:
    """Return what was noted of a run; None if nothing was: plain ReFrame made it, or it is old."""
    try:
        return RunNote(**read_json(place.note_file(run_id)))
    except (OSError, ValueError, TypeError):
        return None


def collect(site: Site, place: Workplace, run_id: str) -> tuple[RunResult, list[dict[str, Any]]]:
    """Return the result of a run, right after it or later, and its records.

    If ReFrame's report is gone or damaged, the records alone speak, with a note: then nobody knows
    what failed before it left a record.  A note of a run that has no end and no report is of a
    ReFrame that was killed, or still runs: that is MISSING.
    """
    kept, notes = read_run(record_files(place.perflogs / site.name), run_id)
    noted = read_note(place, run_id)
    arguments = noted.arguments if noted else None
    more = [
        LegResult(verdict=Verdict.MISSING, check=check, reason=reason)
        for check, reason in (noted.missing if noted else ())
    ]
    try:
        report = _report(place.report_file(run_id))
        cases = [case for run in report["runs"] for case in run["testcases"]]
        if noted is None:
            arguments = shlex.split(report.get("session_info", {}).get("cmdline", ""))[1:]
    except ParseError as error:
        cases = _cases_of(kept)
        if noted is None or not noted.ran_nothing:
            lost = (
                "no readable report of ReFrame (or the run is not over yet): what failed without "
                "leaving a record is not known"
            )
            notes.append(f"{error.source}: {lost}")
            if noted is not None:
                more.insert(0, LegResult(verdict=Verdict.MISSING, check=OF_REFRAME, reason=lost))
    notes += _notes_on_roll(site, run_id, arguments)
    due = due_entries(read_roll(site.folder), arguments or ())
    # What left no record has the link that the site declares now.
    links = {spec.name: find_link(spec.link).name for spec in site.fabrics if spec.link is not None}
    legs = tuple(
        leg if leg.link or leg.leg else replace(leg, link=links.get(leg.fabric, ""))
        for leg in assemble(cases, kept, due, site.name)
    )
    # Nodes of each job as it said itself, which the backend squeue does not know.
    own = {str(each["job_id"]): (each.get("job_end") or {}).get("nodes") for each in kept}
    known = {str(case["jobid"]): case.get("job_nodelist") for case in cases if case.get("jobid")}
    nodes = {job: listed or own.get(job) for job, listed in known.items()}
    result = RunResult(
        run_id=run_id,
        legs=(*legs, *pooled_errors(legs), *more),
        notes=tuple(notes),
        job_nodes={job: tuple(sorted(each)) for job, each in nodes.items() if each},
    )
    for verdict, reason in noted.doubts if noted else ():
        if result.verdict in {Verdict.PASS, Verdict.SKIPPED}:
            doubt = LegResult(verdict=Verdict(verdict), check=OF_REFRAME, reason=reason)
            result = replace(result, legs=(*result.legs, doubt))
    return result, kept


def left_a_note_only(site: Site, place: Workplace, run_id: str) -> bool:
    """Tell whether a run of ``site`` into these perflogs left no report: killed, or still on."""
    noted = read_note(place, run_id)
    if noted is None or place.report_file(run_id).exists() or noted.site != site.name:
        return False
    is_here = Path(noted.perflogs).resolve() == place.perflogs.resolve()
    return is_here and bool(collect(site, place, run_id)[0].legs)


def _report(path: Path) -> dict[str, Any]:
    """Return ReFrame's report; ParseError if there is none, or it is damaged."""
    try:
        report: dict[str, Any] = read_json(path)
        for run in report["runs"]:
            for case in run["testcases"]:
                case["result"], case["partition"], case["environ"]
        return report
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ParseError(
            "ReFrame left no readable report",
            source=str(path),
            expected="its JSON report",
            got=type(error).__name__,
            next_step="read its log; nothing of this run counts",
        ) from None


def read_report(path: Path) -> list[dict[str, Any]]:
    """Return the test cases of ReFrame's JSON report.

    Raises:
        ParseError: there is no report or it is damaged; then nothing can be called green.
    """
    return [case for run in _report(path)["runs"] for case in run["testcases"]]


def read_run(perflogs: Iterable[Path], run_id: str) -> tuple[list[dict[str, Any]], list[str]]:
    """Return the records of run ``run_id`` from the record files, and a note on each torn line.

    A record that stands twice, as in a copied file, counts once.
    """
    torn: list[str] = []
    records = [
        record
        for path in perflogs
        for record in read_records(path, on_torn=torn.append, holding=run_id)
        if record.get("run_id") == run_id
    ]
    once = {json.dumps(record, sort_keys=True): record for record in records}
    return list(once.values()), torn


def _cases_of(kept: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return the test cases that left these records, as ReFrame's report would name them."""
    cases = {}
    for each in kept:
        if each["kind"] in {"leg", "quantity"}:
            case = {
                "unique_name": each["unique_name"],
                "partition": each["partition"],
                "environ": each["stack"],
                "jobid": each["job_id"],
            }
            more = {"name": each["check"], "fabric": each.get("fabric"), "result": "pass"}
            cases[tuple(case.values())] = {**case, **more}
    return list(cases.values())


def _notes_on_roll(site: Site, run_id: str, arguments: Sequence[str] | None) -> Iterator[str]:
    roll = site.folder / ROLL_FILE
    if not roll.exists():
        word = site_word(site.name)
        yield (
            "no list of required checks: an absent one is not noticed; next: "
            f"fabricproof site roll {word} --write"
        )
        return
    if arguments is None:
        yield "nobody knows what was selected, so all required checks count as due"
    changed = datetime.datetime.fromtimestamp(roll.stat().st_mtime, tz=datetime.UTC)
    if changed.strftime("%Y%m%dT%H%M%SZ") > run_id:
        yield "the list of required checks is newer than this run; what is due is what it says"


def selects_nothing(
    arguments: Sequence[str],
    ran: Collection[str],
    stacks: Collection[str],
    described: Iterable[Mapping[str, Any]] = (),
) -> list[tuple[str, str]]:
    """Return the ``-n``, ``-p`` and ``-t`` that select nothing, each with what may be meant.

    A typo leaves out a measurement.  ReFrame searches for what it is given in names (without
    blanks) and tags, and at the beginning of a stack's name.  Those by hash (``/...``) and variant
    (``NAME@2``) are not followed.

    Args:
        arguments: of ReFrame.
        stacks: of the site.
        ran: names of the checks that ran or were skipped, as in ReFrame's report.
        described: all checks, as ``reframe --describe`` has them, where nothing ran.
    """
    described = list(described)
    whole = {*ran, *(str(each["name"]) for each in described)}
    checks = {name.partition(" ")[0].partition("@")[0] for name in whole}
    tags = {tag for each in described for tag in each["tags"]}
    found = []
    for name in values_of(arguments, "--name"):
        followed = "@" not in name and not name.startswith("/")
        if followed and not any(re.search(name, each.replace(" ", "")) for each in ran):
            reason = f"no check that the other options leave has such a name{_meant(name, checks)}"
            found.append((f"-n {name}", f"{reason}; fabricproof reframe -l"))
    for name in values_of(arguments, "--prgenv"):
        if not any(re.match(name, each) for each in stacks):
            reason = f"no stack of this site: {', '.join(stacks)}{_meant(name, stacks)}"
            found.append((f"-p {name}", reason))
    found += [
        (f"-t {name}", f"no check has such a tag{_meant(name, tags)}")
        for name in values_of(arguments, "--tag")
        if tags and not any(re.search(name, each) for each in tags)
    ]
    return found


def _meant(word: str, known: Collection[str]) -> str:
    near = difflib.get_close_matches(word, [*known], n=1)
    return f"; did you mean {near[0]}?" if near else ""
