"""Read the matrix that ``osu_mbw_mr -V`` prints: sizes down, window sizes across.

Source: mpi/pt2pt/standard/osu_mbw_mr.c (mpi/pt2pt/osu_mbw_mr.c up to 6.x): a line of window sizes,
rows of MB/s, and, unless rates are off, "Message Rate Profile" with the same shape again.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from fabricproof.benchmarks.parsers._chatter import check_chatter
from fabricproof.benchmarks.parsers._osu_grammar import attributes_of
from fabricproof.benchmarks.parsers._rows import check_expected_sizes, check_next_size
from fabricproof.benchmarks.parsers._text import Section
from fabricproof.core.measure import Table

_WINDOWS = re.compile(r"[ \t]*#((?:[ \t]+[0-9]{1,9})+)[ \t]*")
_SIGN = re.compile(
    r"[ \t]*#[ \t]*(?:Uni-directional Bandwidth \(MB/sec\)|Message Rate Profile)[ \t]*"
)


@dataclass(frozen=True, kw_only=True)
class _Block:
    """One matrix: the line of window sizes, and a row per message size."""

    line: int
    windows: tuple[int, ...]
    sizes: tuple[int, ...]
    values: tuple[tuple[float, ...], ...]
    row_lines: tuple[int, ...]


def read_varied(
    section: Section, at: int, blank: Table, expected_sizes: Sequence[int] | None
) -> tuple[Table, ...]:
    """Return one table per window size, each with its ``window_size`` attribute.

    Raises:
        ParseError: a row is damaged or missing, or the rates are not those of the bandwidths.
    """
    starts = [
        index for index in range(at, len(section.lines)) if _WINDOWS.fullmatch(section.lines[index])
    ]
    if not 1 <= len(starts) <= 2:
        raise section.error(
            at - 1,
            "not the output of -V",
            expected="one or two lines of window sizes",
            got=f"{len(starts)}",
        )
    attributes = _read_between(section, at, starts[0])
    ends = [*starts[1:], len(section.lines)]
    blocks = [_read_block(section, *span) for span in zip(starts, ends, strict=True)]
    if any(
        (block.windows, block.sizes) != (blocks[0].windows, blocks[0].sizes) for block in blocks
    ):
        raise section.error(
            starts[-1], "the rates are cut", expected="the sizes of the bandwidths above"
        )
    first = blocks[0]
    check_expected_sizes(
        first.sizes, expected_sizes, source=section.source, line=first.row_lines[-1]
    )
    return tuple(
        _table(replace(blank, attributes={**blank.attributes, **attributes}), blocks, at)
        for at in range(len(first.windows))
    )


def _read_between(section: Section, start: int, end: int) -> dict[str, str | int | float]:
    attributes: dict[str, str | int | float] = {}
    for index in range(start, end):
        found = attributes_of(section.lines[index])
        attributes.update(found)
        if not found and not _SIGN.fullmatch(section.lines[index]):
            check_chatter(section, index, "a line of window sizes")
    return attributes


def _read_block(section: Section, start: int, end: int) -> _Block:
    windows = tuple(int(word) for word in section.lines[start].split()[1:])
    row = re.compile(
        r"[ \t]*([0-9]{1,18})" + r"[ \t]+([0-9]{1,18}\.[0-9]{2})" * len(windows) + r"[ \t]*"
    )
    sizes: list[int] = []
    values: list[tuple[float, ...]] = []
    row_lines: list[int] = []
    for index in range(start + 1, end):
        match = row.fullmatch(section.lines[index])
        if match is None:
            if not _SIGN.fullmatch(section.lines[index]):
                check_chatter(section, index, f"a size and {len(windows)} numbers")
            continue
        if sizes:
            check_next_size(section, index, sizes[-1], int(match[1]), steps=True)
        sizes.append(int(match[1]))
        values.append(tuple(float(value) for value in match.groups()[1:]))
        row_lines.append(section.first + index)
    if not sizes:
        raise section.error(start, "a table without rows", expected="a row per message size")
    return _Block(
        line=section.first + start,
        windows=windows,
        sizes=tuple(sizes),
        values=tuple(values),
        row_lines=tuple(row_lines),
    )


def _table(blank: Table, blocks: Sequence[_Block], window: int) -> Table:
    first = blocks[0]
    names = ("message_size", "bandwidth_mb_s", "message_rate_per_s")
    columns = (first.sizes, *(tuple(row[window] for row in block.values) for block in blocks))
    return replace(
        blank,
        columns=names[: len(columns)],
        rows=tuple(zip(*columns, strict=True)),
        line=first.line,
        row_lines=first.row_lines,
        attributes={**blank.attributes, "window_size": first.windows[window]},
    )
