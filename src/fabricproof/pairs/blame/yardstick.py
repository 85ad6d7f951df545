"""What a healthy pair of a matrix reaches, found from the matrix itself, and how far it scatters.

Values are logarithms for which more is better, so that 0.1 is 10 %.  The values of a healthy
fabric may lie in heaps: pairs on one leaf are faster than those across.  Heaps are told apart by a
smoothed histogram; which of them is the healthy one the blame decides, by what it can explain.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Values = npt.NDArray[np.float64]

#: width of a bin, and the least and most smoothing
_BIN, _LEAST_SMOOTHING, _MOST_SMOOTHING = 0.01, 0.02, 0.05

#: two heaps are two where the density between them falls below this part of the lower one
_VALLEY = 0.4

#: MAD of a normal distribution -> its standard deviation
_NORMAL = 1.4826

#: no fabric repeats better than this, whatever few values say
_LEAST_SCATTER = 0.003

#: a heap that may be the healthy one holds this part of the values
LEAST_WEIGHT = 0.08

#: values below which nothing is said of the population
LEAST_VALUES = 6


@dataclass(frozen=True, kw_only=True)
class Heap:
    """Values that lie together.

    Attributes:
        centre: median, a logarithm.
        scatter: standard deviation, robust.
        weight: part of all values, 0 to 1.
    """

    centre: float
    scatter: float
    weight: float


def heaps(values: Values) -> tuple[Heap, ...]:
    """Return the heaps of ``values``, best first; of no values none."""
    if not len(values):
        return ()
    median = float(np.median(values))
    smoothing = float(
        np.clip(_NORMAL * np.median(np.abs(values - median)), _LEAST_SMOOTHING, _MOST_SMOOTHING)
    )
    # Far below there is nothing healthy: what carries a fiftieth of the median is one heap.
    clipped = np.clip(values, median - 4.0, median + 4.0)
    low = float(clipped.min()) - 4 * smoothing
    bins = ((clipped - low) / _BIN).astype(np.int64)
    counts = np.bincount(bins, minlength=int(bins.max()) + 1 + int(4 * smoothing / _BIN))
    reach = np.arange(-int(4 * smoothing / _BIN), int(4 * smoothing / _BIN) + 1) * _BIN
    density = np.convolve(counts, np.exp(-0.5 * (reach / smoothing) ** 2), mode="same")
    rising = np.diff(density, prepend=0.0) > 0
    peaks = np.flatnonzero(rising & ~np.append(rising[1:], False)).tolist()
    kept: list[int] = []
    valleys: list[int] = []
    for peak in peaks:
        while kept:
            between = kept[-1] + int(np.argmin(density[kept[-1] : peak + 1]))
            if density[between] < _VALLEY * min(density[kept[-1]], density[peak]):
                kept.append(peak)
                valleys.append(between)
                break
            if density[peak] <= density[kept[-1]]:
                break
            kept.pop()
            if valleys:
                valleys.pop()
        else:
            kept.append(peak)
    edges = np.array([0, *valleys, len(density)])
    heap_of = np.searchsorted(edges, bins, side="right") - 1
    found = []
    for number in range(len(edges) - 2, -1, -1):
        own = values[heap_of == number]
        if len(own):
            centre = float(np.median(own))
            scatter = float(_NORMAL * np.median(np.abs(own - centre)))
            found.append(
                Heap(
                    centre=centre,
                    scatter=max(scatter, _LEAST_SCATTER),
                    weight=len(own) / len(values),
                )
            )
    return tuple(found)


def candidates(values: Values, least: float | None = None) -> tuple[Heap, ...]:
    """Return the heaps that may be the healthy one, most likely first: at most two.

    They are the heaviest, and the best one that is not too light.

    ``least``: where a reference says how much a healthy pair has, the heaps that have it go first.
    """
    found = heaps(values)
    if not found:
        return ()
    if least is not None:
        enough = [heap for heap in found if heap.centre >= least and heap.weight >= LEAST_WEIGHT]
        found = tuple(enough) or found
    heaviest = max(found, key=lambda heap: heap.weight)
    best = next((heap for heap in found if heap.weight >= LEAST_WEIGHT), heaviest)
    return (heaviest,) if best is heaviest else (heaviest, best)
