"""From the history of a site to what changed in it, when, and what else changed then."""

from __future__ import annotations

import itertools
import math
import operator
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from fabricproof.core.errors import ExitStatus, FabricproofError, InputMissingError
from fabricproof.core.project import site_option
from fabricproof.core.units import by_key
from fabricproof.history.compare.table import Only, fits, nothing_fits
from fabricproof.history.gone import gone_now
from fabricproof.history.machines import Machines
from fabricproof.history.stats.steps import Changes, Step, find_changes, least_runs
from fabricproof.history.store import Matrix, Store
from fabricproof.history.store.label_file import no_samples
from fabricproof.history.store.model import MARGINS, class_of, metric_of, numbered
from fabricproof.history.surroundings import around_quantity, beside, taken_from
from fabricproof.history.trend.events import Tested, events_of
from fabricproof.history.trend.model import FoundDrift, FoundStep, Trend

#: runs, and numbers of a quantity, below which nothing can be told
LEAST_RUNS = 6

#: chance of even one false event at one look, and of even one false call in a year
ALPHA = 0.05

#: with fewer, two orders in thirty-five are as telling as a step in the middle
_LEAST_FOR_STEPS = 8


class TooFewRunsError(FabricproofError):
    """There is history, but too little of it."""

    exit_status = ExitStatus.NOTHING_JUDGED


@dataclass(frozen=True, kw_only=True)
class Question:
    """What is asked.

    Attributes:
        last: how many runs, the newest.
        runs: only these runs; empty for all but looks of a night and admissions.
        only: which quantities count: key to its patterns.
        all_sizes: whether points of a curve count, or only quantities that carry a verdict.
        margins: metric to the smallest change that is told, as a fraction.
        num_looks: runs that the history has had, if the store holds fewer; 0: as it holds.
    """

    last: int = 60
    runs: Sequence[str] = ()
    only: Only = field(default_factory=dict)
    all_sizes: bool = False
    margins: Mapping[str, float] = field(default_factory=lambda: dict(MARGINS))
    num_looks: int = 0


def find_trend(store: Store, ask: Question, machines: Machines) -> Trend:
    """Return what the history shows.

    Raises:
        InputMissingError: nothing of what was asked for was ever measured.
        TooFewRunsError: fewer than six runs, or no quantity in six of them.
    """
    matrix, num_facts, silent = _asked(store, ask)
    counts = np.isfinite(matrix.values).sum(axis=1).tolist()
    long = [row for row, count in enumerate(counts) if count >= LEAST_RUNS]
    if not long:
        raise TooFewRunsError(
            f"too few runs of {store.site} to tell a trend",
            expected=f"a quantity measured in at least {LEAST_RUNS} runs",
            got=f"{len(matrix.keys)} quantities in {len(matrix.runs)} runs, none in more than "
            f"{max(counts, default=0)}",
            next_step=f"fabricproof run {site_option(store.site)} -t nightly   # each night",
        )
    keys = tuple(matrix.keys[row] for row in long)
    values = matrix.values[long]
    apart = no_samples(store.labels)
    ids = [run.run_id for run in store.runs]
    newest = ids.index(matrix.runs[-1].run_id)
    changes = find_changes(
        values,
        classes=numbered([class_of(each) for each in keys]),
        margins=[ask.margins[metric_of(key)] for key in keys],
        alpha=ALPHA,
        num_looks=ask.num_looks or len(set(ids[: newest + 1]) - apart),
    )
    tested = Tested(
        keys=keys,
        runs=matrix.runs,
        histories=tuple(
            tuple(None if math.isnan(value) else value for value in row) for row in values.tolist()
        ),
        margins=tuple(ask.margins[metric_of(key)] for key in keys),
    )
    return Trend(
        site=store.site,
        runs=matrix.runs,
        num_quantities=len(long),
        num_short=len(counts) - len(long),
        events=events_of(tested, _beside_others(store, tested, changes), machines),
        drifts=_drifts(tested, changes),
        warnings=(*silent, *store.notes, *_warnings(matrix, max(counts), changes)),
        silent=silent,
        alpha=ALPHA,
        num_facts=num_facts,
        lag=changes.lag,
        too_few_for_steps=max(counts) < _LEAST_FOR_STEPS,
    )


def _asked(store: Store, ask: Question) -> tuple[Matrix, int, tuple[str, ...]]:
    """Return quantities and runs asked for, how many facts were left out, what has no number."""
    apart = no_samples(store.labels)
    ids = [
        run.run_id
        for run in store.runs
        if (run.run_id in ask.runs if ask.runs else run.run_id not in apart)
    ]
    if not ids:
        raise InputMissingError(
            f"no run of {store.site} but looks of a night and admissions",
            expected="a run",
            next_step=f"fabricproof runs {site_option(store.site)}",
        )
    matrix = store.matrix(ids, across=("build", "tool_version"))
    fitting = [
        row
        for row, key in enumerate(matrix.keys)
        if (key.named or ask.all_sizes) and fits(key, ask.only)
    ]
    if not fitting:
        judged = [key for key in matrix.keys if key.named or ask.all_sizes]
        problem, expected = nothing_fits(judged, ask.only)
        raise InputMissingError(problem, expected=expected, next_step="--points adds more")
    rows = [row for row in fitting if matrix.keys[row].better]
    columns = np.flatnonzero(np.isfinite(matrix.values[rows]).any(axis=0))[-ask.last :].tolist()
    silent = tuple(gone_now(matrix, rows, columns))
    return matrix.take(rows, columns), len(fitting) - len(rows), silent


def _beside_others(store: Store, tested: Tested, changes: Changes) -> list[FoundStep]:
    """Return the steps; not sure is one that what others took since explains, beyond before."""
    run_ids = [each.run_id for each in tested.runs]
    any_sure = any(each.sure for each in changes.steps)
    taken = taken_from(store, run_ids) if any_sure else {}
    found = []
    for row, steps in by_key((step.row, step) for step in changes.steps).items():
        key, history, margin = tested.keys[row], tested.histories[row], tested.margins[row]
        ends = sorted({0, len(run_ids), *(step.at for step in steps)})
        for step, lasts in zip(steps, _lasting(steps, margin), strict=True):
            at = ends.index(step.at)
            first, end = ends[at - 1], ends[at + 1]
            seen = around_quantity(taken, key, run_ids[first:end])
            num_nodes = key.nodes.count(",") + 1
            others = beside(seen, history[first:end], step.at - first, num_nodes)
            in_us = key.unit == "us"
            excused = others and others.explains(step.ratio, key.better, margin, in_us=in_us)
            found.append(
                FoundStep(
                    key=key,
                    step=replace(step, sure=False) if excused else step,
                    worse=(step.ratio < 1) == (key.better > 0),
                    run=tested.runs[step.at],
                    lasts=lasts,
                    history=history,
                    others=others.said("since", "before") if others and excused else "",
                )
            )
    return found


def _lasting(steps: Sequence[Step], margin: float) -> list[bool]:
    """Tell of each step of a row whether the newest level is still off because of it.

    It is not if later steps took it back, though the newest level be off again: that is of the
    later step that lasts.
    """
    lasts = [False] * len(steps)
    for number in reversed(range(len(steps))):
        nets = list(itertools.accumulate((each.ratio for each in steps[number:]), operator.mul))
        is_off = [(net < 1) == (nets[0] < 1) and abs(net - 1) >= margin for net in nets]
        back = next((at for at, off in enumerate(is_off) if not off), None)
        again = back is not None and any(
            lasts[later] and (steps[later].ratio < 1) == (nets[0] < 1)
            for later in range(number + back + 1, len(steps))
        )
        lasts[number] = is_off[-1] and not again
    return lasts


def _drifts(tested: Tested, changes: Changes) -> tuple[FoundDrift, ...]:
    found = [
        FoundDrift(
            key=tested.keys[each.row],
            drift=each,
            worse=(each.per_run < 1) == (tested.keys[each.row].better > 0),
            run=tested.runs[each.first],
            history=tested.histories[each.row],
        )
        for each in changes.drifts
    ]
    return tuple(sorted(found, key=lambda each: -abs(math.log(each.drift.total))))


def _warnings(matrix: Matrix, most: int, changes: Changes) -> Iterator[str]:
    if most < _LEAST_FOR_STEPS:
        yield (
            f"no quantity has more than {most} runs: with fewer than {_LEAST_FOR_STEPS} only a "
            "last run that is far off, or a drift, can be told"
        )
    elif most < (enough := least_runs(2, ALPHA)):
        yield (
            f"no quantity has more than {most} runs: with fewer than {enough} a change that began "
            "two runs ago cannot be told yet, however large it is; three runs after it can"
        )
    if matrix.set_aside:
        row, column, reason = matrix.set_aside[-1]
        yield (
            f"{len(matrix.set_aside)} numbers were measured and are not used; the last: "
            f"{matrix.keys[row].label} in {matrix.runs[column].run_id}: {reason}"
        )
    if changes.lag > 0:
        yield (
            f"consecutive runs resemble each other (correlation {changes.lag:.2f}): judged as if "
            f"there were only {(1 - changes.lag) / (1 + changes.lag):.0%} as many runs"
        )
