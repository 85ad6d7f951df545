"""What faults came to that were made for real: ``live.jsonl``, a line for each draw.

The benchmarks ``faults_live.py``, ``pairs_live.py`` and ``nights_live.py`` write such lines; those
that are published lie beside this module, and :mod:`proof.page` counts them.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from importlib.resources import files


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


def read_live() -> tuple[LiveDraw, ...]:
    """Return the draws that are published."""
    text = (files("proof") / "live.jsonl").read_text(encoding="utf-8")
    return tuple(LiveDraw(**json.loads(line)) for line in text.splitlines())
