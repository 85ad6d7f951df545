"""One Lmod module for each stack, in front of the tree that Spack writes.

Spack's own tree is one for each stack: in a shared one a refresh of one stack deletes the modules
of the others.  The module in front has a name that never changes (``module load STACK``), however
Spack names the MPI's.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import yaml

from fabricproof.core.errors import UnavailableError
from fabricproof.core.whole_file import write_whole
from fabricproof.stacks.environment import quoted
from fabricproof.stacks.spack.environment.compose import Environment
from fabricproof.stacks.spack.environment.lock import Lock
from fabricproof.stacks.spack.failure import failure_of
from fabricproof.stacks.spack.installation.proof import Contents, core_compilers
from fabricproof.stacks.spack.layout import SpackLayout, module_name
from fabricproof.stacks.spack.tool import Spack, unheard


def write_core_compilers(environment: Environment, layout: SpackLayout, lock: Lock) -> None:
    """Tell Spack's Lmod generator which compilers are core, or it guesses and writes that down."""
    settings = {
        "roots": {"lmod": str(layout.modules / environment.stack.name)},
        "lmod": {"core_compilers": core_compilers(lock)},
    }
    text = yaml.safe_dump({"modules": {"default": settings}}, sort_keys=False)
    (environment.folder / "own" / "modules.yaml").write_text(text, encoding="utf-8")


def remove_modules(layout: SpackLayout, stack: str) -> None:
    """Remove the modules of a stack, the one in front first: nobody loads what is not proven."""
    shutil.rmtree(layout.modulefiles / module_name(stack), ignore_errors=True)
    shutil.rmtree(layout.modules / stack, ignore_errors=True)


def write_modules(
    environment: Environment,
    layout: SpackLayout,
    spack: Spack,
    contents: Contents,
    *,
    on_line: Callable[[str], None] = unheard,
    log: Path | None = None,
) -> str:
    """Write the modules of a stack anew; return the name that ``module load`` takes.

    Raises:
        UnavailableError: Spack did not write one of them.
    """
    tree = layout.modules / environment.stack.name
    shutil.rmtree(tree, ignore_errors=True)
    answer = spack.call(
        ["-e", str(environment.folder), "module", "lmod", "refresh", "--delete-tree", "-y"],
        on_line=on_line,
        log=log,
    )
    if answer.status:
        raise failure_of("module refresh", answer)
    core = tree / "Core"
    first = _module(core, environment.mpi)
    below = [
        _module(tree, package.name)
        for package in contents.programs.values()
        if not package.external
    ]
    name = module_name(environment.stack.name)
    path = layout.modulefiles / name / f"{contents.mpi.version}.lua"
    shutil.rmtree(path.parent, ignore_errors=True)
    path.parent.mkdir(parents=True)
    write_whole(path, _render(environment, contents, core, [first, *below]))
    return f"{name}/{contents.mpi.version}"


def _module(folder: Path, name: str) -> str:
    found = sorted(folder.glob(f"**/{name}/*.lua"))
    if not found:
        raise UnavailableError(
            "Spack wrote no module", expected=f"{name}/*.lua", got=f"none below {folder}"
        )
    return f"{name}/{found[0].stem}"


def _render(environment: Environment, contents: Contents, core: Path, names: list[str]) -> str:
    stack = environment.stack.name
    label = f"{contents.mpi.name} {contents.mpi.version} with OSU and IMB, built by Spack"
    lines = [
        f"-- written by `fabricproof stack build {stack}`",
        f"help({quoted(label)})",
        f"whatis({quoted(f'Name: {label}')})",
        f"whatis({quoted(f'Spec: {contents.mpi.spec}')})",
        # One stack at a time: loading another swaps all that this one loaded.
        'family("fabricproof_stack")',
        f"setenv({quoted('FABRICPROOF_STACK')}, {quoted(stack)})",
        f"prepend_path({quoted('MODULEPATH')}, {quoted(str(core))})",
        *(f"load({quoted(name)})" for name in names),
    ]
    return "\n".join(lines) + "\n"
