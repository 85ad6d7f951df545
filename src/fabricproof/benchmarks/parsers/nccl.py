"""Read what nccl-tests and rccl-tests print: ``all_reduce_perf``, ``sendrecv_perf`` and their kin.

Grammar from NVIDIA/nccl-tests, src/util.cu of 2.19.6 (``writeDeviceReport``, ``writeResultHeader``,
``writeBenchmarkLine*``, ``writeResultFooter``), src/common.cu of v2.13.9 and v2.17.0, and
ROCm/rccl-tests, src/common.cu.

- GB/s are 10^9 bytes per second (``baseBw`` in the ``*GetBw`` functions).
- The time is the mean over ranks of one operation, ``algbw`` is size / time, ``busbw`` that times a
  factor of the operation and the number of ranks.
- ``#wrong`` counts wrong values, N/A: not checked.  What is older than 2.12 has another column.
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
from itertools import product
from typing import Any

from fabricproof.benchmarks.parsers.report import is_report, read_as_text
from fabricproof.benchmarks.parsers.sections import (
    Attributes,
    Column,
    RowShape,
    TextSection,
    check_chatter,
    shorten,
)
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
#: a word of the header -> what stands below it, with its column if that is a number of ours
_SIZE, _TIME = r"\d{1,18}", r"\d{1,12}(?:\.\d{1,2})?(?:e[+-]\d\d)?"
_COLUMNS = {
    "size": Column("message_size", _SIZE, int),
    "time": Column("latency_avg_us", _TIME, float),
    "algbw": Column("bandwidth_mb_s", _TIME, lambda text: round(float(text) * 1e3, 2)),
    "busbw": Column("bus_bandwidth_mb_s", _TIME, lambda text: round(float(text) * 1e3, 2)),
    "#wrong": Column(
        "wrong_values", r"(?:\d{1,15}(?:\.\d{1,6})?(?:e[+-]\d\d)?|N/A)",
        lambda text: -1 if text == "N/A" else int(float(text)),
    ),
    **{
        word: Column(word, pattern, None)
        for word, pattern in {
            "count": _SIZE, "type": r"[a-z]\w{0,15}", "redop": r"[a-z]\w{0,15}",
            "root": r"(?:-?\d{1,7}|N/A)", "cputime": _TIME,
            "timestamp": r"\d{4}-\d\d-\d\d", "clock": r"\d\d:\d\d:\d\d",
            **dict.fromkeys(("i_min", "i_max", "i_p99", "i_cv%"), r"(?:[0-9.e+-]{1,12}|nan)"),
        }.items()
    },
}  # fmt: skip
_NAMES = {"type": "datatype", "redop": "operation"}
_PLACES = ("out-of-place", "in-place")

#: half the last digit of %.2f GB/s, in MB/s
ROUNDING_MB_S = 5.0

#: the printed mean is of numbers before they were rounded to two decimals
_MEAN_ROUNDING, _MEAN_SLACK = 0.006, 2e-3


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
    suite, name, version, said, steps = _head(section, start)
    words = _words(section, start)
    shape = RowShape([_COLUMNS[word] for word in words])
    found, mean, end = _rows(section, start, shape)
    keys = range(2, next(at for at, word in enumerate(words) if word in {"time", "cputime"}))
    cells = [section.lines[at].split() for at in found]
    alike = by_key((tuple(row[at] for at in keys), n) for n, row in enumerate(cells))
    _check_steps(section, start, steps, [[found[n] for n in own] for own in alike.values()])
    rows = shape.read(section, found)
    busbw = [at for at, name in enumerate(shape.columns) if name == "bus_bandwidth_mb_s"]
    values = [row[at] / 1e3 for row in rows for at in busbw]
    average = sum(values) / len(values)
    # Large values are printed with one decimal or none.
    if abs(average - mean) > max(_MEAN_ROUNDING, 5e-4 * max(values)) + _MEAN_SLACK * average:
        what = f"a mean of {average:.6g} GB/s"
        raise section.error(found[-1], "the mean is not that of the rows", expected=what)
    width = (len(shape.columns) - 1) // len(busbw)
    tables = []
    for (key, own), (place, half) in product(
        alike.items(), zip(_PLACES[-len(busbw) :], (1, 1 + width), strict=False)
    ):
        columns = shape.columns[half : half + width]
        numbers = [rows[n][half : half + width] for n in own]
        checked = columns[-1] == "wrong_values" and all(row[-1] >= 0 for row in numbers)
        kept = width if checked or columns[-1] != "wrong_values" else width - 1
        facts: Attributes = {
            _NAMES.get(words[at], words[at]): word for at, word in zip(keys, key, strict=True)
        }
        facts |= {"placement": place, "checked": int(checked)}
        tables.append(
            Table(
                suite=suite,
                program=name,
                version=version,
                columns=("message_size", *columns[:kept]),
                rows=tuple((rows[n][0], *row[:kept]) for n, row in zip(own, numbers, strict=True)),
                source=section.source,
                line=section.first + start,
                row_lines=tuple(section.first + found[n] for n in own),
                attributes=said | end | facts | {"bandwidth_rounding_mb_s": ROUNDING_MB_S},
            )
        )
    return tuple(tables)


def _head(section: TextSection, start: int) -> tuple[str, str, str | None, Attributes, list[str]]:
    """Return suite, program, version, where ranks ran, and least and most size, step, its kind."""
    suite, program, release = "nccl-tests", UNNAMED, None
    steps: list[str] = []
    ranks: list[tuple[int, str, str]] = []
    for index in range(start):
        line = section.lines[index][:_LONGEST]
        if rank := _RANK.match(line):
            ranks.append((int(rank[1]), rank[2] or "0", rank[3]))
        elif name := _NAME.fullmatch(line):
            program = name[1]
        elif version := _VERSION.fullmatch(line):
            suite, release = f"{version[1]}-tests", version[2]
        elif run := _RUN.match(line):
            steps = [*run.groups()]
        elif steps and (less := _REDUCED.match(line)):
            steps[1] = less[1]
        elif _TORN.search(line):
            raise section.error(index, "a torn line", expected="the head of a run as it is printed")
    return suite, program, release, _places(section, start, ranks), steps


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
    unknown = [word for word in words if word not in _COLUMNS or word == "clock"]
    halves = words.count("busbw")
    if unknown or not 1 <= halves == words.count("algbw") <= 2 or words[0] != "size":
        got = repr(shorten(" ".join(unknown or words)))
        raise section.error(start, "unknown columns", expected="time algbw busbw #wrong", got=got)
    return [*words, "clock"] if "timestamp" in words else words


def _rows(section: TextSection, start: int, shape: RowShape) -> tuple[list[int], float, Attributes]:
    """Return the rows' indexes, the mean busbw in GB/s, and what else the last lines say."""
    found: list[int] = []
    said: Attributes = {}
    mean = None
    for index in range(start + 1, len(section.lines)):
        line = section.lines[index][:_LONGEST]
        if not said and shape.is_row(line):
            found.append(index)
        elif outside := _OUTSIDE.fullmatch(line):
            said["out_of_bounds"] = int(outside[1])
        elif said and (last := _MEAN.match(line)):
            mean = float(last[1])
            said |= {"own_minimum": last[2]} if last[2] else {}
        else:
            check_chatter(section, index, shape.describe())
    if mean is None:
        what = "'# Out of bounds values : ...' and '# Avg bus bandwidth : ...' at the end"
        raise section.error(len(section.lines) - 1, "the output is cut", expected=what)
    return found, mean, said


def _check_steps(
    section: TextSection, start: int, steps: list[str], alike: list[list[int]]
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
        sizes = [int(section.lines[at].split(maxsplit=1)[0]) for at in own]
        if len(own) != wanted or sizes != sorted(sizes):
            problem, what = "not the rows that the head announces", f"{wanted} of {least} to {most}"
            raise section.error(own[-1], problem, expected=f"{what} bytes", got=f"{len(own)}")


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
