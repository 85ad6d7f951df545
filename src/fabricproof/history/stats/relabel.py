"""Which other ways there are to call runs first or second, had nothing changed.

If nothing changed between the sides, which run is on which side says nothing of its numbers, and
every way to share the runs out, within their blocks, was as likely as the one that happened.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from fabricproof.history.stats.power import number_of_labellings

if TYPE_CHECKING:
    import numpy.typing as npt

    Values = npt.NDArray[np.float64]

#: with so many labellings or fewer all are tried; else one less than this are drawn, and the real
#: one is counted among them (Phipson and Smyth 2010, "Permutation p-values should never be zero")
MOST = 5000

#: numbers beyond which fewer are drawn: 1000 tell a p of 5 % to within 0.7 %
_MANY, _FEW_DRAWN = 1_000_000, 1000


@dataclass(frozen=True, kw_only=True, slots=True)
class Labellings:
    """Ways to share the runs out, the real one first.

    Attributes:
        second: shape (runs, labellings), 1.0 where the run is of the second side.
        exact: whether these are all that there are.
    """

    second: Values
    exact: bool

    @property
    def num(self) -> int:
        """How many there are."""
        return int(self.second.shape[1])


def labellings(
    values: Values, is_second: npt.NDArray[np.bool_], blocks: npt.NDArray[np.int64], seed: int
) -> Labellings:
    """Return all labellings, or a draw of them that depends on neither side nor order.

    A draw goes by the runs in the order of their numbers, not of their columns: with the same
    seed the same runs in another order, or with the sides swapped, give the same answer.

    Args:
        values: shape (rows, runs), for that order only.
        is_second: shape (runs,).
        blocks: shape (runs,), the block of each.
        seed: of the draw.
    """
    groups = _blocks_in_order(_order_of_runs(values), blocks)
    num = number_of_labellings(
        [(int((~is_second[each]).sum()), int(is_second[each].sum())) for each in groups]
    )
    most = MOST if values.size <= _MANY else _FEW_DRAWN
    if num <= MOST:
        found = list(_all(groups, is_second))
    else:
        found = list(_drawn(groups, is_second, np.random.default_rng(seed), most - 1))
    real = is_second.astype(np.float64)
    columns = np.array(found, dtype=np.float64).reshape(-1, is_second.size)
    if num <= MOST:
        columns = columns[(columns != real).any(axis=1)]
    return Labellings(second=np.vstack([real[None, :], columns]).T.copy(), exact=num <= MOST)


def _order_of_runs(values: Values) -> list[int]:
    """Return the columns by their numbers from the smallest, so that no order of rows counts.

    Positive floats and their bytes sort alike.
    """
    columns = np.sort(np.nan_to_num(values.T, nan=0.0), axis=1).astype(">f8")
    return sorted(range(values.shape[1]), key=lambda run: columns[run].tobytes())


def _blocks_in_order(
    order: Sequence[int], blocks: npt.NDArray[np.int64]
) -> list[npt.NDArray[np.int64]]:
    found: dict[int, list[int]] = {}
    for run in order:
        found.setdefault(int(blocks[run]), []).append(run)
    return [np.array(each, dtype=np.int64) for each in found.values()]


def _all(
    groups: Sequence[npt.NDArray[np.int64]], is_second: npt.NDArray[np.bool_]
) -> Iterator[npt.NDArray[np.bool_]]:
    choices = [itertools.combinations(each, int(is_second[each].sum())) for each in groups]
    for chosen in itertools.product(*choices):
        label = np.zeros(is_second.size, dtype=np.bool_)
        label[[run for part in chosen for run in part]] = True
        yield label


def _drawn(
    groups: Sequence[npt.NDArray[np.int64]],
    is_second: npt.NDArray[np.bool_],
    random: np.random.Generator,
    num: int,
) -> Iterator[npt.NDArray[np.bool_]]:
    """Draw the smaller side of each block, so that swapped sides get complements of the same."""
    for _ in range(num):
        label = np.zeros(is_second.size, dtype=np.bool_)
        for each in groups:
            second = int(is_second[each].sum())
            small = min(second, each.size - second)
            chosen = np.zeros(each.size, dtype=np.bool_)
            chosen[random.permutation(each.size)[:small]] = True
            even = second * 2 == each.size
            flipped = not is_second[each[0]] if even else second != small
            label[each] = ~chosen if flipped else chosen
        yield label
