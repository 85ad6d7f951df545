"""``fabricproof plan``: what a run would cost, before anything is submitted."""

from __future__ import annotations

import json
import re
import shlex
import sys

import click

from fabricproof.cli import options
from fabricproof.cli.measure import plan_display
from fabricproof.cli.selection import one_run, perflogs
from fabricproof.cli.site.building import StackPlaces, spack_records
from fabricproof.core.errors import ExitStatus, InputMissingError
from fabricproof.core.project import project_root
from fabricproof.history.cost.case import Case, ask_reframe
from fabricproof.history.cost.history import Lessons, PastRun, PastRuns, learn, read_history
from fabricproof.history.cost.outlook import RunCost, compare, estimate, look_ahead, serialised_by
from fabricproof.job.run import workplace
from fabricproof.site import Site, site_of


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
@click.argument("words", default="", metavar="[RUN]")
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
@click.option(
    "--within",
    "within_percent",
    type=options.RealNumber(min=0),
    metavar="PERCENT",
    help="With RUN: end with status 1 where the plan was off by more.",
)
@options.as_json
def command(
    words: str,
    tags: tuple[str, ...],
    stacks: str | None,
    site_name: str | None,
    within_percent: float | None,
    as_json: bool,
) -> None:
    r"""Show what a run would cost and what it would leave out.  Nothing is submitted.

    ReFrame is asked in a dry run, which takes some seconds and needs no scheduler.  Past runs of
    the site teach what the effort model cannot know; the plan says from how many jobs it learnt.

    \b
    fabricproof plan                         # everything that is due, and each level
    fabricproof plan -t nightly              # what tonight's run would take
    fabricproof plan -t quick -p openmpi5    # one stack
    fabricproof plan latest                  # expected beside what that run took, learnt from
                                             # older runs only

    "at most" is every job at its time limit.  Exit status: 0 something is due; 1 off by more than
    --within; 6 nothing is due; 66 no such run; 78 wrong config.
    """
    site = site_of(site_name)
    place = workplace(project_root())
    history = read_history(place.perflogs, site.name, lambda name: _is_serial(site, name))
    past = _past_run(history, one_run(words, site), site) if words else None
    if sys.stderr.isatty():
        click.echo("asking ReFrame what it would run; nothing is submitted ...", err=True)
    cases = ask_reframe(site, place.project, stacks)
    if past is not None:
        found = _print_comparison(site, cases, history.before(past.run_id), past, as_json=as_json)
        if within_percent is not None and abs(found.off_by) * 100 > within_percent:
            sys.exit(int(ExitStatus.FAIL))
        return
    _print_plan(site, cases, history, tags, stacks, as_json=as_json)


def _is_serial(site: Site, partition: str) -> bool:
    return any(each.name == partition and bool(serialised_by(each)) for each in site.partitions)


def _learn(site: Site, history: PastRuns, cases: list[Case]) -> Lessons:
    return learn(
        history, cases, serial=all(_is_serial(site, each.name) for each in site.partitions)
    )


def _past_run(history: PastRuns, run_id: str, site: Site) -> PastRun:
    for run in history.runs:
        if run.run_id == run_id:
            return run
    newest = ", ".join(run.run_id for run in history.runs[-3:]) or "none"
    raise InputMissingError(
        f"no report of a run {run_id} on {site.name}",
        expected=f"a run that submitted jobs; the newest: {newest}",
        next_step=f"ls {shlex.quote(str(perflogs() / 'reports'))}   # or choose another --site",
    )


def _print_comparison(
    site: Site, cases: list[Case], older: PastRuns, past: PastRun, *, as_json: bool
) -> RunCost:
    lessons = _learn(site, older, cases)
    estimates = [estimate(case, lessons) for case in cases if case.is_due]
    found = compare(past, estimates, session_seconds=lessons.session_seconds)
    if as_json:
        click.echo(json.dumps(plan_display.comparison_record(past, found, lessons), indent=2))
    else:
        click.echo("\n".join(plan_display.comparison_lines(past, found, lessons)))
    return found


def _print_plan(
    site: Site,
    cases: list[Case],
    history: PastRuns,
    tags: tuple[str, ...],
    stacks: str | None,
    *,
    as_json: bool,
) -> None:
    outlook = look_ahead(site, cases, tags, _learn(site, history, cases))
    wanted = {each.case.stack for each in outlook.estimates}
    # Without a stack of Spack in the selection nobody needs to look at what stands.
    of_spack = wanted & {stack.name for stack in site.stacks if stack.spack}
    standing = spack_records(str(site.folder), StackPlaces()) if of_spack else []
    builds = {
        str(each["name"]): str(each["label"]).rpartition(f" for {site.name}: ")[2]
        for each in standing
        if each["state"] != "installed" and each["name"] in wanted
    }
    if as_json:
        record = plan_display.plan_record(site, outlook, builds, history.notes)
        click.echo(json.dumps(record, indent=2))
    else:
        lines = plan_display.plan_lines(site, outlook, builds, history, tags, stacks)
        click.echo("\n".join(lines))
    if not outlook.estimates:
        sys.exit(int(ExitStatus.NOTHING_JUDGED))
