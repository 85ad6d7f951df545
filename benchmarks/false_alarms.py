"""How often comparing says something false, and how often it finds what is true.

    .venv/bin/python benchmarks/false_alarms.py [--full] [TABLE ...]

Tables: ``null``, ``sizes``, ``same``, ``coverage``, ``power``, ``scatter``, ``order``,
``node``, ``looks``; all without a name.  Seeded: the same figures each time.  The short form is a
hundredth of the comparisons, ``--full`` those of ``docs/statistics.md``; ``--num=200`` so many.
Rates have 95 % intervals (Wilson 1927).  Beside ours stand the rules that are in use elsewhere.
"""

from __future__ import annotations

import functools
import math
import sys
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import rivals
from order import order_matters
from steps import bounds

from fabricproof.core.student import student_quantile
from fabricproof.history.stats.interval import null_distribution
from fabricproof.history.stats.max_t import step_down
from fabricproof.history.stats.relabel import kinds_of, labellings, prepared
from fabricproof.history.stats.shifts import Change, Shift, compare_rows

Values = npt.NDArray[np.float64]
Noise = Callable[[np.random.Generator, int, int], Values]

#: the rules that ours stands beside, in the order of the columns
RULES = ("medians > 5 %", "Welch t", "U + Bonferroni", "U + BH")


# Noise: factors around 1, shape (rows, runs), in which nothing changed between any two runs.


def lognormal(random: np.random.Generator, rows: int, runs: int) -> Values:
    """1 % of scatter, normal on the logarithm."""
    return np.exp(random.normal(0.0, 0.01, (rows, runs)))


def right_tail(random: np.random.Generator, rows: int, runs: int) -> Values:
    """Latency: never below a floor, one in twenty 4 % above it or more, some far more."""
    return np.exp(0.005 * random.lognormal(0.0, 1.3, (rows, runs)))


def bimodal(random: np.random.Generator, rows: int, runs: int) -> Values:
    """Two modes, 15 % apart, the slower one three times in ten, each row for itself."""
    slow = random.random((rows, runs)) < 0.3
    return lognormal(random, rows, runs) * np.where(slow, 1.15, 1.0)


def bimodal_nights(random: np.random.Generator, rows: int, runs: int) -> Values:
    """Two modes, of all rows of a run alike."""
    slow = random.random((1, runs)) < 0.3
    return lognormal(random, rows, runs) * np.where(slow, 1.15, 1.0)


def outliers(random: np.random.Generator, rows: int, runs: int) -> Values:
    """One number in twenty is three times too large."""
    wild = random.random((rows, runs)) < 0.05
    return lognormal(random, rows, runs) * np.where(wild, 3.0, 1.0)


def good_and_bad_nights(random: np.random.Generator, rows: int, runs: int) -> Values:
    """2 % from night to night, common to all rows, beside 1 % of each."""
    return lognormal(random, rows, runs) * np.exp(random.normal(0.0, 0.02, (1, runs)))


def unlike_rows(random: np.random.Generator, rows: int, runs: int) -> Values:
    """Scatter from 0.2 % to 10 %, another in each row, in one kind of row."""
    scale = np.exp(random.uniform(math.log(0.002), math.log(0.1), (rows, 1)))
    return np.exp(random.normal(0.0, 1.0, (rows, runs)) * scale)


def missing(random: np.random.Generator, rows: int, runs: int) -> Values:
    """One number in four is missing, and of a tenth of the rows most."""
    share = np.where(np.arange(rows) % 10 == 0, 0.7, 0.25)[:, None]
    found = lognormal(random, rows, runs)
    found[random.random((rows, runs)) < share] = np.nan
    return found


def slow_node(random: np.random.Generator, rows: int, runs: int) -> Values:
    """A tenth of the rows is of a node that is 40 % slower on both sides, and wilder."""
    sick = (np.arange(rows) % 10 == 0)[:, None]
    wild = np.exp(np.abs(random.normal(0.0, 0.15, (rows, runs))))
    return lognormal(random, rows, runs) * np.where(sick, 1.4 * wild, 1.0)


def rounded(random: np.random.Generator, rows: int, runs: int) -> Values:
    """Latencies of 2 us printed with two digits: many are equal."""
    return np.round(2.0 * np.exp(random.normal(0.0, 0.004, (rows, runs))), 2)


NOISES: dict[str, Noise] = {
    "lognormal": lognormal,
    "right tail": right_tail,
    "bimodal": bimodal,
    "bimodal nights": bimodal_nights,
    "outliers": outliers,
    "good, bad nights": good_and_bad_nights,
    "unlike rows": unlike_rows,
    "missing": missing,
    "slow node": slow_node,
    "rounded": rounded,
}


def drift(per_run: float) -> Noise:
    """Everything is ``per_run`` slower each night."""

    def noise(random: np.random.Generator, rows: int, runs: int) -> Values:
        return lognormal(random, rows, runs) * np.exp(per_run * np.arange(runs))[None, :]

    return noise


def remembering(memory: float) -> Noise:
    """Nights of 2 % that take after the night before: correlation ``memory``."""

    def noise(random: np.random.Generator, rows: int, runs: int) -> Values:
        night = random.normal(0.0, 1.0, runs)
        for run in range(1, runs):
            night[run] = memory * night[run - 1] + math.sqrt(1 - memory**2) * night[run]
        return lognormal(random, rows, runs) * np.exp(0.02 * night)[None, :]

    return noise


# Rules in use elsewhere: each says of each row whether it changed.


def by_medians(first: Values, second: Values) -> npt.NDArray[np.bool_]:
    """The medians are more than 5 % apart."""
    return np.abs(np.nanmedian(second, axis=1) / np.nanmedian(first, axis=1) - 1.0) > 0.05


def by_welch(first: Values, second: Values) -> npt.NDArray[np.bool_]:
    """Welch's t of each row, p below 5 %, nothing corrected for the number of rows."""
    counts = [np.isfinite(each).sum(axis=1) for each in (first, second)]
    with np.errstate(all="ignore"):
        parts = [
            np.nanvar(each, axis=1, ddof=1) / n
            for each, n in zip((first, second), counts, strict=True)
        ]
        total = parts[0] + parts[1]
        t = np.abs(np.nanmean(first, axis=1) - np.nanmean(second, axis=1)) / np.sqrt(total)
        parts_of = [p**2 / (n - 1) for p, n in zip(parts, counts, strict=True)]
        freedom = total**2 / (parts_of[0] + parts_of[1])
    known = np.isfinite(t) & np.isfinite(freedom) & (freedom >= 1)
    quantile = np.array([math.inf, *(student_quantile(0.025, each) for each in range(1, 61))])
    whole = np.clip(np.where(known, freedom, 0.0), 0, 60).astype(int)
    found: npt.NDArray[np.bool_] = known & (np.where(known, t, 0.0) > quantile[whole])
    return found


@functools.lru_cache
def tail_of_u(first: int, second: int) -> list[float]:
    """Return the probability that U is 0, at most 1, at most 2 ..."""
    tail: list[float] = np.cumsum(null_distribution((first, second))).tolist()
    return tail


def p_of_u(first: Values, second: Values) -> Values:
    """Return Mann and Whitney's two-sided p of each row, ties counted half."""
    pairs = second[:, None, :] - first[:, :, None]
    u = (pairs > 0).sum(axis=(1, 2)) + 0.5 * (pairs == 0).sum(axis=(1, 2))
    sizes = zip(np.isfinite(first).sum(axis=1), np.isfinite(second).sum(axis=1), strict=True)
    tails = []
    for below, (n, m) in zip(u, sizes, strict=True):
        tails.append(
            min(1.0, 2.0 * tail_of_u(int(n), int(m))[math.floor(min(below, n * m - below))])
        )
    return np.array(tails)


def by_bonferroni(p: Values) -> npt.NDArray[np.bool_]:
    """Return what Bonferroni leaves."""
    return p <= 0.05 / len(p)


def by_benjamini_hochberg(p: Values) -> npt.NDArray[np.bool_]:
    """Return what Benjamini and Hochberg 1995 leave."""
    ordered = np.sort(p)
    passed = np.flatnonzero(ordered <= 0.05 * np.arange(1, len(p) + 1) / len(p))
    return p <= (ordered[passed[-1]] if passed.size else 0.0)


def elsewhere(values: Values, num_first: int) -> list[npt.NDArray[np.bool_]]:
    """Return which rows each of :data:`RULES` calls changed."""
    first, second = values[:, :num_first], values[:, num_first:]
    p = p_of_u(first, second)
    with np.errstate(all="ignore"):
        here = np.isfinite(first).any(axis=1) & np.isfinite(second).any(axis=1)
        medians = np.zeros(len(values), dtype=np.bool_)
        medians[here] = by_medians(first[here], second[here])
        enough = (np.isfinite(first).sum(axis=1) >= 2) & (np.isfinite(second).sum(axis=1) >= 2)
        welch = np.zeros(len(values), dtype=np.bool_)
        welch[enough] = by_welch(first[enough], second[enough])
    return [medians, welch, by_bonferroni(p), by_benjamini_hochberg(p)]


# Running.


def compare(values: Values, num_first: int, *, margin: float) -> list[Shift]:
    """Compare the first runs with the others; less is better, one kind of row."""
    rows, runs = values.shape
    return compare_rows(
        values,
        [run >= num_first for run in range(runs)],
        better=[-1] * rows,
        margins=[margin] * rows,
        classes=[0] * rows,
    )


def random_for(*words: object) -> np.random.Generator:
    """Return a source of numbers that depends on what is asked, not on what was asked before."""
    return np.random.default_rng(zlib.crc32(repr(words).encode()))


def said(shifts: Sequence[Shift]) -> bool:
    """Tell whether any row is called BETTER or WORSE."""
    return any(each.change in {Change.BETTER, Change.WORSE} for each in shifts)


@dataclass(frozen=True, kw_only=True)
class Rate:
    """So many of so many."""

    hits: int
    num: int

    def __str__(self) -> str:
        low, high = bounds(self.hits, self.num)
        return f"{100 * self.hits / self.num:.1f} % ({100 * low:.1f} to {100 * high:.1f})"


def share(flags: Sequence[bool]) -> str:
    """Return a rate without its interval."""
    return f"{100 * sum(flags) / len(flags):.0f} %"


def false_alarms(noise: Noise, sizes: tuple[int, int], rows: int, num: int) -> list[list[bool]]:
    """Return, for ours and each of :data:`RULES`, whether each null comparison said anything.

    The margin is next to nothing (0.01 %), so the test alone has to hold.
    """
    random = random_for(noise.__name__, sizes, rows)
    found: list[list[bool]] = [[] for _ in range(1 + len(RULES))]
    for _ in range(num):
        values = noise(random, rows, sum(sizes))
        found[0].append(said(compare(values, sizes[0], margin=0.0001)))
        for column, flags in zip(found[1:], elsewhere(values, sizes[0]), strict=True):
            column.append(bool(flags.any()))
    return found


def head(*columns: str) -> None:
    """Print the head of a table."""
    print("| " + " | ".join(columns) + " |")
    print("|" + " --- |" * len(columns))


def line(*cells: object) -> None:
    """Print a row of a table."""
    print("| " + " | ".join(map(str, cells)) + " |", flush=True)


def table_null(num: int) -> None:
    """Comparisons in which nothing changed, by noise: 100 quantities, 5 runs on each side."""
    head("noise", "ours", *RULES)
    for name, noise in NOISES.items():
        ours, *others = false_alarms(noise, (5, 5), 100, num)
        line(name, Rate(hits=sum(ours), num=num), *map(share, others))


def table_sizes(num: int) -> None:
    """Likewise by number of runs, for the three worst noises."""
    head("runs", "noise", "ours", *RULES)
    for sizes in ((3, 3), (4, 10), (1, 30), (10, 10)):
        for name in ("right tail", "outliers", "missing"):
            ours, *others = false_alarms(NOISES[name], sizes, 100, num)
            line(
                f"{sizes[0]} v {sizes[1]}", name, Rate(hits=sum(ours), num=num), *map(share, others)
            )


def table_same(num: int) -> None:
    """How often SAME is said of a row that did change, margin 3 %; per row, not per comparison."""
    head("noise", "runs", "changed by the margin", "changed by two margins", "not changed")
    for name in ("lognormal", "right tail", "bimodal", "outliers", "unlike rows"):
        for sizes in ((3, 3), (5, 5), (1, 30), (10, 10)):
            cells = []
            for factor in (1 / 0.97, 1 / 0.97**2, 1.0):
                random = random_for("same", name, sizes, factor)
                words = []
                for _ in range(num // 10 + 1):
                    values = NOISES[name](random, 20, sum(sizes))
                    values[:, sizes[0] :] *= factor
                    words += [s.change for s in compare(values, sizes[0], margin=0.03)]
                cells.append(Rate(hits=words.count(Change.SAME), num=len(words)))
            line(name, f"{sizes[0]} v {sizes[1]}", *cells)


def table_coverage(num: int) -> None:
    """How often the interval holds the true ratio (1.1)."""
    head("noise", "3 v 3 (90 %)", "5 v 5", "4 v 10", "1 v 30 (94 %)")
    for name in ("lognormal", "right tail", "bimodal", "outliers", "rounded"):
        cells = []
        for sizes in ((3, 3), (5, 5), (4, 10), (1, 30)):
            random = random_for("coverage", name, sizes)
            hits = []
            for _ in range(num // 10 + 1):
                values = NOISES[name](random, 20, sum(sizes))
                values[:, sizes[0] :] *= 1.1
                shifts = compare(values, sizes[0], margin=0.03)
                hits += [s.low is not None and s.high is not None and s.low <= 1.1 <= s.high
                         for s in shifts]  # fmt: skip
            cells.append(Rate(hits=sum(hits), num=len(hits)))
        line(name, *cells)


@dataclass(frozen=True, kw_only=True)
class Planted:
    """What was changed: so many of so many rows."""

    name: str
    changed: int
    rows: int
    noise: Noise
    effect: float
    sizes: tuple[int, int] = (5, 5)


def rough(random: np.random.Generator, rows: int, runs: int) -> Values:
    """1.5 % of scatter, normal on the logarithm."""
    return np.exp(random.normal(0.0, 0.015, (rows, runs)))


PLANTED = (
    Planted(name="one of 400, -5 %", changed=1, rows=400, noise=rough, effect=0.05),
    Planted(name="a quarter, -5 %", changed=100, rows=400, noise=rough, effect=0.05),
    Planted(name="one kind of two, -5 %", changed=200, rows=400, noise=rough, effect=0.05),
    Planted(name="25 of unlike rows, -3 %", changed=25, rows=400, noise=unlike_rows, effect=0.03),
    Planted(name="100 of unlike rows, -3 %", changed=100, rows=400, noise=unlike_rows, effect=0.03),
    Planted(name="a quarter, good and bad nights, -5 %", changed=100, rows=400,
            noise=good_and_bad_nights, effect=0.05),
    Planted(name="a quarter, right tail, -5 %", changed=100, rows=400, noise=right_tail,
            effect=0.05),
    Planted(name="a quarter, outliers, -5 %", changed=100, rows=400, noise=outliers, effect=0.05),
    Planted(name="a quarter, -5 %, 7 v 3", changed=100, rows=400, noise=rough, effect=0.05,
            sizes=(7, 3)),
    Planted(name="100 of unlike rows, -3 %, 7 v 3", changed=100, rows=400, noise=unlike_rows,
            effect=0.03, sizes=(7, 3)),
)  # fmt: skip

#: what is held against ours in the table of power
STRONG = ("limma + Holm", "limma + BH", "plain maxT")


def adjusted(values: Values, num_first: int, kinds: Sequence[int]) -> list[Values]:
    """Return adjusted p of ours and of each of :data:`STRONG`."""
    runs = values.shape[1]
    second = np.arange(runs) >= num_first
    labels = labellings(values, second, 1)
    p = rivals.moderated_p(values, num_first)
    return [
        step_down(prepared(values, kinds_of(kinds)), kinds_of(kinds), labels, 0.05).p,
        rivals.holm(p),
        rivals.benjamini_hochberg(p),
        rivals.plain_max_t(values, labels),
    ]


def table_power(num: int) -> None:
    """Share of changed rows that are sure, and how often one that did not is; 5 v 5 runs.

    The test alone, without margin and interval.  Those by limma at the level at which they are
    wrong in one of twenty comparisons of that noise in which nothing changed, as measured in four
    times as many; the other two are exact.
    """
    columns = [f"{each}: {what}" for each in ("ours", *STRONG) for what in ("found", "wrong")]
    head("changed", *columns)
    for planted in PLANTED:
        random = random_for("power", planted.name)
        num_here = num // 10 + 1
        null = [
            [rule(rivals.moderated_p(noise_of(planted, random), planted.sizes[0])).min()
             for rule in (rivals.holm, rivals.benjamini_hochberg)]
            for _ in range(4 * num_here)
        ]  # fmt: skip
        levels = [0.05, *np.quantile(null, 0.05, axis=0), 0.05]
        told = [_planted(planted, random) for _ in range(num_here)]
        cells = []
        for rule, level in enumerate(levels):
            hit = np.concatenate([each[rule][: planted.changed] for each in told]) <= level
            bad = [bool((each[rule][planted.changed :] <= level).any()) for each in told]
            cells += [f"{100 * hit.mean():.0f} %", str(Rate(hits=sum(bad), num=len(bad)))]
        line(planted.name, *cells)


def noise_of(planted: Planted, random: np.random.Generator) -> Values:
    """Return its rows before anything was changed."""
    return planted.noise(random, planted.rows, sum(planted.sizes))


def _planted(planted: Planted, random: np.random.Generator) -> list[Values]:
    """Return p of each row by rule, the rows that changed first."""
    values = noise_of(planted, random)
    values[: planted.changed, planted.sizes[0] :] *= 1 - planted.effect
    return adjusted(
        values, planted.sizes[0], [row * 2 // planted.rows for row in range(planted.rows)]
    )


#: the second side scatters twice as much
UNEQUAL = ("all rows", "all rows and nights", "unlike rows", "a tenth of the rows")


def unequal(name: str, random: np.random.Generator, first: int, second: int) -> Values:
    """Return 200 rows with medians alike, of which the second side scatters twice as much."""
    runs = first + second
    noise = {"all rows and nights": good_and_bad_nights, "unlike rows": unlike_rows}
    logs = np.log(noise.get(name, lognormal)(random, 200, runs))
    logs[: 20 if name == UNEQUAL[3] else 200, first:] *= 2.0
    return np.exp(logs)


def table_scatter(num: int) -> None:
    """Medians alike, the second side scatters twice as much: how often anything is said."""
    head("scatters more", "runs", "ours, the test alone", "ours, margin 3 %", "limma + Holm")
    for name in UNEQUAL:
        for sizes in ((5, 5), (7, 3), (4, 10)):
            random = random_for("scatter", name, sizes)
            test, words, limma = [], [], []
            for _ in range(num // 10 + 1):
                values = unequal(name, random, *sizes)
                words.append(said(compare(values, sizes[0], margin=0.03)))
                p = adjusted(values, sizes[0], [0] * len(values))
                test.append(p[0].min() <= 0.05)
                limma.append(p[1].min() <= 0.05)
            rates = (Rate(hits=sum(each), num=len(each)) for each in (test, words, limma))
            line(name, f"{sizes[0]} v {sizes[1]}", *rates)


def table_order(num: int) -> None:
    """Nights that are not exchangeable, nothing changed between the sides, 100 quantities."""
    head("nights", "runs", "said, one side after the other", "of these warned", "warned",
         "said, interleaved pairs")  # fmt: skip
    nights = {
        "exchangeable": good_and_bad_nights,
        "0.1 % slower each night": drift(0.001),
        "0.3 % slower each night": drift(0.003),
        "nights remember 0.3": remembering(0.3),
        "nights remember 0.6": remembering(0.6),
        "nights remember 0.9": remembering(0.9),
    }
    for name, noise in nights.items():
        for half in (5, 10):
            random = random_for("order", name, half)
            said_, warned, paired = [], [], []
            for _ in range(num // 33 + 1):
                values = noise(random, 100, 2 * half)
                second = [run >= half for run in range(2 * half)]
                said_.append(said(compare(values, half, margin=0.0001)))
                warned.append(order_matters(values, second) <= 0.05)
                paired.append(said(interleaved(values, random)))
            both = sum(a and b for a, b in zip(said_, warned, strict=True))
            line(name, f"{half} v {half}", Rate(hits=sum(said_), num=len(said_)),
                 f"{both} of {sum(said_)}", share(warned),
                 Rate(hits=sum(paired), num=len(paired)))  # fmt: skip


def interleaved(values: Values, random: np.random.Generator) -> list[Shift]:
    """Compare as if the sides had alternated, the first of each pair by lot."""
    rows, runs = values.shape
    second = np.zeros(runs, dtype=np.bool_)
    second[np.arange(0, runs, 2) + random.integers(0, 2, runs // 2)] = True
    return compare_rows(
        values, second.tolist(), better=[-1] * rows, margins=[0.0001] * rows, classes=[0] * rows,
    )  # fmt: skip


def table_node(num: int) -> None:
    """One slow node on both sides, and half of all rows changed by 5 %: is each told right."""
    head("runs", "changed rows found", "rows of the node called changed", "others called changed")
    for n, m in ((5, 5), (8, 8)):
        random = random_for("node", n, m)
        counts = np.zeros((num // 20 + 1, 3))
        for index in range(len(counts)):
            values = slow_node(random, 100, n + m)
            changed, sick = np.arange(100) % 10 == 5, np.arange(100) % 10 == 0
            values[changed, n:] *= 1.05
            found = np.array([s.change is Change.WORSE for s in compare(values, n, margin=0.03)])
            wrong = np.array([s.change is Change.BETTER for s in compare(values, n, margin=0.03)])
            counts[index] = (
                found[changed].mean(),
                (found | wrong)[sick].any(),
                (found | wrong)[~sick & ~changed].any(),
            )
        told = counts.sum(axis=0)
        line(f"{n} v {m}", f"{100 * counts[:, 0].mean():.0f} %",
             *(Rate(hits=int(each), num=len(counts)) for each in told[1:]))  # fmt: skip


def table_looks(num: int) -> None:
    """Two runs more on each side and another look, 4 v 4 to 12 v 12; nothing changed, 20 rows."""
    head("look", "said by then, 5 % each", "said by then, 2.5 %, 1.25 % ...")
    random = random_for("looks")
    first = {"each": [math.inf] * (num // 20 + 1), "shared": [math.inf] * (num // 20 + 1)}
    for index in range(num // 20 + 1):
        values = lognormal(random, 20, 24)
        for look, half in enumerate((4, 6, 8, 10, 12)):
            both = np.hstack([values[:, :half], values[:, 12 : 12 + half]])
            p = adjusted(both, half, [0] * 20)[0].min()
            for name, level in (("each", 0.05), ("shared", 0.05 / 2 ** (look + 1))):
                if p <= level:
                    first[name][index] = min(first[name][index], look)
    for look, half in enumerate((4, 6, 8, 10, 12)):
        rates = (
            Rate(hits=sum(at <= look for at in each), num=len(each)) for each in first.values()
        )
        line(f"{half} v {half}", *rates)


TABLES = {
    "null": table_null,
    "sizes": table_sizes,
    "same": table_same,
    "coverage": table_coverage,
    "power": table_power,
    "scatter": table_scatter,
    "order": table_order,
    "node": table_node,
    "looks": table_looks,
}


def main() -> None:
    """Print the tables that were asked for."""
    options = [each for each in sys.argv[1:] if each.startswith("--")]
    asked = [each for each in sys.argv[1:] if each not in options] or list(TABLES)
    num = 1000 if "--full" in options else 10
    num = next((int(each[6:]) for each in options if each.startswith("--num=")), num)
    for name in asked:
        print(f"\n{name}: {(TABLES[name].__doc__ or '').splitlines()[0]}\n")
        TABLES[name](num)


if __name__ == "__main__":
    main()
