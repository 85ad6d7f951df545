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
- ``-J`` writes the same as JSON.  It names one device of each process, which has ``nthreads`` times
  ``ngpus`` ranks (``parseRankInfo`` reads one line of each).
- Built without MPI, each process that a launcher starts is a run of its own, and all of them write
  rank 0 into one text.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from typing import Any

from fabricproof.benchmarks.parsers.grammar.chatter import check_chatter
from fabricproof.benchmarks.parsers.grammar.text import TextSection, shorten
from fabricproof.benchmarks.parsers.report import is_report, read_as_text
from fabricproof.benchmarks.program import UNNAMED
from fabricproof.core.measure import Table
from fabricproof.core.units import by_key

#: no line of the programs is longer
_LONGEST = 2048
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
    r"[ \t]*(?:# )?([nr]ccl)-tests:? [vV]ersion (\S+)(?: nccl-headers=\d+ nccl-library=\d+)?[ \t]*"
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
    r"[ \t]*# Avg bus bandwidth[ \t]*: (\d[0-9.]{0,17}(?:e[+-]\d\d)?)\b(?:[ \t]+(OK|FAILED))?"
)
#: a word of the header -> what stands below it
_WORDS = {
    "size": r"\d{1,18}", "count": r"\d{1,18}",
    "type": r"[a-z]\w{0,15}", "redop": r"[a-z]\w{0,15}", "root": r"-?\d{1,7}|N/A",
    **dict.fromkeys(("time", "cputime", "algbw", "busbw"), r"\d{1,12}(?:\.\d{1,2})?(?:e[+-]\d\d)?"),
    "#wrong": r"\d{1,15}(?:\.\d{1,6})?(?:e[+-]\d\d)?|N/A",
    "error": r"\d(?:\.\d+)?e[+-]\d\d\*?|N/A",
    "timestamp": r"\d{4}-\d\d-\d\d", "clock": r"\d\d:\d\d:\d\d",
    **dict.fromkeys(("i_min", "i_max", "i_p99", "i_cv%"), r"[0-9.e+-]{1,12}|nan"),
}  # fmt: skip
_PATTERNS = {word: re.compile(pattern) for word, pattern in _WORDS.items()}
#: of the words of one half of a row: its column, and what makes it MB/s
_COLUMNS = {
    "time": ("latency_avg_us", 1), "algbw": ("bandwidth_mb_s", 1e3),
    "busbw": ("bus_bandwidth_mb_s", 1e3), "#wrong": ("wrong_values", 1),
}  # fmt: skip

#: half the last digit of %.2f GB/s, in MB/s
ROUNDING_MB_S = 5.0

#: the printed mean is of numbers before they were rounded to two decimals
_MEAN_ROUNDING, _MEAN_SLACK = 0.006, 2e-3

Attributes = dict[str, str | int | float]


@dataclass(frozen=True, kw_only=True)
class _Row:
    """One row; ``size`` in bytes, ``key`` its type, operation and root.

    ``halves`` are out of place and in place, or in place alone: the numbers under their words, None
    for N/A.
    """

    index: int
    size: int
    key: tuple[tuple[str, str], ...]
    halves: tuple[dict[str, float | None], ...]


def parse(section: TextSection) -> tuple[Table, ...]:
    """Return two tables, out of place and in place, of each type, operation and root of a run.

    Raises:
        ParseError: the head, the last lines or a row is missing, a row is damaged, a column is
            unknown, or several runs wrote into one text.
    """
    if is_report(section):
        return read_as_text(section, _text_of, parse)
    start = next((at for at, line in enumerate(section.lines) if _HEADER.match(line)), None)
    if start is None:
        raise section.error(0, "a run without table", expected="'# size  count  type ...' below")
    head, steps = _head(section, start)
    rows, end = _rows(section, start)
    alike = [*by_key((row.key, row) for row in rows).values()]
    _check_count(section, start, steps, alike)
    _check_mean(section, rows, float(end.pop("mean")))
    return tuple(
        _table(section, start, own, half, head | end)
        for own in alike
        for half in range(len(own[0].halves))
    )


def _head(section: TextSection, start: int) -> tuple[Attributes, list[str]]:
    """Return what the head says, and least and most size, step and its kind."""
    found: Attributes = {"suite": "nccl-tests"}
    steps: list[str] = []
    ranks: list[tuple[int, str, str]] = []
    for index in range(start):
        line = section.lines[index][:_LONGEST]
        if rank := _RANK.match(line):
            ranks.append((int(rank[1]), rank[2] or "0", rank[3]))
        elif name := _NAME.fullmatch(line):
            found["program"] = name[1]
        elif version := _VERSION.fullmatch(line):
            found |= {"suite": f"{version[1]}-tests", "version": version[2]}
        elif run := _RUN.match(line):
            steps = [*run.groups()]
        elif steps and (less := _REDUCED.match(line)):
            steps[1] = less[1]
        elif _TORN.search(line):
            raise section.error(index, "a torn line", expected="the head of a run as it is printed")
    return found | _places(section, start, ranks), steps


def _places(section: TextSection, start: int, ranks: list[tuple[int, str, str]]) -> Attributes:
    """Return where the ranks ran, which have a number, a group and a host each.

    ``neighbours_elsewhere`` is how many ranks of the busiest node have their right-hand neighbour,
    to whom they send, on another.
    """
    if not ranks:
        return {}
    first = [host for number, _, host in ranks if number == 0]
    if len(first) > 1:
        problem = f"{len(first)} starts of rank 0 on {' and '.join(sorted({*first}))}"
        raise section.error(start, f"{problem}: built without MPI", expected="one run (make MPI=1)")
    if sorted(number for number, _, _ in ranks) != list(range(len(ranks))):
        last = max(number for number, _, _ in ranks)
        raise section.error(start, "a rank is missing", expected=f"ranks 0 to {last}")
    hosts = [host for _, _, host in sorted(ranks)]
    counts = Counter(hosts)
    away = Counter(
        host for host, after in zip(hosts, hosts[1:] + hosts[:1], strict=True) if host != after
    )
    return {
        "num_ranks": len(hosts),
        "num_nodes": len(counts),
        "ranks_per_node": max(counts.values()) if len({*counts.values()}) == 1 else 0,
        "neighbours_elsewhere": max(away.values(), default=0),
        "num_groups": len({group for _, group, _ in ranks}),
    }


def _rows(section: TextSection, start: int) -> tuple[list[_Row], Attributes]:
    """Return the rows, and what the last lines say: wrong values, and the mean busbw in GB/s."""
    words = section.lines[start].strip().removeprefix("#").split()
    unknown = [word for word in words if word not in _WORDS or word == "clock"]
    if unknown or not 1 <= words.count("busbw") == words.count("algbw") <= 2:
        got = repr(shorten(" ".join(unknown or words)))
        raise section.error(start, "unknown columns", expected="time algbw busbw #wrong", got=got)
    words += ["clock"] if "timestamp" in words else []
    rows: list[_Row] = []
    found: Attributes = {}
    for index, line in enumerate(section.lines[start + 1 :], start=start + 1):
        fields = line.split() if len(line) < _LONGEST and not found else []
        if len(fields) == len(words) and all(
            _PATTERNS[word].fullmatch(text) for word, text in zip(words, fields, strict=True)
        ):
            rows.append(_row(index, words, fields))
        elif outside := _OUTSIDE.fullmatch(line[:_LONGEST]):
            found["out_of_bounds"] = int(outside[1])
        elif found and (mean := _MEAN.match(line[:_LONGEST])):
            found["mean"] = float(mean[1])
            found |= {"own_minimum": mean[2]} if mean[2] else {}
        elif not found and (_RUN.match(line) or _HEADER.match(line) or " cycle." in line[:60]):
            raise section.error(index, "a second table", expected="one run below one title")
        else:
            check_chatter(section, index, f"{len(words)} columns ({' '.join(words)})")
    if "mean" not in found:
        last = "'# Out of bounds values : ...' and '# Avg bus bandwidth : ...' at the end"
        raise section.error(len(section.lines) - 1, "the output is cut", expected=last)
    return rows, found


def _row(index: int, words: list[str], fields: list[str]) -> _Row:
    begin = next(at for at, word in enumerate(words) if word in {"time", "cputime"})
    halves: list[dict[str, float | None]] = []
    for word, text in zip(words[begin:], fields[begin:], strict=True):
        if word in {"time", "cputime"}:
            halves.append({})
        if word in _COLUMNS or word == "error":
            halves[-1][word] = None if text == "N/A" else float(text.rstrip("*"))
    key = tuple(zip(words[2:begin], fields[2:begin], strict=True))
    return _Row(index=index, size=int(fields[0]), key=key, halves=tuple(halves))


def _check_count(
    section: TextSection, start: int, steps: list[str], alike: list[list[_Row]]
) -> None:
    """Check that each type, operation and root has a row for each step that the head announces."""
    if not steps or not alike:
        what = "'# nThread ... minBytes ... step: ...' above, and rows"
        raise section.error(start, "a table without its head or rows", expected=what)
    least, most, step = map(int, steps[:3])
    wanted = (most - least) // max(step, 1) + 1
    if steps[3] == "factor":
        wanted = sum(least * step**power <= most for power in range(64))
    for own in alike:
        sizes = [row.size for row in own]
        if len(own) != wanted or sizes != sorted(sizes):
            raise section.error(
                own[-1].index,
                "not the rows that the head announces",
                expected=f"{wanted} from {least} to {most} bytes",
                got=f"{len(own)} of {' '.join(value for _, value in own[0].key)}",
            )


def _check_mean(section: TextSection, rows: list[_Row], printed: float) -> None:
    """Check the mean of all busbw, which shows a lost or torn row."""
    values = [half["busbw"] or 0.0 for row in rows for half in row.halves]
    mean = sum(values) / len(values)
    # Large values are printed with one decimal or none.
    coarse = max(_MEAN_ROUNDING, 5e-4 * max(values))
    if abs(mean - printed) > coarse + _MEAN_SLACK * mean:
        raise section.error(
            rows[-1].index,
            "the mean is not that of the rows",
            expected=f"{mean:.6g}",
            got=f"{printed:g}",
        )


def _table(
    section: TextSection, start: int, rows: list[_Row], half: int, said: Attributes
) -> Table:
    values = [row.halves[half] for row in rows]
    checked = all(each.get("#wrong") is not None for each in values)
    placed = half == 0 and len(rows[0].halves) == 2
    words = [word for word in values[0] if word in _COLUMNS and (checked or word != "#wrong")]
    names = {"type": "datatype", "redop": "operation"}
    return Table(
        suite=str(said["suite"]),
        program=str(said.get("program", UNNAMED)),
        version=str(said["version"]) if "version" in said else None,
        columns=("message_size", *(_COLUMNS[word][0] for word in words)),
        rows=tuple(
            (row.size, *(_value(word, each[word] or 0.0) for word in words))
            for row, each in zip(rows, values, strict=True)
        ),
        source=section.source,
        line=section.first + start,
        row_lines=tuple(section.first + row.index for row in rows),
        attributes={
            **{key: value for key, value in said.items() if key not in _OF_TABLE},
            **{names.get(word, word): value for word, value in rows[0].key},
            "placement": "out-of-place" if placed else "in-place",
            "checked": int(checked or values[0].get("error") is not None),
            "bandwidth_rounding_mb_s": ROUNDING_MB_S,
        },
    )


def _value(word: str, number: float) -> float:
    value = number * _COLUMNS[word][1]
    return int(value) if word == "#wrong" else round(value, 2)


def _text_of(report: dict[str, Any]) -> list[str]:
    """Return the text of the run that a report of ``-J`` tells (``jsonKey`` in src/util.cu)."""
    if report["errors"]:
        raise ValueError(report["errors"])
    config, mean, results = report["config"], report["average_bus_bandwidth"], report["results"]
    kind = "factor" if "step_factor" in config else "bytes"
    least, most, step = (config[key] for key in ("minimum_bytes", "maximum_bytes", f"step_{kind}"))
    ranks = [
        (each["rank"] + more, each["group"], each["hostname"])
        for each in config["devices"]
        for more in range(config["nthreads"] * config["ngpus"])
    ]
    halves = [half for half in ("out_of_place", "in_place") if results[0][half]]
    time = "time" if "time" in results[0]["in_place"] else "cpu_time"
    head = [
        "size count type redop root",
        *[f"{time.replace('_', '')} algbw busbw #wrong"] * len(halves),
    ]
    rows = [
        [each["size"], each["count"], each["type"], each["redop"], each["root"].strip()]
        + [
            "N/A" if each[half][key] is None else f"{each[half][key]:.2f}"
            for half in halves
            for key in (time, "alg_bw", "bus_bw", "nwrong")
        ]
        for each in results
    ]
    return [
        f"# Collective test starting: {report['args'][0]}",
        f"# nThread 1 nGpus 1 minBytes {least} maxBytes {most} step: {step}({kind})",
        *(
            f"#  Rank {rank} Group {group} Pid 1 on {host} device 0 [0]"
            for rank, group, host in ranks
        ),
        f"# {' '.join(head)}",
        *(" ".join(map(str, row)) for row in rows),
        f"# Out of bounds values : {report['out_of_bounds']['count']} OK",
        f"# Avg bus bandwidth : {mean['bandwidth']:g} "
        + {"true": "OK", "false": "FAILED"}.get(mean["okay"], ""),
    ]
