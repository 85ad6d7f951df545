"""``fabricproof nightly``: the unattended run, confirmed, kept, and told only on a change."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import click

from fabricproof.cli import options
from fabricproof.cli.console import HonestConsole
from fabricproof.cli.measure.run import perform, result_record, show
from fabricproof.cli.output import STATUSES
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
    night_lock,
    now,
    prune,
    read_history,
    record,
    red_of,
    render_night,
    spend,
    state_file,
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
    tags: tuple[str, ...]
    arguments: tuple[str, ...]
    of: str | None
    as_json: bool
    keep_days: int | None
    dry_run: bool
    no_notify: bool
    no_confirm: bool


@click.command(name="nightly", context_settings=options.PASSED_ON)
@options.tags
@options.site
@options.as_json
@click.option(
    "--keep-days",
    type=click.IntRange(min=1),
    metavar="N",
    help="Remove stage folders, outputs and reports that are older than N days.",
)
@click.option("--dry-run", is_flag=True, help="Run nothing: say what would run and be removed.")
@click.option("--no-notify", is_flag=True, help="No mail, no webhook.")
@click.option("--no-confirm", is_flag=True, help="Do not look at red again.")
@click.option("--alive", is_flag=True, help="Run nothing: was there a whole night lately?")
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED, metavar="[RUN] [REFRAME OPTION...]")
def command(
    site_name: str | None,
    keep_days: int | None,
    alive: bool,
    arguments: tuple[str, ...],
    **wished: Any,
) -> None:
    r"""Run the checks of the night, look again at what is red, tell of what changed.

    What is red is run again on the same nodes, and then each of its nodes with another partner:
    red again is red, with the node to blame; green is a flutter, kept and counted, and the third
    within ten nights is red. INVALID is never cleared. What others disturbed, or too few rounds
    left UNJUDGED, is measured once more, and what that says counts. Both outcomes are kept in
    records.jsonl. Mail and webhook ([night] in site.toml) go out only where something changed.

    \b
    fabricproof nightly                       # what a timer calls: the tags of [night]
    fabricproof nightly -t quick --no-notify  # another selection, nobody is told
    fabricproof nightly latest                # confirm and tell of a run that is already made
    fabricproof nightly --keep-days 30 --dry-run       # what would be removed
    fabricproof nightly --alive               # for a second timer: the dead man's line

    Exit status: as for run, of what is confirmed: 0, FAIL 1, INVALID 3, MISSING 4, UNJUDGED 5,
    nothing judged 6; 65: damaged state; 66: no such run; 69: no Slurm, which is no red network;
    74: cannot write; 75: another night of the site runs; 130: interrupted, what had finished is
    kept. --alive: 0, or 4 where no night was whole lately; a RUN that was made before is none.
    """
    if arguments and not arguments[0].strip():
        raise click.UsageError("RUN: it is empty; say which run is meant")
    site = site_of(site_name)
    of = None
    if arguments and not arguments[0].startswith("-"):
        of, *rest = arguments
        arguments = tuple(rest)
    kept = keep_days or site.night.keep_days
    wishes = _Wishes(arguments=arguments, of=of, keep_days=kept, **wished)
    place = workplace(project_root())
    if alive:
        why, deliveries = ask_alive(site, place.perflogs, notify=not wishes.no_notify)
        if wishes.as_json:
            click.echo(json.dumps({"site": site.name, "alive": not why, "reason": why}))
        else:
            click.echo(f"{site.name}: {why or 'the nights run'}")
            for line in what_was_sent(deliveries):
                click.echo(f"note  {line}")
        sys.exit(int(ExitStatus.MISSING if why else ExitStatus.PASS))
    if of is not None:
        wishes = replace(wishes, of=_run_meant(site, place, of))
    if wishes.dry_run:
        _show_plan(site, place, wishes)
        return

    with ends_as_interrupt():
        sys.exit(_night(site, place, wishes))


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


def _night(site: Site, place: Workplace, wishes: _Wishes) -> int:
    if os.environ.pop(NODES_VARIABLE, ""):
        click.echo(
            f"fabricproof: {NODES_VARIABLE} is ignored: a night chooses for itself", err=True
        )
    with night_lock(state_file(place.perflogs, site.name).parent):
        return _spend(site, place, wishes)


def _spend(site: Site, place: Workplace, wishes: _Wishes) -> int:
    night = new_run_id()
    arguments = _arguments(site, wishes) if wishes.of is None else []
    environment = session_environment(site, place, night)
    settings = setting_options(wishes.arguments)
    means = NightMeans(
        site=site,
        perflogs=place.perflogs,
        night=night,
        arguments=tuple(arguments),
        run=lambda asked, nodes: perform(
            site, [*settings, *asked], quiet=wishes.as_json, nodes=nodes, label=LOOK_LABEL
        ),
        first=partial(_first, site, place, wishes, arguments, night),
        usable=lambda name: _usable(site.partition(name), environment),
        say=lambda text: click.echo(f"[ night ] {text}", err=wishes.as_json),
        confirm=not wishes.no_confirm,
        notify=not wishes.no_notify,
    )
    outcome = spend(means)
    notes = [*_clean(site, place, wishes, outcome), *write_reports(site, outcome.night.run_id)]
    status = _status(outcome)
    _show(outcome, notes, status, as_json=wishes.as_json)
    looks = {look.run_id for each in outcome.confirmations for look in each.looks}
    # The looks of one red night must not push out what the nights before left as evidence.
    prune_stages(place, KEPT_STAGES + len(looks) if wishes.keep_days is None else sys.maxsize)
    return status


def _arguments(site: Site, wishes: _Wishes) -> list[str]:
    tags = wishes.tags or (() if wishes.arguments else tuple(site.night.tags))
    return ["-r", *(part for tag in tags for part in ("-t", tag)), *wishes.arguments]


def _usable(partition: PartitionSpec, environment: Mapping[str, str]) -> tuple[str, ...]:
    if not partition.uses_slurm:
        return ()
    return usable(ask_states(partition, environment))


def _first(
    site: Site, place: Workplace, wishes: _Wishes, arguments: list[str], night: str
) -> RunResult:
    if wishes.of is None:
        return perform(site, arguments, quiet=wishes.as_json, run_id=night)
    return collect(site, place, wishes.of)[0]


def _status(outcome: NightOutcome) -> int:
    if outcome.status is not None:
        return outcome.status
    assert outcome.result is not None, "a whole night has a result"
    return int(STATUSES[outcome.result.verdict])


def _clean(site: Site, place: Workplace, wishes: _Wishes, outcome: NightOutcome) -> Iterator[str]:
    if wishes.keep_days is not None:
        removed = _prune(site, place, wishes, outcome.red)
        yield from what_was_removed(removed, dry_run=False)


def _prune(site: Site, place: Workplace, wishes: _Wishes, red: Mapping[str, Any]) -> Any:
    history = read_history(state_file(place.perflogs, site.name))
    return prune(
        place,
        site.name,
        keep_days=wishes.keep_days or 1,
        now=now(),
        spare=history.evidence(red),
        dry_run=wishes.dry_run,
    )


def _show(outcome: NightOutcome, notes: list[str], status: int, *, as_json: bool) -> None:
    if as_json:
        click.echo(json.dumps(_record(outcome, notes, status), indent=2, allow_nan=False))
        return

    if outcome.result is not None:
        show(outcome.result)
    width = None if sys.stdout.isatty() else 200
    console = HonestConsole(width=width, soft_wrap=not sys.stdout.isatty())
    render_night(outcome, console)
    for note in notes:
        click.echo(f"note          {note}")


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
        "changes": [
            plain(each, without={"key"}, leg=str(each.key) if each.key else None)
            for each in outcome.changes
        ],
        "red_now": sorted(outcome.red),
        "told": [plain(each, without={"notice"}) for each in outcome.deliveries],
        "notes": [*outcome.notes, *notes],
    }


def _show_plan(site: Site, place: Workplace, wishes: _Wishes) -> None:
    history = read_history(state_file(place.perflogs, site.name))
    removed = ()
    if wishes.keep_days is not None:
        removed = _prune(site, place, wishes, red_of(history))
    told = ", ".join(channels(site.night)) if not wishes.no_notify else ""
    plan = {
        **({"confirm": wishes.of} if wishes.of else {"run": " ".join(_arguments(site, wishes))}),
        "tell by": told or "nobody",
        "remove": list(what_was_removed(removed, dry_run=True)),
    }
    if wishes.as_json:
        click.echo(json.dumps(plan, indent=2))
        return
    click.echo(f"would confirm: {wishes.of}" if wishes.of else f"would run: {plan['run']}")
    click.echo(f"would tell by: {plan['tell by']}, on a change")
    for line in plan["remove"] or ["would remove nothing"]:
        click.echo(line)
