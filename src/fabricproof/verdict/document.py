"""Judge numbers that only a document states: means, extremes, ratios, points of a figure.

The file is TOML.  ``[fabric]`` takes the options of ``fabricproof ceiling``; ``[[quantities]]``,
``[[ratios]]`` and ``[[curves]]`` hold the numbers with their units, as the document prints them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from fabricproof.core.errors import ConfigError, FabricproofError
from fabricproof.core.measure import Table, Verdict, as_notes, worst
from fabricproof.core.units import convert, dimension, parse_quantity, split_quantity
from fabricproof.physics import Fabric, bound, expected_rail_gain, latency_floor_us
from fabricproof.verdict.curve import describe_shape
from fabricproof.verdict.suspects import explained
from fabricproof.verdict.table import judge_table
from fabricproof.verdict.value import (
    Judgement,
    Reference,
    Report,
    Rules,
    around,
    from_ceiling,
    from_text,
    judge_value,
)

#: A minimum or maximum this many standard deviations from the mean is an outlier: with 1024
#: normal samples one at 5 sigma comes once in 3000 populations (two-sided tail 5.7e-7).
OUTLIER_SIGMAS = 5.0


class _Model(BaseModel):
    # Strict: `expected = true` is no 1, and 2 rails are not "2".
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class PublishedFabric(_Model):
    """What the document says of the fabric, in the words of ``fabricproof ceiling``."""

    link: str
    pcie: str | None = None
    mps: int | None = None
    mtu: int | None = None
    rails: int = 1
    share_slot: bool = False
    protocol: str | None = None
    flow_limit: str | None = None
    flows: int = 1
    capability: str | None = None


class Stated(_Model):
    """One printed number, with its spread where the document gives one."""

    name: str
    value: str
    message_size: int | None = Field(default=None, ge=0)
    bidirectional: bool = False
    flows: int | None = None
    rails: int | None = None
    reference: str | None = None
    tolerance: float | None = None
    minimum: str | None = None
    maximum: str | None = None
    standard_deviation: str | None = None
    pooled_over: str | None = None


class Ratio(_Model):
    """One number divided by another, and what the quotient should be (``rails``: from physics).

    It passes within ``tolerance`` on either side: more than twice the bandwidth from two rails
    says that one of the two numbers is not what it claims.
    """

    name: str
    numerator: str
    denominator: str
    expected: float | str
    tolerance: float = 0.10


class Curve(_Model):
    """Bandwidth over message size, read off a document's figure or table."""

    program: str
    suite: str = "osu"
    message_sizes: list[Annotated[int, Field(ge=0)]] = Field(min_length=1)
    bandwidths: list[Annotated[float, Field(allow_inf_nan=False)]] = Field(min_length=1)
    unit: str


class PublishedFile(_Model):
    """A file of published numbers."""

    document: str
    statement: str = ""
    fabric: PublishedFabric | None = None
    quantities: list[Stated] = Field(default_factory=list)
    ratios: list[Ratio] = Field(default_factory=list)
    curves: list[Curve] = Field(default_factory=list)


def judge_published(published: PublishedFile, fabric: Fabric | None, rules: Rules) -> Report:
    """Judge every number of a published file; the verdict is the worst of them.

    Args:
        published: the numbers.
        fabric: the fabric that ``verdict.document.fabric`` states, or the caller's own.
        rules: tolerance and references given beside the file.
    """
    judgements: list[Judgement] = []
    findings: list[str] = []
    for quantity in published.quantities:
        stated = _quantity(quantity, fabric, rules)
        extremes = list(_extremes(quantity, fabric, rules))
        judgements += [stated, *(each for each in extremes if each.verdict is Verdict.INVALID)]
        if stated.verdict is Verdict.PASS:
            findings += [_by_itself(each) for each in extremes if each.verdict is Verdict.FAIL]
        findings += _spread(quantity)
    judgements += [_ratio(ratio, fabric) for ratio in published.ratios]
    for curve in published.curves:
        table = _as_table(curve, published.document)
        judgements += judge_table(table, replace(rules, fabric=fabric)).quantities
        findings += describe_shape(table)
    findings.append("path not shown: a document holds no counters")
    if not judgements:
        findings.append("the file states no number")
    return Report(
        verdict=worst([judgement.verdict for judgement in judgements]),
        quantities=tuple(judgements),
        findings=as_notes(findings),
    )


def _loaded(quantity: Stated, fabric: Fabric | None) -> Fabric | None:
    if fabric is None:
        return None
    return replace(
        fabric,
        bidirectional=quantity.bidirectional,
        num_flows=quantity.flows or fabric.num_flows,
        num_rails=quantity.rails or fabric.num_rails,
    )


def _quantity(quantity: Stated, fabric: Fabric | None, rules: Rules) -> Judgement:
    number, unit = split_quantity(quantity.value)
    loaded = _loaded(quantity, fabric)
    if dimension(unit) == "time":
        judgement = _time(quantity, convert(number, unit, "us"), loaded, rules)
    else:
        judgement = _bandwidth(quantity, convert(number, unit, "MB/s"), loaded, rules)
    if quantity.pooled_over is None or judgement.verdict is Verdict.INVALID:
        return judgement
    pool = quantity.pooled_over
    reason = f"pooled over {pool}: to be judged per {pool.removesuffix('s')}, not in one pot"
    return replace(judgement, verdict=Verdict.UNJUDGED, reason=reason)


def _given(quantity: Stated, rules: Rules, kind: str) -> Reference | None:
    if quantity.reference is not None:
        text = quantity.reference
        return from_text(text, tolerance=quantity.tolerance, origin="stated beside the number")[1]
    return rules.references.get(quantity.name, rules.references.get(kind))


def _bandwidth(quantity: Stated, value: float, fabric: Fabric | None, rules: Rules) -> Judgement:
    ceiling = bound(fabric) if fabric else None
    tolerance = rules.tolerance if quantity.tolerance is None else quantity.tolerance
    reference = _given(quantity, rules, "bandwidth")
    if reference is None and ceiling is not None:
        reference = from_ceiling(ceiling, tolerance=tolerance)
    judgement = judge_value(
        name=quantity.name,
        value=value,
        unit="MB/s",
        message_size=quantity.message_size,
        reference=reference,
        ceiling=ceiling,
    )
    return explained(judgement, fabric)


def _time(quantity: Stated, value: float, fabric: Fabric | None, rules: Rules) -> Judgement:
    return judge_value(
        name=quantity.name,
        value=value,
        unit="us",
        message_size=quantity.message_size,
        reference=_given(quantity, rules, "latency"),
        floor=latency_floor_us(fabric, quantity.message_size or 0) if fabric else None,
    )


def _extremes(quantity: Stated, fabric: Fabric | None, rules: Rules) -> Iterator[Judgement]:
    """Judge the extremes of a population as well: one impossible pair spoils the statement."""
    for key in ("minimum", "maximum"):
        text = getattr(quantity, key)
        if text is None:
            continue
        judged = _quantity(quantity.model_copy(update={"value": text}), fabric, rules)
        yield replace(judged, name=f"{quantity.name}_{key}")


def _by_itself(judgement: Judgement) -> str:
    return f"{judgement.name} would be FAIL by itself: {judgement.reason}"


def _spread(quantity: Stated) -> Iterator[str]:
    if quantity.standard_deviation is None:
        return
    _, unit = split_quantity(quantity.value)
    mean = parse_quantity(quantity.value, unit)
    sigma = parse_quantity(quantity.standard_deviation, unit)
    for key in ("minimum", "maximum"):
        text = getattr(quantity, key)
        if text is None or sigma <= 0 or mean <= 0:
            continue
        extreme = parse_quantity(text, unit)
        away = abs(extreme - mean) / sigma
        if away > OUTLIER_SIGMAS:
            yield (
                f"outlier: the {key} of {quantity.name}, {text}, lies {away:.0f} standard "
                f"deviations ({abs(extreme - mean) / mean:.0%}) from the mean {quantity.value}: "
                "one pair is unlike the others, find it"
            )


def _ratio(ratio: Ratio, fabric: Fabric | None) -> Judgement:
    number, unit = split_quantity(ratio.numerator)
    divisor = parse_quantity(ratio.denominator, unit)
    if divisor <= 0:
        raise ConfigError(
            f"ratio {ratio.name!r} divides by nothing",
            expected="a positive denominator",
            got=repr(ratio.denominator),
        )
    expected = _expected_ratio(ratio, fabric)
    reference = around(expected, unit="1", tolerance=ratio.tolerance, origin=_gain(ratio, fabric))
    return judge_value(
        name=ratio.name, value=number / divisor, unit="1", message_size=None, reference=reference
    )


def _gain(ratio: Ratio, fabric: Fabric | None) -> str:
    if ratio.expected != "rails" or fabric is None:
        return f"stated for {ratio.name}"
    return f"physics: with {fabric.num_rails} rails the {bound(fabric).resource} binds"


def _expected_ratio(ratio: Ratio, fabric: Fabric | None) -> float:
    if isinstance(ratio.expected, float):
        return ratio.expected
    if ratio.expected != "rails" or fabric is None:
        raise ConfigError(
            f"ratio {ratio.name!r} has no expectation",
            expected="a number, or 'rails' with a [fabric] of several rails",
            got=repr(ratio.expected),
        )
    return expected_rail_gain(replace(fabric, num_rails=1), fabric)


def _as_table(curve: Curve, document: str) -> Table:
    if len(curve.message_sizes) != len(curve.bandwidths):
        raise ConfigError(
            f"curve of {curve.program}",
            source=document,
            expected=f"{len(curve.message_sizes)} bandwidths",
            got=str(len(curve.bandwidths)),
        )
    if sorted(set(curve.message_sizes)) != curve.message_sizes:
        raise ConfigError(
            f"curve of {curve.program}",
            source=document,
            expected="message sizes that rise, each once",
            got=str(curve.message_sizes),
        )
    try:
        values = [convert(value, curve.unit, "MB/s") for value in curve.bandwidths]
    except FabricproofError as error:
        raise ConfigError(error.problem, source=document, got=repr(curve.unit)) from None
    return Table(
        suite=curve.suite,
        program=curve.program,
        version=None,
        columns=("message_size", "bandwidth_mb_s"),
        rows=tuple(zip(map(float, curve.message_sizes), values, strict=True)),
        source=document,
        line=1,
        row_lines=tuple(range(2, 2 + len(values))),
    )
