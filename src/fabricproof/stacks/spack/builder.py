"""Build a stack: lock, install, prove what its programs load, one module, the record last."""

from __future__ import annotations

import contextlib
import fcntl
import functools
import os
import re
import shlex
import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from fabricproof.core.errors import ConfigError, OutputError
from fabricproof.core.whole_file import write_whole
from fabricproof.site import StackSpec
from fabricproof.stacks.environment import StackEnvironment, quoted
from fabricproof.stacks.spack.environment import (
    Environment,
    SpackLayout,
    compose,
    lock,
    read_lock,
    why_stale,
)
from fabricproof.stacks.spack.proof import (
    Built,
    installed_packages,
    programs_of,
    prove_linkage,
    read_built,
    sha256_of,
    write_built,
)
from fabricproof.stacks.spack.tool import Spack

#: takes the step (``lock``, ``install`` ...) and a line of it
Listen = Callable[[str, str], None]


def module_name(stack: str) -> str:
    """Return the module that loads all of a stack; its bare name may be the MPI's own module."""
    return f"stack-{stack}"


def why_not_built(environment: Environment) -> str | None:
    """Return why the stack has to be built; None if it stands, as locked, with its programs.

    Runs nothing: this is what a check asks every night.

    Raises:
        ConfigError: the lock or the record of the build is damaged.
    """
    layout, name = environment.layout, environment.stack.name
    if stale := why_stale(environment):
        return f"lock: {stale}"
    built = read_built(layout.built(name))
    if built is None:
        return "it was never built to the end"
    identity = (environment.digest, read_lock(layout.kept_lock(name)).digest)
    if (built.inputs, built.lock_digest) != identity:
        return "it was built from another lock"
    module = Path(built.module_path) / f"{built.module}.lua"
    places = (Path(built.library), *programs_of(built.programs), module)
    if gone := [path for path in places if not path.exists()]:
        return f"{gone[0]} is gone"
    if sha256_of(Path(built.library)) != built.library_digest:
        return f"{built.library} is not the library that was proven"
    return None


@contextlib.contextmanager
def building(layout: SpackLayout, name: str, listen: Listen) -> Iterator[Path]:
    """Let one builder at a time work below the layout's root; yield the log for Spack's words.

    Raises:
        ConfigError: no compiler wrapper and no script of Spack's could name the root.
        OutputError: the root cannot be written.
    """
    path, log = layout.root / ".lock", f"{name}-{time.strftime('%Y%m%dT%H%M%S')}.log"
    if any(map(str.isspace, str(path))):
        raise ConfigError(
            "Spack cannot build below a folder with a blank in its path",
            source=str(layout.root),
            next_step="set FABRICPROOF_STACKS, or --root, to a folder without",
        )
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        file = path.open("a+", encoding="utf-8")
    except OSError as error:
        raise OutputError(
            f"stacks cannot be built here: {error.strerror}",
            source=str(layout.root),
            next_step="set FABRICPROOF_STACKS to a folder that all nodes see and you can write",
        ) from None
    with file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            file.seek(0)
            listen("wait", f"another build is under way ({file.read()}); waiting for it")
            fcntl.flock(file, fcntl.LOCK_EX)
        file.truncate(0)
        file.write(f"{name}, pid {os.getpid()} on {os.uname().nodename}, since {time.ctime()}")
        file.flush()
        listen("log", str(layout.mine / "logs" / log))
        yield layout.mine / "logs" / log


def build(
    stack: StackSpec,
    layout: SpackLayout,
    open_tool: Callable[[], Spack],
    listen: Listen,
    *,
    jobs: int | None = None,
    force: bool = False,
) -> tuple[Built, bool]:
    """Bring ``stack`` into place; return what stands and whether it stood before.

    Interrupted, it goes on where it ended: Spack keeps each package that it finished, and the
    stack counts as built only once its record is written, last.

    ``open_tool`` is called only if there is something to do; ``jobs``: compile jobs, Spack's
    default if None; ``force``: solve and prove again although everything seems to be there.

    Raises:
        FabricproofError: one clear message; what was built before stays.
    """
    environment, record = compose(stack, layout), layout.built(stack.name)
    if not force and (stood := _standing(environment)):
        return stood, True
    with building(layout, stack.name, listen) as log:
        # Whoever held the lock may have built just this.
        if not force and (stood := _standing(environment)):
            return stood, True
        spack = open_tool()
        _forget(environment.layout, stack.name)
        locked = lock(environment, spack, functools.partial(listen, "lock"), log, force=force)
        words = ["install", *(["-j", str(jobs)] if jobs else [])]
        spack.do(environment.folder, *words, on_line=functools.partial(listen, "install"), log=log)
        packages = installed_packages(environment, locked, spack)
        listen("linkage", "which MPI the programs load")
        library = prove_linkage(stack.name, packages, spack)
        osu, mpi = locked.specs[packages["osu"].digest], packages.pop("mpi")
        target, compilers = (
            osu["arch"]["target"],
            [
                locked.specs[each["hash"]]
                for each in osu.get("dependencies", ())
                if "c" in each.get("parameters", {}).get("virtuals", ())
            ],
        )
        built = Built(
            stack=stack.name,
            inputs=environment.digest,
            lock_digest=locked.digest,
            mpi=mpi,
            programs=packages,
            compiler=" ".join(f"{each['name']}@{each['version']}" for each in compilers),
            target=str(target["name"] if isinstance(target, dict) else target),
            spack=spack.label,
            library=library,
            library_digest=sha256_of(Path(library)),
            environment=_loaded(environment, spack),
            module=f"{module_name(stack.name)}/{mpi.version}",
            module_path=str(layout.modulefiles),
        )
        # After the proof: a stack that is refused has no module that anybody could load.
        _write_module(built)
        write_built(record, built)
    return built, False


def _standing(environment: Environment) -> Built | None:
    with contextlib.suppress(ConfigError):  # damaged: it is built again
        if why_not_built(environment) is None:
            return read_built(environment.layout.built(environment.stack.name))
    return None


def _forget(layout: SpackLayout, stack: str) -> None:
    """Remove record and module: a build or a removal that ends early leaves nothing to load."""
    layout.built(stack).unlink(missing_ok=True)
    shutil.rmtree(layout.modulefiles / module_name(stack), ignore_errors=True)


def _loaded(environment: Environment, spack: Spack) -> StackEnvironment:
    """Return what ``spack load`` sets and puts in front."""
    text = spack.do(environment.folder, "load", "--sh", *environment.packages.values())
    settings, prepend = {}, {}
    for name, word in re.findall(r"^export (?!SPACK_|MANPATH=)(\w+)=(.*?);?$", text, re.MULTILINE):
        value, before = "".join(shlex.split(word)), spack.environment.get(name, "")
        if name.endswith("PATH"):
            prepend[name] = value.removesuffix(before).strip(":")
        else:
            settings[name] = value
    return StackEnvironment(settings=settings, prepend=prepend)


def _write_module(built: Built) -> None:
    label = f"{built.mpi.name} {built.mpi.version} with OSU and IMB, built by Spack"
    lines = [
        f"-- written by `fabricproof stack build {built.stack}`",
        f"help({quoted(label)})",
        f"whatis({quoted(f'Name: {label}')})",
        f"whatis({quoted(f'Spec: {built.mpi.spec}')})",
        # One stack at a time: loading another swaps all that this one loaded.
        'family("fabricproof_stack")',
        f"setenv({quoted('FABRICPROOF_STACK')}, {quoted(built.stack)})",
    ]
    for call, variables in (
        ("setenv", built.environment.settings),
        ("prepend_path", built.environment.prepend),
    ):
        lines += [f"{call}({quoted(key)}, {quoted(value)})" for key, value in variables.items()]
    path = Path(built.module_path) / f"{built.module}.lua"
    path.parent.mkdir(parents=True)
    write_whole(path, "\n".join([*lines, ""]))


def remove(
    stack: StackSpec, layout: SpackLayout, open_tool: Callable[[], Spack], listen: Listen
) -> bool:
    """Remove ``stack``; return whether anything of it was there.

    The packages are shared by all stacks and sites below one root: those in the lock of another
    environment stay.

    Raises:
        FabricproofError: Spack could not uninstall something, or a lock cannot be read.
    """
    with building(layout, stack.name, listen):
        folder = layout.mine / "environments" / stack.name
        file = folder / "spack.lock"
        was_there = layout.built(stack.name).exists() or file.exists()
        # Before anything goes: without a Spack the packages would stay, and nobody know of them.
        spack = open_tool() if file.exists() else None
        _forget(layout, stack.name)
        if spack is not None:
            others = set(layout.root.glob("sites/*/environments/*/spack.lock")) - {file}
            needed = {each for other in others for each in read_lock(other).specs}
            specs = {key: each for key, each in read_lock(file).specs.items() if key not in needed}
            found = spack.do(folder, "find", "--format", "{hash}").split()
            mine = [f"/{key}" for key in found if key in specs and not specs[key].get("external")]
            if mine:
                words = ("uninstall", "-y", "--force", *mine)
                spack.do(folder, *words, on_line=functools.partial(listen, "remove"))
        shutil.rmtree(folder, ignore_errors=True)
    return was_there
