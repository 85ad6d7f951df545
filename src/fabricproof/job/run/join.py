"""Join what was due, what ReFrame did and what the records say; pure but for reading.

The verdict of a run is made here, never from ReFrame's exit status alone: a test case without a
record is MISSING, a required check that ReFrame did not load is MISSING, and a run in which
nothing was judged is no PASS.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from fabricproof.core.errors import ParseError
from fabricproof.core.findings import Finding, as_notes, findings_of
from fabricproof.core.measure import Verdict, worst
from fabricproof.core.project import site_word
from fabricproof.core.provenance import rebuilt
from fabricproof.core.records import QuantityRecord, read_json, read_records
from fabricproof.core.units import by_key
from fabricproof.job.leg import ADMISSION_CHECK, own_name
from fabricproof.job.recording import LEGS_KEY
from fabricproof.physics import device_word

#: what stands for a program where a stack could not be built
BUILD_PROGRAM = "stack build"

#: check of a leg that says why ReFrame's whole run is doubtful
OF_REFRAME = "ReFrame"


@dataclass(frozen=True, kw_only=True)
class LegResult:
    """What one leg of one test case came to.

    ``quantities`` are the quantity records of the attempt that counts; ``reason`` says why the
    verdict is what it is, empty for a plain PASS.  What came to no leg has a check alone, in
    words: ``check file``, ``ReFrame``.
    """

    verdict: Verdict
    check: str
    partition: str = ""
    stack: str = ""
    suite: str = ""
    program: str = ""
    fabric: str = ""
    leg: str = ""
    nodes: tuple[str, ...] = ()
    quantities: tuple[QuantityRecord, ...] = ()
    findings: tuple[Finding, ...] = ()
    reason: str = ""
    job_id: str | None = None
    stage_folder: str | None = None
    net_path: Mapping[str, Any] | None = None
    """The proof of the path: its state, the reason and the bytes moved; None where none was."""
    for_want_of: str = ""
    """The stack whose failed build kept it from running; empty for all others."""
    fail_phase: str = ""
    """Where it left no record: the phase of ReFrame that failed its test case; empty elsewhere."""
    link: str = ""
    """The link of its path, as the site declared it when it ran; empty where nobody recorded it."""
    errors: tuple[Mapping[str, Any], ...] = ()
    """What was lost or damaged, for each rail, node and direction, in all attempts together; empty
    where nobody counted."""
    rails: tuple[str, ...] = ()
    """The rails that it was to go over; empty where it left no record."""
    relation: str = ""
    """What is judged across legs: ``scaling``; empty for a leg."""
    check_file: str = ""
    """The file of a check that is none of ours; empty for all others."""

    @property
    def layout(self) -> str:
        """What tells a leg from others over the same rails: ``4x2`` nodes and ranks, ``back``."""
        return own_name(self.leg, self.rails) if self.rails and not self.relation else ""

    @property
    def device(self) -> str:
        """``Soft-RoCE`` where software stood for the HCA; empty for all else."""
        return device_word(self.link)

    @property
    def doubts_run(self) -> bool:
        """Whether it says that the whole run is doubtful: its end is unknown."""
        return self.check == OF_REFRAME and not self.partition

    @property
    def path_name(self) -> str:
        """The path as every line for people shows it: ``rxe0:1 Soft-RoCE``, ``rail0``."""
        return " ".join(filter(None, (self.leg, self.device)))

    def row_of(self, *kinds: str) -> str:
        """Return the node of which an admission says whether users may have it; else empty.

        ``kinds``: ``admit``, ``partner`` or both (``job.leg``).
        """
        begins = tuple(f"{kind}.{node}." for kind in kinds for node in self.nodes)
        alone = self.check == ADMISSION_CHECK and len(self.nodes) == 1
        return self.nodes[0] if alone and self.leg.startswith(begins) else ""


@dataclass(frozen=True, kw_only=True)
class SessionResult:
    """A whole run: its legs, and its verdict over everything that was due."""

    run_id: str
    legs: tuple[LegResult, ...]
    notes: tuple[str, ...] = field(default=())

    @property
    def verdict(self) -> Verdict:
        """The worst verdict; SKIPPED where nothing was judged at all."""
        verdicts = [leg.verdict for leg in self.legs]
        return worst(verdicts) if verdicts else Verdict.SKIPPED

    def counts(self) -> dict[Verdict, int]:
        """Return how many legs have each verdict, worst first, zeros left out."""
        found = {verdict: sum(leg.verdict is verdict for leg in self.legs) for verdict in Verdict}
        return {verdict: count for verdict, count in found.items() if count}


def read_report(path: Path) -> list[dict[str, Any]]:
    """Return the test cases of ReFrame's JSON report.

    Raises:
        ParseError: there is no report or it is damaged; then nothing can be called green.
    """
    try:
        return [case for run in read_json(path)["runs"] for case in run["testcases"]]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ParseError(
            "ReFrame left no readable report",
            source=str(path),
            expected="its JSON report",
            got=type(error).__name__,
            next_step="read its log; nothing of this run counts",
        ) from None


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


def assemble(
    run_id: str,
    cases: Sequence[Mapping[str, Any]],
    records: Sequence[Mapping[str, Any]],
    due: Sequence[Mapping[str, str]],
    site: str = "",
) -> SessionResult:
    """Join what ReFrame ran with what was recorded and with what was due.

    ``site`` is the name that commands to copy are for.
    """
    lost = _not_built(cases)
    of_job = by_key((_job(record), record) for record in records)
    legs: list[LegResult] = []
    for case in cases:
        if case.get("fixture"):
            result = _build_result if "build_reason" in case else _of_reframe
            legs += [result(case)] if case["result"] != "pass" else []
            continue
        mine = of_job.get(_job_of_case(case), [])
        is_ours = "skip_reason" in case or bool(mine)
        alone = _without_records(case, lost) if is_ours else _of_reframe(case)
        legs += _from_records(mine, case) or [alone]
    unlike = rebuilt(records)
    legs = [_of_one_build(leg, unlike) for leg in legs]
    # The fabric belongs to the key: a case that is skipped because this site has no such fabric
    # must not answer for the one that is due.
    there = {
        (_check_name(case), case.get("fabric"), case["partition"], case["environ"])
        for case in cases
        if not case.get("fixture")
    }
    legs += [
        _never_ran(entry, site)
        for entry in due
        if (entry["check"], entry["fabric"], entry["partition"], entry["stack"]) not in there
    ]
    return SessionResult(run_id=run_id, legs=tuple(legs))


def _check_name(case: Mapping[str, Any]) -> str:
    return str(case.get("name", "")).split(" ", maxsplit=1)[0]


def _job(record: Mapping[str, Any]) -> tuple[object, ...]:
    """Return what tells the very job that left ``record``: a retry of the same check is another."""
    return record["unique_name"], record["partition"], record["stack"], record["job_id"]


def _job_of_case(case: Mapping[str, Any]) -> tuple[object, ...]:
    job_id = str(case.get("jobid"))
    return case.get("unique_name"), case["partition"], case["environ"], job_id


def _from_records(records: Sequence[Mapping[str, Any]], case: Mapping[str, Any]) -> list[LegResult]:
    legs = []
    for record in records:
        if record["kind"] != "leg":
            continue
        quantities = tuple(
            QuantityRecord.read(each)
            for each in records
            if each["kind"] == "quantity" and each["leg"] == record["leg"] and each["counts"]
        )
        verdict = Verdict(record["verdict"])
        if verdict is Verdict.PASS and case["result"] != "pass":
            verdict = _unless_another_leg(records, verdict)
        nodes = _nodes_of(record, records)
        legs.append(_leg_result(record, quantities, verdict, case, nodes))
    return [*legs, *_lost(records, case)]


def _lost(records: Sequence[Mapping[str, Any]], case: Mapping[str, Any]) -> Iterable[LegResult]:
    """Yield what is MISSING where fewer legs left their records than the job had.

    A crash while they were written tore them.  A leg's own record is written behind its quantities
    and says how many legs there were.
    """
    legs = [each for each in records if each["kind"] == "leg"]
    named = {each["leg"] for each in records if each["kind"] in {"leg", "quantity"}}
    due = max([len(named), *(each.get(LEGS_KEY, 0) for each in legs)])
    if legs and due > len(legs):
        reason = f"{len(legs)} of the job's {due} legs have records: the others were lost"
        yield replace(_without_records({**case, "result": "fail"}, {}), reason=reason)


def _unless_another_leg(records: Sequence[Mapping[str, Any]], verdict: Verdict) -> Verdict:
    """Keep a leg's PASS in a failed test case only where another leg explains the failure."""
    others = [Verdict(each["verdict"]) for each in records if each["kind"] == "leg"]
    return verdict if worst(others) is not Verdict.PASS else Verdict.UNJUDGED


def _leg_result(
    record: Mapping[str, Any],
    quantities: tuple[QuantityRecord, ...],
    verdict: Verdict,
    case: Mapping[str, Any],
    nodes: tuple[str, ...],
) -> LegResult:
    guilty = [each for each in quantities if each.verdict is verdict]
    reason = "" if verdict is Verdict.PASS or not guilty else _complaint(guilty)
    if verdict is Verdict.UNJUDGED and not guilty:
        reason = f"ReFrame failed the check: {_said(case)}"
    rails = tuple(str(rail) for rail in record.get("rails") or ())
    return LegResult(
        verdict=verdict,
        check=str(record["check"]),
        partition=str(record["partition"]),
        stack=str(record["stack"]),
        suite=str(record["suite"]),
        program=str(record["program"]),
        fabric=str(record["fabric"]),
        leg=str(record["leg"]),
        nodes=nodes,
        quantities=quantities,
        findings=findings_of(record),
        reason=reason,
        job_id=str(record["job_id"]),
        stage_folder=record.get("stage_folder"),
        net_path=record.get("road"),
        link=str(record.get("link") or ""),
        errors=tuple(record.get("errors") or ()),
        rails=rails,
        relation=record.get("relation") or "",
    )


def _nodes_of(record: Mapping[str, Any], records: Sequence[Mapping[str, Any]]) -> tuple[str, ...]:
    """Return the nodes of a leg: of what counts in it, else of the attempt that left most of them.

    Where no rank of any attempt wrote, they are those that the job had; none of what was skipped.
    """
    mine = [each for each in records if each.get("leg") == record["leg"]]
    counted = (each for each in mine if each["kind"] == "quantity" and each["counts"])
    seen = next((each.get("nodes") for each in counted), None)
    seen = seen or max((each.get("nodes") or [] for each in mine), key=len)
    if not seen and record["verdict"] != Verdict.SKIPPED:
        ended = record.get("job_end")
        seen = ended.get("nodes") if ended else None
    return tuple(seen or ())


def _complaint(guilty: Sequence[QuantityRecord]) -> str:
    """Return what is wrong in one sentence: the named quantity first, how many more after it."""
    first = next((each for each in guilty if each.named), guilty[0])
    more = f" (and {len(guilty) - 1} more sizes)" if len(guilty) > 1 else ""
    return f"{first.name}: {first.reason}{more}{_ended(first)}"


def _ended(quantity: QuantityRecord) -> str:
    """Return what the scheduler says of a job that did not end by itself."""
    state, lost = quantity.job_state, quantity.lost_nodes
    if state in {"", "COMPLETED", "None", "SUCCESS", "FAILED"}:
        return ""
    return f"; the job ended {state}" + (f": Slurm lost {', '.join(lost)}" if lost else "")


#: a build in ReFrame's report: run, unique name, partition, environment
_Build = tuple[int, str, str, str]


def _not_built(cases: Iterable[Mapping[str, Any]]) -> dict[_Build, str]:
    """Return the builds that did not pass, each with its reason."""
    return {
        (
            case.get("run_index", 0),
            str(case.get("unique_name")),
            case["partition"],
            case["environ"],
        ): _build_reason(case)
        for case in cases
        if case.get("fixture") and case["result"] != "pass"
    }


def _build_reason(case: Mapping[str, Any]) -> str:
    if case["result"] == "skip":
        return "its build was skipped"
    return " ".join(str(case.get("build_reason") or _said(case)).split())


def _build_result(case: Mapping[str, Any]) -> LegResult:
    """Return the line of a build that failed; one that passed has measured nothing."""
    return LegResult(
        verdict=Verdict.MISSING,
        check=_check_name(case),
        partition=str(case["partition"]),
        stack=str(case["environ"]),
        program=BUILD_PROGRAM,
        findings=as_notes(str(line) for line in case.get("build_log") or ()),
        reason=_build_reason(case),
        stage_folder=case.get("stagedir"),
    )


def _of_reframe(case: Mapping[str, Any]) -> LegResult:
    """Return what ReFrame says of a check that is none of ours: ours have a ``skip_reason``.

    Its sanity alone is no PASS: a run is green only if a number was judged.  So it is SKIPPED where
    the check has no number, and UNJUDGED, as a leg of ours, where a number has no reference.
    """
    quantities = tuple(
        _quantity_of_reframe(name.rpartition(":")[2], *told)
        for name, told in dict(case.get("perfvalues") or {}).items()
    )
    verdict, reason = {
        "pass": (Verdict.SKIPPED, "ReFrame's sanity passed; no number judged"),
        "skip": (Verdict.SKIPPED, "skipped by the check: ReFrame's log says why"),
        "xfail": (Verdict.SKIPPED, "it failed, as the check expects"),
        "abort": (Verdict.MISSING, "ReFrame ended it"),
    }.get(case["result"], (Verdict.FAIL, _said(case)))
    if case["result"] == "pass" and quantities:
        verdict = worst([each.verdict for each in quantities])
        reason = "; ".join(each.reason for each in quantities if each.verdict is verdict)
    return LegResult(
        verdict=verdict,
        check=_check_name(case),
        partition=str(case["partition"]),
        stack=str(case["environ"]),
        suite="ReFrame",
        program=_check_name(case),
        nodes=tuple(map(str, case.get("job_nodelist") or ())),
        quantities=quantities,
        reason=reason,
        job_id=str(case["jobid"]) if case.get("jobid") else None,
        stage_folder=case.get("stagedir") if verdict is Verdict.FAIL else None,
        check_file=str(case.get("filename") or ""),
    )


def _quantity_of_reframe(
    name: str,
    value: float | None,
    reference: float,
    lower: float | None,
    upper: float | None,
    unit: str,
    result: str,
) -> QuantityRecord:
    """Return a number of a foreign check, of its entry in ReFrame's report (4.10)."""
    verdict, reason = Verdict.FAIL, f"{name}: out of the bounds of ReFrame's reference"
    if value is None or not math.isfinite(value):
        verdict, reason = Verdict.INVALID, f"{name}: no finite number"
    elif lower is None and upper is None:
        verdict, reason = Verdict.UNJUDGED, f"{name}: no reference; ReFrame's sanity passed"
    elif result == "pass":
        verdict, reason = Verdict.PASS, ""
    is_judged = verdict in {Verdict.PASS, Verdict.FAIL}
    return QuantityRecord(
        name=name,
        value=value,
        unit=str(unit or ""),
        message_size=None,
        verdict=verdict,
        reason=reason,
        reference=reference if is_judged else None,
        lower=reference + abs(reference) * lower if is_judged and lower is not None else None,
        upper=reference + abs(reference) * upper if is_judged and upper is not None else None,
        origin="ReFrame's reference" if is_judged else None,
    )


def _without_its_stack(case: Mapping[str, Any], lost: Mapping[_Build, str]) -> str | None:
    """Return why ``case`` could not run for want of its stack; None where that is not why.

    ReFrame skips what depends on a failed or skipped fixture, with no reason of ours; such a case
    was due and is no skip.
    """
    if case["result"] == "pass" or case.get("skip_reason"):
        return None
    for name, partition, environ in case.get("dependencies_actual", ()):
        # The report has the system in front of the partition here, and not in its cases.
        build = (case.get("run_index", 0), name, str(partition).rpartition(":")[2], environ)
        if build in lost:
            return f"stack {case['environ']} was not built: {lost[build]}"
    return None


def _of_one_build(leg: LegResult, unlike: Mapping[str, str]) -> LegResult:
    """Return a leg without its verdict where its stack was not one build throughout the run."""
    if leg.stack not in unlike or leg.verdict in {Verdict.SKIPPED, Verdict.MISSING}:
        return leg
    before = f"it was {leg.verdict.value} before: {leg.reason}"
    said = (Finding(text=before),) if leg.reason else ()
    reason = f"stack {leg.stack} was {unlike[leg.stack]}"
    return replace(leg, verdict=Verdict.INVALID, reason=reason, findings=(*said, *leg.findings))


def _without_records(case: Mapping[str, Any], lost: Mapping[_Build, str]) -> LegResult:
    skipped = case["result"] == "skip"
    reason = str(case.get("skip_reason") or "") if skipped else _said(case)
    unbuilt = _without_its_stack(case, lost)
    if unbuilt is not None:
        skipped, reason = False, unbuilt
    return LegResult(
        verdict=Verdict.SKIPPED if skipped and reason else Verdict.MISSING,
        check=_check_name(case),
        partition=str(case["partition"]),
        stack=str(case["environ"]),
        suite=str(case.get("suite", "")),
        program=str(case.get("program", "")),
        fabric=str(case.get("fabric", "")),
        reason=reason or "skipped without a reason",
        job_id=str(case["jobid"]) if case.get("jobid") else None,
        for_want_of=str(case["environ"]) if unbuilt is not None else "",
        fail_phase="" if skipped or unbuilt is not None else str(case.get("fail_phase") or ""),
    )


def _said(case: Mapping[str, Any]) -> str:
    reason = str(case.get("fail_reason") or "ended without a record").strip()
    phase = case.get("fail_phase")
    text = " ".join(reason.split())
    return f"{phase}: {text}" if phase else text


def _never_ran(entry: Mapping[str, str], site: str) -> LegResult:
    return LegResult(
        verdict=Verdict.MISSING,
        check=entry["check"],
        partition=entry["partition"],
        stack=entry["stack"],
        fabric=entry.get("fabric", ""),
        reason="a required check that ReFrame never ran: its file may not load, see the log; "
        "or the list of required checks is older than the site: fabricproof site roll "
        f"{site_word(site) or 'SITE'} --write",
    )
