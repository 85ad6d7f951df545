"""Join what was due, what ReFrame did and what the records say.  Pure.

The verdict of a run is made here, never from ReFrame's exit status alone: a test case without a
record is MISSING, a required check that ReFrame did not load is MISSING, and a run in which
nothing was judged is no PASS.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from fabricproof.core.findings import Finding, as_notes, findings_of
from fabricproof.core.measure import Verdict, worst
from fabricproof.core.project import site_word
from fabricproof.core.provenance import rebuilt
from fabricproof.core.records import QuantityRecord
from fabricproof.core.units import by_key
from fabricproof.job.evidence.error_rates import NAMES, red_from
from fabricproof.job.recording import LEGS_KEY, SUITE_OF_OTHERS
from fabricproof.job.run.result import BUILD_PROGRAM, LegResult
from fabricproof.traffic.error_rates import Direction, ErrorKind, way_between

#: verdict and reason of a check that is none of ours, by ReFrame's result
_OF_OTHERS = {
    "pass": (Verdict.SKIPPED, "ReFrame's sanity passed; no number judged"),
    "skip": (Verdict.SKIPPED, "skipped by the check: ReFrame's log says why"),
    "xfail": (Verdict.SKIPPED, "it failed, as the check expects"),
    "abort": (Verdict.MISSING, "ReFrame ended it"),
}

#: what ReFrame writes between the words of a command that failed and what it printed
_OUTPUTS = frozenset({"--- stdout ---", "--- stderr ---"})

#: a build in ReFrame's report: run, unique name, partition, environment
_Build = tuple[int, str, str, str]

_Record = Mapping[str, Any]


def assemble(
    cases: Sequence[_Record],
    records: Sequence[_Record],
    due: Sequence[Mapping[str, str]],
    site: str = "",
) -> tuple[LegResult, ...]:
    """Return the legs of a run: what ReFrame ran, joined with records and with what was due.

    ``site`` is the name that commands to copy are for.
    """
    builds = [each for each in cases if each.get("fixture") and each["result"] != "pass"]
    unbuilt = {
        (
            case.get("run_index", 0),
            str(case.get("unique_name")),
            case["partition"],
            case["environ"],
        ): _build_reason(case)
        for case in builds
    }
    # A retry of the same check is another job.
    of_job = by_key(
        ((each["unique_name"], each["partition"], each["stack"], each["job_id"]), each)
        for each in records
    )
    legs: list[LegResult] = []
    # The fabric is part of it: a case that is skipped because this site has no such fabric must not
    # answer for the one that is due.
    there = set()
    for case in cases:
        key = case.get("unique_name"), case["partition"], case["environ"], str(case.get("jobid"))
        mine = of_job.get(key, [])
        if case.get("fixture"):
            if case["result"] != "pass":
                legs.append(_of_build(case) if "build_reason" in case else _of_others(case))
            continue
        there.add((_check_name(case), case.get("fabric"), case["partition"], case["environ"]))
        if mine or "skip_reason" in case:
            legs += [*_from_records(mine, case)] or [_without_records(case, unbuilt)]
        else:
            legs.append(_of_others(case))
    unlike = rebuilt(records)
    legs = [_of_one_build(leg, unlike) for leg in legs]
    reason = (
        "a required check that ReFrame never ran: its file may not load, see the log; or the list "
        f"of required checks is older than the site: fabricproof site roll "
        f"{site_word(site) or 'SITE'} --write"
    )
    legs += [
        LegResult(verdict=Verdict.MISSING, reason=reason, **_names_of(entry))
        for entry in due
        if (entry["check"], entry["fabric"], entry["partition"], entry["stack"]) not in there
    ]
    return tuple(legs)


def _names_of(entry: Mapping[str, str]) -> dict[str, Any]:
    return {key: entry[key] for key in ("check", "fabric", "partition", "stack")}


def _check_name(case: _Record) -> str:
    return str(case.get("name", "")).split(" ", maxsplit=1)[0]


def _of_case(case: _Record) -> dict[str, Any]:
    """Return what each result of a test case has of it."""
    return {
        "check": _check_name(case),
        "partition": str(case["partition"]),
        "stack": str(case["environ"]),
        "job_id": str(case["jobid"]) if case.get("jobid") else None,
    }


def _said(case: _Record) -> str:
    """Return why ReFrame failed a case: of what a program printed to it, the one useful line."""
    text = useful_words(str(case.get("fail_reason") or "ended without a record"))
    return f"{case['fail_phase']}: {text}" if case.get("fail_phase") else text


def useful_words(reason: str) -> str:
    """Return the words of ReFrame's reason, without the empty outputs of a command that failed.

    A refused sbatch comes as the command, ``--- stdout ---``, nothing, ``--- stderr ---`` and the
    line that says why (``SpawnedProcessError`` of ReFrame's ``core/exceptions.py``).
    """
    lines = [line.strip() for line in reason.splitlines()]
    if not any(line in _OUTPUTS for line in lines):
        return " ".join(reason.split())
    first, *printed = [line for line in lines if line and line not in _OUTPUTS] or [""]
    said = [line for line in printed if "error" in line.lower()] or printed
    return ": ".join([first.rstrip(":"), *said[-1:]])


def _from_records(records: Sequence[_Record], case: _Record) -> Iterator[LegResult]:
    of_legs = [each for each in records if each["kind"] == "leg"]
    for record in of_legs:
        # A matrix of pairs is of no leg.
        mine = [each for each in records if each.get("leg") == record["leg"]]
        counted = [each for each in mine if each["kind"] == "quantity" and each["counts"]]
        quantities = tuple(map(QuantityRecord.read, counted))
        verdict = Verdict(record["verdict"])
        if verdict is Verdict.PASS and case["result"] != "pass":
            verdict = _unless_another_leg(of_legs, verdict)
        guilty = [each for each in quantities if each.verdict is verdict]
        reason = "" if verdict is Verdict.PASS or not guilty else _complaint(guilty)
        if verdict is Verdict.UNJUDGED and not guilty:
            reason = f"ReFrame failed the check: {_said(case)}"
        # Nodes of what counts, else of the attempt that left most of them.  If no rank of any
        # attempt wrote, they are those that the job had; none of what was skipped.
        nodes = next((each.get("nodes") for each in counted), None)
        nodes = nodes or max((each.get("nodes") or [] for each in mine), key=len)
        if not nodes and verdict is not Verdict.SKIPPED:
            nodes = (record.get("job_end") or {}).get("nodes")
        yield LegResult(
            verdict=verdict,
            **_names_of(record),
            suite=str(record["suite"]),
            program=str(record["program"]),
            leg=str(record["leg"]),
            nodes=tuple(nodes or ()),
            quantities=quantities,
            findings=findings_of(record),
            reason=reason,
            job_id=str(record["job_id"]),
            stage_folder=record.get("stage_folder"),
            net_path=record.get("road"),
            link=str(record.get("link") or ""),
            errors=tuple(record.get("errors") or ()),
            rails=tuple(map(str, record.get("rails") or ())),
            relation=record.get("relation") or "",
            check_file=str(case.get("filename", "")) if record["suite"] == SUITE_OF_OTHERS else "",
        )
    # A leg's own record is written behind its quantities and says how many legs there were.
    named = {each["leg"] for each in records if each["kind"] in {"leg", "quantity"}}
    due = max([len(named), *(each.get(LEGS_KEY, 0) for each in of_legs)])
    if of_legs and due > len(of_legs):
        reason = f"{len(of_legs)} of the job's {due} legs have records: the others were lost"
        yield replace(_without_records({**case, "result": "fail"}, {}), reason=reason)


def _unless_another_leg(of_legs: Sequence[_Record], verdict: Verdict) -> Verdict:
    """Keep a leg's PASS in a failed test case only if another leg explains the failure."""
    others = [Verdict(each["verdict"]) for each in of_legs]
    return verdict if worst(others) is not Verdict.PASS else Verdict.UNJUDGED


def _complaint(guilty: Sequence[QuantityRecord]) -> str:
    """Return what is wrong in one sentence: the named quantity first, how many more after it."""
    first = next((each for each in guilty if each.named), guilty[0])
    more = f" (and {len(guilty) - 1} more sizes)" if len(guilty) > 1 else ""
    ended = ""
    if first.job_state not in {"", "COMPLETED", "None", "SUCCESS", "FAILED"}:
        lost = f": Slurm lost {', '.join(first.lost_nodes)}" if first.lost_nodes else ""
        ended = f"; the job ended {first.job_state}{lost}"
    return f"{first.name}: {first.reason}{more}{ended}"


def _build_reason(case: _Record) -> str:
    if case["result"] == "skip":
        return "its build was skipped"
    return " ".join(str(case.get("build_reason") or _said(case)).split())


def _of_build(case: _Record) -> LegResult:
    """Return the line of a build that failed; one that passed has measured nothing."""
    return LegResult(
        verdict=Verdict.MISSING,
        **{**_of_case(case), "job_id": None},
        program=BUILD_PROGRAM,
        findings=as_notes(str(line) for line in case.get("build_log") or ()),
        reason=_build_reason(case),
        stage_folder=case.get("stagedir"),
    )


def _of_others(case: _Record) -> LegResult:
    """Return what ReFrame says of a check that is none of ours: ours have a ``skip_reason``.

    Its sanity alone is no PASS: a run is green only if a number was judged.  So it is SKIPPED if
    the check has no number, and UNJUDGED, as a leg of ours, if a number has no reference.
    """
    quantities = tuple(
        _quantity_of_others(name.rpartition(":")[2], *values)
        for name, values in dict(case.get("perfvalues") or {}).items()
    )
    verdict, reason = _OF_OTHERS.get(case["result"], (Verdict.FAIL, _said(case)))
    if case["result"] == "pass" and quantities:
        verdict = worst([each.verdict for each in quantities])
        reason = "; ".join(each.reason for each in quantities if each.verdict is verdict)
    return LegResult(
        verdict=verdict,
        **_of_case(case),
        suite=SUITE_OF_OTHERS,
        program=_check_name(case),
        nodes=tuple(map(str, case.get("job_nodelist") or ())),
        quantities=quantities,
        reason=reason,
        stage_folder=case.get("stagedir") if verdict is Verdict.FAIL else None,
        check_file=str(case.get("filename") or ""),
    )


def _quantity_of_others(
    name: str,
    value: float | None,
    reference: float,
    lower: float | None,
    upper: float | None,
    unit: str,
    result: str = "",
) -> QuantityRecord:
    """Return a number of a foreign check, of its entry in ReFrame's report; 4.8 has no result."""
    low = reference + abs(reference) * lower if lower is not None else -math.inf
    high = reference + abs(reference) * upper if upper is not None else math.inf
    verdict, reason = Verdict.FAIL, f"{name}: out of the bounds of ReFrame's reference"
    if value is None or not math.isfinite(value):
        verdict, reason = Verdict.INVALID, f"{name}: no finite number"
    elif lower is None and upper is None:
        verdict, reason = Verdict.UNJUDGED, f"{name}: no reference; ReFrame's sanity passed"
    elif result == "pass" or (not result and low <= value <= high):
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
        lower=low if is_judged and lower is not None else None,
        upper=high if is_judged and upper is not None else None,
        origin="ReFrame's reference" if is_judged else None,
    )


def _of_one_build(leg: LegResult, unlike: Mapping[str, str]) -> LegResult:
    """Return a leg without its verdict if its stack was not one build throughout the run."""
    if leg.stack not in unlike or leg.verdict in {Verdict.SKIPPED, Verdict.MISSING}:
        return leg
    before = f"it was {leg.verdict.value} before: {leg.reason}"
    said = (Finding(text=before),) if leg.reason else ()
    reason = f"stack {leg.stack} was {unlike[leg.stack]}"
    return replace(leg, verdict=Verdict.INVALID, reason=reason, findings=(*said, *leg.findings))


def _without_records(case: _Record, unbuilt: Mapping[_Build, str]) -> LegResult:
    skipped = case["result"] == "skip"
    reason = str(case.get("skip_reason") or "") if skipped else _said(case)
    # ReFrame skips what depends on a fixture that failed, without a reason of ours; such a case was
    # due and is no skip.  Here the report has the system in front of the partition.
    builds = [
        unbuilt.get((case.get("run_index", 0), name, str(place).rpartition(":")[2], environ))
        for name, place, environ in case.get("dependencies_actual", ())
    ]
    why = next(filter(None, builds), None)
    waits = why is not None and case["result"] != "pass" and not case.get("skip_reason")
    if waits:
        skipped, reason = False, f"stack {case['environ']} was not built: {why}"
    return LegResult(
        verdict=Verdict.SKIPPED if skipped and reason else Verdict.MISSING,
        **_of_case(case),
        suite=str(case.get("suite", "")),
        program=str(case.get("program", "")),
        fabric=str(case.get("fabric", "")),
        reason=reason or "skipped without a reason",
        for_want_of=str(case["environ"]) if waits else "",
        fail_phase="" if skipped or waits else str(case.get("fail_phase") or ""),
    )


# What the legs of a run lost or damaged together, which no leg alone can tell.  Thirty packets of a
# million are below what a leg of 45,000 can tell from the ten that it may lose; a run of a million
# tells.  The law is the legs' own, against the events that the limits of all those legs allow.

#: what the row is called beside its rail
ALL_LEGS = "all_legs"

_NAME_OF = {kind.value: name for kind, name in NAMES.items()}

#: a leg's share of a direction: the leg, its error rate there, what judged it
_Part = tuple[LegResult, _Record, QuantityRecord]


def pooled_errors(legs: Sequence[LegResult]) -> tuple[LegResult, ...]:
    """Return a FAIL for each direction that lost too much in all its legs together.

    It is UNJUDGED if the counters do not tell whether that much was lost.  A direction is kind,
    rail, node and partner.  One whose errors are not PASS in a leg by itself is left to that leg.
    """
    keys = ("kind", "rail", "node", "peer", "direction")
    pools = by_key(
        ((part[0].partition, part[0].fabric, *(part[1][key] for key in keys)), part)
        for part in _parts(legs)
    )
    return tuple(found for pool in pools.values() if (found := _judged_pool(pool)) is not None)


def _parts(legs: Iterable[LegResult]) -> Iterator[_Part]:
    for leg in legs:
        if leg.verdict in {Verdict.INVALID, Verdict.MISSING, Verdict.SKIPPED}:
            continue
        judged = {each.name: each for each in leg.quantities}
        for rate in leg.errors:
            mine = judged.get(_NAME_OF.get(rate["kind"], ""))
            # Among many nodes the other end is unknown; what a leg may not judge, none may.
            doubtful = rate.get("arrivals_unknown") or rate.get("set_back") or not rate["peer"]
            if mine and not doubtful and rate.get("beside", 0) <= rate["packets"]:
                yield leg, rate, mine


def _judged_pool(pool: Sequence[_Part]) -> LegResult | None:
    if len(pool) < 2 or any(judged.verdict is not Verdict.PASS for _, _, judged in pool):
        return None
    sure = [int(rate["events"]) for _, rate, _ in pool]
    unsure = [int(rate.get("may_have_arrived", 0)) for _, rate, _ in pool]
    sizes = [max(int(part[1]["packets"]), lost) for part, lost in zip(pool, sure, strict=True)]
    packets = sum(sizes)
    if not sum(sure) + sum(unsure):
        return None
    allowed = (float(part[2].reference or 0) * size for part, size in zip(pool, sizes, strict=True))
    limit = sum(allowed) / packets
    critical = red_from(packets, limit)
    verdict, doubt, shares = Verdict.FAIL, "", sure
    if sum(sure) < critical:
        verdict, shares = (
            Verdict.UNJUDGED,
            [one + two for one, two in zip(sure, unsure, strict=True)],
        )
        doubt = f"; of {sum(unsure)} of them the counters do not tell whether they had arrived"
    events, most = sum(shares), max(shares)
    if events < critical:
        return None
    leg, rate, judged = pool[shares.index(most)]
    way = way_between(rate["rail"], rate["node"], rate["peer"], Direction(rate["direction"]))
    reason = (
        f"{way}: {events} of {packets} packets {ErrorKind(rate['kind']).value} in {len(pool)} legs "
        f"together, {events / packets * 1e6:.4g} per million; {limit:.4g} per million are allowed "
        f"({judged.origin}), {critical} or more are no chance; most of them ({most}) in "
        f"{leg.check} {leg.leg} with {leg.stack}{doubt}"
    )
    value, upper = (each / packets * 1e6 for each in (events, critical - 1))
    quantity = replace(judged, value=value, upper=upper, reason=reason, verdict=verdict, named=True)
    # The row stands under the check of the leg that lost most: it repeats it.
    return replace(
        leg,
        verdict=verdict,
        leg=f"{rate['rail']}.{ALL_LEGS}",
        nodes=tuple(sorted((rate["node"], rate["peer"]))),
        quantities=(quantity,),
        findings=(),
        reason=f"{quantity.name}: {reason}",
        errors=(),
        rails=(),
        relation="",
    )
