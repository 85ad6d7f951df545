"""Read a site folder into one frozen object, or say in one line what is wrong; which site it is."""

from __future__ import annotations

import os
import re
import socket
import tomllib
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from fabricproof.core.errors import ConfigError, FabricproofError, InputMissingError
from fabricproof.core.project import project_root, remember_site
from fabricproof.core.records import may_exist, text_of
from fabricproof.site.complaint import Lines, first_complaint, line_of, positions
from fabricproof.site.cross_checks import (
    check_baseline,
    check_containers,
    check_gpus,
    check_layouts,
    check_names,
    check_physics,
    check_rails,
    check_recipes,
    check_transports,
    check_unique,
    check_unlike,
)
from fabricproof.site.model import Site, protocol_of, to_reference
from fabricproof.site.schema import FabricFile, ReferenceFile, ReferenceSpec, SiteFile

_File = TypeVar("_File", bound=BaseModel)

#: overrides the folder that holds one folder per site
SITES_VARIABLE = "FABRICPROOF_SITES"


def sites_root() -> Path:
    """Return the folder that holds one folder per site."""
    chosen = os.environ.get(SITES_VARIABLE)
    if chosen:
        return Path(chosen)
    return project_root() / "site-configs"


def site_folders() -> list[Path]:
    """Return the site folders there are, sorted by name."""
    root = sites_root()
    if not root.is_dir():
        return []
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
        known = ", ".join(path.name for path in site_folders()) or "none"
        raise InputMissingError(
            "no such site",
            expected=f"a folder with a site.toml, or one of: {known}",
            got=repr(name_or_folder),
        )
    main, main_lines = load_toml(folder / "site.toml", SiteFile)
    fabric, fabric_lines = load_toml(folder / "fabric.toml", FabricFile)
    check_unique(folder / "site.toml", main_lines, {"partitions": main.partitions})
    check_unique(folder / "site.toml", main_lines, {"stacks": main.stacks})
    check_unique(folder / "fabric.toml", fabric_lines, {"fabrics": fabric.fabrics})
    references: list[ReferenceSpec] = []
    if may_exist(folder / "references.toml"):
        references = _load_references(folder / "references.toml", fabric, main)
    site = Site(
        folder=folder,
        spec=main.site,
        partitions=tuple(main.partitions),
        stacks=tuple(main.stacks),
        fabrics=tuple(fabric.fabrics),
        references=tuple(references),
        reframe=dict(main.reframe),
        night=main.night,
    )
    remember_site(site.name, folder, sites_root())
    check_names(folder / "site.toml", main, main_lines, fabric.fabrics)
    check_gpus(folder / "site.toml", main.partitions, main_lines)
    check_recipes(folder / "site.toml", main.stacks, main_lines)
    check_containers(folder / "site.toml", main.stacks, main.partitions, main_lines)
    check_baseline(folder / "site.toml", main.site.baseline, main_lines)
    check_physics(folder / "fabric.toml", fabric, fabric_lines)
    protocols = {each.name: protocol_of(each) for each in fabric.fabrics}
    check_rails(folder / "fabric.toml", fabric.fabrics, protocols, fabric_lines)
    check_transports(folder / "site.toml", main.stacks, main.partitions, protocols, main_lines)
    return site


def load_toml(
    path: Path, model: type[_File], *, expected: str = "a site file"
) -> tuple[_File, Lines]:
    """Return what a TOML file says, and the line of each of its keys.

    Args:
        path: the file.
        model: what it should be.
        expected: the same in words.

    Raises:
        InputMissingError: it cannot be read.
        ConfigError: not UTF-8, not TOML, an unknown key, a missing one or a wrong value.
    """
    try:
        text = text_of(path, encoding="utf-8-sig")
    except OSError as error:
        raise InputMissingError(
            f"cannot read: {error.strerror}", source=str(path), expected=expected
        ) from None
    except UnicodeDecodeError as error:
        raise ConfigError(
            "not UTF-8 text",
            source=str(path),
            line=error.object[: error.start].count(b"\n") + 1,
            expected="TOML in UTF-8",
            got=error.reason,
        ) from None
    data = _toml(path, text)
    lines = positions(text)
    try:
        return model.model_validate(data), lines
    except ValidationError as error:
        raise first_complaint(path, error, lines, model) from None


def _toml(path: Path, text: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        # tomllib says the place in its sentence only: "... (at line 3, column 5)".
        place = re.search(r" \(at (?:line (\d+), column \d+|end of document)\)", str(error))
        line = int(place[1]) if place and place[1] else None
        problem = str(error).replace(place[0], "") if line and place else str(error)
        raise ConfigError(f"not valid TOML: {problem}", source=str(path), line=line) from None
    except (ValueError, RecursionError):
        # Python's own limits, which TOML does not know.
        raise ConfigError(
            "not valid TOML",
            source=str(path),
            expected="numbers of less than a thousand digits, lists of a few levels",
            got="a number or a nesting that is beyond that",
        ) from None


def _load_references(path: Path, fabric: FabricFile, main: SiteFile) -> list[ReferenceSpec]:
    loaded, lines = load_toml(path, ReferenceFile)
    known = {
        "fabric": {each.name for each in fabric.fabrics},
        "stack": {each.name for each in main.stacks},
    }
    for index, spec in enumerate(loaded.references):
        for key, names in known.items():
            value = getattr(spec, key)
            if value is not None and value not in names:
                raise ConfigError(
                    f"unknown {key}",
                    source=str(path),
                    line=line_of(("references", index, key), lines),
                    expected=f"one of {', '.join(sorted(names))}",
                    got=repr(value),
                )
        try:
            to_reference(spec)
        except FabricproofError as error:
            raise ConfigError(
                error.problem,
                source=str(path),
                line=line_of(("references", index, _guilty_fact(error)), lines),
                expected=error.expected,
                got=error.got,
            ) from None
    check_unlike(path, loaded.references, lines)
    check_layouts(path, loaded.references, fabric.fabrics, main.partitions, lines)
    return list(loaded.references)


def _guilty_fact(error: FabricproofError) -> str:
    return "tolerance" if "tolerance" in error.problem else "value"


#: names the site; without it the host name decides
SITE_VARIABLE = "FABRICPROOF_SITE"


def site_of(name: str | None) -> Site:
    """Return the site of that name, the one of this host where None.

    Raises:
        InputMissingError: there is none.
        ConfigError: it is wrong.
    """
    return load_site(name) if name else choose_site()


def choose_site() -> Site:
    """Return the site that the environment names, else the one that knows this host's name.

    Raises:
        InputMissingError: neither does; the message says how to choose.
    """
    named = os.environ.get(SITE_VARIABLE)
    if named:
        return load_site(named)
    host = socket.gethostname()
    for folder in site_folders():
        site = load_site(str(folder))
        if host in site.spec.hostnames or host.split(".")[0] in site.spec.hostnames:
            return site
    known = ", ".join(folder.name for folder in site_folders())
    raise InputMissingError(
        f"no site knows this host ({host})",
        expected=f"{SITE_VARIABLE} set to one of: {known}",
        next_step=f"export {SITE_VARIABLE}=NAME, or list the host under [site] hostnames",
    )
