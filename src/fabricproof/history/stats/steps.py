"""When did any of many quantities change, over runs in the order of time.

Same principle as :mod:`fabricproof.history.stats.shifts`: whole columns change places, the largest
statistic over all rows and all moments is what is compared, one error rate for all.
"""

from __future__ import annotations

import itertools
import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from fabricproof.history.stats import step_fit
from fabricproof.history.stats.memory import fewer_nights, hanging_together
from fabricproof.history.stats.relabel import row_medians
from fabricproof.history.stats.step_fit import last_run
from fabricproof.history.stats.step_looks import (
    LEAST_BEFORE,
    Around,
    alike_orders,
    far_out,
    level_of_look,
)
from fabricproof.history.stats.step_orders import (
    LEAST_RUNS,
    NUM_ORDERS,
    Statistic,
    Values,
    Whole,
    adjusted,
    in_time,
    random_orders,
    ranked,
    scale_of_rows,
    scaled,
    scatter_of_classes,
    slope_statistic,
    split_statistic,
)

#: how the error rate is shared out between the three kinds of change
SHARE_OF_STEPS, SHARE_OF_LAST, SHARE_OF_DRIFTS = 0.75, 0.15, 0.10

#: numbers that are so few that more orders cost nothing: 1,000 rows of 10 runs have 5,000
_CHEAP = 50_000_000

#: orders that are tried first, and the p of the surest row beyond which no more are: of a row
#: whose p is 0.05 fewer than one in 10^6 such beginnings come out above
_FIRST_ORDERS, _HOPELESS = 200, 0.15

#: rounds of binary segmentation: up to 15 steps in a row
_ROUNDS = 4


@dataclass(frozen=True, kw_only=True, slots=True)
class Step:
    """A lasting change of one row.

    Attributes:
        at: column of the first run after it.
        earliest: first column that it may have been at, with 95 % confidence.
        latest: last column that it may have been at.
        ratio: level after it over level before it.
        p: adjusted over all rows and moments, of this one look.
        sure: whether it is called, too, where somebody looks after every run.
    """

    row: int
    at: int
    earliest: int
    latest: int
    ratio: float
    p: float
    sure: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class Drift:
    """A slow change of one row that is better told as a slope than as a step.

    Attributes:
        per_run: ratio from one run to the next (Theil-Sen): 0.998 loses 0.2 % a night.
        total: ratio of the end of the line over its beginning.
        p: adjusted over all rows, of this one look.
        first: column of the first run that the line is through.
        start: value of the line at column 0, in the unit of the row.
        sure: as of :class:`Step`.
    """

    row: int
    per_run: float
    total: float
    p: float
    first: int = 0
    start: float = 1.0
    sure: bool = False


@dataclass(frozen=True, kw_only=True)
class Changes:
    """Everything that a history shows.

    Attributes:
        lag: how much one run hangs together with the next, 0 where no more than by chance; the
            steps and drifts were judged as if there were (1 - lag) / (1 + lag) times as many runs.
    """

    steps: tuple[Step, ...]
    drifts: tuple[Drift, ...]
    lag: float


@dataclass(frozen=True, kw_only=True)
class _Part:
    """A stretch of a row in which a step is looked for: columns ``low`` to ``high`` (excluded)."""

    row: int
    low: int
    high: int


@dataclass(frozen=True, kw_only=True, slots=True)
class _Chance:
    """How often chance alone tells a change: at one look, and by itself far out in the tail."""

    p: float
    far: float


#: row -> column of the first run after a step -> how sure it is
_Cuts = Mapping[int, Mapping[int, _Chance]]


@dataclass(frozen=True, kw_only=True)
class _Question:
    """What is asked, and of what."""

    logs: Values
    prior: Values
    margins: Sequence[float]
    alpha: float
    level: float
    lag: float
    seed: int
    num_orders: int


def find_changes(
    values: Values,
    *,
    classes: Sequence[int],
    margins: Sequence[float],
    alpha: float = 0.05,
    seed: int = 20261121,
    num_orders: int | None = None,
    num_looks: int | None = None,
) -> Changes:
    """Return steps and drifts of all rows, with one error rate over both.

    ``alpha`` is shared out: 0.75 of it to steps with at least two runs on each side, 0.15 to a
    last run that is far off, 0.10 to drifts; each p that is returned is divided by that share, so
    that all may be held against ``alpha``.  Within segments steps are looked for again (binary
    segmentation), each round with the same error rate given that those before were right.

    What is ``sure`` is so with ``alpha`` for all looks of a year together, shared out the same way
    (:func:`fabricproof.history.stats.step_looks.level_of_look`): the last run's share is for the
    newest runs in a row.

    Args:
        values: shape (rows, runs), positive, columns in the order of time; NaN where absent.
        classes: as in :func:`fabricproof.history.stats.shifts.compare_rows`.
        margins: smallest change that is told, of a step or of a whole drift.
        alpha: chance of even one false step or drift among all rows.
        seed: of the random orders.
        num_orders: how many, 2000 or more by default; no p is below 1 / (num_orders + 1).
        num_looks: runs that the history has had so far; as many as columns by default.

    Raises:
        ValueError: shapes do not fit, or a value is zero, negative or infinite.
    """
    _check(values, classes, margins)
    if values.shape[0] == 0 or values.shape[1] < LEAST_RUNS:
        return Changes(steps=(), drifts=(), lag=0.0)
    if num_orders is None:
        # Few runs have few orders; which of them are drawn should not decide.
        num_orders = int(np.clip(_CHEAP // values.size, NUM_ORDERS, 5 * NUM_ORDERS))
    logs = np.log(values)
    looks = values.shape[1] if num_looks is None else num_looks
    ask = _Question(
        logs=logs,
        prior=scatter_of_classes(logs, classes),
        margins=margins,
        alpha=alpha,
        level=level_of_look(looks, alpha),
        lag=hanging_together(logs, seed),
        seed=seed,
        num_orders=num_orders,
    )
    drifts, levels = _told(ask, _cuts(ask), _chance_of_drifts(ask))
    residuals = _around_levels(ask, levels, drifts)
    steps = [*_located(ask, levels, residuals), *_last_steps(ask, levels, residuals)]
    return Changes(
        steps=tuple(sorted(steps, key=lambda each: (each.row, each.at))),
        drifts=tuple(drifts[row] for row in sorted(drifts)),
        lag=ask.lag,
    )


def least_runs(num_after: int, alpha: float = 0.05) -> int:
    """Return with how many runs a step with ``num_after`` of them after it can be told at all.

    Of all orders of n runs those are as far apart that have the same runs at the end, or at the
    beginning: 2 of C(n, num_after), where these are fewer than half.

    Args:
        num_after: runs after the step, at least two.
        alpha: chance of even one false step or drift.
    """
    return next(
        num
        for num in itertools.count(2 * num_after)
        if 2 / math.comb(num, num_after) <= alpha * SHARE_OF_STEPS
    )


def _check(values: Values, classes: Sequence[int], margins: Sequence[float]) -> None:
    if values.ndim != 2 or len(classes) != len(values) or len(margins) != len(values):
        raise ValueError(
            f"values of shape {values.shape} with {len(classes)} classes and {len(margins)} margins"
        )
    with np.errstate(invalid="ignore"):
        bad = np.argwhere((values <= 0) | np.isinf(values))
    if len(bad):
        row, column = bad[0]
        raise ValueError(
            f"row {row}, run {column}: {values[row, column]} is no measurement; NaN where absent"
        )


def _cuts(ask: _Question) -> dict[int, dict[int, _Chance]]:
    """Return the steps of each row before they are weighed."""
    num_runs = ask.logs.shape[1]
    parts = [_Part(row=row, low=0, high=num_runs) for row in range(len(ask.logs))]
    found: dict[int, dict[int, _Chance]] = {}
    for number in range(_ROUNDS):
        logs, prior = _stretches(ask, parts)
        rows = scaled(logs, prior)
        statistic = split_statistic(rows)
        orders = random_orders(num_runs, ask.num_orders, ask.seed + number)
        p, far = _adjusted(in_time(rows, statistic) * fewer_nights(ask.lag), orders, statistic)
        chosen = np.flatnonzero(p <= ask.alpha * SHARE_OF_STEPS)
        if not len(chosen):
            break
        at = step_fit.places(scaled(logs[chosen], prior[chosen]), windows=True).at
        again = []
        for index, column in zip(chosen.tolist(), at.tolist(), strict=True):
            part = parts[index]
            sides = [len(each) for each in step_fit.segments(logs[index].tolist(), [column])]
            found.setdefault(part.row, {})[column] = _Chance(
                p=min(float(p[index]) / SHARE_OF_STEPS, 1.0),
                far=max(float(far[index]), alike_orders(*sides)) / SHARE_OF_STEPS,
            )
            again += [replace(part, high=column), replace(part, low=column)]
        parts = [each for each in again if each.high - each.low >= LEAST_RUNS]
        if not parts:
            break
    return found


def _adjusted(observed: Values, orders: Whole, statistic: Statistic) -> tuple[Values, Values]:
    """Return the adjusted p of each row, and how rare it is far out in the tail.

    From few orders only where nothing can be told anyway: stopping early on large p does not make
    any small one smaller (Besag and Clifford 1991).
    """
    p, highest = adjusted(observed, orders[:_FIRST_ORDERS], statistic)
    if p.min() <= _HOPELESS:
        p, highest = adjusted(observed, orders, statistic)
    return p, far_out(observed, highest)


def _stretches(ask: _Question, parts: Sequence[_Part]) -> tuple[Values, Values]:
    """Return a row for each stretch, with nothing outside it, and the scatter of its class."""
    rows = np.array([each.row for each in parts])
    low, high = (np.array([getattr(each, name) for each in parts]) for name in ("low", "high"))
    columns = np.arange(ask.logs.shape[1])
    inside = (columns >= low[:, None]) & (columns < high[:, None])
    return np.where(inside, ask.logs[rows], np.nan), ask.prior[rows]


def _chance_of_drifts(ask: _Question) -> dict[int, _Chance]:
    """Return the rows that drift for sure at this look."""
    ranks = ranked(ask.logs)
    statistic = slope_statistic(ranks)
    orders = random_orders(ask.logs.shape[1], ask.num_orders, ask.seed)
    p, far = _adjusted(in_time(ranks, statistic) * fewer_nights(ask.lag), orders, statistic)
    return {
        row: _Chance(p=float(p[row]) / SHARE_OF_DRIFTS, far=float(far[row]) / SHARE_OF_DRIFTS)
        for row in np.flatnonzero(p <= ask.alpha * SHARE_OF_DRIFTS).tolist()
    }


def _told(
    ask: _Question, cuts: _Cuts, drifting: Mapping[int, _Chance]
) -> tuple[dict[int, Drift], dict[int, dict[int, _Chance]]]:
    """Decide of each row whether it is told as a drift or as steps; small ones are dropped."""
    slopes, starts = step_fit.lines(ask.logs[list(drifting)])
    line = dict(zip(drifting, zip(slopes.tolist(), starts.tolist(), strict=True), strict=True))
    drifts: dict[int, Drift] = {}
    levels: dict[int, dict[int, _Chance]] = {}
    for row in sorted({*cuts, *line}):
        logs, of_row = ask.logs[row].tolist(), cuts.get(row, {})
        kept = step_fit.lasting(logs, sorted(of_row), ask.margins[row])
        if row in line:
            sure = drifting[row].far <= ask.level
            drift = replace(_drift(row, logs, line[row]), p=drifting[row].p, sure=sure)
            is_line = step_fit.cost_of_line(logs, *line[row]) < step_fit.cost_of_steps(logs, kept)
            if is_line and abs(drift.total - 1) >= ask.margins[row]:
                drifts[row] = drift
                continue
        if kept:
            levels[row] = {column: of_row[column] for column in kept}
    return drifts, levels


def _drift(row: int, logs: Sequence[float], line: tuple[float, float]) -> Drift:
    there = [column for column, value in enumerate(logs) if not math.isnan(value)]
    return Drift(
        row=row,
        per_run=math.exp(line[0]),
        total=math.exp(line[0] * (there[-1] - there[0])),
        p=1.0,
        first=there[0],
        start=math.exp(line[1]),
    )


def _located(ask: _Question, levels: _Cuts, residuals: Values) -> list[Step]:
    """Return the steps that stay, each located anew between its neighbours."""
    wanted: list[tuple[_Part, _Chance]] = []
    for row, cuts in levels.items():
        bounds = [0, *cuts, ask.logs.shape[1]]
        for number, chance in enumerate(cuts.values()):
            wanted.append((_Part(row=row, low=bounds[number], high=bounds[number + 2]), chance))
    if not wanted:
        return []
    logs, prior = _stretches(ask, [part for part, _ in wanted])
    where = step_fit.places(scaled(logs, prior))
    around = Around.of(residuals, scale_of_rows(residuals, ask.prior))
    steps = []
    for number, (part, chance) in enumerate(wanted):
        at = int(where.at[number])
        before, after = step_fit.segments(logs[number].tolist(), [at])
        is_newest = part.high == ask.logs.shape[1]
        newest = around.in_a_row(part.row, at, before, after, ask.lag) if is_newest else 1.0
        steps.append(
            Step(
                row=part.row,
                at=at,
                earliest=max(int(where.earliest[number]), part.low + 1),
                latest=min(int(where.latest[number]), part.high - 1),
                ratio=math.exp(statistics.median(after) - statistics.median(before)),
                p=chance.p,
                sure=min(chance.far, newest / SHARE_OF_LAST) <= ask.level,
            )
        )
    return steps


def _last_steps(ask: _Question, levels: _Cuts, residuals: Values) -> list[Step]:
    """Return the rows whose last run is further off than any ever was; of none is that sure."""
    last = ask.logs.shape[1] - 1
    begins = np.array([max(levels.get(row, {0: None})) for row in range(len(residuals))])
    at_level = np.isfinite(residuals) & (np.arange(last + 1) >= begins[:, None])
    enough = at_level[:, :-1].sum(axis=1) >= LEAST_BEFORE
    p = np.minimum(last_run(residuals, ask.prior, enough) / SHARE_OF_LAST, 1.0)
    steps = []
    for row in np.flatnonzero(p <= ask.alpha).tolist():
        ratio = math.exp(float(residuals[row, last]))
        if abs(ratio - 1) >= ask.margins[row]:
            earliest = int(np.flatnonzero(at_level[row, :-1])[-1]) + 1
            steps.append(
                Step(row=row, at=last, earliest=earliest, latest=last, ratio=ratio, p=float(p[row]))
            )
    return steps


def _around_levels(ask: _Question, levels: _Cuts, drifts: Mapping[int, Drift]) -> Values:
    """Return each row around the level, or the line, that it has at that time."""
    residuals = np.asarray(ask.logs - np.nan_to_num(row_medians(ask.logs))[:, None])
    columns = np.arange(ask.logs.shape[1])
    for row, cuts in levels.items():
        bounds = [0, *cuts, len(columns)]
        for low, high in itertools.pairwise(bounds):
            part = ask.logs[row, low:high]
            residuals[row, low:high] = part - np.nanmedian(part)
    for row, drift in drifts.items():
        line = math.log(drift.start) + columns * math.log(drift.per_run)
        residuals[row] = ask.logs[row] - line
    return residuals
