"""fabricproof: proves that a cluster's interconnect performs as it should.

Three functions are for programs and notebooks of others; what they return is documented where it is
defined, and starts without numpy::

    from fabricproof import ceiling, judge, parse

    report = judge(text, "HDR100,pcie=3.0x16", references=["latency_8B=1.5 us"])
    report.verdict, report.quantities  # the worst of all; each with value, bounds and reason
    tables = parse(text)  # what the benchmark printed, in its own units
    ceiling("HDR100,pcie=3.0x16").high_mb_s  # nothing above it is possible
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fabricproof.core.measure import Table
    from fabricproof.physics import Ceiling, Fabric
    from fabricproof.verdict.value import Report

__version__ = "0.1.0"
__all__ = ["ceiling", "judge", "parse"]


def parse(text: str, source: str = "<text>") -> tuple[Table, ...]:
    """Return the tables in what a benchmark printed, as ``fabricproof parse`` does of a file.

    Args:
        text: what OSU, IMB, perftest, iperf3, iperf, HPCC or nccl-tests printed, with whatever
            stood around it.
        source: what messages call the text.

    Raises:
        ParseError: no table, or a damaged one.
    """
    from fabricproof.benchmarks.parsers import parse_text  # noqa: PLC0415 - start-up time

    return parse_text(text, source)


def ceiling(fabric: str | Fabric) -> Ceiling:
    """Return what a fabric can carry, in MB/s: every healthy system comes near ``low_mb_s``.

    Args:
        fabric: as ``--link`` states it, ``"FDR 4x,pcie=3.0x8,rails=2"``.

    Raises:
        ConfigError: no such link, or a value that cannot be.
    """
    from fabricproof.physics import bound  # noqa: PLC0415 - start-up time

    return bound(_stated(fabric))


def judge(
    text: str,
    fabric: str | Fabric | None = None,
    *,
    references: Iterable[str] = (),
    source: str = "<text>",
) -> Report:
    """Judge what a benchmark printed, as ``fabricproof judge`` does a file.

    Args:
        text: as of :func:`parse`.
        fabric: what the path can carry, as ``--link`` states it; None if unknown: then only what
            contradicts itself or a reference is red.
        references: what it should be, as ``"bandwidth=21 GB/s"`` or ``"latency_8B=1.5 us"``.
        source: what messages call the text.

    Returns:
        The quantities of all tables with the worst of their verdicts; what a reference asks for
        and the text does not hold is MISSING.

    Raises:
        ParseError: the text holds no table, or a damaged one: nothing of it is judged then.
        ConfigError: a fabric or a reference cannot be, or a quantity has two; UnitError for its
            unit.
    """
    from fabricproof.core.measure import worst  # noqa: PLC0415 - start-up time
    from fabricproof.verdict.references import from_texts  # noqa: PLC0415 - start-up time
    from fabricproof.verdict.table import judge_table, unanswered  # noqa: PLC0415 - start-up time
    from fabricproof.verdict.value import Report, Rules, missing  # noqa: PLC0415 - start-up time

    given = from_texts(references, origin="given")
    rules = Rules(fabric=None if fabric is None else _stated(fabric), references=given)
    reports = [judge_table(table, rules) for table in parse(text, source)]
    absent = unanswered(given, [each for report in reports for each in report.quantities])
    if absent:
        reports.append(missing(absent, "a reference asks for it, and the text does not hold it"))
    return Report(
        verdict=worst([report.verdict for report in reports]),
        quantities=tuple(each for report in reports for each in report.quantities),
        findings=tuple(each for report in reports for each in report.findings),
    )


def _stated(fabric: str | Fabric) -> Fabric:
    from fabricproof.physics.stated import fabric_from  # noqa: PLC0415 - start-up time

    return fabric_from(fabric) if isinstance(fabric, str) else fabric
