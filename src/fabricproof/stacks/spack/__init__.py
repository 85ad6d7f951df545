"""Stacks that Spack builds: one environment for each MPI, locked with the site, proven, kept.

``spack-envs`` says what a stack is, ``site-configs/<site>/spack`` what the site has.  Their inputs
have a digest; the lock that is solved from them, what is installed and the record carry it.
"""

from __future__ import annotations

from fabricproof.stacks.spack.builder import build, building, module_name, remove, why_not_built
from fabricproof.stacks.spack.environment import (
    PACKAGE_OF,
    Environment,
    SpackLayout,
    compose,
    layout_for,
    lock,
    why_stale,
)
from fabricproof.stacks.spack.proof import Built, is_below, read_built, sha256_of
from fabricproof.stacks.spack.tool import Spack, fetch_spack, find_spack, open_spack

__all__ = [
    "PACKAGE_OF",
    "Built",
    "Environment",
    "Spack",
    "SpackLayout",
    "build",
    "building",
    "compose",
    "fetch_spack",
    "find_spack",
    "is_below",
    "layout_for",
    "lock",
    "module_name",
    "open_spack",
    "read_built",
    "remove",
    "sha256_of",
    "why_not_built",
    "why_stale",
]
