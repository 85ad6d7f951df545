"""Find out which tools printed a text, cut it into their sections and have each one read."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import chain

from fabricproof.benchmarks.parsers import (
    hpcc,
    imb,
    iperf,
    iperf3,
    nccl,
    osu,
    perftest,
)
from fabricproof.benchmarks.parsers.grammar.chatter import first_death
from fabricproof.benchmarks.parsers.grammar.text import TextSection, by_label, clean, shorten
from fabricproof.benchmarks.parsers.network import Networks
from fabricproof.core.errors import ParseError
from fabricproof.core.measure import Table

_Parser = Callable[[TextSection], tuple[Table, ...]]
_EachReader = Callable[[TextSection], Iterator[tuple[Table, ...] | ParseError]]

#: tool -> its parser.
PARSERS: dict[str, _Parser] = {
    "osu": osu.parse,
    "imb": imb.parse,
    "iperf3": iperf3.parse,
    "iperf": iperf.parse,
    "perftest": perftest.parse,
    "hpcc": hpcc.parse,
    "nccl": nccl.parse,
}

#: tool whose section holds several tables -> what reads them one by one.
_EACH: dict[str, _EachReader] = {"imb": imb.read_each}

#: How a section of each tool begins.  A column header stands here too: where its title was lost
#: the table must be an error, not a part of the section before.  It begins at the newline before
#: the line: a search for one character is many times as fast as one for the beginnings of lines.
#: "OSU Micro-Benchmarks" is the package, of which people write above its tables.
_START = re.compile(
    r"\n[ \t#]*(?![0-9])(?:"
    r"(?P<osu>OSU (?!Micro)[A-Z]|MPI [\w -]*Test[ \t]*$"
    r"|Number of (?:Sender threads|forked processes in s)"
    r"|Size[ \t]{2,}|Size \[B\]|(?:Avg Latency|Overall)\(us\))"
    r"|(?P<imb>Intel ?\(R\) MPI Benchmark|List of Benchmarks|Benchmarking |bytes[ \t]+#rep)"
    # Of lines that begin with a brace only iperf3's own: schedulers print JSON of theirs.
    r"|(?P<iperf3>iperf 3\.|Connecting to host |\$ iperf3 .*-c "
    r"|(?<![^\n])\{(?=\s*\"(?:start|title|extra_data|intervals|end|error|event\":\"start)\")"
    r"|(?<![^\n])\{\"event\":"
    r"|Server listening on (?:port )?\d|iperf3: (?:error|interrupt))"
    r"|(?P<perftest>(?:(?:Send|RDMA_Write)(?:_imm)?|RDMA_Read|Atomic [A-Z_]{1,20})"
    r"(?: Bidirectional)?(?: Post List)? (?:BW|Latency) Test|bytes[ \t]+#iter"
    rf"|{perftest.ACCELERATOR})"
    r"|(?P<hpcc>This is the DARPA/DOE HPC Challenge Benchmark version|Begin of Summary section)"
    r"|(?P<nccl>nccl-tests version |Collective test starting: |nThread [0-9]+ nGpus "
    r"|size[ \t]+count[ \t]+type\b)"
    r"|(?P<iperf>Client connecting to |Server listening on (?:TCP|UDP)|\$ iperf .*-c )"
    r"|(?P<any_iperf>\[ ID\] Interval|\[(?:SUM| *\d+)\] +\d+\.\d+ ?- *\d)"
    r")",
    re.MULTILINE,
)

_IPERF_BEGUN = re.compile(
    r"^[ \t]*(?:Connecting to|Client connecting|\{)|(?:bits|Bytes)/sec", re.MULTILINE
)

#: What an open section must hold before another of the same tool may begin.  osu_latency_mt prints
#: thread counts above its title and osu_mbw_mr 7.2 its title twice, so a title alone is no end; a
#: table of IMB belongs to the open run until that has ended; command and version lines of iperf
#: stand above its first words.
_FULL = {
    "osu": re.compile(
        r"^[ \t#]*(?:Size\b|Avg Latency\(us\)|Overall\(us\)|nprocs:|This is a test|Uni-dir)",
        re.MULTILINE,
    ),
    "imb": re.compile(r"^[ \t]*# All processes entering MPI_Finalize", re.MULTILINE),
    "iperf": _IPERF_BEGUN,
    "iperf3": _IPERF_BEGUN,
    "perftest": re.compile(r"^[ \t]*#bytes[ \t]+#iter", re.MULTILINE),
    "hpcc": re.compile(r"^[ \t]*End of HPC Challenge tests", re.MULTILINE),
    "nccl": re.compile(r"^[ \t]*# Avg bus bandwidth", re.MULTILINE),
}

#: Words that iperf3 alone prints near the head of its tables.
_IPERF3 = re.compile(r"Retr\b|Bitrate|\bsender\b|\breceiver\b|\d {3}sec\b")


#: what the tools of infiniband-diags print, which another command reads
_SUBNET = re.compile(
    r"^(?:# Topology file: |vendid=0x|(?:Switch|CA): 0x[0-9a-f]{16} |## Summary: \d+ nodes checked"
    r"|(?:SW|CA|RT) +\d+ +\d+ 0x[0-9a-f]{16} |# Faked topology file"
    r"|# Port (?:extended )?counters: |[^\n]{0,150} ==\( *\d+X )",
    re.MULTILINE,
)
_SUBNET_HINT = "fabricproof subnet check --from FOLDER reads the tools of infiniband-diags"

#: A row of OSU, IMB or perftest: iperf prints no line of bare numbers.
_BARE_ROW = re.compile(r"[ \t]*[0-9]+(?:[ \t]+[0-9]+(?:\.[0-9]+)?)+[ \t]*")


#: what stands above the first title or header, where it is rows of a table that lost its own
_HEADLESS = "headless"

#: Two rows of such a table, the second of a larger size.  One line of numbers says nothing: what
#: people print about their nodes above the first table looks like it.
_HEADLESS_ROWS = re.compile(
    r"^[ \t]*([0-9]{1,18})(?:[ \t]+[0-9]+(?:\.[0-9]+)?)*[ \t]+[0-9]+\.[0-9]{2}[ \t]*\n"
    r"(?=[ \t]*([0-9]{1,18})(?:[ \t]+[0-9]+(?:\.[0-9]+)?)*[ \t]+[0-9]+\.[0-9]{2}[ \t]*$)",
    re.MULTILINE,
)


@dataclass(frozen=True, kw_only=True)
class TextRead:
    """What was read of one text.

    Attributes:
        tables: the whole tables, in printed order.
        damages: one error, with its line, for each table or run that is not whole.
    """

    tables: tuple[Table, ...]
    damages: tuple[ParseError, ...]


def parse_text(text: str, source: str = "<text>") -> tuple[Table, ...]:
    """Return every table in ``text``, in printed order; one that is damaged refuses them all.

    OSU prints no end marker: a table that was cut between two rows cannot be told from a shorter
    run by who does not know which sizes it asked for.

    Raises:
        ParseError: no table at all, or a damaged one; see the parsers.
    """
    text = clean(text)
    tables: list[Table] = []
    for part in by_label(text, source):
        said = Networks(part)
        for tool, section in _sections(part, source):
            _check_own_rows(tool, section)
            tables += said.heard(section, PARSERS[tool](section))
    if tables:
        return tuple(tables)
    raise _no_table(text, source)


def read_tables(text: str, source: str = "<text>") -> TextRead:
    """Return every whole table in ``text``, and what is wrong with each of the others.

    For outputs that somebody already has: one damaged table costs that table.  A run of our own
    is read by :func:`parse_text`.
    """
    text = clean(text)
    tables: list[Table] = []
    damages: list[ParseError] = []
    try:
        for part in by_label(text, source):
            for found in _read_part(part, source):
                if isinstance(found, ParseError):
                    damages.append(found)
                else:
                    tables += found
    except ParseError as error:
        damages.append(error)
    if not tables and not damages:
        damages.append(_no_table(text, source))
    return TextRead(tables=tuple(tables), damages=tuple(damages))


def _read_part(part: str, source: str) -> Iterator[tuple[Table, ...] | ParseError]:
    """Yield what one node or rank printed, the tables with what is said of their network."""
    said = Networks(part)
    for tool, section in _sections(part, source):
        read = list(_read_each(tool, section))
        yield from (each for each in read if isinstance(each, ParseError))
        whole = (each for each in read if not isinstance(each, ParseError))
        yield said.heard(section, tuple(chain.from_iterable(whole)))


def _read_each(tool: str, section: TextSection) -> Iterator[tuple[Table, ...] | ParseError]:
    try:
        _check_own_rows(tool, section)
        if tool in _EACH:
            yield from _EACH[tool](section)
        else:
            yield PARSERS[tool](section)
    except ParseError as error:
        yield error


def _check_own_rows(tool: str, section: TextSection) -> None:
    """Refuse rows of a table whose head is lost, also below a line of iperf inside that table."""
    if tool == _HEADLESS:
        raise section.error(
            0, "rows of a table without its head", expected="its title and its column header above"
        )
    if not tool.startswith("iperf") or section.lines[0].startswith("{"):
        return
    for index, line in enumerate(section.lines):
        if _BARE_ROW.fullmatch(line):
            raise section.error(
                index,
                f"a row of another table in the output of {tool}",
                expected="the title and the column header of its table above",
            )


def _no_table(text: str, source: str) -> ParseError:
    lines = text.split("\n")
    at = first_death(lines) or 0
    return ParseError(
        "no benchmark table",
        source=source,
        line=at + 1,
        expected="the output of OSU, IMB, iperf3, iperf, perftest, hpcc or nccl-tests",
        got=repr(shorten(lines[at].strip())) if lines[at].strip() else "nothing of the kind",
        next_step=_SUBNET_HINT if _SUBNET.search(text) else None,
    )


def _sections(text: str, source: str) -> Iterator[tuple[str, TextSection]]:
    """Yield each tool's name with the lines that it printed."""
    starts = list(_starts(text))
    rows = _HEADLESS_ROWS.finditer(text, 0, starts[0][1] if starts else 0)
    lost = next((each.start() for each in rows if int(each[1]) < int(each[2])), None)
    if lost is not None:
        starts.insert(0, (_HEADLESS, lost))
    bounds = [*(start for _, start in starts[1:]), len(text)] if starts else []
    number = 1
    at = 0
    for (tool, start), end in zip(starts, bounds, strict=True):
        number += text.count("\n", at, start)
        at = start
        last = end == len(text)
        body = text[start:end]
        section = TextSection(
            lines=body.removesuffix("\n").split("\n"),
            first=number,
            source=source,
            ends_text=last and not body.endswith("\n"),
        )
        yield tool, section


def _starts(text: str) -> Iterator[tuple[str, int]]:
    """Yield the tool and the offset of each line that begins a section."""
    current, full, seen = "", False, 0
    # With the newline before it, each line begins in this text one character after its offset.
    for match in _START.finditer(f"\n{text}"):
        tool = _tool(text, match, current)
        full = full or _is_full(current, text, seen, match.start())
        seen = match.start()
        word = match[match.lastgroup or 0]
        if tool == current and not ((full and _can_begin(tool, word)) or word.startswith("Intel")):
            continue
        current, full = tool, False
        yield tool, match.start()


def _tool(text: str, match: re.Match[str], current: str) -> str:
    """Return the tool that a beginning belongs to; ``current`` is that of the open section."""
    tool = match.lastgroup or ""
    if tool != "any_iperf":
        return tool
    # A bare line of either tool belongs to the open section, else its words tell.
    if current in {"iperf", "iperf3"}:
        return current
    return "iperf3" if _IPERF3.search(text, match.start(), match.end() + 400) else "iperf"


def _is_full(tool: str, text: str, start: int, end: int) -> bool:
    """Tell whether what stands between two offsets lets another section of ``tool`` begin."""
    pattern = _FULL.get(tool)
    return pattern is not None and pattern.search(text, start, end) is not None


def _can_begin(tool: str, word: str) -> bool:
    """Tell whether ``word`` begins a section, where one of the same tool is open and full."""
    words = {
        "osu": ("OSU", "MPI", "Number"),
        "imb": ("Intel", "Benchmarking"),
        "iperf": ("$", "Client", "Server"),
        "iperf3": ("$", "{", "Connecting", "iperf 3", "Server"),
        "perftest": ("Send", "RDMA", "Atomic", *perftest.ACCELERATORS),
        "hpcc": ("This is the DARPA",),
        "nccl": ("nccl-tests", "Collective", "nThread"),
    }
    # of --json-stream only the first event begins a run: the others belong to it
    return word.startswith(words[tool]) and not word.startswith('{"event"')
