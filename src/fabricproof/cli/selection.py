"""Which runs of a site are meant: the same words in every command."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from fabricproof.core.errors import ConfigError, ParseError
from fabricproof.core.hostlist import expand
from fabricproof.core.project import project_root
from fabricproof.job.run import workplace
from fabricproof.site import Site

if TYPE_CHECKING:
    from fabricproof.history.compare.sides import History
    from fabricproof.history.store import Store

#: as :func:`fabricproof.job.run.start.new_run_id` makes them
_RUN_ID = re.compile(r"\d{8}T\d{6}Z-\w+")


def nodes_named(text: str) -> tuple[str, ...]:
    """Return the nodes that a person names, ``n1,n[3-5]``.

    Raises:
        ConfigError: that is no list of nodes.
    """
    try:
        return expand(text)
    except ParseError:
        raise ConfigError("no list of nodes", expected="n1,n2 or n[1-4]", got=repr(text)) from None


def perflogs() -> Path:
    """Return the folder of all perflogs and records."""
    return workplace(project_root()).perflogs


def one_run(words: str, site: Site) -> str:
    """Return the identity of the run that ``words`` mean; of several the newest.

    Raises:
        InputMissingError: there is none.
        SideError: the words mean nothing.
    """
    if _RUN_ID.fullmatch(words):
        return words
    from fabricproof.report.gather import run_meant  # noqa: PLC0415 - start-up time

    return run_meant(words, site, workplace(project_root())).run_id


def runs_of(words: Sequence[str], site: Site) -> list[str]:
    """Return the identities of the runs that ``words`` mean, oldest first; tell what is left out.

    Raises:
        SideError: the words mean nothing.
        NothingComparedError: no run is meant by them.
    """
    from fabricproof.history.compare.sides import choose_side  # noqa: PLC0415 - start-up time

    _, history = history_of(site)
    chosen = choose_side(",".join(words), history)
    for note in chosen.notes:
        click.echo(f"fabricproof: {note}", err=True)
    return [run.run_id for run in chosen.side.runs]


def history_of(site: Site) -> tuple[Store, History]:
    """Return the runs of a site and all that sides are chosen by."""
    from fabricproof.history.compare.sides import History  # noqa: PLC0415 - start-up time
    from fabricproof.history.store import open_store  # noqa: PLC0415 - start-up time

    place = perflogs()
    store = open_store(place, site.name)
    return store, History.of(store, place, site.folder)
