"""What the running ReFrame session says of the site, for the check classes."""

from __future__ import annotations

import functools
import os

import reframe.core.runtime as rt
from reframe.core.exceptions import ReframeFatalError

from fabricproof.core.errors import ConfigError, FabricproofError, InputMissingError
from fabricproof.job.run import NODES_VARIABLE, new_run_id
from fabricproof.physics import find_link
from fabricproof.site import FabricSpec, Site, choose_site, load_site

#: one identity for all checks of one session
RUN_VARIABLE = "FABRICPROOF_RUN_ID"

#: technologies that administrators select by tag; a site without one lists the checks as skipped
TAGGED_TECHNOLOGIES = ("ethernet", "infiniband")

#: stands for the fabrics of a session without a site
NO_SITE = "no-site"


@functools.cache
def current_site() -> Site:
    """Return the site of this ReFrame session.

    Raises:
        InputMissingError: there is none of the name of ReFrame's system.
        ConfigError: it is wrong.
    """
    name = rt.runtime().system.name
    try:
        chosen = choose_site()
    except InputMissingError:
        return load_site(name)
    return chosen if chosen.name == name else load_site(name)


@functools.cache
def why_no_site() -> FabricproofError | None:
    """Return why nothing can be measured in this ReFrame session; None if it can.

    Nothing may raise while ReFrame loads a check file: it leaves the file out with a warning, and
    a run without its checks ends well (4.10, ``frontend/loader.py``).  So each check fails with
    this, whatever options selected it.
    """
    hint = "fabricproof run --site SITE [-c FOLDER], or site init"
    try:
        name = rt.runtime().system.name
    except ReframeFatalError:  # whoever imports a check without ReFrame: a test, a page's example
        return ConfigError("these checks run in a session of ReFrame", next_step=hint)
    try:
        site = current_site()
    except FabricproofError as error:
        return ConfigError(
            "these checks need a site of fabricproof",
            source=error.source,
            expected=f"a folder with a site.toml for ReFrame's system {name!r}",
            got=error.problem,
            next_step=hint,
        )
    # With --system=NAME:PARTITION ReFrame has that one alone.
    partitions = rt.runtime().system.partitions
    named = {each.name for each in partitions}
    needed = {
        (each.name, f"fabric-{fabric}")
        for each in site.partitions
        if each.name in named
        for fabric in each.fabrics
    }
    there = {
        (each.name, feature)
        for each in partitions
        if any("mpi" in environ.features for environ in each.environs)
        for feature in each.features
    }
    if needed and needed <= there:
        return None
    lacking = " and ".join(min(needed - there, default=(site.partitions[0].name, "")))
    return ConfigError(
        f"ReFrame's system {name!r} has no partition, or not the fabrics, of its site.toml",
        source=str(site.folder / "site.toml"),
        expected=f"{lacking} in its partitions and their features, mpi in its environments'",
        got=f"{sorted(named)} with {sorted(there)}",
        next_step=hint,
    )


def technology(spec: FabricSpec) -> str:
    """Return the tag of a fabric: ``infiniband`` for verbs, RoCE included; else its link's own."""
    if spec.link is None:
        return "memory"
    link = find_link(spec.link)
    # Soft-RoCE is verbs whether its protocol is stated or not: no check knows that its HCA is soft.
    if link.is_soft or spec.protocol in {"rocev2", "ib"}:
        return "infiniband"
    return link.technology


def link_name(spec: FabricSpec) -> str:
    """Return the declared link of a fabric in the project's spelling; empty where it has none."""
    return find_link(spec.link).name if spec.link is not None else ""


def is_roce(spec: FabricSpec) -> bool:
    """Tell whether a fabric is RDMA over Ethernet, by its protocol or because its link is soft."""
    return spec.protocol == "rocev2" or (spec.link is not None and find_link(spec.link).is_soft)


def fabric_choices() -> list[str]:
    """Return the fabrics to measure, and ``no-<technology>`` for each the site does not have.

    The second kind is listed and skipped with a reason, so that ``-t infiniband`` on a site
    without InfiniBand says so instead of selecting nothing.
    """
    if why_no_site():
        return [NO_SITE]
    site = current_site()
    there = {technology(spec) for spec in site.fabrics}
    absent = [f"no-{name}" for name in TAGGED_TECHNOLOGIES if name not in there]
    return [spec.name for spec in site.fabrics] + absent


def run_id() -> str:
    """Return the identity of this session, from the environment or made once and put there."""
    if not os.environ.get(RUN_VARIABLE):
        os.environ[RUN_VARIABLE] = new_run_id()
    return os.environ[RUN_VARIABLE]


def asked_nodes() -> tuple[str, ...]:
    """Return the nodes that this session is to measure on; none: any will do.

    A confirmation looks at a red pair again where it was red, and with other partners.
    """
    return tuple(filter(None, os.environ.get(NODES_VARIABLE, "").split(",")))


def why_one_rail(fabric: str) -> str:
    """Return why ``fabric`` has nothing for several rails; empty where it has them."""
    one_rail = len(current_site().fabric_spec(fabric).rails) < 2
    return f"fabric {fabric} has one rail" if one_rail else ""
