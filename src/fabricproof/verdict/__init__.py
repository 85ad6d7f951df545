"""The judge: pure, no files, no clock; tables, curves, references, likely causes."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fabricproof.physics import Fabric
    from fabricproof.verdict.value import Report

#: What other rooms may import beside this package itself.
FRONT: dict[str, str] = {
    "busbw": "bus bandwidth of GPUs against the rails of a node",
    "limits": "the bounds of a row, and rows that contradict themselves",
    "locality": "a rank near its rail and far from it",
    "references": "references that history wrote: a baseline, and what follows for a leg",
    "rings": "what the rings of HPCC must cross",
    "sharing": "how messages are shared among rails",
    "suspects": "likely causes",
    "table": "the verdict on a table",
    "value": "the verdict on one number, and what it is judged by",
}

__all__ = ["judge"]


def judge(
    text: str,
    fabric: Fabric | None = None,
    *,
    references: Iterable[str] = (),
    source: str = "<text>",
) -> Report:
    """Judge what a benchmark printed, as ``fabricproof judge`` does a file.

    Args:
        text: what OSU, IMB, perftest, iperf3, iperf, HPCC or nccl-tests printed, with
            whatever stood around it.
        fabric: what the path can carry; None where nobody says, then only what contradicts itself
            or a reference is red.
        references: what it should be, as ``"bandwidth=21 GB/s"`` or ``"latency_8B=1.5 us"``.
        source: what messages call the text.

    Returns:
        The quantities of all tables with the worst of their verdicts; what a reference asks for
        and the text does not hold is MISSING.

    Raises:
        ParseError: the text holds no table, or a damaged one: nothing of it is judged then.
        ConfigError: a reference is none, or a quantity has two; UnitError for its unit.
    """
    # Who needs one part of this room does not wait for the parsers.
    from fabricproof.benchmarks.parsers import parse_text  # noqa: PLC0415 - start-up time
    from fabricproof.core.measure import worst  # noqa: PLC0415 - start-up time
    from fabricproof.verdict.table import judge_table, unanswered  # noqa: PLC0415 - start-up time
    from fabricproof.verdict.value import (  # noqa: PLC0415 - start-up time
        Report,
        Rules,
        from_texts,
        missing,
    )

    given = from_texts(references, origin="given")
    rules = Rules(fabric=fabric, references=given)
    reports = [judge_table(table, rules) for table in parse_text(text, source)]
    absent = unanswered(given, [each for report in reports for each in report.quantities])
    if absent:
        reports.append(missing(absent, "a reference asks for it, and the text does not hold it"))
    return Report(
        verdict=worst([report.verdict for report in reports]),
        quantities=tuple(each for report in reports for each in report.quantities),
        findings=tuple(each for report in reports for each in report.findings),
    )
