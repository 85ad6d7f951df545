"""Two ranks of what was just built, before anybody relies on it."""

from __future__ import annotations

import shlex
import signal
import subprocess
from collections.abc import Mapping
from pathlib import Path

from fabricproof.benchmarks.parsers import parse_text
from fabricproof.core.errors import FabricproofError, UnavailableError
from fabricproof.stacks.spack.environment import SUITES, Environment
from fabricproof.stacks.spack.installed import Contents
from fabricproof.stacks.spack.tool import Spack, end_group

#: seconds after which two ranks on one node that have not ended never will.
PATIENCE_S = 120

#: the virtual cluster and many login containers are root; two ranks may meet one core.
_SETTINGS = (
    "OMPI_ALLOW_RUN_AS_ROOT=1",
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1",
    "PRTE_ALLOW_RUN_AS_ROOT=1",
    "PRTE_ALLOW_RUN_AS_ROOT_CONFIRM=1",
    "OMPI_MCA_rmaps_base_oversubscribe=1",
    "PRTE_MCA_rmaps_default_mapping_policy=:oversubscribe",
)


def mpiexec(contents: Contents) -> Path | None:
    """Return the MPI's own launcher, None where it was built without one."""
    prefix = Path(contents.mpi.prefix)
    folders = [prefix / "bin", *sorted(prefix.glob("mpi/*/bin"))]
    names = ("mpiexec.hydra", "mpiexec", "mpirun")
    candidates = (folder / name for folder in folders for name in names)
    return next((path for path in candidates if path.exists()), None)


def smoke_test(
    environment: Environment, contents: Contents, spack: Spack, programs: Mapping[str, Path]
) -> str:
    """Run OSU's and IMB's smallest programs on two ranks of this machine; return what was seen.

    A benchmark that started as two worlds of one prints no table, so a table is the proof,
    together with a good end.

    Raises:
        UnavailableError: no table came out, or the ranks ended badly; the message has the end of
            what was printed.
    """
    launcher = mpiexec(contents)
    if launcher is None:
        return "not run: this MPI has no launcher of its own; the checks will start it with srun"
    commands = {
        "osu": [str(programs["osu"]), "-m", "1:8", "-i", "10", "-x", "1"],
        "imb": [str(programs["imb"]), "PingPong", "-iter", "10", "-msglog", "0:3"],
    }
    seen = []
    for suite, command in commands.items():
        status, output = _run(environment, spack, [str(launcher), "-n", "2", *command])
        try:
            table = parse_text(output, f"{suite} smoke test")[0] if status == 0 else None
        except FabricproofError:
            table = None
        if table is None:
            raise UnavailableError(
                f"the {suite} programs were built but do not run on two ranks",
                source=str(programs[suite]),
                expected="a table of a world of two",
                got=" ".join(output.split())[-300:] or f"no word, exit status {status}",
                next_step=f"fabricproof stack doctor {environment.stack.name}",
            )
        seen.append(f"{table.program} {len(table.rows)} sizes")
    return "two ranks: " + ", ".join(seen)


def _run(environment: Environment, spack: Spack, command: list[str]) -> tuple[int, str]:
    """Run ``command`` as after ``spack load``; return its exit status and both streams."""
    where = ["-e", str(environment.folder), "load", "--sh", environment.mpi, *SUITES.values()]
    load = shlex.join([str(spack.program), *where])
    settings = " ".join(_SETTINGS)
    # Alone in its assignment: a load that fails would be an empty text to eval, which is well.
    loaded = f'loaded="$({load})" && eval "$loaded"'
    script = f"{loaded} && export {settings} && exec {shlex.join(command)}"
    process = subprocess.Popen(
        ["bash", "-c", script],
        env=dict(spack.environment),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        start_new_session=True,
    )
    assert process.stdout is not None
    with process.stdout:
        try:
            output, _ = process.communicate(timeout=PATIENCE_S)
        except subprocess.TimeoutExpired as error:
            end = (error.stdout or b"").decode(errors="replace")
            return 124, f"{end}\nno end after {PATIENCE_S} s"
        finally:
            # Asked first: a launcher that is killed at once leaves its ranks behind.
            end_group(process, signal.SIGTERM)
    return process.returncode, output
