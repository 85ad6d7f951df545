"""Find what a verdict is made of: ReFrame's report and words, the records, the roll.

The errors of all legs of a run are judged together here: thirty packets of a million are below what
a leg of 45,000 can tell from the ten that it may lose; a run of a million tells.  The law is the
legs' own: the exact lower limit of a Poisson rate, against the events that the limits of all those
legs allow together.
"""

from __future__ import annotations

import ast
import datetime
import json
import re
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from fabricproof.core.errors import ParseError
from fabricproof.core.measure import Verdict
from fabricproof.core.project import site_word
from fabricproof.core.records import QuantityRecord, read_json, record_files
from fabricproof.job.evidence.error_rates import NAMES, red_from
from fabricproof.job.run.join import (
    OF_REFRAME,
    LegResult,
    SessionResult,
    assemble,
    read_report,
    read_run,
)
from fabricproof.job.run.start import Workplace, refuse_full_disk, unloadable, wants_run
from fabricproof.physics import find_link
from fabricproof.site import Site
from fabricproof.site.roll import ROLL_FILE, due_entries, read_roll, unfitting_names
from fabricproof.traffic.error_rates import Direction, ErrorKind, way_between

#: how a line of our own begins behind ReFrame's in its log; JSON of verdict and reason follows
_DOUBTED = "fabricproof: doubted: "

#: how ReFrame's log repeats its command line (reframe/frontend/cli.py, "[ReFrame Setup]")
_COMMAND = re.compile(r"^\[[^]]*\] info: reframe:\s+command:\s+(?P<quoted>['\"].*)$")
#: and what system it took, and where its report was to go
_SYSTEM = re.compile(r"^\[[^]]*\] info: reframe:\s+selected system:\s+'(?P<said>[^']*)'")
_REPORT = re.compile(r"^\s*RFM_REPORT_FILE=(?P<said>.+)$")


def collect(
    site: Site, place: Workplace, run_id: str, arguments: Sequence[str], lines: Sequence[str]
) -> SessionResult:
    """Return the result of an ended run: report, records, required checks, ReFrame's own words."""
    report = place.report_file(run_id)
    refuse_full_disk(lines)
    # ReFrame writes no report of a run without checks; the required checks may know better.
    nothing_fits = not report.exists() and "[==========] Running 0 check(s)" in lines
    nothing_ran = nothing_fits or (not report.exists() and any(unloadable(lines)))
    cases = [] if nothing_ran else read_report(report)
    kept, torn = read_run(record_files(place.perflogs / site.name), run_id)
    due = due_entries(read_roll(site.folder), arguments)
    result = assemble(run_id, cases, kept, due, site.name)
    notes: tuple[str, ...] = (
        f"perflogs: {place.perflogs / site.name}",
        f"ReFrame's report: {report}",
        f"stage folders of what failed: {place.root / 'stage'}",
        *torn,
    )
    if nothing_fits:
        notes = (_nothing_selected(site, arguments), *torn)
    names = () if nothing_ran else _unfitting(arguments, cases)
    legs = (*_measured(site, result), *_unloaded(lines), *names)
    return SessionResult(run_id=run_id, legs=legs, notes=(*notes, *_without_roll(site)))


def collect_again(
    site: Site, place: Workplace, run_id: str
) -> tuple[SessionResult, list[dict[str, Any]]]:
    """Return the result of a run of the past, and its records, from what it left.

    Where ReFrame's report is gone or damaged, the records alone speak, with a note: then nobody
    knows what failed before it left a record, and every required check without a record is MISSING,
    unless ReFrame's log still says what was selected.  A log without a report is of a ReFrame that
    was killed, or still runs: that is MISSING.  Of old runs both are removed.
    """
    kept, torn = read_run(record_files(place.perflogs / site.name), run_id)
    notes = [*torn]
    words = _words(place.log_file(run_id))
    arguments: Sequence[str] | None
    names: tuple[LegResult, ...] = ()
    try:
        cases = read_report(place.report_file(run_id))
        arguments = _arguments(place.report_file(run_id), words)
        names = _unfitting(arguments or (), cases)
    except ParseError as error:
        arguments = _command_in(words)
        cases = cases_of(kept)
        lost = (
            "no readable report of ReFrame (or the run is not over yet): what failed without "
            "leaving a record is not known"
        )
        notes.append(f"{error.source}: {lost}")
        if place.log_file(run_id).exists() and not _ran_nothing(words):
            names = (LegResult(verdict=Verdict.MISSING, check=OF_REFRAME, reason=lost),)
    notes += _doubts(site, run_id, arguments)
    due = due_entries(read_roll(site.folder), arguments or ())
    result = assemble(run_id, cases, kept, due, site.name)
    legs = (*_measured(site, result), *_unloaded(words), *names)
    found = SessionResult(run_id=run_id, legs=legs, notes=tuple(notes))
    return _with_doubts_of(words, found), kept


def doubted(
    result: SessionResult, place: Workplace, verdict: Verdict, reason: str
) -> SessionResult:
    """Return ``result`` without its green, with a leg of ReFrame's own that says why.

    ReFrame's log keeps it for whoever collects the run again: its report does not say so.
    """
    again = _with_doubt(result, verdict, reason)
    if again is result:
        return result
    log = place.log_file(result.run_id)
    try:
        log.parent.mkdir(parents=True, exist_ok=True)
        with log.open("a", encoding="utf-8") as file:
            line = json.dumps({"verdict": verdict.value, "reason": reason})
            file.write(f"{_DOUBTED}{line}\n")
    except OSError as error:
        note = f"{log}: {error.strerror}: fabricproof report will not know that it is {verdict}"
        return replace(again, notes=(*again.notes, note))
    return again


def _with_doubt(result: SessionResult, verdict: Verdict, reason: str) -> SessionResult:
    if result.verdict not in {Verdict.PASS, Verdict.SKIPPED}:
        return result
    doubt = LegResult(verdict=verdict, check=OF_REFRAME, reason=reason)
    return replace(result, legs=(*result.legs, doubt))


def _with_doubts_of(words: Iterable[str], result: SessionResult) -> SessionResult:
    """Return the result with what was doubted of it when it ended."""
    for line in words:
        if line.startswith(_DOUBTED):
            try:
                said = json.loads(line.removeprefix(_DOUBTED))
                verdict, reason = Verdict(said["verdict"]), said["reason"]
            except ValueError:
                verdict, reason = Verdict.MISSING, "what was doubted of it is cut off in its log"
            result = _with_doubt(result, verdict, reason)
    return result


def left_a_log_only(site: Site, place: Workplace, run_id: str) -> bool:
    """Tell whether a run of ``site`` left ReFrame's log and no report: it was killed, or still is.

    No run are a list of checks, a rehearsal, what another site or another folder of perflogs was
    measured for, and what had no check to run where none was due.
    """
    words = _words(place.log_file(run_id))
    report = place.report_file(run_id)
    arguments = _command_in(words) or ()
    if report.exists() or not wants_run(arguments) or "--dry-run" in arguments:
        return False
    if _said(_SYSTEM, words) not in {None, site.name}:
        return False
    due = _said(_REPORT, words)
    if due is not None and Path(due).resolve() != report.resolve():
        return False
    return bool(collect_again(site, place, run_id)[0].legs)


def _said(pattern: re.Pattern[str], words: Iterable[str]) -> str | None:
    return next((found["said"] for found in map(pattern.match, words) if found), None)


def _ran_nothing(words: Sequence[str]) -> bool:
    """Tell whether ReFrame's log says why it wrote no report: it had no check to run."""
    return any("] Running 0 check(s)" in line for line in words) or any(unloadable(words))


def cases_of(kept: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return the test cases that left these records, as ReFrame's report would name them."""
    cases = {
        (each["unique_name"], each["partition"], each["stack"], each["job_id"]): each["check"]
        for each in kept
        if each["kind"] in {"leg", "quantity"}
    }
    fabrics = {(each["unique_name"], each["stack"]): each.get("fabric") for each in kept}
    return [
        {
            "name": check,
            "unique_name": name,
            "partition": partition,
            "environ": stack,
            "jobid": job,
            "fabric": fabrics[name, stack],
            "result": "pass",
        }
        for (name, partition, stack, job), check in cases.items()
    ]


def _measured(site: Site, result: SessionResult) -> tuple[LegResult, ...]:
    """Return the legs of a run, and what their errors show together."""
    legs = _with_links(site, result.legs)
    return (*legs, *pooled_errors(legs))


def _with_links(site: Site, legs: Iterable[LegResult]) -> tuple[LegResult, ...]:
    """Return the legs, those that left no record with the link that the site declares.

    What left one and does not name its link is older than the field: the site may have been
    another then.
    """
    links = {spec.name: find_link(spec.link).name for spec in site.fabrics if spec.link is not None}
    return tuple(
        leg if leg.link or leg.leg else replace(leg, link=links.get(leg.fabric, "")) for leg in legs
    )


def _unloaded(lines: Sequence[str]) -> tuple[LegResult, ...]:
    return tuple(
        LegResult(verdict=Verdict.MISSING, check="check file", reason=complaint)
        for complaint in unloadable(lines)
    )


def _unfitting(
    arguments: Sequence[str], cases: Iterable[Mapping[str, Any]]
) -> tuple[LegResult, ...]:
    """Return what was asked for by name and is not there: a typo leaves out a measurement."""
    ran = [str(case.get("name", "")) for case in cases]
    reason = "no check that the other options leave has such a name: fabricproof reframe -l"
    return tuple(
        LegResult(verdict=Verdict.MISSING, check=f"-n {name}", reason=reason)
        for name in unfitting_names(arguments, ran)
    )


def _nothing_selected(site: Site, arguments: Sequence[str]) -> str:
    chosen = [each for each in arguments if each != "-r"]
    said = f"no check was selected by {shlex.join(chosen)}" if chosen else "no check was selected"
    stacks = ", ".join(stack.name for stack in site.stacks)
    return f"{said}; stacks: {stacks}; checks: fabricproof reframe -l"


def _without_roll(site: Site) -> tuple[str, ...]:
    if (site.folder / ROLL_FILE).exists():
        return ()
    missing = "no list of required checks: an absent one is not noticed; next: "
    return (f"{missing}fabricproof site roll {site_word(site.name)} --write",)


def _doubts(site: Site, run_id: str, arguments: Sequence[str] | None) -> Iterable[str]:
    yield from _without_roll(site)
    if arguments is None:
        yield "nobody knows what was selected, so all required checks count as due"
    roll = site.folder / ROLL_FILE
    if roll.exists():
        changed = datetime.datetime.fromtimestamp(roll.stat().st_mtime, tz=datetime.UTC)
        if changed.strftime("%Y%m%dT%H%M%SZ") > run_id:
            yield "the list of required checks is newer than this run; what is due is what it says"


def _arguments(report: Path, words: Sequence[str]) -> Sequence[str] | None:
    """Return what ReFrame was started with, without its own name; None where nobody knows."""
    said = read_json(report).get("session_info")
    line = said.get("cmdline") if isinstance(said, dict) else None
    return _command_in(words) if line is None else _split(str(line))


def _command_in(words: Sequence[str]) -> Sequence[str] | None:
    for line in words:
        match = _COMMAND.match(line)
        if match:
            try:
                return _split(str(ast.literal_eval(match["quoted"])))
            except (ValueError, SyntaxError):
                return None
    return None


def _split(line: str) -> Sequence[str] | None:
    try:
        return shlex.split(line)[1:]
    except ValueError:
        return None


def _words(log: Path) -> list[str]:
    """Return those lines of ReFrame's log that we ask, none where it is gone."""
    asked = ("WARNING", "command:", "system:", "RFM_REPORT_FILE=", "Running 0 check(s)", _DOUBTED)
    try:
        with log.open(encoding="utf-8", errors="replace") as file:
            return [line.rstrip("\n") for line in file if any(each in line for each in asked)]
    except OSError:
        return []


#: what the row is called beside its rail
ALL_LEGS = "all_legs"

_NAME_OF = {kind.value: name for kind, name in NAMES.items()}


@dataclass(frozen=True, kw_only=True)
class _Part:
    """One leg's share of a direction: its error rate and what judged it there."""

    leg: LegResult
    rate: Mapping[str, Any]
    judged: QuantityRecord
    limit_ppm: float

    @property
    def packets(self) -> int:
        return max(int(self.rate["packets"]), int(self.rate["events"]))

    @property
    def unsure(self) -> int:
        """Events of which the counters do not tell; earlier records know none."""
        return int(self.rate.get("may_have_arrived", 0))

    @property
    def allowed(self) -> float:
        """Events that the leg's own limit allows on average."""
        return self.limit_ppm * self.packets / 1e6


def pooled_errors(legs: Sequence[LegResult]) -> tuple[LegResult, ...]:
    """Return a FAIL for each direction that lost too much in all its legs together.

    It is UNJUDGED where the counters do not tell whether that much was lost.

    A direction is kind, rail, node and partner.  One whose errors are not PASS in a leg by itself
    is left to that leg.

    Args:
        legs: of one run, each with what was lost in all its attempts.
    """
    pools: dict[tuple[str, ...], list[_Part]] = {}
    for part in _parts(legs):
        rate = part.rate
        key = (part.leg.partition, part.leg.fabric, rate["kind"], rate["rail"])
        pools.setdefault((*key, rate["node"], rate["peer"], rate["direction"]), []).append(part)
    found = (_judged_pool(pool) for pool in pools.values())
    return tuple(each for each in found if each is not None)


def _parts(legs: Iterable[LegResult]) -> Iterator[_Part]:
    for leg in legs:
        if leg.verdict in {Verdict.INVALID, Verdict.MISSING, Verdict.SKIPPED}:
            continue
        judged = {each.name: each for each in leg.quantities}
        for rate in leg.errors:
            mine = judged.get(_NAME_OF.get(rate["kind"], ""))
            # Among many nodes nobody knows the other end; what a leg may not judge, none may.
            if mine is None or mine.reference is None or not rate["peer"]:
                continue
            doubtful = rate.get("arrivals_unknown") or rate.get("set_back")
            if not doubtful and rate.get("beside", 0) <= rate["packets"]:
                yield _Part(leg=leg, rate=rate, judged=mine, limit_ppm=float(mine.reference))


def _judged_pool(pool: Sequence[_Part]) -> LegResult | None:
    if len(pool) < 2 or any(each.judged.verdict is not Verdict.PASS for each in pool):
        return None
    events = sum(int(each.rate["events"]) for each in pool)
    unsure = sum(each.unsure for each in pool)
    packets = sum(each.packets for each in pool)
    if not events + unsure:
        return None
    limit = sum(each.allowed for each in pool) / packets * 1e6
    critical = red_from(packets, limit)
    if events + unsure < critical:
        return None
    verdict, doubt = Verdict.FAIL, ""
    if events < critical:
        verdict, events = Verdict.UNJUDGED, events + unsure
        doubt = f"; of {unsure} of them the counters do not tell whether they had arrived"

    def share(part: _Part) -> int:
        return int(part.rate["events"]) + (part.unsure if doubt else 0)

    most = max(pool, key=share)
    rail, node, peer = (most.rate[key] for key in ("rail", "node", "peer"))
    way = way_between(rail, node, peer, Direction(most.rate["direction"]))
    reason = (
        f"{way}: {events} of {packets} packets {ErrorKind(most.rate['kind']).value} in "
        f"{len(pool)} legs together, {events / packets * 1e6:.4g} per million; {limit:.4g} per "
        f"million are allowed ({most.judged.origin}), {critical} or more are no "
        f"chance; most of them ({share(most)}) in {most.leg.check} {most.leg.leg} with "
        f"{most.leg.stack}{doubt}"
    )
    value, upper = (each / packets * 1e6 for each in (events, critical - 1))
    return _row(most, verdict, reason, value=value, upper=upper)


def _row(most: _Part, verdict: Verdict, reason: str, *, value: float, upper: float) -> LegResult:
    """Return the row of a direction, under the check of the leg that lost most: it repeats it."""
    leg, name = most.leg, f"{most.rate['rail']}.{ALL_LEGS}"
    quantity = replace(
        most.judged, value=value, upper=upper, reason=reason, verdict=verdict, named=True
    )
    return replace(
        leg,
        verdict=verdict,
        leg=name,
        nodes=tuple(sorted((most.rate["node"], most.rate["peer"]))),
        quantities=(quantity,),
        findings=(),
        reason=f"{quantity.name}: {reason}",
        errors=(),
        rails=(),
        relation="",
    )
