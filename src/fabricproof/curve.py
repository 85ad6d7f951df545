"""The shape of a curve over message size: a bound for every row, and the oddities worth naming.

The bound is the affine cost model of Hockney (R. W. Hockney, "The communication challenge for
MPP: Intel Paragon and Meiko CS-2", Parallel Computing 20 (1994) 389-398), t(n) = t0 + n / r_inf,
with t0 from the smallest message and r_inf from the reference of the plateau.  The eager protocol
needs one crossing; above its limit a rendezvous adds a request and an answer before the data
(MPICH, Open MPI and UCX all do), so a healthy row may cost up to three times t0.  A row slower
than that is slow for a reason of its own.
"""

from __future__ import annotations

from collections.abc import Iterator

from fabricproof.measure import Table
from fabricproof.reference import CURVE_TOLERANCE
from fabricproof.semantics import reading_of
from fabricproof.units import size_label

#: crossings before the last byte of a rendezvous message: request, answer, data.
RENDEZVOUS_CROSSINGS = 3

#: Only a message up to this size tells what one message costs before its bytes count: at 1 KiB
#: the bytes take 0.15 us at FDR and 8.7 us at 1 GbE, less than any stack's own time.
SMALL_MESSAGE_BYTES = 1024

#: A size whose healthy row, by the model, stays this fraction below the plateau cannot show it.
PLATEAU_FRACTION = 0.10

#: A bandwidth this fraction below the best of the smaller sizes is a dip worth naming.
DIP_FRACTION = 0.10

#: A flat stretch that then rises by this factor between neighbouring sizes is a step.
STEP_FACTOR = 1.5
FLAT_FACTOR = 1.15

#: Below this many MB/s the two printed decimals are too coarse to divide by (5 % at 0.10).
COARSE_MB_S = 0.10


def row_limit_us(message_size: int, smallest_us: float, plateau_mb_s: float) -> float:
    """Return the longest healthy time of one message, in us.

    Args:
        message_size: bytes, 0 or more.
        smallest_us: time per message at the smallest size, in us.
        plateau_mb_s: the reference of the plateau in MB/s (bytes per us), positive.
    """
    return RENDEZVOUS_CROSSINGS * smallest_us + message_size / plateau_mb_s


def smallest_message_us(table: Table) -> float | None:
    """Return the time per message at the small end of a bandwidth table, in us.

    A table that prints times says so itself; otherwise the first row whose bandwidth is not lost
    in the rounding is divided out.  None where no row tells.
    """
    for name in ("latency_us", "latency_avg_us", "latency_max_us"):
        if name in table.columns:
            return _first_crossing_us(table, name)
    for size, bandwidth in _bandwidth_rows(table):
        if bandwidth >= COARSE_MB_S and size > 0:
            return size / bandwidth
    return None


def _first_crossing_us(table: Table, column: str) -> float | None:
    """Return the first row's time, or the next one's where an empty message crosses nothing."""
    times = table.column(column)
    is_empty = "message_size" in table.columns and table.column("message_size")[0] == 0
    if is_empty and not reading_of(table).empty_crosses:
        times = times[1:]
    return times[0] or None if times else None


def start_up_us(table: Table) -> float | None:
    """Return what a message costs before its bytes count, in us; None where no row is small."""
    sizes = table.column("message_size") if "message_size" in table.columns else ()
    if not sizes or sizes[0] > SMALL_MESSAGE_BYTES:
        return None
    return smallest_message_us(table)


def too_small_for_plateau(
    message_size: int, value_mb_s: float, start_us: float, plateau_mb_s: float
) -> bool:
    """Tell whether a healthy fabric, too, would show only about ``value_mb_s`` at this size.

    True where the model itself stays below the plateau at ``message_size`` and the value is not
    worse than the model allows: such a row says nothing about the plateau, either way.
    """
    healthy = max(message_size, 1) / row_limit_us(message_size, start_us, plateau_mb_s)
    shows_plateau = healthy >= plateau_mb_s * (1 - PLATEAU_FRACTION)
    return not shows_plateau and value_mb_s >= healthy / (1 + CURVE_TOLERANCE)


def describe_shape(table: Table) -> Iterator[str]:
    """Yield a sentence for each dip and step of a bandwidth curve.

    They are facts to read, no verdicts: protocol switches make both on healthy fabrics.
    """
    rows = list(_bandwidth_rows(table))
    best_size, best = 0, 0.0
    for index, (size, value) in enumerate(rows):
        if best > 0 and value < best * (1 - DIP_FRACTION):
            yield (
                f"dip: {size_label(size)} carries {value:g} MB/s, "
                f"{1 - value / best:.0%} less than {size_label(best_size)} ({best:g})"
            )
        if value > best:
            best_size, best = size, value
        if index >= 2 and _is_step(rows[index - 2][1], rows[index - 1][1], value):
            yield (
                f"step: {size_label(rows[index - 1][0])} carries {rows[index - 1][1]:g} MB/s, "
                f"{size_label(size)} {value:g} (x{value / rows[index - 1][1]:.2f})"
            )


def _is_step(before: float, last: float, value: float) -> bool:
    if before <= 0 or last <= 0:
        return False
    return last / before <= FLAT_FACTOR and value / last >= STEP_FACTOR


def _bandwidth_rows(table: Table) -> Iterator[tuple[int, float]]:
    if "bandwidth_mb_s" not in table.columns or "message_size" not in table.columns:
        return
    for size, value in zip(
        table.column("message_size"), table.column("bandwidth_mb_s"), strict=True
    ):
        yield int(size), value
