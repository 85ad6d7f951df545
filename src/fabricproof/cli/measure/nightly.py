"""``fabricproof nightly``: the unattended run, confirmed, kept, and told only on a change."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import click

from fabricproof.cli import options
from fabricproof.cli.console import HonestConsole
from fabricproof.cli.measure.run import perform, result_record, show
from fabricproof.cli.output import STATUSES, emit
from fabricproof.core.errors import ExitStatus, InputMissingError
from fabricproof.core.plain import plain
from fabricproof.core.project import project_root, site_option
from fabricproof.core.records import record_files
from fabricproof.history.store import LOOK_LABEL
from fabricproof.job.leg import ADMISSION_CHECK
from fabricproof.job.run import (
    KEPT_STAGES,
    NODES_VARIABLE,
    RunResult,
    Workplace,
    collect,
    ends_as_interrupt,
    new_run_id,
    prune_stages,
    read_run,
    session_environment,
    workplace,
)
from fabricproof.nightly import (
    NightMeans,
    NightOutcome,
    channels,
    log_file,
    night_lock,
    now,
    prune,
    read_log,
    record,
    render_night,
    spend,
    what_was_removed,
    what_was_sent,
    write_reports,
)
from fabricproof.nightly import alive as ask_alive
from fabricproof.nodes.slurm import ask_states, usable
from fabricproof.site import PartitionSpec, Site, site_of
from fabricproof.site.roll import setting_options


@dataclass(frozen=True, kw_only=True)
class _Wishes:
    """A night as it was asked for; ``of``: a run that was made before, in place of its own."""

    site: Site
    place: Workplace
    of: str | None
    words: tuple[str, ...]
    keep_days: int | None
    as_json: bool
    dry_run: bool
    no_notify: bool

    @property
    def arguments(self) -> list[str]:
        """ReFrame's, of the night's own run; none if it is handed one."""
        return ["-r", *self.words] if self.of is None else []

    def prune(self, *, dry_run: bool = False) -> Iterator[str]:
        """Remove what is old, and yield a sentence for each kind of thing."""
        if self.keep_days is None:
            return
        state = read_log(log_file(self.place.perflogs, self.site.name))
        removed = prune(
            self.place,
            self.site.name,
            keep_days=self.keep_days,
            now=now(),
            spare=state.evidence(),
            dry_run=dry_run,
        )
        yield from what_was_removed(removed, dry_run=dry_run)


@click.command(name="nightly", context_settings=options.PASSED_ON)
@options.site
@options.slurm(*options.SLURM)
@options.as_json
@click.option(
    "--keep-days",
    type=click.IntRange(min=1),
    metavar="N",
    help="Remove stage folders, outputs and reports that are older than N days.",
)
@click.option("--dry-run", is_flag=True, help="Run nothing: say what would run and be removed.")
@click.option("--no-notify", is_flag=True, help="No mail, no webhook.")
@click.option("--alive", is_flag=True, help="Run nothing: was there a whole night lately?")
@options.arguments("[RUN] [REFRAME OPTION...]")
def command(
    site_name: str | None,
    slurm: dict[str, str],
    keep_days: int | None,
    alive: bool,
    arguments: tuple[str, ...],
    **wished: bool,
) -> None:
    r"""Run the checks of the night, look again at what is red, tell of what changed.

    What is red is run again on the same nodes, and then each of its nodes with another partner:
    red again is red, with the node to blame; green is a flutter, kept and counted, and the third
    within ten nights is red. INVALID is never cleared. What others disturbed, or too few rounds
    left UNJUDGED, is measured once more, and what that says counts. Both outcomes are kept in
    the records. Mail and webhook ([night] in site.toml) go out only where something changed.

    \b
    fabricproof nightly                       # what a timer calls: the tags of [night]
    fabricproof nightly -t quick --no-notify  # another selection, nobody is told
    fabricproof nightly latest                # confirm and tell of a run that is already made
    fabricproof nightly --keep-days 30 --dry-run       # what would be removed
    fabricproof nightly --alive               # for a second timer: the dead man's line

    Exit status: as for run, of what is confirmed: 0, FAIL 1, INVALID 3, MISSING 4, UNJUDGED 5,
    nothing judged 6; 65: damaged log; 66: no such run; 69: no Slurm, which is no red network;
    74: cannot write; 75: another night of the site runs; 130: interrupted, what had finished is
    kept. --alive: 0, or 4 where no night was whole lately; a RUN that was made before is none.
    """
    site, place = site_of(site_name), workplace(project_root())
    if alive:
        why, told = ask_alive(site, place.perflogs, notify=not wished["no_notify"])
        lines = [f"{site.name}: {why or 'the nights run'}"]
        lines += [f"note  {line}" for line in what_was_sent(told)]
        found = {"site": site.name, "alive": not why, "reason": why}
        emit(found, lines, as_json=wished["as_json"])
        sys.exit(int(ExitStatus.MISSING if why else ExitStatus.PASS))
    of = None
    if arguments and not arguments[0].startswith("-"):
        of, arguments = _run_meant(site, place, arguments[0]), arguments[1:]
    tags = () if arguments else site.night.tags
    wishes = _Wishes(
        site=site,
        place=place,
        of=of,
        words=(*(w for tag in tags for w in ("-t", tag)), *options.of_slurm(slurm), *arguments),
        keep_days=keep_days or site.night.keep_days,
        **wished,
    )
    if wishes.dry_run:
        _show_plan(wishes)
        return
    if os.environ.pop(NODES_VARIABLE, ""):
        said = f"{NODES_VARIABLE} is ignored: a night chooses for itself"
        click.echo(f"fabricproof: {said}", err=True)
    with ends_as_interrupt(), night_lock(log_file(place.perflogs, site.name).parent):
        sys.exit(_spend(wishes))


def _run_meant(site: Site, place: Workplace, words: str) -> str:
    """Return the identity of the run that ``words`` name, as for a report.

    A run that left nothing is refused: all that is due would be MISSING in it.  So is an admission:
    what is red in it would be red for ever, for no night measures it again.
    """
    files = record_files(place.perflogs / site.name)
    known = place.report_file(words).exists() or read_run(files, words)[0]
    found = words
    if not known:
        from fabricproof.report.gather import run_meant  # noqa: PLC0415 - polars, all night long

        found = run_meant(words, site, place).run_id
    if any(each.get("check") == ADMISSION_CHECK for each in read_run(files, found)[0]):
        raise InputMissingError(
            f"run {found} is an admission, which no night measures again",
            expected="a run of the checks of nights",
            next_step=f"fabricproof report {site_option(site.name)} {found}",
        )
    return found


def _spend(wishes: _Wishes) -> int:
    site, place, night = wishes.site, wishes.place, new_run_id()
    environment = session_environment(site, place, night)
    settings = setting_options(wishes.words)

    def first() -> RunResult:
        if wishes.of is not None:
            return collect(site, place, wishes.of)[0]
        return perform(site, wishes.arguments, quiet=wishes.as_json, run_id=night)

    outcome = spend(
        NightMeans(
            site=site,
            perflogs=place.perflogs,
            night=night,
            arguments=tuple(wishes.arguments),
            run=lambda asked, nodes: perform(
                site, [*settings, *asked], quiet=wishes.as_json, nodes=nodes, label=LOOK_LABEL
            ),
            first=first,
            usable=lambda name: _usable(site.partition(name), environment),
            say=lambda text: click.echo(f"[ night ] {text}", err=wishes.as_json),
            notify=not wishes.no_notify,
        )
    )
    notes = [*wishes.prune(), *write_reports(site, outcome.night.run_id)]
    status = outcome.status
    if status is None:
        assert outcome.result is not None, "a whole night has a result"
        status = int(STATUSES[outcome.result.verdict])
    emit(_record(outcome, notes, status), partial(_show, outcome, notes), as_json=wishes.as_json)
    looks = {look.run_id for each in outcome.confirmations for look in each.looks}
    # The looks of one red night must not push out what the nights before left as evidence.
    prune_stages(place, KEPT_STAGES + len(looks) if wishes.keep_days is None else sys.maxsize)
    return status


def _usable(partition: PartitionSpec, environment: dict[str, str]) -> tuple[str, ...]:
    return usable(ask_states(partition, environment)) if partition.uses_slurm else ()


def _show(outcome: NightOutcome, notes: list[str]) -> Iterator[str]:
    if outcome.result is not None:
        show(outcome.result)
    is_terminal = sys.stdout.isatty()
    console = HonestConsole(width=None if is_terminal else 200, soft_wrap=not is_terminal)
    render_night(outcome, console)
    return (f"note          {note}" for note in notes)


def _record(outcome: NightOutcome, notes: list[str], status: int) -> dict[str, Any]:
    night = outcome.night
    return {
        "night": night.night,
        "ended": night.ended.value,
        "reason": night.reason,
        "status": status,
        "verdict": outcome.result.verdict.value if outcome.result else None,
        "first_verdict": outcome.first.verdict.value if outcome.first else None,
        "run": result_record(outcome.result) if outcome.result else None,
        "confirmations": [record(each) for each in outcome.confirmations],
        "changes": [plain(each) for each in outcome.changes],
        "red_now": sorted(outcome.red),
        "told": [plain(each, without={"notice"}) for each in outcome.told],
        "notes": [*outcome.notes, *notes],
    }


def _show_plan(wishes: _Wishes) -> None:
    told = "nobody" if wishes.no_notify else ", ".join(channels(wishes.site.night)) or "nobody"
    what = ("confirm", wishes.of) if wishes.of else ("run", " ".join(wishes.arguments))
    removed = list(wishes.prune(dry_run=True))
    lines = [f"would {what[0]}: {what[1]}", f"would tell by: {told}, on a change"]
    lines += removed or ["would remove nothing"]
    emit({what[0]: what[1], "tell by": told, "remove": removed}, lines, as_json=wishes.as_json)
