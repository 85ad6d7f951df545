"""Whom a judged matrix blames, in the words of a person."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import numpy as np

from fabricproof.core.findings import Finding, FindingKind, Where, as_notes
from fabricproof.core.measure import Verdict
from fabricproof.core.units import first_few
from fabricproof.pairs.blame.explain import Found
from fabricproof.pairs.blame.judge import Judged, MatrixVerdict
from fabricproof.pairs.blame.measure import DEVIATIONS
from fabricproof.pairs.blame.pair import BadPair
from fabricproof.pairs.blame.suspects import ALL, RECEIVE, TRANSMIT, Suspect, SuspectKind
from fabricproof.pairs.matrix import Flags, Load
from fabricproof.verdict.value import DEFAULT_LATENCY_TOLERANCE

DIRECTIONS = {ALL: "both", TRANSMIT: "transmit", RECEIVE: "receive"}
VERBS = {"both": "runs", "transmit": "sends", "receive": "receives"}


class WhyUndecided(StrEnum):
    """Why something stands out and nobody is blamed."""

    CHANCE = "chance"
    CONTENTION = "contention"
    GROUP = "group"
    FEW = "few"
    NODE = "node"
    RIVALS = "rivals"
    REFERENCE = "reference"
    """It has what the reference asks for."""
    FASTER = "faster"
    UNCONFIRMED = "unconfirmed"
    """No stock program saw it."""


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

    def holds(self, other: Blame) -> bool:
        """Tell whether it says what ``other`` says, or more: all rails, or both directions."""
        mine, its = self.where, other.where
        return (
            (mine.node or self.name, mine.nodes) == (its.node or other.name, its.nodes)
            and mine.rail in {"", its.rail}
            and mine.direction in {"both", its.direction}
        )


def undecided_finding(
    why: WhyUndecided, nodes: Iterable[str], text: str, next_step: str
) -> Finding:
    """Return something that nobody is blamed for; ``next_step`` is what would tell."""
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
    """All that a judged matrix, or those of one file, say."""

    blame: tuple[Blame, ...]
    undecided: tuple[Finding, ...]
    notes: tuple[Finding, ...] = ()


def joined(parts: Sequence[Said]) -> Said:
    """Return what the matrices of one file say: a fault that several show is told once."""
    blame: list[Blame] = []
    for each in (one for part in parts for one in part.blame):
        if not any(other.holds(each) for other in blame):
            blame = [other for other in blame if not each.holds(other)] + [each]
    return Said(
        blame=tuple(blame),
        undecided=tuple(dict.fromkeys(each for part in parts for each in part.undecided)),
        notes=tuple(dict.fromkeys(each for part in parts for each in part.notes)),
    )


def blame_of(judged: Judged) -> tuple[Blame, ...]:
    """Return whom a judged matrix blames."""
    blame = [_blame(judged, at) for at in judged.blamed]
    return (*blame, *(_blame_pair(judged, pair) for pair in judged.bad_pairs))


def share_of(judged: Judged, rows: Flags) -> float:
    """Return what the low ones of ``rows`` reach of a healthy row, 0 to 1."""
    low = judged.shortfall[rows & judged.low]
    return min(float(math.exp(np.median(low))), 1.0) if len(low) else 1.0


def level(judged: Judged, share: float) -> str:
    """Return a share in words: ``at 30 %``, ``at 3.3 times the usual latency``."""
    if judged.matrix.kind.lower_is_better:
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


def kind_of(judged: Judged, suspect: Suspect) -> SuspectKind:
    """Return what a suspect is called: one rail of several is no node.

    All uplinks of a leaf together, in one direction only, are its uplink.
    """
    if suspect.kind is SuspectKind.NODE and suspect.rail != ALL and len(judged.matrix.rails) > 1:
        return SuspectKind.RAIL
    if suspect.kind is SuspectKind.LEAF and suspect.side != ALL:
        return SuspectKind.UPLINK
    return suspect.kind


def _blame(judged: Judged, number: int) -> Blame:
    matrix, found = judged.matrix, judged.explanation.found[number]
    suspect, rows = found.suspect, judged.explanation.by == number
    kind, name, share = kind_of(judged, suspect), place(judged, suspect), share_of(judged, rows)
    is_node = suspect.kind is SuspectKind.NODE
    node = matrix.nodes[suspect.number] if is_node else ""
    direction = DIRECTIONS[suspect.side]
    if suspect.side == ALL and is_node and not matrix.both_ways[rows].any():
        # Of a node of which one side only was measured, that side.
        sends = matrix.source[rows] == suspect.number
        direction = "transmit" if sends.all() else "both" if sends.any() else "receive"
    low = len(np.unique(matrix.pair_keys[rows & judged.low]))
    measured = len(np.unique(matrix.pair_keys[rows]))
    text = f"{name} {VERBS[direction]} {level(judged, share)}: {low} of {measured} pairs"
    if kind is SuspectKind.RAIL:
        text += _other_rails(judged, suspect)
    nodes: tuple[str, ...] = ()
    if suspect.kind is SuspectKind.LEAF:
        assert judged.leaves is not None
        leaf_of = judged.leaves.leaf_of
        nodes = matrix.names(np.flatnonzero(leaf_of == suspect.number))
        inside = (leaf_of[matrix.source] == suspect.number) & (
            leaf_of[matrix.destination] == suspect.number
        )
        if suspect.across and inside.any() and judged.low[inside].mean() <= 0.1:
            text += "; pairs inside it are fine"
    cannot, would = _alternatives(judged, found, kind)
    part = found.num_low / found.num_measured
    confidence = min(1 - math.exp(-found.margin), 0.999) * (0.5 + 0.5 * part)
    rail = suspect.rail if suspect.rail != ALL else 0 if len(matrix.rails) == 1 else ALL
    return Blame(
        fact=kind.value,
        name=node if kind is SuspectKind.NODE else name,
        where=Where(
            node=node,
            rail=matrix.rails[rail] if rail != ALL else "",
            direction=direction,
            nodes=nodes,
        ),
        confidence=confidence / (1 + len(found.rivals)),
        share=share,
        low_pairs=low,
        measured_pairs=measured,
        text=text,
        cannot_tell_from=tuple(cannot),
        next_step=would,
    )


def _other_rails(judged: Judged, suspect: Suspect) -> str:
    matrix = judged.matrix
    here = (matrix.source == suspect.number) | (matrix.destination == suspect.number)
    others = here & (matrix.rail != suspect.rail)
    if not others.any():
        return "; no other rail of it was measured"
    free = others & (judged.explanation.by == -1)
    if free.sum() < others.sum() / 2 or (judged.low & free).sum() > 0.1 * free.sum() + 1:
        return ""
    count = len(np.unique(matrix.rail[others]))
    return "; its other rail is fine" if count == 1 else f"; its {count} other rails are fine"


def _alternatives(judged: Judged, found: Found, kind: SuspectKind) -> tuple[list[str], str]:
    """Return what a suspect is not told from, and what would tell."""
    cannot = [place(judged, each) for each in found.rivals]
    suspect, matrix, leaves = found.suspect, judged.matrix, judged.leaves
    if suspect.kind is not SuspectKind.NODE:
        cannot += ["one of its uplinks"] if suspect.side != ALL else []
        return cannot, "the error and rate counters of its ports (fabricproof subnet check)"
    node = matrix.nodes[suspect.number]
    if kind is SuspectKind.NODE and len(matrix.rails) == 1 and matrix.rails[0]:
        cannot.append(f"{node} {matrix.rails[0]} alone")
    if leaves is not None:
        leaf = int(leaves.leaf_of[suspect.number])
        if leaves.sizes[leaf] == 1:
            cannot.append(f"{leaves.names[leaf]}, on which it is alone")
        inside = suspect.rows(matrix, leaves)
        inside &= ~leaves.crosses(matrix.source, matrix.destination)
        if inside.any() and not (inside & judged.low).any():
            cannot.append(
                f"a link of {leaves.names[leaf]} on the way to {node}, whose pairs inside are fine"
            )
    cannot.append(f"the port and cable that {node} hangs on")
    over = matrix.over(suspect.rail) if suspect.rail != ALL else ""
    good = good_partners(judged, {suspect.number})
    return cannot, f"{node} on another port and cable, measured with {good[0]}{over}"


def good_partners(judged: Judged, without: set[int]) -> tuple[str, ...]:
    """Return the other nodes of which fewest rows are low, the best first."""
    matrix, num = judged.matrix, len(judged.matrix.nodes)
    counts = np.bincount(matrix.source[judged.low], minlength=num) + np.bincount(
        matrix.destination[judged.low], minlength=num
    )
    order = np.argsort(counts, kind="stable").tolist()
    return tuple(matrix.nodes[at] for at in order if at not in without) or ("another node",)


def _blame_pair(judged: Judged, pair: BadPair) -> Blame:
    matrix = judged.matrix
    first, second = matrix.nodes[pair.first], matrix.nodes[pair.second]
    rows = matrix.pair_keys == pair.first * len(matrix.nodes) + pair.second
    share, low = share_of(judged, rows), rows & judged.low
    rails = np.unique(matrix.rail[low])
    direction = "both"
    if not pair.both_sides:  # said of the node that the pair is named after first
        direction = "transmit" if bool((matrix.source[low] == pair.first).all()) else "receive"
    return Blame(
        fact=SuspectKind.PAIR.value,
        name=f"{first} - {second}",
        where=Where(
            rail=matrix.rails[rails[0]] if len(rails) == 1 else "",
            direction=direction,
            nodes=(first, second),
        ),
        confidence=min(0.95, 1 - 0.5**pair.num_low)
        * (0.5 + 0.5 * pair.num_low / pair.num_measured),
        share=share,
        low_pairs=1,
        measured_pairs=1,
        text=f"{first} - {second} runs {level(judged, share)}: {pair.num_low} of "
        f"{pair.num_measured} values; each of the two is fine with others",
        cannot_tell_from=("a disturbance of this pair while it was measured",),
        next_step=f"{first} with {second} once more, and the counters along their way",
    )


def notes_of(judged: Judged) -> tuple[Finding, ...]:
    """Return what else there is to know of a judged matrix."""
    matrix = judged.matrix
    is_reason = judged.verdict is MatrixVerdict.MISSING
    found = [] if is_reason else [f"not in the output: {each}" for each in matrix.missing]
    found += matrix.notes
    if Load.IN_TURN in matrix.load and not matrix.kind.lower_is_better:
        found.append(
            "messages went there and back in turn: --link judges the level of long ones only"
        )
    if matrix.is_selection:
        slowest = ", ".join(
            f"{matrix.name_of(row)} {matrix.value[row]:.5g} {matrix.kind.unit}"
            for row in np.argsort(matrix.goodness, kind="stable")[:4].tolist()
        )
        found.append(f"slowest, the better of two looks: {slowest}")
    if matrix.unmeasured:
        found.append(f"no value at all of {first_few(matrix.unmeasured)}")
    seen_from = DEVIATIONS * judged.scatter
    if seen_from > math.log1p(DEFAULT_LATENCY_TOLERANCE):
        found.append(
            f"healthy values scatter by {math.expm1(judged.scatter):.0%} (standard deviation): "
            f"what reaches {math.exp(-seen_from):.0%} of them is not seen as low"
        )
    if judged.recovered.any():
        found.append(
            f"{int(judged.recovered.sum())} values are low, and the same pairs were good in most "
            "other rounds: disturbances of a moment, and no fault"
        )
    if not matrix.kind.unit:
        better = "less" if matrix.kind.lower_is_better else "more"
        found.append(f"the unit is unknown: {better} is taken as better (--unit says otherwise)")
    return as_notes(found)
