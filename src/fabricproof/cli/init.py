"""``fabricproof init``: a folder for a site's own files, beside an installed fabricproof."""

from __future__ import annotations

from pathlib import Path

import click

from fabricproof.site.lay_out import Laid, lay_out
from fabricproof.stacks.environment import shell_word


@click.command("init")
@click.argument("folder", metavar="DIR", type=click.Path(file_okay=False, path_type=Path))
def command(folder: Path) -> None:
    r"""Lay out DIR for a site: site files, checks of its own, the night, env.sh.

    For a fabricproof that was installed as a package; a checkout is laid out already.  Checks and
    Spack recipes stay in the package, so that an upgrade is a new version and not a merge.  What
    is there is never touched; called again, it says which files differ from this version's.

    \b
    python3 -m venv /shared/fabric/.venv
    /shared/fabric/.venv/bin/pip install fabricproof
    /shared/fabric/.venv/bin/fabricproof init /shared/fabric

    Exit status: 0 laid out; 69 not installed in an environment of its own; 74 cannot write; 78 a
    checkout.
    """
    laid = lay_out(folder)
    of = {state: [name for name, each in laid.items() if each is state] for state in Laid}
    click.echo(f"{folder}: {len(of[Laid.WRITTEN])} written, {len(of[Laid.SAME])} as before")
    if of[Laid.KEPT]:
        click.echo(f"kept, though this version's differ: {', '.join(of[Laid.KEPT])}")
    click.echo(f"next: cd {shell_word(str(folder))} && . ./env.sh && fabricproof site init NAME")
