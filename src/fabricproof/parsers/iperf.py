"""Read the text that iperf 2 prints (client or server side).

The result is the last interval line from 0 on: the ``[SUM]`` line where there are several
streams, else the only stream's.  iperf 2 serves each stream by a thread of its own.

The clock of the sum stops before the last stream has ended (iperf 2.1.8: 2.16 s beside streams of
2.32 s, which made 199 Mb/s on a wire that carries 188), so where the streams show, the sum's bytes
are divided by the time of the longest.
"""

from __future__ import annotations

from collections.abc import Sequence

from fabricproof.measure import Table
from fabricproof.parsers._iperf_lines import Interval, asked_streams, read_intervals
from fabricproof.parsers._text import Section


def parse(section: Section, _: Sequence[int] | None = None) -> tuple[Table, ...]:
    """Return the one table, of one row, of a run of iperf 2.

    Raises:
        ParseError: there is no final line, the sum of several streams is missing, a stream is
            missing, a line is damaged, or the test failed.
    """
    intervals = read_intervals(section)
    whole = [interval for interval in intervals if interval.start == 0]
    if not whole:
        raise section.error(0, "no result", expected="an interval line from 0 on")
    end = max(interval.end for interval in whole)
    # Streams of one run end within a second of each other; an interval report ends earlier.
    final = {line.stream: line for line in whole if line.end > end - 1 or line.end > 0.9 * end}
    result, streams = _result(section, final)
    if intervals[-1].start > 0:
        raise section.error(
            intervals[-1].index, "the output is cut", expected="a line from 0 on after this one"
        )
    lasted = max(result.end, *(line.end for line in final.values()))
    columns: tuple[str, ...] = ("bandwidth_mb_s",)
    row: tuple[float, ...] = (result.rate_mb_s * result.end / lasted,)
    attributes: dict[str, str | int | float] = {
        "duration_s": lasted,
        "moved_bytes": result.moved_bytes,
    }
    if streams is not None:
        columns, row = ("num_streams", *columns), (streams, *row)
        attributes |= {"streams": streams, "threads": streams}
    line = section.first + result.index
    table = Table(
        suite="iperf",
        program="iperf",
        version=None,
        columns=columns,
        rows=(row,),
        source=section.source,
        line=line,
        row_lines=(line,),
        attributes=attributes,
    )
    return (table,)


def _result(section: Section, final: dict[str, Interval]) -> tuple[Interval, int | None]:
    """Return the line that holds the result, and the number of streams where it can be told."""
    streams = [name for name in final if not name.startswith("SUM")]
    asked = asked_streams(section)
    if asked is not None and streams and len(streams) != asked:
        last = max(line.index for line in final.values())
        raise section.error(last, "a stream is missing", expected=f"{asked} streams")
    total = final.get("SUM")
    if total is not None:
        return total, asked if asked is not None else len(streams) or None
    if len(streams) != 1 or (asked or 1) != 1:
        last = max(line.index for line in final.values())
        raise section.error(last, "the sum is missing", expected="a [SUM] line of all streams")
    return final[streams[0]], 1
