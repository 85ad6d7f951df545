"""What a search for changes came to: plain records, the form of ``--json``."""

from __future__ import annotations

import csv
import io
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from fabricproof.core.plain import plain
from fabricproof.history.store import Key, Run

if TYPE_CHECKING:
    from fabricproof.history.stats.steps import Drift, Step


@dataclass(frozen=True, kw_only=True)
class FoundStep:
    """A lasting change of one quantity.

    Attributes:
        step: when and how much; its columns are indices into :attr:`Trend.runs`.
        worse: whether it is to the worse; False: to the better.
        run: the first run after it.
        lasts: whether the newest level is still off by it; False: later steps took it back.
        history: value in each of :attr:`Trend.runs`; None if a run has none.
        others: what others took before and after it, if that explains it: it is not sure then.
    """

    key: Key
    step: Step
    worse: bool
    run: Run
    lasts: bool = True
    history: tuple[float | None, ...] = ()
    others: str = ""


@dataclass(frozen=True, kw_only=True)
class FoundDrift:
    """A slow change of one quantity, since ``run``; the rest is as in :class:`FoundStep`."""

    key: Key
    drift: Drift
    worse: bool
    run: Run
    history: tuple[float | None, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Event:
    """Steps that begin together, told once: one cause is likely.

    Attributes:
        run: the first run after it.
        steps: its steps, the largest first.
        where: what they have in common: ``rail1``, ``vc2``, ``openmpi5``; empty if nothing.
        coincides: inventory fields and builds that changed between the runs that its steps may lie
            between, one sentence each; empty if none did or nobody looked.
        lasts: whether any of its steps to the worse (or, if it has none, to the better) does.
        sure: whether any of these that lasts (if none does, any) is called, and not only told:
            see :class:`fabricproof.history.stats.steps.Step`.
        next_step: the command that looks closer.
    """

    run: Run
    steps: tuple[FoundStep, ...]
    where: str
    coincides: tuple[str, ...]
    sentence: str
    lasts: bool = True
    sure: bool = True
    next_step: str = ""

    @property
    def worse(self) -> bool:
        """Whether any of its steps is to the worse."""
        return any(each.worse for each in self.steps)


@dataclass(frozen=True, kw_only=True)
class Trend:
    """What the history of a site shows.

    Attributes:
        runs: that were looked at, oldest first.
        num_quantities: rows that have enough runs to show anything.
        num_short: rows that have too few.
        events: newest first.
        drifts: the largest first.
        warnings: what was passed over.
        alpha: the chance of even one false event.
        num_facts: quantities that are neither better nor worse (states, counts), left to the
            inventory.
        lag: how much one run resembles the next; 0 if no more than by chance.
        too_few_for_steps: no quantity has runs enough for a step; only a last run that is far off
            could be told.
        silent: what had numbers and has none in the newest runs of its check, in sentences.
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
    def worse_now(self) -> list[bool]:
        """Of each change to the worse that lasts whether it is sure."""
        steps = [step for event in self.events for step in event.steps]
        return [
            *(each.drift.sure for each in self.drifts if each.worse),
            *(each.step.sure for each in steps if each.worse and each.lasts),
        ]

    @property
    def is_worse_now(self) -> bool:
        """Whether something surely grew worse and is still so in the newest runs: a call."""
        return any(self.worse_now)

    @property
    def looks_worse_now(self) -> bool:
        """Whether something is told to be worse in the newest runs, surely or not."""
        return bool(self.silent or self.worse_now)


def trend_record(trend: Trend) -> dict[str, Any]:
    """Return the form of ``--json``; columns of steps and histories are those of ``runs``."""
    return plain(
        trend,
        "is_worse_now",
        "looks_worse_now",
        runs=[each.named for each in trend.runs],
        events=[
            plain(
                each,
                "worse",
                run=each.run.named,
                steps=[plain(step, without={"run"}) for step in each.steps],
            )
            for each in trend.events
        ],
        drifts=[plain(each, run=each.run.named) for each in trend.drifts],
    )


def trend_csv(trend: Trend) -> str:
    """Return one line for each step and drift of a quantity."""
    text = io.StringIO()
    table = csv.writer(text, lineterminator="\n")
    table.writerow(
        ("kind", "since_run", "since", "where", "stack", "program", "leg", "nodes", "quantity",
         "unit", "ratio", "p", "worse", "sure", "lasts")
    )  # fmt: skip
    found = [
        ("step", event.run, event.where, each.key, each.step.ratio, each.step.p, each.worse,
         each.step.sure, each.lasts)
        for event in trend.events
        for each in event.steps
    ]  # fmt: skip
    found += [
        ("drift", each.run, "", each.key, each.drift.total, each.drift.p, each.worse,
         each.drift.sure, True)
        for each in trend.drifts
    ]  # fmt: skip
    for kind, run, where, key, *numbers in found:
        place = (key.stack, key.program, key.leg, key.nodes, key.quantity, key.unit)
        table.writerow((kind, run.run_id, run.night, where, *place, *numbers))
    return text.getvalue()
