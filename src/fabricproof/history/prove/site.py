"""From the history of a site to the proof on it: nights replayed, clean nights, what they show."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from fabricproof.core.errors import InputMissingError
from fabricproof.core.project import site_option
from fabricproof.history.compare.facts import Machines
from fabricproof.history.prove.clean import (
    LEAST_NIGHTS,
    SEED,
    CleanNights,
    judge_clean,
)
from fabricproof.history.prove.model import SiteProof, Stretch
from fabricproof.history.prove.nights import Past, Tell
from fabricproof.history.store import Matrix, Store, no_samples
from fabricproof.history.trend.find import LEAST_RUNS, Question, TooFewRunsError, find_trend
from fabricproof.history.trend.model import Trend


def prove_site(store: Store, run_ids: Sequence[str], machines: Machines, tell: Tell) -> SiteProof:
    """Return what the rules of today say of these runs.

    Without ``run_ids`` these are all but looks of a night and admissions.

    Raises:
        InputMissingError: no run, or nothing measured in them.
        TooFewRunsError: fewer than six runs, or no quantity in six of them.
    """
    wanted = set(run_ids) or {each.run_id for each in store.runs} - no_samples(store.labels)
    ids = [each.run_id for each in store.runs if each.run_id in wanted]
    if not ids:
        raise InputMissingError(
            f"no run of {store.site} but looks of a night and admissions",
            expected=f"at least {LEAST_RUNS} runs",
            next_step=f"fabricproof runs {site_option(store.site)}",
        )
    if len(ids) < LEAST_RUNS:
        raise TooFewRunsError(
            f"too few runs of {store.site} to prove anything",
            expected=f"at least {LEAST_RUNS}; {LEAST_NIGHTS} of one level for what is noticed",
            got=str(len(ids)),
            next_step=f"fabricproof run {site_option(store.site)} -t nightly   # each night",
        )
    trend = find_trend(store, Question(runs=ids, last=len(ids)), machines)
    past = Past(store=store, ids=ids, machines=machines)
    nights = past.judged(tell)
    matrix = store.matrix(ids, across=("build", "tool_version"))
    stretch = longest_level(trend)
    clean = _clean(matrix, past, stretch)
    proof = SiteProof(
        site=store.site,
        nights=nights,
        no_baseline=past.no_baseline,
        stretch=stretch,
        seed=SEED,
        lag=trend.lag,
        drifts=len(trend.drifts),
        num_red=len({(key, run.run_id) for key in clean.keys for run in stretch.runs} & past.red),
        notes=store.notes,
    )
    if len(clean.runs) < LEAST_NIGHTS:
        return proof
    shuffled, floors = judge_clean(clean, tell)
    return replace(proof, shuffled=shuffled, floors=floors)


def longest_level(trend: Trend) -> Stretch:
    """Return the nights since the last step; where these are too few, the longest without one.

    A newest run that is far off by itself is no level: it is left out.
    """
    last = len(trend.runs) - 1
    cuts = sorted({step.step.at for event in trend.events for step in event.steps})
    bounds = [0, *cuts, len(trend.runs)]
    parts = [(low, high) for low, high in itertools.pairwise(bounds) if high > low]
    if parts[-1] == (last, last + 1) and len(parts) > 1:
        parts.pop()
    newest = parts[-1]
    if newest[1] - newest[0] < LEAST_NIGHTS:
        newest = max(parts, key=lambda each: each[1] - each[0])
    return Stretch(
        runs=trend.runs[newest[0] : newest[1]], steps=len(cuts), is_newest=newest == parts[-1]
    )


def _clean(matrix: Matrix, past: Past, stretch: Stretch) -> CleanNights:
    """Return the quantities of a stretch, without numbers that physics or a reference made red.

    A night that has no other number is left out.
    """
    inside = {each.run_id for each in stretch.runs}
    columns = [at for at, run in enumerate(matrix.runs) if run.run_id in inside]
    rows = [row for row, key in enumerate(matrix.keys) if key.better]
    mine = matrix.take(rows, columns)
    values = mine.values.copy()
    red = past.red
    for row, key in enumerate(mine.keys):
        for at, run in enumerate(mine.runs):
            if (key, run.run_id) in red:
                values[row, at] = np.nan
    kept = np.flatnonzero(np.isfinite(values).any(axis=0)).tolist()
    runs = tuple(mine.runs[at] for at in kept)
    return CleanNights(keys=mine.keys, runs=runs, values=values[:, kept])
