"""What kind a quantity is: its metric, the smallest change of it that matters, its peers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from fabricproof.errors import ConfigError
from fabricproof.store import Key

#: smallest change that is told, as a fraction
MARGINS: Mapping[str, float] = {
    "bandwidth": 0.03,
    "message rate": 0.03,
    "ratio": 0.05,
    "cost ratio": 0.05,
    "latency": 0.05,
}

_METRICS = {"MB/s": "bandwidth", "MiB/s": "bandwidth", "1/s": "message rate", "x": "ratio"}

#: messages up to here cost the time of a start, above they cost bytes: unlike scatter
_SMALL, _MEDIUM = 1 << 10, 1 << 16


def metric_of(key: Key) -> str:
    """Return ``bandwidth``, ``latency``, ``message rate``, ``ratio`` or ``cost ratio``."""
    if key.unit == "x" and key.better < 0:
        return "cost ratio"
    return _METRICS.get(key.unit, "latency")


def classes_of(keys: Sequence[Key]) -> list[int]:
    """Return the number of each key's class: unit, program and length of the message."""
    numbers: dict[tuple[str, ...], int] = {}
    return [numbers.setdefault(_class(each), len(numbers)) for each in keys]


def _class(key: Key) -> tuple[str, ...]:
    size = key.message_size
    if size is None:
        return (key.unit, key.program, "")
    band = "small" if size <= _SMALL else "medium" if size <= _MEDIUM else "large"
    return (key.unit, key.program, band)


def parse_margins(texts: Sequence[str]) -> dict[str, float]:
    """Return the margins with those of ``bandwidth=3%`` or ``latency=0.05`` in place.

    Raises:
        ConfigError: an unknown metric, or no fraction between 0 and 1.
    """
    margins = dict(MARGINS)
    for text in texts:
        name, _, value = text.partition("=")
        name = name.replace("-", " ").replace("_", " ")
        try:
            number = float(value.removesuffix("%")) / (100 if value.endswith("%") else 1)
        except ValueError:
            number = -1.0
        if name not in margins or not 0 < number < 1:
            raise ConfigError(
                "no margin",
                source="--margin",
                expected=f"METRIC=PERCENT as latency=5%, with one of {', '.join(margins)}",
                got=repr(text),
            )
        margins[name] = number
    return margins
