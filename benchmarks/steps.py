"""How often trends tell something false, and how often they find what is true.

    .venv/bin/python benchmarks/steps.py [--full] [TABLE ...]

Tables: ``null``, ``lag``, ``power``, ``drift``, ``place``, ``looks``, ``delay``,
``speed``; all without a name.  Seeded: the same figures each time, but for the times.  The short
form is a twentieth of the histories.
Rates have 95 % intervals (Wilson 1927).  Beside ours stands the rule that a night is told where any
quantity is 5 % off the median of the nights before.
"""

from __future__ import annotations

import math
import resource
import sys
import time
from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt

from fabricproof.history.stats.steps import Changes, find_changes

Values = npt.NDArray[np.float64]
Noise = Callable[[np.random.Generator, int, int], Values]

ROWS = 40

#: orders in a simulated history: fewer than in use, which makes p a little larger
ORDERS = 600

MARGIN = 0.03


# Noise: factors around 1, shape (rows, runs), in which nothing lasting happens.


def lognormal(random: np.random.Generator, rows: int, runs: int) -> Values:
    """2 % of scatter, normal on the logarithm."""
    return np.exp(random.normal(0, 0.02, (rows, runs)))


def heavy(random: np.random.Generator, rows: int, runs: int) -> Values:
    """Tails of Student's t with 2 degrees of freedom, whose variance is infinite."""
    return np.exp(0.01 * np.clip(random.standard_t(2, (rows, runs)), -200, 200))


def bimodal(random: np.random.Generator, rows: int, runs: int) -> Values:
    """Two levels 10 % apart, three runs of four on the upper: another core each time."""
    lower = random.random((rows, runs)) < 0.25
    return lognormal(random, rows, runs) * np.where(lower, 0.9, 1.0)


def outliers(random: np.random.Generator, rows: int, runs: int) -> Values:
    """One number in fifty is 40 % low."""
    low = random.random((rows, runs)) < 0.02
    return lognormal(random, rows, runs) * np.where(low, 0.6, 1.0)


def bad_nights(random: np.random.Generator, rows: int, runs: int) -> Values:
    """One night in twenty everything is 20 % low."""
    low = random.random((1, runs)) < 0.05
    return lognormal(random, rows, runs) * np.where(low, 0.8, 1.0)


def common(random: np.random.Generator, rows: int, runs: int) -> Values:
    """Nights that move all quantities together, as much as each moves alone."""
    return lognormal(random, rows, runs) * np.exp(random.normal(0, 0.02, (1, runs)))


def missing(random: np.random.Generator, rows: int, runs: int) -> Values:
    """A fifth of the numbers is missing, and a tenth of the nights for half of the rows."""
    values = lognormal(random, rows, runs)
    values[random.random((rows, runs)) < 0.2] = np.nan
    gone = random.random(runs) < 0.1
    values[: rows // 2, gone] = np.nan
    return values


def unlike(random: np.random.Generator, rows: int, runs: int) -> Values:
    """Rows of one class whose scatter goes from 0.2 % to 20 %."""
    scatter = np.exp(random.uniform(math.log(0.002), math.log(0.2), (rows, 1)))
    return np.exp(scatter * random.normal(0, 1, (rows, runs)))


def correlated(lag: float, *, shared: bool) -> Noise:
    """Return noise in which one night hangs together with the next: AR(1)."""

    def noise(random: np.random.Generator, rows: int, runs: int) -> Values:
        steps = random.normal(0, 1, (1 if shared else rows, runs + 30))
        for run in range(1, runs + 30):
            steps[:, run] = lag * steps[:, run - 1] + math.sqrt(1 - lag**2) * steps[:, run]
        return np.asarray(np.exp(0.02 * steps[:, 30:])) * np.ones((rows, 1))

    return noise


NOISES: dict[str, Noise] = {
    "lognormal": lognormal,
    "heavy tail": heavy,
    "bimodal": bimodal,
    "outliers": outliers,
    "bad nights": bad_nights,
    "night effects": common,
    "missing": missing,
    "unlike rows": unlike,
}


def ours(values: Values, seed: int, orders: int = ORDERS) -> Changes:
    """Return what is told of a history."""
    rows = len(values)
    return find_changes(
        100 * values, classes=[0] * rows, margins=[MARGIN] * rows, seed=seed, num_orders=orders
    )


def naive(values: Values) -> bool:
    """Tell whether the last night is 5 % below the median of those before, in any row."""
    last, before = values[:, -1], values[:, :-1]
    return bool(np.nanmin(last / np.nanmedian(before, axis=1)) < 0.95)


def bounds(hits: int, of: int) -> tuple[float, float]:
    """Return Wilson's interval of 95 % of a rate (1927)."""
    z, rate = 1.96, hits / of
    centre = (rate + z * z / (2 * of)) / (1 + z * z / of)
    half = z * math.sqrt(rate * (1 - rate) / of + z * z / (4 * of * of)) / (1 + z * z / of)
    return max(centre - half, 0.0), min(centre + half, 1.0)


def wilson(hits: int, of: int) -> str:
    """Return a rate with its 95 % interval, in percent."""
    low, high = bounds(hits, of)
    return f"{hits / of:5.1%} ({low:.1%}-{high:.1%})"


def null(count: int) -> None:
    """Print how often a history without any change tells one."""
    print(f"\nNothing changed: histories in which something is told, {count} each, {ROWS} rows")
    print(f"{'noise':<16}{'nights':>7}  {'any':<20}{'step':>7}{'last':>7}{'drift':>7}  naive rule")
    for name, noise in NOISES.items():
        for runs in (12, 30):
            random = np.random.default_rng([runs, *name.encode()])
            told = [0, 0, 0, 0, 0]
            for seed in range(count):
                values = noise(random, ROWS, runs)
                found = ours(values, seed)
                last = any(each.at == runs - 1 for each in found.steps)
                step = any(each.at < runs - 1 for each in found.steps)
                seen = (step or last or found.drifts, step, last, found.drifts, naive(values))
                told = [number + bool(each) for number, each in zip(told, seen, strict=True)]
            parts = "".join(f"{number / count:7.1%}" for number in told[1:4])
            print(f"{name:<16}{runs:7}  {wilson(told[0], count):<20}{parts}  {told[4] / count:.1%}")


def lag(count: int) -> None:
    """Print the same where nights hang together."""
    print(
        f"\nNights that hang together (AR(1)): histories in which something is told, {count} each"
    )
    print(f"{'noise':<24}{'nights':>7}  {'told':<20}  warned")
    for shared in (False, True):
        for strength in (0.3, 0.5, 0.7):
            for runs in (12, 30, 60):
                random = np.random.default_rng([runs, int(10 * strength), shared])
                noise = correlated(strength, shared=shared)
                found = [ours(noise(random, ROWS, runs), seed) for seed in range(count)]
                told = sum(bool(each.steps or each.drifts) for each in found)
                warned = sum(each.lag > 0 for each in found)
                name = f"{strength}, {'common to all' if shared else 'each its own'}"
                print(f"{name:<24}{runs:7}  {wilson(told, count):<20}  {warned / count:.0%}")


def power(count: int) -> None:
    """Print how often a step of a quarter of the rows is found, by size, nights and place."""
    print(
        f"\nA step of 10 of {ROWS} rows (scatter 2 %): histories in which it is found, {count} each"
    )
    print("and the share of false quantities among all that is told")
    print(f"{'nights':>7}{'after':>7}" + "".join(f"{size:>9.0%}" for size in SIZES) + "   false")
    for runs, after in (
        (8, 4),
        (10, 5),
        (11, 1),
        (12, 2),
        (20, 2),
        (20, 1),
        (30, 3),
        (30, 15),
        (60, 1),
        (60, 5),
        (60, 30),
    ):
        cells, false, everything = [], 0, 0
        for size in SIZES:
            random = np.random.default_rng([runs, after, int(100 * size)])
            hits = 0
            for seed in range(count):
                values = lognormal(random, ROWS, runs)
                values[:10, runs - after :] *= 1 - size
                steps = ours(values, seed, ORDERS if runs > 12 else 5 * ORDERS).steps
                hits += any(each.row < 10 and abs(each.at - runs + after) <= 1 for each in steps)
                false += sum(each.row >= 10 for each in steps)
                everything += len(steps)
            cells.append(f"{hits / count:9.0%}")
        print(f"{runs:7}{after:7}{''.join(cells)}   {false / max(everything, 1):.2%}")


SIZES = (0.03, 0.05, 0.1, 0.2, 0.48)


def drift(count: int) -> None:
    """Print how often a drift is told, and told as one; and a step is not told as a drift."""
    print(f"\nA drift of 10 of {ROWS} rows (scatter 2 %): of the rows, {count} histories each")
    print(f"{'nights':>7}{'total':>7}{'as drift':>10}{'as steps':>10}{'not':>7}")
    for runs in (15, 30, 60):
        for total in (0.05, 0.1, 0.2):
            random = np.random.default_rng([runs, int(100 * total)])
            drifts = steps = 0
            for seed in range(count):
                values = lognormal(random, ROWS, runs)
                values[:10] *= (1 - total) ** np.linspace(0, 1, runs)
                found = ours(values, seed)
                drifts += sum(each.row < 10 for each in found.drifts)
                steps += len({each.row for each in found.steps if each.row < 10})
            of = 10 * count
            rest = 1 - (drifts + steps) / of
            print(f"{runs:7}{total:7.0%}{drifts / of:10.0%}{steps / of:10.0%}{rest:7.0%}")
    random = np.random.default_rng(7)
    wrong = right = 0
    for seed in range(count):
        values = lognormal(random, ROWS, 30)
        values[:10, 12:] *= 0.9
        found = ours(values, seed)
        wrong += sum(each.row < 10 for each in found.drifts)
        right += len({each.row for each in found.steps if each.row < 10})
    print(f"a step of 10 % at night 12 of 30: {right / (10 * count):.0%} of its rows told as step, "
          f"{wrong / (10 * count):.1%} as drift")  # fmt: skip


def rounded(random: np.random.Generator, rows: int, runs: int) -> Values:
    """2 % of scatter, printed in steps of 2 %."""
    return np.asarray(np.round(lognormal(random, rows, runs) / 0.02) * 0.02)


def quiet(random: np.random.Generator, rows: int, runs: int) -> Values:
    """1 % of scatter, normal on the logarithm."""
    return np.exp(random.normal(0, 0.01, (rows, runs)))


LOOKED_AT: dict[str, Noise] = {
    **{name: NOISES[name] for name in ("lognormal", "heavy tail", "bimodal", "bad nights")},
    "rounded": rounded,
    "0.5, common": correlated(0.5, shared=True),
    "0.7, own": correlated(0.7, shared=False),
}

#: runs at the first look, at the 27th of those that were measured first, and at the last
FIRST, MIDDLE, LAST = 10, 36, 90


def looked_at(values: Values, runs: int) -> tuple[bool, bool]:
    """Return whether a look after so many runs tells anything, and whether it calls."""
    newest = 100 * values[:, max(0, runs - 60) : runs]
    rows = len(values)
    found = find_changes(newest, classes=[0] * rows, margins=[MARGIN] * rows, num_looks=runs)
    told = [*found.steps, *found.drifts]
    return bool(told), any(each.sure for each in told)


def firsts(name: str, number: int) -> tuple[float, float]:
    """Return after how many runs a history without any change first tells one, and first calls."""
    random = np.random.default_rng([number, *name.encode()])
    values = LOOKED_AT[name](random, ROWS, LAST)
    seen = {runs: looked_at(values, runs) for runs in range(FIRST, LAST + 1)}
    told, called = (
        next((runs for runs, each in seen.items() if each[which]), math.inf) for which in (0, 1)
    )
    return told, called


def looks(count: int) -> None:
    """Print how often something is told, and called, at any of the looks; nothing changed."""
    print(
        f"\nLooked at after each run from the {FIRST}th on, {count} histories each, {ROWS} rows: "
        "ever told (one look's 5 %), ever called"
    )
    print(f"{'noise':<12}{'runs':>5}  {'told':<22}called")
    for name in LOOKED_AT:
        found = [firsts(name, number) for number in range(count)]
        for runs in (MIDDLE, LAST):
            told, called = (sum(each[which] <= runs for each in found) for which in (0, 1))
            print(f"{name:<12}{runs:5}  {wilson(told, count):<22}{wilson(called, count)}")


def delay(count: int) -> None:
    """Print after how many runs a step is told, and called."""
    print(f"\nRuns until a step of some of {ROWS} rows is told / called, {count} histories each")
    print("median, and what 90 % need at most; 99: more than 25")
    print(f"{'noise':<12}{'before':>7}{'rows':>5}" + "".join(f"{size:>22.0%}" for size in STEPS))
    noises = {"1 %": quiet, "2 %": lognormal, "bimodal": bimodal}
    cases = [("1 %", 12, 10), ("1 %", 30, 10), ("1 %", 60, 10), ("1 %", 30, 1)]
    for name, before, rows in [*cases, ("2 %", 30, 10), ("bimodal", 30, 10)]:
        cells = []
        for size in STEPS:
            random = np.random.default_rng([before, rows, int(100 * size), *name.encode()])
            waits = [waited(noises[name](random, ROWS, before + 25), before, rows, size)
                     for _ in range(count)]  # fmt: skip
            told, called = (
                np.quantile([each[which] for each in waits], (0.5, 0.9)) for which in (0, 1)
            )
            cells.append(f"{told[0]:.0f} ({told[1]:.0f}) / {called[0]:.0f} ({called[1]:.0f})")
        print(f"{name:<12}{before:7}{rows:5}" + "".join(f"{each:>22}" for each in cells))


STEPS = (0.03, 0.05, 0.1)


def waited(values: Values, before: int, rows: int, size: float) -> tuple[int, int]:
    """Return after how many runs a step after ``before`` of them is told, and called."""
    values[:rows, before:] *= 1 - size
    told = 99
    for after in range(1, values.shape[1] - before + 1):
        is_told, is_called = looked_at(values, before + after)
        told = min(told, after) if is_told else told
        if is_called:
            return told, after
    return told, 99


def place(count: int) -> None:
    """Print how often the interval of moments holds the true one, and how long it is."""
    print(f"\nWhere a step is: intervals that hold the true night (stated 95 %), {count} histories")
    print(f"{'nights':>7}{'size':>7}{'holds':>9}{'median length':>16}{'exact':>8}")
    for runs in (12, 30):
        for size in (0.05, 0.1, 0.2):
            random = np.random.default_rng([runs, int(100 * size)])
            true, holds, exact = runs // 2, 0, 0
            lengths = []
            for seed in range(count):
                values = lognormal(random, ROWS, runs)
                values[:10, true:] *= 1 - size
                for each in ours(values, seed).steps:
                    if each.row < 10:
                        holds += each.earliest <= true <= each.latest
                        exact += each.at == true
                        lengths.append(each.latest - each.earliest + 1)
            of = max(len(lengths), 1)
            middle = np.median(lengths) if lengths else math.nan
            print(f"{runs:7}{size:7.0%}{holds / of:9.1%}{middle:16.0f}{exact / of:8.0%}")


def speed(count: int) -> None:
    """Print what large histories take, with 2000 orders."""
    print("\nTime and memory, 2000 orders, one row in a hundred steps, without and with gaps")
    print(f"{'rows':>9}{'runs':>6}{'gaps':>6}{'seconds':>9}{'peak MB':>9}")
    cases = [(10_000, 60), (276_000, 30)] if count > 100 else [(2_000, 30)]
    for rows, runs in cases:
        for gaps in (False, True):
            random = np.random.default_rng(1)
            values = lognormal(random, rows, runs)
            values[: rows // 100, runs // 2 :] *= 0.9
            if gaps:
                values[random.random((rows, runs)) < 0.02] = np.nan
            begin = time.perf_counter()
            ours(values, 1, orders=2000)
            took = time.perf_counter() - begin
            peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
            print(f"{rows:9}{runs:6}{'yes' if gaps else 'no':>6}{took:9.1f}{peak:9.0f}", flush=True)


TABLES: dict[str, tuple[Callable[[int], None], int]] = {
    "null": (null, 1000),
    "lag": (lag, 200),
    "power": (power, 100),
    "drift": (drift, 100),
    "place": (place, 100),
    "looks": (looks, 200),
    "delay": (delay, 20),
    "speed": (speed, 1000),
}


def main(arguments: Sequence[str]) -> None:
    """Print the tables that are asked for."""
    names = [each for each in arguments if each != "--full"] or list(TABLES)
    unknown = [each for each in names if each not in TABLES]
    if unknown:
        sys.exit(f"no table {unknown[0]}; there are: {', '.join(TABLES)}")
    for name in names:
        table, count = TABLES[name]
        table(count if "--full" in arguments else max(count // 20, 5))


if __name__ == "__main__":
    main(sys.argv[1:])
