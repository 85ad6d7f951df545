"""The judge: records in, verdicts out; pure, so that a verdict can be repeated from its records.

A quantity passes only by being possible (within its physical ceiling or above its latency floor),
good enough (within the bounds of its reference), arithmetically sound (the columns of its row
agree) and measured on the right road.  Everything else has a name of its own.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from fabricproof.curve import (
    CURVE_TOLERANCE,
    describe_shape,
    row_limit_us,
    smallest_message_us,
)
from fabricproof.fabric import Ceiling, Fabric, Floor, bound, latency_floor_us
from fabricproof.measure import Table, Verdict, worst
from fabricproof.reference import Reference, at_least, from_ceiling
from fabricproof.road import RoadProof, RoadState
from fabricproof.semantics import Kind, Meaning, meaning
from fabricproof.soundness import row_fault
from fabricproof.suspects import suspects
from fabricproof.units import size_label
from fabricproof.verdict import Judgement, Report, Rules, judge_value

#: Messages up to this size may print as 0.00 MB/s on a slow network (4 B in a millisecond).
SMALLEST_PRINTED_BYTES = 16


def judge_table(table: Table, rules: Rules, road: RoadProof | None = None) -> Report:
    """Judge one parsed table.

    Args:
        table: as a parser returned it.
        rules: what to judge by.
        road: the proof of the road; None where no counters were read.
    """
    reading = meaning(table.suite, table.program)
    fabric = _fabric_for(table, reading, rules.fabric)
    limits = _Limits.of(fabric, rules)
    judgements = _bandwidths(table, reading, limits, rules) or _times(table, limits, rules)
    side, findings = _side_latency(table, reading, limits, rules)
    judgements = [*side, *judgements]
    judgements = [_with_soundness(table, reading, judgement) for judgement in judgements]
    judgements = [_with_road(judgement, road, rules) for judgement in judgements]
    findings += list(describe_shape(table))
    findings += list(road.findings) if road else []
    if road is None and not rules.road_required:
        findings.append("road not shown: no counters were read around this run")
    return Report(
        verdict=worst([judgement.verdict for judgement in judgements]),
        quantities=tuple(judgements),
        findings=tuple(findings),
        road=road,
    )


@dataclass(frozen=True, kw_only=True)
class _Limits:
    """The physical limits that apply to one table."""

    fabric: Fabric | None
    ceiling: Ceiling | None
    reference: Reference | None

    @classmethod
    def of(cls, fabric: Fabric | None, rules: Rules) -> _Limits:
        given = rules.references.get("bandwidth")
        if fabric is None:
            return cls(fabric=None, ceiling=None, reference=given)
        ceiling = bound(fabric)
        reference = given or from_ceiling(ceiling, tolerance=rules.tolerance)
        return cls(fabric=fabric, ceiling=ceiling, reference=reference)

    def floor(self, message_size: int) -> Floor | None:
        if self.fabric is None:
            return None
        return latency_floor_us(self.fabric, message_size)


def _fabric_for(table: Table, reading: Meaning, fabric: Fabric | None) -> Fabric | None:
    """Return the fabric as this program loads it: its directions and its number of flows."""
    if fabric is None:
        return None
    flows = max(
        fabric.num_flows,
        *(int(table.attributes.get(name, 1)) for name in ("num_pairs", "streams")),
    )
    return replace(fabric, bidirectional=reading.bidirectional, num_flows=flows)


def _bandwidths(table: Table, reading: Meaning, limits: _Limits, rules: Rules) -> list[Judgement]:
    if reading.kind is not Kind.BANDWIDTH or "bandwidth_mb_s" not in table.columns:
        return []
    values = table.column("bandwidth_mb_s")
    smallest_us = smallest_message_us(table)
    last = len(values) - 1
    return [
        _bandwidth(size, value, limits, rules, named=index == last, smallest_us=smallest_us)
        for index, (size, value) in enumerate(zip(_sizes(table), values, strict=True))
        if index == last or not _lost_in_rounding(size, value)
    ]


def _lost_in_rounding(size: int | None, value: float) -> bool:
    """Tell whether a small message's bandwidth is 0.00 only because two decimals are printed."""
    return value == 0 and size is not None and size <= SMALLEST_PRINTED_BYTES


def _sizes(table: Table) -> tuple[int | None, ...]:
    if "message_size" in table.columns:
        return tuple(int(size) for size in table.column("message_size"))
    return (None,) * len(table.rows)


def _label(quantity: str, size: int | None) -> str:
    return quantity if size is None else f"{quantity}_{size_label(size)}"


def _bandwidth(
    size: int | None,
    value: float,
    limits: _Limits,
    rules: Rules,
    *,
    named: bool,
    smallest_us: float | None,
) -> Judgement:
    name = _label("bandwidth", size)
    given = rules.references.get(name)
    reference = given or (
        limits.reference if named else _curve_reference(size, smallest_us, limits)
    )
    judgement = judge_value(
        name=name,
        value=value,
        unit="MB/s",
        message_size=size,
        reference=reference,
        ceiling=limits.ceiling,
        named=named or given is not None,
    )
    if judgement.verdict is Verdict.FAIL and named and limits.fabric is not None:
        hints = suspects(value, limits.fabric)
        return replace(judgement, reason="; ".join([judgement.reason, *hints]))
    return judgement


def _curve_reference(
    size: int | None, smallest_us: float | None, limits: _Limits
) -> Reference | None:
    """Return what a point inside the bandwidth curve is judged by: see :mod:`fabricproof.curve`."""
    if limits.reference is None or size is None or smallest_us is None:
        return None
    limit_us = row_limit_us(size, smallest_us, limits.reference.value)
    return at_least(max(size, 1) / limit_us, tolerance=CURVE_TOLERANCE, origin="curve law")


def _times(table: Table, limits: _Limits, rules: Rules) -> list[Judgement]:
    column = _time_column(table)
    if column is None:
        return [_nothing_to_judge(table)]
    sizes, values = _sizes(table), table.column(column)
    first = (sizes[0], values[0])
    is_path = meaning(table.suite, table.program).kind is Kind.LATENCY
    return [
        _latency(size, value, limits, rules, named=index == 0, first=first, is_path=is_path)
        for index, (size, value) in enumerate(zip(sizes, values, strict=True))
    ]


def _time_column(table: Table) -> str | None:
    for name in ("latency_us", "latency_avg_us", "latency_max_us", "overall_us"):
        if name in table.columns:
            return name
    return None


def _nothing_to_judge(table: Table) -> Judgement:
    return Judgement(
        name=table.program,
        value=None,
        unit="",
        message_size=None,
        verdict=Verdict.UNJUDGED,
        reason="the table has no column this judge can judge",
    )


def _latency(
    size: int | None,
    value: float,
    limits: _Limits,
    rules: Rules,
    *,
    named: bool,
    first: tuple[int | None, float],
    is_path: bool,
) -> Judgement:
    name = _label("latency", size)
    given = rules.references.get(name) or (rules.references.get("latency") if named else None)
    reference = given
    if reference is None and not named and is_path:
        reference = _latency_curve_reference(size, first, limits)
    floor = limits.floor(size or 0) if size is not None else None
    return judge_value(
        name=name,
        value=value,
        unit="us",
        message_size=size,
        reference=reference,
        floor=floor,
        named=named or given is not None,
    )


def _latency_curve_reference(
    size: int | None, first: tuple[int | None, float], limits: _Limits
) -> Reference | None:
    if limits.reference is None or size is None:
        return None
    limit_us = row_limit_us(size, first[1], limits.reference.value)
    return Reference(
        value=limit_us,
        lower=None,
        upper=limit_us * (1 + CURVE_TOLERANCE),
        unit="us",
        tolerance=CURVE_TOLERANCE,
        origin="curve law",
    )


def _side_latency(
    table: Table, reading: Meaning, limits: _Limits, rules: Rules
) -> tuple[list[Judgement], list[str]]:
    """Judge the small-message time that a bandwidth table prints beside its bandwidths.

    It counts where somebody said what it should be, or where it is impossible; otherwise it is
    named as not judged, since the table was run for its bandwidth.
    """
    column = _time_column(table)
    if reading.kind is not Kind.BANDWIDTH or column is None or reading.pairs_share_rails:
        return [], []
    if "bandwidth_mb_s" not in table.columns:
        return [], []
    size, value = _sizes(table)[0], table.column(column)[0]
    judged = _latency(size, value, limits, rules, named=True, first=(size, value), is_path=True)
    if judged.verdict is Verdict.UNJUDGED:
        return [], [f"{judged.name} = {value:g} us not judged: no reference says what it should be"]
    return [judged], []


def _with_soundness(table: Table, reading: Meaning, judgement: Judgement) -> Judgement:
    fault = row_fault(table, reading, judgement.message_size)
    if fault is None or judgement.verdict is Verdict.INVALID:
        return judgement
    return replace(judgement, verdict=Verdict.INVALID, reason=fault)


def _with_road(judgement: Judgement, road: RoadProof | None, rules: Rules) -> Judgement:
    """Return the judgement after the road had its say: a wrong road spoils every number."""
    if road is not None and road.state is RoadState.WRONG:
        return replace(judgement, verdict=Verdict.INVALID, reason=road.reason)
    if judgement.verdict is not Verdict.PASS:
        return judgement
    if road is None and rules.road_required:
        reason = "the road is not shown: no counters were read around this run"
        return replace(judgement, verdict=Verdict.UNJUDGED, reason=reason)
    if road is not None and road.state is RoadState.UNKNOWN:
        return replace(judgement, verdict=Verdict.UNJUDGED, reason=road.reason)
    if road is not None and road.state is RoadState.DISTURBED:
        reason = f"fast, but errors rose while it ran: {road.reason}"
        return replace(judgement, verdict=Verdict.FAIL, reason=reason)
    return judgement
