"""Campaigns over a machine that does not exist."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from made_machine import Machine

from fabricproof.pairs.campaign import launch
from fabricproof.pairs.campaign.launch import Means, conduct
from fabricproof.pairs.campaign.plan import Campaign, save
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
    """Run a campaign on a made machine: one job after the other, each with the nodes it can get."""
    subject = resolve(site, site.partition("compute"), site.stack("openmpi5"))
    monkeypatch.setattr(launch, "render_launch", lambda *_: "")

    def run(machine: Machine, campaign: Campaign, *, jobs: int = 1) -> tuple[Outcome, Path]:
        monkeypatch.setattr(launch, "run_script", machine.run_script)
        save(tmp_path, campaign)
        for _ in range(jobs):
            means = Means(
                site=site, subject=subject, folder=tmp_path, environment={},
                nodes=machine.free & set(campaign.nodes), say=lambda text: None,
            )  # fmt: skip
            outcome = conduct(campaign, means)
            campaign = outcome.campaign
        return outcome, tmp_path

    return run
