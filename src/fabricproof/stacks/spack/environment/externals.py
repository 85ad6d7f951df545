"""The site's Spack files: read with file and line, and no external in them that is not there."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import yaml

from fabricproof.core.errors import ConfigError
from fabricproof.core.records import text_of


def load_yaml(path: Path) -> dict[str, Any]:
    """Return the mapping that ``path`` holds; an empty file is an empty one.

    Raises:
        ConfigError: cannot be read, not YAML, or no mapping.
    """
    try:
        text = text_of(path)
    except UnicodeDecodeError as error:
        raise ConfigError(f"not valid YAML: {error.reason}", source=str(path)) from None
    except OSError as error:
        raise ConfigError(f"cannot read: {error.strerror}", source=str(path)) from None
    return parse_yaml(text, path)


def parse_yaml(text: str, path: Path) -> dict[str, Any]:
    """Return the mapping that ``text`` is; an empty one where it is empty.

    Raises:
        ConfigError: not YAML, or no mapping.
    """
    source = str(path)
    try:
        data = yaml.safe_load(text)
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else None
        raise ConfigError(f"not valid YAML: {error.problem}", source=source, line=line) from None
    except yaml.YAMLError as error:
        raise ConfigError(f"not valid YAML: {type(error).__name__}", source=source) from None
    if data is None:
        return {}
    if not isinstance(data, dict):
        raise ConfigError(
            "not a Spack file", source=source, expected="a mapping", got=type(data).__name__
        )
    return data


_Kind = TypeVar("_Kind", dict[str, Any], list[Any])


def check_externals(
    text: str, path: Path, unused: Collection[str] = (), mpi: str | None = None
) -> None:
    """Refuse an external whose prefix is not there; Spack would find out in the middle of a build.

    Externals of ``unused`` packages may be away; programs must be able to be built with ``mpi``, by
    Spack's name.

    Raises:
        ConfigError: with file and line.
    """
    lines = text.splitlines()
    _check_mpi(text, path, mpi)
    for name, external in _externals(parse_yaml(text, path), path):
        if name.rstrip(":") in unused:
            continue
        spec, prefix = str(external.get("spec", name)), external.get("prefix")
        if prefix is None and not external.get("modules"):
            # Spack would silently build it from source.
            raise ConfigError(
                f"external {spec!r} has no prefix",
                source=str(path),
                line=_line(lines, "spec", spec),
                expected="prefix: FOLDER",
            )
        if prefix is None or Path(str(prefix)).is_dir():
            continue
        raise ConfigError(
            f"external {spec!r} is not where the site says",
            source=str(path),
            line=_line(lines, "prefix", str(prefix)),
            expected=f"a folder {prefix}",
            got="nothing there",
            next_step="correct the prefix, or remove the entry to have Spack build it",
        )


def _check_mpi(text: str, path: Path, mpi: str | None) -> None:
    """Refuse an MPI of the site that nothing can be built with, before a minute of solving.

    Of several one is enough: which of them is meant, the solver says.
    """
    ours = [
        (str(each.get("spec", name)), str(each["prefix"]))
        for name, each in _externals(parse_yaml(text, path), path)
        if name.rstrip(":") == mpi and each.get("prefix") and Path(str(each["prefix"])).is_dir()
    ]
    lacks = [what_is_missing(Path(prefix)) for _, prefix in ours]
    if not ours or not all(lacks):
        return
    spec, prefix = ours[0]
    raise ConfigError(
        f"nothing can be built with external {spec!r}: it has no {lacks[0]}",
        source=str(path),
        line=_line(text.splitlines(), "prefix", prefix),
        expected="headers below include, and bin/mpicc of this MPI",
        got=f"none below {prefix}",
        next_step="install its development package, or correct the prefix (mpicc -show says it)",
    )


def what_is_missing(prefix: Path) -> str | None:
    """Return what Spack would miss in the prefix of an MPI, None where all of it is there.

    It asks for any header below ``include`` and calls ``bin/mpicc`` (``headers`` and
    ``setup_dependent_package`` of its MPI packages); of oneAPI both lie in ``mpi/VERSION``.
    """
    places = [prefix, *prefix.glob("mpi/*")]
    if not any(next((each / "include").rglob("*.h"), None) for each in places):
        return "headers"
    if not any((each / "bin" / "mpicc").exists() for each in places):
        return "mpicc"
    return None


def _externals(file: Mapping[str, Any], path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield package and entry of each external; a trailing colon is Spack's "replace"."""
    packages = _at(file, "packages", {}, path)
    for name in packages:
        settings = _at(packages, name, {}, path)
        for external in _at(settings, "externals", [], path):
            if not isinstance(external, dict):
                raise ConfigError(
                    f"an external of {name} is no mapping",
                    source=str(path),
                    expected="spec: and prefix:",
                    got=repr(external),
                )
            yield str(name), external


def _at(mapping: Mapping[str, Any], key: str, default: _Kind, path: Path) -> _Kind:
    """Return ``mapping[key]``, ``default`` where it is empty, which says its kind too."""
    value = mapping.get(key) or mapping.get(f"{key}:") or default
    if not isinstance(value, type(default)):
        raise ConfigError(
            f"{key!r} is not what Spack takes",
            source=str(path),
            expected="a list" if isinstance(default, list) else "a mapping",
            got=repr(value)[:60],
        )
    return value


def _line(lines: Sequence[str], key: str, value: str) -> int | None:
    """Return the line that gives ``key`` the ``value``, else the first that has the value."""
    exact = re.compile(rf"""[\s{{-]{key}:\s*["']?{re.escape(value)}["']?\s*(?:[#,}}]|$)""")
    tests = (exact.search, lambda line: value in line)
    hits = ([number for number, line in enumerate(lines, 1) if test(line)] for test in tests)
    return next((found[0] for found in hits if found), None)
