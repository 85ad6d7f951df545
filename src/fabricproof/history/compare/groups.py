"""Rails, pairs, nodes, stacks and programs: one row for the typical quantity of each.

Of a run, a group's number is ``exp(mean(ln(value / level)))`` over its quantities, where ``level``
is the quantity's own over all runs of both sides, blind to which side a run is on: so rows of
groups may be relabelled together with those of quantities.  The mean is weighted by how well
quantities of that kind repeat themselves (also blind to the sides): what scatters by a third tells
nothing of one percent.  Not by each quantity's own scatter: that spans both sides, so what changed
would weigh less than what did not.  Short, medium and long messages are groups of their own, so
that the steadiness of long ones does not speak for short ones.

A run that lacks some of the quantities would pull the mean to the others; rows and runs are
therefore told apart first by an additive fit of the logarithms (two-way analysis of variance with
cells missing: Scheffe 1959, *The Analysis of Variance*, section 4.4).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from fabricproof.core.units import by_key
from fabricproof.history.store import Key
from fabricproof.history.store.model import band_of, metric_of

if TYPE_CHECKING:
    import numpy.typing as npt

    Values = npt.NDArray[np.float64]
    Flags = npt.NDArray[np.bool_]

#: in the order in which a person reads them
KINDS = ("overall", "rail", "pair", "node", "stack", "program")

#: of more nodes than a pair no single one is blamed: every one would get every number
_NODES_OF_A_PAIR = 2

#: rounds of the additive fit; the runs' effects move by less than 1e-4 from then on
_ROUNDS = 12

#: the median absolute deviation as a standard deviation
_TO_NORMAL = 1.4826

#: scatter below this is not told apart: one quantity that prints the same number always must not
#: outvote all others
_LEAST_SCATTER = 0.005

#: kind and name of a group, ``("rail", "rail1")``
Place = tuple[str, str]


@dataclass(frozen=True, kw_only=True)
class Members:
    """The quantities of a group, of one metric and length of messages.

    Attributes:
        places: what the group is called; others of the very same quantities behind the first.
        better: 1 if more is better, -1 if less is.
        rows: indices of the quantities.
    """

    places: tuple[Place, ...]
    metric: str
    better: int
    band: str
    rows: tuple[int, ...]

    @property
    def label(self) -> str:
        """``bandwidth of rail rail1``."""
        return f"{self.metric} of {' '.join(self.places[0])}"


def group_rows(keys: Sequence[Key], *, merged: bool = True) -> list[Members]:
    """Return the groups of the quantities, overall first.

    Args:
        keys: of the quantities.
        merged: groups of the very same quantities are one, which names the others.
    """
    found = by_key(
        ((*place, metric_of(key), key.better, band_of(key)), row)
        for row, key in enumerate(keys)
        for place in homes(key)
    )
    ordered = sorted(found, key=lambda each: (KINDS.index(each[0]), each))
    same = by_key(((*each[2:], *found[each]) if merged else each, each) for each in ordered)
    return [
        Members(
            places=tuple(each[:2] for each in alike),
            metric=alike[0][2],
            better=alike[0][3],
            band=alike[0][4],
            rows=tuple(found[alike[0]]),
        )
        for alike in same.values()
    ]


def homes(key: Key) -> Iterator[Place]:
    """Yield the groups that a quantity is in; none by a field that was allowed to differ."""
    nodes = key.nodes.split(",")
    yield "overall", "all"
    if key.rails not in {"", "*"}:
        yield "rail", key.rails.replace(",", "+")
    if key.nodes not in {"", "*"}:
        if len(nodes) > 1:
            yield "pair", key.pair
        if len(nodes) <= _NODES_OF_A_PAIR:
            yield from (("node", node) for node in nodes)
    if key.stack != "*":
        yield "stack", key.stack
    if key.program != "*":
        yield "program", key.program


def group_values(values: Values, groups: Iterable[Members], kinds: Sequence[int]) -> Values:
    """Return one row for each group: its typical quantity in each run, NaN if a run has none."""
    logs = np.log(values)
    here = np.isfinite(logs)
    off = logs - np.nanmedian(logs, axis=1, keepdims=True)
    scatter = np.nanmedian(np.abs(off), axis=1) * _TO_NORMAL
    known = here.sum(axis=1) > 1
    of_kind = np.full(len(logs), float(np.median(scatter[known])) if known.any() else 1.0)
    numbers = np.asarray(kinds)
    for kind in np.unique(numbers[known]):
        of_kind[numbers == kind] = np.median(scatter[known & (numbers == kind)])
    weights = 1.0 / (of_kind**2 + _LEAST_SCATTER**2)[:, None]
    filled = np.where(here, off, 0.0)
    rows = [_typical(filled[at], here[at], weights[at]) for at in (list(g.rows) for g in groups)]
    return np.exp(np.array(rows)).reshape(len(rows), values.shape[1])


def _typical(filled: Values, here: Flags, weights: Values) -> Values:
    """Return the effect of each run on the quantities of one group, 0 in ``filled`` if absent."""
    used = here.any(axis=0)
    whole = here[:, used].all(axis=1)
    if 2 * int(whole.sum()) >= len(filled):
        # Enough quantities are in every run: those alone, and nothing need be fitted.
        filled, here, weights = filled[whole], here[whole], weights[whole]
    shares = np.maximum((weights * here).sum(axis=0), 1e-300)
    runs = (weights * filled).sum(axis=0) / shares
    if not here[:, used].all():
        for _ in range(_ROUNDS):
            level = (filled - np.where(here, runs, 0.0)).sum(axis=1) / here.sum(axis=1)
            runs = (weights * np.where(here, filled - level[:, None], 0.0)).sum(axis=0) / shares
    typical: Values = np.where(used, runs, np.nan)
    return typical
