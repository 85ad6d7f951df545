"""What a judged matrix leaves undecided, and what would tell."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from fabricproof.core.findings import Finding
from fabricproof.core.units import counted, first_few
from fabricproof.pairs.blame.explain import LEAST_PARTNERS, Found
from fabricproof.pairs.blame.judge import differs, fast_group, few_below, is_blamed
from fabricproof.pairs.blame.judged import Judged, WhyUndecided
from fabricproof.pairs.blame.measure import evidence_of, is_many
from fabricproof.pairs.blame.suspects import (
    ALL,
    RECEIVE,
    TRANSMIT,
    Flags,
    Suspect,
    SuspectKind,
)
from fabricproof.pairs.said import DIRECTIONS, VERBS, level, place, share_of, undecided_finding

#: entries of single low pairs in a list of what is undecided
_SINGLES = 20


def undecided(judged: Judged) -> list[Finding]:
    """Return what nobody is blamed for."""
    if nodes := few_below(judged):
        return [_few_below(nodes)]
    entries = [*_between(judged), *_rounds_and_rivals(judged)]
    for group in judged.explanation.groups:
        names = tuple(judged.matrix.nodes[each.suspect.number] for each in group)
        entries.append(
            undecided_finding(
                WhyUndecided.GROUP,
                names,
                f"{first_few(names)} are low with all others and fine among themselves: "
                "the way between the two groups, or only its length, and not these nodes",
                "on which leaf each node is (--leaves)",
            )
        )
    fast = fast_group(judged)
    if len(fast):
        names = tuple(judged.matrix.nodes[number] for number in fast)
        entries.append(
            undecided_finding(
                WhyUndecided.GROUP,
                names,
                f"{first_few(names)} are faster among themselves than all other pairs: "
                "they are near each other, or all others are slow",
                "on which leaf each node is (--leaves), or what a pair should reach "
                "(--link, --reference)",
            )
        )
    if differs(judged):
        entries.append(_few(judged))
    unexplained = judged.unexplained & ~judged.few
    few_are_low = judged.is_wide and not is_many(unexplained)
    if judged.is_contention and unexplained.any() and not few_are_low:
        entries.append(_contention(judged, unexplained, _SLOWER))
    elif judged.is_contention and judged.fast.any():
        entries.append(_contention(judged, judged.fast, _FASTER))
    elif judged.is_wide:
        entries.append(_wide(judged))
    elif unexplained.any():
        entries += _weak(judged, unexplained)
        entries += _singles(judged, unexplained)
    return entries


def _rounds_and_rivals(judged: Judged) -> list[Finding]:
    entries = []
    for number, found in enumerate(judged.explanation.found):
        if is_blamed(judged, number):
            continue
        rows = judged.explanation.by == number
        reached = level(judged, share_of(judged, rows))
        name = place(judged, found.suspect)
        if found.suspect.kind is SuspectKind.ROUND:
            entries.append(
                undecided_finding(
                    WhyUndecided.CONTENTION,
                    (),
                    f"{name} runs {reached}: {found.num_low} of {found.num_measured} "
                    "values, whoever measured: contention, of its own pairs or with others",
                    f"the pairs of {name} in other rounds, or one at a time",
                )
            )
            continue
        names = (name, *(place(judged, each) for each in found.rivals))
        entries.append(
            undecided_finding(
                WhyUndecided.RIVALS,
                names,
                f"{' or '.join(names)} runs {reached}: {found.num_low} of "
                f"{found.num_measured} values; they cannot be told apart",
                f"{names[0]} and {names[1]} each with nodes that are good",
            )
        )
    return entries


def _between(judged: Judged) -> Iterator[Finding]:
    """Yield what pairs between leaves reach where nobody knows how many uplinks they share."""
    for (kind, rail), value in judged.between.items():
        over = judged.matrix.rails[rail]
        yield undecided_finding(
            WhyUndecided.CONTENTION,
            (),
            f"pairs between leaves have {value:.4g} {judged.matrix.kinds[kind].unit}"
            f"{f' over {over}' if over else ''}, less than the reference: several measured at once "
            "over the uplinks of a leaf, which are few, or slow",
            "the same pairs one at a time, and the counters of the uplinks",
        )


def _few_below(nodes: tuple[str, ...]) -> Finding:
    return undecided_finding(
        WhyUndecided.FEW,
        nodes,
        f"{' - '.join(nodes)} miss the reference: none of them, nor the way "
        "between, can be told from the others",
        f"{' and '.join(nodes)} each with two nodes more",
    )


def _few(judged: Judged) -> Finding:
    matrix = judged.matrix
    rows = np.flatnonzero(judged.few)
    worst = int(rows[np.argmin(judged.shortfall[rows])])
    ends = matrix.nodes[matrix.source[worst]], matrix.nodes[matrix.destination[worst]]
    best = float(judged.shortfall[rows].max() - judged.shortfall[worst])
    seen = np.unique(np.concatenate([matrix.source[rows], matrix.destination[rows]]))
    over = _over(judged, worst)
    reference = "" if matrix.kind[worst] in judged.bounded else _OR_REFERENCE
    return undecided_finding(
        WhyUndecided.FEW,
        tuple(matrix.nodes[at] for at in seen),
        f"{ends[0]} with {ends[1]}{over} runs {level(judged, math.exp(-best))} of the "
        f"best value here: with {len(seen)} nodes neither of them, nor the way between, can be "
        "told from the other",
        f"{ends[0]} and {ends[1]}{over} each with two nodes more{reference}",
    )


def _over(judged: Judged, row: int) -> str:
    """Return `` over rail1`` where rails have names."""
    rail = judged.matrix.rails[judged.matrix.rail[row]]
    return f" over {rail}" if rail else ""


_OR_REFERENCE = ", or what a pair should reach (--link, --reference)"

#: what rows that nothing explains do
_SLOWER, _FASTER = "run", "are faster than the others, which run"


def _contention(judged: Judged, rows: Flags, what: str) -> Finding:
    count, total = int(rows.sum()), len(rows)
    matrix = judged.matrix
    touched = np.bincount(matrix.source[rows], minlength=len(matrix.nodes)) + np.bincount(
        matrix.destination[rows], minlength=len(matrix.nodes)
    )
    names = tuple(matrix.nodes[at] for at in np.argsort(-touched, kind="stable")[:4])
    share = share_of(judged, rows)
    if what is _FASTER:
        share = float(math.exp(-np.median(judged.shortfall[rows])))
    return undecided_finding(
        WhyUndecided.CONTENTION,
        names,
        f"{count} of {total} values ({count / total:.0%}) {what} "
        f"{level(judged, share)}, and no node, rail or leaf explains which: "
        "contention, adaptive routing or many bad ways",
        _IN_TURN + _ask_leaves(judged),
    )


def _wide(judged: Judged) -> Finding:
    return undecided_finding(
        WhyUndecided.CONTENTION,
        (),
        "values of pairs that should be alike scatter by "
        f"{math.expm1(judged.scatter):.0%} (standard deviation), and no node, rail or leaf "
        "explains which are low: contention, disturbances or ways of unlike length",
        _IN_TURN + _ask_leaves(judged),
    )


def _ask_leaves(judged: Judged) -> str:
    return "" if judged.leaves is not None else "; on which leaf each node is (--leaves)"


_IN_TURN = "the same pairs one at a time, or in leaf-wise rounds (pairs run --order leafwise)"


def _weak(judged: Judged, unexplained: Flags) -> list[Finding]:
    """Return those who would explain low values that chance may have made; takes their rows."""
    matrix = judged.matrix
    evidence = evidence_of(matrix, judged.low, judged.leaves)
    entries = []
    for found in judged.weak:
        suspect = found.suspect
        rows = suspect.rows(evidence) & unexplained
        if not rows.any():
            continue
        is_node = suspect.kind is SuspectKind.NODE
        name, verb = place(judged, suspect), VERBS[DIRECTIONS[suspect.side]]
        entries.append(
            undecided_finding(
                WhyUndecided.NODE,
                (matrix.nodes[suspect.number],) if is_node else (name,),
                f"{name} {verb} {level(judged, share_of(judged, rows))}: {found.num_low} "
                f"of {found.num_measured} values; {_why_weak(found)}",
                _once_more(judged, suspect, rows)
                if found.partners >= LEAST_PARTNERS
                else f"{name} with {counted(LEAST_PARTNERS - found.partners, 'node')} more",
            )
        )
        unexplained &= ~rows
    return entries


def _why_weak(found: Found) -> str:
    if found.partners >= LEAST_PARTNERS:
        return "with so few in all, disturbances of a moment could look the same"
    count = counted(found.partners, "node")
    return f"measured with {count} only: it, or the other end, or the way between"


def _once_more(judged: Judged, suspect: Suspect, rows: Flags) -> str:
    """Return what to measure again: ``n2 to n0, n1 and n3 over rail1 once more``."""
    matrix = judged.matrix
    over = f" over {matrix.rails[suspect.rail]}" if suspect.rail != ALL else ""
    over = over if over.strip() != "over" else ""
    if suspect.kind is not SuspectKind.NODE:
        return f"the pairs of {place(judged, suspect)} that are low once more"
    name = matrix.nodes[suspect.number]
    ends = np.unique(np.concatenate([matrix.source[rows], matrix.destination[rows]]))
    others = first_few(tuple(matrix.nodes[at] for at in ends if at != suspect.number))
    if suspect.side == RECEIVE:
        return f"{others} to {name}{over} once more"
    return f"{name} {'to' if suspect.side == TRANSMIT else 'with'} {others}{over} once more"


def _singles(judged: Judged, unexplained: Flags) -> list[Finding]:
    matrix = judged.matrix
    rows = np.flatnonzero(unexplained)
    rows = rows[np.argsort(judged.shortfall[rows], kind="stable")]
    entries = []
    # Of several looks at a pair the lowest one stands for all.
    key = matrix.look_keys(with_round=False)
    _, firsts, times = np.unique(key[rows], return_index=True, return_counts=True)
    low_in = dict(zip(rows[firsts].tolist(), times.tolist(), strict=True))
    rows = rows[np.sort(firsts)]
    for row in rows[:_SINGLES].tolist():
        first, second = matrix.nodes[matrix.source[row]], matrix.nodes[matrix.destination[row]]
        reached = level(judged, math.exp(judged.shortfall[row]))
        pair = f"{matrix.name_of(row)}{_over(judged, row)}"
        kind = matrix.kinds[matrix.kind[row]].words if len(matrix.kinds) > 1 else ""
        looks = int((key == key[row]).sum())
        seen = "measured once" if looks == 1 else f"low in {low_in[row]} of {looks} looks"
        entries.append(
            undecided_finding(
                WhyUndecided.CHANCE,
                (first, second),
                f"{pair} runs {reached}{f' ({kind})' if kind else ''}, {seen}: "
                "this pair, or a disturbance of a moment",
                f"{pair} once more{f': {kind}' if kind else ''}",
            )
        )
    if len(rows) > _SINGLES:
        rest = rows[_SINGLES:]
        ends = np.unique(np.concatenate([matrix.source[rest], matrix.destination[rest]]))
        names = first_few(tuple(matrix.nodes[at] for at in ends))
        entries.append(
            undecided_finding(
                WhyUndecided.CHANCE,
                (),
                f"{len(rest)} more single values are low, of {names}",
                "these pairs once more: -o FILE.html shows them",
            )
        )
    return entries
