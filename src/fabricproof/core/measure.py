"""The records everything else speaks in: tables as tools print them, verdicts, quantities."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields
from enum import StrEnum
from types import MappingProxyType
from typing import Any

#: ending of a column's name -> its unit; a column with none of these is a count
_UNITS_OF_COLUMNS = {
    "_size": "B",
    "_mb_s": "MB/s",
    "_mib_s": "MiB/s",
    "_per_s": "1/s",
    "_us": "us",
    "_ms": "ms",
    "_percent": "%",
}

_NAMES_OF_COLUMNS = """
message_size transmit_size repetitions iterations num_pairs num_processes num_streams
bandwidth_mb_s bandwidth_mib_s bandwidth_min_mb_s bandwidth_avg_mb_s bandwidth_max_mb_s
bandwidth_peak_mb_s bus_bandwidth_mb_s natural_ring_bandwidth_mb_s random_ring_bandwidth_mb_s
message_rate_per_s transactions_per_s
latency_us latency_avg_us latency_min_us latency_max_us latency_stdev_us
natural_ring_latency_us random_ring_latency_us
overall_us compute_us init_us test_us wait_us
pure_communication_us pure_communication_min_us pure_communication_max_us
startup_min_ms startup_max_ms startup_avg_ms
overlap_percent cpu_util_percent loss_percent defects wrong_values
"""


#: names of the columns that a parsed table may have, in the glossary's words -> their units
COLUMNS: Mapping[str, str] = {
    name: next((unit for end, unit in _UNITS_OF_COLUMNS.items() if name.endswith(end)), "")
    for name in _NAMES_OF_COLUMNS.split()
}

#: a percentile over rounds, without its point: a column that :data:`COLUMNS` does not list
_PERCENTILE = re.compile(r"(?P<latency>latency_p[0-9]{1,4}_us)|bandwidth_p[0-9]{1,4}_mb_s")


def unit_of_column(name: str) -> str | None:
    """Return the unit of a column, empty for a count; None if no table has such a column."""
    if match := _PERCENTILE.fullmatch(name):
        return "us" if match["latency"] else "MB/s"
    return COLUMNS.get(name)


class Verdict(StrEnum):
    """What was decided about one quantity; nothing defaults to PASS.

    Order of badness, worst first: INVALID (the number cannot be what it claims), FAIL (below its
    reference), MISSING (due but not measured), UNJUDGED (measured, nothing to judge it by), PASS.
    SKIPPED stands apart: not due here, with a reason.
    """

    PASS = "PASS"  # noqa: S105 - a verdict, not a password
    FAIL = "FAIL"
    INVALID = "INVALID"
    UNJUDGED = "UNJUDGED"
    MISSING = "MISSING"
    SKIPPED = "SKIPPED"


#: worst first
BADNESS: tuple[Verdict, ...] = (
    Verdict.INVALID,
    Verdict.FAIL,
    Verdict.MISSING,
    Verdict.UNJUDGED,
    Verdict.SKIPPED,
    Verdict.PASS,
)


def worst(verdicts: list[Verdict]) -> Verdict:
    """Return the worst of ``verdicts``; of none, UNJUDGED: an empty list proves nothing.

    SKIPPED beside a PASS leaves the PASS (something was judged); SKIPPED alone stays SKIPPED.
    """
    if not verdicts:
        return Verdict.UNJUDGED
    judged = [verdict for verdict in verdicts if verdict is not Verdict.SKIPPED]
    return min(judged or verdicts, key=BADNESS.index)


@dataclass(frozen=True, kw_only=True)
class Quantity:
    """The verdict on one quantity, with everything it rests on.

    Attributes:
        name: the quantity, ``bandwidth_4MiB`` or ``latency_8B``.
        value: the measured value in ``unit``; None when it is MISSING.
        unit: ``MB/s`` or ``us``; ``ppm`` of errors.
        message_size: in bytes, None for quantities without one.
        reason: why, in one sentence.
        ceiling: the hard physical limit in ``unit`` (for latency a floor); None if unknown.
        reference: the value it was judged by; None if there is none.
        lower: smallest accepted value.
        upper: largest accepted value.
        origin: where the reference comes from, in words.
        source: the same as a word (:class:`fabricproof.verdict.value.Source`).
        named: whether a summary names it; else it is a point of the curve.
        disturbance: kind of what others did, if that explains why it is out of bounds.
        objections: kinds of objections that changed it after it was judged, as applied.
        is_open: its rounds were too few, or left open on which side of its bound it lies.
    """

    name: str
    value: float | None
    unit: str
    message_size: int | None
    verdict: Verdict
    reason: str
    ceiling: float | None = None
    ceiling_name: str | None = None
    reference: float | None = None
    lower: float | None = None
    upper: float | None = None
    origin: str | None = None
    source: str | None = None
    named: bool = True
    disturbance: str | None = None
    is_open: bool = False
    objections: tuple[str, ...] = ()

    def record(self) -> dict[str, Any]:
        """Return what stands of it in a flat record, by :data:`QUANTITY_KEYS`."""
        return {key: getattr(self, name) for name, key in QUANTITY_KEYS.items()}


#: what the keys of a quantity begin with in a flat record
QUANTITY_PREFIX = "quantity_"

#: field of a :class:`Quantity` -> its key in a flat record
QUANTITY_KEYS: Mapping[str, str] = MappingProxyType(
    {
        each.name: f"{QUANTITY_PREFIX}{each.name}"
        for each in fields(Quantity)
        if each.name != "objections"
    }
)


@dataclass(frozen=True, kw_only=True)
class Table:
    """One table of numbers as a benchmark printed it, whole, in the tool's own units.

    Attributes:
        suite: ``osu`` (the C programs), ``osu-mpi4py`` (the Python ports), ``imb``, ``iperf3``,
            ``iperf``, ``perftest``, ``hpcc``, ``nccl-tests`` or ``rccl-tests``.
        program: the OSU program (``osu_bw``) or IMB benchmark (``PingPong``).
        version: the suite's version as printed; None if the tool prints none.
        columns: names from :data:`COLUMNS`, in printed order.
        rows: one tuple per printed row, in printed order, as many numbers as columns.
        line: line of the column header in ``source``, from 1.
        row_lines: the line each row stands on, parallel to ``rows``.
        attributes: what the output says about the run beside the numbers: ``num_pairs``,
            ``window_size``, ``num_processes``, ``binary``, ``datatype``, ``mode`` ...
        unmeasured: message sizes in bytes that the tool gave up on -> its words (IMB: out-of-mem,
            time-out); they have no row.
    """

    suite: str
    program: str
    version: str | None
    columns: tuple[str, ...] = ()
    rows: tuple[tuple[float, ...], ...] = ()
    source: str = ""
    line: int = 0
    row_lines: tuple[int, ...] = ()
    attributes: Mapping[str, str | int | float] = field(default_factory=dict)
    unmeasured: Mapping[int, str] = field(default_factory=dict)

    @property
    def named_rows(self) -> list[dict[str, float]]:
        """The rows, each as column -> number."""
        return [dict(zip(self.columns, row, strict=True)) for row in self.rows]

    def first_of(self, names: Iterable[str]) -> str | None:
        """Return the first of ``names`` that is a column; None where none is."""
        return next((name for name in names if name in self.columns), None)

    def column(self, name: str) -> tuple[float, ...]:
        """Return the numbers of column ``name``, one per row; KeyError where there is none."""
        if name not in self.columns:
            raise KeyError(name)
        return tuple(row[self.columns.index(name)] for row in self.rows)
