"""Remove a built stack: its manifest first, then modules and packages that nobody else needs."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

from fabricproof.core.errors import ConfigError
from fabricproof.core.records import text_of
from fabricproof.site import StackSpec
from fabricproof.stacks.spack.builder import Listen, building
from fabricproof.stacks.spack.failure import failure_of
from fabricproof.stacks.spack.installation.modules import remove_modules
from fabricproof.stacks.spack.layout import SpackLayout
from fabricproof.stacks.spack.tool import Spack


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
