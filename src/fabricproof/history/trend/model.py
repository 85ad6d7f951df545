"""What a search for changes came to: plain records, the form of ``--json``, text for a person."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from fabricproof.core.plain import plain
from fabricproof.core.units import counted, percent
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
        history: value in each of :attr:`Trend.runs`; None where a run has none.
        others: what others took before and after it, where that explains it: it is not sure then.
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
    """A slow change of one quantity.

    Attributes:
        drift: how fast; its column is an index into :attr:`Trend.runs`.
        worse: whether it is to the worse.
        run: the first run of it that is known.
        history: as in :class:`FoundStep`.
    """

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
        where: what they have in common: ``rail1``, ``vc2``, ``openmpi5``; empty where nothing.
        coincides: inventory fields that changed between the runs that its steps may lie between,
            one sentence each; empty where none did or nobody looked.
        lasts: whether any of its steps to the worse (or, where it has none, to the better) does.
        sure: whether any of these that lasts (where none does, any) is called, and not only told:
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
        lag: how much one run hangs together with the next; 0 where no more than by chance.
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
    def is_worse_now(self) -> bool:
        """Whether something surely grew worse and is still so in the newest runs: a call."""
        return any(self._worse_now())

    @property
    def looks_worse_now(self) -> bool:
        """Whether something is told to be worse in the newest runs, surely or not."""
        return bool(self.silent) or bool(list(self._worse_now()))

    def _worse_now(self) -> Iterator[bool]:
        """Yield of each change to the worse that lasts whether it is sure."""
        yield from (each.drift.sure for each in self.drifts if each.worse)
        steps = (step for event in self.events for step in event.steps)
        yield from (each.step.sure for each in steps if each.worse and each.lasts)


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


#: quantities of an event that are shown one by one
_SHOWN = 5

#: columns of a sentence at most
_TEXT_WIDTH = 100

_BARS = "▁▂▃▄▅▆▇█"
_GAP = "·"

#: columns of a sparkline at most; of longer histories the newest runs are drawn
_WIDTH = 60


def sparkline(history: Sequence[float | None]) -> str:
    """Return values as bars from 0 (none) to the largest (full); a dot for a run without one.

    From 0, so that a change of 3 % looks like 3 %; where all lie within a fifth of the largest
    the bars begin at the smallest, since nothing would be seen.
    """
    newest = list(history)[-_WIDTH:]
    there = [value for value in newest if value is not None]
    if not there:
        return _GAP * len(newest)
    low, high = min(there), max(there)
    base = 0.0 if low < 0.8 * high else low
    scale = (len(_BARS) - 1) / (high - base) if high > base else 0.0
    return "".join(
        _GAP if value is None else _BARS[round((value - base) * scale)] for value in newest
    )


def trend_lines(trend: Trend, *, verbose: bool = False) -> Iterator[str]:
    """Yield what to know first, then each event, then what was left out."""
    yield _head(trend)
    for event in trend.events:
        yield ""
        yield from _event(event, verbose=verbose)
    if trend.drifts:
        yield ""
        yield from _drifts(trend.drifts, verbose=verbose)
    yield ""
    yield from _rest(trend)


def _head(trend: Trend) -> str:
    first, last = trend.runs[0].night, trend.runs[-1].night
    over = f"{trend.site}, {len(trend.runs)} runs from {first} to {last} UTC"
    if not (trend.events or trend.drifts or trend.silent):
        if trend.too_few_for_steps:
            return f"{over}: too few to tell a lasting change; the last run is not far off"
        return f"{over}: no lasting change"
    found = [counted(len(trend.events), "event")] * bool(trend.events)
    found += [counted(len(trend.drifts), "drift")] * bool(trend.drifts)
    if trend.silent:
        found.append("something gives no number any more")
    state = "nothing else is worse now" if trend.silent else "nothing is worse now"
    if trend.is_worse_now:
        state = "the newest runs are worse"
    elif any(True for _ in trend._worse_now()):
        state = "the newest runs look worse, which is not sure yet"
    return f"{over}: {' and '.join(found)}; {state}"


def _event(event: Event, *, verbose: bool) -> Iterator[str]:
    told = f"{_word(worse=event.worse, sure=event.sure, lasts=event.lasts)}  {event.sentence}"
    yield from textwrap.wrap(told, _TEXT_WIDTH, subsequent_indent="  ", break_on_hyphens=False)
    yield f"  next: {event.next_step}"
    yield from (f"  at the same time {each}" for each in event.coincides[3:] if verbose)
    steps = event.steps if verbose else event.steps[:_SHOWN]
    width = max(len(each.key.label) for each in steps)
    for each in steps:
        yield f"  {each.key.label:<{width}}  {percent(each.step.ratio):>8}  {_levels(each)}"
        yield f"    {sparkline(each.history)}"
    if len(steps) < len(event.steps):
        yield f"  and {len(event.steps) - len(steps)} more quantities: -v shows all"


def _word(*, worse: bool, sure: bool, lasts: bool = True) -> str:
    word = "WORSE" if worse else "BETTER"
    looks = ("" if sure else "looks ") if lasts else ("was " if sure else "looked ")
    return f"{looks}{word}"


def _levels(found: FoundStep) -> str:
    at = found.step.at
    before = next((each for each in reversed(found.history[:at]) if each is not None), None)
    after = next((each for each in found.history[at:] if each is not None), None)
    if before is None or after is None:
        return ""
    return f"{before:.4g} -> {after:.4g} {found.key.unit}"


def _drifts(drifts: Sequence[FoundDrift], *, verbose: bool) -> Iterator[str]:
    yield "drifts, which no single run shows:"
    shown = drifts if verbose else drifts[:_SHOWN]
    width = max(len(each.key.label) for each in shown)
    for each in shown:
        yield (
            f"{_word(worse=each.worse, sure=each.drift.sure)}  {each.key.label:<{width}}  "
            f"{percent(each.drift.per_run, 2)} a run, {percent(each.drift.total)} since "
            f"{each.run.night} UTC (p = {each.drift.p:.2g})"
        )
        yield f"    {sparkline(each.history)}"
    if len(shown) < len(drifts):
        yield f"  and {len(drifts) - len(shown)} more drifts: -v shows all"


def _rest(trend: Trend) -> Iterator[str]:
    yield (
        f"{trend.num_quantities} quantities looked at; of histories without any change at most one "
        f"in {1 / trend.alpha:.0f} calls anything in a year of looks after every run; 'looks' is "
        "of this one look, and chance does as much now and then"
    )
    if trend.num_short:
        yield f"{trend.num_short} quantities have fewer than 6 runs: nothing can be said of them"
    if trend.num_facts:
        yield f"{trend.num_facts} are states and counts: fabricproof inventory diff compares them"
    if len(trend.runs) > _WIDTH and (trend.events or trend.drifts):
        yield f"the picture shows the newest {_WIDTH} of {len(trend.runs)} runs"
    yield from (f"note: {each}" for each in trend.warnings)
