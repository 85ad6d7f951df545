"""``fabricproof site init``: a first site folder from what the machine shows."""

from __future__ import annotations

import dataclasses
import re
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

import click

from fabricproof.cli import options
from fabricproof.cli.output import emit
from fabricproof.core.errors import ConfigError, FabricproofError, OutputError
from fabricproof.core.whole_file import refusal_of
from fabricproof.nodes.discover import (
    Cluster,
    Guess,
    find_guesses,
    used_partitions,
    write_site,
)
from fabricproof.nodes.discover import (
    cluster as probe,
)
from fabricproof.site import (
    Site,
    did_you_mean,
    gallery_folders,
    load_site,
    site_folders,
    sites_root,
)
from fabricproof.stacks.environment import stacks_root
from fabricproof.stacks.wheels import InstallState, WheelStack, observe, wheel_stacks

#: as the schema's ReframeName
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")


def _name(_context: click.Context, _parameter: click.Parameter, value: str) -> str:
    if not _NAME.fullmatch(value):
        raise click.BadParameter(
            f"{value!r}: letters, digits, '-' and '_', beginning with a letter or '_'"
        )
    return value


@click.command(name="init", cls=options.OfGroup)
@click.argument("name", callback=_name)
@click.option(
    "--partition",
    "partitions",
    multiple=True,
    metavar="NAME",
    help="Only this partition of Slurm.  Repeatable.  [default: all that take jobs]",
)
@click.option(
    "--like",
    metavar="SYSTEM",
    help="Begin like a published system instead of looking at this machine; an unknown name lists "
    "those there are.",
)
@click.option("--no-jobs", is_flag=True, help="Start no job: then no compute node is seen.")
@options.keep
@options.kept
@click.option("--stdout", "dry_run", is_flag=True, help="Print the files; write nothing.")
@options.of_group("as_json")
def init(
    name: str,
    *,
    partitions: tuple[str, ...],
    like: str | None,
    no_jobs: bool,
    keep: str | None,
    folder: str | None,
    dry_run: bool,
    as_json: bool,
) -> None:
    """Write a first site folder NAME from what this machine and its cluster show.

    Run it on a head or login node.  It reads sinfo and scontrol, the interfaces, HCAs and PCIe
    slots, modules and the MPI on PATH, there and by one short job on one node of each partition.
    Nothing is changed and no rights are needed; root sees a little more (lspci).

    What the machine does not say is left open or marked as a guess, with the command that settles
    it.  An existing folder is never touched.
    """
    place = sites_root() / name
    if not dry_run:
        _refuse_existing(place)
    cluster = None
    if like is not None:
        texts = _like(name, like)
    else:
        kept = Path(folder) if folder else None
        cluster = _look(partitions, no_jobs=no_jobs, keep=Path(keep) if keep else None, kept=kept)
        texts = write_site(name, cluster, *(_surroundings() if folder is None else ()))
    site = _check(name, texts)
    guesses = [each for file, text in texts.items() for each in find_guesses(file, text)]
    if not dry_run:
        _write(place, texts)
    record = {
        "name": site.name,
        "folder": str(place),
        "written": not dry_run,
        "files": dict(texts),
        "hosts": _hosts(cluster),
        "partitions": [each.name for each in site.partitions],
        "fabrics": {
            each.name: {"link": each.link, "rails": [rail.interface for rail in each.rails]}
            for each in site.fabrics
        },
        "stacks": [each.name for each in site.stacks],
        "guesses": [dataclasses.asdict(each) for each in guesses],
        "troubles": _troubles(cluster),
    }
    shown = (f"# --- {name}/{file}\n{text}" for file, text in texts.items())
    lines = shown if dry_run else _told(site, place, cluster, guesses)
    emit(record, lines, as_json=as_json)
    for trouble in _troubles(cluster) if not (as_json or dry_run) else ():
        click.echo(f"not seen: {trouble}", err=True)


def _like(name: str, like: str) -> dict[str, str]:
    """Return the files of a published system under the new name, chosen by no host yet."""
    known = {folder.name: folder for folder in gallery_folders()}
    if like not in known:
        raise ConfigError(
            "no such published system", expected=did_you_mean(like, known), got=repr(like)
        )
    texts = {path.name: path.read_text(encoding="utf-8") for path in known[like].glob("*.toml")}
    site = re.sub(r'^name = ".*"', f'name = "{name}"', texts["site.toml"], count=1, flags=re.M)
    hosts = "hostnames = []  # guess: patterns of your login nodes' names; hostname"
    return {**texts, "site.toml": re.sub(r"^hostnames = .*", hosts, site, count=1, flags=re.M)}


def _refuse_existing(folder: Path) -> None:
    if folder.exists() or folder.is_symlink():
        raise OutputError(
            "there is such a site already, and nothing of it was touched",
            source=str(folder),
            expected="a new name",
            next_step="choose another name, or see what it would say now: --stdout",
        )


def _look(
    partitions: tuple[str, ...], *, no_jobs: bool, keep: Path | None, kept: Path | None
) -> Cluster:
    def say(line: str) -> None:
        click.echo(f"{line} ...", err=True)

    if kept is not None:
        recording = probe.load(kept)
    else:
        recording = probe.record(say, only=partitions, ask_nodes=not no_jobs)
    if keep is not None:
        with refusal_of("write the recording", keep):
            probe.save(recording, keep)
    cluster = probe.read_cluster(recording, str(kept or "this machine"))
    return _only(cluster, partitions) if partitions else cluster


def _only(cluster: Cluster, partitions: tuple[str, ...]) -> Cluster:
    known = [each.name for each in cluster.slurm.partitions] if cluster.slurm else []
    for name in partitions:
        if name not in known:
            raise ConfigError(
                "Slurm has no such partition",
                expected=f"one of {', '.join(known)}" if known else "Slurm to answer",
                got=repr(name),
            )
    assert cluster.slurm is not None
    chosen = tuple(each for each in cluster.slurm.partitions if each.name in partitions)
    return dataclasses.replace(cluster, slurm=dataclasses.replace(cluster.slurm, partitions=chosen))


def _surroundings() -> tuple[list[WheelStack], dict[str, str]]:
    """Return the stacks that are installed here, and the sites that claim hosts."""
    entries = [observe(stack, stacks_root()) for stack in wheel_stacks().values()]
    return [each.stack for each in entries if each.state is InstallState.INSTALLED], _claims()


def _claims() -> dict[str, str]:
    """Return host name -> the site that claims it; a damaged site claims nothing."""
    claims: dict[str, str] = {}
    for folder in site_folders():
        try:
            site = load_site(str(folder))
        except FabricproofError:
            continue
        for host in site.spec.hostnames:
            claims.setdefault(host, site.name)
    return claims


def _check(name: str, texts: Mapping[str, str]) -> Site:
    """Return the site that the texts make: what is written is always valid."""
    with tempfile.TemporaryDirectory(prefix="fabricproof-") as folder:
        place = Path(folder) / name
        _put(place, texts)
        return load_site(str(place))


def _put(folder: Path, texts: Mapping[str, str]) -> None:
    for file, text in texts.items():
        path = folder / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


def _write(folder: Path, texts: Mapping[str, str]) -> None:
    """Write the folder whole or not at all."""
    partial = folder.parent / f".{folder.name}.partial"
    try:
        shutil.rmtree(partial, ignore_errors=True)
        _put(partial, texts)
        partial.rename(folder)
    except OSError as error:
        shutil.rmtree(partial, ignore_errors=True)
        raise OutputError(
            f"cannot write the site: {error.strerror}",
            source=str(folder),
            next_step="print it instead: --stdout; or choose another place: FABRICPROOF_SITES",
        ) from None


def _hosts(cluster: Cluster | None) -> dict[str, str]:
    if cluster is None:
        return {}
    return {"head": cluster.head.name, **{name: node.name for name, node in cluster.nodes.items()}}


def _troubles(cluster: Cluster | None) -> list[str]:
    return [*cluster.troubles, *used_partitions(cluster)[1]] if cluster else []


def _told(site: Site, folder: Path, cluster: Cluster | None, guesses: list[Guess]) -> Iterator[str]:
    if hosts := _hosts(cluster):
        shown = (host if p == "head" else f"{host} ({p})" for p, host in hosts.items())
        yield f"looked at: {', '.join(shown)}"
    for fabric in site.fabrics:
        rails = ", ".join(rail.interface for rail in fabric.rails)
        yield f"fabric {fabric.name}: {fabric.link or 'rate unknown'}: {rails}"
    for stack in site.stacks:
        how = "to be built" if stack.spack else ", ".join(stack.modules) or "on PATH"
        yield f"stack {stack.name}: {stack.family} {stack.version} ({how})"
    for partition in site.partitions:
        yield f"partition {partition.name}: {', '.join(partition.fabrics)}"
    yield f"\n{folder}: written; {len(guesses)} guesses for you to settle:"
    for each in guesses:
        yield f"  {each.file}:{each.line}: {each.text}"
    yield f"next: fabricproof site check {site.name}"
