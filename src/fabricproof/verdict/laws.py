"""What binds the numbers of a row together: a table that contradicts itself proves nothing.

:data:`LAWS` and :data:`ORDERS` say it as data; each is checked within what the printed digits
allow.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import cache
from itertools import pairwise, product
from typing import NamedTuple

from fabricproof.benchmarks.catalogue import program_of
from fabricproof.benchmarks.program import Consistency, Meaning
from fabricproof.core.measure import Table

#: column -> number, of one row
Row = Mapping[str, float]

#: half a unit in the last of two printed decimals
ROUNDING = 0.005

#: Relative difference that averaging over ranks and repetitions may leave between two columns.
RELATIVE_SLACK = 0.02

#: relative deviation that IMB allows, rounding of its two decimals on top; a wrong value counts 1
#: (TOL in src_c/IMB_declare.h, IMB_ddiff in src_c/IMB_chk_diff.c)
MOST_DEFECTS = 0.01 + ROUNDING

#: A receiver may count this fraction more per second than its sender, as each stops (with
#: ``--omit`` also starts) its own clock, with buffers in flight between them.
AHEAD_OF_SENDER = 0.25

#: A time and a rate are means over ranks and repetitions of their own (IMB-P2P); together they say
#: how many messages were under way, which is 1 or more by design.
FEWEST_UNDER_WAY = 0.5

#: Half the last digit of what is not printed with two decimals; ``duration_s`` as iperf 2's
#: coarsest.  Of the overlap, percentage points that the tools' own averaging may leave as well.
_HALF_DIGITS = {"message_size": 0.0, "moved_bytes": 0.0, "duration_s": 0.05, "overlap_percent": 2.0}

#: inputs that a formula divides by -> below which value they have too few digits for that
_DIVISORS = {
    "time_us": 2 * ROUNDING,
    "latency_avg_us": 1.0,
    "pure_communication_us": 1.0,
    "duration_s": 0.1,
}


class Law(NamedTuple):
    """A number of a row (``target``) that follows from others of it, or of the table's head.

    Attributes:
        formula: of ``inputs``; monotonic in each.  ``says`` is it in words.
        slack: relative difference that is no contradiction.
    """

    target: str
    inputs: tuple[str, ...]
    formula: Callable[..., float]
    says: str
    slack: float = RELATIVE_SLACK


def _overlap(formula: Callable[..., float]) -> Law:
    times = ("overall_us", "compute_us", "pure_communication_us")
    return Law("overlap_percent", times, formula, "overall, compute and communication", 0.0)


_RATE, _TIMED = "bandwidth_mb_s", ("message_size", "time_us")
_COUNTED, _MOVED = ("message_rate_per_s", "message_size"), ("moved_bytes", "duration_s")

#: what holds where its columns are, by the programs' rows in the catalogue or by suite
LAWS: Mapping[str, Law] = {
    Consistency.SIZE_OVER_TIME: Law(_RATE, _TIMED, lambda size, us: size / us, "size / time"),
    Consistency.TWICE_SIZE_OVER_TIME: Law(
        _RATE, _TIMED, lambda size, us: 2 * size / us, "2 x size / t_max"
    ),
    Consistency.FOUR_TIMES_SIZE_OVER_TIME: Law(
        _RATE, _TIMED, lambda size, us: 4 * size / us, "4 x size / t_max"
    ),
    Consistency.RATE_TIMES_SIZE: Law(
        _RATE, _COUNTED, lambda rate, size: rate * size / 1e6, "message rate x size"
    ),
    "iperf": (run := Law(_RATE, _MOVED, lambda moved, s: moved / 1e6 / s, "bytes / seconds")),
    "iperf3": run,
    # calculate_and_print_stats in util/osu_util_mpi.c
    "osu": _overlap(lambda overall, compute, pure: max(0, 100 - 100 * (overall - compute) / pure)),
    # IMB_display_times in src_c/IMB_output.c
    "imb": _overlap(
        lambda overall, compute, pure: (
            100 * max(0, min(1, (pure + compute - overall) / max(pure, compute)))
        )
    ),
}

#: what no row has the other way round, least first, and the relative slack between two of them
ORDERS: tuple[tuple[float, tuple[str, ...]], ...] = (
    (0.0, ("latency_min_us", "latency_avg_us", "latency_max_us")),
    (0.0, ("pure_communication_min_us", "pure_communication_us", "pure_communication_max_us")),
    (RELATIVE_SLACK, ("bandwidth_min_mb_s", "bandwidth_avg_mb_s", "bandwidth_max_mb_s")),
    (RELATIVE_SLACK, ("bandwidth_mb_s", "bandwidth_peak_mb_s")),
    (AHEAD_OF_SENDER, ("bandwidth_mb_s", "sent_mb_s")),
)

#: what is 0 only if nothing was measured
_COUNTS = ("repetitions", "num_pairs", "num_processes", "num_qps", "streams", "duration_s")


def wire_bytes(row: Row) -> int | None:
    """Return the bytes of a row's message that cross the wire; None if it has no message size.

    Of a derived datatype OSU sends the printed transmit size, out of a buffer of the printed size
    (``-D``, omb_ddt_append_stats in util/osu_util_mpi.c of 7.2).
    """
    size = row.get("transmit_size", row.get("message_size"))
    return None if size is None else int(size)


def rounding_mb_s(table: Table) -> float:
    """Return half the last printed digit of a bandwidth, in MB/s, where it is not two decimals."""
    return float(table.attributes.get("bandwidth_rounding_mb_s", 0.0))


def row_fault(table: Table, reading: Meaning, row: Row) -> str | None:
    """Return why a row proves nothing, or None: wrong bytes, nothing that ran, a broken law.

    Wrong bytes are a failed data validation at any size: ``-c`` of OSU, ``-DCHECK`` of IMB.
    """
    said = table.attributes
    defects = table.column("defects") if "defects" in table.columns else ()
    if said.get("validation", "Pass") != "Pass" or max(defects, default=0) > MOST_DEFECTS:
        return "the benchmark's own data validation failed: the bytes that arrived were wrong"
    facts = {name: float(each) for name, each in said.items() if not isinstance(each, str)}
    facts |= row
    if nothing := next((name for name in _COUNTS if facts.get(name) == 0), None):
        return f"the row contradicts itself: {nothing} is 0"
    program = program_of(table.suite, table.program)
    if program is not None and program.messages is not None and facts.get("num_processes") == 1:
        return "one process ran: its messages crossed nothing"
    if "message_size" in row:
        facts["message_size"] = wire_bytes(row) or 0
    for name in ("latency_max_us", "latency_us"):
        if name in row:
            facts["time_us"] = row[name]
    if not 0 <= facts.get("overlap_percent", 0) <= 100:
        return f"the row contradicts itself: an overlap of {facts['overlap_percent']:g} %"
    coarse = rounding_mb_s(table)
    laws = (LAWS[key] for key in (reading.consistency, table.suite) if key in LAWS)
    faults = (
        _order_fault(facts, table, coarse),
        _under_way_fault(facts),
        *(law_fault(law, facts, coarse) for law in laws),
    )
    return next(filter(None, faults), None)


def law_fault(law: Law, facts: Row, coarse_mb_s: float = 0.0) -> str | None:
    """Return how a row breaks a law, or None if it keeps it or lacks a number of it.

    ``coarse_mb_s`` is half the last digit of its bandwidths, in MB/s, beside two decimals.
    """
    if not {law.target, *law.inputs} <= facts.keys():
        return None
    if any(facts[name] < _DIVISORS.get(name, 0) for name in law.inputs):
        return None  # a time that is lost in rounding binds nothing
    halves = {name: _half_digit(name, facts[name], coarse_mb_s) for name in law.inputs}
    ends = product(*((facts[name] - half, facts[name] + half) for name, half in halves.items()))
    found = [law.formula(*each) for each in ends]
    half = _half_digit(law.target, facts[law.target], coarse_mb_s)
    low, high = min(found) * (1 - law.slack) - half, max(found) * (1 + law.slack) + half
    if low <= facts[law.target] <= high:
        return None
    return (
        f"the row contradicts itself: {law.says} make {(low + high) / 2:.4g} of {law.target}, "
        f"the table says {facts[law.target]:g}"
    )


def _half_digit(column: str, value: float, coarse_mb_s: float) -> float:
    if column == "message_rate_per_s" and value % 1 == 0:
        return 0.5
    return _HALF_DIGITS.get(column, ROUNDING) + coarse_mb_s * column.endswith("_mb_s")


@cache
def percentiles(columns: tuple[str, ...], kind: str) -> tuple[str, ...]:
    """Return the percentiles of ``latency`` or ``bandwidth``, least first; p999 is 99.9 %."""
    found = {name: match[1] for name in columns if (match := re.match(rf"{kind}_p(\d+)_", name))}
    return tuple(sorted(found, key=lambda name: (found[name] == "100", found[name].zfill(2))))


def _order_fault(facts: Row, table: Table, coarse_mb_s: float) -> str | None:
    """Return why a least, mean, percentile or most of a row is out of order, or None.

    Percentiles are of sorted times (omb_calculate_tail_lat in c/util/osu_util_mpi.c of OSU 7.4,
    print_report_lat of perftest).  OSU's least and most are those of ranks.
    """
    ranked = percentiles(table.columns, "latency")
    if table.suite == "perftest" and ranked:
        ranked = ("latency_min_us", *ranked, "latency_max_us")
    orders = (*ORDERS, (0.0, ranked), (RELATIVE_SLACK, percentiles(table.columns, "bandwidth")))
    for relative, order in orders:
        # a peak of 0.00 was not measured
        names = [name for name in order if name in facts and (facts[name] or "peak" not in name)]
        for less, more in pairwise(names):
            coarse = coarse_mb_s if less.endswith("_mb_s") else 0.0
            if facts[less] > facts[more] * (1 + relative) + 2 * (ROUNDING + coarse):
                return (
                    f"the row contradicts itself: {less} of {facts[less]:g} is above {more} of "
                    f"{facts[more]:g}"
                )
    return None


def _under_way_fault(facts: Row) -> str | None:
    time_us, rate = facts.get("latency_us"), facts.get("message_rate_per_s")
    if time_us is None or not rate:
        return None
    most = 2 * max(2, facts.get("num_processes", 2))
    fewest, many = (rate * (time_us + half) / 1e6 for half in (ROUNDING, -ROUNDING))
    if fewest >= FEWEST_UNDER_WAY and many <= most:
        return None
    return (
        f"the row contradicts itself: {rate:g} messages a second of {time_us:g} us each "
        f"are {rate * time_us / 1e6:.3g} under way at once"
    )
