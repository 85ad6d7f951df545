"""Rails, pairs, nodes, stacks and programs: one row for the typical quantity of each.

Of a run, a group's number is ``exp(mean(ln(value / level)))`` over its quantities, where ``level``
is the quantity's own over all runs of both sides, blind to which side a run is on: so rows of
groups may be relabelled together with those of quantities.  The mean is weighted by how well
quantities of that kind repeat themselves (inverse of the median variance of the kind, also blind
to the sides): what scatters by a third tells nothing of one percent.  Not by each quantity's own
scatter: that spans both sides, so what changed would weigh less than what did not, and half the
quantities at -10 % would read -2 % for the whole.  Short, medium and long messages are groups of
their own, so that the steadiness of long ones does not speak for short ones.

A run that lacks some of the quantities would pull the mean to the others; rows and runs are
therefore told apart first by an additive fit of the logarithms (row effect and run effect, two-way
analysis of variance with cells missing: Scheffe 1959, *The Analysis of Variance*, section 4.4).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from fabricproof.history.stats.relabel import qn
from fabricproof.history.store import Key
from fabricproof.history.store.model import band_of, metric_of

if TYPE_CHECKING:
    import numpy.typing as npt

    Values = npt.NDArray[np.float64]
    Rows = npt.NDArray[np.intp]

#: in the order in which a person reads them
KINDS = ("overall", "rail", "pair", "node", "stack", "program")

#: of more nodes than a pair no single one is blamed: every one would get every number
_NODES_OF_A_PAIR = 2

#: rounds of the additive fit; the runs' effects move by less than 1e-4 from then on
_ROUNDS = 12

#: scatter below this is not told apart: one quantity that prints the same number always must not
#: outvote all others
_LEAST_SCATTER = 0.005


@dataclass(frozen=True, kw_only=True)
class Members:
    """A group before anything is said of it.

    Attributes:
        kind: one of :data:`KINDS`.
        name: ``rail1``, ``vc1 - vc3``.
        metric: ``bandwidth`` ...
        better: 1 where more is better, -1 where less is.
        band: length of the messages.
        rows: of the quantities compared, which are of the group.
        also: other groups of the very same quantities.
    """

    kind: str
    name: str
    metric: str
    better: int
    rows: Rows
    band: str = ""
    also: tuple[str, ...] = ()

    @property
    def places(self) -> tuple[tuple[str, str, str, str], ...]:
        """What tells the group from others, and what tells those that it stands for."""
        others = ((kind, name) for kind, _, name in (each.partition(" ") for each in self.also))
        return tuple(
            (kind, name, self.metric, self.band) for kind, name in ((self.kind, self.name), *others)
        )


def group_rows(keys: Sequence[Key], *, merged: bool = True) -> list[Members]:
    """Return the groups of the quantities, overall first; a group is of one metric.

    Args:
        keys: of the quantities that are compared.
        merged: groups of the very same quantities are one, which names the others.
    """
    found: dict[_Place, list[int]] = {}
    known: dict[tuple[str, str, str, str], tuple[tuple[str, str], ...]] = {}
    for row, key in enumerate(keys):
        place = (key.rails, key.nodes, key.stack, key.program)
        if place not in known:
            known[place] = tuple(homes(key))
        what = metric_of(key), key.better, band_of(key)
        for kind, name in known[place]:
            found.setdefault((kind, name, *what), []).append(row)
    order = {kind: index for index, kind in enumerate(KINDS)}
    groups: dict[tuple[object, ...], list[_Place]] = {}
    for each in sorted(found, key=lambda each: (order[each[0]], each)):
        same = (*each[2:], *found[each]) if merged else each
        groups.setdefault(same, []).append(each)
    return [
        Members(
            kind=kind,
            name=name,
            metric=metric,
            better=better,
            band=band,
            rows=np.array(found[kind, name, metric, better, band]),
            also=tuple(f"{other[0]} {other[1]}" for other in others),
        )
        for (kind, name, metric, better, band), *others in groups.values()
    ]


#: kind, name, metric, direction, length of messages
_Place = tuple[str, str, str, int, str]


def homes(key: Key) -> Iterator[tuple[str, str]]:
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
    """Return one row for each group: its typical quantity in each run, NaN where a run has none."""
    logs = np.log(values)
    here = np.isfinite(logs)
    levels = np.nanmedian(logs, axis=1, keepdims=True)
    filled = np.where(here, logs - levels, 0.0)
    weights = _weights(logs, kinds)
    rows = [_typical(filled[at], here[at], weights[at]) for at in (each.rows for each in groups)]
    return np.exp(np.array(rows)).reshape(len(rows), values.shape[1])


def _typical(filled: Values, here: npt.NDArray[np.bool_], weights: Values) -> Values:
    """Return the effect of each run on the quantities of one group.

    Args:
        filled: shape (quantities, runs), logarithm less the quantity's level, 0 where absent.
        here: where there is a number.
        weights: shape (quantities, 1).
    """
    used = here.any(axis=0)
    whole = here[:, used].all(axis=1)
    if 2 * int(whole.sum()) >= len(filled):
        # Enough quantities are in every run: those alone, and nothing need be fitted.
        filled, here, weights = filled[whole], here[whole], weights[whole]
    shares = (weights * here).sum(axis=0)
    runs = _mean((weights * filled).sum(axis=0), shares)
    if not here[:, used].all():
        of_rows = here.sum(axis=1, keepdims=True)
        for _ in range(_ROUNDS):
            level = (filled - np.where(here, runs, 0.0)).sum(axis=1, keepdims=True) / of_rows
            runs = _mean((weights * np.where(here, filled - level, 0.0)).sum(axis=0), shares)
    return np.where(used, runs, np.nan)


def _weights(logs: Values, kinds: Sequence[int]) -> Values:
    """Return the weight of each row, shape (rows, 1): inverse variance of its kind.

    A kind of which no row has two numbers has the usual one.
    """
    scatter = qn(logs)
    known = np.isfinite(scatter)
    usual = float(np.median(scatter[known])) if known.any() else 1.0
    numbers = np.asarray(kinds)
    of_kind = np.full(len(logs), usual)
    for kind in np.unique(numbers[known]):
        of_kind[numbers == kind] = np.median(scatter[known & (numbers == kind)])
    weights: Values = 1.0 / (of_kind**2 + _LEAST_SCATTER**2)
    return weights[:, None]


def _mean(total: Values, shares: Values) -> Values:
    mean: Values = total / np.where(shares > 0, shares, 1.0)
    return mean
