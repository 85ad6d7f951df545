"""Stacks that Spack builds for a site: ``stack build``, ``lock``, ``list`` and ``remove``."""

from __future__ import annotations

import json
import signal
import time
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any, NoReturn, Self

import click
from rich.markup import escape
from rich.status import Status

from fabricproof.cli import options
from fabricproof.cli.console import HonestConsole
from fabricproof.core.errors import (
    ConfigError,
    FabricproofError,
    InputMissingError,
    InterruptedBuildError,
    without_control_characters,
)
from fabricproof.site import Site, StackSpec, site_of
from fabricproof.stacks.spack import (
    Built,
    Spack,
    SpackLayout,
    build,
    building,
    compose,
    explain,
    fetch_spack,
    find_spack,
    kept_lock,
    layout_for,
    lock,
    module_name,
    open_spack,
    read_built,
    remove,
    why_not_whole,
)


def named(option: str) -> Path | None:
    """Return what ``--root`` or ``--spack`` of ``fabricproof stack`` names, if anything."""
    parent = click.get_current_context().parent
    path = parent.params.get(option) if parent is not None else None
    return path.absolute() if path else None


def site_and_layout(site_name: str | None) -> tuple[Site, SpackLayout]:
    """Return the site that is meant and the layout of its stacks."""
    site = site_of(site_name)
    return site, layout_for(site.name, site.folder, named("root"))


def chosen_stacks(site: Site, names: tuple[str, ...]) -> list[StackSpec]:
    """Return the stacks called ``names``, or all that Spack builds for ``site``.

    Raises:
        ConfigError: an unknown name, or one that Spack does not build.
    """
    stacks = [site.stack(name) for name in names] or [each for each in site.stacks if each.spack]
    for stack in stacks:
        if stack.spack is None:
            how = "provisioned from wheels: fabricproof stack install" if stack.provisioned else ""
            raise ConfigError(
                f"stack {stack.name!r} of site {site.name} is not built by Spack",
                source=str(site.folder / "site.toml"),
                expected='spack = "FOLDER" in its [[stacks]] entry',
                got=how or "the site's own modules",
            )
    if not stacks:
        raise ConfigError(
            f"site {site.name} has no stack that Spack builds",
            source=str(site.folder / "site.toml"),
            expected='a [[stacks]] entry with spack = "openmpi"',
        )
    return stacks


def opener(layout: SpackLayout) -> Callable[[], Spack]:
    """Return a function that finds Spack, or fetches it, when it is first needed."""
    spack = named("spack")
    return lambda: open_spack(find_spack(layout, spack) or fetch_spack(layout, tell), layout)


#: what each step of a build is, for people.
_STEPS = {
    "wait": "waiting",
    "lock": "solving",
    "install": "installing",
    "modules": "writing modules",
    "linkage": "checking which MPI is loaded",
    "smoke": "starting two ranks",
}

#: a cancelled job, a closed session.
_ENDS = (signal.SIGTERM, signal.SIGHUP)


def _interrupt(number: int, frame: object) -> NoReturn:  # noqa: ARG001 - the signal's own shape
    raise KeyboardInterrupt


class Display:
    """Shows the steps of one stack on the error stream, so that results stay alone on stdout.

    One moving line with what Spack prints last on a terminal, plain lines elsewhere.
    """

    def __init__(self, stack: str) -> None:
        self._stack = stack
        self._step = ""
        self._begin = time.monotonic()
        self._status: Status | None = None
        self._log: Path | None = None

    def __enter__(self) -> Self:
        # They must end Spack too, not leave it building; but nohup is to be heeded.
        self._before = {
            sign: signal.signal(sign, _interrupt)
            for sign in _ENDS
            if signal.getsignal(sign) is not signal.SIG_IGN
        }
        console = HonestConsole(stderr=True)
        if console.is_terminal:
            self._status = console.status(self._stack)
            self._status.start()
        return self

    def __exit__(self, _kind: object, error: object, _trace: object) -> None:
        for sign, before in self._before.items():
            signal.signal(sign, before)
        if self._status is not None:
            self._status.stop()
        if isinstance(error, FabricproofError) and self._log is not None and self._log.is_file():
            tell(f"{self._stack}: all that Spack printed is in {self._log}")

    def listen(self, step: str, line: str) -> None:
        """Take a line of ``step``; of step ``log`` it is the file that Spack's words go to."""
        if step == "log":
            self._log = Path(line)
            return
        is_new, self._step = step != self._step, step
        label = _STEPS.get(step, step)
        if is_new and (self._status is None or step == "wait"):
            tell(f"{self._stack}: {line if step == 'wait' else label}")
        if self._status is not None:
            seconds = time.monotonic() - self._begin
            text = (
                f"{self._stack}: {label} ({seconds:.0f} s) {without_control_characters(line)[:100]}"
            )
            self._status.update(escape(text))
        elif step == "install" and line.startswith("==> "):
            tell(f"{self._stack}: {line.removeprefix('==> ')}")


def tell(text: str) -> None:
    """Say how far it is, beside the output."""
    click.echo(text, err=True)


def _record(built: Built, layout: SpackLayout, *, stood: bool, seconds: float) -> dict[str, Any]:
    return {
        **asdict(built),
        "stood": stood,
        "wall_seconds": round(seconds, 2),
        "lock": str(kept_lock(layout, built.stack)),
    }


_force = click.option(
    "--force",
    is_flag=True,
    help="Solve again though what is there seems to fit; build also verifies and tries it.",
)


@click.command("build", cls=options.OfGroup)
@click.argument("names", nargs=-1)
@options.of_group("site_name", "as_json")
@click.option(
    "-j", "--jobs", type=click.IntRange(1, 1024), metavar="N", help="Compile with N processes."
)
@_force
@click.option("--no-smoke", is_flag=True, help="Do not start two ranks at the end.")
def build_command(
    names: tuple[str, ...],
    site_name: str | None,
    jobs: int | None,
    *,
    force: bool,
    no_smoke: bool,
    as_json: bool,
) -> None:
    """Build the site's stacks NAMES with Spack (all of Spack's, where none is named).

    Solves once and keeps spack.lock with the site, installs, proves which MPI the programs load,
    writes Lmod modules, starts two ranks.  Instant when all of it is there and nothing changed.
    An interrupted build goes on where it ended: run the same command again.  One stack that fails
    does not keep the others from being built; the command then fails at its end.
    """
    site, layout = site_and_layout(site_name)
    open_tool = opener(layout)
    records, failed = [], []
    chosen = chosen_stacks(site, names)
    for stack in chosen:
        begin = time.monotonic()
        try:
            with Display(stack.name) as display:
                built, stood = build(
                    stack,
                    layout,
                    open_tool,
                    display.listen,
                    jobs=jobs,
                    force=force,
                    smoke=not no_smoke,
                )
        except InterruptedBuildError:
            raise
        except FabricproofError as error:
            failed.append(error)
            if len(chosen) > 1:
                tell(f"{stack.name}: not built: {error}")
            continue
        seconds = time.monotonic() - begin
        records.append(_record(built, layout, stood=stood, seconds=seconds))
        if not as_json:
            _echo(built, layout, stood=stood, seconds=seconds)
    if as_json:
        click.echo(json.dumps(records, indent=2))
    if failed:
        raise failed[0]


def _echo(built: Built, layout: SpackLayout, *, stood: bool, seconds: float) -> None:
    if stood:
        click.echo(f"{built.stack}: stands as locked, nothing to do ({seconds:.1f} s)")
    else:
        click.echo(f"{built.stack}: built in {seconds:.0f} s: {explain(built.seconds)}")
        click.echo(f"  installed {', '.join(built.installed) or 'nothing'}")
        click.echo(f"  reused    {', '.join(built.reused) or 'nothing'}")
        click.echo(f"  smoke     {built.smoke}")
    click.echo(f"  MPI       {built.mpi.telling}{' (the site has it)' * built.mpi.external}")
    click.echo(f"  library   {built.library}")
    click.echo(f"  built for {built.target} with {built.compiler}, lock {built.lock_digest[:12]}")
    click.echo(f"  lock      {kept_lock(layout, built.stack)} (the site's: commit it)")
    click.echo(f"  use       module use {built.module_path}; module load {built.module}")


@click.command("lock", cls=options.OfGroup)
@click.argument("names", nargs=-1)
@options.of_group("site_name", "as_json")
@_force
def lock_command(
    names: tuple[str, ...],
    site_name: str | None,
    *,
    force: bool,
    as_json: bool,
) -> None:
    """Solve the stacks NAMES and keep their spack.lock with the site; nothing is installed.

    A lock that still fits recipe and site configuration is kept as it is.  It lies in
    site-configs/SITE/spack/locks: commit it, it says exactly what will run.
    """
    site, layout = site_and_layout(site_name)
    open_tool = opener(layout)
    records = []
    for stack in chosen_stacks(site, names):
        with Display(stack.name) as display, building(layout, stack.name, display.listen):
            environment, log = compose(stack, layout), layout.new_log(stack.name)
            display.listen("log", str(log))
            kept = lock(
                environment,
                layout,
                open_tool(),
                force=force,
                on_line=lambda line: display.listen("lock", line),
                log=log,
            )
        names_of = sorted(f"{each['name']}@{each['version']}" for each in kept.specs.values())
        records.append(
            {
                "stack": stack.name,
                "lock": str(kept.path),
                "digest": kept.digest,
                "kept": kept.kept,
                "seconds": round(kept.seconds, 2),
                "packages": names_of,
            }
        )
        if not as_json:
            how = "still holds" if kept.kept else f"solved in {kept.seconds:.0f} s"
            click.echo(
                f"{stack.name}: {how}, {kept.digest[:12]}: {kept.path} (the site's: commit it)"
            )
            click.echo(f"  {', '.join(names_of)}")
    if as_json:
        click.echo(json.dumps(records, indent=2))


def spack_records(site_name: str | None) -> list[dict[str, str | None]]:
    """Return one record for each stack that Spack builds for the site; none without a site.

    Raises:
        FabricproofError: the site that was named cannot be loaded.
    """
    try:
        site, layout = site_and_layout(site_name)
    except InputMissingError:
        if site_name:
            raise
        return []
    return [_state_of(site, layout, stack) for stack in site.stacks if stack.spack]


def _state_of(site: Site, layout: SpackLayout, stack: StackSpec) -> dict[str, str | None]:
    try:
        reason = why_not_whole(layout, compose(stack, layout))
        built = read_built(layout.built(stack.name))
    except FabricproofError as error:
        reason, built = str(error), None
    label = f"{stack.family} {stack.version} by Spack for {site.name}"
    state = "installed" if reason is None else "stale" if built else "absent"
    return {
        "name": stack.name,
        "label": f"{label}: {reason}" if reason else label,
        "family": stack.family,
        "version": stack.version,
        "module": built.module if built else module_name(stack.name),
        "state": state,
        "prefix": built.mpi.prefix if built else None,
        "answer": f"{built.mpi.telling}, OSU and IMB" if built and reason is None else None,
        "lock_digest": built.lock_digest if built else None,
    }


def remove_built(name: str, site_name: str | None) -> bool:
    """Remove a stack that Spack built; False where it was not there.

    Raises:
        ConfigError: the site has no such stack, or Spack does not build it.
    """
    site, layout = site_and_layout(site_name)
    stack = chosen_stacks(site, (name,))[0]
    open_tool = opener(layout)
    with Display(name) as display:
        return remove(stack, layout, open_tool, display.listen)
