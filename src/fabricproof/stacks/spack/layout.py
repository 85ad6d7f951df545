"""Where everything of the Spack-built stacks of one site lies.

Below the root of all stacks (``.stacks``, which every node must see) there is one folder,
``spack``.  The install tree and the downloads in it are shared by all sites of the machine: Spack
addresses builds by their hash, so a second site pays only for what differs.
"""

from __future__ import annotations

import hashlib
import time
from dataclasses import dataclass
from pathlib import Path

from fabricproof.core.project import recipes_folder
from fabricproof.stacks.environment import stacks_root


@dataclass(frozen=True, kw_only=True)
class SpackLayout:
    """The folders of one site.

    Attributes:
        root: what all sites share.
        recipes: ``spack-envs`` of the project.
        site_folder: the site's own folder, with ``spack`` in it.
    """

    root: Path
    site: str
    recipes: Path
    site_folder: Path

    @property
    def spack_home(self) -> Path:
        """The Spack that fabricproof fetched, where the site has none of its own."""
        return self.root / "home"

    @property
    def install_tree(self) -> Path:
        """What Spack has installed, for all sites."""
        return self.root / "install"

    @property
    def cache(self) -> Path:
        """Spack's own cache, its downloads and its lock files."""
        return self.root / "cache"

    @property
    def mine(self) -> Path:
        """What only this site has."""
        return self.root / "sites" / self.site

    @property
    def environments(self) -> Path:
        """The copy of the recipes that Spack works in."""
        return self.mine / "environments"

    @property
    def modules(self) -> Path:
        """Lmod trees, one folder for each stack."""
        return self.mine / "modules"

    @property
    def modulefiles(self) -> Path:
        """One module for each stack, which loads the stack's own out of :attr:`modules`."""
        return self.mine / "modulefiles"

    @property
    def logs(self) -> Path:
        """What Spack printed, one file for each build."""
        return self.mine / "logs"

    @property
    def locks(self) -> Path:
        """The locks, which are committed with the site."""
        return self.site_folder / "spack" / "locks"

    def new_log(self, stack: str) -> Path:
        """Return a file for what Spack prints from now on."""
        return self.logs / f"{stack}-{time.strftime('%Y%m%dT%H%M%S')}.log"

    def built(self, stack: str) -> Path:
        """Return the file that says what was built for ``stack``; see :mod:`.built`."""
        return self.mine / "built" / f"{stack}.json"


def module_name(stack: str) -> str:
    """Return the module that loads all of a stack, the same whatever Spack calls its MPI.

    Not the stack's bare name: it may be the MPI's own, and a module cannot load its namesake.
    """
    return f"stack-{stack}"


def layout_for(site: str, site_folder: Path, root: Path | None = None) -> SpackLayout:
    """Return the layout of ``site``; ``root`` is found where None."""
    return SpackLayout(
        root=(root or stacks_root()) / "spack",
        site=site,
        recipes=recipes_folder(),
        site_folder=site_folder,
    )


def sha256_of(path: Path) -> str:
    """Return the SHA-256 of a file, hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
