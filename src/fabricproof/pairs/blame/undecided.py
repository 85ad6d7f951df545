"""What a judged matrix leaves undecided, and what would tell."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator

import numpy as np

from fabricproof.core.findings import Finding
from fabricproof.core.units import counted, first_few
from fabricproof.pairs.blame.explain import LEAST_PARTNERS, Found
from fabricproof.pairs.blame.judge import MOST_TIMES, Judged
from fabricproof.pairs.blame.measure import is_many
from fabricproof.pairs.blame.pair import ALIKE
from fabricproof.pairs.blame.say import (
    DIRECTIONS,
    VERBS,
    Said,
    WhyUndecided,
    blame_of,
    good_partners,
    level,
    notes_of,
    place,
    share_of,
    undecided_finding,
)
from fabricproof.pairs.blame.suspects import ALL, RECEIVE, SuspectKind
from fabricproof.pairs.matrix import Flags, Indices

#: entries of single low pairs in a list of what is undecided
_SINGLES = 20

#: so many low pairs of one node alone, all alike, name it
_LEAST_OF_ONE_END = 3

_ASK_LEAVES = "on which leaf each node is (--leaves)"
_ASK_REFERENCE = "what a pair should reach (--link, --reference)"


def say(judged: Judged) -> Said:
    """Return what a judged matrix says: whom it blames, what it leaves undecided, and notes."""
    return Said(blame=blame_of(judged), undecided=tuple(_undecided(judged)), notes=notes_of(judged))


def _undecided(judged: Judged) -> Iterator[Finding]:
    """Yield what nobody is blamed for."""
    if nodes := judged.few_below:
        yield undecided_finding(
            WhyUndecided.FEW,
            nodes,
            f"{' - '.join(nodes)} miss the reference: none of them, nor the way "
            "between, can be told from the others",
            f"{' and '.join(nodes)} each with two nodes more",
        )
        return
    yield from _of_levels(judged)
    yield from _of_suspects(judged)
    yield from _of_groups(judged)
    if judged.few_differ:
        yield _few(judged)
    unexplained = judged.unexplained & ~judged.few
    few_are_low = judged.is_wide and not is_many(unexplained)
    if judged.is_contention and unexplained.any() and not few_are_low:
        share = share_of(judged, unexplained)
        yield _contention(judged, unexplained, f"run {level(judged, share)}")
    elif judged.is_contention and judged.fast.any():
        share = float(math.exp(-np.median(judged.shortfall[judged.fast])))
        others = f"are faster than the others, which run {level(judged, share)}"
        yield _contention(judged, judged.fast, others)
    elif judged.is_wide:
        yield undecided_finding(
            WhyUndecided.CONTENTION,
            (),
            "values of pairs that should be alike scatter by "
            f"{math.expm1(judged.scatter):.0%} (standard deviation), and no node, rail or leaf "
            "explains which are low: contention, disturbances or ways of unlike length",
            _in_turn(judged),
        )
    elif unexplained.any():
        yield from _weak(judged, unexplained)
        yield from _singles(judged, unexplained)


def _of_levels(judged: Judged) -> Iterator[Finding]:
    """Yield levels that no node explains: shared uplinks, and values that are too good."""
    matrix = judged.matrix
    for rail, value in judged.between.items():
        yield undecided_finding(
            WhyUndecided.CONTENTION,
            (),
            f"pairs between leaves have {value:.4g} {matrix.kind.unit}{matrix.over(rail)}, less "
            "than the reference: several measured at once over the uplinks of a leaf, which are "
            "few, or slow",
            "the same pairs one at a time, and the counters of the uplinks",
        )
    if judged.high.any():
        rows = np.flatnonzero(judged.high)
        rows = rows[np.argsort(-judged.shortfall[rows], kind="stable")]
        ends = np.unique(np.concatenate([matrix.source[rows], matrix.destination[rows]]))
        most = math.exp(judged.shortfall[rows[0]])
        yield undecided_finding(
            WhyUndecided.FASTER,
            matrix.names(ends),
            f"{first_few([matrix.name_of(row) for row in rows[:9].tolist()])}: better than the "
            f"others by up to {most:.3g} times, and more than {MOST_TIMES:g} times is no network: "
            "memory that both ends share, or another unit",
            "these pairs once more, with a proof of their path (fabricproof pairs run)",
        )


def _of_suspects(judged: Judged) -> Iterator[Finding]:
    """Yield those who explain low rows and are not blamed: rounds, rivals, who meets a bound."""
    matrix, meeting = judged.matrix, dict[str, str]()
    for number, found in enumerate(judged.explanation.found):
        if judged.is_blamed(number):
            continue
        reached = level(judged, share_of(judged, judged.explanation.by == number))
        name, of = place(judged, found.suspect), f"{found.num_low} of {found.num_measured} values"
        if found.suspect.kind is SuspectKind.ROUND:
            yield undecided_finding(
                WhyUndecided.CONTENTION,
                (),
                f"{name} runs {reached}: {of}, whoever measured: contention, of its own pairs or "
                "with others",
                f"the pairs of {name} in other rounds, or one at a time",
            )
        elif judged.meets(number):
            meeting[name] = f"{name} {VERBS[DIRECTIONS[found.suspect.side]]} {reached}"
        else:
            names = (name, *(place(judged, each) for each in found.rivals))
            yield undecided_finding(
                WhyUndecided.RIVALS,
                names,
                f"{' or '.join(names)} runs {reached}: {of}; they cannot be told apart",
                _with_good(judged, [found.suspect.number, found.rivals[0].number])
                if found.suspect.kind is SuspectKind.NODE
                else f"{names[0]} and {names[1]} each with nodes that are good",
            )
    if meeting:
        yield undecided_finding(
            WhyUndecided.REFERENCE,
            meeting,
            f"{first_few(tuple(meeting.values()))} of the others, and all of it meets the "
            f"reference ({judged.limits.origin}): links of another generation, or a fault that "
            "the reference does not see",
            f"the link of {first_few(tuple(meeting))} (fabricproof preflight), and a reference "
            f"for the others{f' in {matrix.kind.unit}' if matrix.kind.unit else ''}",
        )


def _of_groups(judged: Judged) -> Iterator[Finding]:
    for group in judged.explanation.groups:
        names = tuple(judged.matrix.nodes[each.suspect.number] for each in group)
        yield undecided_finding(
            WhyUndecided.GROUP,
            names,
            f"{first_few(names)} are low with all others and fine among themselves: "
            "the way between the two groups, or only its length, and not these nodes",
            _ASK_LEAVES,
        )
    if fast := judged.fast_group:
        names = tuple(judged.matrix.nodes[number] for number in fast)
        yield undecided_finding(
            WhyUndecided.GROUP,
            names,
            f"{first_few(names)} are faster among themselves than all other pairs: "
            "they are near each other, or all others are slow",
            f"{_ASK_LEAVES}, or {_ASK_REFERENCE}",
        )


def _few(judged: Judged) -> Finding:
    matrix = judged.matrix
    rows = np.flatnonzero(judged.few)
    worst = int(rows[np.argmin(judged.shortfall[rows])])
    ends = matrix.nodes[matrix.source[worst]], matrix.nodes[matrix.destination[worst]]
    best = float(judged.shortfall[rows].max() - judged.shortfall[worst])
    seen = np.unique(np.concatenate([matrix.source[rows], matrix.destination[rows]]))
    over = matrix.over(int(matrix.rail[worst]))
    return undecided_finding(
        WhyUndecided.FEW,
        matrix.names(seen),
        f"{ends[0]} with {ends[1]}{over} runs {level(judged, math.exp(-best))} of the "
        f"best value here: with {len(seen)} nodes neither of them, nor the way between, can be "
        "told from the other",
        f"{ends[0]} and {ends[1]}{over} each with two nodes more"
        + ("" if judged.limits.bound is not None else f", or {_ASK_REFERENCE}"),
    )


def _contention(judged: Judged, rows: Flags, what: str) -> Finding:
    count, total, matrix = int(rows.sum()), len(rows), judged.matrix
    touched = np.bincount(matrix.source[rows], minlength=len(matrix.nodes)) + np.bincount(
        matrix.destination[rows], minlength=len(matrix.nodes)
    )
    return undecided_finding(
        WhyUndecided.CONTENTION,
        matrix.names(np.argsort(-touched, kind="stable")[:4]),
        f"{count} of {total} values ({count / total:.0%}) {what}, and no node, rail or leaf "
        "explains which: contention, adaptive routing or many bad ways",
        _in_turn(judged),
    )


def _in_turn(judged: Judged) -> str:
    again = "the same pairs one at a time, or in leaf-wise rounds (pairs run --order leafwise)"
    return again if judged.leaves is not None else f"{again}; {_ASK_LEAVES}"


def _weak(judged: Judged, unexplained: Flags) -> Iterator[Finding]:
    """Yield those who would explain low values that chance may have made; take their rows."""
    for found in judged.weak:
        rows = found.suspect.rows(judged.matrix, judged.leaves) & unexplained
        if rows.any():
            yield _of_weak(judged, found, rows)
            unexplained &= ~rows


def _of_weak(judged: Judged, found: Found, rows: Flags) -> Finding:
    matrix, suspect, partners = judged.matrix, found.suspect, found.partners
    is_node, name = suspect.kind is SuspectKind.NODE, place(judged, suspect)
    if partners < LEAST_PARTNERS:
        why = f"measured with {counted(partners, 'node')} only: it, or the other end, or the way"
        would = f"{name} with {counted(LEAST_PARTNERS - partners, 'node')} more"
    else:
        why = "with so few in all, disturbances of a moment could look the same"
        would = f"the pairs of {name} that are low once more"
        if is_node:
            over = matrix.over(suspect.rail) if suspect.rail != ALL else ""
            ends = np.unique(np.concatenate([matrix.source[rows], matrix.destination[rows]]))
            node, others = matrix.nodes[suspect.number], ends[ends != suspect.number]
            one, other = node, first_few(matrix.names(others))
            if suspect.side == RECEIVE:
                one, other = other, one
            arrow = "with" if suspect.side == ALL else "to"
            would = f"{one} {arrow} {other}{over} once more"
    share = share_of(judged, rows)
    return undecided_finding(
        WhyUndecided.NODE,
        (matrix.nodes[suspect.number],) if is_node else (name,),
        f"{name} {VERBS[DIRECTIONS[suspect.side]]} {level(judged, share)}: {found.num_low} "
        f"of {found.num_measured} values; {why}",
        would,
    )


def _singles(judged: Judged, unexplained: Flags) -> Iterator[Finding]:
    """Yield single low pairs, lowest first; of several looks at a pair the lowest stands for all.

    Alike pairs that have one end in common, and low pairs of no other, name that end.
    """
    matrix, keys = judged.matrix, judged.matrix.look_keys()
    rows = np.flatnonzero(unexplained)
    rows = rows[np.argsort(judged.shortfall[rows], kind="stable")]
    low_in = Counter(keys[rows].tolist())
    _, firsts = np.unique(keys[rows], return_index=True)
    rows = rows[np.sort(firsts)]
    common = _common_end(judged, rows)
    if common is not None:
        node, over = matrix.nodes[common], matrix.over(int(matrix.rail[rows[0]]))
        ends = np.unique(np.concatenate([matrix.source[rows], matrix.destination[rows]]))
        good = good_partners(judged, set(ends.tolist()))[:LEAST_PARTNERS]
        yield undecided_finding(
            WhyUndecided.NODE,
            (node,),
            f"{node} runs {level(judged, share_of(judged, unexplained))} with "
            f"{first_few(matrix.names(ends[ends != common]))}{over} alone: {node}, which its "
            "other pairs do not show, or the ways to these nodes",
            f"{node} with {first_few(good)}{over}: if these are low as well, it is {node}",
        )
        return
    partners = np.full(len(matrix.nodes), LEAST_PARTNERS)
    if len(matrix) < 100 * len(matrix.nodes):  # else every end has many
        pairs = np.divmod(np.unique(matrix.pair_keys), len(matrix.nodes))
        partners = np.bincount(np.concatenate(pairs), minlength=len(matrix.nodes))
    for row in rows[:_SINGLES].tolist():
        both = [int(matrix.source[row]), int(matrix.destination[row])]
        again = f"{matrix.name_of(row)} once more: {matrix.kind.words}"
        if (partners[both] < LEAST_PARTNERS).any():
            again += f"; {_with_good(judged, both)}"
        looks = int((keys == keys[row]).sum())
        low = low_in[int(keys[row])]
        seen = "measured once" if looks == 1 else f"low in {low} of {looks} looks"
        reached = level(judged, math.exp(judged.shortfall[row]))
        yield undecided_finding(
            WhyUndecided.CHANCE,
            matrix.names(np.array(both)),
            f"{matrix.name_of(row)} runs {reached} ({matrix.kind.words}), {seen}: "
            "this pair, or a disturbance of a moment",
            again,
        )
    if len(rows) > _SINGLES:
        rest = rows[_SINGLES:]
        ends = np.unique(np.concatenate([matrix.source[rest], matrix.destination[rest]]))
        yield undecided_finding(
            WhyUndecided.CHANCE,
            (),
            f"{len(rest)} more single values are low, of {first_few(matrix.names(ends))}",
            "these pairs once more: -o FILE.html shows them",
        )


def _with_good(judged: Judged, nodes: list[int]) -> str:
    """Return the round that tells two ends apart: each with a node that is good."""
    good = good_partners(judged, set(nodes))
    names = [judged.matrix.nodes[at] for at in nodes]
    told = [f"{name} with {good[at % len(good)]}" for at, name in enumerate(names)]
    return f"{' and '.join(told)}: who is low again is at fault"


def _common_end(judged: Judged, rows: Indices) -> int | None:
    """Return the node that all of ``rows`` share, if they are several pairs and alike."""
    matrix = judged.matrix
    pairs = np.unique(matrix.pair_keys[rows])
    if len(pairs) < _LEAST_OF_ONE_END or np.ptp(judged.shortfall[rows]) > ALIKE:
        return None
    shared = set(divmod(int(pairs[0]), len(matrix.nodes)))
    for pair in pairs[1:].tolist():
        shared &= set(divmod(pair, len(matrix.nodes)))
    return shared.pop() if len(shared) == 1 else None
