"""The stacks that can be provisioned, read from ``data/stacks.toml``, and where they lie."""

from __future__ import annotations

import functools
import os
import tomllib
from dataclasses import dataclass
from pathlib import Path

from fabricproof.core.errors import ConfigError
from fabricproof.core.project import project_root

DATA = Path(__file__).parent / "data" / "stacks.toml"

#: environment variable that overrides where stacks are installed.
ROOT_VARIABLE = "FABRICPROOF_STACKS"


@dataclass(frozen=True, kw_only=True)
class Stack:
    """One provisionable MPI stack.

    Attributes:
        name: folder and module name, for example ``openmpi5``.
        family: key of :mod:`fabricproof.stacks.family`.
        version: module version.
        wheels: pinned requirements; empty for a distribution's MPI.
        library: the MPI library, relative to the stack's folder, or a bare soname for
            :attr:`is_system` stacks.
        answers: text in the MPI library's own version string.
        mpi4py_abi: value of ``MPI4PY_MPIABI``: ``openmpi`` or ``mpich``.
        is_system: the MPI itself comes from the distribution's packages.
        system_packages: those packages, by Debian's names.
        oneapi: release whose folder layout is laid beside it, empty for none.
    """

    name: str
    label: str
    family: str
    version: str
    wheels: tuple[str, ...]
    library: str
    answers: str
    mpi4py_abi: str
    is_system: bool
    system_packages: tuple[str, ...]
    oneapi: str = ""

    @property
    def module(self) -> str:
        """The Lmod module that loads it, ``name/version``."""
        return f"{self.name}/{self.version}"


@dataclass(frozen=True, kw_only=True)
class Mpi4py:
    """The mpi4py that every stack gets.

    Attributes:
        ports: archive beside ``stacks.toml`` with its ports of OSU programs.
    """

    wheel: str
    ports: str


@dataclass(frozen=True, kw_only=True)
class Catalog:
    """Everything in ``stacks.toml``."""

    mpi4py: Mpi4py
    stacks: dict[str, Stack]

    def select(self, names: tuple[str, ...]) -> list[Stack]:
        """Return the stacks called ``names``, in that order; all of them where none is named.

        Raises:
            ConfigError: a name is unknown.
        """
        return [self.find(name) for name in names or self.stacks]

    def find(self, name: str) -> Stack:
        """Return the stack called ``name``.

        Raises:
            ConfigError: there is none; the message lists those there are.
        """
        if name not in self.stacks:
            raise ConfigError("unknown stack", expected=", ".join(self.stacks), got=repr(name))
        return self.stacks[name]


def _stack(name: str, entry: dict[str, object], source: Path) -> Stack:
    library = entry.get("library") or entry.get("system_library")
    try:
        return Stack(
            name=name,
            label=str(entry["label"]),
            family=str(entry["family"]),
            version=str(entry["version"]),
            wheels=tuple(entry["wheels"]),  # type: ignore[arg-type]
            library=str(library),
            answers=str(entry["answers"]),
            mpi4py_abi=str(entry["mpi4py_abi"]),
            is_system="system_library" in entry,
            system_packages=tuple(entry.get("system_packages", ())),  # type: ignore[arg-type]
            oneapi=str(entry.get("oneapi", "")),
        )
    except KeyError as error:
        raise ConfigError(
            f"stack {name!r} lacks a key", source=str(source), expected=str(error.args[0])
        ) from None


@functools.cache
def load_catalog(path: Path = DATA) -> Catalog:
    """Read the catalogue of stacks.

    Raises:
        ConfigError: not TOML, or a key is missing.
    """
    try:
        data = tomllib.loads(path.read_text(encoding="utf-8"))
        mpi4py = Mpi4py(**data["mpi4py"])
        entries = data["stacks"]
    except (tomllib.TOMLDecodeError, KeyError, TypeError) as error:
        raise ConfigError(f"not a catalogue of stacks: {error}", source=str(path)) from None
    stacks = {name: _stack(name, entry, path) for name, entry in entries.items()}
    return Catalog(mpi4py=mpi4py, stacks=stacks)


def stacks_root() -> Path:
    """Return where stacks are installed.

    ``$FABRICPROOF_STACKS``, else ``.stacks`` below the project.  The nodes of a cluster must see
    it under the same path.
    """
    override = os.environ.get(ROOT_VARIABLE)
    return Path(override).absolute() if override else project_root() / ".stacks"
