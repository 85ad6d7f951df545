"""What a judged matrix leaves undecided, and what would tell."""

from __future__ import annotations

import math

import numpy as np

from fabricproof.pairs.blame.judge import Judged, WhyUndecided, differs, fast_group, is_blamed
from fabricproof.pairs.blame.suspects import SuspectKind
from fabricproof.pairs.said import Undecided, level, listed, place, share_of

#: entries of single low pairs in a list of what is undecided
_SINGLES = 20


def undecided(judged: Judged) -> list[Undecided]:
    """Return what nobody is blamed for."""
    entries = _rounds_and_rivals(judged)
    for group in judged.explanation.groups:
        names = tuple(judged.matrix.nodes[each.suspect.number] for each in group)
        entries.append(
            Undecided(
                why=WhyUndecided.GROUP,
                nodes=names,
                sentence=f"{listed(names)} are low with all others and fine among themselves: the "
                "way between the two groups, or only its length, and not these nodes",
                would_tell="on which leaf each node is (--leaves)",
            )
        )
    fast = fast_group(judged)
    if len(fast):
        names = tuple(judged.matrix.nodes[number] for number in fast)
        entries.append(
            Undecided(
                why=WhyUndecided.GROUP,
                nodes=names,
                sentence=f"{listed(names)} are faster among themselves than all other pairs: they "
                "are near each other, or all others are slow",
                would_tell="on which leaf each node is (--leaves), or what a pair should reach "
                "(--link, --reference)",
            )
        )
    if judged.is_few and differs(judged):
        entries.append(_few(judged))
    elif judged.is_contention and judged.unexplained.any():
        entries.append(_contention(judged))
    elif judged.unexplained.any():
        entries += _singles(judged)
    return entries


def _rounds_and_rivals(judged: Judged) -> list[Undecided]:
    entries = []
    for number, found in enumerate(judged.explanation.found):
        if is_blamed(judged, number):
            continue
        rows = judged.explanation.by == number
        reached = level(judged, share_of(judged, rows))
        name = place(judged, found.suspect)
        if found.suspect.kind is SuspectKind.ROUND:
            entries.append(
                Undecided(
                    why=WhyUndecided.CONTENTION,
                    nodes=(),
                    sentence=f"{name} runs {reached}: {found.num_low} of {found.num_measured} "
                    "values, whoever measured: contention, of its own pairs or with others",
                    would_tell=f"the pairs of {name} in other rounds, or one at a time",
                )
            )
            continue
        names = (name, *(place(judged, each) for each in found.rivals))
        entries.append(
            Undecided(
                why=WhyUndecided.RIVALS,
                nodes=names,
                sentence=f"{' or '.join(names)} runs {reached}: {found.num_low} of "
                f"{found.num_measured} values; they cannot be told apart",
                would_tell=f"{names[0]} and {names[1]} each with nodes that are good",
            )
        )
    return entries


def _few(judged: Judged) -> Undecided:
    matrix = judged.matrix
    worst = int(np.argmin(judged.shortfall))
    ends = matrix.nodes[matrix.source[worst]], matrix.nodes[matrix.destination[worst]]
    best = float(judged.shortfall.max() - judged.shortfall[worst])
    others = len(matrix.nodes)
    return Undecided(
        why=WhyUndecided.FEW,
        nodes=tuple(matrix.nodes),
        sentence=f"{ends[0]} with {ends[1]} runs {level(judged, math.exp(-best))} of the best "
        f"value here: with {others} nodes neither of them, nor the way between, can be told "
        "from the other",
        would_tell=f"{ends[0]} and {ends[1]} each with two nodes more, or what a pair should "
        "reach (--link, --reference)",
    )


def _contention(judged: Judged) -> Undecided:
    rows = judged.unexplained
    count, total = int(rows.sum()), len(rows)
    matrix = judged.matrix
    touched = np.bincount(matrix.source[rows], minlength=len(matrix.nodes)) + np.bincount(
        matrix.destination[rows], minlength=len(matrix.nodes)
    )
    names = tuple(matrix.nodes[at] for at in np.argsort(-touched, kind="stable")[:4])
    return Undecided(
        why=WhyUndecided.CONTENTION,
        nodes=names,
        sentence=f"{count} of {total} values ({count / total:.0%}) run "
        f"{level(judged, share_of(judged, rows))}, and no node, rail or leaf explains them: "
        "contention, adaptive routing or many bad ways",
        would_tell="the same pairs one at a time, or in leaf-wise rounds (fabricproof pairs plan)",
    )


def _singles(judged: Judged) -> list[Undecided]:
    matrix = judged.matrix
    rows = np.flatnonzero(judged.unexplained)
    rows = rows[np.argsort(judged.shortfall[rows], kind="stable")]
    entries = []
    for row in rows[:_SINGLES].tolist():
        first, second = matrix.nodes[matrix.source[row]], matrix.nodes[matrix.destination[row]]
        rail = matrix.rails[matrix.rail[row]]
        arrow = "with" if matrix.both_ways[row] else "to"
        reached = level(judged, math.exp(judged.shortfall[row]))
        over = f" over {rail}" if rail else ""
        entries.append(
            Undecided(
                why=WhyUndecided.CHANCE,
                nodes=(first, second),
                sentence=f"{first} {arrow} {second}{over} runs {reached}, "
                "measured once: this pair, or a disturbance of a moment",
                would_tell=f"{first} {arrow} {second} once more",
            )
        )
    if len(rows) > _SINGLES:
        entries.append(
            Undecided(
                why=WhyUndecided.CHANCE,
                nodes=(),
                sentence=f"{len(rows) - _SINGLES} more single values are low",
                would_tell="these pairs once more",
            )
        )
    return entries
