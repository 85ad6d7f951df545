"""What a quantity is judged by: one record with value, bounds, unit and origin.

References come from three places, the nearest one wins: a site's own number (``references.toml``
or ``--reference``), else the conservative end of the physical ceiling.  There is no third: where
neither speaks, the quantity is UNJUDGED.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import lru_cache

from fabricproof.core.errors import ConfigError
from fabricproof.core.units import convert, dimension, parse_size, size_label, split_quantity
from fabricproof.physics import Ceiling

#: Allowed fraction below a bandwidth reference where nobody says otherwise.  Document 002 of the
#: sources accepts its inter-switch links at 10 %; document 000's FDR run at 18 % below was a rank
#: on the wrong socket.  aws-parallelcluster and CSCS use 10 to 20 %.
DEFAULT_TOLERANCE = 0.10

#: Allowed fraction above a latency reference: scheduling noise only ever adds time.
DEFAULT_LATENCY_TOLERANCE = 0.20

#: A point inside the curve may take this fraction longer than the model says, which makes 30 %
#: less bandwidth: the model is coarse near protocol switches, and the quantities that carry the
#: verdict are its two ends.
CURVE_TOLERANCE = 3 / 7

#: what MPI carries of what TCP does below it, over the same rail
SHARE = "mpi_share"


class Source(StrEnum):
    """Where a reference comes from, where anything is decided by it."""

    PAIR = "pair"
    """The model of a collective, from the pair's leg of the same job."""
    BASELINE = "baseline"
    """A baseline alone."""
    BASELINE_AND_PAIR = "baseline and pair"
    """A baseline that is stricter than :attr:`PAIR`."""
    BASELINE_AND_OTHER = "baseline and other"
    """A baseline that is stricter than :attr:`OTHER`."""
    OTHER = "other"

    @property
    def rests_on_pair(self) -> bool:
        """Whether the pair's leg of the same job has a part in it."""
        return self in {Source.PAIR, Source.BASELINE_AND_PAIR}

    def and_baseline(self) -> Source:
        """Return the source of a reference that a stricter baseline tightens."""
        return Source.BASELINE_AND_PAIR if self.rests_on_pair else Source.BASELINE_AND_OTHER


#: the origin of a number that a baseline judged, as records without the kind of it have it
_BY_BASELINE = re.compile(r"baseline [\w.-]+, \d+ runs(?P<more>, and )?")


@lru_cache(maxsize=4096)
def recorded_source(stated: str | None, origin: str | None) -> Source | None:
    """Return the source that a record states; of an older record, what its text says.

    Older records have a text alone, or call a baseline that is stricter by what it is stricter
    than.  No other function reads the text of an origin.

    Args:
        stated: ``quantity_source`` of the record.
        origin: ``quantity_origin`` of the record.
    """
    known = Source(stated) if stated in set(Source) else None
    match = _BY_BASELINE.match(origin or "") if known in {None, Source.PAIR, Source.OTHER} else None
    if match is not None:
        return (known or Source.OTHER).and_baseline() if match["more"] else Source.BASELINE
    return known or (Source.OTHER if origin else None)


@dataclass(frozen=True, kw_only=True)
class Reference:
    """What one quantity is judged by.

    Attributes:
        value: the expected value, in ``unit``.
        lower: smallest acceptable value, None where there is no such bound.
        upper: largest acceptable value, None where there is no such bound.
        unit: ``MB/s`` or ``us``.
        tolerance: the fraction that made the bounds, 0 or more and below 1 for bandwidth.
        origin: where the value comes from, in words for a person.
        source: the same for a program.
    """

    value: float
    lower: float | None
    upper: float | None
    unit: str
    tolerance: float
    origin: str
    source: Source = Source.OTHER


def _checked_tolerance(tolerance: float, *, below_one: bool) -> float:
    if not math.isfinite(tolerance) or tolerance < 0 or (below_one and tolerance >= 1):
        limit = "0 or more and below 1" if below_one else "0 or more"
        raise ConfigError(
            "impossible tolerance",
            expected=limit,
            got=repr(tolerance),
            next_step="it is a fraction: 10 % is 0.1",
        )
    return tolerance


def _checked_value(value: float) -> None:
    # A bound of NaN is crossed by nothing, and 0 divides: either would be green for anything.
    if not (math.isfinite(value) and value > 0):
        raise ConfigError("impossible reference", expected="a positive number", got=repr(value))


def at_least(
    value: float, *, unit: str = "MB/s", tolerance: float = DEFAULT_TOLERANCE, origin: str
) -> Reference:
    """Return a reference that a value passes by being ``value`` less ``tolerance`` or more.

    Raises:
        ConfigError: the value is not positive and finite, or the tolerance is not in [0, 1).
    """
    _checked_value(value)
    _checked_tolerance(tolerance, below_one=True)
    return Reference(
        value=value,
        lower=value * (1 - tolerance),
        upper=None,
        unit=unit,
        tolerance=tolerance,
        origin=origin,
    )


def at_most(
    value: float, *, unit: str = "us", tolerance: float = DEFAULT_LATENCY_TOLERANCE, origin: str
) -> Reference:
    """Return a reference that a value passes by being ``value`` plus ``tolerance`` or less.

    Raises:
        ConfigError: the value is not positive and finite, or the tolerance is negative.
    """
    _checked_value(value)
    _checked_tolerance(tolerance, below_one=False)
    return Reference(
        value=value,
        lower=None,
        upper=value * (1 + tolerance),
        unit=unit,
        tolerance=tolerance,
        origin=origin,
    )


def around(value: float, *, unit: str, tolerance: float, origin: str) -> Reference:
    """Return a reference that a value passes by lying within ``tolerance`` on either side.

    Raises:
        ConfigError: the value is not positive and finite, or the tolerance is not in [0, 1).
    """
    low = at_least(value, unit=unit, tolerance=tolerance, origin=origin)
    return replace(low, upper=value * (1 + tolerance))


def from_ceiling(ceiling: Ceiling, *, tolerance: float = DEFAULT_TOLERANCE) -> Reference:
    """Return the reference that physics alone gives: the ceiling's conservative end."""
    origin = "declared" if ceiling.name in {"capability", "flow"} else "physics"
    return at_least(
        ceiling.low_mb_s, tolerance=tolerance, origin=f"{origin}: the {ceiling.resource} binds"
    )


def from_text(text: str, *, tolerance: float | None, origin: str) -> tuple[str, Reference]:
    """Read ``'bandwidth=21 GB/s'`` or ``'latency_0B=60 us'`` into (quantity, reference).

    A bare ``'21 GB/s'`` names the quantity by its unit.  The unit is converted to the judge's
    own, and a unit of another kind is refused: a GB/s reference can never meet an MB/s value
    unconverted.

    Raises:
        UnitError: no unit, or not one of bandwidth or time.
        ConfigError: the quantity is unknown (it would never be applied), its name and the unit do
            not fit, or the value is not positive.
    """
    name, _, amount = text.rpartition("=")
    number, unit = split_quantity(amount)
    if name.strip() == SHARE or (name and dimension(unit) == "fraction"):
        return _share(name.strip(), number, unit, tolerance, origin)
    is_time = dimension(unit) == "time"
    value = convert(number, unit, "us" if is_time else "MB/s")
    name = _quantity_name(name.strip()) or ("latency" if is_time else "bandwidth")
    if name.startswith("latency") != is_time:
        raise ConfigError(
            f"the unit does not fit quantity {name!r}",
            expected="a time for latency, a bandwidth for bandwidth",
            got=repr(amount),
        )
    if value <= 0:
        raise ConfigError("a reference must be positive", got=repr(text))
    if is_time:
        chosen = DEFAULT_LATENCY_TOLERANCE if tolerance is None else tolerance
        return name, at_most(value, tolerance=chosen, origin=origin)
    chosen = DEFAULT_TOLERANCE if tolerance is None else tolerance
    return name, at_least(value, tolerance=chosen, origin=origin)


def _share(
    name: str, number: float, unit: str, tolerance: float | None, origin: str
) -> tuple[str, Reference]:
    """Return the reference of a share; no other quantity is a fraction."""
    if name != SHARE or dimension(unit) != "fraction" or number <= 0:
        raise ConfigError(
            "the unit does not fit the quantity",
            expected=f"a fraction for {SHARE}, as {SHARE}=0.9 x, and for nothing else",
            got=f"{name}={number:g} {unit}",
        )
    chosen = DEFAULT_TOLERANCE if tolerance is None else tolerance
    return name, at_least(convert(number, unit, "x"), unit="x", tolerance=chosen, origin=origin)


def _quantity_name(name: str) -> str:
    """Return ``name`` in the judge's spelling: ``bandwidth_4194304`` is ``bandwidth_4MiB``."""
    kind, mark, size = name.partition("_")
    if name and kind not in {"bandwidth", "latency"}:
        raise ConfigError(
            "unknown quantity in a reference",
            expected="bandwidth, latency, or one size of it as bandwidth_4MiB",
            got=repr(name),
        )
    return f"{kind}_{size_label(parse_size(size))}" if mark else name


def reframe_tuple(
    reference: Reference, *, hard_upper: float | None, unit: str
) -> tuple[float, float | None, float | None, str]:
    """Return ReFrame's ``(value, lower fraction, upper fraction, unit)`` for these bounds.

    Args:
        reference: what the quantity is judged by.
        hard_upper: the physical ceiling in the reference's unit, or None.
        unit: unit of the performance variable; the reference is converted to it or refused.
    """
    factor = convert(1.0, reference.unit, unit)
    uppers = [bound for bound in (reference.upper, hard_upper) if bound is not None]
    upper = min(uppers) / reference.value - 1 if uppers else None
    lower = reference.lower / reference.value - 1 if reference.lower is not None else None
    return (reference.value * factor, lower, upper, unit)
