"""Read a site folder into one frozen object, or say in one line what is wrong; which site it is."""

from __future__ import annotations

import os
import re
import socket
import sys
from collections.abc import Iterator
from pathlib import Path

from fabricproof.core.errors import ConfigError, FabricproofError, InputMissingError
from fabricproof.core.project import project_root, remember_site, shipped
from fabricproof.core.records import may_exist
from fabricproof.site.fits import Misfit, misfits
from fabricproof.site.model import Site
from fabricproof.site.schema import FabricFile, ReferenceFile, SiteFile
from fabricproof.site.toml_file import Lines, did_you_mean, line_of, load_toml, read_toml

#: overrides the folder that holds one folder per site
SITES_VARIABLE = "FABRICPROOF_SITES"

#: names the site; without it the host name decides
SITE_VARIABLE = "FABRICPROOF_SITE"


def sites_root() -> Path:
    """Return the folder that holds one folder per site."""
    chosen = os.environ.get(SITES_VARIABLE)
    return Path(chosen) if chosen else project_root() / "site-configs"


def site_folders() -> list[Path]:
    """Return the site folders there are, sorted by name; those of the gallery are none."""
    return sorted(path.parent for path in sites_root().glob("*/site.toml"))


def gallery_folders() -> list[Path]:
    """Return the published systems that a site may be begun like, sorted by name."""
    root = (shipped() or project_root()) / "site-configs" / "gallery"
    return sorted(path.parent for path in root.glob("*/site.toml"))


def load_site(name_or_folder: str) -> Site:
    """Load and validate a site by name or folder.

    Raises:
        InputMissingError: no such site; the message lists those there are.
        ConfigError: a file is wrong; the message has file, line, expected and found.
    """
    folder = Path(name_or_folder)
    if not (folder / "site.toml").is_file():
        folder = sites_root() / name_or_folder
    if not (folder / "site.toml").is_file():
        raise InputMissingError(
            "no such site",
            expected="a folder with a site.toml, or "
            + did_you_mean(name_or_folder, [path.name for path in site_folders()]),
            got=repr(name_or_folder),
        )
    main, lines = load_toml(folder / "site.toml", SiteFile)
    fabric, fabric_lines = load_toml(folder / "fabric.toml", FabricFile)
    references, reference_lines = ReferenceFile(), Lines()
    if may_exist(folder / "references.toml"):
        references, reference_lines = load_toml(folder / "references.toml", ReferenceFile)
    site = Site(
        folder=folder,
        spec=main.site,
        partitions=tuple(main.partitions),
        stacks=tuple(main.stacks),
        fabrics=tuple(fabric.fabrics),
        references=tuple(references.references),
        reframe=dict(main.reframe),
        night=main.night,
    )
    remember_site(site.name, folder, sites_root())
    for misfit in misfits(site):
        raise error_at(site, misfit, {**lines, **fabric_lines, **reference_lines})
    return site


def error_at(site: Site, misfit: Misfit, lines: Lines | None = None) -> ConfigError:
    """Return what is wrong with a site as an error with its file and line."""
    file = {"fabrics": "fabric.toml", "references": "references.toml"}
    path = site.folder / file.get(str(misfit.key[0]), "site.toml")
    lines = read_toml(path)[1] if lines is None else lines
    return ConfigError(
        misfit.problem,
        source=str(path),
        line=line_of(misfit.key, lines),
        expected=misfit.expected,
        got=misfit.got,
        next_step=misfit.next_step,
    )


def check_access(site: Site) -> None:
    """Refuse options for the scheduler whose variables are not set here: none would be expanded.

    Raises:
        ConfigError: the first such variable, with file and line.
    """
    for index, partition in enumerate(site.partitions):
        for option in partition.access:
            if unset := re.search(r"\$(\w+|\{\w+\})", option):
                problem = f"access of partition {partition.name!r} needs a variable that is not set"
                name = unset[1].strip("{}")
                mend = f"set {name}, or write the value into the file"
                key = ("partitions", index, "access")
                raise error_at(site, Misfit(key, problem, f"{name} to be set", repr(option), mend))


def site_of(name: str | None) -> Site:
    """Return the site of that name, the one of this host if None.

    Raises:
        InputMissingError: there is none.
        ConfigError: it is wrong.
    """
    return load_site(name) if name else choose_site()


def choose_site() -> Site:
    """Return the site that the environment names, else the one whose ``hostnames`` fit this host.

    A site whose file cannot be read is passed over and named.  A pattern that fits the whole name
    goes before one that fits its beginning, which is what ReFrame asks for.

    Raises:
        InputMissingError: neither does; the message says how to choose.
    """
    if named := os.environ.get(SITE_VARIABLE):
        return load_site(named)
    host = socket.gethostname()
    broken: list[str] = []
    patterns = [pair for folder in site_folders() for pair in _patterns(folder, broken)]
    for line in broken:
        sys.stderr.write(f"passed over: {line}\n")
    for fits in (re.fullmatch, re.match):
        for pattern, folder in patterns:
            if fits(pattern, host) or fits(pattern, host.split(".")[0]):
                return load_site(str(folder))
    known = ", ".join(folder.name for folder in site_folders())
    raise InputMissingError(
        f"no site knows this host ({host})",
        expected=f"{SITE_VARIABLE} set to one of: {known}",
        next_step=f"export {SITE_VARIABLE}=NAME, or list the host under [site] hostnames",
    )


def _patterns(folder: Path, broken: list[str]) -> Iterator[tuple[re.Pattern[str], Path]]:
    try:
        for pattern in read_toml(folder / "site.toml")[0]["site"].get("hostnames", []):
            yield re.compile(pattern), folder
    except (FabricproofError, KeyError, TypeError, AttributeError, re.error) as error:
        broken.append(f"{folder.name}: {str(error) or 'no [site] table'}")
