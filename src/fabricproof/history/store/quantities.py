"""What kind of quantity a key is: its metric, its margin, and whose scatter is like its own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from fabricproof.core.errors import ConfigError
from fabricproof.history.store.model import Key

#: smallest change that matters, as a fraction; a site or ``--margin`` may say otherwise
MARGINS: Mapping[str, float] = {
    "bandwidth": 0.03,
    "message rate": 0.03,
    "ratio": 0.05,
    "cost ratio": 0.05,
    "latency": 0.05,
}

_METRICS = {"MB/s": "bandwidth", "MiB/s": "bandwidth", "1/s": "message rate", "x": "ratio"}

#: messages up to here cost the time of a start, above they cost bytes: unlike scatter
_SHORT, _MEDIUM = 1 << 10, 1 << 16


def metric_of(key: Key) -> str:
    """Return the metric, a name of :data:`MARGINS`; of a ``cost ratio`` less is better."""
    if key.unit == "x" and key.better < 0:
        return "cost ratio"
    return _METRICS.get(key.unit, "latency")


def band_of(key: Key) -> str:
    """Return ``short``, ``medium`` or ``long`` for the messages; empty where there are none."""
    size = key.message_size
    if size is None:
        return ""
    return "short" if size <= _SHORT else "medium" if size <= _MEDIUM else "long"


def class_of(key: Key) -> tuple[str, ...]:
    """Return what tells quantities of unlike scatter apart: unit, program and length."""
    return (key.unit, key.program, band_of(key))


def numbered(kinds: Sequence[object]) -> list[int]:
    """Return a number for each kind, the same for the same."""
    numbers: dict[object, int] = {}
    return [numbers.setdefault(each, len(numbers)) for each in kinds]


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
