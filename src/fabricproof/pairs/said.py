"""The records of what a judged matrix says, and the words that they share."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from fabricproof.core.plain import plain
from fabricproof.pairs.blame.judged import Judged, WhyUndecided
from fabricproof.pairs.blame.suspects import ALL, RECEIVE, TRANSMIT, Flags, Suspect, SuspectKind

DIRECTIONS = {ALL: "both", TRANSMIT: "transmit", RECEIVE: "receive"}
VERBS = {"both": "runs", "transmit": "sends", "receive": "receives"}


@dataclass(frozen=True, kw_only=True)
class Blame:
    """Somebody at fault.

    Attributes:
        kind: ``node``, ``rail`` (of one node), ``leaf``, ``uplink`` or ``pair``.
        name: ``n17``, ``n17 rail0``, ``leaf3``, ``n1 - n7``.
        rail: where one rail only is concerned, or only one was measured; None: all.
        direction: ``transmit``, ``receive`` or ``both``.
        confidence: how likely it is that this one is at fault, 0 to 1, by the model of
            :mod:`fabricproof.pairs.blame.explain`: less where some of its pairs are good, and
            shared with those it cannot be told from.
        share: what its low pairs reach of what a healthy one does, 0 to 1; of latencies the
            inverse of how many times they take.
        num_low: low pairs of its own.
        num_measured: pairs of its own.
        cannot_tell_from: others that explain the same.
        would_tell: what to measure to tell them apart, or to be sure.
    """

    kind: SuspectKind
    name: str
    node: str | None
    rail: str | None
    direction: str
    confidence: float
    share: float
    num_low: int
    num_measured: int
    sentence: str
    cannot_tell_from: tuple[str, ...] = ()
    would_tell: str = ""

    def record(self) -> dict[str, Any]:
        """Return it as plain data, the form of ``--json`` and of the record of a matrix."""
        return plain(
            self,
            without={"num_low", "num_measured"},
            confidence=round(self.confidence, 4),
            share=round(self.share, 4),
            low_pairs=self.num_low,
            measured_pairs=self.num_measured,
        )


@dataclass(frozen=True, kw_only=True)
class Undecided:
    """Something low for which nobody is blamed."""

    why: WhyUndecided
    nodes: tuple[str, ...]
    sentence: str
    would_tell: str

    def record(self) -> dict[str, Any]:
        """Return it as plain data, the form of ``--json`` and of the record of a matrix."""
        return plain(self, without={"why"}, kind=self.why)


@dataclass(frozen=True, kw_only=True)
class Said:
    """All that a judged matrix says."""

    blame: tuple[Blame, ...]
    undecided: tuple[Undecided, ...]
    findings: tuple[str, ...] = field(default=())


def share_of(judged: Judged, rows: Flags) -> float:
    """Return what the low ones of ``rows`` reach of a healthy row, 0 to 1."""
    low = judged.shortfall[rows & judged.low]
    return min(float(math.exp(np.median(low))), 1.0) if len(low) else 1.0


def level(judged: Judged, share: float) -> str:
    """Return a share in words: ``at 30 %``, ``at 3.3 times the usual latency``."""
    if all(kind.lower_is_better for kind in judged.matrix.kinds):
        return f"at {1 / share:.3g} times the usual latency"
    percent = 100 * share
    return f"at {percent:.0f} %" if percent >= 1 else "at nothing"


def place(judged: Judged, suspect: Suspect) -> str:
    """Return the name of a suspect: ``n17 rail0``, ``leaf3``."""
    if suspect.kind is SuspectKind.ROUND:
        return f"round {suspect.number}"
    rail = judged.matrix.rails[suspect.rail] if suspect.rail != ALL else ""
    if suspect.kind is SuspectKind.NODE:
        return f"{judged.matrix.nodes[suspect.number]} {rail}".strip()
    assert judged.leaves is not None
    return f"{judged.leaves.names[suspect.number]} {rail}".strip()
