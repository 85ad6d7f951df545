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
from collections.abc import Callable
from itertools import product
from typing import Any, NamedTuple

from fabricproof.benchmarks.parsers.report import is_report, read_as_text
from fabricproof.benchmarks.parsers.sections import Attributes, TextSection, check_chatter, shorten
from fabricproof.benchmarks.program import UNNAMED
from fabricproof.core.measure import Table
from fabricproof.core.units import by_key

#: no line of the programs is longer
_LONGEST = 2048

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
    r"[ \t]*# Avg bus bandwidth[ \t]*: (\d{1,12}(?:\.\d{1,9})?(?:e[+-]\d\d)?)"
    r"(?:[ \t]+(OK|FAILED)?|$)"
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
#: of the words of one half of a row: its column, and what makes our unit of its number
_COLUMNS: dict[str, tuple[str, Callable[[str], float]]] = {
    "time": ("latency_avg_us", float),
    "algbw": ("bandwidth_mb_s", lambda text: round(float(text) * 1e3, 2)),
    "busbw": ("bus_bandwidth_mb_s", lambda text: round(float(text) * 1e3, 2)),
    "#wrong": ("wrong_values", lambda text: int(float(text))),
}
_NAMES = {"type": "datatype", "redop": "operation"}
_PLACES = ("out-of-place", "in-place")

#: half the last digit of %.2f GB/s, in MB/s
ROUNDING_MB_S = 5.0

#: the printed mean is of numbers before they were rounded to two decimals
_MEAN_ROUNDING, _MEAN_SLACK = 0.006, 2e-3


class _Row(NamedTuple):
    at: int
    fields: tuple[str, ...]


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
    said, steps = _head(section, start)
    words = _words(section, start)
    rows, mean, end = _rows(section, start, words)
    halves = [at for at, word in enumerate(words) if word in {"time", "cputime"}]
    alike = by_key((row.fields[2 : halves[0]], row) for row in rows)
    _check(section, start, steps, [*alike.values()])
    names = [_NAMES.get(word, word) for word in words[2 : halves[0]]]
    busbw = [at for at, word in enumerate(words) if word == "busbw"]
    values = [float(row.fields[at]) for row in rows for at in busbw]
    found = sum(values) / len(values)
    # Large values are printed with one decimal or none.
    if abs(found - mean) > max(_MEAN_ROUNDING, 5e-4 * max(values)) + _MEAN_SLACK * found:
        what = f"a mean of {found:.6g} GB/s"
        raise section.error(rows[-1].at, "the mean is not that of the rows", expected=what)
    places = zip(_PLACES[-len(halves) :], halves, [*halves[1:], None], strict=True)
    tables = []
    for (key, own), (place, at, until) in product(alike.items(), places):
        facts = said | end | dict(zip(names, key, strict=True)) | {"placement": place}
        tables.append(_table(section, start, own, words[at:until], at, facts))
    return tuple(tables)


def _head(section: TextSection, start: int) -> tuple[Attributes, list[str]]:
    """Return what the head says, and least and most size, step and its kind."""
    found: Attributes = {"suite": "nccl-tests", "program": UNNAMED}
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


def _words(section: TextSection, start: int) -> list[str]:
    """Return the words of the header; a time stamp has two."""
    words = section.lines[start].strip().removeprefix("#").split()
    unknown = [word for word in words if word not in _WORDS or word == "clock"]
    if unknown or not 1 <= words.count("busbw") == words.count("algbw") <= 2:
        got = repr(shorten(" ".join(unknown or words)))
        raise section.error(start, "unknown columns", expected="time algbw busbw #wrong", got=got)
    return [*words, "clock"] if "timestamp" in words else words


def _rows(
    section: TextSection, start: int, words: list[str]
) -> tuple[list[_Row], float, Attributes]:
    """Return the rows, the mean busbw in GB/s, and what else the last lines say."""
    pattern = re.compile(
        r"[ \t]*" + r"[ \t]+".join(f"({_WORDS[word]})" for word in words) + r"[ \t]*"
    )
    rows: list[_Row] = []
    found: Attributes = {}
    mean = None
    for index in range(start + 1, len(section.lines)):
        line = section.lines[index][:_LONGEST]
        if not found and (row := pattern.fullmatch(line)):
            rows.append(_Row(index, row.groups()))
        elif outside := _OUTSIDE.fullmatch(line):
            found["out_of_bounds"] = int(outside[1])
        elif found and (last := _MEAN.match(line)):
            mean = float(last[1])
            found |= {"own_minimum": last[2]} if last[2] else {}
        else:
            check_chatter(section, index, f"{len(words)} columns ({' '.join(words)})")
    if mean is None:
        what = "'# Out of bounds values : ...' and '# Avg bus bandwidth : ...' at the end"
        raise section.error(len(section.lines) - 1, "the output is cut", expected=what)
    return rows, mean, found


def _check(section: TextSection, start: int, steps: list[str], alike: list[list[_Row]]) -> None:
    """Check that each type, operation and root has a row for each step that the head announces."""
    if not steps or not alike:
        what = "'# nThread ... minBytes ... step: ...' above, and rows"
        raise section.error(start, "a table without its head or rows", expected=what)
    least, most, step = map(int, steps[:3])
    wanted = (most - least) // max(step, 1) + 1
    if steps[3] == "factor":
        wanted = sum(least * step**power <= most for power in range(64))
    for own in alike:
        sizes = [int(row.fields[0]) for row in own]
        if len(own) != wanted or sizes != sorted(sizes):
            raise section.error(
                own[-1].at,
                "not the rows that the head announces",
                expected=f"{wanted} from {least} to {most} bytes",
                got=f"{len(own)}",
            )


def _table(
    section: TextSection,
    start: int,
    rows: list[_Row],
    words: list[str],
    at: int,
    said: Attributes,
) -> Table:
    """Return the table of one half, whose ``words`` begin ``at`` this field of a row."""
    check = [at + n for n, word in enumerate(words) if word in {"#wrong", "error"}]
    checked = bool(check) and all(row.fields[check[0]] != "N/A" for row in rows)
    used = [
        (at + n, *_COLUMNS[word])
        for n, word in enumerate(words)
        if word in _COLUMNS and (checked or word != "#wrong")
    ]
    return Table(
        suite=str(said.pop("suite")),
        program=str(said.pop("program")),
        version=str(said.pop("version", "")) or None,
        columns=("message_size", *(name for _, name, _ in used)),
        rows=tuple(
            (int(row.fields[0]), *(factor(row.fields[n]) for n, _, factor in used)) for row in rows
        ),
        source=section.source,
        line=section.first + start,
        row_lines=tuple(section.first + row.at for row in rows),
        attributes=said | {"checked": int(checked), "bandwidth_rounding_mb_s": ROUNDING_MB_S},
    )


def _text_of(report: dict[str, Any]) -> list[str]:
    """Return the text of the run that a report of ``-J`` tells (``jsonKey`` in src/util.cu).

    A report does not tell to what the largest size was reduced where memory was too small.
    """
    if report["errors"]:
        raise ValueError(report["errors"])
    config, mean, results = report["config"], report["average_bus_bandwidth"], report["results"]
    kind = "factor" if "step_factor" in config else "bytes"
    least, step = config["minimum_bytes"], config[f"step_{kind}"]
    num_sizes = max(
        Counter((each["type"], each["redop"], each["root"]) for each in results).values()
    )
    last = least * step ** (num_sizes - 1) if kind == "factor" else least + step * (num_sizes - 1)
    most = min(config["maximum_bytes"], last)
    places = [place for place in ("out_of_place", "in_place") if results[0][place]]
    time = "time" if "time" in results[0]["in_place"] else "cpu_time"
    half = f" {time.replace('_', '')} algbw busbw #wrong"
    lines = [
        f"# Collective test starting: {report['args'][0]}",
        f"# nThread 1 nGpus 1 minBytes {least} maxBytes {most} step: {step}({kind})",
    ]
    for each in config["devices"]:
        for rank in range(each["rank"], each["rank"] + config["nthreads"] * config["ngpus"]):
            group, host = each["group"], each["hostname"]
            lines.append(f"#  Rank {rank} Group {group} Pid 1 on {host} device 0 [0]")
    lines.append(f"# size count type redop root{half * len(places)}")
    for each in results:
        row = [str(each[key]) for key in ("size", "count", "type", "redop", "root")]
        for place in places:
            numbers = [each[place][key] for key in (time, "alg_bw", "bus_bw", "nwrong")]
            row += ["N/A" if number is None else f"{number:.2f}" for number in numbers]
        lines.append(" ".join(row))
    minimum = {"true": "OK", "false": "FAILED"}.get(mean["okay"], "")
    return [
        *lines,
        f"# Out of bounds values : {report['out_of_bounds']['count']} OK",
        f"# Avg bus bandwidth : {mean['bandwidth']:g} {minimum}",
    ]
