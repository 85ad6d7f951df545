"""How an MPI is told which algorithm a collective takes: facts from ``data/*.toml``.

A knob that the library would silently pass over is none: every way to force an algorithm here
either holds or ends the program, and an algorithm that cannot run on a layout is left out with
the reason before it is tried.
"""

from __future__ import annotations

import functools
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any

from fabricproof.core.errors import ConfigError
from fabricproof.core.plain import typed

DATA = Path(__file__).parent / "data"

#: the collectives that are swept
COLLECTIVES = ("bcast", "allreduce", "alltoall", "allgather", "reduce", "barrier")


class Need(StrEnum):
    """What an algorithm cannot do without; the words stand in the data and in reasons."""

    TWO_RANKS = "two ranks"
    POWER_OF_TWO = "a power of two of ranks"
    EVEN = "an even number of ranks"
    SHARED_MEMORY = "shared memory"
    ONE_BUFFER = "one buffer for both directions"
    SEPARATE_BUFFERS = "separate buffers: with MPI_IN_PLACE it moves nothing"
    GPU_LIBRARY = "a collective communication library for GPUs"


#: needs that a layout may meet; the others are met by none of our runs: every path switches shared
#: memory off, no benchmark uses one buffer for both directions, and none runs on GPUs.  What gives
#: wrong results to some programs is never named.
_MET: Mapping[Need, Callable[[int], bool]] = {
    Need.TWO_RANKS: lambda ranks: ranks == 2,
    Need.POWER_OF_TWO: lambda ranks: ranks & (ranks - 1) == 0,
    Need.EVEN: lambda ranks: ranks % 2 == 0,
}


@dataclass(frozen=True, kw_only=True)
class Algorithm:
    """One algorithm of one collective.

    Attributes:
        id: what the library calls it in its variable.
        name: for people; the id where it has no other.
        needs: what it cannot do without.
        versions: prefixes of the versions that have it; empty: all that the data speaks of.
    """

    id: str
    name: str
    needs: tuple[Need, ...] = ()
    versions: tuple[str, ...] = ()

    @property
    def label(self) -> str:
        """What a table calls it: ``7 knomial``, ``ring``, ``preset 3``."""
        return self.name if self.id in self.name else f"{self.id} {self.name}"


@dataclass(frozen=True, kw_only=True)
class UntriedAlgorithm:
    """An algorithm that is not tried, and why."""

    algorithm: Algorithm
    reason: str


@dataclass(frozen=True, kw_only=True)
class Knobs:
    """All that can be said to one MPI about one collective.

    Attributes:
        collective: one of :data:`COLLECTIVES`.
        force: variables that force ``{id}``.
        neutral: variables that leave the choice to the library again.
        variables: all variables that have a say in this collective's algorithm.
        strict: variables that end a program whose library cannot use what is forced; a site does
            without, for its programs call collectives on other layouts too.
        files: variables that name a file, which a library may silently do without.
    """

    family: str
    version: str
    collective: str
    algorithms: tuple[Algorithm, ...]
    force: Mapping[str, str]
    neutral: Mapping[str, str]
    variables: tuple[str, ...]
    strict: Mapping[str, str]
    files: tuple[str, ...] = ()

    def usable(self, num_ranks: int) -> tuple[tuple[Algorithm, ...], tuple[UntriedAlgorithm, ...]]:
        """Return the algorithms that run on ``num_ranks`` ranks, and those that are left out."""
        kept: list[Algorithm] = []
        left_out: list[UntriedAlgorithm] = []
        for algorithm in self.algorithms:
            unmet = [need for need in algorithm.needs if not _is_met(need, num_ranks)]
            if unmet:
                left_out.append(UntriedAlgorithm(algorithm=algorithm, reason=f"needs {unmet[0]}"))
            else:
                kept.append(algorithm)
        return tuple(kept), tuple(left_out)

    def forcing(self, algorithm: Algorithm) -> dict[str, str]:
        """Return the variables that make the library use ``algorithm`` or end."""
        forced = {name: text.replace("{id}", algorithm.id) for name, text in self.force.items()}
        return {**forced, **self.strict}

    def choosing(self, algorithm: Algorithm) -> str:
        """Return ``NAME=VALUE`` of what a site sets to have ``algorithm`` for all sizes."""
        pairs = self.force.items()
        return " ".join(f"{name}={text.replace('{id}', algorithm.id)}" for name, text in pairs)

    def touched(self, environment: Mapping[str, str]) -> tuple[str, ...]:
        """Return the variables of ``environment`` that already have a say in this collective."""
        return tuple(name for name in self.variables if environment.get(name))


def _is_met(need: Need, num_ranks: int) -> bool:
    return need in _MET and _MET[need](num_ranks)


@dataclass(frozen=True, kw_only=True)
class _Family:
    """One file of data, as read."""

    family: str
    versions: tuple[str, ...]
    variables: tuple[str, ...]
    force: Mapping[str, str]
    neutral: Mapping[str, str]
    strict: Mapping[str, str] = field(default_factory=dict)
    files: tuple[str, ...] = ()
    collectives: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)


def find_knobs(family: str, version: str, collective: str) -> tuple[Knobs | None, str]:
    """Return what can be said to an MPI about a collective, or None and why nothing can."""
    path = DATA / f"{family}.toml"
    if not path.is_file():
        return None, f"nobody has recorded how {family} is told its algorithms"
    data = load_family(path)
    if not _has_prefix(version, data.versions):
        known = ", ".join(data.versions)
        return None, f"the algorithms of {family} {version} are not recorded, those of {known} are"
    entry = data.collectives.get(collective)
    if entry is None:
        return None, f"{family} has no algorithms to choose from for {collective}"
    return _knobs(data, version, collective, entry), ""


def _has_prefix(version: str, prefixes: tuple[str, ...]) -> bool:
    return any(version == each or version.startswith(f"{each}.") for each in prefixes)


def _knobs(data: _Family, version: str, collective: str, entry: Mapping[str, Any]) -> Knobs:
    def named(text: str) -> str:
        return text.replace("{coll}", collective).replace("{COLL}", collective.upper())

    algorithms = (_algorithm(each) for each in _entries(entry))
    return Knobs(
        family=data.family,
        version=version,
        collective=collective,
        algorithms=tuple(
            each for each in algorithms if not each.versions or _has_prefix(version, each.versions)
        ),
        force={named(name): value for name, value in data.force.items()},
        neutral={named(name): value for name, value in data.neutral.items()},
        variables=tuple(map(named, data.variables)),
        strict=data.strict,
        files=tuple(map(named, data.files)),
    )


def _entries(entry: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return the algorithms of an entry; presets are numbered from 1 and have no names."""
    presets = range(1, entry.get("presets", 0) + 1)
    return [{"id": str(each), "name": f"preset {each}"} for each in presets] or entry["algorithms"]


def _algorithm(entry: Mapping[str, Any]) -> Algorithm:
    return Algorithm(
        id=entry["id"],
        name=entry.get("name", entry["id"]),
        needs=tuple(Need(each) for each in entry.get("needs", ())),
        versions=tuple(entry.get("versions", ())),
    )


@functools.cache
def load_family(path: Path) -> _Family:
    """Read one file of data.

    Raises:
        ConfigError: not TOML, a key is missing or unknown, or a word that nobody knows.
    """
    try:
        data = tomllib.loads(path.read_text(encoding="utf-8"))
        family = typed(_Family, data)
        for name, entry in family.collectives.items():
            _check(name, entry)
    except (tomllib.TOMLDecodeError, KeyError, TypeError, ValueError) as error:
        raise ConfigError(f"not a file of algorithms: {error}", source=str(path)) from None
    return family


def _check(name: str, entry: Mapping[str, Any]) -> None:
    """Refuse an entry that could not be read when it is asked for."""
    if name not in COLLECTIVES:
        raise ValueError(f"unknown collective {name!r}")
    ids = [_algorithm(each).id for each in _entries(entry)]
    if not ids or len(set(ids)) != len(ids):
        raise ValueError(f"{name} needs algorithms, each id once")
