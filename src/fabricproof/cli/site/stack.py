"""``fabricproof stack``: provision, show and remove the MPI stacks of this machine."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import click

from fabricproof.cli import options
from fabricproof.cli.output import emit
from fabricproof.cli.site.building import (
    build_command,
    lock_command,
    named,
    remove_built,
    spack_records,
    tell,
)
from fabricproof.cli.site.doctor import command as doctor_command
from fabricproof.core.plain import plain
from fabricproof.stacks.environment import stacks_root
from fabricproof.stacks.wheels import (
    MODULEFILES,
    Installed,
    find_wheels,
    install,
    observe,
    remove,
    wheel_stacks,
)


def _record(entry: Installed) -> dict[str, Any]:
    return plain(entry.stack, "module", "is_system", without={"mpi4py"}) | plain(
        entry, without={"stack"}
    )


_FOLDER = click.Path(file_okay=False, path_type=Path)


@click.group(name="stack", cls=options.HelpGroup)
@options.site
@click.option(
    "--root",
    type=_FOLDER,
    metavar="FOLDER",
    help="Where the stacks lie; every node must see it.  [default: $FABRICPROOF_STACKS, else "
    ".stacks below the project]",
)
@click.option(
    "--spack",
    type=click.Path(path_type=Path),
    metavar="FOLDER",
    help="Spack's folder.  [default: $SPACK_ROOT, else PATH, else a pinned release is fetched]",
)
@options.as_json
def command(**_: object) -> None:
    r"""The MPI stacks of this machine: built by Spack for a site, or provisioned from wheels.

    \b
    build    a site's stacks with Spack: the MPI, OSU's and IMB's C programs, Lmod modules
    install  from wheels, compiling nothing: the MPI and mpi4py's ports of OSU programs
    """


command.add_command(build_command)
command.add_command(lock_command)
command.add_command(doctor_command)


@command.command("install")
@click.argument("names", nargs=-1)
@options.of_group("as_json")
def install_command(names: tuple[str, ...], as_json: bool) -> None:
    """Install the stacks NAMES (all, where none is named).

    Instant when they are there with the present pins; an interrupted installation is done
    again, without downloading anything twice.
    """
    root = named("root") or stacks_root()
    records = []
    for stack in [find_wheels(name) for name in names or wheel_stacks()]:
        begin = time.monotonic()
        entry = install(stack, root, tell)
        seconds = time.monotonic() - begin
        records.append({**_record(entry), "wall_seconds": round(seconds, 2)})
        line = f"{stack.name}: {entry.answer} in {entry.prefix} ({seconds:.1f} s)"
        click.echo(line, err=as_json)
    emit(records, [f"modules: module use {root / MODULEFILES}"], as_json=as_json)


@command.command("list")
@options.of_group("site_name", "as_json")
def list_command(site_name: str | None, as_json: bool) -> None:
    """Show the stacks there can be, and which of them stand.

    Those from wheels, and those that Spack builds for the site (--site, $FABRICPROOF_SITE or the
    one that knows this host).
    """
    root = named("root") or stacks_root()
    records = [_record(observe(stack, root)) for stack in wheel_stacks().values()]
    records += spack_records(site_name)
    width = max(len(str(record["name"])) for record in records)
    lines = (
        f"{record['name']:<{width}} {record['state']:<10} {record['module']:<24} "
        f"{record['answer'] or record['label']}"
        for record in records
    )
    emit(records, lines, as_json=as_json)


@command.command("remove")
@click.argument("names", nargs=-1, required=True)
@options.of_group("site_name", "as_json")
def remove_command(names: tuple[str, ...], site_name: str | None, as_json: bool) -> None:
    """Remove the stacks NAMES; what was downloaded stays.

    Of a stack that Spack built its packages go too, unless another stack uses them.  Its lock
    stays with the site.
    """
    root = named("root") or stacks_root()
    records = []
    for name in names:
        if name in wheel_stacks():
            was_there = remove(find_wheels(name), root, tell)
        else:
            was_there = remove_built(name, site_name)
        records.append({"name": name, "removed": was_there})
        click.echo(f"{name}: {'removed' if was_there else 'was not installed'}", err=as_json)
    emit(records, as_json=as_json)
