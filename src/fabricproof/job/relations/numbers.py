"""The number of one look at a relation, or why there is none."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from statistics import median

from fabricproof.core.measure import Verdict
from fabricproof.core.units import at_size, size_label
from fabricproof.job.outcome import Outcome, first_reason
from fabricproof.job.relation import Pick, Ratio, RatioSide
from fabricproof.job.relations.binding import why_loose
from fabricproof.traffic import PathState

#: legs by name, each with one look at it
Looks = Mapping[str, Outcome]

#: quantity -> the column of a table that has it
_COLUMNS = {"bandwidth": "bandwidth_mb_s", "latency": "latency_us"}


class NoNumberError(Exception):
    """A relation has no number, and its verdict is another's."""

    def __init__(self, verdict: Verdict, reason: str) -> None:
        """Keep the verdict beside the reason."""
        super().__init__(reason)
        self.verdict, self.reason = verdict, reason


def require_sound(legs: Iterable[str], looks: Looks) -> None:
    """Do nothing if every leg has numbers of its own path.

    A leg that is only too slow has numbers, and so has one that nobody has a reference for.

    Raises:
        NoNumberError: one has none.
    """
    for name in legs:
        if name not in looks:
            raise NoNumberError(Verdict.MISSING, f"leg {name} was never planned")
        report = looks[name].report
        if report.verdict is Verdict.SKIPPED:
            raise NoNumberError(Verdict.SKIPPED, first_reason(report))
        if report.verdict in {Verdict.INVALID, Verdict.MISSING}:
            reason = next(e.reason for e in report.quantities if e.verdict is report.verdict)
            raise NoNumberError(report.verdict, f"leg {name} is {report.verdict}: {reason}")
        foreign = next((each.foreign for each in looks[name].attempts if each.foreign), "")
        if foreign:
            raise NoNumberError(Verdict.UNJUDGED, f"leg {name}: {foreign}")
        path = report.net_path
        if path is None or path.state in {PathState.UNKNOWN, PathState.WRONG}:
            reason = path.reason if path else "no path was shown"
            raise NoNumberError(Verdict.UNJUDGED, f"leg {name}: {reason}")


def ratio_of(ratio: Ratio, looks: Looks) -> float:
    """Return the ratio of one look at its legs, which are sound.

    Raises:
        NoNumberError: a side has no number, or the ranks did not run where they were bound.
    """
    for leg, bind in ratio.held.items():
        if reason := why_loose(looks[leg], bind):
            raise NoNumberError(Verdict.UNJUDGED, f"leg {leg}: {reason}")
    over, under = (_picked(side, looks) for side in (ratio.over, ratio.under))
    both = list(zip(over, under, strict=True))
    if not all(math.isfinite(above) and below > 0 for above, below in both):
        legs = " and ".join(dict.fromkeys((*ratio.over.legs, *ratio.under.legs)))
        sizes = [size_label(size) for size in ratio.over.sizes if size is not None]
        at = f" at {', '.join(sizes)}" if sizes else ""
        raise NoNumberError(Verdict.MISSING, f"{legs} do not all have {ratio.over.quantity}{at}")
    return ratio.scale * median(above / below for above, below in both)


def _picked(side: RatioSide, looks: Looks) -> list[float]:
    choose = max if side.pick is Pick.LARGEST else min
    found = (
        [value_at(looks[leg], side.quantity, size) for leg in side.legs] for size in side.sizes
    )
    return [math.nan if any(map(math.isnan, each)) else choose(each) for each in found]


def value_at(look: Outcome, quantity: str, size: int | None) -> float:
    """Return what a leg measured for one message size, NaN if it did not."""
    name = at_size(quantity, size)
    value = next((each.value for each in look.report.quantities if each.name == name), None)
    table = look.attempts[-1].table if look.attempts else None
    column = _COLUMNS.get(quantity, "")
    if value is None and table is not None and {"message_size", column} <= set(table.columns):
        # IMB's PingPong is judged by one of its two columns at each size, and has both.
        rows = zip(table.column("message_size"), table.column(column), strict=True)
        value = next((value for at, value in rows if at == size), None)
    return math.nan if value is None else value


def legs_in_words(ratio: Ratio, looks: Looks) -> str:
    """Return what each leg with a name measured, best first: ``near 6.3 GB/s, far 5.6 GB/s``."""
    sides = {leg: side for side in (ratio.under, ratio.over) for leg in side.legs}
    values = {}
    for leg, word in ratio.names.items():
        side = sides.get(leg, ratio.over)
        if leg in looks:
            values[word] = median(value_at(looks[leg], side.quantity, each) for each in side.sizes)
    is_time = ratio.over.quantity == "latency"
    known = {word: value for word, value in values.items() if math.isfinite(value)}
    order = sorted(known, key=lambda word: known[word], reverse=not is_time)
    return ", ".join(f"{word} {_amount(known[word], is_time=is_time)}" for word in order)


def _amount(value: float, *, is_time: bool) -> str:
    if is_time:
        return f"{value:.4g} us"
    return f"{value / 1000:.3g} GB/s" if value >= 1000 else f"{value:.4g} MB/s"
