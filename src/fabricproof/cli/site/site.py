"""``fabricproof site``: check site files and show what they say."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from typing import Any

import click

from fabricproof.cli import options
from fabricproof.cli.output import emit
from fabricproof.cli.site.site_init import init
from fabricproof.core.errors import ConfigError, InputMissingError
from fabricproof.core.findings import Finding
from fabricproof.core.project import project_root, site_word
from fabricproof.core.units import counted
from fabricproof.job.run import (
    describe_checks,
    refused_troubles,
    scheduler_answers,
    scheduling_troubles,
    session_environment,
    workplace,
)
from fabricproof.physics import bound
from fabricproof.site import Site, load_site, site_folders
from fabricproof.site.roll import ROLL_FILE, make_roll, read_roll, write_roll
from fabricproof.stacks.wheels import check_provisioned


@click.group(name="site", cls=options.HelpGroup)
@options.as_json
def command(**_: object) -> None:
    """Check, show and begin site files (site-configs/<site>/*.toml)."""


command.add_command(init)


@command.command(name="check")
@click.argument("names", nargs=-1, metavar="[SITE...]")
@options.of_group("as_json")
def check(names: tuple[str, ...], as_json: bool) -> None:
    """Validate sites, by name or folder; without a name, all of them.

    A wrong file ends with status 78 and one line: file, line, what was expected, what was found.
    A site that is named is also held against its Slurm, where that answers: what will not work
    there is told, and where no number would count the status is 78.
    """
    chosen = names or tuple(str(folder) for folder in site_folders())
    if not chosen:
        raise InputMissingError("there is no site to check", expected="a site-configs folder")
    sites = [load_site(name) for name in chosen]
    for site in sites:
        check_provisioned(site)
        read_roll(site.folder)
    # Of all the sites that there are, this machine's Slurm is one's at most.
    troubles = [_troubles(site) if names else [] for site in sites]
    records = [
        {**_record(site), "troubles": [{**each.record(), "line": each.line} for each in found]}
        for site, found in zip(sites, troubles, strict=True)
    ]
    emit(records, (line for each in records for line in _lines_of(each)), as_json=as_json)


def _lines_of(record: Mapping[str, Any]) -> Iterator[str]:
    counts = [
        counted(len(record[f"{kind}s"]), kind) for kind in ("partition", "stack", "reference")
    ]
    yield f"{record['name']}: fine: {', '.join(counts)}"
    yield from (f"  {each['name']}: {each['meaning']}" for each in record["fabrics"])
    yield from (f"  warning: {each['line']}" for each in record["troubles"])


def _troubles(site: Site) -> list[Finding]:
    """Return what the site's Slurm will not do for it; none if it does not answer here."""
    environment = session_environment(site, workplace(project_root()), "check")
    if not scheduler_answers(site, environment):
        return []
    return refused_troubles(site, scheduling_troubles(site, environment))


@command.command(name="list")
@options.of_group("as_json")
def list_(as_json: bool) -> None:
    """List the sites there are."""
    names = [folder.name for folder in site_folders()]
    emit(names, names, as_json=as_json)


@command.command(name="show")
@click.argument("name", metavar="SITE")
def show(name: str) -> None:
    """Print a site as JSON, with the ceilings that follow from it."""
    emit(_record(load_site(name)), as_json=True)


@command.command(name="roll")
@click.argument("name", metavar="SITE")
@click.option("--write", is_flag=True, help="Replace roll.json; read the change before you commit.")
@options.of_group("as_json")
def roll(name: str, *, write: bool, as_json: bool) -> None:
    """Compare a site's required checks (roll.json) with what ReFrame loads now.

    A required check that does not run is MISSING.  Status 78 where the two differ.
    """
    site = load_site(name)
    now = make_roll(site, describe_checks(site, workplace(project_root())))
    if as_json:
        emit(now, as_json=True)
    if write:
        path = write_roll(site.folder, now)
        click.echo(f"{path}: {len(now)} due", err=as_json)
        return
    kept, found = (
        {json.dumps(each, sort_keys=True) for each in due} for due in (read_roll(site.folder), now)
    )
    lost, new = kept - found, found - kept
    for line in (*(f"- {each}" for each in sorted(lost)), *(f"+ {each}" for each in sorted(new))):
        click.echo(line, err=as_json)
    if lost or new:
        raise ConfigError(
            f"the required checks are not what ReFrame loads: {len(lost)} gone, {len(new)} new",
            source=str(site.folder / ROLL_FILE),
            next_step=f"mend the checks, or: fabricproof site roll {site_word(site.name)} --write",
        )
    click.echo(f"{site.name}: fine: {len(now)} due", err=as_json)


def _record(site: Site) -> dict[str, Any]:
    tables = ("partitions", "stacks", "references")
    dumped = {name: [each.model_dump() for each in getattr(site, name)] for name in tables}
    fabrics = [_fabric_record(site, each.name) for each in site.fabrics]
    about = {"folder": str(site.folder), "description": site.spec.description}
    return {"name": site.name, **about, **dumped, "fabrics": fabrics}


def _fabric_record(site: Site, name: str) -> dict[str, Any]:
    spec = site.fabric_spec(name)
    if spec.link is None:
        return {**spec.model_dump(), "ceilings": {}, "meaning": "no link: nothing to judge by"}
    rails = [rail.interface for rail in spec.rails]
    paths = [*([rail] for rail in rails), *([rails] if len(rails) > 1 else [])]
    ceilings = {"+".join(path): asdict(bound(site.fabric(name, path))) for path in paths}
    meaning = ", ".join(
        f"{path} {each['low_mb_s']:.0f} to {each['high_mb_s']:.0f} MB/s ({each['name']})"
        for path, each in ceilings.items()
    )
    return {**spec.model_dump(), "ceilings": ceilings, "meaning": f"{spec.link}: {meaning}"}
