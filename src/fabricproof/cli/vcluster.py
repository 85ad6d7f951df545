"""``fabricproof vcluster``: hands over to the ``vcluster`` command, a package of its own.

Nothing of that package is imported.  What fabricproof knows of a virtual cluster is its command and
the files that docs/virtual-cluster.md lists.
"""

from __future__ import annotations

import os
import sys
from typing import NoReturn

import click

#: how the other command calls itself, and what it offers where no cluster can be had
_SPEAKS = {
    "VCLUSTER_PROGRAM": "fabricproof vcluster",
    "VCLUSTER_INSTEAD": "without root this machine can still measure with the site 'local' "
    "(two ranks, no Slurm)",
}


class _Verbatim(click.Command):
    """A command whose words are somebody else's to read, ``--help`` and ``--`` too."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Keep every word as it stands."""
        ctx.args = list(args)
        return ctx.args


@click.command("vcluster", cls=_Verbatim)
@click.pass_context
def command(context: click.Context) -> NoReturn:
    """A virtual Slurm cluster on this machine."""
    # -P: what lies in the working folder is not taken for the package.
    words = [sys.executable, "-P", "-m", "vcluster", *context.args]
    os.execve(sys.executable, words, {**os.environ, **_SPEAKS})  # noqa: S606
