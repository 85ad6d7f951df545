"""How the ranks of each MPI family are started inside a Slurm allocation."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from fabricproof.core.errors import ConfigError, UnavailableError
from fabricproof.stacks.environment import shell_word

#: where distributions put Slurm's PMI-2 client library (Debian, then RPM systems, then /opt).
PMI2_LIBRARIES = (
    "/usr/lib/x86_64-linux-gnu/libpmi2.so.0",
    "/usr/lib/aarch64-linux-gnu/libpmi2.so.0",
    "/usr/lib64/libpmi2.so.0",
    "/usr/lib64/libpmi2.so",
    "/opt/slurm/lib/libpmi2.so.0",
)

#: What srun is told with ``--mpi=``, by family; empty: the scheduler's default.  With a PMI that
#: does not fit, every rank becomes a world of its own, or refuses to start.  Open MPI speaks PMIx
#: alone; Cray MPICH's PMI is Slurm's plugin cray_shasta (Slurm's MPI guide, "HPE Cray PMI").
#: ParaStation MPI is built with PMIx or not, and the srun of psslurm has pspmix for it where
#: Slurm's has pmix: only the site knows.
SRUN_PMI: Mapping[str, str] = {
    "openmpi": "pmix",
    "mpich": "pmi2",
    "mvapich": "pmi2",
    "mvapich2": "pmi2",
    "intelmpi": "pmi2",
    "craympich": "cray_shasta",
    "parastation": "",
}

#: the family's own launcher, which finds the nodes of a Slurm allocation by itself
OWN_LAUNCHER: Mapping[str, str] = {
    **dict.fromkeys(SRUN_PMI, "mpiexec"),
    "openmpi": "mpirun",
    "intelmpi": "mpirun",
}

#: what tells a rank its node's name.  Intel MPI's mpirun hands the script's own to every node (seen
#: with 2021.18: both ranks call themselves vc1); without them Slurm and bash set each node's.
NAMES_OF_A_NODE = ("SLURMD_NODENAME", "HOSTNAME")

#: the library by which Intel MPI speaks to a launcher (developer reference, "Other Environment
#: Variables")
_PMI_LIBRARY = "I_MPI_PMI_LIBRARY"

#: in a job's folder: its nodes, the last first
BACKWARDS_FILE = "backwards.hosts"

#: has the tasks of a job step count its nodes from the last one
TURN_FILE = "turn.sh"


@dataclass(frozen=True, kw_only=True)
class Launch:
    """A launcher, its options, its variables, and those of the script that it must not see."""

    launcher: str
    options: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    hidden: tuple[str, ...] = ()


def find_pmi2_library(candidates: Iterable[str] | None = None) -> str:
    """Return the path of Slurm's PMI-2 library.

    Raises:
        UnavailableError: there is none; the message names the package.
    """
    for path in PMI2_LIBRARIES if candidates is None else candidates:
        if Path(path).exists():
            return path
    raise UnavailableError(
        "Slurm's PMI-2 library is not installed",
        expected="libpmi2.so.0",
        next_step="apt-get install libpmi2-0 (RPM systems: slurm-libpmi), or start with mpirun",
    )


def plan_launch(
    family: str,
    launcher: str = "srun",
    *,
    pmi: str | None = None,
    stated: Mapping[str, str] | None = None,
    pmi2_library: str | None = None,
) -> Launch:
    """Return how ``family`` is started by ``launcher``; what the site states is left as it is.

    ``pmi`` is as the site states it (``default``: the scheduler's, None: the family's), ``stated``
    the site's variables: ``I_MPI_PMI_LIBRARY`` is looked for only if it is not among them.

    Raises:
        ConfigError: unknown family or launcher.
        UnavailableError: Intel MPI under srun without libpmi2.
    """
    if family not in SRUN_PMI:
        raise ConfigError("unknown MPI family", expected=", ".join(SRUN_PMI), got=repr(family))
    if launcher in {"mpirun", "mpiexec"}:
        hidden = NAMES_OF_A_NODE if family == "intelmpi" else ()
        return Launch(launcher=OWN_LAUNCHER[family], hidden=hidden)
    if launcher != "srun":
        raise ConfigError("unknown launcher", expected="srun, mpirun or mpiexec", got=launcher)
    # Slurm's pmi2 answers PMI-1's words too.
    word = {"pmi1": "pmi2", "default": "", None: SRUN_PMI[family]}.get(pmi, pmi)
    environment: dict[str, str] = {}
    if family == "intelmpi" and word == "pmi2" and _PMI_LIBRARY not in (stated or {}):
        environment[_PMI_LIBRARY] = pmi2_library or find_pmi2_library()
    options = (f"--mpi={word}",) if word else ()
    return Launch(launcher="srun", options=options, environment=environment)


@dataclass(frozen=True, kw_only=True)
class Layout:
    """How the ranks of a leg lie on nodes: block by block.

    ``nodes`` are empty if any of the job will do; srun fills them in its own order (srun(1),
    --nodelist), the others in this.
    """

    num_nodes: int = 2
    ranks_per_node: int = 1
    nodes: tuple[str, ...] = ()

    @property
    def num_ranks(self) -> int:
        """Ranks in all."""
        return self.num_nodes * self.ranks_per_node


def layout_options(family: str, launcher: str, layout: Layout) -> tuple[str, ...]:
    """Return what makes ``launcher`` start ``layout`` on some nodes of a larger job.

    The number of ranks is for the launcher's own option (``-n``, ``-np``) and not among them.
    Sources: srun(1) of Slurm 22.05; mpirun(1) of Open MPI 4.1 and 5.0 (``ppr:N:node``); Hydra's
    ``mpiexec -help`` of MPICH 5.0 and Intel MPI 2021.18 (``-ppn``, ``-hosts``).
    """
    per_node = layout.ranks_per_node
    if launcher == "srun":
        return (
            f"--nodes={layout.num_nodes}",
            f"--ntasks={layout.num_ranks}",
            f"--ntasks-per-node={per_node}",
            *((f"--nodelist={','.join(layout.nodes)}",) if layout.nodes else ()),
            "--distribution=block",
        )
    if family == "openmpi":
        hosts = ",".join(f"{node}:{per_node}" for node in layout.nodes)
        return (*(("--host", hosts) if hosts else ()), "--map-by", f"ppr:{per_node}:node")
    return (
        *(("-hosts", ",".join(layout.nodes)) if layout.nodes else ()),
        "-ppn",
        str(per_node),
    )


def naming_the_nodes(command: Sequence[str], nodes: Sequence[str] | str) -> tuple[str, ...]:
    """Return ``command``, in words for a shell, with the nodes of its step as those of the job.

    The PMIx plugin of Slurm 22.05 numbers the nodes of a step and looks the numbers up among those
    of the job, which it reads from the step's environment: ranks on vc2 and vc3 of vc[1-4] wait in
    MPI_Init for what was sent to vc1, without end in 4 of 10 starts, and never so since both lists
    are the same (32 starts).  Slurm counts both in the order of the job's nodes.  Other launchers
    and other PMIs are left as they are.

    ``nodes`` are names, or the file that holds them as a word for a shell.
    """
    if not any(word.startswith("--mpi=pmix") for word in command):
        return tuple(command)
    listed = [f"-f {nodes}"] if isinstance(nodes, str) else [f"-e {shell_word(n)}" for n in nodes]
    chosen = " ".join(listed)
    names = f'scontrol show hostnames "$SLURM_JOB_NODELIST" | grep -xF {chosen} | paste -sd,'
    return ("env", f'SLURM_JOB_NODELIST="$({names})"', *command)


def turned_command(family: str, launcher: str, command: Sequence[str]) -> tuple[str, ...]:
    """Return ``command``, in words for a shell, with rank 0 on the last node of the job.

    ``$here`` is the job's folder, which holds :data:`BACKWARDS_FILE` and :data:`TURN_FILE`.
    srun lays ranks out as a host file says (srun(1), ``--distribution=arbitrary``), and so does
    Open MPI's sequential mapper (mpirun(1) of 4.1 and 5.0); its ``--host`` and a host file alone
    choose nodes and do not order them (4.1).  Hydra (MPICH, Intel MPI) ignores the order of
    ``-hosts``: srun starts its proxies, and each takes the place of its SLURM_NODEID.  So the
    list and that number are turned.  Tried with Slurm 22.05, Open MPI 4.1 and 5.0, MPICH 5.0 and
    Intel MPI 2021.18.
    """
    hosts = f'"$here/{BACKWARDS_FILE}"'
    if launcher == "srun":
        command = naming_the_nodes((*command, "--distribution=arbitrary"), hosts)
        return ("env", f"SLURM_HOSTFILE={hosts}", *command)
    if family == "openmpi":
        return (*command, "--hostfile", hosts, "--map-by", "seq")
    nodes = f'"$(paste -sd, {hosts})"'
    return (
        "env",
        *(f"{name}={nodes}" for name in ("SLURM_JOB_NODELIST", "SLURM_NODELIST")),
        f'SLURM_TASK_PROLOG="$here/{TURN_FILE}"',
        *command,
    )
