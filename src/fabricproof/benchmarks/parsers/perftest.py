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
from dataclasses import replace
from typing import Any

from fabricproof.benchmarks.parsers.report import is_report, read_as_text
from fabricproof.benchmarks.parsers.sections import (
    Attributes,
    Column,
    RowShape,
    TextSection,
    check_chatter,
    check_sizes,
    shorten,
)
from fabricproof.core.measure import Table

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

_WHOLE = "[0-9]{1,18}"
#: below 0.1 Gb/s the bandwidths have six digits after the point (REPORT_FMT_EXT)
_POINT_2, _POINT_6, _EITHER = (
    rf"[0-9]{{1,12}}\.{digits}" for digits in ("[0-9]{2}", "[0-9]{6}", "(?:[0-9]{2}|[0-9]{6})")
)
#: what makes MB/s of MiB/s and of Gb/s
_MIB, _GBIT = 1.048576, 125.0


def _mega(text: str) -> int:
    return round(float(text) * 1e6)


def _bandwidths(heading: str, name: str, *, ours: bool = True) -> dict[str, Column]:
    reads = {"MB": lambda text: float(text) * _MIB, "Gb": lambda text: float(text) * _GBIT}
    reads["MiB"] = reads["MB"]
    return {
        f"{heading}[{unit}/sec]": Column(name, _EITHER, read if ours else None)
        for unit, read in reads.items()
    }


#: heading of the text -> its column
_HEADINGS = {
    "#bytes": Column("message_size", _WHOLE, int),
    "#sl": Column("service_level", _WHOLE, None),
    "iterations": Column("iterations", _WHOLE, int),
    "#iterations": Column("iterations", _WHOLE, int),
    **_bandwidths("BW peak", "bandwidth_peak_mb_s"),
    **_bandwidths("BW average", "bandwidth_mb_s"),
    "MsgRate[Mpps]": Column("message_rate_per_s", _POINT_6, _mega),
    **_bandwidths("BW Port1", "port_1", ours=False),
    "MsgRate Port1[Mpps]": Column("port_1_rate", _POINT_6, None),
    **_bandwidths("BW Port2", "port_2", ours=False),
    "MsgRate Port2[Mpps]": Column("port_2_rate", _POINT_6, None),
    "t_min[usec]": Column("latency_min_us", _POINT_2, float),
    "t_max[usec]": Column("latency_max_us", _POINT_2, float),
    "t_typical[usec]": Column("latency_p50_us", _POINT_2, float),
    "t_avg[usec]": Column("latency_avg_us", _POINT_2, float),
    "t_stdev[usec]": Column("latency_stdev_us", _POINT_2, float),
    "99% percentile[usec]": Column("latency_p99_us", _POINT_2, float),
    "99.9% percentile[usec]": Column("latency_p999_us", _POINT_2, float),
    "tps average": Column("transactions_per_s", _POINT_2, float),
    "CPU_Util[%]": Column("cpu_util_percent", _POINT_2, float),
}
#: key of a report -> heading of the text; that of a bandwidth depends on its unit
_KEYS = {
    "MsgSize": "#bytes", "n_iterations": "#iterations", "MsgRate": "MsgRate[Mpps]",
    **{f"t_{word}": f"t_{word}[usec]" for word in ("min", "max", "typical", "avg", "stdev")},
    "percentile_99": "99% percentile[usec]", "percentile_99.9": "99.9% percentile[usec]",
    "tps_average": "tps average", "CPU_util": "CPU_Util[%]",
}  # fmt: skip
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
    shape = RowShape([_HEADINGS[heading] for heading in headings])
    found, ended = _rows(section, start, shape)
    attributes = _attributes(section, above, start)
    attributes |= {name: 1 for name in ("immediate", "both_ways") if title[name]}
    if any("[Gb/" in heading for heading in headings):
        attributes["bandwidth_rounding_mb_s"] = GBITS_ROUNDING_MB_S
    if "port_1" in shape.names:
        attributes["num_ports"] = 2
    if "service_level" in shape.names:
        cells = section.lines[found[0]].split()
        attributes["service_level"] = int(cells[shape.names.index("service_level")])
    table = Table(
        suite="perftest",
        program=f"ib_{_VERBS.get(title['verb'], 'atomic')}_{_KINDS[title['kind']]}",
        version=None,
        columns=shape.columns,
        rows=shape.read(section, found),
        source=section.source,
        line=section.first + start,
        row_lines=tuple(section.first + index for index in found),
        attributes=attributes,
    )
    counts = [table.column(name) for name in ("message_size", "iterations") if name in shape.names]
    if not all(map(all, counts)) or attributes.get("num_qps") == 0:
        what = "counts above 0, and queue pairs"
        raise section.error(start, "a run without a message", expected=what)
    sizes = [int(row[0]) for row in table.rows]
    if not ended and len(sizes) > 1 and len({*sizes}) == 1:
        return (_over_all_time(section, table),)
    check_sizes(section, found, sizes, first=None)
    if len(sizes) > 1 and sizes[0] != 2:
        raise section.error(found[0], "a row is missing", expected="message size 2 first, as of -a")
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


def _rows(section: TextSection, start: int, shape: RowShape) -> tuple[list[int], bool]:
    """Return the index of each row, and whether a ruler ends them."""
    found: list[int] = []
    ended = False
    for index in range(start + 1, len(section.lines)):
        if not ended and shape.is_row(section.lines[index]):
            found.append(index)
        elif _RULER.fullmatch(section.lines[index]):
            ended = True
        else:
            what = "nothing after the ruler" if ended else shape.describe()
            _check_other(section, index, what)
    if not found:
        raise section.error(start, "a table without rows", expected="at least one row")
    return found, ended


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
    headings = dict(_KEYS)
    if "MsgRate" in results:
        size, mega_rate, rate = (results[key] for key in ("MsgSize", "MsgRate", "BW_average"))
        slack = 0.01 * size * mega_rate + 0.5e-6 * size
        fits = (
            abs(rate * each - size * mega_rate) <= slack + 0.005 * each for each in (_MIB, _GBIT)
        )
        (unit,) = (unit for unit, each in zip(("MiB", "Gb"), fits, strict=True) if each)
        headings |= {f"BW_{kind}": f"BW {kind}[{unit}/sec]" for kind in ("peak", "average")}
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
            format(number, forms.get(_HEADINGS[headings[key]].pattern, ".2f"))
            for key, number in results.items()
        ),
        "-" * 87,
    ]
