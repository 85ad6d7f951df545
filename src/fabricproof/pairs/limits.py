"""What the level of a matrix is judged by: references and what physics forbids."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from fabricproof.core.errors import ConfigError, UnitError
from fabricproof.core.units import convert, dimension, parse_size, size_label
from fabricproof.pairs.matrix import BOTH_WAYS, Kind, Load, Matrix
from fabricproof.physics import CLOCK_TOLERANCE, Ceiling, Fabric, bound, latency_floor_us
from fabricproof.verdict.value import (
    DEFAULT_LATENCY_TOLERANCE,
    DEFAULT_TOLERANCE,
    Reference,
    from_ceiling,
)

#: A message that waits for an answer shows the rate of a link where it takes so long: TCP's 30 us
#: to start leave nine tenths of the rate.
LEAST_TRANSFER_US = 300.0


@dataclass(frozen=True, kw_only=True)
class Limits:
    """What the level of the values is judged by; keys are numbers of kinds, values in their unit.

    Attributes:
        bounds: the worst value that the reference allows.
        impossible: what no value may be better than.
        origins: where each bound comes from, in words.
        tolerance: a row is low from this fraction off the healthy value on; None: the usual one,
            10 % of a bandwidth and 20 % of a latency.
    """

    bounds: Mapping[int, float] = field(default_factory=dict)
    levels: Mapping[int, float] = field(default_factory=dict)
    impossible: Mapping[int, float] = field(default_factory=dict)
    origins: Mapping[int, str] = field(default_factory=dict)
    tolerance: float | None = None

    def threshold(self, *, lower_is_better: bool) -> float:
        """Return from where on a row is off the healthy value, as a logarithm above 0."""
        if lower_is_better:
            chosen = DEFAULT_LATENCY_TOLERANCE if self.tolerance is None else self.tolerance
            return math.log1p(chosen)
        chosen = DEFAULT_TOLERANCE if self.tolerance is None else self.tolerance
        return -math.log1p(-chosen)


NO_LIMITS = Limits()


def _check_tolerance(tolerance: float | None) -> None:
    if tolerance is not None and not 0 <= tolerance < 1:
        raise ConfigError(
            "impossible tolerance",
            expected="0 or more and below 1",
            got=repr(tolerance),
            next_step="it is a fraction: 10 % is 0.1",
        )


def limits_of(
    matrix: Matrix,
    *,
    fabric: Fabric | None = None,
    references: Mapping[str, Reference] | None = None,
    tolerance: float | None = None,
) -> Limits:
    """Return the limits of the kinds of a matrix.

    A fabric says how much bandwidth the largest size must have, how much no size can have, and
    the latency that none can beat.  A reference speaks of one size, or of the largest size of a
    bandwidth and the smallest of a latency.

    ``fabric`` is the way of one pair over one rail; ``tolerance`` is a fraction off the healthy
    value, and off the fabric's bound.

    Raises:
        ConfigError: values without a unit; a tolerance that cannot be; a reference of nothing in
            the matrix; a reference above the ceiling.
    """
    references = references or {}
    _check_tolerance(tolerance)
    if (fabric is not None or references) and any(not kind.unit for kind in matrix.kinds):
        raise ConfigError(
            "a level cannot be judged without the unit of the values",
            source=matrix.origin,
            expected="a column unit, or --unit",
        )
    bounds: dict[int, float] = {}
    levels: dict[int, float] = {}
    impossible: dict[int, float] = {}
    origins: dict[int, str] = {}
    if fabric is not None:
        chosen = DEFAULT_TOLERANCE if tolerance is None else tolerance
        one_way = from_ceiling(_loaded(fabric, matrix.load), tolerance=chosen)
        both_ways = from_ceiling(bound(replace(fabric, bidirectional=True)), tolerance=chosen)
        for number, kind in enumerate(matrix.kinds):
            limit = _forbidden(kind, fabric)
            if limit is not None:
                impossible[number] = limit
        for number in (*_meant(matrix, "bandwidth"), *_meant(matrix, BOTH_WAYS)):
            is_both = matrix.kinds[number].quantity == BOTH_WAYS
            physics = both_ways if is_both else one_way
            if not _shows_rate(matrix.kinds[number], physics, matrix.load):
                continue
            bounds[number] = convert(physics.lower or 0.0, "MB/s", matrix.kinds[number].unit)
            levels[number] = convert(physics.value, "MB/s", matrix.kinds[number].unit)
            origins[number] = physics.origin
    for name, reference in references.items():
        meant = _meant(matrix, name)
        if not meant:
            raise ConfigError(
                f"the reference of {name} speaks of nothing in the matrix",
                source=matrix.origin,
                expected="one of " + ", ".join(kind.words for kind in matrix.kinds),
            )
        for number in meant:
            bounds[number] = _bound(matrix.kinds[number], reference)
            levels[number] = convert(reference.value, reference.unit, matrix.kinds[number].unit)
            origins[number] = reference.origin
    _check_possible(matrix, bounds, impossible)
    return Limits(
        bounds=bounds, levels=levels, impossible=impossible, origins=origins, tolerance=tolerance
    )


def _loaded(fabric: Fabric, load: Load) -> Ceiling:
    """Return what one direction has, where the other is busy as well no more than half of both."""
    one = bound(fabric)
    if Load.BOTH_AT_ONCE not in load or fabric.bidirectional:
        return one
    both = bound(replace(fabric, bidirectional=True))
    return replace(one, low_mb_s=min(one.low_mb_s, both.low_mb_s / 2))


def _shows_rate(kind: Kind, physics: Reference, load: Load) -> bool:
    """Tell whether a healthy pair has the rate of its link: with long messages, if in turn."""
    size = _size(kind)
    long_enough = size is not None and size / physics.value >= LEAST_TRANSFER_US
    return long_enough or Load.IN_TURN not in load


def _size(kind: Kind) -> int | None:
    try:
        return parse_size(kind.size) if kind.size else None
    except UnitError:
        return None


def _meant(matrix: Matrix, name: str) -> list[int]:
    """Return the kinds that a reference speaks of: ``bandwidth``, ``latency_8B``."""
    quantity, _, size = name.partition("_")
    own = [at for at, kind in enumerate(matrix.kinds) if kind.quantity == quantity]
    sizes = {at: _size(matrix.kinds[at]) for at in own}
    if size:
        return [at for at in own if (known := sizes[at]) is not None and size_label(known) == size]
    known_sizes = {value for value in sizes.values() if value is not None}
    if not known_sizes:
        return own
    wanted = min(known_sizes) if quantity == "latency" else max(known_sizes)
    return [at for at in own if sizes[at] in {wanted, None}]


def _bound(kind: Kind, reference: Reference) -> float:
    worst = reference.upper if kind.lower_is_better else reference.lower
    assert worst is not None
    return convert(worst, reference.unit, kind.unit)


def _forbidden(kind: Kind, fabric: Fabric) -> float | None:
    measured = dimension(kind.unit)
    if measured == "bandwidth":
        if kind.quantity == BOTH_WAYS:
            fabric = replace(fabric, bidirectional=True)
        high = _behind_shaper(fabric, bound(fabric).high_mb_s, _size(kind))
        if not math.isfinite(high):
            return None
        return convert(high * (1 + CLOCK_TOLERANCE), "MB/s", kind.unit)
    if measured == "time":
        return convert(latency_floor_us(fabric, _size(kind) or 0).us, "us", kind.unit)
    return None


def _behind_shaper(fabric: Fabric, high_mb_s: float, size_bytes: int | None) -> float:
    """Return what a message can have behind a token bucket on each rail; infinite: anything."""
    if fabric.shaper is None:
        return high_mb_s
    share, rails = (size_bytes or 0) / fabric.num_rails, fabric.num_rails
    least_us = fabric.shaper.least_time_us(int(share), high_mb_s / rails)
    return share * rails / least_us if least_us > 0 else math.inf


def _check_possible(
    matrix: Matrix, bounds: Mapping[int, float], impossible: Mapping[int, float]
) -> None:
    for number, worst in bounds.items():
        limit, kind = impossible.get(number), matrix.kinds[number]
        if limit is not None and (worst < limit if kind.lower_is_better else worst > limit):
            raise ConfigError(
                f"the reference of {kind.words} is beyond what the fabric can do",
                expected=f"{'at least' if kind.lower_is_better else 'at most'} "
                f"{limit:.5g} {kind.unit}",
                got=f"{worst:.5g} {kind.unit}",
                next_step="check --link and its companions, or the reference",
            )
