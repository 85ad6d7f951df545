"""Campaigns over a machine that does not exist."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from made_machine import Machine

from fabricproof.pairs.campaign import conduct as conducted
from fabricproof.pairs.campaign import job
from fabricproof.pairs.campaign.conduct import Means, conduct
from fabricproof.pairs.campaign.ledger import Campaign, save
from fabricproof.pairs.campaign.verdict import Outcome
from fabricproof.site import Site, load_site
from fabricproof.stacks.stack import resolve


@pytest.fixture(scope="module")
def site() -> Site:
    return load_site("vcluster")


@pytest.fixture
def climb(
    tmp_path: Path, site: Site, monkeypatch: pytest.MonkeyPatch
) -> Callable[..., tuple[Outcome, Path]]:
    """Run a campaign on a made machine."""
    subject = resolve(site, site.partition("compute"), site.stack("openmpi5"))

    def run(machine: Machine, campaign: Campaign) -> tuple[Outcome, Path]:
        monkeypatch.setattr(conducted, "submit", machine.submit)
        monkeypatch.setattr(conducted, "follow", machine.follow)
        monkeypatch.setattr(conducted, "prepare", _prepare)
        means = Means(
            site=site, subject=subject, folder=tmp_path, environment={},
            standing=machine.standing, say=lambda text: None,
        )  # fmt: skip
        save(tmp_path, campaign)
        return conduct(campaign, means), tmp_path

    return run


def _prepare(folder: Path, subject: Any, net_path: Any, plan: Any) -> None:
    (folder / "schedule").write_text(job.render_schedule(plan))
