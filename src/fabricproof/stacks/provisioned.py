"""Refuse a stack that is to be installed by fabricproof, and that its catalogue does not have.

The site's loader and the catalogue know nothing of each other; what knows both asks here before
any job starts.
"""

from __future__ import annotations

from fabricproof.core.errors import ConfigError
from fabricproof.site import Site
from fabricproof.site.locate import line_of, positions
from fabricproof.stacks.catalog import load_catalog


def check_provisioned(site: Site) -> None:
    """Refuse ``provisioned`` where ``fabricproof stack install`` has no stack of that name.

    Args:
        site: loaded; its ``site.toml`` is read again for the line.

    Raises:
        ConfigError: the first such stack, with file, line and the names there are.
    """
    known = load_catalog().stacks
    for index, stack in enumerate(site.stacks):
        if not stack.provisioned or stack.installed_as in known:
            continue
        path = site.folder / "site.toml"
        lines = positions(path.read_text(encoding="utf-8-sig"))
        raise ConfigError(
            f"stack {stack.name!r}: fabricproof stack install knows no such stack",
            source=str(path),
            line=line_of(("stacks", index, "provisioned"), lines),
            expected=f"one of {', '.join(known)}",
            got=repr(stack.installed_as),
            next_step='provisioned = "NAME" with one of them, or leave the line out',
        )
