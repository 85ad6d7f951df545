"""Arithmetic that binds the columns of one row: a table that contradicts itself proves nothing.

The tools print two decimals, so every law is checked within what that rounding allows.
"""

from __future__ import annotations

from fabricproof.measure import Table
from fabricproof.semantics import Consistency, Meaning

#: Relative difference that averaging over ranks and repetitions may leave between two columns.
RELATIVE_SLACK = 0.02

#: half a unit in the last of two printed decimals
ROUNDING = 0.005

_TIMES = {
    Consistency.SIZE_OVER_TIME: 1,
    Consistency.TWICE_SIZE_OVER_TIME: 2,
    Consistency.FOUR_TIMES_SIZE_OVER_TIME: 4,
}


def row_fault(table: Table, reading: Meaning, message_size: int | None) -> str | None:
    """Return why the row of ``message_size`` contradicts itself, or None where it is sound.

    Also names a failed data validation (``-c``), where the table has one.
    """
    if str(table.attributes.get("validation", "Pass")) != "Pass":
        return "the benchmark's own data validation failed: the bytes that arrived were wrong"
    row = _row(table, message_size)
    if row is None or "bandwidth_mb_s" not in row:
        return None
    expected = _expected_bandwidth(reading.consistency, row)
    if expected is None:
        return None
    low, high = expected
    # What was printed in Gb/s with two decimals is known to 0.6 MB/s only.
    coarse = float(table.attributes.get("bandwidth_rounding_mb_s", 0.0))
    if low - coarse <= row["bandwidth_mb_s"] <= high + coarse:
        return None
    return (
        f"the row contradicts itself: {reading.consistency.value} gives "
        f"{(low + high) / 2:.4g} MB/s, the table says {row['bandwidth_mb_s']:g}"
    )


def _row(table: Table, message_size: int | None) -> dict[str, float] | None:
    if message_size is None or "message_size" not in table.columns:
        return None
    index = table.columns.index("message_size")
    for row in table.rows:
        if row[index] == message_size:
            return dict(zip(table.columns, row, strict=True))
    return None


def _expected_bandwidth(law: Consistency, row: dict[str, float]) -> tuple[float, float] | None:
    """Return the interval in which the printed bandwidth must lie, in MB/s."""
    size = row["message_size"]
    if law in _TIMES:
        time_us = row.get("latency_us", row.get("latency_max_us", 0.0))
        if time_us <= ROUNDING:
            return None
        moved = _TIMES[law] * size
        return _widened(moved / (time_us + ROUNDING), moved / (time_us - ROUNDING))
    if law is Consistency.RATE_TIMES_SIZE and "message_rate_per_s" in row:
        value = row["message_rate_per_s"] * size / 1e6
        rounding = ROUNDING * size / 1e6 if row["message_rate_per_s"] % 1 else 0.5 * size / 1e6
        return _widened(value - rounding, value + rounding)
    return None


def _widened(low: float, high: float) -> tuple[float, float]:
    return low * (1 - RELATIVE_SLACK) - ROUNDING, high * (1 + RELATIVE_SLACK) + ROUNDING
