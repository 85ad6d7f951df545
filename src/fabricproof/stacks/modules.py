"""Lmod modules for installed stacks, and for this project itself."""

from __future__ import annotations

from pathlib import Path

from fabricproof import __version__
from fabricproof.core.whole_file import write_whole
from fabricproof.stacks.catalog import Stack, project_root
from fabricproof.stacks.environment import StackEnvironment, shell_word, stack_environment

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
            "FABRICPROOF_ROOT": str(project),
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
