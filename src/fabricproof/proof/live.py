"""What faults came to that were made for real: ``live.jsonl``, a line for each draw.

The benchmarks ``faults_live.py``, ``pairs_live.py`` and ``nights_live.py`` write such lines; those
that are published lie beside this module, and :mod:`fabricproof.proof.page` counts them.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from importlib.resources import files
from typing import Any

from fabricproof.history.stats.share import Share


@dataclass(frozen=True, kw_only=True)
class LiveDraw:
    """One fault, or none, on a virtual cluster or on guests.

    Attributes:
        fault: its title in the library; empty where nothing was at fault.
        by: what measured it: ``run`` (a check on one pair), ``nightly`` (a night of it), ``pairs
            run`` (a campaign of 16 nodes; with ``--for`` a soak), ``admit``, ``nights``
            (``compare``, ``trend`` or a baseline, of several of one pair).
        draw: where, and how strong.
        verdict: of the run; ``exit 69`` of one that ended without any; of a comparison its word.
        caught: whether that is a right one; of a run without a fault, whether nothing is red.
        blamed: whether who is at fault was blamed, and nobody else; None where one pair was
            measured, of which nobody can say it, or where there is nothing to blame.
        date: when, in UTC.
        load: processes that wanted a core when it began, averaged over a minute.
    """

    fault: str
    by: str
    draw: str
    verdict: str
    caught: bool
    blamed: bool | None
    date: str
    load: float

    def record(self) -> dict[str, Any]:
        """Return it as plain data."""
        return asdict(self)


def read_live() -> tuple[LiveDraw, ...]:
    """Return the draws that are published."""
    text = (files("fabricproof.proof") / "live.jsonl").read_text(encoding="utf-8")
    return tuple(LiveDraw(**json.loads(line)) for line in text.splitlines())


def caught_of(draws: Iterable[LiveDraw], fault: str) -> Share:
    """Return how many draws of a fault were caught."""
    mine = [each.caught for each in draws if each.fault == fault]
    return Share(hits=sum(mine), of=len(mine))


def blamed_of(draws: Iterable[LiveDraw], fault: str) -> Share:
    """Return how many draws of a fault were blamed right, of those that can tell."""
    mine = [each.blamed for each in draws if each.fault == fault and each.blamed is not None]
    return Share(hits=sum(mine), of=len(mine))
