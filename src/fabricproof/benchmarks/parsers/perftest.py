"""Read what the programs of perftest print: ``ib_write_bw``, ``ib_read_lat`` and their kin.

Grammar and units from linux-rdma/perftest: ``RESULT_FMT*``, ``REPORT_FMT*`` and ``RESULT_LINE*`` in
src/perftest_parameters.h, ``ctx_print_test_info``, ``print_report_bw``, ``print_full_bw_report``,
``print_report_lat`` and ``write_*_to_file`` in src/perftest_parameters.c; the same in tags v4.5-0.2
to v4.5-0.20 and at commit 00b55b6 (July 2026).

- MB/sec means MiB/s: the report divides by ``0x100000`` unless ``--report_gbits`` makes it
  ``125000000`` (``format_factor``).  Since commit 1d202bb (March 2024) the header says MiB/sec.
- ``-b`` prints the sum of both directions, and says so in the title.
- A latency is half the round trip (``rtt_factor`` 2), of reads and atomics the whole (1).
- A peak of 0.00 was not measured.
- ``--report-per-port`` adds columns of each port: those before them are the sums of both.
- ``--run_infinitely`` prints a row of the same size every ``-D`` seconds until somebody stops it,
  and no ruler (``run_iter_bw_infinitely`` in src/perftest_resources.c).  Its rows are one
  measurement: all messages over all the time.
- A ruler ends every other table.  Where it is missing, the rows are whole all the same: each was
  printed when its size had been measured, and the last number of a row shows whether it was cut.
  The attribute ``end_not_seen`` says that larger sizes may be missing.
- ``--out_json`` writes the last size alone, and not whether its bandwidth is in MiB/s or Gb/s: the
  message rate times the size tells.
- Lines above the title say that this end's buffer is on a GPU; no line says where the other's is.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from fabricproof.benchmarks.parsers.report import is_report, read_as_text
from fabricproof.benchmarks.parsers.sections import (
    Attributes,
    TextSection,
    check_chatter,
    check_next_size,
    shorten,
)
from fabricproof.core.measure import COLUMNS, Table

_TITLE = re.compile(
    r"[ \t]*(?P<verb>Send|RDMA_Write|RDMA_Read|Atomic[ _](?:CMP_AND_SWAP|FETCH_AND_ADD))"
    r"(?P<immediate>_imm)?(?P<both_ways>[ _]Bidirectional)?(?:[ _]Post[ _]List)?"
    r"[ _](?P<kind>BW|Latency)[ _]Test[ \t]*"
)
_VERBS = {"Send": "send", "RDMA_Write": "write", "RDMA_Read": "read"}
_KINDS = {"BW": "bw", "Latency": "lat"}
_HEADER = re.compile(r"[ \t]*#bytes[ \t]+#?(?:iterations|sl)\b")
#: perftest's have 87 or 163 dashes, a vendor's wrapper 116; those of launchers are shorter
_RULER = re.compile(r"[ \t]*-{80,}[ \t]*")
_FACT = re.compile(r" ?([A-Za-z][\w* .-]{2,17}?)[ \t]*: (\S.*?)(?:(?:\t|[ ]{2,})[ \t]*|$)")
#: an end of a queue pair, with its GID below where it has one (print_pair_data)
_END = re.compile(
    r"^[ \t]*(local|remote) address:[ \t]*LID (\w{1,8})[^\n]{0,200}"
    r"(?:\n[ \t]*GID:[ \t]*([0-9a-fA-F:]{1,80}))?",
    re.MULTILINE,
)
_FAILED = re.compile(
    r"[ \t]*(?:Failed to|Unable to|Couldn't|Completion with error|Problems with|Error\b|"
    r"Failed status|Did not detect|Test exited|Found Incompatibility)"
)

_WHOLE = "([0-9]{1,18})"
#: below 0.1 Gb/s the bandwidths have six digits after the point (REPORT_FMT_EXT)
_POINT_2, _POINT_6, _EITHER = (
    rf"([0-9]{{1,12}}\.{digits})" for digits in ("[0-9]{2}", "[0-9]{6}", "(?:[0-9]{2}|[0-9]{6})")
)
#: what makes MB/s of MiB/s and of Gb/s
_MIB, _GBIT = 1.048576, 125.0


class _Column(NamedTuple):
    """What stands below a heading: ours (or one that no table has), its number, our unit of it."""

    name: str
    number: str
    factor: float
    key: str = ""


def _bandwidths(heading: str, name: str, key: str = "") -> dict[str, _Column]:
    return {
        f"{heading}[{unit}/sec]": _Column(name, _EITHER, factor, key)
        for unit, factor in (("MB", _MIB), ("MiB", _MIB), ("Gb", _GBIT))
    }


#: heading of the text -> its column, with the key that a report has for it
_HEADINGS = {
    "#bytes": _Column("message_size", _WHOLE, 1, "MsgSize"),
    "#sl": _Column("service_level", _WHOLE, 1),
    "iterations": _Column("iterations", _WHOLE, 1),
    "#iterations": _Column("iterations", _WHOLE, 1, "n_iterations"),
    **_bandwidths("BW peak", "bandwidth_peak_mb_s", "BW_peak"),
    **_bandwidths("BW average", "bandwidth_mb_s", "BW_average"),
    "MsgRate[Mpps]": _Column("message_rate_per_s", _POINT_6, 1e6, "MsgRate"),
    **_bandwidths("BW Port1", "port_1"),
    "MsgRate Port1[Mpps]": _Column("port_1_rate", _POINT_6, 1e6),
    **_bandwidths("BW Port2", "port_2"),
    "MsgRate Port2[Mpps]": _Column("port_2_rate", _POINT_6, 1e6),
    "t_min[usec]": _Column("latency_min_us", _POINT_2, 1, "t_min"),
    "t_max[usec]": _Column("latency_max_us", _POINT_2, 1, "t_max"),
    "t_typical[usec]": _Column("latency_p50_us", _POINT_2, 1, "t_typical"),
    "t_avg[usec]": _Column("latency_avg_us", _POINT_2, 1, "t_avg"),
    "t_stdev[usec]": _Column("latency_stdev_us", _POINT_2, 1, "t_stdev"),
    "99% percentile[usec]": _Column("latency_p99_us", _POINT_2, 1, "percentile_99"),
    "99.9% percentile[usec]": _Column("latency_p999_us", _POINT_2, 1, "percentile_99.9"),
    "tps average": _Column("transactions_per_s", _POINT_2, 1, "tps_average"),
    "CPU_Util[%]": _Column("cpu_util_percent", _POINT_2, 1, "CPU_util"),
}
_HEADING = re.compile("|".join(re.escape(name) for name in sorted(_HEADINGS, key=len)[::-1]))
#: half the last of two digits of --report_gbits, in MB/s
GBITS_ROUNDING_MB_S = 0.625

#: what the head says -> our attribute
_FACTS = {
    "Device": "device", "Connection type": "connection", "Transport type": "transport",
    "Link type": "link_layer", "Number of qps": "num_qps", "Mtu": "mtu", "TX depth": "tx_depth",
    "Outstand reads": "outstanding_reads", "GID index": "gid_index",
}  # fmt: skip
_COUNTS = frozenset({"num_qps", "mtu", "tx_depth", "outstanding_reads", "gid_index"})

#: How what a run says of the memory of its GPU begins, above its title -> whose that is
#: (src/*_memory.c; before them pp_init_gpu in src/perftest_resources.c).
ACCELERATORS = {
    "initializing CUDA": "CUDA", "cuMemAlloc() of a": "CUDA", "Using ROCm Device with ID": "ROCM",
    "initializing MUSA": "MUSA", "initializing MLU": "MLU", "NEURON_RT_VISIBLE_CORES is": "NEURON",
}  # fmt: skip
ACCELERATOR = "|".join(map(re.escape, ACCELERATORS))
#: of --cuda_mem_type=4
_ON_HOST = "Host allocation selected"


def parse(section: TextSection) -> tuple[Table, ...]:
    """Return the one table of a run; of a report, the one row that it has.

    Raises:
        ParseError: the title, a size or all rows are missing, a row is damaged or of no message, a
            column is unknown, or the tool reports an error.
    """
    if is_report(section):
        return read_as_text(section, _text_of, parse)
    title, above, start = _head(section)
    headings = _headings(section, start)
    columns = [_HEADINGS[heading] for heading in headings]
    rows, lines, ended = _rows(section, start, columns)
    attributes = _attributes(section, above, start)
    attributes |= {name: 1 for name in ("immediate", "both_ways") if title[name]}
    if any("[Gb/" in heading for heading in headings):
        attributes["bandwidth_rounding_mb_s"] = GBITS_ROUNDING_MB_S
    for at, column in enumerate(columns):
        if column.name == "port_1":
            attributes["num_ports"] = 2
        if column.name == "service_level":
            attributes[column.name] = int(rows[0][at])
        if column.number == _WHOLE and column.name in COLUMNS and any(not row[at] for row in rows):
            raise section.error(start, "a run without a message", expected="counts above 0")
    if attributes.get("num_qps") == 0:
        raise section.error(start, "a run without a message", expected="queue pairs")
    ours = [at for at, column in enumerate(columns) if column.name in COLUMNS]
    table = Table(
        suite="perftest",
        program=f"ib_{_VERBS.get(title['verb'], 'atomic')}_{_KINDS[title['kind']]}",
        version=None,
        columns=tuple(columns[at].name for at in ours),
        rows=tuple(tuple(row[at] for at in ours) for row in rows),
        source=section.source,
        line=section.first + start,
        row_lines=tuple(section.first + index for index in lines),
        attributes=attributes,
    )
    if not ended and len(rows) > 1 and all(row[0] == rows[0][0] for row in rows):
        return (_over_all_time(section, table),)
    for before, after, index in zip(rows, rows[1:], lines[1:], strict=False):
        check_next_size(section, index, int(before[0]), int(after[0]), steps=True)
    if len(rows) > 1 and rows[0][0] != 2:
        raise section.error(lines[0], "a row is missing", expected="message size 2 first, as of -a")
    return (table if ended else replace(table, attributes={**attributes, "end_not_seen": 1}),)


def _head(section: TextSection) -> tuple[re.Match[str], int, int]:
    """Return the title, where it stands, and where the header stands below it."""
    title, above = None, 0
    for index, line in enumerate(section.lines):
        if title is None and (title := _TITLE.fullmatch(line)):
            above = index
        elif not _HEADER.match(line):
            _check_other(section, index, "the header of the table")
        elif title is None:
            what = "'RDMA_Write BW Test' above it"
            raise section.error(index, "a table without title", expected=what)
        else:
            return title, above, index
    raise section.error(0, "a run without table", expected="' #bytes   #iterations ...' below")


def _check_other(section: TextSection, index: int, expected: str) -> None:
    if _FAILED.match(section.lines[index][:200]):
        raise section.error(index, "the test failed", expected="a test that ended well")
    check_chatter(section, index, expected)


def _headings(section: TextSection, index: int) -> list[str]:
    line = section.lines[index]
    found = _HEADING.findall(line)
    unknown = _HEADING.sub(" ", line).split()
    if unknown or len({*found}) < len(found):
        got = repr(shorten(" ".join(unknown) or line.strip()))
        raise section.error(index, "unknown columns", expected="those of perftest", got=got)
    return found


def _rows(
    section: TextSection, start: int, columns: Sequence[_Column]
) -> tuple[list[tuple[float, ...]], list[int], bool]:
    """Return the rows, the index of each line, and whether a ruler ends them."""
    row = re.compile(r"[ \t]*" + r"[ \t]+".join(each.number for each in columns) + r"[ \t]*")
    expected = f"{len(columns)} columns ({', '.join(each.name for each in columns)})"
    rows: list[tuple[float, ...]] = []
    lines: list[int] = []
    ended = False
    for index in range(start + 1, len(section.lines)):
        if not ended and (found := row.fullmatch(section.lines[index])):
            rows.append(tuple(map(_value, found.groups(), columns)))
            lines.append(index)
        elif _RULER.fullmatch(section.lines[index]):
            ended = True
        else:
            _check_other(section, index, "nothing after the ruler" if ended else expected)
    if not rows:
        raise section.error(start, "a table without rows", expected="at least one row")
    return rows, lines, ended


def _value(text: str, column: _Column) -> float:
    value = float(text) * column.factor
    return round(value) if column.number in {_WHOLE, _POINT_6} else value


def _over_all_time(section: TextSection, table: Table) -> Table:
    """Return the rows of ``--run_infinitely`` as one: every message over the time of all of them.

    A rate is the mean over time, which is the harmonic one weighted by messages.  Peaks and the
    CPU's load are the largest.
    """
    if "bandwidth_mb_s" not in table.columns:
        raise section.error(0, "message sizes out of order", expected="sizes that double")
    counts, rates = table.column("iterations"), table.column("bandwidth_mb_s")
    whole = {name: max(table.column(name)) for name in table.columns} | {"iterations": sum(counts)}
    for name in {"bandwidth_mb_s", "message_rate_per_s"} & set(table.columns):
        values = table.column(name)
        busy = sum(n / value for n, value in zip(counts, values, strict=True)) if all(values) else 0
        whole[name] = sum(counts) / busy if busy else 0.0
    seen = {"intervals": len(rates), "bandwidth_least_mb_s": min(rates)}
    seen["bandwidth_most_mb_s"] = max(rates)
    return replace(
        table,
        rows=(tuple(whole.values()),),
        row_lines=table.row_lines[-1:],
        attributes={**table.attributes, **seen},
    )


def _attributes(section: TextSection, above: int, start: int) -> Attributes:
    """Return what the head says of the run: above its title of its GPU, and below."""
    facts: dict[str, str] = {}
    for line in section.lines[above:start]:
        if ":" in line and "address" not in line and "GID:" not in line:
            facts |= dict(_FACT.findall(line[:200]))
    found: Attributes = {}
    for printed, name in _FACTS.items():
        count = re.match(r"[0-9]{1,9}", facts.get(printed, "")) if name in _COUNTS else None
        if count or (printed in facts and name not in _COUNTS):
            found[name] = int(count[0]) if count else facts[printed]
    if facts.get("Dual-port") == "ON":
        found["num_ports"] = 2
    memory = [line.strip("# \t") for line in section.lines[:above]]
    if memory and not any(line.startswith(_ON_HOST) for line in memory):
        known = (name for word, name in ACCELERATORS.items() if memory[0].startswith(word))
        found["accelerator"] = next(known, "GPU")
    # Where GIDs are shown they tell: ports of two subnets, and virtual functions, may share a LID.
    ends = _END.findall("\n".join(section.lines[above:start]))
    gids = {side: f"GID {gid}" for side, _, gid in ends if gid}
    own = gids or {side: f"LID {lid}" for side, lid, _ in ends if lid.strip("0x")}
    if own and own.get("local") == own.get("remote"):
        found["own_address"] = own["local"]
    return found


def _text_of(report: dict[str, Any]) -> list[str]:
    """Return the text of the run that a report of ``--out_json`` tells.

    Raises:
        ValueError: the message rate fits neither unit of the bandwidth, or both.
    """
    info, results = report["test_info"], report["results"]
    headings = {
        column.key: heading for heading, column in _HEADINGS.items() if "[MB/" not in heading
    }
    if "MsgRate" in results:
        size, mega_rate, rate = (results[key] for key in ("MsgSize", "MsgRate", "BW_average"))
        slack = 0.01 * size * mega_rate + 0.5e-6 * size
        fits = (
            abs(rate * each - size * mega_rate) <= slack + 0.005 * each for each in (_MIB, _GBIT)
        )
        (unit,) = (unit for unit, each in zip(("MiB", "Gb"), fits, strict=True) if each)
        headings |= {"BW_peak": f"BW peak[{unit}/sec]", "BW_average": f"BW average[{unit}/sec]"}
    forms = {_WHOLE: "d", _POINT_6: ".6f"}
    gpus = {"cuda_device": "initializing CUDA", "musa_device": "initializing MUSA"}
    above = [line for key, line in gpus.items() if key in info]
    above += ["Using ROCm Device with ID"] if info.get("Use_ROCm_memory") == "ON" else []
    return [
        *above,
        info["test"],
        *(f" {key.replace('_', ' ').replace('Dual p', 'Dual-p')} : {info[key]}" for key in info),
        "  ".join(headings[key] for key in results),
        "  ".join(
            format(number, forms.get(_HEADINGS[headings[key]].number, ".2f"))
            for key, number in results.items()
        ),
        "-" * 87,
    ]
