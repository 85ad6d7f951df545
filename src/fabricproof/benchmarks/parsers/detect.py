"""Find out which tools printed a text, cut it into their sections and have each one read."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import chain

from fabricproof.benchmarks.parsers import hpcc, imb, iperf, iperf3, nccl, osu, perftest
from fabricproof.benchmarks.parsers.network import Networks
from fabricproof.benchmarks.parsers.sections import TextSection, clean, first_death, shorten
from fabricproof.core.errors import ParseError
from fabricproof.core.measure import Table

_Found = tuple[Table, ...] | ParseError


@dataclass(frozen=True, kw_only=True)
class Tool:
    """How the sections of one tool are found, and what reads them.

    Patterns of first words stand at the beginning of a line, after blanks and ``#``.

    Attributes:
        read: turns a section into tables, or raises a ParseError; None for IMB, whose tables are
            read one by one.
        begins: first words of a section.
        full: what an open section must hold before ``begins`` ends it and begins the next one.
        begins_anew: first words that begin a section whatever the open one holds.
        inside: words that belong to an open section, and begin one where none of the tool is
            open: a table without its title must be an error, not a part of what stands above.
    """

    read: Callable[[TextSection], tuple[Table, ...]] | None
    begins: str
    full: str
    begins_anew: str | None = None
    inside: str | None = None


#: keys of a report of ``iperf3 --json``: schedulers print JSON of their own
_JSON = r"\{\s*\"(?:start|title|extra_data|intervals|end|error|event\":\"start)\""
#: command and version of iperf stand above its first words
_IPERF_BEGUN = rf"^[ \t]*(?:Connecting to|Client connecting)|^{_JSON}|(?:bits|Bytes)/sec"

TOOLS: Mapping[str, Tool] = {
    "osu": Tool(
        read=osu.parse,
        # "OSU Micro-Benchmarks" is the package, of which people write above its tables.
        begins=r"OSU (?!Micro)[A-Z]|MPI [\w -]*Test[ \t]*$"
        r"|Number of (?:Sender threads|forked processes in s)",
        # osu_latency_mt prints its threads above its title, and osu_mbw_mr 7.2 its title twice.
        full=r"^[ \t#]*(?:Size\b|Avg Latency\(us\)|Overall\(us\)|nprocs:|This is a test|Uni-dir)",
        inside=r"Size[ \t]{2,}|Size \[B\]|(?:Avg Latency|Overall)\(us\)",
    ),
    "imb": Tool(
        read=None,
        begins="Benchmarking ",
        # A table belongs to the open run until that has ended.
        full=r"^[ \t]*# All processes entering MPI_Finalize",
        begins_anew=r"Intel ?\(R\) MPI Benchmark",
        inside=r"List of Benchmarks|bytes[ \t]+#rep",
    ),
    "iperf3": Tool(
        read=iperf3.parse,
        begins=rf"iperf 3\.|Connecting to host |\$ iperf3 .*-c |(?<=\n){_JSON}"
        r"|Server listening on (?:port )?\d",
        full=_IPERF_BEGUN,
        # of --json-stream only the first event begins a run
        inside=r"(?<=\n)\{\"event\":|iperf3: (?:error|interrupt)",
    ),
    "perftest": Tool(
        read=perftest.parse,
        begins=r"(?:(?:Send|RDMA_Write)(?:_imm)?|RDMA_Read|Atomic [A-Z_]{1,20})"
        rf"(?: Bidirectional)?(?: Post List)? (?:BW|Latency) Test|{perftest.ACCELERATOR}"
        r"|(?<=\n)\{(?=\s*\"test_info\")",
        full=r"^(?:[ \t]*#bytes[ \t]+#?iter|\{)",
        inside=r"bytes[ \t]+#?iter",
    ),
    "hpcc": Tool(
        read=hpcc.parse,
        begins="This is the DARPA/DOE HPC Challenge Benchmark version",
        full=r"^[ \t]*End of HPC Challenge tests",
        inside="Begin of Summary section",
    ),
    "nccl": Tool(
        read=nccl.parse,
        begins="nccl-tests version |Collective test starting: |nThread [0-9]+ nGpus "
        r"|(?<=\n)\{(?=\s*\"version\": ?\d+, ?\"start_time\")",
        full=r"^(?:[ \t]*# Avg bus bandwidth|\{)",
        inside=r"size[ \t]+count[ \t]+type\b",
    ),
    "iperf": Tool(
        read=iperf.parse,
        begins=r"Client connecting to |Server listening on (?:TCP|UDP)|\$ iperf .*-c ",
        full=_IPERF_BEGUN,
    ),
}

#: a line of either iperf, which tells by its words where neither is open
_INTERVAL = r"\[ ID\] Interval|\[(?:SUM| *\d+)\] +\d+\.\d+ ?- *\d"
_IPERF3 = re.compile(r"Retr\b|Bitrate|\bsender\b|\breceiver\b|\d {3}sec\b")

_WORDS = {
    **{f"{name}__begins": tool.begins for name, tool in TOOLS.items()},
    **{f"{name}__anew": tool.begins_anew for name, tool in TOOLS.items() if tool.begins_anew},
    **{f"{name}__inside": tool.inside for name, tool in TOOLS.items() if tool.inside},
    "interval": _INTERVAL,
}
_ANY_WORDS = "|".join(f"(?P<{name}>{pattern})" for name, pattern in _WORDS.items())
#: It begins at the newline before the line: a search for one character is many times as fast as
#: one for the beginnings of lines.  No blank may follow the blanks, so that none is given back.
_START = re.compile(rf"\n[ \t#]*(?![0-9 \t#])(?:{_ANY_WORDS})", re.MULTILINE)
_FULL = {name: re.compile(tool.full, re.MULTILINE) for name, tool in TOOLS.items()}

#: first words below what stands before every line
_MARKED = rf"(?=[ \t#]*(?![ \t#])(?:{'|'.join(_WORDS.values())}))".replace(r"(?<=\n)", "")
#: the quote mark of a mail
_QUOTED = re.compile(rf"^> ?{_MARKED}", re.MULTILINE)
_QUOTE = re.compile(r"^> ?", re.MULTILINE)
#: the rank, by ``srun --label``
_LABELLED = re.compile(rf"^ *([0-9]+): {_MARKED}", re.MULTILINE)
_LABEL = re.compile(r"^ *[0-9]+: ", re.MULTILINE)
#: so many ranks with tables of their own are told apart in one text
MOST_LABELS = 64

#: what stands above the first title or header, where it is rows of a table that lost its own
_HEADLESS = "headless"
#: Two rows of such a table, the second of a larger size.  One line of numbers says nothing: what
#: people print about their nodes above the first table looks like it.
_HEADLESS_ROWS = re.compile(
    r"^[ \t]*([0-9]{1,18})(?:[ \t]+[0-9]+(?:\.[0-9]+)?)*[ \t]+[0-9]+\.[0-9]{2}[ \t]*\n"
    r"(?=[ \t]*([0-9]{1,18})(?:[ \t]+[0-9]+(?:\.[0-9]+)?)*[ \t]+[0-9]+\.[0-9]{2}[ \t]*$)",
    re.MULTILINE,
)
#: a row of OSU, IMB or perftest: iperf prints no line of bare numbers
_BARE_ROW = re.compile(r"[ \t]*[0-9]+(?:[ \t]+[0-9]+(?:\.[0-9]+)?)+[ \t]*")

#: what other commands read -> which
_ELSEWHERE = {
    re.compile(
        r"^(?:# Topology file: |vendid=0x|(?:Switch|CA): 0x[0-9a-f]{16} |## Summary: \d+ nodes che"
        r"|(?:SW|CA|RT) +\d+ +\d+ 0x[0-9a-f]{16} |# Faked topology file"
        r"|# Port (?:extended )?counters: |[^\n]{0,150} ==\( *\d+X )",
        re.MULTILINE,
    ): "fabricproof subnet check --from FOLDER reads the tools of infiniband-diags",
    re.compile(
        r"^(?:START mpiGraph|mpiGraph |# ?[Ll]ink[Tt]est|[^\n]{0,80}\blinktest\b"
        r"|\"?a\"?[,;\t]\"?b\"?[,;\t]\"?value\b)",
        re.MULTILINE,
    ): "fabricproof pairs judge FILE reads matrices and lists of pairs",
    re.compile(
        r"^(?:\{\"[^\n]{0,2000}\"kind\": ?\"(?:quantity|leg|environment)\"|result\|job_"
        r"|[^\n|]{1,80}\|[^\n|]{1,200}\|[^\n|]{1,200}\|[^\n|]{0,200}\|)",
        re.MULTILINE,
    ): "fabricproof report --site SITE shows the records of runs, fabricproof compare two sides",
}


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
    tables: list[Table] = []
    for found in _read(text, source, strict=True):
        if isinstance(found, ParseError):
            raise found
        tables += found
    return tuple(tables)


def read_tables(text: str, source: str = "<text>") -> TextRead:
    """Return every whole table in ``text``, and what is wrong with each of the others.

    For outputs that somebody already has: one damaged table costs that table.  A run of our own
    is read by :func:`parse_text`.
    """
    found = list(_read(text, source, strict=False))
    return TextRead(
        tables=tuple(chain(*(each for each in found if not isinstance(each, ParseError)))),
        damages=tuple(each for each in found if isinstance(each, ParseError)),
    )


def _read(text: str, source: str, *, strict: bool) -> Iterator[_Found]:
    """Yield the tables of each section and the errors in it; an error if there is nothing."""
    text = clean(text)
    if ">" in text and _QUOTED.search(text):
        text = _QUOTE.sub("", text)
    labels = sorted({each[1] for each in _LABELLED.finditer(text)}) if ": " in text else []
    if len(labels) > MOST_LABELS:
        yield ParseError(
            "the lines of too many ranks are mixed",
            source=source,
            expected=f"at most {MOST_LABELS} labels",
            got=f"{len(labels)}, {labels[0]} to {labels[-1]}",
            next_step="write the output of each rank to a file of its own",
        )
        return
    is_empty = True
    for part in _by_label(text, labels):
        networks = Networks(part)
        for tool, section in _sections(part, source):
            found = list(_read_section(tool, section, strict=strict))
            is_empty = is_empty and not any(found)
            yield from (each for each in found if isinstance(each, ParseError))
            whole = (each for each in found if not isinstance(each, ParseError))
            yield networks.heard(section, tuple(chain(*whole)))
    if is_empty:
        yield _no_table(text, source)


def _by_label(text: str, labels: list[str]) -> list[str]:
    """Return ``text`` without the labels of ranks, one text for each rank that ran a tool.

    Each keeps the number of its lines; those of other such ranks are blank, and those without a
    label, which may hold news of any, stand in all.
    """
    if len(labels) < 2:
        return [_LABEL.sub("", text) if labels else text]
    parts = []
    for label in labels:
        others = "|".join(each for each in labels if each != label)
        part = re.sub(rf"^ *{label}:(?: |$)", "", text, flags=re.MULTILINE)
        parts.append(re.sub(rf"^ *(?:{others}):(?: .*)?$", "", part, flags=re.MULTILINE))
    return parts


def _read_section(tool: str, section: TextSection, *, strict: bool) -> Iterator[_Found]:
    try:
        _check_own_rows(tool, section)
        read = TOOLS[tool].read
        yield from imb.read_each(section, strict=strict) if read is None else [read(section)]
    except ParseError as error:
        yield error


def _check_own_rows(tool: str, section: TextSection) -> None:
    """Refuse rows of a table whose head is lost, also below a line of iperf inside that table."""
    expected = "the title and the column header of its table above"
    if tool == _HEADLESS:
        raise section.error(0, "rows of a table without its head", expected=expected)
    if tool.startswith("iperf") and not section.lines[0].startswith("{"):
        for index in (at for at, line in enumerate(section.lines) if _BARE_ROW.fullmatch(line)):
            problem = f"a row of another table in the output of {tool}"
            raise section.error(index, problem, expected=expected)


def _no_table(text: str, source: str) -> ParseError:
    lines = text.split("\n")
    at = first_death(lines) or 0
    hints = (hint for form, hint in _ELSEWHERE.items() if form.search(text))
    return ParseError(
        "no benchmark table",
        source=source,
        line=at + 1,
        expected=f"the output of {', '.join(TOOLS)}",
        got=repr(shorten(lines[at].strip())) if lines[at].strip() else "nothing of the kind",
        next_step=next(hints, None),
    )


def _sections(text: str, source: str) -> Iterator[tuple[str, TextSection]]:
    """Yield each tool's name with the lines that it printed."""
    starts = list(_starts(text))
    rows = _HEADLESS_ROWS.finditer(text, 0, starts[0][1] if starts else 0)
    lost = next((each.start() for each in rows if int(each[1]) < int(each[2])), None)
    if lost is not None:
        starts.insert(0, (_HEADLESS, lost))
    number, at = 1, 0
    for place, (tool, start) in enumerate(starts):
        number += text.count("\n", at, start)
        at = start
        is_last = place + 1 == len(starts)
        body = text[start:] if is_last else text[start : starts[place + 1][1]]
        lines = body.removesuffix("\n").split("\n")
        cut = is_last and not body.endswith("\n")
        yield tool, TextSection(lines=lines, first=number, source=source, ends_text=cut)


def _starts(text: str) -> Iterator[tuple[str, int]]:
    """Yield the tool and the offset of each line that begins a section."""
    current, full, seen = "", False, 0
    # With the newline before it, each line begins in this text one character after its offset.
    for match in _START.finditer(f"\n{text}"):
        tool, _, role = (match.lastgroup or "").partition("__")
        if tool == "interval" and current in {"iperf", "iperf3"}:
            tool = current
        elif tool == "interval":
            is_iperf3 = _IPERF3.search(text, match.start(), match.end() + 400)
            tool = "iperf3" if is_iperf3 else "iperf"
        if tool == current:
            full = full or _FULL[tool].search(text, seen, match.start()) is not None
            seen = match.start()
            if not (role == "anew" or (role == "begins" and full)):
                continue
        current, full, seen = tool, False, match.start()
        yield tool, match.start()
