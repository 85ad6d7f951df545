"""Read what GPCNeT prints: network_test, and network_load_test with its impact factors.

From netbench/GPCNET 1.3: network_test.c and network_load_test.c (the tests and their order),
utils.c (``print_header``, ``print_results``, ``print_comparison_results``).

- MiB are 2^20 bytes, and a bandwidth is of each rank while all of them send.
- 99 % of the times are no longer than the one that is printed, of the bandwidths no less.
- The impact factor is made of the numbers as they are printed, with one decimal: a time beside the
  congestors over the one alone, a bandwidth alone over the one beside them.  It must be that, so
  that a torn digit is noticed.
- A build with -DVERBOSE prints other tables, which are refused.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from fabricproof.benchmarks.parsers.grammar.chatter import check_chatter, first_death
from fabricproof.benchmarks.parsers.grammar.text import TextSection
from fabricproof.core.measure import Table

#: a test, as rows name it -> message size in bytes, and whether it prints times
_TESTS: Mapping[str, tuple[int, bool]] = {
    "RR Two-sided Lat (8 B)": (8, True),
    "RR Get Lat (8 B)": (8, True),
    "RR Two-sided BW (131072 B)": (131072, False),
    "RR Put BW (131072 B)": (131072, False),
    "RR Two-sided BW+Sync (131072 B)": (131072, False),
    "Nat Two-sided BW (131072 B)": (131072, False),
    "Multiple Allreduce (8 B)": (8, True),
    "Multiple Alltoall (4096 B)": (4096, False),
}
#: those of network_load_test, in its order
_LOADED = (
    "RR Two-sided Lat (8 B)",
    "RR Two-sided BW+Sync (131072 B)",
    "Multiple Allreduce (8 B)",
)

_TITLE = re.compile(r"[ \t]*Network(Load)? Tests v(\d{1,3}\.\d{1,3})[ \t]*")
_RANKS = re.compile(r"[ \t]*Test with (\d{1,9}) MPI ranks \((\d{1,9}) nodes\)[ \t]*")
_VICTIMS = re.compile(r"[ \t]*(\d{1,9}) nodes running Network Tests[ \t]*")
_CONGESTORS = re.compile(
    r"[ \t]*(\d{1,9}) nodes running Congestion Tests \(min \d{1,9} nodes per congestor\)[ \t]*"
)
_NUMBER = r" {0,11}(\d{1,12}\.\d)"
_ROW = re.compile(rf"\| {{1,32}}(\S.{{0,30}}\S) \| {_NUMBER} \| {_NUMBER} \| +(usec|MiB/s/rank) \|")
_IMPACT = re.compile(r"\| {1,32}(\S.{0,30}\S) \| {0,20}(\d{1,17}\.\d)X \| {0,19}(\d{1,16}\.\d)X \|")
_BAR = re.compile(r"\+-+(?:\+-+)*\+")
_CELLS = re.compile(r"\|([^|]*\|)+")

#: what stands in a table and is no row: titles and heads, blanks joined
_ISOLATED, _BESIDE, _KEY = (
    "Isolated Network Tests",
    "Network Tests running with Congestion Tests",
    "Network Tests running with Congestion Tests - Key Results",
)
_HEADS = {
    _ISOLATED: ("Name|Avg|99%|Units",),
    _BESIDE: ("Name|Avg|99%|Units",),
    _KEY: ("Name|Congestion Impact Factor", "|Avg|99%"),
}

#: a printed factor is rounded to one decimal
_ROUNDING = 0.0501


@dataclass(frozen=True, kw_only=True)
class _Row:
    """A row: the index of its line, its name, and its two numbers."""

    index: int
    name: str
    numbers: tuple[float, float]


def parse(section: TextSection) -> tuple[Table, ...]:
    """Return a table of one row for each test of a run.

    Raises:
        ParseError: the run did not end, a table or a row is missing, damaged or there twice; a
            factor is not the one that its two numbers give.
    """
    at = first_death(section.lines)
    if at is not None:
        raise section.error(at, "the job ended badly", expected="a run that ended well")
    title = _TITLE.fullmatch(section.lines[0])
    if title is None:
        raise section.error(0, "a table without its title", expected="Network Tests v1.3 above it")
    is_loaded = title[1] is not None
    parts = (_ISOLATED, _BESIDE, _KEY) if is_loaded else (_ISOLATED,)
    rows = _rows(section, parts, _LOADED if is_loaded else tuple(_TESTS))
    said = _said(section, is_loaded)
    tables = []
    for number, alone in enumerate(rows[_ISOLATED]):
        columns, values = _columns(alone.name, alone.numbers, "")
        if is_loaded:
            beside, key = rows[_BESIDE][number], rows[_KEY][number]
            _check_impact(section, alone, beside, key)
            more, loaded = _columns(alone.name, beside.numbers, "loaded_")
            columns += (*more, "impact_avg", "impact_p99")
            values += (*loaded, *key.numbers)
        tables.append(
            Table(
                suite="gpcnet",
                program=alone.name.partition(" (")[0],
                version=title[2],
                columns=("message_size", *columns),
                rows=((float(_TESTS[alone.name][0]), *values),),
                source=section.source,
                line=section.first,
                row_lines=(section.first + alone.index,),
                attributes=said,
            )
        )
    return tuple(tables)


def _columns(
    name: str, numbers: tuple[float, float], before: str
) -> tuple[tuple[str, ...], tuple[float, ...]]:
    kind, unit = ("latency", "us") if _TESTS[name][1] else ("rank_bandwidth", "mib_s")
    return (f"{before}{kind}_avg_{unit}", f"{before}{kind}_p99_{unit}"), numbers


def _said(section: TextSection, is_loaded: bool) -> dict[str, str | int | float]:
    """Return what the head says of the run."""
    wanted = {"num_processes": (_RANKS, 1), "num_nodes": (_RANKS, 2)}
    if is_loaded:
        wanted |= {"victim_nodes": (_VICTIMS, 1), "congestor_nodes": (_CONGESTORS, 1)}
    found: dict[str, str | int | float] = {}
    for name, (pattern, group) in wanted.items():
        said = [match for line in section.lines if (match := pattern.fullmatch(line))]
        if len(said) != 1:
            raise section.error(0, "a damaged head", expected=f"one line with {name}", got="none")
        found[name] = int(said[0][group])
    return found


def _rows(
    section: TextSection, parts: Sequence[str], names: Sequence[str]
) -> dict[str, list[_Row]]:
    """Return the rows of each table, all of them and in their order."""
    found: dict[str, list[_Row]] = {}
    index = 1
    for part in parts:
        index = _begin(section, index, part)
        shape = _IMPACT if part == _KEY else _ROW
        found[part] = []
        for name in names:
            index = _next(section, index, name)
            found[part].append(_row(section, index, shape, name))
            # Each row is closed by a bar: a table that was cut behind a row lacks it.
            index = _next(section, index + 1, "the line below a row")
            if not _is_bar(section, index):
                raise section.error(index, "a damaged table", expected="the line below a row")
            index += 1
    _check_rest(section, index)
    return found


def _is_bar(section: TextSection, index: int) -> bool:
    line = section.lines[index].rstrip()
    return _BAR.fullmatch(line) is not None and len(line) == _WIDTH


#: of all tables, in characters
_WIDTH = 80


def _next(section: TextSection, index: int, expected: str) -> int:
    """Return the index of the next line of a table; what is none must be chatter."""
    while index < len(section.lines):
        line = section.lines[index].strip()
        if "|" in line or line.startswith("+"):
            return index
        check_chatter(section, index, f"a row of GPCNeT: {expected}")
        index += 1
    raise section.error(len(section.lines) - 1, "the output is cut", expected=expected)


def _begin(section: TextSection, index: int, part: str) -> int:
    """Return the index of the first line below the head of a table."""
    for head in (part, *_HEADS[part]):
        index = _next(section, index, part)
        while _BAR.fullmatch(section.lines[index].rstrip()):
            index = _next(section, index + 1, part)
        line = section.lines[index].strip()
        cells = "|".join(" ".join(each.split()) for each in line.strip("|").split("|"))
        if cells != head or _CELLS.fullmatch(line) is None:
            verbose = "Avg(Worst)" in line or "Isolated Congestion" in line
            problem = "tables of a build with -DVERBOSE" if verbose else "a damaged table"
            raise section.error(index, problem, expected=head)
        index += 1
    index = _next(section, index, part)
    if not _is_bar(section, index):
        raise section.error(index, "a damaged table", expected="the line below its head")
    return index + 1


def _row(section: TextSection, index: int, shape: re.Pattern[str], name: str) -> _Row:
    line = section.lines[index].rstrip()
    match = shape.fullmatch(line)
    if match is None or match[1] != name:
        raise section.error(index, "a damaged row", expected=name)
    numbers = float(match[2]), float(match[3])
    if shape is _ROW and (match[4] == "usec") != _TESTS[name][1]:
        raise section.error(index, "a row of another unit", expected=name)
    if shape is _ROW and min(numbers) <= 0:
        raise section.error(index, "no measurement", expected="numbers above 0")
    return _Row(index=index, name=name, numbers=numbers)


def _check_rest(section: TextSection, index: int) -> None:
    """Refuse a table behind the last one: a row that came twice, or another program's."""
    for at in range(index, len(section.lines)):
        line = section.lines[at].strip()
        if "|" in line or _BAR.fullmatch(line):
            raise section.error(at, "a line behind the last table", expected="the end")


def _check_impact(section: TextSection, alone: _Row, beside: _Row, key: _Row) -> None:
    is_time = _TESTS[alone.name][1]
    for one, other, printed in zip(alone.numbers, beside.numbers, key.numbers, strict=True):
        factor = other / one if is_time else one / other
        if abs(factor - printed) > _ROUNDING:
            raise section.error(
                key.index, "two parts of the output disagree", expected=f"{factor:.1f}X"
            )
