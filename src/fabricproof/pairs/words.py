"""Whom a judged matrix blames, in the words of a person."""

from __future__ import annotations

import math

import numpy as np

from fabricproof.core.findings import Where, as_notes
from fabricproof.core.units import counted, first_few
from fabricproof.pairs.blame.explain import Found
from fabricproof.pairs.blame.judge import is_blamed
from fabricproof.pairs.blame.judged import Judged, MatrixVerdict
from fabricproof.pairs.blame.measure import DEVIATIONS, evidence_of
from fabricproof.pairs.blame.pair import BadPair
from fabricproof.pairs.blame.suspects import ALL, Flags, Suspect, SuspectKind
from fabricproof.pairs.blame.undecided import undecided
from fabricproof.pairs.matrix import Load, Matrix
from fabricproof.pairs.said import DIRECTIONS, VERBS, Blame, Said, level, place, share_of
from fabricproof.verdict.value import DEFAULT_LATENCY_TOLERANCE


def say(judged: Judged) -> Said:
    """Return what a judged matrix says."""
    found = judged.explanation.found
    blamed = [at for at in range(len(found)) if is_blamed(judged, at)]
    blame = [_blame(judged, at) for at in blamed]
    blame += [_blame_pair(judged, pair) for pair in judged.bad_pairs]
    return Said(
        blame=tuple(blame), undecided=tuple(undecided(judged)), notes=as_notes(_notes(judged))
    )


def _pairs(judged: Judged, rows: Flags) -> tuple[int, int]:
    matrix = judged.matrix
    first = np.minimum(matrix.source[rows], matrix.destination[rows]).astype(np.int64)
    key = first * len(matrix.nodes) + np.maximum(matrix.source[rows], matrix.destination[rows])
    return len(np.unique(key[judged.low[rows]])), len(np.unique(key))


def _rail(judged: Judged, number: int) -> str:
    return judged.matrix.rails[number]


def kind_of(judged: Judged, suspect: Suspect) -> SuspectKind:
    """Return what a suspect is called: one rail of several is no node.

    All uplinks of a leaf together, in one direction only, are its uplink.
    """
    if suspect.kind is SuspectKind.NODE and suspect.rail != ALL and len(judged.matrix.rails) > 1:
        return SuspectKind.RAIL
    if suspect.kind is SuspectKind.LEAF and suspect.side != ALL:
        return SuspectKind.UPLINK
    return suspect.kind


def _direction(judged: Judged, suspect: Suspect, rows: Flags) -> str:
    """Return the direction: of a node of which one side only was measured, that side."""
    if suspect.side != ALL or suspect.kind is not SuspectKind.NODE:
        return DIRECTIONS[suspect.side]
    matrix = judged.matrix
    if matrix.both_ways[rows].any():
        return "both"
    sends = matrix.source[rows] == suspect.number
    return "transmit" if sends.all() else "both" if sends.any() else "receive"


def _blame(judged: Judged, number: int) -> Blame:
    found = judged.explanation.found[number]
    suspect, rows = found.suspect, judged.explanation.by == number
    share, direction = share_of(judged, rows), _direction(judged, suspect, rows)
    low, measured = _pairs(judged, rows)
    kind, name = kind_of(judged, suspect), place(judged, suspect)
    part = found.num_low / found.num_measured
    confidence = min(1 - math.exp(-found.margin), 0.999) * (0.5 + 0.5 * part)
    cannot, would = _alternatives(judged, found, kind)
    sentence = f"{name} {VERBS[direction]} {level(judged, share)}: {low} of {measured} pairs"
    if kind is SuspectKind.RAIL:
        sentence += _other_rails(judged, suspect)
    if suspect.kind is SuspectKind.LEAF and suspect.across:
        sentence += "; pairs inside it are fine" if _inside_is_fine(judged, suspect) else ""
    rail = suspect.rail if suspect.rail != ALL else 0 if len(judged.matrix.rails) == 1 else ALL
    is_node = suspect.kind is SuspectKind.NODE
    return Blame(
        fact=kind.value,
        name=name if kind is not SuspectKind.NODE else judged.matrix.nodes[suspect.number],
        where=Where(
            node=judged.matrix.nodes[suspect.number] if is_node else "",
            rail=_rail(judged, rail) if rail != ALL else "",
            direction=direction,
            nodes=() if is_node else _behind(judged, suspect),
        ),
        confidence=confidence / (1 + len(found.rivals)),
        share=share,
        low_pairs=low,
        measured_pairs=measured,
        text=sentence,
        cannot_tell_from=tuple(cannot),
        next_step=would,
    )


def _behind(judged: Judged, suspect: Suspect) -> tuple[str, ...]:
    """Return the nodes of a leaf."""
    assert judged.leaves is not None, "a leaf is blamed where leaves are known"
    here = np.flatnonzero(judged.leaves.leaf_of == suspect.number)
    return tuple(judged.matrix.nodes[at] for at in here)


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


def _inside_is_fine(judged: Judged, suspect: Suspect) -> bool:
    assert judged.leaves is not None
    leaf_of, matrix = judged.leaves.leaf_of, judged.matrix
    inside = (leaf_of[matrix.source] == suspect.number) & (
        leaf_of[matrix.destination] == suspect.number
    )
    return bool(inside.any()) and not bool((judged.low & inside).mean(where=inside) > 0.1)


def _inside_is_good(judged: Judged, suspect: Suspect) -> bool:
    """Tell whether a node has pairs on its own leaf, and none of them is low."""
    assert judged.leaves is not None
    evidence = evidence_of(judged.matrix, judged.low, judged.leaves)
    rows = suspect.rows(evidence)
    rows &= ~judged.leaves.crosses(evidence.source, evidence.destination)
    return bool(rows.any()) and not bool((rows & judged.low).any())


def _alternatives(judged: Judged, found: Found, kind: SuspectKind) -> tuple[list[str], str]:
    cannot = [place(judged, each) for each in found.rivals]
    suspect, matrix = found.suspect, judged.matrix
    if kind is SuspectKind.NODE and len(matrix.rails) == 1 and matrix.rails[0]:
        cannot.append(f"{matrix.nodes[suspect.number]} {matrix.rails[0]} alone")
    if suspect.kind is SuspectKind.NODE:
        node = matrix.nodes[suspect.number]
        leaves = judged.leaves
        if leaves is not None and leaves.sizes[leaves.leaf_of[suspect.number]] == 1:
            name = leaves.names[leaves.leaf_of[suspect.number]]
            cannot.append(f"{name}, on which it is alone")
        if leaves is not None and _inside_is_good(judged, suspect):
            name = leaves.names[leaves.leaf_of[suspect.number]]
            cannot.append(f"a link of {name} on the way to {node}, whose pairs inside are fine")
        cannot.append(f"the port and cable that {node} hangs on")
        good = _good_partner(judged, suspect.number)
        rail = _rail(judged, suspect.rail) if suspect.rail != ALL else ""
        over = f" over {rail}" if rail else ""
        return cannot, f"{node} on another port and cable, measured with {good}{over}"
    if suspect.kind is SuspectKind.LEAF and suspect.side != ALL:
        cannot.append("one of its uplinks")
    return cannot, "the error and rate counters of its ports (fabricproof subnet check)"


def _good_partner(judged: Judged, node: int) -> str:
    matrix = judged.matrix
    counts = np.bincount(matrix.source[judged.low], minlength=len(matrix.nodes)) + np.bincount(
        matrix.destination[judged.low], minlength=len(matrix.nodes)
    )
    counts[node] = np.iinfo(counts.dtype).max
    return matrix.nodes[int(np.argmin(counts))]


def _blame_pair(judged: Judged, pair: BadPair) -> Blame:
    matrix = judged.matrix
    first, second = matrix.nodes[pair.first], matrix.nodes[pair.second]
    ends = (pair.first, pair.second)
    rows = np.isin(matrix.source, ends) & np.isin(matrix.destination, ends)
    share = share_of(judged, rows)
    low = rows & judged.low
    rails = np.unique(matrix.rail[low])
    rail = _rail(judged, int(rails[0])) if len(rails) == 1 else ""
    names = f"{first} - {second}"
    if pair.both_sides:
        direction = "both"
    else:
        # Said of the node that the pair is named after first.
        direction = "transmit" if bool((matrix.source[low] == pair.first).all()) else "receive"
    return Blame(
        fact=SuspectKind.PAIR.value,
        name=names,
        where=Where(rail=rail, direction=direction, nodes=(first, second)),
        confidence=min(0.95, 1 - 0.5**pair.num_low)
        * (0.5 + 0.5 * pair.num_low / pair.num_measured),
        share=share,
        low_pairs=1,
        measured_pairs=1,
        text=f"{names} {VERBS['both']} {level(judged, share)}: {pair.num_low} of "
        f"{pair.num_measured} values; each of the two is fine with others",
        cannot_tell_from=("a disturbance of this pair while it was measured",),
        next_step=f"{first} with {second} once more, and the counters along their way",
    )


def _slowest(matrix: Matrix) -> str:
    rows = np.argsort(matrix.goodness, kind="stable")[:4].tolist()
    return ", ".join(
        f"{matrix.nodes[matrix.source[row]]} with {matrix.nodes[matrix.destination[row]]} "
        f"{matrix.value[row]:.5g} {matrix.kinds[matrix.kind[row]].unit}"
        for row in rows
    )


def _notes(judged: Judged) -> list[str]:
    matrix = judged.matrix
    is_reason = judged.verdict is MatrixVerdict.MISSING
    found = [] if is_reason else [f"not in the output: {each}" for each in matrix.missing]
    found += matrix.notes
    if Load.IN_TURN in matrix.load and not all(kind.lower_is_better for kind in matrix.kinds):
        found.append(
            "messages went there and back in turn: --link judges the level of long ones only"
        )
    if matrix.is_selection:
        found.append(f"slowest, the better of two looks: {_slowest(matrix)}")
    if matrix.num_empty:
        found.append(f"{counted(matrix.num_empty, 'row')} without a value")
    if matrix.num_self:
        found.append(f"{counted(matrix.num_self, 'row')} of a node with itself: left out")
    if matrix.num_repeated:
        again = counted(matrix.num_repeated, "row")
        found.append(f"{again} beside another: the median counts, of two the better one")
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
    bare = {kind.lower_is_better for kind in matrix.kinds if not kind.unit}
    found += [
        f"no unit is stated: {'less' if less else 'more'} is taken as better "
        "(--unit says otherwise)"
        for less in sorted(bare)
    ]
    return found
