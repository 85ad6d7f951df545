"""Arithmetic that binds the columns of one row: a table that contradicts itself proves nothing.

The tools print two decimals, so every law is checked within what that rounding allows.
"""

from __future__ import annotations

from fabricproof.benchmarks.program import Consistency, Meaning
from fabricproof.core.measure import Table

#: Relative difference that averaging over ranks and repetitions may leave between two columns.
RELATIVE_SLACK = 0.02

#: half a unit in the last of two printed decimals
ROUNDING = 0.005

#: s by which a printed end of an interval may be off: half of iperf 2's coarsest digit
CLOCK_ROUNDING_S = 0.05

#: A receiver may count this fraction more per second than its sender: the two stop their clocks,
#: and with ``--omit`` start them, at their own times, with buffers in flight between them.
AHEAD_OF_SENDER = 0.25

#: A time and a rate are means over ranks and repetitions of their own (IMB-P2P); together they say
#: how many messages were under way, which is 1 or more by design.
FEWEST_UNDER_WAY = 0.5

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
    fault = _run_fault(table)
    row = _row(table, message_size)
    if fault is not None or row is None or "bandwidth_mb_s" not in row:
        return fault
    if (fault := _time_fault(table, row)) is not None:
        return fault
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


def _run_fault(table: Table) -> str | None:
    """Return why a run of iperf or iperf3 contradicts itself: bytes, seconds, rates of both ends.

    Records of earlier versions may lack some of them; what is not there is not checked.
    """
    said = table.attributes
    is_run = table.suite in {"iperf", "iperf3"} and "bandwidth_mb_s" in table.columns
    if not is_run or len(table.rows) != 1:
        return None
    rate = table.column("bandwidth_mb_s")[0]
    if "moved_bytes" in said and "duration_s" in said:
        moved_mb, seconds = float(said["moved_bytes"]) / 1e6, float(said["duration_s"])
        if seconds <= 0:
            return f"the run contradicts itself: {rate:g} MB/s in {seconds:g} s"
        slack = RELATIVE_SLACK + CLOCK_ROUNDING_S / seconds
        if abs(moved_mb / seconds - rate) > slack * rate + ROUNDING:
            return (
                f"the run contradicts itself: {moved_mb:.4g} MB in {seconds:g} s are "
                f"{moved_mb / seconds:.4g} MB/s, it says {rate:g}"
            )
    sent = float(said.get("sent_mb_s", rate))
    if rate > sent * (1 + AHEAD_OF_SENDER):
        return f"the run contradicts itself: {rate:g} MB/s arrived of {sent:g} sent"
    return None


def _time_fault(table: Table, row: dict[str, float]) -> str | None:
    """Return why a time and a message rate of one row contradict each other, or None."""
    if not {"latency_us", "message_rate_per_s"} <= row.keys() or not row["message_rate_per_s"]:
        return None
    time_us, rate = row["latency_us"], row["message_rate_per_s"]
    most = 2 * max(2, int(table.attributes.get("num_processes", 2)))
    if (
        rate * (time_us + ROUNDING) / 1e6 >= FEWEST_UNDER_WAY
        and rate * (time_us - ROUNDING) / 1e6 <= most
    ):
        return None
    return (
        f"the row contradicts itself: {rate:g} messages a second of {time_us:g} us each "
        f"are {rate * time_us / 1e6:.3g} under way at once"
    )


def describe_loss(table: Table) -> list[str]:
    """Return what was lost on the way of UDP, in words; nothing where all arrived."""
    lost, sent = (int(table.attributes.get(name, 0)) for name in ("lost_datagrams", "datagrams"))
    if lost <= 0 or sent <= 0:
        return []
    return [f"{lost} of {sent} datagrams ({lost / sent:.2%}) were lost; only what arrived counts"]


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
