"""A machine that does not exist, and a campaign over it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np
from made_kernel import Delay, Edit, Lost, Rate, write_record

from fabricproof.pairs.campaign import job
from fabricproof.pairs.campaign.conduct import planned_rounds
from fabricproof.pairs.campaign.further import all_on_one
from fabricproof.pairs.campaign.ledger import Campaign, load
from fabricproof.pairs.campaign.nodes import Standing
from fabricproof.pairs.schedule import Order
from fabricproof.site import Site

NODES = tuple(f"vc{number}" for number in range(1, 9))
HEALTHY = 22.5  # MB/s over a rail of 200 Mb/s


def planned(
    site: Site,
    *,
    is_full: bool = False,
    net_paths: Iterable[Any] = (("rail0",),),
    nodes: tuple[str, ...] = NODES,
) -> Campaign:
    chosen = tuple(net_paths)
    return Campaign(
        id="test", site=str(site.folder), site_name=site.name, partition="compute",
        fabric="eth0", stack="openmpi5", nodes=nodes, leaf_of=(), out={}, skipped={},
        net_paths=chosen, size=65536, seconds=0.5, both_ways=False, is_full=is_full,
        rounds=planned_rounds(
            all_on_one(len(nodes)), len(chosen), is_full=is_full, order=Order.LEAFWISE, seed=3
        ),
    )  # fmt: skip


class Machine:
    """Slurm and the kernel of a machine with faults; ``launched`` counts what was measured."""

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

    def submit(self, folder: Path, *_: Any) -> str:
        return "7"

    def follow(self, folder: Path, *_: Any, **__: Any) -> job.Ended:
        net_path = json.loads((folder / "launch.json").read_text())["net_path"]
        rounds = self.dies_after.pop(0) if self.dies_after else 999
        rails = self.rails or load(folder.parent).net_paths[net_path]
        write_record(
            folder, self.rate, rails,
            rounds=rounds, taken=self.taken, delay=self.delay, lost=self.lost, edit=self.edit,
        )  # fmt: skip
        if rounds != 999:
            self.free -= self.lost_on_death
        return job._ended(folder, "" if rounds == 999 else "killed")

    def standing(self) -> Standing:
        return Standing(free=tuple(sorted(self.free)), busy=(), out={})


def healthy(source: str, destination: str) -> float:
    scatter = np.random.default_rng([ord(source[-1]), ord(destination[-1])]).normal()
    return HEALTHY * (1 + 0.01 * float(np.clip(scatter, -2, 2)))
