"""``fabricproof plan``: what a run would start, before anything is submitted."""

from __future__ import annotations

import json
import re
import shlex
import sys
from collections.abc import Iterator, Mapping, Sequence

import click

from fabricproof.cli import options
from fabricproof.cli.site.building import spack_records
from fabricproof.core.errors import ExitStatus
from fabricproof.core.plain import plain
from fabricproof.core.project import project_root, site_option
from fabricproof.core.units import columns, duration, first_few
from fabricproof.history.plan import LEVELS, Case, Key, ask_reframe, last_seconds, refusals
from fabricproof.job.run import workplace
from fabricproof.site import Site, site_of

_NAMED_AT_MOST = 12


def _pattern(
    _context: click.Context, _option: click.Parameter, value: str | tuple[str, ...] | None
) -> str | tuple[str, ...] | None:
    """Refuse a pattern that ReFrame would stumble over."""
    for each in value if isinstance(value, tuple) else [value or ""]:
        try:
            re.compile(each)
        except re.error as error:
            raise click.BadParameter(f"{each!r} is no pattern: {error}") from None
    return value


@click.command(name="plan")
@click.option(
    "-t",
    "--tag",
    "tags",
    multiple=True,
    metavar="TAG",
    callback=_pattern,
    help="Only checks with TAG.",
)
@click.option(
    "-p",
    "--stacks",
    metavar="PATTERN",
    callback=_pattern,
    help="Only this stack, or those whose name fits.",
)
@options.site
@options.as_json
def command(
    tags: tuple[str, ...], stacks: str | None, site_name: str | None, as_json: bool
) -> None:
    r"""Show what a run would start: jobs, nodes, time limits, and what each job took last time.

    Nothing is submitted.  ReFrame is asked in a dry run, which takes some seconds and needs no
    scheduler.

    \b
    fabricproof plan                         # everything that is due, and each level
    fabricproof plan -t nightly              # tonight's run
    fabricproof plan -t quick -p openmpi5    # one stack

    LAST is from submission to end, the queue included.  Exit status: 0 something is due;
    6 nothing is due; 78 wrong config.
    """
    site = site_of(site_name)
    place = workplace(project_root())
    if sys.stderr.isatty():
        click.echo("asking ReFrame what it would run; nothing is submitted ...", err=True)
    cases = ask_reframe(site, place.project, tags, stacks)
    due = [case for case in cases if case.is_due]
    last, notes = last_seconds(place.perflogs, site.name, due)
    builds = _built_first(site, due)
    if as_json:
        record = {
            "site": site.name,
            "jobs": [plain(each, last_seconds=last.get(each.key)) for each in due],
            "not_run": [
                {"verdict": word, "reason": why, "cases": [case.key for case in these]}
                for word, why, these in refusals(cases)
            ],
            "built_first": builds,
            "notes": notes,
        }
        click.echo(json.dumps(record, indent=2))
    else:
        words = [*(f"-t {shlex.quote(tag)}" for tag in tags)]
        words += [f"-p {shlex.quote(stacks)}"] if stacks else []
        click.echo(f"site {site.name} {' '.join(words) or '(everything)'}: nothing was submitted")
        click.echo("\n".join(_lines(due, last)))
        for name, reason in builds.items():
            click.echo(f"built first: {name}: {reason}; that takes its time, at most 6 h")
        for word, why, these in refusals(cases):
            checks = first_few(sorted({case.check for case in these}), _NAMED_AT_MOST)
            click.echo(f"{word} {len(these)}: {why} ({checks})")
        for each in notes:
            click.echo(f"note: {each}")
        if due:
            run = " ".join(["fabricproof run", *words, site_option(site.name)])
            click.echo(f"\nnext: {run}")
    if not due:
        sys.exit(int(ExitStatus.NOTHING_JUDGED))


def _built_first(site: Site, due: Sequence[Case]) -> dict[str, str]:
    """Return the stacks of Spack that the run would build, and why each is not whole."""
    wanted = {case.stack for case in due}
    # Without a stack of Spack in the selection nobody needs to look at what stands.
    if not wanted & {stack.name for stack in site.stacks if stack.spack}:
        return {}
    return {
        str(each["name"]): str(each["reason"])
        for each in spack_records(str(site.folder))
        if each["state"] != "installed" and each["name"] in wanted
    }


def _lines(due: Sequence[Case], last: Mapping[Key, float]) -> Iterator[str]:
    if not due:
        yield "no check would run: nothing is selected, or everything is skipped"
        return
    rows: list[tuple[str, ...]] = [("CHECK", "STACK", "FABRIC", "NODES", "LIMIT", "LAST", "LEGS")]
    for case in sorted(due, key=lambda one: one.key):
        took = duration(last[case.key]) if case.key in last else "-"
        legs = first_few(case.legs, 4)
        numbers = (str(case.nodes), duration(case.limit_seconds), took)
        rows.append((case.check, case.stack, case.fabric, *numbers, legs))
    yield from columns(rows, frozenset({3, 4, 5}))
    yield ""
    totals: list[tuple[str, ...]] = [("TOTAL", "JOBS", "LEGS", "NODE-h AT MOST", "LAST, ALL JOBS")]
    totals.append(_total("this selection", due, last))
    levels = {level: [case for case in due if level in case.tags] for level in LEVELS}
    totals += [_total(f"  {level}", chosen, last) for level, chosen in levels.items() if chosen]
    yield from columns(totals, frozenset({1, 2, 3}))


def _total(name: str, cases: Sequence[Case], last: Mapping[Key, float]) -> tuple[str, ...]:
    known = [last[case.key] for case in cases if case.key in last]
    took = duration(sum(known)) if known else "never run"
    if known and len(known) < len(cases):
        took += f" of {len(known)} jobs"
    node_hours = sum(case.limit_seconds * case.nodes for case in cases) / 3600
    legs = sum(len(case.legs) for case in cases)
    return name, str(len(cases)), str(legs), f"{node_hours:.1f}", took
