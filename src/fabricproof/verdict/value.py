"""One number's verdict: possible first, then good enough; and the records that carry it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from fabricproof.core.measure import Finding, Verdict
from fabricproof.physics import Ceiling, Fabric, Floor
from fabricproof.physics.collective import Layout
from fabricproof.traffic import RoadProof
from fabricproof.verdict.reference import CURVE_TOLERANCE, DEFAULT_TOLERANCE, Reference, Source

#: A printed number has two decimals; half a last digit is not "above the ceiling".
PRINT_ROUNDING = 0.005


#: unit of a rate of errors: events per million packets
ERROR_UNIT = "ppm"


@dataclass(frozen=True, kw_only=True)
class Judgement:
    """The verdict on one quantity, with everything it rests on.

    Attributes:
        name: the quantity, ``bandwidth_4MiB`` or ``latency_8B``.
        value: the measured value in ``unit``; None when it is MISSING.
        unit: ``MB/s`` or ``us``; :data:`ERROR_UNIT` of errors.
        message_size: in bytes, None for quantities without one.
        verdict: the verdict.
        reason: why, in one sentence.
        ceiling: the hard physical limit in ``unit`` (a ceiling for bandwidth, a floor for
            latency), None where none is known.
        ceiling_name: which limit binds.
        reference: the value it was judged by, None where there is none.
        lower: smallest accepted value.
        upper: largest accepted value.
        origin: where the reference comes from, in words.
        source: the same for a program.
        named: whether it is one of the quantities a summary names, or a point of the curve.
        disturbance: where others explain why it is out of bounds, the kind of it
            (:class:`fabricproof.traffic.disturbance.DisturbanceKind`); None elsewhere.
        attempt: number of the attempt at its leg that it is of, from 1; 0 where there is none.
        is_open: its rounds were too few, or left open on which side of its bound it lies.
    """

    name: str
    value: float | None
    unit: str
    message_size: int | None
    verdict: Verdict
    reason: str
    ceiling: float | None = None
    ceiling_name: str | None = None
    reference: float | None = None
    lower: float | None = None
    upper: float | None = None
    origin: str | None = None
    source: Source | None = None
    named: bool = True
    disturbance: str | None = None
    attempt: int = 0
    is_open: bool = False


def is_of_errors(judgement: Judgement) -> bool:
    """Tell whether it judges what was lost or damaged on the way, not how fast the rest was."""
    return judgement.unit == ERROR_UNIT


@dataclass(frozen=True, kw_only=True)
class Report:
    """The verdict on one table: the worst of its quantities, with findings beside it.

    ``findings`` are facts worth reading that are no verdict: dips, steps, drops, what was not
    judged because nobody said by what.  What is decided by one is its kind, never its words.
    """

    verdict: Verdict
    quantities: tuple[Judgement, ...]
    findings: tuple[Finding, ...] = ()
    road: RoadProof | None = None


@dataclass(frozen=True, kw_only=True)
class Rules:
    """What a table is judged by.

    Attributes:
        fabric: the road as the site declares it, None where nothing is declared.
        references: site references by quantity: ``bandwidth``, ``latency``, or one size of it,
            ``bandwidth_4MiB``, ``latency_8B``.
        tolerance: allowed fraction below the reference that physics gives.
        road_required: True for our own runs: without proof of the road nothing is green.
        curve_tolerance: how much longer than the model a point inside the curve may take.
        layout: where the ranks lay, for collectives; None where nobody said.
    """

    fabric: Fabric | None
    references: Mapping[str, Reference] = field(default_factory=dict)
    tolerance: float = DEFAULT_TOLERANCE
    road_required: bool = False
    curve_tolerance: float = CURVE_TOLERANCE
    layout: Layout | None = None


def judge_value(
    *,
    name: str,
    value: float,
    unit: str,
    message_size: int | None,
    reference: Reference | None,
    ceiling: Ceiling | None = None,
    floor: Floor | None = None,
    named: bool = True,
) -> Judgement:
    """Judge one number: possible first, then good enough.

    Args:
        name: the quantity.
        value: the number in ``unit``.
        unit: unit of ``value``; must be the reference's (UNJUDGED otherwise, never a guess).
        message_size: in bytes, or None.
        reference: what it is judged by, None where nobody says.
        ceiling: hard upper limit in MB/s for a bandwidth.
        floor: hard lower limit in us for a latency.
        named: whether a summary names it.
    """
    limit = ceiling.high_mb_s if ceiling else floor.us if floor else None
    if limit is not None and not math.isfinite(limit):
        limit = None  # behind a shaper the shortest messages have no ceiling
    blank = Judgement(
        name=name,
        value=value,
        unit=unit,
        message_size=message_size,
        verdict=Verdict.UNJUDGED,
        reason="no reference says what it should be",
        ceiling=limit,
        ceiling_name=ceiling.name if ceiling else "latency floor" if floor else None,
        named=named,
    )
    impossible = _impossible(value, ceiling, floor)
    if impossible is not None:
        return replace(blank, verdict=Verdict.INVALID, reason=impossible)
    if reference is None:
        return blank
    full = replace(
        blank,
        reference=reference.value,
        lower=reference.lower,
        upper=_tightest(reference.upper, limit if ceiling else None),
        origin=reference.origin,
        source=reference.source,
    )
    if reference.unit != unit:
        reason = f"reference in {reference.unit}, value in {unit}"
        return replace(full, verdict=Verdict.UNJUDGED, reason=reason)
    return _against(full, value, reference)


def _impossible(value: float, ceiling: Ceiling | None, floor: Floor | None) -> str | None:
    if not math.isfinite(value) or value <= 0:
        return f"{value:g} is not a measurement"
    if ceiling is not None and ceiling.excludes(value - PRINT_ROUNDING):
        return (
            f"{value:g} MB/s is {value / ceiling.high_mb_s:.1%} of the ceiling "
            f"{ceiling.high_mb_s:.0f} MB/s ({ceiling.name}, the most generous reading of "
            f"{ceiling.formula} = {ceiling.nominal_mb_s:.0f}): the declared fabric is wrong or "
            "part of the traffic took another road"
        )
    if floor is not None and value < floor.us - PRINT_ROUNDING:
        return (
            f"{value:g} us is below the floor {floor.us:.3g} us ({floor.formula}): the message "
            "did not cross this fabric; shared memory of one node is the usual cause"
        )
    return None


def _tightest(first: float | None, second: float | None) -> float | None:
    bounds = [bound_ for bound_ in (first, second) if bound_ is not None]
    return min(bounds) if bounds else None


def _against(judgement: Judgement, value: float, reference: Reference) -> Judgement:
    share = value / reference.value
    unit = "" if reference.unit == "1" else f" {reference.unit}"
    text = f"{share:.1%} of {reference.value:.5g}{unit} ({reference.origin})"
    if reference.lower is not None and value < reference.lower:
        reason = f"{text}, below the lower bound {reference.lower:.5g}"
        return replace(judgement, verdict=Verdict.FAIL, reason=reason)
    if reference.upper is not None and value > reference.upper:
        reason = f"{text}, above the upper bound {reference.upper:.5g}"
        return replace(judgement, verdict=Verdict.FAIL, reason=reason)
    return replace(judgement, verdict=Verdict.PASS, reason=text)


def missing(names: Sequence[str], reason: str) -> Report:
    """Return the report of quantities that were due and not measured, all MISSING."""
    judgements = tuple(
        Judgement(
            name=name,
            value=None,
            unit="",
            message_size=None,
            verdict=Verdict.MISSING,
            reason=reason,
        )
        for name in names
    )
    return Report(verdict=Verdict.MISSING, quantities=judgements)
