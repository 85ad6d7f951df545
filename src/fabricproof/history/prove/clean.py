"""Nights of one level in other orders: what is told of them falsely, and which loss is noticed.

All that is judged here are whole nights, so that what the quantities of a night have in common
stays.  Their order is drawn anew: no level of one night hangs together with that of the next.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from fabricproof.core.units import by_key
from fabricproof.history.baseline.bounds import FALSE_ALARMS, Samples, learn
from fabricproof.history.baseline.freezing import AT_LEAST, kind_of
from fabricproof.history.prove.model import CallRule, KindFloor, NoticedFrom, Shuffled, Strength
from fabricproof.history.prove.nights import LEARNT_FROM, Tell
from fabricproof.history.stats.share import Share
from fabricproof.history.stats.steps import find_changes
from fabricproof.history.store import Key, Run
from fabricproof.history.store.model import MARGINS, class_of, metric_of, numbered
from fabricproof.history.trend.find import ALPHA, LEAST_RUNS, Question

if TYPE_CHECKING:
    import numpy.typing as npt

    from fabricproof.history.store.model import Values

    Rows = npt.NDArray[np.int64]

#: fewer nights of one level: three with a fault leave no baseline, and no step is told
LEAST_NIGHTS = AT_LEAST + 3

#: losses that are tried, as a fraction: of a rate that much is lost, a time takes that much longer
STRENGTHS = (
    0.01, 0.02, 0.03, 0.04, 0.05, 0.06, 0.08, 0.10, 0.12, 0.15, 0.20, 0.25, 0.30, 0.40, 0.50, 0.70,
)  # fmt: skip

#: nights that have the fault, the newest ones
NIGHTS = (1, 3)

#: tries of trend for each kind, by the numbers in a history: each costs some ten searches
MOST_TRIES, FEWEST_TRIES, _NUMBERS = 40, 10, 200_000

#: of so many orders one is looked at night by night
_EACH_NIGHT = 4

#: orders that each search compares with: a tenth of what trend takes, enough for p = 0.05
_ORDERS = 500

SEED = 20261125


@dataclass(frozen=True, kw_only=True)
class CleanNights:
    """Quantities over nights of one level.

    Attributes:
        keys: of the rows; all have a direction.
        runs: of the columns, oldest first.
        values: shape (keys, runs), NaN where absent or red by physics or a reference.
    """

    keys: tuple[Key, ...]
    runs: tuple[Run, ...]
    values: Values


def places_of(keys: Sequence[Key], fabric: str, metric: str) -> dict[tuple[str, str], Rows]:
    """Return each node and rail of it with the quantities of a metric over that rail alone.

    A leg over several rails is left as it is, unless no leg of the fabric has one alone.
    """
    mine = [
        (row, key)
        for row, key in enumerate(keys)
        if key.fabric == fabric and metric_of(key) == metric and key.unit != "x"
    ]
    if any("," not in key.rails for _, key in mine):
        mine = [(row, key) for row, key in mine if "," not in key.rails]
    found = by_key(((node, key.rails), row) for row, key in mine for node in key.nodes.split(","))
    return {place: np.array(rows) for place, rows in sorted(found.items())}


def kinds_of(keys: Sequence[Key]) -> list[tuple[str, str]]:
    """Return each (fabric, metric) that a rail's loss shows in."""
    order = list(MARGINS)
    found = {(key.fabric, metric_of(key)) for key in keys if key.unit != "x"}
    return sorted(found, key=lambda each: (each[0], order.index(each[1])))


def bounds_of(keys: Sequence[Key], values: Values) -> Values:
    """Return the bound on the bad side that a baseline of these nights has; NaN for none."""
    samples = {
        row: Samples(
            values={str(at): value for at, value in enumerate(each) if not math.isnan(value)},
            unit=key.unit,
            kind=kind_of(key.unit, key.message_size, named=key.named),
            family="named" if key.named else "curve",
        )
        for row, (key, each) in enumerate(zip(keys, values.tolist(), strict=True))
        if key.unit != "x" and np.isfinite(values[row]).sum() >= AT_LEAST
    }
    found = np.full(len(keys), np.nan)
    for row, bounds in learn(samples).items() if samples else ():
        found[row] = bounds.low if keys[row].better > 0 else bounds.high
    return found


def is_there(nights: Values, bounds: Values, rows: Rows) -> bool:
    """Tell whether any of these quantities was measured in these nights and has a bound."""
    return bool((np.isfinite(nights[rows]).any(axis=1) & np.isfinite(bounds[rows])).any())


def losses_needed(keys: Sequence[Key], nights: Values, bounds: Values) -> Values:
    """Return for each quantity the loss beyond which one of the nights is beyond its bound.

    Negative where it is beyond without any; infinite where nothing judges it.
    """
    better = np.array([key.better for key in keys])[:, None]
    limit = bounds[:, None]
    needed = np.where(better > 0, 1 - limit / nights, limit / nights - 1)
    return np.asarray(np.where(np.isnan(needed), np.inf, needed).min(axis=1))


def weakened(keys: Sequence[Key], values: Values, rows: Rows, nights: int, loss: float) -> Values:
    """Return the values with a loss in the newest nights of some rows."""
    found = values.copy()
    better = np.array([keys[row].better for row in rows])
    factor = np.where(better > 0, 1 - loss, 1 + loss)
    found[rows, -nights:] *= factor[:, None]
    return found


#: fabric and metric -> nights with the fault -> loss that each try needed; infinite where none of
#: those tried was enough
_Needed = Mapping[tuple[str, str], Mapping[int, Sequence[float]]]


def _asked(
    keys: Sequence[Key],
) -> tuple[dict[tuple[str, str], list[Rows]], dict[tuple[str, str], dict[int, list[float]]]]:
    """Return the places of each kind of quantity, and where the losses it needs will be kept."""
    kinds = {each: [*places_of(keys, *each).values()] for each in kinds_of(keys)}
    return kinds, {kind: {nights: [] for nights in NIGHTS} for kind in kinds}


def judge_baseline(clean: CleanNights, tell: Tell) -> tuple[tuple[Run, ...], int, _Needed]:
    """Return the nights that a baseline of others calls, of how many, and the loss each would need.

    Each night is judged once, by up to thirty others; so is each with the two after it in the drawn
    order.  The tries are these nights, with each rail of each node in turn that was measured then.
    """
    kinds, found = _asked(clean.keys)
    count = len(clean.runs)
    order = np.random.default_rng(SEED).permutation(count)
    red, judged = [], 0
    for at in range(count):
        turned = np.roll(order, -at)
        new, old = turned[: max(NIGHTS)], turned[max(NIGHTS) :][:LEARNT_FROM]
        bounds = bounds_of(clean.keys, clean.values[:, old])
        for nights in NIGHTS:
            needed = losses_needed(clean.keys, clean.values[:, new[:nights]], bounds)
            if nights == 1:
                judged += bool(np.isfinite(needed).any())
                red += [clean.runs[new[0]]] if needed.min() < 0 else []
            for kind, places in kinds.items():
                found[kind][nights] += [
                    float(needed[rows].min())
                    for rows in places
                    if is_there(clean.values[:, new[:nights]], bounds, rows)
                ]
        tell("clean night", at + 1, count)
    return tuple(sorted(red, key=lambda run: run.start)), judged, found


@dataclass(frozen=True, kw_only=True)
class DrawnOrders:
    """What trend looks at: the quantities that carry a verdict, in drawn orders of the nights."""

    keys: tuple[Key, ...]
    values: Values

    def told(self, values: Values, *, sure: bool = False) -> Iterator[tuple[int, bool, int]]:
        """Yield row, whether it is to the worse, and the last column where it may begin.

        Args:
            values: shape (keys, runs).
            sure: only what is called, as who looks each night is.
        """
        changes = find_changes(
            values,
            classes=numbered([class_of(each) for each in self.keys]),
            margins=[MARGINS[metric_of(each)] for each in self.keys],
            alpha=ALPHA,
            num_orders=_ORDERS,
        )
        for step in (each for each in changes.steps if each.sure or not sure):
            yield step.row, (step.ratio < 1) == (self.keys[step.row].better > 0), step.latest
        for drift in (each for each in changes.drifts if each.sure or not sure):
            worse = (drift.per_run < 1) == (self.keys[drift.row].better > 0)
            yield drift.row, worse, values.shape[1] - 1

    def loss_needed(self, values: Values, rows: Rows, nights: int) -> float:
        """Return the least loss that is told; infinite where none is."""
        low, high = -1, len(STRENGTHS)
        while high - low > 1:
            middle = (low + high) // 2
            after = weakened(self.keys, values, rows, nights, STRENGTHS[middle])
            wanted, newest = set(rows.tolist()), values.shape[1] - nights
            seen = any(
                row in wanted and worse and latest >= newest
                for row, worse, latest in self.told(after)
            )
            low, high = (low, middle) if seen else (middle, high)
        # A hair below: a loss is enough from the one that was seen on.
        return math.nextafter(STRENGTHS[high], 0) if high < len(STRENGTHS) else math.inf

    def is_told_by_night(self, values: Values) -> bool:
        """Tell whether who looks each night is called once because something grew worse."""
        return any(
            worse
            for end in range(LEAST_RUNS, values.shape[1] + 1)
            for _, worse, _ in self.told(values[:, :end], sure=True)
        )


def judge_trend(clean: CleanNights, tell: Tell) -> tuple[Share, Share, _Needed]:
    """Return how many orders trend tells something of, and the loss each would need.

    Between them how many of the first orders have a false call for who looks each night.
    """
    rows = [
        row
        for row, key in enumerate(clean.keys)
        if key.named and np.isfinite(clean.values[row]).sum() >= LEAST_RUNS
    ]
    values = clean.values[rows][:, -Question().last :]
    orders = DrawnOrders(keys=tuple(clean.keys[row] for row in rows), values=values)
    tries = int(np.clip(_NUMBERS // max(values.size, 1), FEWEST_TRIES, MOST_TRIES)) if rows else 0
    kinds, found = _asked(orders.keys)
    random = np.random.default_rng(SEED)
    red, by_night = 0, list[bool]()
    for at in range(tries):
        shuffled = values[:, random.permutation(values.shape[1])]
        red += any(True for _ in orders.told(shuffled))
        if at % _EACH_NIGHT == 0:
            by_night.append(orders.is_told_by_night(shuffled))
        for kind, places in kinds.items():
            mine = places[at % len(places)]
            for nights in NIGHTS:
                if np.isfinite(shuffled[mine, -nights:]).any():
                    found[kind][nights].append(orders.loss_needed(shuffled, mine, nights))
        tell("drawn order", at + 1, tries)
    looked = Share(hits=sum(by_night), of=len(by_night))
    return Share(hits=red, of=tries), looked, found


def judge_clean(clean: CleanNights, tell: Tell) -> tuple[Shuffled, tuple[KindFloor, ...]]:
    """Return what is told of clean nights, and which loss is noticed in them, by rule and kind."""
    red, judged, baseline = judge_baseline(clean, tell)
    by_trend, by_night, trend = judge_trend(clean, tell)
    tried = {CallRule.BASELINE: baseline, CallRule.TREND: trend}
    floors = [
        KindFloor(
            fabric=kind[0],
            metric=kind[1],
            places=len(places_of(clean.keys, *kind)),
            floors=tuple(
                _floor(rule, nights, each[kind][nights])
                for nights in NIGHTS
                for rule, each in tried.items()
                if kind in each
            ),
        )
        for kind in kinds_of(clean.keys)
    ]
    shuffled = Shuffled(
        told={
            CallRule.BASELINE: Share(hits=len(red), of=judged),
            CallRule.TREND: by_trend,
        },
        promised={CallRule.BASELINE: FALSE_ALARMS, CallRule.TREND: ALPHA},
        by_night=by_night,
        red=red,
    )
    return shuffled, tuple(floors)


def _floor(rule: CallRule, nights: int, needed: Sequence[float]) -> NoticedFrom:
    shares = {
        loss: Share(hits=sum(each < loss for each in needed), of=len(needed)) for loss in STRENGTHS
    }
    half, all_but = (
        next(
            (
                Strength(loss=loss, caught=share)
                for loss, share in shares.items()
                if share.of and share.hits >= due * share.of
            ),
            None,
        )
        for due in (0.5, 0.99)
    )
    return NoticedFrom(rule=rule, nights=nights, half=half, all_but=all_but)
