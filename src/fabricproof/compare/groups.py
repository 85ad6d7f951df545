"""Rails, pairs, nodes, stacks and programs: one row for the typical quantity of each.

Of a run, a group's number is ``exp(mean(ln(value / level)))`` over its quantities, where ``level``
is the quantity's own over all runs of both sides, blind to which side a run is on: so rows of
groups may be relabelled together with those of quantities.  A run that lacks some of the
quantities would pull the mean to the others; rows and runs are therefore told apart first by an
additive fit of the logarithms (row effect and run effect, two-way analysis of variance with cells
missing: Scheffe 1959, *The Analysis of Variance*, section 4.4).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from fabricproof.compare.quantities import metric_of
from fabricproof.store import Key

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Values = npt.NDArray[np.float64]
    Rows = npt.NDArray[np.intp]

#: in the order in which a person reads them
KINDS = ("overall", "rail", "pair", "node", "stack", "program")

#: of more nodes than a pair no single one is blamed: every one would get every number
_NODES_OF_A_PAIR = 2

#: rounds of the additive fit; the runs' effects move by less than 1e-4 from then on
_ROUNDS = 12


@dataclass(frozen=True, kw_only=True)
class Members:
    """A group before anything is said of it.

    Attributes:
        kind: one of :data:`KINDS`.
        name: ``rail1``, ``vc1 - vc3``.
        metric: ``bandwidth`` ...
        better: 1 where more is better, -1 where less is.
        rows: of the quantities compared, which are of the group.
    """

    kind: str
    name: str
    metric: str
    better: int
    rows: Rows


def group_rows(keys: Sequence[Key]) -> list[Members]:
    """Return the groups of the quantities, overall first; a group is of one metric.

    Args:
        keys: of the quantities that are compared.
    """
    import numpy as np  # noqa: PLC0415 - start-up time

    found: dict[tuple[str, str, str, int], list[int]] = {}
    homes: dict[tuple[str, str, str, str], tuple[tuple[str, str], ...]] = {}
    for row, key in enumerate(keys):
        place = (key.rails, key.nodes, key.stack, key.program)
        if place not in homes:
            homes[place] = tuple(_homes(key))
        metric = metric_of(key)
        for kind, name in homes[place]:
            found.setdefault((kind, name, metric, key.better), []).append(row)
    order = {kind: index for index, kind in enumerate(KINDS)}
    return [
        Members(kind=kind, name=name, metric=metric, better=better, rows=np.array(rows))
        for (kind, name, metric, better), rows in sorted(
            found.items(), key=lambda item: (order[item[0][0]], item[0])
        )
    ]


def _homes(key: Key) -> Iterator[tuple[str, str]]:
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


def group_values(values: Values, groups: Iterable[Members]) -> Values:
    """Return one row for each group: its typical quantity in each run, NaN where a run has none.

    Args:
        values: shape (quantities, runs), positive, NaN where absent.
        groups: of :func:`group_rows`.
    """
    import numpy as np  # noqa: PLC0415 - start-up time

    logs = np.log(values)
    here = np.isfinite(logs)
    rows = [_typical(logs[each.rows], here[each.rows]) for each in groups]
    return np.exp(np.array(rows)).reshape(len(rows), values.shape[1])


def _typical(logs: Values, here: np.ndarray[tuple[int, ...], np.dtype[np.bool_]]) -> Values:
    """Return the effect of each run on the quantities of one group."""
    import numpy as np  # noqa: PLC0415 - start-up time

    count = here.sum(axis=0)
    used = count > 0
    whole = here[:, used].all(axis=1)
    if 2 * int(whole.sum()) >= len(logs):
        # Enough quantities are in every run: those alone, and nothing need be fitted.
        logs, here = logs[whole], here[whole]
        count = here.sum(axis=0)
    levels = np.nanmedian(logs, axis=1, keepdims=True)
    filled = np.where(here, logs - levels, 0.0)
    of_rows = here.sum(axis=1, keepdims=True)
    runs = _mean(filled.sum(axis=0), count)
    if not here[:, used].all():
        for _ in range(_ROUNDS):
            level = (filled - np.where(here, runs, 0.0)).sum(axis=1, keepdims=True) / of_rows
            runs = _mean(np.where(here, filled - level, 0.0).sum(axis=0), count)
    return np.where(used, runs, np.nan)


def _mean(total: Values, count: npt.NDArray[np.int_]) -> Values:
    import numpy as np  # noqa: PLC0415 - start-up time

    mean: Values = total / np.maximum(count, 1)
    return mean
