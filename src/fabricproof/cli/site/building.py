"""Stacks that Spack builds for a site: ``stack build``, ``lock``, ``list`` and ``remove``."""

from __future__ import annotations

import contextlib
import json
import signal
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any, NoReturn

import click
from rich.markup import escape

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
    fetch_spack,
    find_spack,
    layout_for,
    lock,
    module_name,
    open_spack,
    read_built,
    remove,
    why_not_built,
    why_stale,
)

#: what each step of a build is, for people
_STEPS = {
    "lock": "solving",
    "install": "installing",
    "linkage": "checking which MPI is loaded",
}


def named(option: str) -> Path | None:
    """Return what ``--root`` or ``--spack`` of ``fabricproof stack`` names, if anything."""
    parent = click.get_current_context().parent
    path = parent.params.get(option) if parent is not None else None
    return path.absolute() if path else None


def tell(text: str) -> None:
    """Say how far it is, beside the output."""
    click.echo(text, err=True)


def _site_and_layout(site_name: str | None) -> tuple[Site, SpackLayout]:
    site = site_of(site_name)
    return site, layout_for(site.name, site.folder, named("root"))


def _chosen(site: Site, names: tuple[str, ...]) -> list[StackSpec]:
    """Return the stacks called ``names``, or all that Spack builds for ``site``."""
    stacks = [site.stack(name) for name in names] or [each for each in site.stacks if each.spack]
    others = ", ".join(stack.name for stack in stacks if stack.spack is None)
    if others or not stacks:
        raise ConfigError(
            f"Spack does not build {others or 'any stack'} of site {site.name}",
            source=str(site.folder / "site.toml"),
            expected='spack = "RECIPE" in its [[stacks]] entry',
        )
    return stacks


def _opener(layout: SpackLayout) -> Callable[[], Spack]:
    """Return a function that finds Spack, or fetches it, when it is first needed."""
    spack, root = named("spack"), layout.root
    return lambda: open_spack(find_spack(root, spack) or fetch_spack(root, tell), root)


def _interrupt(number: int, frame: object) -> NoReturn:  # noqa: ARG001 - the signal's own shape
    raise KeyboardInterrupt


@contextlib.contextmanager
def display(stack: str) -> Iterator[Callable[[str, str], None]]:
    """Show the steps of one stack beside the output; on a terminal it is one moving line.

    A cancelled job and a closed session end Spack too, as Ctrl-C does; nohup is heeded.
    """
    begin, step_now, log = time.monotonic(), "", ""
    before = {
        sign: signal.signal(sign, _interrupt)
        for sign in (signal.SIGTERM, signal.SIGHUP)
        if signal.getsignal(sign) is not signal.SIG_IGN
    }
    console = HonestConsole(stderr=True)
    status = console.status(stack) if console.is_terminal else None

    def listen(step: str, line: str) -> None:
        nonlocal step_now, log
        label, is_new, step_now = _STEPS.get(step, step), step != step_now, step
        if step == "log":
            log = line
        elif step == "wait":
            tell(f"{stack}: {line}")
        elif status is not None:
            shown = without_control_characters(line)[:100]
            status.update(escape(f"{stack}: {label} ({time.monotonic() - begin:.0f} s) {shown}"))
        else:
            if is_new:
                tell(f"{stack}: {label}")
            if step == "install" and line.startswith("==> "):
                tell(f"{stack}: {line.removeprefix('==> ')}")

    try:
        with status or contextlib.nullcontext():
            yield listen
    except FabricproofError:
        if log and Path(log).is_file():
            tell(f"{stack}: all that Spack printed is in {log}")
        raise
    finally:
        for sign, handler in before.items():
            signal.signal(sign, handler)


def _mpi_of(built: Built) -> str:
    return f"{built.mpi.name} {built.mpi.version}"


def _each(stacks: list[StackSpec], as_json: bool, act: Callable[[StackSpec], Any]) -> None:
    """Get a record and lines of each stack, though one fails; end as the first that failed."""
    records: list[dict[str, Any]] = []
    failed: list[FabricproofError] = []
    for stack in stacks:
        try:
            record, lines = act(stack)
        except InterruptedBuildError:
            raise
        except FabricproofError as error:
            if failed:
                tell(f"fabricproof: {stack.name}: {error}")
            elif len(stacks) > 1:
                tell(f"{stack.name}: failed, the other stacks go on")
            failed.append(error)
            continue
        records.append(record)
        if not as_json:
            click.echo("\n".join(lines))
    if as_json:
        click.echo(json.dumps(records, indent=2))
    if failed:
        raise failed[0]


_force = click.option("--force", is_flag=True, help="Solve again though the lock seems to fit.")


@click.command("build", cls=options.OfGroup)
@click.argument("names", nargs=-1)
@options.of_group("site_name", "as_json")
@click.option(
    "-j", "--jobs", type=click.IntRange(1, 1024), metavar="N", help="Compile with N processes."
)
@_force
def build_command(
    names: tuple[str, ...], site_name: str | None, jobs: int | None, *, force: bool, as_json: bool
) -> None:
    """Build the site's stacks NAMES with Spack (all of Spack's, where none is named).

    Solves once and keeps spack.lock with the site, installs, proves which MPI the programs load,
    writes one module.  Instant when all of it is there and nothing changed.  An interrupted build
    goes on where it ended: run the same command again.  One stack that fails does not keep the
    others from being built; the command then fails at its end.
    """
    site, layout = _site_and_layout(site_name)
    open_tool = _opener(layout)

    def act(stack: StackSpec) -> tuple[dict[str, Any], list[str]]:
        begin = time.monotonic()
        with display(stack.name) as listen:
            built, stood = build(stack, layout, open_tool, listen, jobs=jobs, force=force)
        seconds, path = time.monotonic() - begin, layout.kept_lock(stack.name)
        how = "stands as locked, nothing to do" if stood else "built"
        record = {"stood": stood, "wall_seconds": round(seconds, 2), "lock": str(path)}
        return {**asdict(built), **record}, [
            f"{stack.name}: {how} ({seconds:.0f} s)",
            f"  MPI       {_mpi_of(built)}{' (the site has it)' * built.mpi.external}",
            f"  library   {built.library}",
            f"  built for {built.target} with {built.compiler}, lock {built.lock_digest[:12]}",
            f"  lock      {path} (the site's: commit it)",
            f"  use       module use {built.module_path}; module load {built.module}",
        ]

    _each(_chosen(site, names), as_json, act)


@click.command("lock", cls=options.OfGroup)
@click.argument("names", nargs=-1)
@options.of_group("site_name", "as_json")
@_force
def lock_command(
    names: tuple[str, ...], site_name: str | None, *, force: bool, as_json: bool
) -> None:
    """Solve the stacks NAMES and keep their spack.lock with the site; nothing is installed.

    A lock that still fits recipe and site configuration is kept as it is.  It lies in
    site-configs/SITE/spack/locks: commit it, it says exactly what will run.
    """
    site, layout = _site_and_layout(site_name)
    open_tool = _opener(layout)

    def act(stack: StackSpec) -> tuple[dict[str, Any], list[str]]:
        with display(stack.name) as listen, building(layout, stack.name, listen) as log:
            environment = compose(stack, layout)
            kept = not force and why_stale(environment) is None
            solved = lock(
                environment, open_tool(), lambda line: listen("lock", line), log, force=force
            )
        packages = sorted(f"{each['name']}@{each['version']}" for each in solved.specs.values())
        record = {"stack": stack.name, "lock": str(solved.path), "digest": solved.digest}
        how = "still holds" if kept else "solved"
        return {**record, "kept": kept, "packages": packages}, [
            f"{stack.name}: {how}, {solved.digest[:12]}: {solved.path} (the site's: commit it)",
            f"  {', '.join(packages)}",
        ]

    _each(_chosen(site, names), as_json, act)


def spack_records(site_name: str | None) -> list[dict[str, str | None]]:
    """Return one record for each stack that Spack builds for the site; none without a site."""
    try:
        site, layout = _site_and_layout(site_name)
    except InputMissingError:
        if site_name:
            raise
        return []
    records = []
    for stack in (each for each in site.stacks if each.spack):
        built = None
        try:
            built = read_built(layout.built(stack.name))
            reason = why_not_built(compose(stack, layout))
        except FabricproofError as error:
            reason = str(error)
        label = f"{stack.family} {stack.version} by Spack for {site.name}"
        records.append(
            {
                "name": stack.name,
                "label": f"{label}: {reason}" if reason else label,
                "reason": reason,
                "module": built.module if built else module_name(stack.name),
                "state": "installed" if reason is None else "stale" if built else "absent",
                "answer": f"{built.mpi.name} {built.mpi.version}, OSU and IMB"
                if built and reason is None
                else None,
            }
        )
    return records


def remove_built(name: str, site_name: str | None) -> bool:
    """Remove a stack that Spack built; False if it was not there."""
    site, layout = _site_and_layout(site_name)
    with display(name) as listen:
        return remove(_chosen(site, (name,))[0], layout, _opener(layout), listen)
