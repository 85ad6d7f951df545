"""Exact conversion between the few units that benchmarks, links and people write.

Each unit has a dimension and an exact factor to its base unit: bytes, MB/s (10^6 bytes per
second), microseconds, messages per second.  Converting across dimensions is a :class:`UnitError`.
"""

from __future__ import annotations

import datetime
import math
import re
from collections.abc import Iterable, Iterator, Sequence
from fractions import Fraction
from typing import TypeVar

from fabricproof.core.errors import UnitError

_Key = TypeVar("_Key")
_Value = TypeVar("_Value")

#: how a time of UTC is written in every record and file of ours
TIME_FORM = "%Y-%m-%dT%H:%M:%SZ"

#: decimal prefixes are powers of 1000 and binary ones of 1024 (IEC 80000-13)
_DECIMAL = {"k": 10**3, "M": 10**6, "G": 10**9, "T": 10**12}
_BINARY = {"Ki": 2**10, "Mi": 2**20, "Gi": 2**30}

#: dimension -> its units with their factors to the base unit; b is a bit, B a byte
_DIMENSIONS: dict[str, dict[str, Fraction | int]] = {
    "size": {"B": 1, **{f"{prefix}B": factor for prefix, factor in _BINARY.items()}},
    "bandwidth": {
        "B/s": Fraction(1, 10**6),
        **{f"{name}B/s": Fraction(factor, 10**6) for name, factor in (_DECIMAL | _BINARY).items()},
        "bit/s": Fraction(1, 8 * 10**6),
        **{f"{prefix}b/s": Fraction(factor, 8 * 10**6) for prefix, factor in _DECIMAL.items()},
    },
    "time": {"ns": Fraction(1, 10**3), "us": 1, "ms": 10**3, "s": 10**6},
    "rate": {"1/s": 1},
    "fraction": {"ppm": Fraction(1, 10**6), "%": Fraction(1, 100), "1": 1, "x": 1},
}

#: unit -> (dimension, factor to the base unit)
UNITS: dict[str, tuple[str, Fraction]] = {
    unit: (dimension, Fraction(factor))
    for dimension, units in _DIMENSIONS.items()
    for unit, factor in units.items()
}

#: unit -> other spellings that documents and tools use for it
_SPELLINGS = {
    "us": "\N{MICRO SIGN}s \N{GREEK SMALL LETTER MU}s usec",
    "MB/s": "Mbytes/sec MBytes/sec MB/sec MByte/s MBytes/s MBps",
    "GB/s": "GB/sec GByte/s GBytes/s GBytes/sec GBps",
    "Gb/s": "Gb/sec Gbit/s Gbits/sec Gbps",
    "Mb/s": "Mb/sec Mbit/s Mbits/sec Mbps",
    "kb/s": "kbit/s Kbits/sec",
    "bit/s": "bits/sec",
    "1/s": "Msg/sec Messages/s msg/s",
}

#: other spelling -> unit
ALIASES = {other: unit for unit, others in _SPELLINGS.items() for other in others.split()}

#: A comma may only part thousands: '3,4 GB/s' is refused, since it means 3.4 to half of Europe.
_QUANTITY = re.compile(
    r"\s*([-+]?(?:[0-9]{1,3}(?:,[0-9]{3})+|[0-9]+)?(?:\.[0-9]+)?(?:(?<=[0-9])[eE][-+]?[0-9]+)?)"
    r"\s*([^\s0-9.,].*?)\s*\Z"
)


def canonical_unit(unit: str) -> str:
    """Return the one spelling this project uses for ``unit``; UnitError if it is unknown."""
    name = ALIASES.get(unit, unit)
    if name not in UNITS:
        raise UnitError("unknown unit", expected=f"one of {', '.join(UNITS)}", got=repr(unit))
    return name


def convert(value: float, unit: str, to: str) -> float:
    """Convert ``value`` from ``unit`` to unit ``to``.

    Raises:
        UnitError: a unit is unknown, or the two measure different things.
    """
    source, target = canonical_unit(unit), canonical_unit(to)
    dimension, factor = UNITS[source]
    wanted, wanted_factor = UNITS[target]
    if dimension != wanted:
        problem = f"cannot convert {dimension} to {wanted}"
        raise UnitError(problem, expected=f"a unit of {wanted}", got=source)
    return float(value * float(factor / wanted_factor))


def split_quantity(text: str) -> tuple[float, str]:
    """Read ``'3.4 GB/s'`` into (3.4, 'GB/s'); a bare number is refused.

    Raises:
        UnitError: no number, no unit or an unknown unit.
    """
    value, unit = split_any(text)
    return value, canonical_unit(unit)


def split_any(text: str) -> tuple[float, str]:
    """Read ``'12.5 ns/day'`` likewise, whatever its unit, which stays as it is written.

    Raises:
        UnitError: no number or no unit.
    """
    match = _QUANTITY.match(text)
    if match is None or not any(letter.isdecimal() for letter in match[1]):
        expected = "a number and a unit, as '3.4 GB/s'"
        raise UnitError("not a quantity", expected=expected, got=repr(text))
    value = float(match[1].replace(",", ""))
    if not math.isfinite(value):
        raise UnitError("not a finite number", expected="a number below 1e308", got=repr(text))
    return value, match[2]


def converted(value: float, unit: str, to: str) -> float | None:
    """Return ``value`` in unit ``to``; None if a unit is unknown or of another dimension."""
    if unit == to:
        return value
    try:
        return convert(value, unit, to)
    except UnitError:
        return None


def dimension(unit: str) -> str:
    """Return what ``unit`` measures: size, bandwidth, time, rate or fraction."""
    return UNITS[canonical_unit(unit)][0]


def parse_quantity(text: str, to: str) -> float:
    """Read ``'3.4 GB/s'`` and return it in unit ``to``; UnitError where that cannot be."""
    return convert(*split_quantity(text), to)


def size_label(size_bytes: int) -> str:
    """Return the label of a message size: ``8B``, ``64KiB``, ``4MiB`` (powers of 1024)."""
    for prefix, factor in reversed(_BINARY.items()):
        if size_bytes >= factor and size_bytes % factor == 0:
            return f"{size_bytes // factor}{prefix}B"
    return f"{size_bytes}B"


def at_size(quantity: str, message_size: int | None) -> str:
    """Return the name of a quantity at a message size in bytes, ``latency_8B``; None: of all."""
    return quantity if message_size is None else f"{quantity}_{size_label(message_size)}"


#: how the names of quantities begin that were measured with buffers in the memory of GPUs
BUFFERS = ("host_to_device_", "device_to_host_", "device_")


def split_buffers(quantity: str) -> tuple[str, str]:
    """Return one of :data:`BUFFERS`, or nothing, and the rest of a quantity's name."""
    found = next((each for each in BUFFERS if quantity.startswith(each)), "")
    return found, quantity.removeprefix(found)


def percent(ratio: float | None, digits: int = 1) -> str:
    """Return a ratio as a signed change: 0.93 is ``-7.0 %``; a dash where there is none."""
    return "-" if ratio is None else f"{(ratio - 1) * 100:+.{digits}f} %"


def parse_size(text: str) -> int:
    """Read a message size label (``8``, ``8B``, ``64KiB``, ``4MiB``) into bytes."""
    if text.strip().isascii() and text.strip().isdecimal():
        return int(text)
    size = parse_quantity(text, "B")
    if size != int(size) or size < 0:
        raise UnitError("not a whole number of bytes", got=repr(text))
    return int(size)


def digits_of(text: str) -> int | None:
    """Return a whole number of at most 18 digits; None for any other text."""
    return int(text) if len(text) <= 18 and text.isdecimal() else None


def natural(name: str) -> tuple[tuple[int, str], ...]:
    """Return a key that sorts ``n2`` before ``n10``."""
    parts = re.split(r"([0-9]{1,18})", name)  # every second part is a number
    return tuple((int(part) if at % 2 else 0, part) for at, part in enumerate(parts))


def by_key(pairs: Iterable[tuple[_Key, _Value]]) -> dict[_Key, list[_Value]]:
    """Return each key with all of its values, in their order."""
    found: dict[_Key, list[_Value]] = {}
    for key, value in pairs:
        found.setdefault(key, []).append(value)
    return found


def counted(num: int, what: str) -> str:
    """Return ``1 run``, ``2 runs``."""
    return f"{num} {what}" if num == 1 else f"{num} {what}s"


def first_few(names: Sequence[str], most: int = 4, rest: str = "", between: str = ", ") -> str:
    """Return ``a, b and 3 more``: the first ``most`` names; ``rest`` stands after "more"."""
    more = f" and {len(names) - most} more{rest}" if len(names) > most else ""
    return between.join(names[:most]) + more


def duration(seconds: float) -> str:
    """Return a duration as a person says it: ``45 s``, ``12 min``, ``3 h 20 min``."""
    if seconds < 99.5:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    if minutes < 100:
        return f"{minutes} min"
    return f"{minutes // 60} h {minutes % 60:02} min"


def stamp(time: datetime.datetime | None = None) -> str:
    """Return a time of UTC as ``2026-11-21T21:34:22Z``; now, where none is given."""
    return (time or datetime.datetime.now(tz=datetime.UTC)).strftime(TIME_FORM)


def columns(rows: Sequence[Sequence[str]], right: frozenset[int]) -> Iterator[str]:
    """Yield rows as aligned lines; the columns in ``right`` hold numbers.  Of no rows no line."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        signs = (">" if at in right else "<" for at in range(len(row)))
        cells = (
            f"{cell:{sign}{width}}" for cell, sign, width in zip(row, signs, widths, strict=True)
        )
        yield "  ".join(cells).rstrip()
