"""Build a stack: lock, install, prove, write modules, try it; then write it down.  Remove one."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import functools
import json
import os
import shutil
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from fabricproof.core.errors import ConfigError, FabricproofError, OutputError
from fabricproof.core.records import text_of
from fabricproof.site import StackSpec
from fabricproof.stacks.spack.environment.compose import SUITES, Environment, compose
from fabricproof.stacks.spack.environment.lock import (
    Lock,
    is_of_lock,
    kept_lock,
    lock,
    prove_compilers,
    why_stale,
)
from fabricproof.stacks.spack.failure import failure_of
from fabricproof.stacks.spack.installation.modules import (
    remove_modules,
    write_core_compilers,
    write_modules,
)
from fabricproof.stacks.spack.installation.proof import (
    prove_linkage,
    read_contents,
    smoke_test,
)
from fabricproof.stacks.spack.installation.record import Built, Package, read_built, write_built
from fabricproof.stacks.spack.layout import SpackLayout, sha256_of
from fabricproof.stacks.spack.tool import HELD, Spack

#: what a full disk, a quota and a read-only file system say.
_UNWRITABLE = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EROFS})

Listen = Callable[[str, str], None]
"""Takes the step (``lock``, ``install`` ...) and a line of it."""


@contextlib.contextmanager
def _timed(seconds: dict[str, float], step: str) -> Iterator[None]:
    begin = time.monotonic()
    yield
    seconds[step] = round(time.monotonic() - begin, 2)


def why_not_whole(layout: SpackLayout, environment: Environment) -> str | None:
    """Return why the stack has to be built; None where it stands, as locked, with its programs.

    Runs nothing: this is what a check asks every night.
    """
    name = environment.stack.name
    stale = why_stale(environment, layout)
    if stale is not None:
        return f"lock: {stale}"
    try:
        built = read_built(layout.built(name))
    except ConfigError as error:
        return error.problem
    if built is None:
        return "it was never built to the end"
    path = kept_lock(layout, name)
    if not is_of_lock(built.lock_digest, path):
        return "it was built from another lock"
    locked = text_of(path)
    if any(package.digest not in locked for package in (built.mpi, *built.programs.values())):
        return "the record of the build names packages that the lock does not have"
    return _why_not_there(layout, built)


def _why_not_there(layout: SpackLayout, built: Built) -> str | None:
    """Return which piece of ``built`` is not what it was, None where all are."""
    if not SUITES.keys() <= built.programs.keys():
        return "the record of the build names no benchmarks"
    needed = [*programs_of(built.programs).values(), Path(built.library), Path(built.mpi.prefix)]
    needed += [Path(package.prefix) for package in built.programs.values()]
    modules = layout.modules / built.stack / "Core"
    needed += [layout.modulefiles / f"{built.module}.lua", modules]
    gone = [path for path in needed if not path.exists()]
    if gone:
        return f"{gone[0]} is gone"
    if built.library_digest != sha256_of(Path(built.library)):
        return f"{built.library} is not the library that was proven"
    return None


def programs_of(programs: Mapping[str, Package]) -> dict[str, Path]:
    """Return one program of each suite that stands for all of it."""
    osu, imb = (programs[suite].folder_of(suite) for suite in ("osu", "imb"))
    return {"osu": osu / "mpi" / "pt2pt" / "osu_latency", "imb": imb / "IMB-MPI1"}


@contextlib.contextmanager
def building(layout: SpackLayout, name: str, listen: Listen) -> Iterator[None]:
    """Let one builder at a time work below the layout's root; a second one waits and says so.

    It waits for the Spack of a builder that was killed, too.

    Raises:
        ConfigError: no compiler wrapper and no script of Spack's could name the root.
        OutputError: the root cannot be written.
    """
    path = layout.root / ".lock"
    if any(map(str.isspace, str(path))):
        raise ConfigError(
            "Spack cannot build below a folder with a blank in its path",
            source=str(layout.root),
            expected="a path without blanks",
            next_step="set FABRICPROOF_STACKS, or --root, to such a folder",
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
            listen("wait", _whom_we_wait_for(file.read()))
            fcntl.flock(file, fcntl.LOCK_EX)
        file.seek(0)
        file.truncate()
        host, since = os.uname().nodename, time.strftime("%H:%M:%S")
        builder = {"stack": name, "pid": os.getpid(), "host": host, "since": since}
        file.write(json.dumps(builder))
        file.flush()
        held = HELD.set((file.fileno(),))
        try:
            yield
        except OSError as error:
            if error.errno not in _UNWRITABLE or isinstance(error, FabricproofError):
                raise
            raise OutputError(
                f"cannot write: {error.strerror}",
                source=str(error.filename or layout.root),
                next_step="make room, then run the same command again: what is finished stays",
            ) from None
        finally:
            HELD.reset(held)
            file.truncate(0)


def _whom_we_wait_for(text: str) -> str:
    try:
        builder = json.loads(text)
        stack, pid, host, since = (builder[key] for key in ("stack", "pid", "host", "since"))
    except (ValueError, KeyError, TypeError):
        return "another build is under way; waiting for it"
    return (
        f"another build is under way ({stack}, pid {pid} on {host}, since {since}); waiting for "
        "it, or for its Spack where it was killed"
    )


def build(
    stack: StackSpec,
    layout: SpackLayout,
    open_tool: Callable[[], Spack],
    listen: Listen,
    *,
    jobs: int | None = None,
    force: bool = False,
    smoke: bool = True,
) -> tuple[Built, bool]:
    """Bring ``stack`` into place; return what stands and whether it stood before.

    ``jobs``: compile jobs, Spack's default if None; ``force``: solve and verify again although
    everything seems to be there; ``smoke``: run two ranks at the end.

    Interrupted, it goes on where it ended: Spack keeps each package that it finished, and the
    stack counts as built only once the manifest is written, last.

    Raises:
        FabricproofError: one clear message; what was built before stays.
    """
    if not force and (stood := _stood(compose(stack, layout, jobs=jobs), layout)):
        return stood, True
    with building(layout, stack.name, listen):
        # Whoever held the lock may have built just this.
        environment = compose(stack, layout, jobs=jobs)
        if not force and (stood := _stood(environment, layout)):
            return stood, True
        spack = open_tool()
        layout.built(stack.name).unlink(missing_ok=True)
        # A module of an earlier build would be loaded though this one is refused.
        remove_modules(layout, stack.name)
        built = _build(environment, layout, spack, listen, force=force, smoke=smoke)
    return built, False


def _stood(environment: Environment, layout: SpackLayout) -> Built | None:
    if why_not_whole(layout, environment) is not None:
        return None
    return read_built(layout.built(environment.stack.name))


def _build(
    environment: Environment,
    layout: SpackLayout,
    spack: Spack,
    listen: Listen,
    *,
    force: bool,
    smoke: bool,
) -> Built:
    stack = environment.stack
    assert stack.spack is not None
    log = layout.new_log(stack.name)
    listen("log", str(log))
    seconds: dict[str, float] = {}
    with _timed(seconds, "lock"):
        hear = functools.partial(listen, "lock")
        locked = lock(environment, layout, spack, force=force, on_line=hear, log=log)
        write_core_compilers(environment, layout, locked)
        prove_compilers(locked)
    with _timed(seconds, "install"):
        before = _install(environment, locked, spack, listen, log)
        contents = read_contents(environment, locked, spack)
    programs = programs_of(contents.programs)
    with _timed(seconds, "linkage"):
        listen("linkage", "which MPI the programs load")
        python = Path(spack.environment["SPACK_PYTHON"])
        library = prove_linkage(programs.values(), contents.mpi, spack.environment, python)
    tried = "not asked for"
    if smoke:
        with _timed(seconds, "smoke"):
            listen("smoke", "two ranks on this machine")
            tried = smoke_test(environment, contents, spack, programs)
    # After the proofs: a stack that is refused has no module that anybody could load.
    with _timed(seconds, "modules"):
        hear = functools.partial(listen, "modules")
        module = write_modules(environment, layout, spack, contents, on_line=hear, log=log)
    ours = {key for key, spec in locked.specs.items() if not spec.get("external")}
    built = Built(
        stack=stack.name,
        environment=stack.spack,
        mpi=contents.mpi,
        programs=contents.programs,
        module=module,
        module_path=str(layout.modulefiles),
        lock_digest=locked.digest,
        compiler=contents.compiler,
        target=contents.target,
        spack=spack.label,
        library=library,
        library_digest=sha256_of(Path(library)),
        smoke=tried,
        seconds=seconds,
        reused=_names(locked, before & ours),
        installed=_names(locked, ours - before),
    )
    write_built(layout.built(stack.name), built)
    return built


def _install(
    environment: Environment, locked: Lock, spack: Spack, listen: Listen, log: Path
) -> set[str]:
    """Have Spack install the lock; return the hashes of what was there before."""
    where = ["-e", str(environment.folder)]
    found = spack.call([*where, "find", "--format", "{hash}"]).output.splitlines()
    hear = functools.partial(listen, "install")
    answer = spack.call([*where, "install"], on_line=hear, log=log)
    if answer.status:
        raise failure_of("install", answer)
    return {line.strip() for line in found} & set(locked.specs)


def _names(locked: Lock, hashes: set[str]) -> tuple[str, ...]:
    return tuple(
        sorted(f"{locked.specs[each]['name']}@{locked.specs[each]['version']}" for each in hashes)
    )


def remove(
    stack: StackSpec, layout: SpackLayout, open_tool: Callable[[], Spack], listen: Listen
) -> bool:
    """Remove ``stack``; return whether anything of it was there.

    The manifest goes first: a removal that is interrupted leaves no stack that looks whole.  The
    packages are shared by all stacks and sites below one root; those in the lock of another
    environment stay.

    Raises:
        FabricproofError: Spack could not uninstall something.
    """
    with building(layout, stack.name, listen):
        manifest = layout.built(stack.name)
        environment = layout.environments / stack.name
        lock = environment / "spack.lock"
        was_there = manifest.exists() or lock.exists()
        # Before anything goes: without a Spack the packages would stay, and nobody know of them.
        spack = open_tool() if lock.exists() else None
        manifest.unlink(missing_ok=True)
        remove_modules(layout, stack.name)
        if spack is not None:
            _uninstall(environment, _only_here(lock, layout), spack, listen)
        shutil.rmtree(environment, ignore_errors=True)
    return was_there


def _hashes(lock: Path) -> set[str]:
    try:
        specs = json.loads(text_of(lock))["concrete_specs"]
        return {key for key, spec in specs.items() if not spec.get("external")}
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise ConfigError(
            "nothing says which packages this stack needs, so none can be uninstalled",
            source=str(lock),
            expected="a spack.lock",
            got=type(error).__name__,
            next_step=f"build stack {lock.parent.name} again, or remove this file",
        ) from None


def _only_here(lock: Path, layout: SpackLayout) -> list[str]:
    """Return the hashes of ``lock`` that no other environment below the root has in its own."""
    others = layout.root.glob("sites/*/environments/*/spack.lock")
    needed = {each for other in others if other != lock for each in _hashes(other)}
    return sorted(_hashes(lock) - needed)


def _uninstall(environment: Path, hashes: list[str], spack: Spack, listen: Listen) -> None:
    if not hashes:
        return
    names = [f"/{each}" for each in hashes]
    found = spack.call(["-e", str(environment), "find", "--format", "{hash}"])
    if found.status:
        raise failure_of("find", found)
    there = [name for name in names if name[1:] in found.output]
    if not there:
        return
    answer = spack.call(
        ["-e", str(environment), "uninstall", "-y", "--force", *there],
        on_line=lambda line: listen("remove", line),
    )
    if answer.status:
        raise failure_of("uninstall", answer)


def explain(seconds: Mapping[str, float]) -> str:
    """Return the wall time of the steps in one line."""
    steps = ", ".join(f"{name} {value:.0f} s" for name, value in seconds.items() if value >= 0.5)
    return steps or "under a second"
