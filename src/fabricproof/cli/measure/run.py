"""``fabricproof run`` and ``fabricproof reframe``: the checks through ReFrame, then the verdict."""

from __future__ import annotations

import difflib
import json
import os
import re
import shlex
import sys
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import click

from fabricproof.cli import options
from fabricproof.cli.measure.run_progress import Progress
from fabricproof.cli.output import STATUSES
from fabricproof.core.errors import (
    ConfigError,
    ExitStatus,
    FabricproofError,
    UnavailableError,
    UnknownOptionError,
)
from fabricproof.core.measure import Verdict
from fabricproof.core.project import project_root
from fabricproof.core.records import text_of
from fabricproof.core.whole_file import write_whole
from fabricproof.job.run import (
    KEPT_STAGES,
    NODES_VARIABLE,
    RunNote,
    RunResult,
    Workplace,
    collect,
    describe_checks,
    new_run_id,
    prune_stages,
    read_report,
    ready_to_run,
    reframe_command,
    refuse_full_disk,
    run_reframe,
    scheduler_answers,
    selects_nothing,
    session_environment,
    unloadable,
    wants_run,
    workplace,
)
from fabricproof.site import Site, choose_site, load_site
from fabricproof.site.roll import selects_only, setting_options, with_whole_stacks

if TYPE_CHECKING:
    from fabricproof.nightly import Confirmation

#: names the run that ``reframe -r`` starts, as ``--label`` does
LABEL_VARIABLE = "FABRICPROOF_LABEL"

#: options of sbatch that are none of ReFrame's, which hands them on with -J
OF_SBATCH = ("reservation", "nodelist", "exclude", "constraint", "account", "qos", "partition")

#: check that builds a stack, a fixture of all others (``rfm.build``)
BUILD_CHECK = "StackBuild"

Shown = Literal["table", "every leg", "json"]


@click.command(name="run", context_settings=options.PASSED_ON)
@options.site
@options.slurm(*options.SLURM)
@click.option("--label", envvar=LABEL_VARIABLE, metavar="NAME", help="A name for this run.")
@click.option("--verbose", "-v", "every_leg", is_flag=True, help="A row for each leg.")
@options.as_json
@options.arguments()
def command(
    site_name: str | None,
    slurm: dict[str, str],
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
    MISSING (4) or UNJUDGED (5); 6: nothing was judged; 69: no Slurm; 130: interrupted.  A -n, -t or
    -p that nothing fits is MISSING.
    """
    site = load_site(site_name) if site_name else choose_site()
    arguments = ("-r", *options.of_slurm(slurm), *arguments)
    shown: Shown = "json" if as_json else "every leg" if every_leg else "table"
    sys.exit(int(accept(site, arguments, shown=shown, label=label, again=True)))


@click.command(name="reframe", context_settings={**options.PASSED_ON, "help_option_names": []})
@options.site
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def reframe(site_name: str | None, arguments: tuple[str, ...]) -> None:
    """Start ReFrame with this site's configuration; with -r the verdict table follows."""
    site = load_site(site_name) if site_name else choose_site()
    if wants_run(arguments):
        label = os.environ.get(LABEL_VARIABLE)
        sys.exit(int(accept(site, list(arguments), label=label)))
    environment = session_environment(site, workplace(project_root()), new_run_id())
    for name in ("FABRICPROOF_REFRAME_LOG", "RFM_SQLITE_DB_FILE"):
        Path(environment[name]).parent.mkdir(parents=True, exist_ok=True)
    program = reframe_command()
    words = with_whole_stacks(arguments, [stack.name for stack in site.stacks])
    option, _, file = next((a for a in words if a.startswith("--ci-g")), "").partition("=")
    if option:
        status = run_reframe(words, environment, click.echo)
        path = Path(file or words[words.index(option) + 1])
        if status == 0:
            write_whole(path, with_verdicts(text_of(path), site.folder))
        sys.exit(status)
    os.execve(program, [program, *words], environment)  # noqa: S606 - it replaces us


def with_verdicts(pipeline: str, site_folder: Path) -> str:
    """Return a pipeline of ``--ci-generate`` whose jobs give our verdict and its status.

    ReFrame 4.10 has each job start plain ``reframe``, and one for each fixture, whose hash selects
    nothing: a check brings its fixtures itself.
    """
    jobs = [each for each in re.split(r"(?m)^(?=\S)", pipeline) if not each.startswith(BUILD_CHECK)]
    text = re.sub(r"(?m)^  needs:\n(?:  - .*\n)*", "  needs: []\n", "".join(jobs))
    # Nothing judged: this site has not the fabric of the check.
    allowed = "  allow_failure:\n    exit_codes: [6]\n  needs: []\n"
    text = text.replace("  needs: []\n", allowed)
    text = re.sub(r" --(?:prefix|report-file|restore-session)=\S+| -C \S+", "", text)
    text = text.replace("-report.json", "-report.xml")
    start = f"FABRICPROOF_SITE={shlex.quote(str(site_folder.resolve()))} fabricproof reframe"
    return re.sub(r"(?m)^  - reframe\b", lambda _: f"  - {start}", text)


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
    place = workplace(project_root())
    if label:
        from fabricproof.history.store import require_label  # noqa: PLC0415 - start-up time

        require_label(label)
    result = perform(site, arguments, quiet=shown == "json")
    if result.left_nothing:
        return ExitStatus(result.status)
    from fabricproof.nightly import keep  # noqa: PLC0415 - start-up time

    confirmations: tuple[Confirmation, ...] = ()
    if again and not result.stopped and selects_only(arguments):
        settings = setting_options(arguments)
        result, confirmations = _measured_again(site, result, settings, quiet=shown == "json")
    show(
        replace(
            result,
            notes=(
                f"perflogs: {place.perflogs / site.name}",
                f"ReFrame's report: {place.report_file(result.run_id)}",
                f"stage folders of what failed: {place.root / 'stage'}",
                *result.notes,
            ),
        ),
        shown,
        site=site.name,
        again=confirmations,
    )
    if label:
        label_run(label, site, result.run_id)
    prune_stages(place, KEPT_STAGES + len(confirmations))
    keep(place.perflogs, site.name, confirmations, result.run_id)
    return ExitStatus(result.status) if result.status else STATUSES[result.verdict]


def _measured_again(
    site: Site, result: RunResult, settings: Sequence[str], *, quiet: bool
) -> tuple[RunResult, tuple[Confirmation, ...]]:
    """Measure once more what is UNJUDGED for a cause that passes; return what then counts.

    ``settings``: ReFrame's options of the run that its second looks need as well.
    """
    from fabricproof.history.store import LOOK_LABEL  # noqa: PLC0415 - start-up time
    from fabricproof.nightly import Budget, Confirmer, settled  # noqa: PLC0415

    confirmer = Confirmer(
        site.name,
        run=lambda asked, nodes: perform(
            site, [*settings, *asked], quiet=quiet, nodes=nodes, label=LOOK_LABEL
        ),
        usable=lambda _: (),
        budget=Budget.of(site.night),
        say=lambda text: click.echo(text, err=quiet),
    )
    found = confirmer.measure_again(result)
    result = settled(result, found.confirmations)
    if found.ended is not None and found.ended.status == ExitStatus.INTERRUPTED:
        result = replace(result, status=ExitStatus.INTERRUPTED)
    return result, found.confirmations


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
    quiet: bool,
    run_id: str | None = None,
    nodes: Sequence[str] = (),
    label: str = "",
) -> RunResult:
    """Run ReFrame with ``arguments`` on ``site`` and return what came of it; print no verdict.

    Args:
        site: of the checks.
        arguments: of ReFrame.
        quiet: show no progress.
        run_id: of the run; a new one without it.
        nodes: to measure on; any without them.
        label: that the run has before it begins: one that is killed is no sample of the site.

    Raises:
        ConfigError: this Slurm cannot be measured on as the site says; nothing was started.
        UnavailableError: the scheduler is not there; nothing was started.
        UnknownOptionError: ReFrame does not know an option.
    """
    place = workplace(project_root())
    run_id = run_id or new_run_id()
    if label:
        label_run(label, site, run_id)
    arguments = with_whole_stacks(arguments, [stack.name for stack in site.stacks])
    environment = session_environment(site, place, run_id)
    if nodes:
        environment[NODES_VARIABLE] = ",".join(nodes)
    for trouble in ready_to_run(site, environment):
        click.echo(f"fabricproof: warning: {trouble.line}", err=True)
    note = RunNote(site=site.name, arguments=list(arguments), perflogs=str(place.perflogs))
    if "--dry-run" not in arguments:
        note.write(place, run_id)
    progress = Progress(
        quiet=quiet, verbose=any(re.match(r"-v+$|--verbose$", a) for a in arguments)
    )
    ended: int | None = None
    early = RunResult(run_id=run_id, stopped="interrupted", status=int(ExitStatus.INTERRUPTED))
    try:
        with progress.following(site, environment):
            ended = run_reframe(
                arguments,
                environment,
                progress.line,
                alive=partial(scheduler_answers, site, environment),
            )
    except KeyboardInterrupt:
        click.echo("fabricproof: interrupted; what had finished is kept", err=True)
    except UnavailableError as error:
        click.echo(f"fabricproof: {error}", err=True)
        early = replace(early, stopped=str(error), status=int(error.exit_status))
    refuse_full_disk(progress.lines)
    if ended is None and not place.report_file(run_id).exists():
        return early
    result = _concluded(site, place, run_id, note, progress.lines, ended)
    if ended is None:
        return replace(result, stopped=early.stopped, status=early.status)
    return result


def _concluded(
    site: Site,
    place: Workplace,
    run_id: str,
    note: RunNote,
    lines: Sequence[str],
    ended: int | None,
) -> RunResult:
    """Note what ReFrame's report does not tell of a run, and return its result.

    ``ended``: ReFrame's exit status; None if it was ended.
    """
    has_report = place.report_file(run_id).exists()
    broken = list(unloadable(lines))
    selected_nothing = not has_report and "[==========] Running 0 check(s)" in lines
    if not has_report and not broken and not selected_nothing:
        _refuse_unknown_option(lines)
        refused = next((line for line in lines if line.startswith("ERROR: ")), "")
        if refused:
            raise ConfigError(refused.removeprefix("ERROR: "), source="ReFrame")
        read_report(place.report_file(run_id))  # raises: there is none
    missing = [("check file", complaint) for complaint in broken]
    missing += _not_selected(site, place, note.arguments, run_id, nothing=selected_nothing)
    doubts = []
    if ended is None:
        doubts = [(Verdict.MISSING.value, "interrupted before the end of the run")]
    elif ended and has_report:
        why = f"ended with status {ended} although no check failed: read its log"
        doubts = [(Verdict.UNJUDGED.value, why)]
    note = replace(note, ended=True, ran_nothing=not has_report, missing=missing, doubts=doubts)
    note.write(place, run_id)
    result, _ = collect(site, place, run_id)
    if selected_nothing:
        chosen = " ".join(note.arguments[1:])
        said = f"no check was selected{' by ' * bool(chosen)}{chosen}: fabricproof reframe -l"
        result = replace(result, notes=(said, *result.notes))
    return result


def _not_selected(
    site: Site, place: Workplace, arguments: Sequence[str], run_id: str, *, nothing: bool
) -> list[tuple[str, str]]:
    """Return what was asked for and selects nothing, said at once, and the reason of each."""
    report = place.report_file(run_id)
    ran = [str(case.get("name", "")) for case in read_report(report)] if report.exists() else []
    described: list[dict[str, Any]] = []
    if nothing:
        # What there is to select is asked for only where nothing was.
        try:
            described = describe_checks(site, place)
        except FabricproofError as error:
            click.echo(f"fabricproof: nobody knows what there is to select: {error}", err=True)
    stacks = [stack.name for stack in site.stacks]
    found = selects_nothing(arguments, ran, stacks, described)
    for option, reason in found:
        click.echo(f"fabricproof: {option} selects nothing: {reason}", err=True)
    return found


def _refuse_unknown_option(lines: Sequence[str]) -> None:
    """Refuse what ReFrame's own parser refused, with the option that may be meant."""
    message = next((line for line in lines if line.startswith("reframe: error: ")), "")
    if not message:
        return
    # argparse shows all options before it says which it does not know.
    usage = " ".join(line for line in lines if line is not message)
    known = {"--site", "--label", "--json", *re.findall(r"--[a-z][a-z-]+", usage)}
    words = [word for word in re.findall(r"--\w[\w-]*", message) if word not in known]
    meant = [near for word in words for near in difflib.get_close_matches(word, known, 1, 0.8)]
    meant += [f"-J {word[2:]}=VALUE" for word in words if word[2:] in OF_SBATCH]
    message = message.removeprefix("reframe: error: ")
    raise UnknownOptionError(message + (f"; did you mean {', '.join(meant)}?" if meant else ""))


def show(
    result: RunResult,
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


def result_record(result: RunResult) -> dict[str, Any]:
    """Return a run's result as plain data, the form of ``--json``."""
    from fabricproof.report.formats.record import leg_record  # noqa: PLC0415 - slow, needed at the end

    return {
        "verdict": result.verdict.value,
        "run_id": result.run_id,
        "counts": {verdict.value: count for verdict, count in result.counts().items()},
        "legs": [leg_record(leg) for leg in result.legs],
        "notes": list(result.notes),
    }
