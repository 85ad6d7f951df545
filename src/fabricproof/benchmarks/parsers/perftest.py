"""Read what the programs of perftest print: ``ib_write_bw``, ``ib_read_lat`` and their kin.

Grammar and units from linux-rdma/perftest: ``RESULT_FMT*`` and ``REPORT_FMT*`` in
src/perftest_parameters.h, ``print_report_bw``, ``print_full_bw_report``, ``print_report_lat`` and
``ctx_print_test_info`` in src/perftest_parameters.c; the same in tags v4.5-0.2, v4.5-0.17 and
v4.5-0.20 and at commit 00b55b6 (July 2026).

- MB/sec means MiB/s: the report divides by ``0x100000`` unless ``--report_gbits`` makes it
  ``125000000`` (``format_factor``).  Since commit 1d202bb (March 2024) the header says MiB/sec.
- ``-b`` prints the sum of both directions, and says so in the title.
- A latency is half the round trip (``rtt_factor`` 2), of reads and atomics the whole (1).
- A peak of 0.00 was not measured.
- ``--run_infinitely`` prints a row of the same size every ``-D`` seconds until somebody stops it,
  and no ruler: ``run_iter_bw_infinitely`` in src/perftest_resources.c.  Its rows are one
  measurement: all messages over all the time.
- ``_imm`` in the title: each message carries an immediate value (``--write_with_imm``,
  ``--send_with_imm``), which changes no number's meaning.
- ``--use_cuda`` and its kin put this end's buffer on a GPU, which the lines above the title say;
  where the other end's is, no line does.
- ``--cpu_util`` appends the load of the CPU to each row (``RESULT_EXT_CPU_UTIL``).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from fabricproof.benchmarks.parsers.sections import (
    TextSection,
    check_chatter,
    check_next_size,
    shorten,
)
from fabricproof.core.measure import Table
from fabricproof.core.units import convert

_TITLE = re.compile(
    r"[ \t]*(?P<verb>Send|RDMA_Write|RDMA_Read|Atomic (?:CMP_AND_SWAP|FETCH_AND_ADD))"
    r"(?P<immediate>_imm)?"
    r"(?P<both> Bidirectional)?(?P<list> Post List)? (?P<kind>BW|Latency) Test[ \t]*"
)
_HEADER = re.compile(r"[ \t]*#bytes[ \t]+#iterations\b")
#: RESULT_LINE, which ends every table; launchers and libraries draw shorter ones
_RULE = re.compile(r"[ \t]*-{87}[ \t]*")
_FACT = re.compile(r" ?([A-Za-z][\w* .]{2,17}?)[ \t]*: (\S.*?)(?:(?:\t|[ ]{2,})[ \t]*|$)")
#: an end of a queue pair, with its GID below where it has one (print_pair_data)
_END = re.compile(r"[ \t]*(local|remote) address:[ \t]*LID (\w{1,8})")
_GID = re.compile(r"[ \t]*GID:[ \t]*([0-9a-fA-F:]{1,80})")
_FAILED = re.compile(
    r"[ \t]*(?:Failed to|Unable to|Couldn't|Completion with error|Problems with|Error\b|"
    r"Failed status|Did not detect|Test exited|Found Incompatibility)"
)

#: a heading of the table -> column, unit it is printed in, decimals (both counts are whole)
_HEADINGS: dict[str, tuple[str, str, str]] = {
    "#bytes": ("message_size", "", ""),
    "#iterations": ("iterations", "", ""),
    **{
        f"BW {word}[{unit}/sec]": (column, {"Gb": "Gb/s"}.get(unit, "MiB/s"), "2,6")
        for word, column in (("peak", "bandwidth_peak_mb_s"), ("average", "bandwidth_mb_s"))
        for unit in ("MB", "MiB", "Gb")
    },
    "MsgRate[Mpps]": ("message_rate_per_s", "Mpps", "6"),
    "t_min[usec]": ("latency_min_us", "us", "2"),
    "t_max[usec]": ("latency_max_us", "us", "2"),
    "t_typical[usec]": ("latency_p50_us", "us", "2"),
    "t_avg[usec]": ("latency_avg_us", "us", "2"),
    "t_stdev[usec]": ("latency_stdev_us", "us", "2"),
    "99% percentile[usec]": ("latency_p99_us", "us", "2"),
    "99.9% percentile[usec]": ("latency_p999_us", "us", "2"),
    "tps average": ("transactions_per_s", "1/s", "2"),
    "CPU_Util[%]": ("cpu_util_percent", "%", "2"),
}
_HEADING = re.compile("|".join(re.escape(name) for name in sorted(_HEADINGS, key=len)[::-1]))

_VERBS = {"Send": "send", "RDMA_Write": "write", "RDMA_Read": "read"}

#: How what a run says of the memory of its GPU begins, above its title -> whose that is
#: (src/*_memory.c; before them pp_init_gpu in src/perftest_resources.c).
ACCELERATORS = {
    "initializing CUDA": "CUDA",
    "cuMemAlloc() of a": "CUDA",
    "Using ROCm Device with ID": "ROCM",
    "initializing MUSA": "MUSA",
    "initializing MLU": "MLU",
    "NEURON_RT_VISIBLE_CORES is": "NEURON",
}
ACCELERATOR = "|".join(map(re.escape, ACCELERATORS))
#: of --cuda_mem_type=4
_ON_HOST = "Host allocation selected"

#: half the last of two digits of --report_gbits, in MB/s
GBITS_ROUNDING_MB_S = 0.625

Attributes = dict[str, str | int | float]


@dataclass(frozen=True, kw_only=True)
class _Shape:
    """The columns of one table, the pattern of its rows, and the units they are printed in."""

    columns: tuple[str, ...]
    units: tuple[str, ...]
    pattern: re.Pattern[str]

    def read(self, row: re.Match[str]) -> tuple[float, ...]:
        return tuple(map(_value, row.groups(), self.units))


def parse(section: TextSection) -> tuple[Table, ...]:
    """Return the one table of a run.

    Raises:
        ParseError: the title, the ruler at the end or a size is missing, a row is damaged, a
            column is unknown (dual port, QoS), or the tool reports an error.
    """
    title, at = _title(section)
    start = _header(section, at)
    shape = _shape(section, start)
    rows, lines = _rows(section, start, shape)
    attributes = _attributes(section, title, start, shape) | _accelerator(section, at)
    if _is_endless(shape, rows):
        attributes |= _spread(shape, rows)
        rows, lines = [_whole_run(shape, rows)], lines[-1:]
    table = Table(
        suite="perftest",
        program=_program(title),
        version=None,
        columns=shape.columns,
        rows=tuple(rows),
        source=section.source,
        line=section.first + start,
        row_lines=tuple(section.first + index for index in lines),
        attributes=attributes,
    )
    return (table,)


def _program(title: re.Match[str]) -> str:
    kind = "bw" if title["kind"] == "BW" else "lat"
    return f"ib_{_VERBS.get(title['verb'], 'atomic')}_{kind}"


def _title(section: TextSection) -> tuple[re.Match[str], int]:
    """Return the title, and where it stands: below what the run says of its GPU."""
    for index, line in enumerate(section.lines):
        if title := _TITLE.fullmatch(line):
            return title, index
        if _HEADER.match(line):
            break
        _check_other(section, index, "the title")
    raise section.error(0, "a table without title", expected="'RDMA_Write BW Test' above it")


def _accelerator(section: TextSection, title: int) -> Attributes:
    """Return whose GPUs have this end's buffers; nothing where they are in the host's memory."""
    above = [line.strip("# \t") for line in section.lines[:title]]
    if not above or any(line.startswith(_ON_HOST) for line in above):
        return {}
    known = (name for word, name in ACCELERATORS.items() if above[0].startswith(word))
    return {"accelerator": next(known, "GPU")}


def _header(section: TextSection, title: int) -> int:
    """Return where the header stands, after nothing but facts of the run."""
    for index, line in enumerate(section.lines[title + 1 :], start=title + 1):
        if _HEADER.match(line):
            return index
        _check_other(section, index, "the header of the table")
    raise section.error(0, "a run without table", expected="' #bytes     #iterations ...' below")


def _check_other(section: TextSection, index: int, expected: str) -> None:
    line = section.lines[index][:200]
    if _FAILED.match(line):
        raise section.error(index, "the test failed", expected="a test that ended well")
    if _HEADER.match(line):
        raise section.error(index, "a second header", expected="one table below one title")
    check_chatter(section, index, expected)


def _shape(section: TextSection, index: int) -> _Shape:
    line = section.lines[index]
    names = _HEADING.findall(line)
    unknown = _HEADING.sub(" ", line).split()
    unknown += sorted({name for name in names if names.count(name) > 1})
    if unknown:
        raise section.error(
            index,
            "unknown columns",
            expected="those of one port and one flow",
            got=repr(shorten(" ".join(unknown))),
        )
    known = [_HEADINGS[name] for name in names]
    fields = [_field(decimals) for _, _, decimals in known]
    return _Shape(
        columns=tuple(column for column, _, _ in known),
        units=tuple(unit for _, unit, _ in known),
        pattern=re.compile("[ \t]*" + "[ \t]+".join(fields) + "[ \t]*"),
    )


def _field(decimals: str) -> str:
    if not decimals:
        return "([0-9]{1,18})"
    # Below 0.1 Gb/s all columns have six digits after the point (REPORT_FMT_EXT).
    point = "(?:[0-9]{2}|[0-9]{6})" if decimals == "2,6" else f"[0-9]{{{decimals}}}"
    return rf"([0-9]{{1,12}}\.{point})"


def _value(text: str, unit: str) -> float:
    if not unit:
        return int(text)
    if unit == "Mpps":
        return round(float(text) * 1e6)
    return convert(float(text), unit, "MB/s") if unit in {"MiB/s", "Gb/s"} else float(text)


def _rows(
    section: TextSection, start: int, shape: _Shape
) -> tuple[list[tuple[float, ...]], list[int]]:
    """Return the rows up to the ruler, and the index of each line; check what follows."""
    rows: list[tuple[float, ...]] = []
    lines: list[int] = []
    expected = f"{len(shape.columns)} columns ({', '.join(shape.columns)})"
    for index in range(start + 1, len(section.lines)):
        row = shape.pattern.fullmatch(section.lines[index])
        if row is not None:
            rows.append(shape.read(row))
            lines.append(index)
            if len(rows) > 1 and not _is_endless(shape, rows):
                before, size = int(rows[-2][0]), int(rows[-1][0])
                check_next_size(section, index, before, size, steps=True)
        elif _RULE.fullmatch(section.lines[index]):
            _check_rows(section, index, shape, rows)
            for later in range(index + 1, len(section.lines)):
                _check_other(section, later, "nothing after the ruler")
            return rows, lines
        else:
            _check_other(section, index, expected)
    if _is_endless(shape, rows):
        return rows, lines
    raise section.error(
        len(section.lines) - 1, "the output is cut", expected="a ruler of 87 dashes at its end"
    )


def _is_endless(shape: _Shape, rows: Sequence[tuple[float, ...]]) -> bool:
    """Tell whether all of several rows are of one size, as ``--run_infinitely`` prints them."""
    is_rate = {"iterations", "bandwidth_mb_s"} <= set(shape.columns)
    return is_rate and len(rows) > 1 and all(row[0] == rows[0][0] for row in rows)


def _whole_run(shape: _Shape, rows: Sequence[tuple[float, ...]]) -> tuple[float, ...]:
    """Return the rows of one size as one row: every message over the time of all of them.

    A rate is the mean over time, which is the harmonic one weighted by messages.  Peaks and the
    CPU's load are the largest.
    """
    counts = _column(shape, rows, "iterations")
    whole = []
    for name in shape.columns:
        values = _column(shape, rows, name)
        if name == "iterations":
            whole.append(sum(values))
        elif name in {"bandwidth_mb_s", "message_rate_per_s"}:
            busy = sum(n / value for n, value in zip(counts, values, strict=True) if value)
            whole.append(sum(counts) / busy if busy and all(values) else 0.0)
        else:
            whole.append(max(values))
    return tuple(whole)


def _spread(shape: _Shape, rows: Sequence[tuple[float, ...]]) -> Attributes:
    values = _column(shape, rows, "bandwidth_mb_s")
    return {
        "intervals": len(rows),
        "bandwidth_least_mb_s": min(values),
        "bandwidth_most_mb_s": max(values),
    }


def _column(shape: _Shape, rows: Sequence[tuple[float, ...]], name: str) -> list[float]:
    at = shape.columns.index(name)
    return [row[at] for row in rows]


def _check_rows(
    section: TextSection, index: int, shape: _Shape, rows: Sequence[tuple[float, ...]]
) -> None:
    """Check that rows are there, and that several begin as ``-a`` does: at 2 bytes."""
    if not rows:
        raise section.error(index, "a table without rows", expected="at least one row")
    if _is_endless(shape, rows):
        raise section.error(
            index, "message sizes out of order", expected=f"more than {rows[0][0]:g} in each row"
        )
    if len(rows) > 1 and rows[0][0] != 2:
        raise section.error(index, "a row is missing", expected="message size 2 first, as of -a")


def _attributes(
    section: TextSection, title: re.Match[str], start: int, shape: _Shape
) -> Attributes:
    facts: dict[str, str] = {}
    for line in section.lines[1:start]:
        if ":" in line and "address" not in line and "GID:" not in line:
            facts |= {match[1]: match[2] for match in _FACT.finditer(line[:200])}
    found: Attributes = {
        name: facts[printed]
        for printed, name in (
            ("Device", "device"),
            ("Connection type", "connection"),
            ("Transport type", "transport"),
            ("Link type", "link_layer"),
        )
        if printed in facts
    }
    for printed, name in (
        ("Number of qps", "num_qps"),
        ("Mtu", "mtu"),
        ("TX depth", "tx_depth"),
        ("Outstand reads", "outstanding_reads"),
    ):
        value = re.match(r"[0-9]{1,9}", facts.get(printed, ""))
        if value:
            found[name] = int(value[0])
    if own := _own_address(section.lines[1:start]):
        found["own_address"] = own
    if title["immediate"]:
        found["immediate"] = 1
    if title["both"]:
        found["both_ways"] = 1
    if "Gb/s" in shape.units:
        found["bandwidth_rounding_mb_s"] = GBITS_ROUNDING_MB_S
    return found


def _own_address(lines: Sequence[str]) -> str:
    """Return the LID or GID that both ends have; empty where they are two ports.

    Where GIDs are shown they tell: ports of two subnets, and virtual functions, may share a LID.
    """
    lids: dict[str, str] = {}
    gids: dict[str, str] = {}
    side = ""
    for line in lines:
        if end := _END.match(line):
            side = end[1]
            lids[side] = f"LID {end[2]}" if end[2].strip("0x") else ""
        elif gid := _GID.match(line):
            gids[side] = f"GID {gid[1]}"
    shown = gids or lids
    own = shown.get("local", "")
    return own if own == shown.get("remote") else ""
