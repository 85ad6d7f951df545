"""Put MPI stacks in place from wheels: no compiler, no root, and again only when pins change.

Intel's are laid out as oneAPI does, so that Spack can take them for a vendor's MPI: Spack's
``intel-oneapi-mpi`` expects ``PREFIX/mpi/<major.minor>/{bin,lib,include,env/vars.sh}``, with
``lib/release`` from before 2021.11 still looked into for the libraries; the wheels put all into one
prefix and leave a placeholder where their wrappers' prefix belongs.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import platform
import shutil
import subprocess
import sys
import venv
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from fabricproof.core.errors import OutputError, UnavailableError
from fabricproof.core.records import text_of
from fabricproof.site import Misfit, Site, error_at
from fabricproof.stacks.catalog import DATA, Catalog, Stack, load_catalog
from fabricproof.stacks.environment import (
    answer_of,
    modulefile,
    ports_folder,
    shell_word,
    stack_environment,
    stack_python,
    write_project_module,
    write_stack_module,
)

#: what Intel's installer replaces in the compiler wrappers.
_PLACEHOLDERS = ("I_MPI_SUBSTITUTE_INSTALLDIR", "__EXEC_PREFIX_TO_BE_FILLED_AT_INSTALL_TIME__")


def lay_out(prefix: Path, release: str, final: Path) -> Path:
    """Write ``prefix/oneapi/mpi/RELEASE`` beside the wheels' own files; return that folder."""
    tree = prefix / "oneapi" / "mpi" / release
    named = final / "oneapi" / "mpi" / release
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
        _fill_in(path, str(named))
    (tree / "env" / "vars.sh").write_text(_vars(named), encoding="utf-8")
    return tree


def _fill_in(path: Path, prefix: str) -> None:
    """Replace the placeholders in a script; programs have none and stay as they are."""
    if path.is_symlink() or not path.is_file() or path.read_bytes()[:2] != b"#!":
        return
    text = path.read_text(encoding="utf-8")
    for placeholder in _PLACEHOLDERS:
        text = text.replace(placeholder, prefix)
    path.write_text(text, encoding="utf-8")


def _vars(prefix: Path) -> str:
    return f"""\
# Sourced by Spack, as Intel's own env/vars.sh is.
export I_MPI_ROOT={shell_word(str(prefix))}
export PATH={shell_word(str(prefix / "bin"))}:"$PATH"
export LD_LIBRARY_PATH={shell_word(str(prefix / "lib"))}"${{LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}}"
export FI_PROVIDER_PATH={shell_word(str(prefix / "lib"))}
"""


#: layout of an installed stack; a change makes installed ones stale.
LAYOUT = 1

_STAMP = "stamp.json"

#: prints the version of the MPI that mpi4py finds, without starting it (no launcher needed).
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
class Installed:
    """One line of ``stack list``.

    Attributes:
        state: whether it is there, with the present pins.
        answer: first line of the MPI library's version string, None unless installed.
    """

    stack: Stack
    prefix: Path
    state: InstallState
    answer: str | None


def _pins(catalog: Catalog, stack: Stack) -> dict[str, object]:
    return {
        "layout": LAYOUT,
        "wheels": [*stack.wheels, catalog.mpi4py.wheel],
        "ports": catalog.mpi4py.ports,
        "library": stack.library,
        "python": platform.python_version_tuple()[:2],
    }


def read_stamp(prefix: Path) -> dict[str, object] | None:
    """Return what the installation in ``prefix`` says of itself; None where none was finished."""
    try:
        stamp = json.loads(text_of(prefix / _STAMP))
    except (OSError, ValueError):
        return None
    return stamp if isinstance(stamp, dict) else None


def observe(catalog: Catalog, stack: Stack, root: Path) -> Installed:
    """Return how ``stack`` stands below ``root``; runs nothing."""
    prefix = root / stack.name
    stamp = read_stamp(prefix)
    if stamp is None:
        return Installed(stack=stack, prefix=prefix, state=InstallState.ABSENT, answer=None)
    wanted = json.loads(json.dumps(_pins(catalog, stack)))
    fresh = stamp.get("pins") == wanted and stack_python(prefix).exists()
    state = InstallState.INSTALLED if fresh else InstallState.STALE
    answer = str(stamp.get("answer")) if fresh else None
    return Installed(stack=stack, prefix=prefix, state=state, answer=answer)


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


def _failure(task: str, output: str) -> UnavailableError | OutputError:
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    errors = [line for line in lines if line.upper().startswith("ERROR")] or lines
    reason = errors[-1] if errors else "no message"
    if "No space left" in output:
        return OutputError(f"{task} failed: no space left on device", next_step="free some space")
    return UnavailableError(
        f"{task} failed: {reason}", next_step="check pip's index settings (pip config list)"
    )


def _pip(task: str, *arguments: str, loud: bool = False) -> None:
    """Run this Python's pip; with ``loud`` its progress goes to the error stream."""
    command = [sys.executable, "-m", "pip", "--no-input", *arguments]
    done = subprocess.run(
        command,
        stdout=sys.__stderr__ if loud else subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        check=False,
    )
    if done.returncode:
        raise _failure(task, (done.stdout or "") + done.stderr)


def _download(wheels: list[str], downloads: Path) -> None:
    """Fetch ``wheels`` into the shared folder; those that are there are not fetched again."""
    folder = ["--only-binary", ":all:", "--no-deps", "-d", str(downloads)]
    try:
        _pip("", "download", "--no-index", f"--find-links={downloads}", *folder, *wheels)
    except UnavailableError:
        _pip(f"downloading {' '.join(wheels)}", "download", *folder, *wheels, loud=True)


def _install_wheels(catalog: Catalog, stack: Stack, prefix: Path, downloads: Path) -> None:
    """Make the interpreter below ``prefix/venv`` and unpack the MPI's wheels into ``prefix``.

    Two places, so that PATH can have the MPI without the interpreter.
    """
    venv.EnvBuilder(symlinks=True, with_pip=False).create(prefix / "venv")
    for script in (prefix / "venv" / "bin").glob("[Aa]ctivate*"):
        script.unlink()
    local = ["--no-deps", "--no-index", f"--find-links={downloads}", "--no-warn-script-location"]
    python = ["--python", str(stack_python(prefix)), "install", *local]
    _pip("installing mpi4py", *python, catalog.mpi4py.wheel)
    if stack.wheels:
        _pip(
            f"installing {stack.name}",
            *python,
            "--no-compile",
            f"--prefix={prefix}",
            *stack.wheels,
        )


def _answer(stack: Stack, prefix: Path) -> str:
    """Ask the installed stack which MPI it is, and refuse any other than the one pinned."""
    environment = stack_environment(stack, prefix).applied_to(_clean_environment())
    command = [str(stack_python(prefix)), "-I", "-c", _ASK_VERSION]
    done = answer_of(command, environment, seconds=60)
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


def _clean_environment() -> dict[str, str]:
    """Return this process's environment without what another MPI's module set."""
    foreign = ("OMPI_", "OPAL_", "PMIX_", "PRTE_", "I_MPI_", "FI_", "MPIR_", "UCX_", "MPI4PY_")
    return {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(foreign) and name != "LD_LIBRARY_PATH"
    }


def _build(catalog: Catalog, stack: Stack, prefix: Path, root: Path, report: Report) -> str:
    downloads = root / "downloads"
    downloads.mkdir(exist_ok=True)
    report(f"{stack.name}: fetching {', '.join([*stack.wheels, catalog.mpi4py.wheel])}")
    _download([*stack.wheels, catalog.mpi4py.wheel], downloads)
    report(f"{stack.name}: installing")
    _install_wheels(catalog, stack, prefix, downloads)
    # demo/osu_*.py of mpi4py, unchanged, with its licence: its wheels leave them out.
    with zipfile.ZipFile(DATA.parent / catalog.mpi4py.ports) as ports:
        ports.extractall(ports_folder(prefix))
    if stack.oneapi:
        lay_out(prefix, stack.oneapi, root / stack.name)
    answer = _answer(stack, prefix)
    stamp = {"pins": _pins(catalog, stack), "answer": answer}
    (prefix / _STAMP).write_text(json.dumps(stamp, indent=1) + "\n", encoding="utf-8")
    return answer


def _replace(partial: Path, prefix: Path) -> None:
    """Put ``partial`` where ``prefix`` is; a kill between the two leaves an absent stack."""
    if prefix.exists():
        old = partial.with_name(f".partial-old-{prefix.name}")
        prefix.rename(old)
        shutil.rmtree(old, ignore_errors=True)
    partial.rename(prefix)


def install(catalog: Catalog, stack: Stack, root: Path, report: Report) -> Installed:
    """Bring ``stack`` into place below ``root``; instant when it is there with these pins.

    Everything happens in a folder beside it that is renamed at the end, so an interrupted
    installation leaves either the old stack or none, and what was downloaded is kept.

    Raises:
        UnavailableError: a download failed, or another MPI answers than the one pinned.
        OutputError: the disk is full.
    """
    with _locked(root, report):
        now = observe(catalog, stack, root)
        if now.state is not InstallState.INSTALLED:
            partial = root / f".partial-{stack.name}-{os.getpid()}"
            try:
                _build(catalog, stack, partial, root, report)
                _replace(partial, now.prefix)
            finally:
                shutil.rmtree(partial, ignore_errors=True)
            now = observe(catalog, stack, root)
        write_stack_module(stack, root)
        write_project_module(root)
    return now


def remove(stack: Stack, root: Path, report: Report) -> bool:
    """Remove ``stack`` and its module from below ``root``; False where it was not there."""
    with _locked(root, report):
        prefix = root / stack.name
        there = prefix.exists()
        shutil.rmtree(prefix, ignore_errors=True)
        modulefile(stack, root).unlink(missing_ok=True)
    return there


def check_provisioned(site: Site) -> None:
    """Refuse ``provisioned`` where ``fabricproof stack install`` has no stack of that name.

    Raises:
        ConfigError: the first such stack, with file, line and the names there are.
    """
    known = load_catalog().stacks
    for place, stack in enumerate(site.stacks):
        if not stack.provisioned or stack.installed_as in known:
            continue
        problem = f"stack {stack.name!r}: fabricproof stack install knows no such stack"
        mend = 'provisioned = "NAME" with one of them, or leave the line out'
        key, got = ("stacks", place, "provisioned"), repr(stack.installed_as)
        raise error_at(site, Misfit(key, problem, f"one of {', '.join(known)}", got, mend))
