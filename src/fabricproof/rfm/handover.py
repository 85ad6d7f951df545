"""Hand the judge's quantities to ReFrame, and prove afterwards that it saw them all.

ReFrame would pass a variable whose function raised, that has no reference, or that is infinite.
It gets values and bounds that are decided already.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence

from fabricproof.core.measure import Verdict
from fabricproof.job.leg import Leg
from fabricproof.job.outcome import Outcome
from fabricproof.verdict.value import Judgement, is_of_errors, possible_up_to


def quantity_key(leg: Leg, judgement: Judgement) -> str:
    """Return the name of a quantity in ReFrame's perflog: path, then quantity, without colons."""
    return f"{leg.name}.{judgement.name}".replace(":", "_")


def handed_over(outcomes: Iterable[Outcome]) -> Iterator[tuple[Leg, Judgement]]:
    """Yield every quantity that ReFrame is told: all but what was skipped with a reason."""
    for outcome in outcomes:
        for judgement in outcome.report.quantities:
            if judgement.verdict is not Verdict.SKIPPED:
                yield outcome.leg, judgement


def bounds(judgement: Judgement) -> tuple[object, ...]:
    """Return ReFrame's ``(value, lower fraction, upper fraction, unit)``.

    One without a reference can only fail.
    """
    if judgement.reference is None:
        return (judgement.value or 0.0, 0.0, 0.0, judgement.unit)
    if is_of_errors(judgement):
        # The limit itself may be 0, of which no fraction is a bound.
        return (judgement.upper or 0.0, None, 0.0, judgement.unit)
    # Of a time the hard limit is a floor.
    ceiling = None if judgement.unit == "us" else judgement.ceiling
    if ceiling is not None and judgement.unit == "MB/s":
        ceiling = possible_up_to(ceiling)
    uppers = [bound for bound in (judgement.upper, ceiling) if bound is not None]
    value, lower = judgement.reference, judgement.lower
    upper = min(uppers) / value - 1 if uppers else None
    return (value, lower / value - 1 if lower is not None else None, upper, judgement.unit)


def complaints(
    outcomes: Iterable[Outcome], declared: Iterable[str], measured: Mapping[str, object]
) -> Sequence[str]:
    """Return what is not green: declared and without a value, not finite, or no PASS."""
    bad = [
        f"MISSING {name}: its performance function gave no value"
        for name in declared
        if name not in measured
    ]
    for leg, judgement in handed_over(outcomes):
        value = measured.get(quantity_key(leg, judgement))
        finite = isinstance(value, (int, float)) and math.isfinite(value)
        if judgement.verdict is not Verdict.PASS or not finite:
            bad.append(f"{judgement.verdict} {leg.name} {judgement.name}: {judgement.reason}")
    return bad
