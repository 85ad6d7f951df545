"""A trend on one screen of 80 columns and 25 lines, what is worse now first."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from fabricproof.core.units import counted, percent
from fabricproof.history.compare.text import LINES, wrapped
from fabricproof.history.trend.model import Event, FoundStep, Trend

#: events, quantities of each, drifts and notes that are shown without ``--all``; lines of a
#: sentence
_EVENTS, _QUANTITIES, _DRIFTS, _NOTES, _SENTENCE = 3, 1, 2, 3, 6

_BARS = "▁▂▃▄▅▆▇█"
_GAP = "·"

#: columns of a sparkline at most; of longer histories the newest runs are drawn
_BARS_WIDTH = 60


def sparkline(history: Sequence[float | None]) -> str:
    """Return values as bars from 0 (none) to the largest (full); a dot for a run without one.

    From 0, so that a change of 3 % looks like 3 %; if all lie within a fifth of the largest
    the bars begin at the smallest, since nothing would be seen.
    """
    newest = list(history)[-_BARS_WIDTH:]
    there = [value for value in newest if value is not None]
    if not there:
        return _GAP * len(newest)
    low, high = min(there), max(there)
    base = 0.0 if low < 0.8 * high else low
    scale = (len(_BARS) - 1) / (high - base) if high > base else 0.0
    return "".join(
        _GAP if value is None else _BARS[round((value - base) * scale)] for value in newest
    )


def trend_lines(trend: Trend, *, whole: bool = False) -> Iterator[str]:
    """Yield what to know first, then each event, then what was left out.

    At most :data:`LINES` lines; with ``whole`` everything.
    """
    found = wrapped(_head(trend), 2, whole=whole)
    for text in trend.silent:
        found += wrapped(f"  {text}", 3, whole=whole)
    end = _rest(trend, whole=whole)
    # What is worse now first; then the newest.
    events = sorted(trend.events, key=lambda each: not (each.worse and each.lasts))
    shown = events if whole else events[:_EVENTS]
    for event in shown:
        part = _event(event, whole=whole)
        if not whole and len(found) + len(part) + len(end) > LINES - 3 * bool(trend.drifts):
            break
        found += part
    told = sum(line.startswith("  next: ") for line in found)
    if told < len(events):
        found.append(f"... and {counted(len(events) - told, 'more event')} (--all)")
    drifts = trend.drifts if whole else trend.drifts[:_DRIFTS]
    for each in drifts:
        word = _word(worse=each.worse, sure=each.drift.sure)
        text = (
            f"{word} slowly: {each.key.label} {percent(each.drift.per_run, 2)} a run, "
            f"{percent(each.drift.total)} since {each.run.night} UTC (p = {each.drift.p:.2g})"
        )
        found += wrapped(text, 2, whole=whole)
        found += [f"  {sparkline(each.history)}"] * whole
    if len(drifts) < len(trend.drifts):
        found.append(f"... and {counted(len(trend.drifts) - len(drifts), 'more drift')} (--all)")
    yield from (*found, *end)


def _head(trend: Trend) -> str:
    first, last = trend.runs[0].night, trend.runs[-1].night
    over = f"{trend.site}, {len(trend.runs)} runs from {first} to {last} UTC"
    if not (trend.events or trend.drifts or trend.silent):
        if trend.too_few_for_steps:
            return f"too few runs to tell a lasting change; the last run is not far off: {over}"
        return f"no lasting change: {over}"
    found = [counted(len(trend.events), "event")] * bool(trend.events)
    found += [counted(len(trend.drifts), "drift")] * bool(trend.drifts)
    found += ["something gives no number any more"] * bool(trend.silent)
    state = "nothing else is worse now" if trend.silent else "nothing is worse now"
    if trend.worse_now:
        state = "the newest runs " + ("are worse" if any(trend.worse_now) else "look worse")
    return f"{state}: {' and '.join(found)}; {over}"


def _event(event: Event, *, whole: bool) -> list[str]:
    text = f"{_word(worse=event.worse, sure=event.sure, lasts=event.lasts)}  {event.sentence}"
    found = ["", *wrapped(text, _SENTENCE, whole=whole)]
    found += [f"  at the same time {each}" for each in event.coincides[1:] if whole]
    steps = event.steps if whole else event.steps[:_QUANTITIES]
    for each in steps:
        found += wrapped(f"  {each.key.label} {_levels(each)}", 1, whole=whole)
        found.append(f"    {sparkline(each.history)}")
    return [*found, f"  next: {event.next_step}"]


def _word(*, worse: bool, sure: bool, lasts: bool = True) -> str:
    word = "WORSE" if worse else "BETTER"
    looks = ("" if sure else "looks ") if lasts else ("was " if sure else "looked ")
    return f"{looks}{word}"


def _levels(found: FoundStep) -> str:
    at = found.step.at
    before = next((each for each in reversed(found.history[:at]) if each is not None), None)
    after = next((each for each in found.history[at:] if each is not None), None)
    levels = f"{percent(found.step.ratio)}"
    if before is not None and after is not None:
        levels += f": {before:.4g} -> {after:.4g} {found.key.unit}"
    return levels


def _rest(trend: Trend, *, whole: bool) -> list[str]:
    left = [f"{trend.num_short} with too few runs"] * bool(trend.num_short)
    left += [f"{trend.num_facts} states and counts"] * bool(trend.num_facts)
    beside = f", {' and '.join(left)} left out" if left else ""
    found = ["", f"{trend.num_quantities} quantities looked at{beside}"]
    if trend.events or trend.drifts:
        found += wrapped(
            f"WORSE is called falsely in one history of {1 / trend.alpha:.0f} at most, looked at "
            "after every run of a year; 'looks' is not sure yet",
            2,
            whole=whole,
        )
    notes = [each for each in trend.warnings if each not in trend.silent]
    for each in notes if whole else notes[:_NOTES]:
        found += wrapped(f"note: {each}", 2, whole=whole)
    more = 0 if whole else len(notes) - _NOTES
    return [*found, *[f"... and {more} more notes (--all)"] * (more > 0)]
