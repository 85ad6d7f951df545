"""A site whose stacks are Intel MPI in containers that bubblewrap makes; for live tests."""

from __future__ import annotations

import re
import shutil
from collections.abc import Mapping
from pathlib import Path

from fabricproof.stacks.environment import stacks_root

#: a root of its own with the machine's /usr for its image; more words of bubblewrap may follow
ENTER = (
    "bwrap --tmpfs / --ro-bind {image} /usr --ro-bind /etc /etc --symlink usr/bin /bin "
    "--symlink usr/lib /lib --symlink usr/lib64 /lib64 --proc /proc --dev /dev "
    f"--ro-bind {stacks_root() / 'intelmpi'} {stacks_root() / 'intelmpi'} "
    "--bind {folder} {folder}"
)

_STACK = """
[[stacks]]
name = "{name}"
family = "intelmpi"
version = "2021.18.1"
suites = {{ imb = "{stack}/bin" }}
environment = {{ I_MPI_ROOT = "{stack}", LD_LIBRARY_PATH = "{lib}", FI_PROVIDER_PATH = "{lib}" }}

[stacks.container]
runtime = "{runtime}"
image = "/usr"
library = "{lib}/libmpi.so.12"
"""


def write_site(folder: Path, given: Path, runtimes: Mapping[str, str]) -> None:
    """Write into a folder the site ``given``, with a stack for each runtime, by its name."""
    head = (given / "site.toml").read_text().partition("[[stacks]]")[0]
    head = re.sub(r"(?m)^stacks = .*$", f"stacks = {[*runtimes]}", head)
    stack = stacks_root() / "intelmpi"
    stacks = (
        _STACK.format(name=name, stack=stack, lib=stack / "lib", runtime=runtime)
        for name, runtime in runtimes.items()
    )
    (folder / "site.toml").write_text(head + "".join(stacks))
    shutil.copy(given / "fabric.toml", folder)
