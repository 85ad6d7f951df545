"""A plan and its comparison with a run, as text for a person and as data for a machine."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from fabricproof.core.plain import plain
from fabricproof.core.project import site_option
from fabricproof.core.units import columns, first_few, size_label
from fabricproof.history.cost.history import (
    DEFAULT_SESSION_SECONDS,
    DEFAULT_START_SECONDS,
    Lessons,
    PastRun,
    PastRuns,
)
from fabricproof.history.cost.outlook import (
    NIGHT_SECONDS,
    Cost,
    Estimate,
    LeftOut,
    LevelCost,
    Outlook,
    RunCost,
    licence_of,
    off_by,
    refusals,
)
from fabricproof.site import Site

#: a build that took less only found everything built
_REAL_BUILD_SECONDS = 10
_NAMED_AT_MOST = 12


def duration(seconds: float) -> str:
    """Return a duration as a person says it: ``45 s``, ``12 min``, ``3 h 20 min``."""
    if seconds < 99.5:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    if minutes < 100:
        return f"{minutes} min"
    return f"{minutes // 60} h {minutes % 60:02} min"


def wall(cost: Cost) -> str:
    """Return the expected wall time, as a range where it depends on what runs at once."""
    least, most = map(duration, cost.wall_seconds)
    return least if least == most else f"{least} to {most}"


def plan_lines(
    site: Site,
    outlook: Outlook,
    builds: Mapping[str, str],
    history: PastRuns,
    tags: Sequence[str],
    stacks: str | None,
) -> Iterator[str]:
    """Yield a plan for a person: jobs, totals, what is left out, what to choose tonight."""
    options = "".join(f" -t {shlex.quote(tag)}" for tag in tags) + (
        f" -p {shlex.quote(stacks)}" if stacks else ""
    )
    yield f"site {site.name}{options or ', everything'}: nothing was submitted"
    if outlook.estimates:
        yield ""
        yield from _job_lines(outlook.estimates)
        yield ""
        yield from _total_lines(outlook)
        yield ""
        yield from _condition_lines(site, outlook, builds, history)
    else:
        yield "no check would run: nothing is selected, or everything is skipped"
    yield from _left_out_lines(outlook)
    yield from _refused_lines(outlook)
    yield from (f"note: {each}" for each in history.notes)
    yield ""
    yield _advice(outlook, site, tags, stacks)


def _job_lines(estimates: Sequence[Estimate]) -> Iterator[str]:
    rows: list[tuple[str, ...]] = [
        ("CHECK", "STACK", "FABRIC", "NODES", "JOB s", "AT MOST s", "LEGS, s EACH")
    ]
    for each in sorted(estimates, key=lambda one: one.case.key):
        case = each.case
        pairs = zip(case.net_paths, each.leg_seconds, strict=True)
        legs = ", ".join(f"{net_path.name} {seconds:.1f}" for net_path, seconds in pairs)
        numbers = (str(case.nodes), f"{each.seconds:.0f}", f"{case.limit_seconds:.0f}")
        rows.append((case.check, case.stack, case.fabric, *numbers, legs))
    yield from columns(rows, frozenset({3, 4, 5}))


def _total_lines(outlook: Outlook) -> Iterator[str]:
    rows: list[tuple[str, ...]] = [
        ("TOTAL", "JOBS", "LEGS", "NODE-s", "EXPECTED WALL", "AT MOST", "LEAVES OUT")
    ]
    rows.append(_total("this selection", outlook.cost, ""))
    if len(outlook.technologies) > 1:
        rows += [_total(f"  {name}", cost, "") for name, cost in outlook.technologies.items()]
    for level in outlook.levels:
        rows.append(_total(level.name, level.cost, _count(level.leaves_out)))
    yield from columns(rows, frozenset({1, 2, 3}))


def _total(name: str, cost: Cost, leaves_out: str) -> tuple[str, ...]:
    numbers = (str(cost.jobs), str(cost.legs), f"{cost.node_seconds:.0f}")
    return (name, *numbers, wall(cost), duration(cost.limit_seconds), leaves_out)


def _count(lost: LeftOut) -> str:
    if lost.is_nothing:
        return "nothing"
    named = {"check": lost.checks, "stack": lost.stacks, "path": lost.net_paths}
    parts = [_so_many(kind, each) for kind, each in named.items() if each]
    parts += [f"{len(lost.sizes)} sizes"] if lost.sizes else []
    return f"{lost.jobs} jobs" + (f": {', '.join(parts)}" if parts else "")


def _condition_lines(
    site: Site, outlook: Outlook, builds: Mapping[str, str], history: PastRuns
) -> Iterator[str]:
    yield f"learnt: {_learnt(outlook.lessons, outlook.estimates)}"
    if any(each.lesson for each in outlook.estimates):
        again = duration(outlook.second_look_seconds)
        yield f"second looks: {again} of it, if legs run again as often as before"
    else:
        yield "second looks: not in it, no past run says how often legs run again"
    for partition in site.partitions:
        reason = outlook.one_at_a_time.get(partition.name)
        if reason:
            assumed = ", taken as one job's worth" if licence_of(partition) else ""
            yield f"at once: one job in {partition.name} ({reason}{assumed})"
        else:
            yield (
                f"at once: 1 to {partition.max_jobs} jobs in {partition.name} (max_jobs; how many "
                "nodes are free is not known, nor what others run)"
            )
    for name, reason in builds.items():
        yield f"built first: {name}: {reason}; {_build_time(name, history)}, not in the totals"


def _learnt(lessons: Lessons, estimates: Sequence[Estimate]) -> str:
    default = (
        f"the stated default of {DEFAULT_START_SECONDS:g} s for each start of a program"
        if any(each.lesson is None for each in estimates)
        else ""
    )
    around = (
        f"{lessons.session_seconds:.1f} s around the jobs from {lessons.sessions} runs (median)"
        if lessons.sessions
        else f"{DEFAULT_SESSION_SECONDS:.0f} s around the jobs by default"
    )
    circles: dict[str, int] = {}
    for each in estimates:
        if each.lesson:
            circles[each.lesson.circle] = circles.get(each.lesson.circle, 0) + 1
    if not circles:
        return f"nothing, there are no past jobs of these checks: {default}, {around}"
    known = ", ".join(f"{count} by {circle}" for circle, count in circles.items())
    parts = [f"from {lessons.jobs} past jobs (medians; {known})", default, around]
    return "; ".join(part for part in parts if part)


def _build_time(stack: str, history: PastRuns) -> str:
    took = [run.builds.get(stack, 0.0) for run in history.runs]
    real = [seconds for seconds in took if seconds > _REAL_BUILD_SECONDS]
    return (
        f"it took {duration(real[-1])} last time"
        if real
        else "no past run says how long; at most 6 h"
    )


def _left_out_lines(outlook: Outlook) -> Iterator[str]:
    for level in outlook.levels:
        lost = level.leaves_out
        if lost.is_nothing or not level.cost.jobs:
            continue
        sizes = [size_label(size) for size in lost.sizes]
        named = {"check": lost.checks, "stack": lost.stacks, "path": lost.net_paths, "size": sizes}
        parts = [
            f"{_so_many(kind, each)}: {first_few(each, _NAMED_AT_MOST, ' (--json names them)')}"
            for kind, each in named.items()
            if each
        ]
        same = ", ".join(f"{kind}s" for kind, each in named.items() if not each)
        kept = f"; all {same} are in it" if same else ""
        yield f"{level.name} leaves out {'; '.join(parts) or 'combinations only'}{kept}"


def _so_many(kind: str, names: Sequence[str]) -> str:
    return f"{len(names)} {kind}" + ("s" if len(names) > 1 else "")


def _refused_lines(outlook: Outlook) -> Iterator[str]:
    for word, cases in (("SKIPPED", outlook.skipped), ("MISSING", outlook.lost)):
        found = refusals(cases, lambda case: case.skipped or case.lost)
        for reason, these in found.items():
            checks = sorted({case.check for case in these})
            yield f"{word} {len(these)}: {reason} ({', '.join(checks)})"


def _advice(outlook: Outlook, site: Site, tags: Sequence[str], stacks: str | None) -> str:
    level = outlook.tonight()
    if level is None:
        return "Tonight: nothing to run; look at the tags (fabricproof site roll SITE shows them)."
    others = [tag for tag in tags if tag not in {each.name for each in outlook.levels}]
    selection = "".join(f" -t {shlex.quote(tag)}" for tag in [level.name, *others])
    narrowed = f" -p {shlex.quote(stacks)}" if stacks else ""
    command = f"fabricproof run{selection}{narrowed} {site_option(site.name)}"
    first = "; mend first what is MISSING" if outlook.lost else ""
    return f"Tonight: {command}   ({_why(level)}{first})"


def _why(level: LevelCost) -> str:
    fits = level.cost.wall_seconds[1] <= NIGHT_SECONDS
    rest = "leaves nothing out" if level.leaves_out.is_nothing else "the most that fits"
    return (
        f"{wall(level.cost)}, {rest if fits else 'longer than a night of 8 h: choose fewer stacks'}"
    )


def comparison_lines(past: PastRun, found: RunCost, lessons: Lessons) -> Iterator[str]:
    """Yield a comparison for a person: one row for each check, then the whole run."""
    yield f"run {past.run_id}: {len(past.jobs)} jobs, expected beside measured"
    yield ""
    rows: list[tuple[str, ...]] = [
        ("CHECK", "JOBS", "EXPECTED s", "MEASURED s", "NODE-s EXP", "NODE-s MEAS", "OFF BY")
    ]
    for each in found.checks:
        numbers = (
            each.expected_seconds,
            each.measured_seconds,
            each.expected_node_seconds,
            each.measured_node_seconds,
        )
        off = off_by(each.expected_seconds, each.measured_seconds)
        rows.append((each.check, str(each.jobs), *(f"{one:.0f}" for one in numbers), f"{off:+.0%}"))
    nodes = [
        sum(each.expected_node_seconds for each in found.checks),
        sum(each.measured_node_seconds for each in found.checks),
    ]
    walls = (f"{found.expected_seconds:.0f}", f"{found.measured_seconds:.0f}")
    jobs = str(sum(each.jobs for each in found.checks))
    total = (*walls, *(f"{one:.0f}" for one in nodes), f"{found.off_by:+.0%}")
    rows.append(("the whole run", jobs, *total))
    yield from columns(rows, frozenset(range(1, 7)))
    yield ""
    yield f"learnt from {lessons.jobs} jobs of older runs; nothing from this one"
    if found.measured_seconds > 0:
        yield f"expected over measured: {found.expected_seconds / found.measured_seconds:.2f}"
    if found.building_seconds > _REAL_BUILD_SECONDS:
        yield f"the run also built for {duration(found.building_seconds)}, which is no part of it"
    if found.unfinished:
        yield f"{found.unfinished} jobs did not end well: what they took says little"
    if found.unplanned:
        yield f"not planned any more: {', '.join(found.unplanned)}"


def comparison_record(past: PastRun, found: RunCost, lessons: Lessons) -> dict[str, Any]:
    """Return a comparison as plain data, the form of ``--json``."""
    return {"run_id": past.run_id, **plain(found, "off_by", lessons=_lessons(lessons))}


def plan_record(
    site: Site, outlook: Outlook, builds: Mapping[str, str], notes: Sequence[str]
) -> dict[str, Any]:
    """Return a plan as plain data, the form of ``--json``."""
    told = plain(
        outlook,
        "second_look_seconds",
        estimates=[_job_record(each) for each in outlook.estimates],
        lessons=_lessons(outlook.lessons),
        built_first=builds,
        notes=notes,
    )
    return {"site": site.name, **told}


def _lessons(lessons: Lessons) -> dict[str, Any]:
    return plain(lessons, without={"by_circle"})


def _job_record(each: Estimate) -> dict[str, Any]:
    """Return a job with what it costs, and each of its legs likewise."""
    legs = zip(each.case.net_paths, each.leg_seconds, strict=True)
    net_paths = [plain(net_path, leg_seconds=seconds) for net_path, seconds in legs]
    case = plain(each.case, without={"skipped", "lost"}, net_paths=net_paths)
    return case | plain(each, "seconds", "node_seconds", without={"case", "leg_seconds"})
