"""A trend as text for a person."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence

from fabricproof.core.units import percent
from fabricproof.history.trend.model import Event, FoundDrift, FoundStep, Trend

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
    """Yield the trend, line by line: what to know first, then each event, then what was left out.

    Args:
        trend: what was found.
        verbose: every quantity of an event, not only the largest changes.
    """
    yield _head(trend)
    for event in trend.events:
        yield ""
        yield from _event(event, verbose=verbose)
    if trend.drifts:
        yield ""
        yield from _drifts(trend.drifts, len(trend.runs), verbose=verbose)
    yield ""
    yield from _rest(trend)


def _head(trend: Trend) -> str:
    first, last = trend.runs[0].night, trend.runs[-1].night
    over = f"{trend.site}, {len(trend.runs)} runs from {first} to {last} UTC"
    if trend.silent:
        return f"{over}: WORSE, {len(trend.silent)} legs give no usable number any more"
    if not trend.events and not trend.drifts:
        if trend.too_few_for_steps:
            return f"{over}: too few to tell a lasting change; the last run is not far off"
        return f"{over}: no lasting change"
    found = [f"{len(trend.events)} event{'s' * (len(trend.events) != 1)}"] * bool(trend.events)
    found += [f"{len(trend.drifts)} drift{'s' * (len(trend.drifts) != 1)}"] * bool(trend.drifts)
    state = "the newest runs are worse" if trend.is_worse_now else "nothing is worse now"
    return f"{over}: {' and '.join(found)}; {state}"


def _event(event: Event, *, verbose: bool) -> Iterator[str]:
    word = "WORSE" if event.worse else "BETTER"
    told = f"{word if event.lasts else f'was {word}'}  {event.sentence}"
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


def _levels(found: FoundStep) -> str:
    at = found.step.at
    before = next((each for each in reversed(found.history[:at]) if each is not None), None)
    after = next((each for each in found.history[at:] if each is not None), None)
    if before is None or after is None:
        return ""
    return f"{before:.4g} -> {after:.4g} {found.key.unit}"


def _drifts(drifts: Sequence[FoundDrift], num_runs: int, *, verbose: bool) -> Iterator[str]:
    yield "drifts, which no single run shows:"
    shown = drifts if verbose else drifts[:_SHOWN]
    width = max(len(each.key.label) for each in shown)
    for each in shown:
        since = f"since {each.run.night} UTC" if each.run else f"over {num_runs} runs"
        yield (
            f"{'WORSE' if each.worse else 'BETTER'}  {each.key.label:<{width}}  "
            f"{_percent_small(each.drift.per_run)} a run, {percent(each.drift.total)} {since} "
            f"(p = {each.drift.p:.2g})"
        )
        yield f"    {sparkline(each.history)}"
    if len(shown) < len(drifts):
        yield f"  and {len(drifts) - len(shown)} more drifts: -v shows all"


def _percent_small(ratio: float) -> str:
    return f"{(ratio - 1) * 100:+.2f} %"


def _rest(trend: Trend) -> Iterator[str]:
    yield (
        f"{trend.num_quantities} quantities looked at; of histories without any change at most one "
        f"in {1 / trend.alpha:.0f} tells anything at one look, more if looked at night by night"
    )
    if trend.num_short:
        yield f"{trend.num_short} quantities have fewer than 6 runs: nothing can be said of them"
    if trend.num_facts:
        yield f"{trend.num_facts} are states and counts: fabricproof inventory diff compares them"
    yield from (f"note: {each}" for each in trend.warnings)
