"""A real Slurm: the virtual cluster that FABRICPROOF_VCLUSTER names (``vcluster`` by default).

These tests bring nothing up and take nothing down:  fabricproof vcluster up   first, then
pytest -m slurm tests/slurm.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from slurm_session import Session, bandwidth

from fabricproof.core.errors import FabricproofError
from fabricproof.job.run import check_scheduler, session_environment, workplace
from fabricproof.site import load_site

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="session")
def session(tmp_path_factory: pytest.TempPathFactory) -> Session:
    """Give the session of a cluster that is up, its perflogs in a folder of their own."""
    cluster = os.environ.get("FABRICPROOF_VCLUSTER", "vcluster")
    site = load_site("vcluster")
    try:
        check_scheduler(site, session_environment(site, workplace(ROOT), "probe"))
    except FabricproofError as error:
        pytest.skip(f"no cluster {cluster!r} is up: {error}")
    folder = tmp_path_factory.mktemp("slurm")
    return Session(
        environment={
            **os.environ,
            "FABRICPROOF_VCLUSTER": cluster,
            # Not below /tmp: every node has its own.
            "FABRICPROOF_WORK": str(ROOT / "work" / "slurm-tests"),
            "FABRICPROOF_PERFLOGS": str(folder),
        }
    )


@pytest.fixture(scope="session")
def clean(session: Session) -> dict[str, dict[str, Any]]:
    """Give the legs of one bandwidth check on a whole cluster, by path."""
    return bandwidth(session)
