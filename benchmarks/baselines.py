"""How often a night without any change is red by its baseline, and what a loss must be to be seen.

``.venv/bin/python benchmarks/baselines.py`` prints the table of docs/baselines.md.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from fabricproof.history.baseline.bounds import Samples, learn

Values = npt.NDArray[np.float64]
Night = Callable[[], Values]
Noise = Callable[[np.random.Generator, int], Night]

#: run-to-run deviation of the typical quantity, as a share of it
DEVIATION = 0.01


def same(generator: np.random.Generator, num: int) -> Night:
    """Normal noise of one scale."""
    return lambda: np.exp(generator.normal(0, DEVIATION, num))


def unlike(generator: np.random.Generator, num: int) -> Night:
    """Normal noise whose scale differs from quantity to quantity, by a factor of some."""
    scales = DEVIATION * np.sqrt(4 / generator.chisquare(4, num))
    return lambda: np.exp(generator.normal(0, 1, num) * scales)


def skewed(generator: np.random.Generator, num: int) -> Night:
    """Noise that only ever costs: gamma with shape 2."""
    return lambda: np.exp(-DEVIATION / 2 * generator.gamma(2, 1, num))


def common(generator: np.random.Generator, num: int) -> Night:
    """Half of the noise is the night's own, and hits all quantities alike."""
    return lambda: np.exp(generator.normal(0, DEVIATION, num) + generator.normal(0, DEVIATION))


def stalls(generator: np.random.Generator, num: int) -> Night:
    """Normal noise, and one number in a hundred loses a fifth on average to a stall."""
    return lambda: np.exp(
        generator.normal(0, DEVIATION, num)
        - np.where(generator.random(num) < 0.01, generator.exponential(0.2, num), 0.0)
    )


def heavy(generator: np.random.Generator, num: int) -> Night:
    """Student's t with three degrees of freedom."""
    return lambda: np.exp(DEVIATION / 3**0.5 * generator.standard_t(3, num))


def modes(generator: np.random.Generator, num: int) -> Night:
    """One number in fifty is of a second mode, 8 % lower."""
    return lambda: np.exp(
        generator.normal(0, DEVIATION, num) - np.where(generator.random(num) < 0.02, 0.08, 0.0)
    )


def printed(generator: np.random.Generator, num: int) -> Night:
    """Rates from 0.01 to 0.3 MB/s, printed with two decimals."""
    levels = np.exp(generator.uniform(math.log(0.01), math.log(0.3), num))
    return lambda: np.maximum(
        np.round(levels * np.exp(generator.normal(0, DEVIATION, num)), 2), 0.01
    )


KINDS: dict[str, Noise] = {
    "same": same,
    "unlike": unlike,
    "skewed": skewed,
    "common": common,
    "stalls": stalls,
    "heavy": heavy,
    "modes": modes,
    "printed": printed,
}


@dataclass(frozen=True, kw_only=True)
class Rates:
    """What came of one kind of noise.

    Attributes:
        first: share of nights in which a first look is red.
        twice: share in which one quantity is red in two looks, as the job's second look wants it.
        bound: median distance of a bound from its median, as a fraction.
    """

    first: float
    twice: float
    bound: float


def rates(
    noise: Noise, runs: int, *, num: int, worlds: int, nights: int, seed: int = 20261121
) -> Rates:
    """Return how often nights without any change are red.

    Args:
        noise: which.
        runs: that a baseline is learnt from.
        num: quantities of a night.
        worlds: baselines that are learnt.
        nights: that each judges.
        seed: of the generator.
    """
    generator = np.random.default_rng(seed)
    first = twice = 0
    widths = []
    for _ in range(worlds):
        night = noise(generator, num)
        history = [night() for _ in range(runs)]
        found = learn(
            {
                each: Samples(
                    values={f"run{n}": float(values[each]) for n, values in enumerate(history)},
                    unit="MB/s",
                    kind=("one",),
                )
                for each in range(num)
            }
        )
        lows = np.array([found[each].low for each in range(num)])
        widths += [1 - each.low / each.median for each in found.values()]
        for _ in range(nights):
            red = night() < lows
            first += bool(red.any())
            twice += bool((red & (night() < lows)).any())
    total = worlds * nights
    return Rates(first=first / total, twice=twice / total, bound=float(np.median(widths)))


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quantities", type=int, default=500)
    parser.add_argument("--worlds", type=int, help="baselines of each line")
    parser.add_argument("--nights", type=int, default=40)
    parser.add_argument("--full", action="store_true", help="the figures of docs/baselines.md")
    asked = parser.parse_args()
    worlds = asked.worlds or (50 if asked.full else 5)
    sys.stdout.write("noise  | runs | first look red | red twice | bound\n")
    for name, noise in KINDS.items():
        for runs in (5, 10, 20):
            found = rates(noise, runs, num=asked.quantities, worlds=worlds, nights=asked.nights)
            sys.stdout.write(
                f"{name:<7}| {runs:>4} | {found.first:>14.2%} | {found.twice:>9.2%} | "
                f"{found.bound:.1%}\n"
            )


if __name__ == "__main__":
    main()
