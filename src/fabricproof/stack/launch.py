"""How the ranks of each MPI family are started inside a Slurm allocation."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from fabricproof.errors import ConfigError, UnavailableError

#: where distributions put Slurm's PMI-2 client library (Debian, then RPM systems, then /opt).
PMI2_LIBRARIES = (
    "/usr/lib/x86_64-linux-gnu/libpmi2.so.0",
    "/usr/lib/aarch64-linux-gnu/libpmi2.so.0",
    "/usr/lib64/libpmi2.so.0",
    "/usr/lib64/libpmi2.so",
    "/opt/slurm/lib/libpmi2.so.0",
)

#: what to tell srun, by family.  Open MPI speaks PMIx alone; Intel MPI and MPICH's wheel do not.
#: With a PMI that does not fit, every rank becomes a world of its own (or refuses to start).
SRUN_OPTIONS: Mapping[str, tuple[str, ...]] = {
    "openmpi": ("--mpi=pmix",),
    "mpich": ("--mpi=pmi2",),
    "mvapich": ("--mpi=pmi2",),
    "intelmpi": ("--mpi=pmi2",),
}

#: the family's own launcher, which finds the nodes of a Slurm allocation by itself.
OWN_LAUNCHER: Mapping[str, str] = {
    "openmpi": "mpirun",
    "mpich": "mpiexec",
    "mvapich": "mpiexec",
    "intelmpi": "mpirun",
}


@dataclass(frozen=True, kw_only=True)
class Launch:
    """A launcher with what it needs.

    Attributes:
        launcher: as ReFrame names it: ``srun``, ``mpirun``, ``mpiexec``.
        options: between the launcher and the program.
        environment: variables that belong to this way of starting.
    """

    launcher: str
    options: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)


def find_pmi2_library(candidates: Iterable[str] = PMI2_LIBRARIES) -> str:
    """Return the path of Slurm's PMI-2 library.

    Raises:
        UnavailableError: there is none; the message names the package.
    """
    for path in candidates:
        if Path(path).exists():
            return path
    raise UnavailableError(
        "Slurm's PMI-2 library is not installed",
        expected="libpmi2.so.0",
        next_step="apt-get install libpmi2-0 (RPM systems: slurm-libpmi), or start with mpirun",
    )


def plan_launch(family: str, launcher: str = "srun", *, pmi2_library: str | None = None) -> Launch:
    """Return how ``family`` is started by ``launcher``.

    Args:
        family: one of :data:`fabricproof.stack.family.FAMILIES`.
        launcher: ``srun``, or ``mpirun``/``mpiexec`` for the family's own.
        pmi2_library: for Intel MPI under srun; found where None.

    Raises:
        ConfigError: unknown family or launcher.
        UnavailableError: Intel MPI under srun without libpmi2.
    """
    if family not in SRUN_OPTIONS:
        raise ConfigError("unknown MPI family", expected=", ".join(SRUN_OPTIONS), got=repr(family))
    if launcher in {"mpirun", "mpiexec"}:
        return Launch(launcher=OWN_LAUNCHER[family])
    if launcher != "srun":
        raise ConfigError("unknown launcher", expected="srun, mpirun or mpiexec", got=launcher)
    environment: dict[str, str] = {}
    if family == "intelmpi":
        environment["I_MPI_PMI_LIBRARY"] = pmi2_library or find_pmi2_library()
    return Launch(launcher="srun", options=SRUN_OPTIONS[family], environment=environment)
