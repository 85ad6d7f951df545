"""What a stack of the site is on this machine: what Spack built, what it runs in, who it is."""

from __future__ import annotations

import functools
import json
import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from fabricproof.core.provenance import SHOWN_DIGITS, StackIdentity, digest_of
from fabricproof.job.leg import Leg
from fabricproof.rfm.legs.programs import has_own
from fabricproof.site import Site, StackSpec
from fabricproof.stacks.catalog import load_catalog, stacks_root
from fabricproof.stacks.container import image_file
from fabricproof.stacks.environment import shell_values, shell_word
from fabricproof.stacks.install import read_stamp
from fabricproof.stacks.programs import IMB_HOME
from fabricproof.stacks.spack import (
    Built,
    SpackLayout,
    layout_for,
    module_name,
    read_built,
    sha256_of,
    without_modules,
)

#: what nobody says of a stack that is not ours
UNSAID = "not declared"


def spack_stacks(site: Site) -> tuple[StackSpec, ...]:
    """Return the stacks of ``site`` that Spack builds."""
    return tuple(stack for stack in site.stacks if stack.spack is not None)


def layout_of(site: Site) -> SpackLayout:
    """Return where the Spack-built stacks of ``site`` lie."""
    return layout_for(site.name, site.folder)


def built_of(site: Site, stack: StackSpec) -> Built | None:
    """Return what Spack built for ``stack``; None where nothing was, or where it is not Spack's.

    Raises:
        ConfigError: the record of the build is damaged.
    """
    return read_built(layout_of(site).built(stack.name)) if stack.spack is not None else None


def modules_of(site: Site, stack: StackSpec) -> list[str]:
    """Return the modules to load for a run on a Spack-built ``stack``, as words for a shell.

    Its own module is named after the stack, whatever Spack calls the MPI's.
    """
    if site.spec.modules_system == "nomod":
        return [shell_word(each) for each in stack.modules]
    return [shell_word(each) for each in (*stack.modules, module_name(stack.name))]


def variables_of(site: Site, stack: StackSpec, built: Built | None) -> dict[str, str]:
    """Return what stands behind ``export NAME=`` for a run on a Spack-built ``stack``.

    The site's variables win.  Where there are no modules, PATH leads to the MPI and the loader
    finds the library that the programs were verified to load.

    Raises:
        ConfigError: there are no modules, and the MPI's own programs are not found.
    """
    if site.spec.modules_system != "nomod" or built is None:
        return shell_values(stack.environment, {})
    environment = without_modules(built, stack.family, str(site.folder / "site.toml"))
    return shell_values({**environment.settings, **stack.environment}, environment.prepend)


def identity(site: Site, stack: StackSpec, suite: str) -> StackIdentity:
    """Return the identity of ``stack`` as it stands now, with the package that has ``suite``.

    Raises:
        ConfigError: the record of the build is damaged.
    """
    if stack.spack is not None:
        return _built_identity(built_of(site, stack), suite)
    if stack.provisioned:
        found = _wheel_identity(stack.installed_as, suite)
        return _with_own_programs(found, stack.suites[suite]) if has_own(stack, suite) else found
    return _declared_identity(stack, suite)


def _built_identity(built: Built | None, suite: str) -> StackIdentity:
    if built is None:
        return StackIdentity(
            origin="spack", digest="", mpi="not built", program="", compiler="", target=""
        )
    package = built.programs.get(suite)
    return StackIdentity(
        origin="spack",
        digest=built.lock_digest,
        mpi=built.mpi.spec,
        program=package.spec if package else "",
        compiler=built.compiler,
        target=built.target,
        library=file_digest(Path(built.library))[:SHOWN_DIGITS],
    )


def file_digest(path: Path) -> str:
    """Return the SHA-256 of a file as it stands now, hexadecimal; empty where it is gone.

    A site's own MPI may be updated in its place, and keep its name and its version.
    """
    try:
        facts = path.stat()
        return _digest(path, facts.st_ino, facts.st_size, facts.st_mtime_ns)
    except OSError:
        return ""


@functools.cache
def _digest(path: Path, *_state: int) -> str:
    """Return the digest of ``path``, read once for each state that it was seen in."""
    return sha256_of(path)


def _wheel_identity(name: str, suite: str) -> StackIdentity:
    entry = load_catalog().find(name)
    pins = _pins(name)
    packages = [str(each) for each in pins.get("wheels", [])] if pins else []
    mpi = [each for each in packages if not each.startswith("mpi4py")]
    home = _pins(IMB_HOME).get("wheels", []) if suite == "imb" else packages[-1:]
    return StackIdentity(
        origin="wheels",
        digest=digest_of(pins) if pins else "",
        mpi=" ".join(mpi) or entry.label,
        program=" ".join(str(each) for each in home if suite != "imb" or "mpi4py" not in str(each)),
        compiler="as the wheels were built",
        target=os.uname().machine,
    )


def _with_own_programs(found: StackIdentity, folder: str) -> StackIdentity:
    """Return the identity of a stack from wheels whose programs the site built itself."""
    digest = digest_of([found.digest, folder]) if found.digest else ""
    return replace(found, digest=digest, program=folder, compiler=UNSAID)


def binary_digest(leg: Leg) -> str:
    """Return the SHA-256 of the program that a leg runs, hexadecimal; empty where nobody can say.

    Of a port of mpi4py it is the script.  A leg whose words begin with a script of ours names its
    program in its environment.  One found by PATH may be another on each node, one in an image is
    not to be read here.
    """
    if leg.container is not None or not leg.commands:
        return ""
    words = [Path(each) for each in leg.commands[0]]
    scripts = [each for each in words if each.suffix == ".py"]
    named = Path(leg.environment.get("FABRICPROOF_PROGRAM", words[0]))
    program = scripts[-1] if scripts else named
    return file_digest(program) if program.is_absolute() else ""


def _pins(name: str) -> Mapping[str, list[object]]:
    stamp = read_stamp(stacks_root() / name)
    pins = stamp.get("pins") if stamp else None
    return pins if isinstance(pins, dict) else {}


def image_identity(image: str) -> tuple[str, ...]:
    """Return which image it is: its path with the SHA-256 of its file, or the reference alone.

    Of a folder, and of a file that is not to be read here, nobody knows more than the path.
    """
    path = image_file(image)
    digest = file_digest(path) if path is not None and path.is_file() else ""
    return (image, f"sha256:{digest}") if digest else (image,)


def _declared_identity(stack: StackSpec, suite: str) -> StackIdentity:
    declared = stack.model_dump(include={"family", "version", "modules", "suites", "environment"})
    image: tuple[str, ...] = ()
    if stack.container is not None:
        image = ("in", *image_identity(stack.container.image))
        declared["container"] = [*image, stack.container.runtime, *stack.container.options]
    return StackIdentity(
        origin="declared",
        digest=digest_of(json.loads(json.dumps(declared))),
        mpi=" ".join([f"{stack.family}@{stack.version}", *stack.modules, *image]),
        program=stack.suites.get(suite, ""),
        compiler=UNSAID,
        target=UNSAID,
    )
