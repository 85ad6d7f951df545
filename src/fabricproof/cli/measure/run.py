"""``fabricproof run`` and ``fabricproof reframe``: the checks through ReFrame, then the verdict."""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import click

from fabricproof.cli import options
from fabricproof.cli.measure.run_progress import Progress
from fabricproof.cli.output import STATUSES
from fabricproof.core.errors import ExitStatus, FabricproofError, UnavailableError
from fabricproof.core.measure import Verdict
from fabricproof.core.project import project_root
from fabricproof.job.run import (
    KEPT_STAGES,
    NODES_VARIABLE,
    SessionResult,
    Workplace,
    check_scheduler,
    collect,
    doubted,
    new_run_id,
    prune_stages,
    read_report,
    reframe_command,
    refuse_troubles,
    run_reframe,
    scheduler_answers,
    scheduling_troubles,
    session_environment,
    wants_run,
    workplace,
)
from fabricproof.site import Site, choose_site, load_site
from fabricproof.site.roll import selects_only, setting_options, with_whole_stacks

if TYPE_CHECKING:
    from fabricproof.nightly import Confirmation, Ran

#: names the run that ``reframe -r`` starts, as ``--label`` does
LABEL_VARIABLE = "FABRICPROOF_LABEL"

Shown = Literal["table", "every leg", "json"]


@click.command(name="run", context_settings=options.PASSED_ON)
@options.tags
@options.site
@click.option("--label", envvar=LABEL_VARIABLE, metavar="NAME", help="A name for this run.")
@click.option("--verbose", "-v", "every_leg", is_flag=True, help="A row for each leg.")
@options.as_json
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED, metavar="[REFRAME OPTION...]")
def command(
    tags: tuple[str, ...],
    site_name: str | None,
    label: str | None,
    every_leg: bool,
    as_json: bool,
    arguments: tuple[str, ...],
) -> None:
    r"""Run the acceptance checks through ReFrame and print the verdict table.

    \b
    fabricproof run -t quick                 # the nightly minimum
    fabricproof run -t ethernet -p openmpi5  # one stack, or all that fit a pattern
    fabricproof run -n OsuBandwidth          # one check (any option of ReFrame)
    fabricproof run -t infiniband --json     # for machines
    fabricproof run -t full --label before-swap   # a name that a comparison can use

    What others disturbed, or too few rounds left UNJUDGED, is measured once more on the same nodes
    when the run is over, and what that says counts; never what is red, and only where -t, -n and -p
    alone chose the checks.  The second look keeps the options that say where checks are and how
    they run (-c, -R, -S, -J, -m, -M, -u).

    The exit status is 0 only if something was judged and nothing is FAIL (1), INVALID (3),
    MISSING (4) or UNJUDGED (5); 6: nothing was judged; 69: no Slurm; 130: interrupted.  A -n that
    no check fits is MISSING.
    """
    selection = [part for tag in tags for part in ("-t", tag)]
    site = load_site(site_name) if site_name else choose_site()
    arguments = ("-r", *selection, *arguments)
    shown: Shown = "json" if as_json else "every leg" if every_leg else "table"
    sys.exit(int(accept(site, arguments, shown=shown, label=label, again=True)))


@click.command(name="reframe", context_settings={**options.PASSED_ON, "help_option_names": []})
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def reframe(arguments: tuple[str, ...]) -> None:
    """Start ReFrame with this site's configuration; with -r the verdict table follows."""
    site = choose_site()
    if wants_run(arguments):
        label = os.environ.get(LABEL_VARIABLE)
        sys.exit(int(accept(site, list(arguments), label=label)))
    run_id = new_run_id()
    environment = session_environment(site, workplace(project_root()), run_id)
    Path(environment["FABRICPROOF_REFRAME_LOG"]).parent.mkdir(parents=True, exist_ok=True)
    Path(environment["RFM_SQLITE_DB_FILE"]).parent.mkdir(parents=True, exist_ok=True)
    program = reframe_command()
    words = with_whole_stacks(arguments, [stack.name for stack in site.stacks])
    os.execve(program, [program, *words], environment)  # noqa: S606 - it replaces us


@dataclass(frozen=True, kw_only=True)
class Performed:
    """What starting ReFrame came to.

    Attributes:
        status: exit status: the verdict's, or why the run did not come to its end.
        whole: the run came to its end.
        reason: why it did not; empty where it did.
    """

    run_id: str
    result: SessionResult | None
    status: ExitStatus
    whole: bool
    reason: str = ""


def accept(
    site: Site,
    arguments: Sequence[str],
    *,
    shown: Shown = "table",
    label: str | None = None,
    again: bool = False,
) -> ExitStatus:
    """Run ReFrame with ``arguments`` on ``site``, print the verdict, return the exit status.

    ``again``: measure once more what others disturbed or too few rounds left open.
    """
    from fabricproof.history.store import require_label  # noqa: PLC0415 - start-up time
    from fabricproof.nightly import keep  # noqa: PLC0415

    place = workplace(project_root())
    if label:
        require_label(label)
    performed = perform(site, arguments, progress=progress_of(arguments, quiet=shown == "json"))
    if performed.result is not None:
        confirmations: tuple[Confirmation, ...] = ()
        if again and performed.whole and selects_only(arguments):
            settings = setting_options(arguments)
            performed, confirmations = _measured_again(
                site, place, performed, settings, quiet=shown == "json"
            )
        assert performed.result is not None, "it has one still"
        show(performed.result, shown, site=site.name, again=confirmations)
        if label:
            label_run(label, site, performed.run_id)
        prune_stages(place, KEPT_STAGES + len(confirmations))
        keep(place.perflogs, site.name, confirmations, performed.run_id)
    return performed.status


def _measured_again(
    site: Site, place: Workplace, performed: Performed, settings: Sequence[str], *, quiet: bool
) -> tuple[Performed, tuple[Confirmation, ...]]:
    """Measure once more what is UNJUDGED for a cause that passes; return both outcomes.

    ``settings``: ReFrame's options of the run that its second looks need as well.
    """
    from fabricproof.history.store import LOOK_LABEL  # noqa: PLC0415 - start-up time
    from fabricproof.nightly import (  # noqa: PLC0415
        Budget,
        Confirmer,
        settled,
    )

    assert performed.result is not None, "the caller asked"
    confirmer = Confirmer(
        site.name,
        run=lambda asked, nodes: ran(
            site, [*settings, *asked], quiet=quiet, nodes=nodes, label=LOOK_LABEL
        ),
        usable=lambda _: (),
        budget=Budget.of(site.night),
        say=lambda text: click.echo(text, err=quiet),
    )
    nodes = job_nodes(place.report_file(performed.run_id))
    found = confirmer.measure_again(performed.result, nodes)
    result = settled(performed.result, found.confirmations)
    status = STATUSES[result.verdict]
    if found.status == ExitStatus.INTERRUPTED:
        status = ExitStatus.INTERRUPTED
    return replace(performed, result=result, status=status), found.confirmations


def ran(
    site: Site,
    arguments: Sequence[str],
    *,
    quiet: bool,
    run_id: str | None = None,
    nodes: tuple[str, ...] = (),
    label: str = "",
) -> Ran:
    """Start ReFrame and return what came of it, in the words of who looks again.

    The run has its ``label`` before it begins: one that is killed is no sample of the site either.
    """
    from fabricproof.nightly import Ran  # noqa: PLC0415 - start-up time

    progress = progress_of(arguments, quiet=quiet)
    run_id = run_id or new_run_id()
    if label:
        label_run(label, site, run_id)
    done = perform(site, arguments, progress=progress, run_id=run_id, nodes=nodes)
    return Ran(
        result=done.result,
        job_nodes=job_nodes(workplace(project_root()).report_file(done.run_id)),
        whole=done.whole,
        reason=done.reason,
        status=int(done.status) if not done.whole else 0,
    )


def progress_of(arguments: Sequence[str], *, quiet: bool) -> Progress:
    """Return what shows how far a run is; with ReFrame's own lines where it is asked for more."""
    verbose = any(each == "--verbose" or re.match(r"-v+$", each) for each in arguments)
    return Progress(quiet=quiet, verbose=verbose)


def job_nodes(report: Path) -> dict[str, tuple[str, ...]]:
    """Return the nodes of each job, as ReFrame's report has them; none without a report."""
    try:
        cases = read_report(report)
    except FabricproofError:
        return {}
    return {
        str(case["jobid"]): tuple(sorted(case["job_nodelist"]))
        for case in cases
        if case.get("jobid") and case.get("job_nodelist")
    }


def label_run(label: str, site: Site, run_id: str) -> None:
    """Give a run its name; that it cannot be kept changes no verdict."""
    from fabricproof.history.store import set_label  # noqa: PLC0415 - start-up time

    try:
        set_label(workplace(project_root()).perflogs, site.name, [run_id], label)
    except FabricproofError as error:
        click.echo(f"fabricproof: run {run_id} has no label: {error}", err=True)


def perform(
    site: Site,
    arguments: Sequence[str],
    *,
    progress: Progress,
    run_id: str | None = None,
    nodes: Sequence[str] = (),
) -> Performed:
    """Run ReFrame with ``arguments`` on ``site`` and return what came of it; print no verdict.

    Without ``run_id`` it gets a new one; without ``nodes`` any will do.

    Raises:
        ConfigError: this Slurm cannot be measured on as the site says; nothing was started.
        UnavailableError: the scheduler is not there; nothing was started.
    """
    place = workplace(project_root())
    run_id = run_id or new_run_id()
    arguments = with_whole_stacks(arguments, [stack.name for stack in site.stacks])
    environment = session_environment(site, place, run_id)
    if nodes:
        environment[NODES_VARIABLE] = ",".join(nodes)
    check_scheduler(site, environment)
    _warn_of_scheduling(site, environment)
    ended: int | None = None
    status, reason = ExitStatus.INTERRUPTED, "interrupted"
    alive = partial(scheduler_answers, site, environment)
    try:
        with progress.following(site, environment):
            ended = run_reframe(arguments, environment, progress.line, alive=alive)
    except KeyboardInterrupt:
        click.echo("fabricproof: interrupted; what had finished is kept", err=True)
    except UnavailableError as error:
        click.echo(f"fabricproof: {error}", err=True)
        status, reason = error.exit_status, str(error)
    if ended is None and not place.report_file(run_id).exists():
        return Performed(run_id=run_id, result=None, status=status, whole=False, reason=reason)
    result = collect(site, place, run_id, arguments, progress.lines)
    if ended is None:
        why = "interrupted before the end of the run"
        result = doubted(result, place, Verdict.MISSING, why)
        return Performed(run_id=run_id, result=result, status=status, whole=False, reason=reason)
    if ended:
        why = f"ended with status {ended} although no check failed: read its log"
        result = doubted(result, place, Verdict.UNJUDGED, why)
    return Performed(run_id=run_id, result=result, status=STATUSES[result.verdict], whole=True)


def _warn_of_scheduling(site: Site, environment: dict[str, str]) -> None:
    """Say what this Slurm will not do; refuse where no number would count.

    Raises:
        ConfigError: nothing that was measured there could be believed.
    """
    troubles = scheduling_troubles(site, environment)
    refuse_troubles(site, troubles)
    for trouble in troubles:
        click.echo(f"fabricproof: warning: {trouble.line}", err=True)


def show(
    result: SessionResult,
    shown: Shown = "table",
    *,
    site: str = "",
    again: Sequence[Confirmation] = (),
) -> None:
    """Print a run's result, as a table or as JSON; ``again``: what was measured again of it."""
    if shown == "json":
        from fabricproof.nightly import record  # noqa: PLC0415 - start-up time

        looks = [record(each) for each in again]
        click.echo(json.dumps({**result_record(result), "measured_again": looks}, indent=2))
        return
    from fabricproof.cli.console import HonestConsole  # noqa: PLC0415 - slow, needed at the end
    from fabricproof.report.text.terminal import render  # noqa: PLC0415 - likewise

    width = None if sys.stdout.isatty() else 200
    console = HonestConsole(width=width, soft_wrap=not sys.stdout.isatty())
    render(result, console, site, every_leg=shown == "every leg")


def result_record(result: SessionResult) -> dict[str, Any]:
    """Return a run's result as plain data, the form of ``--json``."""
    from fabricproof.report.formats.record import leg_record  # noqa: PLC0415 - slow, needed at the end

    return {
        "verdict": result.verdict.value,
        "run_id": result.run_id,
        "counts": {verdict.value: count for verdict, count in result.counts().items()},
        "legs": [leg_record(leg) for leg in result.legs],
        "notes": list(result.notes),
    }
