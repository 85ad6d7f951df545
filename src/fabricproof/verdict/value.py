"""One number's verdict: possible first, then good enough; and what it is judged by.

A number that a site or a person gave is the reference, else the conservative end of the physical
ceiling.  Without either the quantity is UNJUDGED.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import TYPE_CHECKING

from fabricproof.core.errors import ConfigError
from fabricproof.core.findings import Finding
from fabricproof.core.measure import Quantity, Verdict, worst
from fabricproof.core.units import by_key, converted, counted
from fabricproof.physics import CLOCK_TOLERANCE, Ceiling, Fabric, Floor
from fabricproof.verdict.objections import Objection, apply

if TYPE_CHECKING:
    from fabricproof.physics.collective import RankLayout
    from fabricproof.traffic import PathProof

#: Allowed fraction below a bandwidth reference unless stated otherwise.  Document 002 of the
#: sources accepts its inter-switch links at 10 %; document 000's FDR run at 18 % below was a rank
#: on the wrong socket.  aws-parallelcluster and CSCS use 10 to 20 %.
DEFAULT_TOLERANCE = 0.10

#: Allowed fraction above a latency reference: scheduling noise only ever adds time.
DEFAULT_LATENCY_TOLERANCE = 0.20

#: A point inside the curve may take this fraction longer than the model says, which makes 30 %
#: less bandwidth: the model is coarse near protocol switches, and the quantities that carry the
#: verdict are its two ends.
CURVE_TOLERANCE = 3 / 7

#: A printed number has two decimals; half a last digit is not "above the ceiling".
PRINT_ROUNDING = 0.005

#: unit of a rate of errors: events per million packets
ERROR_UNIT = "ppm"


class Source(StrEnum):
    """Where a reference comes from, where anything is decided by it."""

    SITE = "site"  # its own number, in references.toml
    PAIR = "pair"  # the model of a collective, from the pair's leg of the same job
    BASELINE = "baseline"
    BASELINE_AND_PAIR = "baseline and pair"  # a baseline that is stricter than PAIR
    BASELINE_AND_OTHER = "baseline and other"
    OTHER = "other"

    @property
    def rests_on_pair(self) -> bool:
        """Whether the pair's leg of the same job has a part in it."""
        return self in {Source.PAIR, Source.BASELINE_AND_PAIR}

    def and_baseline(self) -> Source:
        """Return the source of a reference that a stricter baseline tightens."""
        return Source.BASELINE_AND_PAIR if self.rests_on_pair else Source.BASELINE_AND_OTHER


@dataclass(frozen=True, kw_only=True)
class Reference:
    """What one quantity is judged by.

    Attributes:
        value: the expected value, in ``unit`` (``MB/s``, ``us``, ``x`` ...).
        lower, upper: smallest and largest acceptable value, None if there is no such bound.
        tolerance: the fraction that made the bounds.
        origin: where the value comes from, in words; ``source`` for a program.
    """

    value: float
    lower: float | None
    upper: float | None
    unit: str
    tolerance: float
    origin: str
    source: Source = Source.OTHER

    def in_unit(self, unit: str) -> Reference:
        """Return it in another unit; itself if one is unknown or they measure unlike things."""
        factor = converted(1.0, self.unit, unit)
        if factor is None:
            return self
        lower, upper = (None if x is None else x * factor for x in (self.lower, self.upper))
        return replace(self, value=self.value * factor, lower=lower, upper=upper, unit=unit)


def _reference(
    value: float, unit: str, tolerance: float, origin: str, *, lower: bool, upper: bool
) -> Reference:
    # A bound of NaN is crossed by nothing, and 0 divides: either would be green for anything.
    if not (math.isfinite(value) and value > 0):
        raise ConfigError("impossible reference", expected="a positive number", got=repr(value))
    if not math.isfinite(tolerance) or tolerance < 0 or (lower and tolerance >= 1):
        raise ConfigError(
            "impossible tolerance",
            expected="0 or more and below 1" if lower else "0 or more",
            got=repr(tolerance),
            next_step="it is a fraction: 10 % is 0.1",
        )
    return Reference(
        value=value,
        lower=value * (1 - tolerance) if lower else None,
        upper=value * (1 + tolerance) if upper else None,
        unit=unit,
        tolerance=tolerance,
        origin=origin,
    )


def at_least(
    value: float, *, unit: str = "MB/s", tolerance: float = DEFAULT_TOLERANCE, origin: str
) -> Reference:
    """Return a reference that a value passes by being ``value`` less ``tolerance`` or more.

    Raises:
        ConfigError: the value is not positive and finite, or the tolerance is not in [0, 1).
    """
    return _reference(value, unit, tolerance, origin, lower=True, upper=False)


def at_most(
    value: float, *, unit: str = "us", tolerance: float = DEFAULT_LATENCY_TOLERANCE, origin: str
) -> Reference:
    """Return a reference that a value passes by being ``value`` plus ``tolerance`` or less.

    Raises:
        ConfigError: as of :func:`at_least`; any tolerance of 0 or more will do.
    """
    return _reference(value, unit, tolerance, origin, lower=False, upper=True)


def around(value: float, *, unit: str, tolerance: float, origin: str) -> Reference:
    """Return a reference that a value passes by lying within ``tolerance`` on either side.

    Raises:
        ConfigError: as of :func:`at_least`.
    """
    return _reference(value, unit, tolerance, origin, lower=True, upper=True)


def from_ceiling(ceiling: Ceiling, *, tolerance: float = DEFAULT_TOLERANCE) -> Reference:
    """Return the reference that physics alone gives: the ceiling's conservative end."""
    origin = "declared" if ceiling.name in {"capability", "flow"} else "physics"
    return at_least(
        ceiling.low_mb_s, tolerance=tolerance, origin=f"{origin}: the {ceiling.resource} binds"
    )


@dataclass(frozen=True, kw_only=True)
class Judgement(Quantity):
    """A quantity as the judge has it.

    Attributes:
        source: where the reference comes from, for a program.
        attempt: number of the attempt at its leg that it is of, from 1; 0 if of none.
    """

    source: Source | None = None
    attempt: int = 0


def is_of_errors(judgement: Quantity) -> bool:
    """Tell whether it judges what was lost or damaged on the way, not how fast the rest was."""
    return judgement.unit == ERROR_UNIT


def shown(judgements: Iterable[Quantity]) -> list[Quantity]:
    """Return the judgements that a person should read one by one, in their order.

    Those a summary names, and of the other points of the curve the worst INVALID and the worst
    FAIL of each unit; :func:`curve_summary` counts the rest.
    """
    judgements = list(judgements)
    bad = by_key(
        ((each.verdict, each.unit), each)
        for each in judgements
        if not each.named and each.verdict in {Verdict.INVALID, Verdict.FAIL}
    )
    chosen = {max(group, key=_misses_by) for group in bad.values()}
    return [each for each in judgements if each.named or each in chosen]


def _misses_by(judgement: Quantity) -> float:
    """Return how far off a number is, as the larger of value over limit and limit over value."""
    value, is_invalid = judgement.value, judgement.verdict is Verdict.INVALID
    limit = judgement.ceiling if is_invalid else judgement.reference
    return max(value / limit, limit / value) if limit and value and value > 0 else math.inf


def curve_summary(judgements: Iterable[Quantity]) -> list[str]:
    """Return one line per verdict and quantity for the points that :func:`shown` leaves out."""
    judgements = list(judgements)
    seen = set(shown(judgements))
    rest = by_key(((each.verdict, each.unit), each.name) for each in judgements if each not in seen)
    return [
        f"{verdict:<9}{counted(len(names), 'more point')} of the curve, {names[0]}"
        + (f" to {names[-1]}" if len(names) > 1 else "")
        for (verdict, _), names in rest.items()
    ]


def format_value(value: float | None, unit: str) -> str:
    """Return a number with its unit for a person; a dash if there is none."""
    if value is None:
        return "-"
    digits = f"{value:.2f}" if abs(value) < 1000 else f"{value:.0f}"
    return f"{digits} {unit}".strip() if unit != "1" else f"{value:.3f}"


def lines_of(judgements: Iterable[Quantity], notes: Iterable[object]) -> list[str]:
    """Return a line for each judgement that is shown, for the rest of the curve, for each note."""
    judgements = list(judgements)
    named = [
        f"{each.verdict:<9}{each.name:<18}{format_value(each.value, each.unit):>14}  {each.reason}"
        for each in shown(judgements)
    ]
    return [*named, *curve_summary(judgements), *(f"note     {each}" for each in notes)]


@dataclass(frozen=True, kw_only=True, repr=False)
class Report:
    """The verdict on one table: the worst of its quantities, with findings beside it.

    Attributes:
        findings: facts worth reading that are no verdict.  A program heeds their kind alone.
        judged: the quantities before any objection; None if there was none.
        objections: all that was raised, in no order.
    """

    verdict: Verdict
    quantities: tuple[Judgement, ...]
    findings: tuple[Finding, ...] = ()
    net_path: PathProof | None = None
    judged: tuple[Judgement, ...] | None = None
    objections: tuple[Objection, ...] = ()

    def __str__(self) -> str:
        """Return the verdict, and a line for each quantity that a person should read."""
        lines = lines_of(self.quantities, self.findings)
        return "\n".join((self.verdict.value, *(f"  {each}" for each in lines)))

    __repr__ = __str__  # what a notebook shows

    def with_quantities(self, quantities: Iterable[Judgement], *more: Finding) -> Report:
        """Return the report on these quantities, the worst of them its verdict, and ``more``."""
        now = tuple(quantities)
        return Report(
            verdict=worst([each.verdict for each in now]),
            quantities=now,
            findings=(*self.findings, *more),
            net_path=self.net_path,
        )

    def objected(self, objections: Iterable[Objection], *more: Finding) -> Report:
        """Return the report after these objections and those before, and ``more`` findings."""
        judged = self.quantities if self.judged is None else self.judged
        raised = (*self.objections, *objections)
        after = self.with_quantities(apply(judged, raised), *more)
        verdict = after.verdict if judged else self.verdict
        return replace(after, verdict=verdict, judged=judged, objections=raised)


@dataclass(frozen=True, kw_only=True)
class Rules:
    """What a table is judged by.

    Attributes:
        fabric: the path as the site declares it, None if unknown.
        references: site references by quantity: ``bandwidth``, ``latency``, ``device_busbw``, or
            one size of it, ``bandwidth_4MiB``, ``latency_8B``.
        tolerance: allowed fraction below the reference that physics gives.
        tolerance_asked: True if a person asked for just this, so that no program widens it.
        path_required: True for our own runs: without proof of the path nothing is green.
        curve_tolerance: how much longer than the model a point inside the curve may take.
        layout: where the ranks lay, for collectives; None if unknown.
        devices: of the rails, as programs of verbs name them; empty if unknown.
    """

    fabric: Fabric | None
    references: Mapping[str, Reference] = field(default_factory=dict)
    tolerance: float = DEFAULT_TOLERANCE
    tolerance_asked: bool = False
    path_required: bool = False
    curve_tolerance: float = CURVE_TOLERANCE
    layout: RankLayout | None = None
    devices: frozenset[str] = frozenset()


def possible_up_to(ceiling_mb_s: float) -> float:
    """Return the largest bandwidth that a ceiling admits, in MB/s: a clock may be a little fast."""
    return ceiling_mb_s * (1 + CLOCK_TOLERANCE) + PRINT_ROUNDING


def judge_value(
    *,
    name: str,
    value: float,
    unit: str,
    message_size: int | None = None,
    reference: Reference | None = None,
    ceiling: Ceiling | None = None,
    floor: Floor | None = None,
    fault: str | None = None,
    silence: str | None = None,
    named: bool = True,
) -> Judgement:
    """Judge one number: possible first, then sound, then good enough.

    ``ceiling`` is of a bandwidth in MB/s, ``floor`` of a latency in us.  ``fault`` says why the row
    proves nothing, None if it is sound; ``silence`` why there is no reference, if the usual reason
    is not it.  In another unit than that of its reference a number is UNJUDGED, never converted.
    """
    limit = ceiling.high_mb_s if ceiling else floor.us if floor else math.inf
    most = possible_up_to(limit) if ceiling else math.inf
    reason = impossible(value, ceiling, floor)
    if reason is not None:
        verdict, reference = Verdict.INVALID, None
    elif fault is not None:
        verdict, reason = Verdict.INVALID, fault
    elif reference is None:
        verdict, reason = Verdict.UNJUDGED, silence or "no reference says what it should be"
    elif reference.unit != unit:
        verdict, reason = Verdict.UNJUDGED, f"reference in {reference.unit}, value in {unit}"
    else:
        verdict, reason = _against(value, reference)
    upper = min(reference.upper or math.inf, most) if reference else math.inf
    return Judgement(
        name=name,
        value=value,
        unit=unit,
        message_size=message_size,
        verdict=verdict,
        reason=reason,
        ceiling=limit if math.isfinite(limit) else None,  # a shaper lets short messages pass
        ceiling_name=ceiling.name if ceiling else "latency floor" if floor else None,
        reference=reference.value if reference else None,
        lower=reference.lower if reference else None,
        upper=upper if math.isfinite(upper) else None,
        origin=reference.origin if reference else None,
        source=reference.source if reference else None,
        named=named,
    )


def impossible(value: float, ceiling: Ceiling | None, floor: Floor | None) -> str | None:
    """Return why a bandwidth above its ceiling or a time below its floor is none; None if it is."""
    if not math.isfinite(value) or value <= 0:
        return f"{value:g} is not a measurement"
    if ceiling is not None and ceiling.excludes(value - PRINT_ROUNDING):
        return (
            f"{value:g} MB/s is {value / ceiling.high_mb_s:.1%} of the ceiling "
            f"{ceiling.high_mb_s:.0f} MB/s ({ceiling.name}, the most generous reading of "
            f"{ceiling.formula} = {ceiling.nominal_mb_s:.0f}): the declared fabric is wrong or "
            "part of the traffic took another path"
        )
    if floor is not None and value < floor.us - PRINT_ROUNDING:
        return (
            f"{value:g} us is below the floor {floor.us:.3g} us ({floor.formula}): the message "
            "did not cross this fabric; shared memory of one node is the usual cause"
        )
    return None


def _plain(number: float) -> str:
    return f"{number:.5g}" if abs(number) < 1e5 else f"{number:.0f}"


def _against(value: float, reference: Reference) -> tuple[Verdict, str]:
    unit = "" if reference.unit == "1" else f" {reference.unit}"
    text = f"{value / reference.value:.1%} of {_plain(reference.value)}{unit} ({reference.origin})"
    if reference.lower is not None and value < reference.lower:
        return Verdict.FAIL, f"{text}, below the lower bound {_plain(reference.lower)}"
    if reference.upper is not None and value > reference.upper:
        return Verdict.FAIL, f"{text}, above the upper bound {_plain(reference.upper)}"
    return Verdict.PASS, text


def no_number(name: str, verdict: Verdict, reason: str, unit: str = "") -> Judgement:
    """Return the judgement of what has no number."""
    return Judgement(
        name=name, value=None, unit=unit, message_size=None, verdict=verdict, reason=reason
    )


def missing(names: Sequence[str], reason: str, *, verdict: Verdict = Verdict.MISSING) -> Report:
    """Return the report of quantities that were due and not measured, all MISSING or SKIPPED."""
    judgements = tuple(no_number(name, verdict, reason) for name in names)
    return Report(verdict=verdict, quantities=judgements)
