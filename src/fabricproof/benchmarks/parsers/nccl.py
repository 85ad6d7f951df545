"""Read what nccl-tests and rccl-tests print: ``all_reduce_perf``, ``sendrecv_perf`` and their kin.

Grammar from NVIDIA/nccl-tests, src/util.cu of 2.19.6 (``writeDeviceReport``, ``writeResultHeader``,
``writeBenchmarkLine*``, ``writeResultFooter``), src/common.cu of v2.9.0, v2.13.9 and v2.17.0, and
ROCm/rccl-tests, src/common.cu.

- GB/s are 10^9 bytes per second (``baseBw`` in the ``*GetBw`` functions).
- The time is the mean over ranks of one operation, ``algbw`` is size / time, ``busbw`` that times a
  factor of the operation and the number of ranks.
- ``#wrong`` counts wrong values; before 2.12 ``error`` is their largest deviation, and the line
  ``Out of bounds values`` counts those beyond their limit.  N/A: not checked.
- ``NCCL_TESTS_MIN_BW`` sets a minimum of the mean, behind which OK or FAILED stands then.
- The last lines are the number of wrong values and the mean of all ``busbw``; without them, or with
  another mean than that of the rows, the output is cut.
- Since 2.17 the program prints its name; before that it shows in no line of its own.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from itertools import pairwise

from fabricproof.benchmarks.parsers.sections import TextSection, check_chatter, shorten
from fabricproof.benchmarks.program import UNNAMED
from fabricproof.core.measure import Table
from fabricproof.core.units import by_key

#: no line of the programs is longer; no run has more rows of one kind
_LONGEST, _MOST_ROWS = 2048, 100_000

#: what the head says and a table has fields for
_OF_TABLE = frozenset({"suite", "program", "version"})

_HEADER = re.compile(r"[ \t]*#[ \t]*size[ \t]+count[ \t]+type\b")
_RUN = re.compile(
    r"[ \t]*# nThread \d+ nGpus \d+ minBytes (\d{1,18}) maxBytes (\d{1,18})"
    r" step: (\d{1,18})\((factor|bytes)\)"
)
_REDUCED = re.compile(r"[ \t]*# Reducing maxBytes to (\d{1,18}) due to memory limitation")
#: built with MPI, a name may end so
_NAME = re.compile(r"[ \t]*# Collective test starting: (?:\S*/)?(\w+?)(?:_mpi)?[ \t]*")
_VERSION = re.compile(
    r"[ \t]*(?:# nccl-tests version (\S+)(?: nccl-headers=\d+ nccl-library=\d+)?"
    r"|(?P<rccl>rccl-tests: Version) (\S+))[ \t]*"
)
_RANK = re.compile(
    r"[ \t]*#[ \t]+Rank[ \t]+(\d{1,7})(?: Group[ \t]+(-?\d{1,7}))? Pid[ \t]+\d+ on[ \t]+(\S+)"
    r" device[ \t]+\d+ \[[^\]]*\]"
)
#: a piece of one of these lines, into which another process wrote
_TORN = re.compile(
    r"\bRank[ \t]+\d+ |\bPid[ \t]+\d+ on\b| device[ \t]+\d+ \[|cl-tests|s: Version|nccl-headers="
    r"|nccl-library=|Collective te|starting: \w+_perf"
)
_OUTSIDE = re.compile(r"[ \t]*# Out of bounds values[ \t]*: (\d{1,18}) (?:OK|FAILED)[ \t]*")
_MEAN = re.compile(
    r"[ \t]*# Avg bus bandwidth[ \t]*: ([0-9.]{1,18}(?:e[+-]\d\d)?)\b(?:[ \t]+(OK|FAILED))?"
)
_NUMBER = r"\d{1,12}(?:\.\d{1,2})?(?:e[+-]\d\d)?"

#: a word of the header -> what stands below it
_WORDS = {
    "size": r"\d{1,18}",
    "count": r"\d{1,18}",
    "type": r"[a-z]\w{0,15}",
    "redop": r"[a-z]\w{0,15}",
    "root": r"-?\d{1,7}|N/A",
    "time": _NUMBER,
    "cputime": _NUMBER,
    "algbw": _NUMBER,
    "busbw": _NUMBER,
    "#wrong": r"\d{1,15}(?:\.\d{1,6})?(?:e[+-]\d\d)?|N/A",
    "error": r"\d(?:\.\d+)?e[+-]\d\d\*?|N/A",
    "timestamp": r"\d{4}-\d\d-\d\d",
    "clock": r"\d\d:\d\d:\d\d",
    **dict.fromkeys(("i_min", "i_max", "i_p99", "i_cv%"), r"[0-9.e+-]{1,12}|nan"),
}
_KEYS = {"type": "datatype", "redop": "operation"}
_PATTERNS = {word: re.compile(pattern) for word, pattern in _WORDS.items()}
#: of the words of one half of a row: its column, and what makes it MB/s
_COLUMNS = {
    "time": ("latency_avg_us", 1.0),
    "algbw": ("bandwidth_mb_s", 1e3),
    "busbw": ("bus_bandwidth_mb_s", 1e3),
    "#wrong": ("wrong_values", 1.0),
}

#: half the last digit of %.2f GB/s, in MB/s
ROUNDING_MB_S = 5.0

#: the printed mean is of numbers before they were rounded to two decimals
_MEAN_ROUNDING, _MEAN_SLACK = 0.006, 2e-3

Attributes = dict[str, str | int | float]


@dataclass(frozen=True, kw_only=True)
class _Row:
    """One row of a run; ``size`` is in bytes."""

    index: int
    size: int
    key: tuple[tuple[str, str], ...]
    halves: tuple[dict[str, str], ...]


def parse(section: TextSection) -> tuple[Table, ...]:
    """Return two tables, out of place and in place, of each type, operation and root of a run.

    Raises:
        ParseError: the head, the last lines or a row is missing, a row is damaged, or a column is
            unknown.
    """
    start = next((at for at, line in enumerate(section.lines) if _HEADER.match(line)), None)
    if start is None:
        raise section.error(0, "a run without table", expected="'# size  count  type ...' below")
    attributes = _attributes(section, start)
    words = _header(section, start)
    rows, end = _rows(section, start, words)
    attributes |= _end(section, end)
    _check_count(section, start, rows)
    _check_mean(section, end, rows, float(attributes.pop("mean")))
    return tuple(
        _table(section, start, own, half, attributes)
        for own in _alike(rows)
        for half in range(len(rows[0].halves))
    )


def _alike(rows: list[_Row]) -> list[list[_Row]]:
    """Return the rows of each type, operation and root."""
    return list(by_key((row.key, row) for row in rows).values())


def _header(section: TextSection, index: int) -> tuple[str, ...]:
    """Return the words of the header; a time stamp has two."""
    words = section.lines[index].strip().removeprefix("#").split()
    unknown = [word for word in words if word not in _WORDS or word == "clock"]
    halves = words.count("busbw")
    if unknown or not 1 <= halves == words.count("algbw") <= 2:
        got = repr(shorten(" ".join(unknown) or section.lines[index].strip()))
        raise section.error(index, "unknown columns", expected="time algbw busbw #wrong", got=got)
    return (*words, "clock") if "timestamp" in words else tuple(words)


def _rows(section: TextSection, start: int, words: tuple[str, ...]) -> tuple[list[_Row], int]:
    """Return the rows, and where the lines begin that end the run."""
    rows: list[_Row] = []
    for index in range(start + 1, len(section.lines)):
        line = section.lines[index]
        if _OUTSIDE.match(line):
            return rows, index
        if _RUN.match(line) or _HEADER.match(line) or " cycle." in line[:60]:
            raise section.error(index, "a second table", expected="one run below one title")
        fields = line.split() if len(line) < _LONGEST else []
        if len(fields) == len(words) and all(
            _PATTERNS[word].fullmatch(field) for word, field in zip(words, fields, strict=True)
        ):
            rows.append(_row(index, words, fields))
        else:
            check_chatter(section, index, f"{len(words)} columns ({' '.join(words)})")
    raise section.error(
        len(section.lines) - 1, "the output is cut", expected="'# Out of bounds values : ...' below"
    )


def _end(section: TextSection, start: int) -> Attributes:
    """Return the number of values beyond their limit and the mean of all busbw, in GB/s."""
    found: Attributes = {}
    for index in range(start, len(section.lines)):
        line = section.lines[index][:_LONGEST]
        if outside := _OUTSIDE.fullmatch(line):
            found["out_of_bounds"] = int(outside[1])
        elif mean := _MEAN.match(line):
            found["mean"] = _finite(mean[1])
            if mean[2]:
                found["own_minimum"] = mean[2]
        else:
            check_chatter(section, index, "nothing but the end of the run")
    if not {"out_of_bounds", "mean"} <= found.keys():
        raise section.error(
            start, "the output is cut", expected="'# Avg bus bandwidth : ...' at the end"
        )
    return found


def _finite(text: str) -> float:
    """Return a printed number; of a torn one that is none, a mean that no rows have."""
    try:
        return float(text)
    except ValueError:
        return -1.0


def _row(index: int, words: tuple[str, ...], fields: list[str]) -> _Row:
    begin = next(at for at, word in enumerate(words) if word in {"time", "cputime"})
    halves: list[dict[str, str]] = []
    for word, field in zip(words[begin:], fields[begin:], strict=True):
        if word in {"time", "cputime"}:
            halves.append({})
        halves[-1][word] = field
    key = tuple(zip(words[2:begin], fields[2:begin], strict=True))
    return _Row(index=index, size=int(fields[0]), key=key, halves=tuple(halves))


def _check_count(section: TextSection, start: int, rows: list[_Row]) -> None:
    """Check that each type, operation and root has a row for each step that the head announces."""
    run = next(filter(None, map(_RUN.match, section.lines[:start])), None)
    if run is None or not rows:
        what = "rows" if run else "'# nThread ... minBytes ... step: ...' above"
        raise section.error(start, "a table without its head or rows", expected=what)
    least, most, step = (int(run[number]) for number in (1, 2, 3))
    cut = next(filter(None, map(_REDUCED.match, section.lines[:start])), None)
    most = int(cut[1]) if cut else most
    grows = step > 1 if run[4] == "factor" else step > 0
    if not grows or (run[4] == "bytes" and (most - least) // step > _MOST_ROWS) or least < 1:
        raise section.error(
            start, "impossible steps of the message size", expected="steps that grow"
        )
    wanted, size = 0, least
    while size <= most:
        wanted, size = wanted + 1, size * step if run[4] == "factor" else size + step
    for own in _alike(rows):
        if len(own) != wanted:
            raise section.error(
                own[-1].index,
                "not as many rows as the head announces",
                expected=f"{wanted} from {least} to {most} bytes",
                got=f"{len(own)} of {' '.join(value for _, value in own[0].key)}",
            )
        if any(after.size < before.size for before, after in pairwise(own)):
            raise section.error(own[-1].index, "message sizes out of order", expected="growing")


def _check_mean(section: TextSection, index: int, rows: list[_Row], printed: float) -> None:
    """Check the mean of all busbw, which shows a lost or torn row."""
    values = [float(half["busbw"]) for row in rows for half in row.halves]
    mean = sum(values) / len(values)
    # Large values are printed with one decimal or none.
    coarse = max(_MEAN_ROUNDING, 5e-4 * max(values))
    if abs(mean - printed) > coarse + _MEAN_SLACK * mean:
        raise section.error(
            index, "the mean is not that of the rows", expected=f"{mean:.6g}", got=f"{printed:g}"
        )


def _attributes(section: TextSection, start: int) -> Attributes:
    """Return what the head says: where the ranks ran, and the suite with its version."""
    found: Attributes = {"suite": "nccl-tests"}
    hosts: dict[int, str] = {}
    groups = set()
    for index, line in enumerate(section.lines[:start]):
        if rank := _RANK.match(line[:_LONGEST]):
            hosts[int(rank[1])] = rank[3]
            groups.add(rank[2] or "0")
        elif name := _NAME.fullmatch(line[:_LONGEST]):
            found["program"] = name[1]
        elif version := _VERSION.fullmatch(line[:_LONGEST]):
            found["suite"] = "rccl-tests" if version["rccl"] else "nccl-tests"
            found["version"] = version[3] or version[1]
        elif _TORN.search(line[:_LONGEST]):
            raise section.error(index, "a torn line", expected="the head of a run as it is printed")
    if hosts and sorted(hosts) != list(range(len(hosts))):
        raise section.error(
            start, "a rank is missing", expected=f"ranks 0 to {max(hosts)} with their nodes"
        )
    counts = Counter(hosts.values())
    if hosts:
        found["num_ranks"], found["num_nodes"] = len(hosts), len(counts)
        found["ranks_per_node"] = max(counts.values()) if len({*counts.values()}) == 1 else 0
        # Ranks of the busiest node whose right-hand neighbour, to whom they send, is elsewhere.
        away = Counter(
            host for rank, host in hosts.items() if hosts[(rank + 1) % len(hosts)] != host
        )
        found["neighbours_elsewhere"] = max(away.values(), default=0)
        found["num_groups"] = len(groups)
    return found


def _table(
    section: TextSection, start: int, rows: list[_Row], half: int, attributes: Attributes
) -> Table:
    known = {name: value for name, value in attributes.items() if name not in _OF_TABLE}
    placed = len(rows[0].halves) == 2 and half == 0
    known["placement"] = "out-of-place" if placed else "in-place"
    known |= {_KEYS.get(word, word): value for word, value in rows[0].key}
    values = [row.halves[half] for row in rows]
    checked = all(each.get("#wrong", "N/A") != "N/A" for each in values)
    known["bandwidth_rounding_mb_s"] = ROUNDING_MB_S
    known["checked"] = int(checked or ("error" in values[0] and values[0]["error"] != "N/A"))
    words = [word for word in values[0] if word in _COLUMNS and (checked or word != "#wrong")]
    version = attributes.get("version")
    return Table(
        suite=str(attributes["suite"]),
        program=str(attributes.get("program", UNNAMED)),
        version=None if version is None else str(version),
        columns=("message_size", *(_COLUMNS[word][0] for word in words)),
        rows=tuple(
            (row.size, *(_value(word, each[word]) for word in words))
            for row, each in zip(rows, values, strict=True)
        ),
        source=section.source,
        line=section.first + start,
        row_lines=tuple(section.first + row.index for row in rows),
        attributes=known,
    )


def _value(word: str, text: str) -> float:
    value = float(text) * _COLUMNS[word][1]
    return int(value) if word == "#wrong" else round(value, 2)
