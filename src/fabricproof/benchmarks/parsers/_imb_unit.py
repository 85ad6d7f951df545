"""Which megabyte a table of the Intel MPI Benchmarks means by "Mbytes/sec".

Since 2018.0 it is 10^6 bytes (``MEGA = 1.0/1e6`` in IMB_display_times, src/IMB_output.c of tag
v2018.0); IMB 3 and 4 took 2^20 (``MEGA = 1.0/1048576.0`` in the same function).  For releases
between, and for a table pasted without its header, the numbers themselves tell: a bandwidth is
the size over the time printed beside it, times a power of two (1 PingPong, 2 Sendrecv, 4
Exchange), or the size times the message rate.
"""

from __future__ import annotations

import math
import re
from dataclasses import replace

from fabricproof.core.measure import Table

_DECIMAL_SINCE = 2018
_BINARY_UNTIL = 4
#: log2(2^20 / 10^6): how far a binary megabyte moves the ratio between two powers of two.
_SHIFT = math.log2(1.048576)
#: a bandwidth of at least this many MB/s, and a time of at least this many us, carry enough
#: digits to tell 1 from 1.048576.
_CLEAR_MB_S = 10.0
_CLEAR_US = 5.0


def with_unit(table: Table) -> Table:
    """Return ``table`` with its bandwidth column named by the megabyte it is printed in."""
    if "bandwidth_mb_s" not in table.columns or not _is_binary(table):
        return table
    columns = tuple(
        "bandwidth_mib_s" if name == "bandwidth_mb_s" else name for name in table.columns
    )
    return replace(table, columns=columns)


def _is_binary(table: Table) -> bool:
    release = _release(table.version)
    if release is not None and release >= _DECIMAL_SINCE:
        return False
    if release is not None and release <= _BINARY_UNTIL:
        return True
    votes = [_row_is_binary(table, row) for row in table.rows]
    clear = [vote for vote in votes if vote is not None]
    return bool(clear) and sum(clear) * 2 > len(clear)


def _release(version: str | None) -> int | None:
    match = re.match(r"[0-9]{1,4}", version or "")
    return int(match[0]) if match else None


def _row_is_binary(table: Table, row: tuple[float, ...]) -> bool | None:
    """Tell by one row; None where its numbers have too few digits, or no time."""
    values = dict(zip(table.columns, row, strict=True))
    bandwidth = values["bandwidth_mb_s"]
    time = values.get("latency_us", values.get("latency_max_us"))
    rate = values.get("message_rate_per_s")
    if bandwidth < _CLEAR_MB_S:
        return None
    if rate:
        ratio = values["message_size"] * rate / 1e6 / bandwidth
    elif time and time >= _CLEAR_US:
        ratio = values["message_size"] / time / bandwidth
    else:
        return None
    shift = math.log2(ratio) % 1 if ratio > 0 else 0.0
    return abs(shift - _SHIFT) < min(shift, 1 - shift)
