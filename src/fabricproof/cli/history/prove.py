"""``fabricproof prove``: what the rules of today say of a site's own nights."""

from __future__ import annotations

import json
import sys

import click

from fabricproof.cli import options
from fabricproof.cli.selection import perflogs, runs_of
from fabricproof.core.errors import ExitStatus
from fabricproof.history.compare.facts import Machines
from fabricproof.history.prove.model import proof_lines, proof_record
from fabricproof.history.prove.site import prove_site
from fabricproof.history.store import open_store
from fabricproof.site import site_of


@click.command(name="prove")
@click.argument("runs", nargs=-1, metavar="[RUNS...]")
@options.site
@options.everything
@options.as_json
def command(runs: tuple[str, ...], site_name: str | None, whole: bool, as_json: bool) -> None:
    r"""Say how often the rules would have called you, and from which loss on they do.

    First each night of the past is judged as if it were the newest, by what was known before it.
    Then the nights since the last step are put into other orders: whatever is red there is red
    falsely.  Last, one rail of one node is made slower in the newest night, and in the newest
    three, by more and more: from which loss on that is noticed, in your own noise.

    RUNS are named as for compare; all by default.  Nothing is submitted and nothing kept.  Takes
    half a minute for 90 nights of 50 quantities, minutes for thousands.

    \b
    fabricproof prove
    fabricproof prove last:90 --json

    Exit status: 0 told; 1 clean nights are red more often than promised; 6 too few nights of one
    level; 65 damaged records; 66 no runs.
    """
    site = site_of(site_name)
    chosen = runs_of(runs, site) if runs else []
    store = open_store(perflogs(), site.name)
    machines = Machines.of_site(perflogs(), site.name)
    proof = prove_site(store, chosen, machines, _tell)
    if as_json:
        click.echo(json.dumps(proof_record(proof), indent=1))
    else:
        click.echo("\n".join(proof_lines(proof, verbose=whole)))
    if proof.shuffled is None:
        sys.exit(int(ExitStatus.NOTHING_JUDGED))
    if proof.shuffled.broken():
        sys.exit(int(ExitStatus.FAIL))


def _tell(what: str, done: int, of: int) -> None:
    if sys.stderr.isatty():
        click.echo(f"\r{what} {done} of {of} " + "\n" * (done == of), nl=False, err=True)
