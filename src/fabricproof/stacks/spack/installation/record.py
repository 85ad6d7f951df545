"""What was built for a stack: one small file, written last, so that half a build is none."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from fabricproof.core.errors import ConfigError
from fabricproof.core.plain import typed
from fabricproof.core.records import read_json
from fabricproof.core.whole_file import write_whole
from fabricproof.stacks.environment import StackEnvironment, family_settings

#: of the file; another number makes the stack count as not built.
FORMAT = 1

_TELLING = frozenset({"fabrics", "schedulers", "device", "netmod", "pmi", "process_managers"})


@dataclass(frozen=True, kw_only=True)
class Package:
    """One concrete package of a stack.

    Attributes:
        spec: one line: name, version, variants.
        digest: Spack's hash of the concrete spec.
        external: it is the site's own, Spack only uses it.
    """

    name: str
    version: str
    spec: str
    digest: str
    prefix: str
    external: bool = False

    @property
    def telling(self) -> str:
        """Name, version and the variants that say how it talks to network and launcher."""
        name, *variants = self.spec.split()
        switches = [each for each in ("+cuda", "+rocm", "+hydra") if each in name]
        told = [each.replace(":=", "=") for each in variants if _key(each) in _TELLING]
        return " ".join([f"{self.name}@{self.version}", *switches, *told])

    def folder_of(self, suite: str) -> Path:
        """Return the folder that has the programs of ``suite``."""
        inside = "libexec/osu-micro-benchmarks" if suite == "osu" else "bin"
        return Path(self.prefix) / inside


def _key(variant: str) -> str:
    return variant.partition("=")[0].rstrip(":")


@dataclass(frozen=True, kw_only=True)
class Built:
    """One stack as it stands on disk.

    Attributes:
        environment: its folder in ``spack-envs``.
        programs: suite (``osu``, ``imb``) and tool (``iperf3``) -> the package that has it.
        module: what ``module load`` takes.
        module_path: what ``module use`` takes first.
        lock_digest: SHA-256 of the ``spack.lock``, hexadecimal.
        library: the MPI library that the programs really load, absolute.
        seconds: wall time of the steps: ``lock``, ``install``, ``modules``, ``smoke``.
        installed: packages that were built now, or came out of a build cache.
        smoke: what two ranks on the building machine said, or why they were not started.
        library_digest: SHA-256 of that library's content, hexadecimal: the site may replace it
            in place.
    """

    stack: str
    environment: str
    mpi: Package
    programs: Mapping[str, Package]
    module: str
    module_path: str
    lock_digest: str
    compiler: str
    target: str
    spack: str
    library: str
    seconds: Mapping[str, float]
    reused: tuple[str, ...] = ()
    installed: tuple[str, ...] = ()
    smoke: str = ""
    library_digest: str = ""


def write_built(path: Path, built: Built) -> None:
    """Keep ``built``, whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    write_whole(path, json.dumps({"format": FORMAT, **asdict(built)}, indent=1) + "\n")


def read_built(path: Path) -> Built | None:
    """Return what was built, None where nothing was or another version of us wrote it.

    Raises:
        ConfigError: the file is damaged.
    """
    try:
        data = read_json(path)
        if data.pop("format") != FORMAT:
            return None
        return typed(Built, data)
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise ConfigError(
            "damaged record of a build",
            source=str(path),
            expected="what fabricproof stack build wrote",
            got=str(error) or type(error).__name__,
            next_step="fabricproof stack build   # writes it again",
        ) from None


def without_modules(built: Built, family: str, source: str) -> StackEnvironment:
    """Return the environment of a built stack on a machine without modules.

    PATH leads to the MPI, the loader finds the library that the programs were verified to load.
    Intel MPI's prefix is the root of oneAPI, its library may lie in ``lib/release``.

    Raises:
        ConfigError: the MPI's own programs are not found.
    """
    roots = [Path(built.mpi.prefix), *Path(built.library).parents[1:3]]
    for root in roots:
        if (root / "bin" / "mpiexec").exists() or (root / "bin" / "mpirun").exists():
            return StackEnvironment(
                settings=family_settings(family, root),
                prepend={
                    "PATH": str(root / "bin"),
                    "LD_LIBRARY_PATH": str(Path(built.library).parent),
                },
            )
    raise ConfigError(
        f"stack {built.stack} cannot be used without modules: no mpiexec was found",
        source=source,
        expected=f"{roots[0]}/bin/mpiexec",
        next_step="set modules_system to lmod, which loads what Spack wrote",
    )
