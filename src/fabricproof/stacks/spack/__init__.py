"""Stacks that Spack builds: one environment for each MPI, locked with the site, verified, kept.

``spack-envs`` says what a stack is, ``site-configs/<site>/spack`` what the site has; this room
brings the two together, lets Spack build, and writes down what came out (:mod:`.built`).
"""

from __future__ import annotations

from fabricproof.stacks.spack.builder import (
    build,
    building,
    explain,
    remove,
    why_not_whole,
)
from fabricproof.stacks.spack.environment.compose import PACKAGE_OF, compose
from fabricproof.stacks.spack.environment.lock import is_of_lock, kept_lock, lock
from fabricproof.stacks.spack.installation.proof import is_below
from fabricproof.stacks.spack.installation.record import Built, read_built, without_modules
from fabricproof.stacks.spack.layout import SpackLayout, layout_for, module_name, sha256_of
from fabricproof.stacks.spack.tool import Spack, fetch_spack, find_spack, open_spack

__all__ = [
    "PACKAGE_OF",
    "Built",
    "Spack",
    "SpackLayout",
    "build",
    "building",
    "compose",
    "explain",
    "fetch_spack",
    "find_spack",
    "is_below",
    "is_of_lock",
    "kept_lock",
    "layout_for",
    "lock",
    "module_name",
    "open_spack",
    "read_built",
    "remove",
    "sha256_of",
    "why_not_whole",
    "without_modules",
]
