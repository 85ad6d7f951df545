"""How the stacks that Spack builds stand, for ``stack list`` and ``stack remove``."""

from __future__ import annotations

from fabricproof.cli.build_display import Display
from fabricproof.cli.building import Place, chosen_stacks, site_and_layout, tool_and_mirror
from fabricproof.core.errors import FabricproofError, InputMissingError
from fabricproof.site import Site
from fabricproof.site.schema import StackSpec
from fabricproof.stacks.spack.build import Wishes, compose_for, why_not_whole
from fabricproof.stacks.spack.built import read_built
from fabricproof.stacks.spack.layout import Layout, module_name
from fabricproof.stacks.spack.remove import remove


def spack_records(site_name: str | None, place: Place) -> list[dict[str, str | None]]:
    """Return one record for each stack that Spack builds for the site; none without a site.

    Raises:
        FabricproofError: the site that was named cannot be loaded.
    """
    try:
        site, layout = site_and_layout(site_name, place)
    except InputMissingError:
        if site_name:
            raise
        return []
    return [_record(site, layout, stack) for stack in site.stacks if stack.spack]


def _record(site: Site, layout: Layout, stack: StackSpec) -> dict[str, str | None]:

    try:
        reason = why_not_whole(layout, compose_for(stack, layout, Wishes()))
        built = read_built(layout.built(stack.name))
    except FabricproofError as error:
        reason, built = str(error), None
    label = f"{stack.family} {stack.version} by Spack for {site.name}"
    state = "installed" if reason is None else "stale" if built else "absent"
    return {
        "name": stack.name,
        "label": f"{label}: {reason}" if reason else label,
        "family": stack.family,
        "version": stack.version,
        "module": built.module if built else module_name(stack.name),
        "state": state,
        "prefix": built.mpi.prefix if built else None,
        "answer": f"{built.mpi.telling}, OSU and IMB" if built and reason is None else None,
        "lock_digest": built.lock_digest if built else None,
    }


def remove_built(name: str, site_name: str | None, place: Place) -> bool:
    """Remove a stack that Spack built; False where it was not there.

    Raises:
        ConfigError: the site has no such stack, or Spack does not build it.
    """
    site, layout = site_and_layout(site_name, place)
    stack = chosen_stacks(site, (name,))[0]
    open_tool, _ = tool_and_mirror(layout, place)
    with Display(name) as display:
        return remove(stack, layout, open_tool, display.listen)
