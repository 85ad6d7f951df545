"""Everything that a report of a site may show, gathered once for every renderer."""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from dataclasses import dataclass, field

from fabricproof.history.compare.model import Comparison, FieldChange
from fabricproof.history.store import Key, Matrix, Run
from fabricproof.history.trend.model import Trend
from fabricproof.job.run import SessionResult


@dataclass(frozen=True, kw_only=True)
class Bounds:
    """What one quantity of the reported run was judged by, in the unit of its key.

    Attributes:
        ceiling: physical limit (a floor for a latency), None where none is known.
        ceiling_name: which limit binds.
        reference: None where there is none.
        lower: smallest accepted value.
        upper: largest accepted value.
        origin: where the reference comes from.
    """

    ceiling: float | None = None
    ceiling_name: str = ""
    reference: float | None = None
    lower: float | None = None
    upper: float | None = None
    origin: str = ""


@dataclass(frozen=True, kw_only=True)
class Band:
    """What the active baseline says of one quantity, in the unit of its key."""

    low: float
    median: float
    high: float
    baseline: str


@dataclass(frozen=True, kw_only=True)
class RawNumber:
    """One raw number as it stands in the records.

    Attributes:
        run_id: the run.
        attempt: 1 for the first, 2 for the second look; 0 for a relation between legs.
        counts: whether the verdict rests on it.
        value: None where nothing was measured.
        verdict: the word.
        reason: why.
        file: the record file.
        line: its line, from 1.
    """

    run_id: str
    attempt: int
    counts: bool
    value: float | None
    verdict: str
    reason: str
    file: str
    line: int


@dataclass(frozen=True, kw_only=True)
class ReportData:
    """What there is to report.

    Attributes:
        site: name of the site.
        made: when the report was made, UTC.
        run: the run that it is about, the newest by default.
        session: its legs and verdicts.
        matrix: the numbers of the last runs, this one among them.
        bounds: what each quantity of this run was judged by.
        raw: every raw number of every key of the matrix, oldest first.
        bands: of the active baseline.
        comparison: before and after, None where nobody asked.
        trend: None where there are too few runs.
        machines: node to part to facts, as this run saw them.
        inventory_changes: what changed since the run before.
        notes: what was passed over.
    """

    site: str
    made: datetime.datetime
    run: Run
    session: SessionResult
    matrix: Matrix
    bounds: Mapping[Key, Bounds] = field(default_factory=dict)
    raw: Mapping[Key, tuple[RawNumber, ...]] = field(default_factory=dict)
    bands: Mapping[Key, Band] = field(default_factory=dict)
    comparison: Comparison | None = None
    trend: Trend | None = None
    machines: Mapping[str, Mapping[str, Mapping[str, str | int]]] = field(default_factory=dict)
    inventory_changes: tuple[FieldChange, ...] = ()
    notes: tuple[str, ...] = ()
