"""Our judges of steps and of two groups beside those in use elsewhere, on the same made series.

    python -m venv foreign
    foreign/bin/pip install apache-otava otava-test-data ruptures scipy
    PYTHONPATH=src foreign/bin/python benchmarks/foreign_judges.py [--full] [TABLE ...]

Tables are trend, labelled, compare and close; all where none is named.
None of the four is a dependency of fabricproof: without them the tables are SKIPPED.  Seeded: the
same figures each time.  The short form has a tenth of the histories.

The foreign judges are given the threshold at which each tells something in as many clean histories
of that noise as ours does as it is: better than a user has it, who has no hundred clean
histories.  All are held to the same margin.
"""

from __future__ import annotations

import datetime
import importlib.util
import itertools
import math
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import steps
from rivals import holm

from fabricproof.history.stats.shifts import Change, compare_rows
from fabricproof.history.stats.steps import find_changes

Values = npt.NDArray[np.float64]

FOREIGN = ("otava", "otava_test_data", "ruptures", "scipy")
INSTALL = "pip install apache-otava otava-test-data ruptures scipy"

#: rows of a history, those of them that change, nights, and the first night after the step
ROWS, CHANGED, NIGHTS, AT = 20, 5, 30, 22

#: runs on each side of a comparison
SIDE = 8

SIZES = (0.03, 0.05, 0.1, 0.2)

#: noises under which 100 histories do not tell our comparison from its rivals at the least size
CLOSE = ("drift in a night", "bimodal")

#: thresholds of otava that are tried, from its default on: its t-test of a heavy tail goes far down
OTAVA_P = (
    *(10 ** (-3 - part / 6) for part in range(42)),
    *(10.0**-whole for whole in range(10, 41)),
)

MARGIN, ORDERS = steps.MARGIN, steps.ORDERS


def quantised(random: np.random.Generator, rows: int, runs: int) -> Values:
    """2 % of scatter, printed in steps of 2 %."""
    return np.asarray(np.round(steps.lognormal(random, rows, runs) / 0.02) * 0.02)


def drifting(random: np.random.Generator, rows: int, runs: int) -> Values:
    """Each night gets slower or faster from its first row to its last, 3 % of scatter."""
    slopes = random.normal(0, 0.03, (1, runs)) * np.linspace(-1, 1, rows)[:, None]
    return steps.lognormal(random, rows, runs) * np.exp(slopes)


NOISES = {
    "lognormal": steps.lognormal,
    "heavy tail": steps.heavy,
    "bimodal": steps.bimodal,
    "quantised": quantised,
    "drift in a night": drifting,
}


@dataclass(frozen=True, kw_only=True)
class Told:
    """A change that a judge sees.

    Attributes:
        row: which.
        at: first column after it; 0 for two groups.
        score: the smaller, the surer.
    """

    row: int
    at: int
    score: float


@dataclass(frozen=True, kw_only=True)
class Judge:
    """One rule.

    Attributes:
        name: of it.
        see: what it sees in a history, sure or not.
        usual: score up to which it tells, as it comes.
        is_ours: told at its usual threshold, and never tuned.
    """

    name: str
    see: Callable[[Values], list[Told]]
    usual: float
    is_ours: bool = False


def our_steps(values: Values) -> list[Told]:
    """Steps of ours, of all rows as one family."""
    rows = len(values)
    found = find_changes(
        100 * values, classes=[0] * rows, margins=[MARGIN] * rows, num_orders=ORDERS
    )
    return [Told(row=each.row, at=each.at, score=each.p) for each in found.steps]


def otava_steps(values: Values) -> list[Told]:
    """Change points of apache-otava (Fleming et al. 2023), each row by itself.

    Run anew at each threshold, since what it leaves between its points depends on it; the score is
    the threshold.
    """
    from otava.analysis import compute_change_points  # noqa: PLC0415 - may be absent

    seen = []
    for row, series in enumerate(values):
        for limit in OTAVA_P:
            points, _ = compute_change_points(
                list(series), max_pvalue=limit, min_magnitude=MARGIN, window_len=50
            )
            if not points:
                break
            seen += [Told(row=row, at=each.index, score=limit) for each in points]
    return seen


def ruptures_steps(values: Values) -> list[Told]:
    """The best split of each row by ruptures, by what it saves of the cost (l2, unit noise)."""
    import ruptures  # noqa: PLC0415 - may be absent

    seen = []
    for row, series in enumerate(np.log(values)):
        signal = series / (np.mean(np.abs(np.diff(series))) * math.sqrt(math.pi) / 2)
        finder = ruptures.Binseg(model="l2", min_size=2, jump=1).fit(signal)
        at = finder.predict(n_bkps=1)[0]
        saved = finder.cost.sum_of_costs([len(signal)]) - finder.cost.sum_of_costs(
            [at, len(signal)]
        )
        if abs(math.expm1(np.median(series[at:]) - np.median(series[:at]))) >= MARGIN:
            seen.append(Told(row=row, at=at, score=-saved))
    return seen


def our_shifts(values: Values) -> list[Told]:
    """What ours calls BETTER or WORSE."""
    rows, runs = values.shape
    found = compare_rows(
        100 * values,
        [run >= runs // 2 for run in range(runs)],
        better=[1] * rows,
        margins=[MARGIN] * rows,
        classes=[0] * rows,
    )
    sure = (Change.BETTER, Change.WORSE)
    return [
        Told(row=row, at=0, score=each.p) for row, each in enumerate(found) if each.change in sure
    ]


def _tested(name: str) -> Callable[[Values], list[Told]]:
    def see(values: Values) -> list[Told]:
        from scipy import stats  # noqa: PLC0415 - may be absent

        half = values.shape[1] // 2
        first, second = np.log(values[:, :half]), np.log(values[:, half:])
        if name == "Welch":
            p = stats.ttest_ind(first, second, axis=1, equal_var=False).pvalue
        else:
            p = stats.mannwhitneyu(first, second, axis=1).pvalue
        moved = np.abs(np.expm1(np.median(second, axis=1) - np.median(first, axis=1))) >= MARGIN
        adjusted = holm(np.asarray(p))
        return [Told(row=int(row), at=0, score=adjusted[row]) for row in np.flatnonzero(moved)]

    return see


#: otava's own default of max_pvalue; for ruptures, which has no default, 3 ln n, a common penalty
TREND = (
    Judge(name="ours", see=our_steps, usual=0.05, is_ours=True),
    Judge(name="otava", see=otava_steps, usual=OTAVA_P[0]),
    Judge(name="ruptures", see=ruptures_steps, usual=-3 * math.log(NIGHTS)),
)
COMPARE = (
    Judge(name="ours", see=our_shifts, usual=0.05, is_ours=True),
    Judge(name="Mann-Whitney + Holm", see=_tested("Mann-Whitney"), usual=0.05),
    Judge(name="Welch + Holm", see=_tested("Welch"), usual=0.05),
)


#: nights of a labelled series, otava-test-data's short length; how far off a point may be, its
#: own tolerance; and standard deviations of the noise that is added to levels of 100
LABELLED_NIGHTS, TOLERANCE, SIGMAS = 50, 5, (2.0, 5.0)

#: its labels that are changes of level that last
LEVELS = frozenset({"step", "regression_start", "regression_end"})


def _otava_as_it_comes(series: Values) -> list[int]:
    from otava.analysis import compute_change_points  # noqa: PLC0415 - may be absent

    points, _ = compute_change_points(
        list(series), max_pvalue=OTAVA_P[0], min_magnitude=MARGIN, window_len=50
    )
    return [each.index for each in points]


def _ruptures_as_it_comes(series: Values) -> list[int]:
    import ruptures  # noqa: PLC0415 - may be absent

    signal = np.log(series)
    signal = signal / (np.mean(np.abs(np.diff(signal))) * math.sqrt(math.pi) / 2)
    finder = ruptures.Pelt(model="l2", min_size=2, jump=1).fit(signal)
    ends: list[int] = finder.predict(pen=3 * math.log(len(signal)))[:-1]
    bounds = [0, *ends, len(signal)]
    levels = [np.median(series[low:high]) for low, high in itertools.pairwise(bounds)]
    pairs = itertools.pairwise(levels)
    return [at for at, (one, two) in zip(ends, pairs, strict=True) if abs(two / one - 1) >= MARGIN]


LABELLED: dict[str, Callable[[Values], list[int]]] = {
    "ours": lambda series: [each.at for each in our_steps(series[None, :] / 100)],
    "otava": _otava_as_it_comes,
    "ruptures": _ruptures_as_it_comes,
}


def matched(told: Sequence[int], due: Sequence[int]) -> int:
    """Return how many of the due points have one told within the tolerance, each told used once."""
    left = sorted(told)
    count = 0
    for point in sorted(due):
        near = next((each for each in left if abs(each - point) <= TOLERANCE), None)
        if near is not None:
            left.remove(near)
            count += 1
    return count


def _labelled(count: int) -> None:
    """Print what each judge finds in the series of otava-test-data, as it comes."""
    from otava_test_data.generators.combiner import (  # noqa: PLC0415 - may be absent
        CombinationGenerator,
        add_noise,
    )

    judges = " / ".join(LABELLED)
    print(f"\neach cell: {judges}\n\n| series | levels change |", end="")
    print("".join(f" found, {size:.0f} % | false, {size:.0f} % |" for size in SIGMAS))
    print("| --- | --- |" + " --- | --- |" * len(SIGMAS))
    for name, make in CombinationGenerator().generate_basic_blocks():
        cells: list[str] = []
        due: list[int] = []
        for sigma in SIGMAS:
            shares, false = [], []
            made = [
                add_noise(make(length=LABELLED_NIGHTS, seed=seed), sigma=sigma, seed=seed + 10_000)
                for seed in range(count)
            ]
            for see in LABELLED.values():
                right = told = 0
                for series in made:
                    due = [p.index for p in series.change_points if p.change_type in LEVELS]
                    points = see(np.asarray(series.data))
                    right, told = right + matched(points, due), told + len(points)
                shares.append(f"{100 * right / count / len(due):.0f}" if due else "")
                false.append(f"{(told - right) / count:.2f}")
            cells += [" / ".join(shares) if due else "-", " / ".join(false)]
        print(f"| {name} | {len(due) or '-'} | {' | '.join(cells)} |", flush=True)


def surest(seen: Sequence[Told]) -> float:
    """Return the lowest score, infinite where nothing is seen."""
    return min((each.score for each in seen), default=math.inf)


def tuned(scores: Sequence[float], alarms: int) -> float:
    """Return a threshold that at most ``alarms`` of the clean ``scores`` are below.

    What is told is below it, so that equal scores are never told beyond the number.
    """
    return sorted(scores)[alarms]


def _tables(
    kind: str,
    judges: Sequence[Judge],
    runs: int,
    at: int,
    count: int,
    noises: Sequence[str] = (*NOISES,),
    sizes: Sequence[float] = SIZES,
) -> None:
    for noise in noises:
        make = NOISES[noise]
        random = np.random.default_rng([runs, *noise.encode()])
        clean = [make(random, ROWS, runs) for _ in range(count)]
        stepped = {}
        for size in sizes:
            histories = [make(random, ROWS, runs) for _ in range(count)]
            for values in histories:
                values[:CHANGED, at:] *= 1 - size
            stepped[size] = histories
        allowed = 0
        for judge in judges:
            scores = [surest(judge.see(values)) for values in clean]
            usual = sum(score <= judge.usual for score in scores)
            allowed = usual if judge.is_ours else allowed
            above = math.nextafter(judge.usual, math.inf)
            limit = above if judge.is_ours else tuned(scores, allowed)
            at_limit = sum(score < limit for score in scores)
            found, false, errors = _of_steps(judge, stepped, limit, at)
            cells = "".join(f" {share:.0%} |" for share in found)
            place = f" {np.mean(errors):.2f} |" if errors and kind == "trend" else ""
            place = place or (" - |" if kind == "trend" else "")
            rate = steps.wilson(usual, count).strip()
            line = f"| {noise} | {judge.name} | {rate} | {at_limit / count:.1%} |"
            print(f"{line}{cells} {false:.1%} |{place}", flush=True)


def _of_steps(
    judge: Judge, stepped: dict[float, list[Values]], limit: float, at: int
) -> tuple[list[float], float, list[int]]:
    """Return the share found at each size, histories with a false row, errors of place in runs."""
    found, errors, false, of = [], [], 0, 0
    for histories in stepped.values():
        hits = 0
        for values in histories:
            told = [each for each in judge.see(values) if each.score < limit]
            right = [each for each in told if each.row < CHANGED]
            hits += bool(right)
            false += len(right) < len(told)
            of += 1
            if right:
                errors.append(abs(min(right, key=lambda each: each.score).at - at))
        found.append(hits / len(histories))
    return found, false / of, errors


def _head(kind: str, steps_of: Sequence[float] = SIZES) -> None:
    sizes = "".join(f" {size:.0%} |" for size in steps_of)
    place = " night off by |" if kind == "trend" else ""
    print(f"\n| noise | {kind} | clean, as it comes | clean, tuned |{sizes} false rows |{place}")
    print("| --- | --- | --- | --- |" + " --- |" * (len(steps_of) + 1 + bool(place)))


def main(arguments: Sequence[str]) -> None:
    """Print the tables that are asked for."""
    known = ["trend", "labelled", "compare", "close"]
    names = [each for each in arguments if each != "--full"] or known
    if unknown := set(names) - set(known):
        sys.exit(f"no table {unknown.pop()}; there are: {', '.join(known)}")
    absent = [each for each in FOREIGN if importlib.util.find_spec(each) is None]
    if absent:
        print(f"SKIPPED: no {', '.join(absent)} here; in a venv of its own: {INSTALL}")
        return
    count = 100 if "--full" in arguments else 10
    today = datetime.datetime.now(datetime.UTC).date()
    print(f"{count} histories each, {ROWS} rows, {CHANGED} of them changed; seeds fixed; {today}")
    if "trend" in names:
        _head("trend")
        _tables("trend", TREND, NIGHTS, AT, count)
    if "labelled" in names:
        _labelled(count)
    if "compare" in names:
        _head("compare")
        _tables("compare", COMPARE, 2 * SIDE, SIDE, count)
    if "close" in names:
        # What stood closest in the table before, with four times as many histories.
        _head("compare", SIZES[:1])
        _tables("compare", COMPARE, 2 * SIDE, SIDE, 4 * count, CLOSE, SIZES[:1])


if __name__ == "__main__":
    main(sys.argv[1:])
