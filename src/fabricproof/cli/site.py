"""``fabricproof site``: check site files and show what they say."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any

import click

from fabricproof.errors import InputMissingError
from fabricproof.fabric import bound
from fabricproof.site import Site, load_site, site_folders


@click.group(name="site")
def command() -> None:
    """Check and show site files (site-configs/<site>/*.toml)."""


@command.command(name="check")
@click.argument("names", nargs=-1, metavar="[SITE...]")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON array.")
def check(names: tuple[str, ...], as_json: bool) -> None:
    """Validate sites, by name or folder; without a name, all of them.

    A wrong file ends with status 78 and one line: file, line, what was expected, what was found.
    """
    chosen = names or tuple(str(folder) for folder in site_folders())
    if not chosen:
        raise InputMissingError("there is no site to check", expected="a site-configs folder")
    records = [_record(load_site(name)) for name in chosen]
    if as_json:
        click.echo(json.dumps(records, indent=2))
        return
    for record in records:
        click.echo(
            f"{record['name']}: fine: {len(record['partitions'])} partitions, "
            f"{len(record['stacks'])} stacks, {len(record['references'])} references"
        )
        for fabric in record["fabrics"]:
            click.echo(f"  {fabric['name']}: {fabric['meaning']}")


@command.command(name="list")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON array of names.")
def list_(as_json: bool) -> None:
    """List the sites there are."""
    names = [folder.name for folder in site_folders()]
    click.echo(json.dumps(names) if as_json else "\n".join(names))


@command.command(name="show")
@click.argument("name", metavar="SITE")
def show(name: str) -> None:
    """Print a site as JSON, with the ceilings that follow from it."""
    click.echo(json.dumps(_record(load_site(name)), indent=2))


def _record(site: Site) -> dict[str, Any]:
    return {
        "name": site.name,
        "folder": str(site.folder),
        "description": site.spec.description,
        "partitions": [each.model_dump() for each in site.partitions],
        "stacks": [each.model_dump() for each in site.stacks],
        "fabrics": [_fabric_record(site, each.name) for each in site.fabrics],
        "references": [each.model_dump() for each in site.references],
    }


def _fabric_record(site: Site, name: str) -> dict[str, Any]:
    spec = site.fabric_spec(name)
    if spec.link is None:
        return {**spec.model_dump(), "ceilings": {}, "meaning": "no link: nothing to judge by"}
    rails = [rail.interface for rail in spec.rails]
    roads = [[rail] for rail in rails] + ([rails] if len(rails) > 1 else [])
    ceilings = {"+".join(road): asdict(bound(site.fabric(name, road))) for road in roads}
    meaning = ", ".join(
        f"{road} {ceiling['low_mb_s']:.0f} to {ceiling['high_mb_s']:.0f} MB/s ({ceiling['name']})"
        for road, ceiling in ceilings.items()
    )
    return {**spec.model_dump(), "ceilings": ceilings, "meaning": f"{spec.link}: {meaning}"}
