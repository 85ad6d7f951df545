"""What a search for changes came to: plain records, and the form of ``--json``."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from fabricproof.history.stats.steps import Drift, Step
from fabricproof.history.store import Key, Run


@dataclass(frozen=True, kw_only=True)
class FoundStep:
    """A lasting change of one quantity.

    Attributes:
        key: the quantity.
        step: when and how much; its columns are indices into :attr:`Trend.runs`.
        worse: whether it is to the worse; False: to the better.
        run: the first run after it.
        coincides: inventory fields that changed between the runs it may lie between, one
            sentence each; empty where none did or nobody looked.
        lasts: whether the newest level is still off by it; False: later steps took it back.
        history: value in each of :attr:`Trend.runs`; None where a run has none.
    """

    key: Key
    step: Step
    worse: bool
    run: Run
    coincides: tuple[str, ...]
    lasts: bool = True
    history: tuple[float | None, ...] = ()


@dataclass(frozen=True, kw_only=True)
class FoundDrift:
    """A slow change of one quantity.

    Attributes:
        key: the quantity.
        drift: how fast; its column is an index into :attr:`Trend.runs`.
        worse: whether it is to the worse.
        run: the first run of it that is known; None where nobody looked it up.
        history: as in :class:`FoundStep`.
    """

    key: Key
    drift: Drift
    worse: bool
    run: Run | None = None
    history: tuple[float | None, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Event:
    """Steps that begin together, told once: one cause is likely.

    Attributes:
        run: the first run after it.
        steps: its steps, the largest first.
        where: what they have in common: ``rail1``, ``vc2``, ``openmpi5``; empty where nothing.
        coincides: as in :class:`FoundStep`, of all of them.
        sentence: for a person.
        lasts: whether any of its steps to the worse (or, where it has none, to the better) does.
        next_step: the command that looks closer.
    """

    run: Run
    steps: tuple[FoundStep, ...]
    where: str
    coincides: tuple[str, ...]
    sentence: str
    lasts: bool = True
    next_step: str = ""

    @property
    def worse(self) -> bool:
        """Whether any of its steps is to the worse."""
        return any(each.worse for each in self.steps)


@dataclass(frozen=True, kw_only=True)
class Trend:
    """What the history of a site shows.

    Attributes:
        site: its name.
        runs: that were looked at, oldest first.
        num_quantities: rows that have enough runs to show anything.
        num_short: rows that have too few.
        events: newest first.
        drifts: the largest first.
        warnings: what was passed over.
        alpha: the chance of even one false event.
        num_facts: quantities that are neither better nor worse (states, counts), left to the
            inventory.
        lag: how much one run hangs together with the next; 0 where no more than by chance.
        too_few_for_steps: no quantity has runs enough for a step; only a last run that is far off
            could be told.
        silent: checks whose newest runs were tried and gave no usable number, one sentence each.
    """

    site: str
    runs: tuple[Run, ...]
    num_quantities: int
    num_short: int
    events: tuple[Event, ...]
    drifts: tuple[FoundDrift, ...]
    warnings: tuple[str, ...]
    alpha: float
    num_facts: int = 0
    lag: float = 0.0
    silent: tuple[str, ...] = ()
    too_few_for_steps: bool = False

    @property
    def is_worse_now(self) -> bool:
        """Whether something that grew worse is still so in the newest runs."""
        return (
            bool(self.silent)
            or any(each.worse for each in self.drifts)
            or any(step.worse and step.lasts for event in self.events for step in event.steps)
        )


def trend_record(trend: Trend) -> dict[str, Any]:
    """Return the form of ``--json``; columns of steps and histories are those of ``runs``."""
    return {
        "site": trend.site,
        "alpha": trend.alpha,
        "worse_now": trend.is_worse_now,
        "runs": [_run(each) for each in trend.runs],
        "quantities": trend.num_quantities,
        "too_short": trend.num_short,
        "facts": trend.num_facts,
        "lag": trend.lag,
        "too_few_for_steps": trend.too_few_for_steps,
        "events": [_event(each) for each in trend.events],
        "drifts": [_drift(each) for each in trend.drifts],
        "silent": list(trend.silent),
        "warnings": list(trend.warnings),
    }


def _run(run: Run) -> dict[str, Any]:
    return {"run_id": run.run_id, "start": run.start.isoformat()}


def _event(event: Event) -> dict[str, Any]:
    return {
        "run": _run(event.run),
        "where": event.where,
        "worse": event.worse,
        "lasts": event.lasts,
        "sentence": event.sentence,
        "coincides": list(event.coincides),
        "next_step": event.next_step,
        "steps": [_step(each) for each in event.steps],
    }


def _step(found: FoundStep) -> dict[str, Any]:
    return {
        "key": asdict(found.key),
        **asdict(found.step),
        "worse": found.worse,
        "lasts": found.lasts,
        "history": list(found.history),
    }


def _drift(found: FoundDrift) -> dict[str, Any]:
    return {
        "key": asdict(found.key),
        **asdict(found.drift),
        "worse": found.worse,
        "since": _run(found.run) if found.run else None,
        "history": list(found.history),
    }
