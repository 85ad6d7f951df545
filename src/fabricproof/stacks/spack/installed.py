"""What Spack has installed of a lock, and the shape our manifest gives it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fabricproof.core.errors import UnavailableError
from fabricproof.stacks.spack.built import Package
from fabricproof.stacks.spack.environment import SUITES, Environment
from fabricproof.stacks.spack.lock import Lock
from fabricproof.stacks.spack.tool import Spack

_FORMAT = "{name}\x1f{version}\x1f{hash}\x1f{prefix}\x1f{variants}"


@dataclass(frozen=True, kw_only=True)
class Contents:
    """The packages of a stack that matter to us."""

    mpi: Package
    programs: Mapping[str, Package]
    compiler: str
    target: str


def read_contents(environment: Environment, lock: Lock, spack: Spack) -> Contents:
    """Return what of ``lock`` is installed.

    Raises:
        UnavailableError: a package that was asked for is not installed.
    """
    answer = spack.call(["-e", str(environment.folder), "find", "--format", _FORMAT])
    found = dict(_rows(answer.output, lock))
    wanted = {"mpi": environment.mpi, **SUITES, **{name: name for name in environment.tools}}
    missing = sorted(name for name in wanted.values() if name not in found)
    if answer.status or missing:
        raise UnavailableError(
            "Spack installed less than was asked for",
            expected=", ".join(sorted(wanted.values())),
            got=f"without {', '.join(missing)}" if missing else answer.output.strip()[-200:],
            next_step=f"fabricproof stack build {environment.stack.name} goes on where it ended",
        )
    target = lock.find(SUITES["osu"])
    assert target is not None
    return Contents(
        mpi=found[wanted.pop("mpi")],
        programs={key: found[name] for key, name in wanted.items()},
        compiler=_compiler(lock),
        target=_target(target[1]),
    )


def _rows(output: str, lock: Lock) -> list[tuple[str, Package]]:
    rows = []
    for line in output.splitlines():
        fields = line.strip().split("\x1f")
        if len(fields) != 5:
            continue
        name, version, digest, prefix, variants = fields
        spec = lock.specs.get(digest)
        if spec is None or not Path(prefix).is_dir():
            continue
        package = Package(
            name=name,
            version=version,
            spec=" ".join(f"{name}@{version}{variants}".split()),
            digest=digest,
            prefix=prefix,
            external=bool(spec.get("external")),
        )
        rows.append((name, package))
    return rows


def _compiler(lock: Lock) -> str:
    """Return the compiler of OSU's programs, which is the stack's for our purpose."""
    osu = lock.find(SUITES["osu"])
    assert osu is not None
    for dependency in osu[1].get("dependencies", []):
        if "c" in dependency.get("parameters", {}).get("virtuals", ()):
            spec = lock.specs[dependency["hash"]]
            return f"{spec['name']}@{spec['version']}"
    return "unknown"


def _target(spec: Mapping[str, Any]) -> str:
    target = spec["arch"]["target"]
    return str(target["name"] if isinstance(target, dict) else target)


def core_compilers(lock: Lock) -> list[str]:
    """Return the compilers of the lock, which are all "core" to Lmod: MPI is the only level."""
    used = {
        dependency["hash"]
        for spec in lock.specs.values()
        for dependency in spec.get("dependencies", [])
        if {"c", "cxx", "fortran"} & set(dependency.get("parameters", {}).get("virtuals", ()))
    }
    return sorted(f"{lock.specs[each]['name']}@{lock.specs[each]['version']}" for each in used)
