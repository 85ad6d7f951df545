"""``fabricproof ab``: a site that can be switched, measured before and after in turn."""

from __future__ import annotations

import contextlib
import json
import secrets
import signal
import sys
import time
from collections.abc import Iterator
from dataclasses import asdict, replace
from pathlib import Path

import click

from fabricproof.cli import options
from fabricproof.cli.history.compare import compared, status_of
from fabricproof.cli.measure.run import perform, progress_of, show
from fabricproof.cli.selection import perflogs
from fabricproof.core.errors import ConfigError, ExitStatus
from fabricproof.core.group import run_group
from fabricproof.core.project import site_option
from fabricproof.history.compare.comparison import Asked
from fabricproof.history.compare.model import SideError, comparison_record
from fabricproof.history.compare.plan import (
    InterleavedMeans,
    InterleavedPlan,
    RunOutcome,
    SwitchedError,
    conduct,
    fewest_rounds,
    make_plan,
    plan_lines,
    read_plan,
    state_file,
    switch_back,
    write_plan,
)
from fabricproof.history.compare.text import lines
from fabricproof.history.store import set_label
from fabricproof.job.run import ends_as_interrupt
from fabricproof.nightly import night_lock
from fabricproof.nightly import state_file as nightly_state_file
from fabricproof.site import Site, SwitchSpec, site_of

#: rounds of which one order by lot is told apart from none at all at 5 %: six, and one to spare
_ROUNDS = 7


@click.group(name="ab", cls=options.HelpGroup)
@options.site
@options.as_json
def command(**_: object) -> None:
    r"""Compare two states of a site by switching in turn: drift cannot pass for a change.

    site.toml says how the site is switched:

    \b
    [switches.mtu9000]
    a = "sudo site-mtu 1500"
    b = "sudo site-mtu 9000"
    settle_seconds = 20

    \b
    fabricproof ab plan mtu9000 --rounds 7
    fabricproof ab run mtu9000 -t quick
    """


@command.command(name="plan")
@click.argument("name")
@options.count("--rounds", _ROUNDS, "How often each state is measured.", 1, 1000)
@click.option(
    "--seed", type=int, metavar="N", help="Seed of the order.  [default: drawn, and kept]"
)
@options.replace
@options.of_group("site_name", "as_json")
def plan_command(
    name: str, rounds: int, seed: int | None, replace: bool, site_name: str | None, as_json: bool
) -> None:
    """Draw the order of the rounds of switch NAME and keep it; nothing is switched or run.

    Exit status: 0; 78 where site.toml has no such switch; 2 where a plan of that name is there.
    """
    site = site_of(site_name)
    spec = _switch(site, name)
    path = _place(site, name)
    if path.exists() and (read_plan(path).switched or not replace):
        raise SideError(
            f"there is a plan {name}",
            source=str(path),
            expected="none, or one that is switched back and thrown away with --replace",
            next_step=f"fabricproof ab run {name} {site_option(site.name)}   # goes on with it",
        )
    plan = make_plan(name, rounds, secrets.randbelow(2**31) if seed is None else seed)
    write_plan(path, plan)
    _show(plan, spec, as_json=as_json)
    fewest = fewest_rounds(0.05)
    if rounds < fewest and not as_json:
        click.echo(
            f"WARNING {rounds} rounds can never say BETTER or WORSE at 5 %: at least {fewest}"
        )


@command.command(name="show")
@click.argument("name")
@options.of_group("site_name", "as_json")
def show_command(name: str, site_name: str | None, as_json: bool) -> None:
    """Show plan NAME and how far it is; 66 where there is none."""
    site = site_of(site_name)
    _show(read_plan(_place(site, name)), _switch(site, name), as_json=as_json)


@command.command(name="back")
@click.argument("name")
@options.of_group("site_name", "as_json")
def back(name: str, site_name: str | None, as_json: bool) -> None:
    """Switch back what a killed `ab run` left switched; 69 where that fails."""
    site = site_of(site_name)
    spec, path = _switch(site, name), _place(site, name)
    with _alone(site):
        switch_back(read_plan(path), _means(site, name, spec, path, quiet=as_json))
    if as_json:
        _show(read_plan(path), spec, as_json=True)


@command.command(name="run", context_settings=options.PASSED_ON)
@click.argument("name")
@options.of_group("site_name", "as_json")
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED, metavar="[RUN OPTION...]")
def run(name: str, site_name: str | None, as_json: bool, arguments: tuple[str, ...]) -> None:
    r"""Run what is left of plan NAME, then compare its two sides.

    Each run is a `fabricproof run` with the options given, labelled NAME-a or NAME-b.  The site
    is switched back at the end, on Ctrl-C and after a failure; the same command then goes on.

    \b
    fabricproof ab run mtu9000 -t quick

    Exit status: of `fabricproof compare` (0, 1, 5, 6); 69: a switch or a run failed; 75: a night
    of the site runs; 130: interrupted.
    """
    site = site_of(site_name)
    spec, path = _switch(site, name), _place(site, name)
    with _alone(site):
        plan = _with_arguments(site, read_plan(path), arguments)
        conduct(plan, _means(site, name, spec, path, quiet=as_json))
    comparison = compared(site, f"label:{name}-a", f"label:{name}-b", Asked())
    if as_json:
        click.echo(json.dumps(comparison_record(comparison), indent=1))
    else:
        click.echo("\n".join(lines(comparison)))
    sys.exit(status_of(comparison))


def _switch(site: Site, name: str) -> SwitchSpec:
    if name not in site.switches:
        known = ", ".join(site.switches) or "none"
        raise ConfigError(
            "no such switch",
            source=str(site.folder / "site.toml"),
            expected=f"one of: {known}",
            got=repr(name),
            next_step=f'[switches.{name}] with a = "COMMAND" and b = "COMMAND"',
        )
    return site.switches[name]


def _place(site: Site, name: str) -> Path:
    return state_file(perflogs(), site.name, name)


def _show(plan: InterleavedPlan, spec: SwitchSpec, *, as_json: bool) -> None:
    commands = {"a": spec.a, "b": spec.b, "back": spec.back or spec.a}
    if as_json:
        click.echo(json.dumps({**asdict(plan), "commands": commands}, indent=1))
        return
    for line in plan_lines(plan, commands):
        click.echo(line)


def _with_arguments(
    site: Site, plan: InterleavedPlan, arguments: tuple[str, ...]
) -> InterleavedPlan:
    """Return the plan with what is run in each step; it may not change on the way."""
    if plan.arguments is not None and arguments not in {(), plan.arguments}:
        raise SideError(
            f"plan {plan.name} was begun with other options",
            expected=" ".join(plan.arguments) or "none",
            got=" ".join(arguments),
            next_step=f"fabricproof ab run {plan.name} {site_option(site.name)}   # or plan anew",
        )
    return plan if plan.arguments is not None else replace(plan, arguments=arguments)


@contextlib.contextmanager
def _alone(site: Site) -> Iterator[None]:
    """Keep nights and other plans of the site away, and take SIGTERM as Ctrl-C."""
    folder = nightly_state_file(perflogs(), site.name).parent
    with ends_as_interrupt(), night_lock(folder) as notes:
        for note in notes:
            click.echo(f"fabricproof: {note}", err=True)
        yield


def _means(
    site: Site, name: str, spec: SwitchSpec, path: Path, *, quiet: bool = False
) -> InterleavedMeans:
    place = perflogs()

    def switch(side: str) -> None:
        switch_site(site, name, spec, side)

    def measure(arguments: tuple[str, ...]) -> RunOutcome:
        return _measure(site, arguments, quiet=quiet)

    return InterleavedMeans(
        switch=switch,
        measure=measure,
        label=lambda run_id, label: set_label(place, site.name, [run_id], label),
        keep=lambda plan: write_plan(path, plan),
        tell=lambda line: click.echo(line, err=quiet),
    )


def _measure(site: Site, arguments: tuple[str, ...], *, quiet: bool) -> RunOutcome:
    done = perform(site, ["-r", *arguments], progress=progress_of(arguments, quiet=quiet))
    if done.status is ExitStatus.INTERRUPTED:
        raise KeyboardInterrupt
    if done.result is not None and not quiet:
        show(done.result, as_json=False, site=site.name)
    return RunOutcome(run_id=done.run_id, whole=done.whole, reason=done.reason)


def switch_site(site: Site, name: str, spec: SwitchSpec, side: str) -> None:
    """Run the command of a side and wait until the site has settled.

    Switching back is not to be interrupted: Ctrl-C meanwhile is not taken.

    Raises:
        SwitchedError: the command failed or took too long.
    """
    command = {"a": spec.a, "b": spec.b, "back": spec.back or spec.a}[side]
    with _undisturbed() if side == "back" else contextlib.nullcontext():
        # A service that it started is to stay.
        shell = ["/bin/sh", "-c", command]
        status, output, _ = run_group(shell, spec.timeout_seconds, stays=True)
        said = " ".join(output.split())[-200:]
        if status != 0:
            raise SwitchedError(
                f"switch {name}: cannot switch {'to ' * (side != 'back')}{side}",
                expected=f"exit status 0 of {command!r} within {spec.timeout_seconds:.0f} s",
                got=f"status {status}: {said}" if status is not None else "no end",
                next_step=f"mend it, then fabricproof ab back {name} {site_option(site.name)}",
            )
        if side != "back":
            time.sleep(spec.settle_seconds)


@contextlib.contextmanager
def _undisturbed() -> Iterator[None]:
    """Take no Ctrl-C, no end and no hang-up while the site is switched back."""
    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    before = {number: signal.signal(number, signal.SIG_IGN) for number in numbers}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
