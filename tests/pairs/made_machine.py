"""A machine that does not exist, and a campaign over it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from made_kernel import Delay, Edit, Lost, Rate, write_record

from fabricproof.pairs.campaign.plan import Campaign, load, planned_rounds
from fabricproof.site import Site

NODES = tuple(f"vc{number}" for number in range(1, 9))
HEALTHY = 22.5  # MB/s over a rail of 200 Mb/s


def planned(
    site: Site,
    *,
    is_full: bool = False,
    net_paths: Iterable[Any] = (("rail0",),),
    nodes: tuple[str, ...] = NODES,
    first_rounds: int = 4,
    **more: Any,
) -> Campaign:
    campaign = Campaign(
        id="test", site=str(site.folder), site_name=site.name, partition="compute",
        fabric="eth0", stack="openmpi5", nodes=nodes, out={}, skipped={},
        net_paths=tuple(net_paths), size=65536, seconds=0.5, is_full=is_full, seed=3, **more,
    )  # fmt: skip
    return replace(campaign, rounds=planned_rounds(campaign, first_rounds=first_rounds))


class Machine:
    """The nodes of a job and the kernel of a machine with faults."""

    def __init__(self, rate: Rate) -> None:
        self.rate = rate
        self.rails: tuple[str, ...] | None = None
        self.taken: Callable[[str], float] | None = None
        self.delay: Delay = lambda *_: 20.0
        self.lost: Lost = lambda *_: 0
        self.edit: Edit | None = None
        self.dies_after: list[int] = []
        self.free = set(NODES)
        self.lost_on_death: set[str] = set()

    def run_script(self, folder: Path, *_: Any) -> None:
        """Be the script of a launch: of one that has not all its nodes nothing comes."""
        nodes = {
            line.split()[1]
            for line in (folder / "schedule").read_text().splitlines()
            if line.startswith("node ")
        }
        if not nodes <= self.free:
            return
        net_path = json.loads((folder / "launch.json").read_text())["net_path"]
        rounds = self.dies_after.pop(0) if self.dies_after else 999
        rails = self.rails or load(folder.parent).net_paths[net_path]
        write_record(
            folder, self.rate, rails,
            rounds=rounds, taken=self.taken, delay=self.delay, lost=self.lost, edit=self.edit,
        )  # fmt: skip
        if rounds != 999:
            self.free -= self.lost_on_death


def healthy(source: str, destination: str) -> float:
    scatter = np.random.default_rng([ord(source[-1]), ord(destination[-1])]).normal()
    return HEALTHY * (1 + 0.01 * float(np.clip(scatter, -2, 2)))
