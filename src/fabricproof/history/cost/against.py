"""Hold an estimate against what a run took, with nothing learnt from that run or a later one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from fabricproof.history.cost.case import Key
from fabricproof.history.cost.estimate import Estimate
from fabricproof.history.cost.history import PastRun


@dataclass(frozen=True, kw_only=True)
class Compared:
    """One check of a run: what was expected of its jobs, and what they took."""

    check: str
    jobs: int
    expected_seconds: float
    measured_seconds: float
    expected_node_seconds: float
    measured_node_seconds: float


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """A whole run.

    Attributes:
        checks: by check, in their order.
        expected_seconds: of the whole run, ReFrame's own share included.
        measured_seconds: what ReFrame says it ran.
        unplanned: jobs of the run that no plan of today holds, by check, stack and fabric.
        building_seconds: what the longest build of the run took; no part of the estimate.
        unfinished: jobs that did not end well: what they took says little.
    """

    checks: tuple[Compared, ...]
    expected_seconds: float
    measured_seconds: float
    unplanned: tuple[str, ...]
    building_seconds: float
    unfinished: int = 0

    @property
    def off_by(self) -> float:
        """How far the estimate was off, as a fraction of what was measured."""
        return off_by(self.expected_seconds, self.measured_seconds)


def off_by(expected: float, measured: float) -> float:
    """Return expected less measured as a fraction of measured; 0 where nothing was measured."""
    return (expected - measured) / measured if measured > 0 else 0.0


def compare(run: PastRun, estimates: Iterable[Estimate], *, session_seconds: float) -> Comparison:
    """Return the comparison of ``run`` with what was expected of its jobs."""
    by_key: Mapping[Key, Estimate] = {each.case.key: each for each in estimates}
    rows: dict[str, Compared] = {}
    unplanned = []
    for job in run.jobs:
        planned = by_key.get(job.key)
        if planned is None:
            check, fabric, _, stack = job.key
            unplanned.append(f"{check} on {stack} over {fabric}")
            continue
        row = rows.get(job.key[0])
        rows[job.key[0]] = Compared(
            check=job.key[0],
            jobs=(row.jobs if row else 0) + 1,
            expected_seconds=(row.expected_seconds if row else 0) + planned.seconds,
            measured_seconds=(row.measured_seconds if row else 0) + job.seconds,
            expected_node_seconds=(row.expected_node_seconds if row else 0) + planned.node_seconds,
            measured_node_seconds=(row.measured_node_seconds if row else 0)
            + job.seconds * job.nodes,
        )
    return Comparison(
        checks=tuple(rows[name] for name in sorted(rows)),
        expected_seconds=session_seconds + sum(each.expected_seconds for each in rows.values()),
        measured_seconds=run.seconds,
        unplanned=tuple(unplanned),
        building_seconds=max(run.builds.values(), default=0.0),
        unfinished=sum(not job.attempts for job in run.jobs),
    )
