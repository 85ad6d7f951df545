"""Real verbs: the cluster of guests that FABRICPROOF_VCLUSTER names (``vcluster`` by default).

These tests bring nothing up and take nothing down:  fabricproof vcluster up --kind rdma   first,
then  pytest -m rdma tests/rdma.  They put faults into the cluster and take them out again, so that
nothing else should measure on it meanwhile.  Without such a cluster they are skipped; where it is
named and does not answer, they fail.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from rdma_session import ROOT, SITE, Session, unavailable

from fabricproof.core.errors import FabricproofError
from fabricproof.job.run import check_scheduler, session_environment, workplace
from fabricproof.site import load_site
from vcluster import state
from vcluster.paths import Paths
from vcluster.plan import RDMA


@pytest.fixture(scope="session")
def session(tmp_path_factory: pytest.TempPathFactory) -> Session:
    """Give the session of a cluster of guests that is up, its perflogs in a folder of their own."""
    cluster = os.environ.get("FABRICPROOF_VCLUSTER", "vcluster")
    known = state.load(Paths(cluster))
    if known is None or known.plan.kind != RDMA:
        kind = "is not up" if known is None else f"is of kind {known.plan.kind}, not {RDMA}"
        unavailable(f"the virtual cluster {cluster!r} {kind}: fabricproof vcluster up --kind rdma")
    site = load_site(SITE)
    try:
        check_scheduler(site, session_environment(site, workplace(ROOT), "probe"))
    except FabricproofError as error:
        unavailable(f"the virtual cluster {cluster!r} does not answer: {error}")
    assert not known.faults, f"faults are in place before any test: {known.faults}"
    return Session(
        cluster=cluster,
        environment={
            **os.environ,
            "FABRICPROOF_VCLUSTER": cluster,
            # Guests see the project's folder and no other.
            "FABRICPROOF_WORK": str(ROOT / "work" / "rdma-tests"),
            "FABRICPROOF_PERFLOGS": str(tmp_path_factory.mktemp("rdma")),
        },
    )


@pytest.fixture
def copied_site(tmp_path: Path) -> Path:
    """Give a folder for a site that a test writes."""
    folder = tmp_path / "site"
    folder.mkdir()
    return folder
