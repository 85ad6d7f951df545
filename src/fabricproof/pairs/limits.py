"""What the level of a matrix is judged by: references and what physics forbids."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from fabricproof.core.errors import ConfigError, UnitError
from fabricproof.core.units import convert, dimension, parse_size, size_label
from fabricproof.pairs.matrix import BOTH_WAYS, Kind, Load, Matrix
from fabricproof.physics import CLOCK_TOLERANCE, Fabric, bound, latency_floor_us
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
    """What the values of a matrix are judged by, in its unit; None if unknown.

    Attributes:
        bound: the worst value that the reference allows.
        level: the reference itself.
        impossible: what no value may be better than.
        origin: where the bound comes from, in words.
        tolerance: a row is low from this fraction off the healthy value on; None: the usual one,
            10 % of a bandwidth and 20 % of a latency.
        num_rails: a bound of a bandwidth holds for so many rails: twice as many have twice as much.
    """

    bound: float | None = None
    level: float | None = None
    impossible: float | None = None
    origin: str = ""
    tolerance: float | None = None
    num_rails: int = 1

    def threshold(self, kind: Kind) -> float:
        """Return from where on a row is off the healthy value, as a logarithm above 0."""
        usual = DEFAULT_LATENCY_TOLERANCE if kind.lower_is_better else DEFAULT_TOLERANCE
        chosen = usual if self.tolerance is None else self.tolerance
        return math.log1p(chosen) if kind.lower_is_better else -math.log1p(-chosen)

    def goodness(self, limit: float | None, matrix: Matrix, rail: int) -> float | None:
        """Return a limit as :attr:`Matrix.goodness` has it, for a rail or several together."""
        if limit is None or limit <= 0:
            return None
        if matrix.kind.lower_is_better:
            return -math.log(limit)
        return math.log(limit * (matrix.rails[rail].count("+") + 1) / self.num_rails)


NO_LIMITS = Limits()


def limits_of(
    matrices: Sequence[Matrix],
    *,
    fabric: Fabric | None = None,
    references: Mapping[str, Reference] | None = None,
    tolerance: float | None = None,
) -> list[Limits]:
    """Return the limits of the matrices of one file or campaign.

    A fabric says how much bandwidth the largest size must have, how much no size can have, and
    the latency that none can beat.  A reference speaks of one size, or of the largest size of a
    bandwidth and the smallest of a latency.

    ``fabric`` is the way of one pair over one rail; ``tolerance`` is a fraction off the healthy
    value, and off the fabric's bound.

    Raises:
        ConfigError: values without a unit; a tolerance that cannot be; a reference of nothing in
            the matrices; a reference above the ceiling.
    """
    references = references or {}
    kinds = [matrix.kind for matrix in matrices]
    if tolerance is not None and not 0 <= tolerance < 1:
        raise ConfigError("impossible tolerance", expected="0 to below 1", got=repr(tolerance))
    if (fabric is not None or references) and any(not kind.unit for kind in kinds):
        raise ConfigError(
            "a level cannot be judged without the unit of the values",
            source=matrices[0].origin,
            expected="a column unit, or --unit",
        )
    names = [name for matrix in matrices for name in matrix.rails]
    least = min((name.count("+") + 1 for name in names), default=1)
    num_rails = least if fabric is None else fabric.num_rails
    found = [Limits(tolerance=tolerance, num_rails=num_rails) for _ in kinds]
    if fabric is not None:
        found = [
            replace(each, impossible=_forbidden(kind, fabric))
            for each, kind in zip(found, kinds, strict=True)
        ]
        for quantity in ("bandwidth", BOTH_WAYS):
            for at in _meant(kinds, quantity):
                physics = _of_fabric(fabric, matrices[at], tolerance)
                if physics is not None:
                    found[at] = _with(found[at], kinds[at], physics)
    for name, reference in references.items():
        meant = _meant(kinds, name)
        if not meant:
            raise ConfigError(
                f"the reference of {name} speaks of nothing in the matrix",
                source=matrices[0].origin if matrices else "",
                expected="one of " + ", ".join(kind.words for kind in kinds),
            )
        for at in meant:
            found[at] = _with(found[at], kinds[at], reference)
    return found


def _of_fabric(fabric: Fabric, matrix: Matrix, tolerance: float | None) -> Reference | None:
    """Return what a pair must have by the rate of its link; None if the values do not show it."""
    kind, chosen = matrix.kind, DEFAULT_TOLERANCE if tolerance is None else tolerance
    both = bound(replace(fabric, bidirectional=True))
    ceiling = both if kind.quantity == BOTH_WAYS else bound(fabric)
    if Load.BOTH_AT_ONCE in matrix.load and ceiling is not both and not fabric.bidirectional:
        ceiling = replace(ceiling, low_mb_s=min(ceiling.low_mb_s, both.low_mb_s / 2))
    physics, size = from_ceiling(ceiling, tolerance=chosen), _size(kind)
    long_enough = size is not None and size / physics.value >= LEAST_TRANSFER_US
    return physics if long_enough or Load.IN_TURN not in matrix.load else None


def _with(limits: Limits, kind: Kind, reference: Reference) -> Limits:
    """Return the limits with a reference; ConfigError if it is beyond physics."""
    worst = reference.upper if kind.lower_is_better else reference.lower
    worst = convert(worst or 0.0, reference.unit, kind.unit)
    limit = limits.impossible
    if limit is not None and (worst < limit if kind.lower_is_better else worst > limit):
        raise ConfigError(
            f"the reference of {kind.words} is beyond what the fabric can do",
            expected=f"{'at least' if kind.lower_is_better else 'at most'} {limit:.5g} {kind.unit}",
            got=f"{worst:.5g} {kind.unit}",
            next_step="check --link and its companions, or the reference",
        )
    level = convert(reference.value, reference.unit, kind.unit)
    return replace(limits, bound=worst, level=level, origin=reference.origin)


def _size(kind: Kind) -> int | None:
    try:
        return parse_size(kind.size) if kind.size else None
    except UnitError:
        return None


def _meant(kinds: Sequence[Kind], name: str) -> list[int]:
    """Return the kinds that a reference speaks of: ``bandwidth``, ``latency_8B``."""
    quantity, _, size = name.partition("_")
    sizes = {at: _size(kind) for at, kind in enumerate(kinds) if kind.quantity == quantity}
    known = {value for value in sizes.values() if value is not None}
    if size:
        wanted = {value for value in known if size_label(value) == size}
        return [at for at, value in sizes.items() if value in wanted]
    if known:
        known = {min(known) if quantity == "latency" else max(known)}
    return [at for at, value in sizes.items() if value is None or value in known]


def _forbidden(kind: Kind, fabric: Fabric) -> float | None:
    measured, size = dimension(kind.unit), _size(kind) or 0
    if measured == "time":
        return convert(latency_floor_us(fabric, size).us, "us", kind.unit)
    if measured != "bandwidth":
        return None
    if kind.quantity == BOTH_WAYS:
        fabric = replace(fabric, bidirectional=True)
    high_mb_s = bound(fabric).high_mb_s
    if fabric.shaper is not None:  # a token bucket on each rail lets the first bytes pass at once
        share = size / fabric.num_rails
        least_us = fabric.shaper.least_time_us(int(share), high_mb_s / fabric.num_rails)
        high_mb_s = size / least_us if least_us > 0 else math.inf
    if not math.isfinite(high_mb_s):
        return None
    return convert(high_mb_s * (1 + CLOCK_TOLERANCE), "MB/s", kind.unit)
