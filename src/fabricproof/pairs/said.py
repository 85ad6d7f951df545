"""The records of what a judged matrix says, and the words that they share."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from fabricproof.core.findings import Finding, FindingKind, Where
from fabricproof.core.measure import Verdict
from fabricproof.pairs.blame.judged import Judged, WhyUndecided
from fabricproof.pairs.blame.suspects import ALL, RECEIVE, TRANSMIT, Flags, Suspect, SuspectKind

DIRECTIONS = {ALL: "both", TRANSMIT: "transmit", RECEIVE: "receive"}
VERBS = {"both": "runs", "transmit": "sends", "receive": "receives"}


@dataclass(frozen=True, kw_only=True)
class Blame(Finding):
    """Somebody at fault, with the odds.

    The fact is ``node``, ``rail`` (of one node), ``leaf``, ``uplink`` or ``pair``.  The rail is
    where one rail only is concerned, or only one was measured; empty for all.  The next step is
    what to measure to tell those apart that explain the same, or to be sure.

    Attributes:
        name: ``n17``, ``n17 rail0``, ``leaf3``, ``n1 - n7``.
        confidence: how likely it is that this one is at fault, 0 to 1, by the model of
            :mod:`fabricproof.pairs.blame.explain`: less where some of its pairs are good, and
            shared with those it cannot be told from.
        share: what its low pairs reach of what a healthy one does, 0 to 1; of latencies the
            inverse of how many times they take.
        low_pairs: low pairs of its own.
        measured_pairs: pairs of its own.
        cannot_tell_from: others that explain the same.
    """

    kind: FindingKind = FindingKind.BLAME
    verdict: Verdict | None = Verdict.FAIL
    name: str
    confidence: float
    share: float
    low_pairs: int
    measured_pairs: int
    cannot_tell_from: tuple[str, ...] = ()

    def record(self) -> dict[str, Any]:
        """Return the finding's record with the odds beside it."""
        return super().record() | {
            "name": self.name,
            "confidence": round(self.confidence, 4),
            "share": round(self.share, 4),
            "low_pairs": self.low_pairs,
            "measured_pairs": self.measured_pairs,
            "cannot_tell_from": list(self.cannot_tell_from),
        }


def undecided_finding(
    why: WhyUndecided, nodes: Iterable[str], text: str, next_step: str
) -> Finding:
    """Return something low for which nobody is blamed; ``next_step`` is what would tell."""
    return Finding(
        kind=FindingKind.UNDECIDED,
        verdict=Verdict.UNJUDGED,
        fact=why.value,
        where=Where(nodes=tuple(nodes)),
        text=text,
        next_step=next_step,
    )


@dataclass(frozen=True, kw_only=True)
class Said:
    """All that a judged matrix says."""

    blame: tuple[Blame, ...]
    undecided: tuple[Finding, ...]
    notes: tuple[Finding, ...] = ()


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
