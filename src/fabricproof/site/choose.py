"""Which site this is, and where the project lies."""

from __future__ import annotations

import os
import socket
from pathlib import Path

from fabricproof.core.errors import InputMissingError
from fabricproof.site.load import load_site, site_folders
from fabricproof.site.model import Site

#: names the site; without it the host name decides
SITE_VARIABLE = "FABRICPROOF_SITE"


def project_root() -> Path:
    """Return the folder that holds ``checks``, ``site-configs`` and ``perflogs``."""
    return Path(__file__).resolve().parents[3]


def choose_site() -> Site:
    """Return the site that the environment names, else the one that knows this host's name.

    Raises:
        InputMissingError: neither does; the message says how to choose.
    """
    named = os.environ.get(SITE_VARIABLE)
    if named:
        return load_site(named)
    host = socket.gethostname()
    for folder in site_folders():
        site = load_site(str(folder))
        if host in site.spec.hostnames or host.split(".")[0] in site.spec.hostnames:
            return site
    known = ", ".join(folder.name for folder in site_folders())
    raise InputMissingError(
        f"no site knows this host ({host})",
        expected=f"{SITE_VARIABLE} set to one of: {known}",
        next_step=f"export {SITE_VARIABLE}=NAME, or list the host under [site] hostnames",
    )
