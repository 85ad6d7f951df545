"""The ground that every parser stands on: lines of one tool, rows of numbers, and what is neither.

Launchers put a prefix before each line, terminals colour them and Windows editors end them with
a carriage return.  None of that is data, so it goes before any table is looked for.  Line numbers
stay those of the original text.

Anything may stand between two rows as long as it cannot be a piece of a row.  A line that could
be one is damage: guessing is how a shortened table becomes a green verdict.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple

from fabricproof.core.errors import ParseError

#: ECMA-48 control sequences (colours, cursor movement) and the two-byte escapes
_ANSI = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|[@-Z\\-_])")
#: Open MPI's ``--tag-output``: ``[1,0]<stdout>:``; 5.x adds a blank and may add host and process
_TAG = re.compile(
    r"^(?:\[[^\]\n]{0,80}\])?\[?[\w,.:\-]{0,120}\]?<std(?:out|err|diag)>: ?", re.MULTILINE
)
#: ``iperf3 --timestamps``, whose own format is ``%c `` (iperf3.1), as the C locale writes it
_STAMP = r"^( *[0-9]+: )?[A-Z][a-z]{2} [A-Z][a-z]{2} [ 1-3]\d \d\d:\d\d:\d\d \d{4} "
_STAMPED = re.compile(_STAMP, re.MULTILINE)
_STAMPED_ROW = re.compile(_STAMP + r"\[ *(?:\d+|SUM|ID)\]", re.MULTILINE)


#: what a text says beside its tables
Attributes = dict[str, str | int | float]


@dataclass(frozen=True, kw_only=True)
class TextSection:
    """Consecutive lines of one text that one tool printed.

    Attributes:
        lines: the lines without their ends and without launcher prefixes.
        first: number of the first line in the source, from 1.
        ends_text: the text stops within this section, without a newline.
    """

    lines: list[str]
    first: int
    source: str
    ends_text: bool = False

    def error(
        self, index: int, problem: str, *, expected: str, got: str | None = None
    ) -> ParseError:
        """Return the error for the line at ``index`` of :attr:`lines`; ``got`` is that line."""
        if got is None:
            got = repr(shorten(self.lines[index].strip()))
        return ParseError(
            problem, source=self.source, line=self.first + index, expected=expected, got=got
        )


def shorten(text: str, limit: int = 80) -> str:
    """Return ``text``, cut at ``limit`` characters with a visible ellipsis."""
    return text if len(text) <= limit else f"{text[: limit - 1]}…"


def clean(text: str) -> str:
    """Return ``text`` without byte order mark, escapes, carriage returns and launcher prefixes.

    The number of newlines stays what it was.
    """
    text = text.removeprefix("\ufeff")
    if "\x1b" in text:
        text = _ANSI.sub("", text)
    if "\r\n" in text:
        text = text.replace("\r\n", "\n")
    if "<std" in text:
        text = _TAG.sub("", text)
    if ("bits/sec" in text or "Bytes/sec" in text) and _STAMPED_ROW.search(text):
        text = _STAMPED.sub(r"\1", text)
    return text


#: Columns that the tools print as whole numbers; every other one has exactly two decimals
#: (OSU ``FLOAT_PRECISION 2`` in util/osu_util.h; IMB ``%.2f`` in IMB_edit_format and P2P).
WHOLE = frozenset(
    {"message_size", "repetitions", "iterations", "transmit_size", "num_processes", "group"}
)
_COUNTS = frozenset({"repetitions", "iterations", "num_processes"})

#: No tool prints more digits; without the limit a broken text could ask for numbers of any length.
#: No run has a count of 0: none of processes, of repetitions, of messages in a window.
COUNT = "[1-9][0-9]{0,17}"
_INTEGER, _DECIMAL = "[0-9]{1,18}", r"[0-9]{1,18}\.[0-9]{2}"
_IS_COUNT, _NUMBER = re.compile(COUNT), re.compile("[0-9]+")


def count(name: str) -> str:
    """Return the pattern of a group that holds a count."""
    return f"(?P<{name}>{COUNT})"


def facts_of(patterns: Iterable[re.Pattern[str]], line: str) -> dict[str, str | int | float]:
    """Return the named groups of the first pattern that matches the line, counts as numbers."""
    matches = (pattern.fullmatch(line) for pattern in patterns)
    found = next((match.groupdict() for match in matches if match), {})
    return {name: int(word) if _IS_COUNT.fullmatch(word) else word for name, word in found.items()}


class Column(NamedTuple):
    """What stands below one heading: our name, the pattern of a cell, and what reads its number.

    A cell holds no blank; ``read`` is None if it is no number of ours.
    """

    name: str
    pattern: str
    read: Callable[[str], float] | None


class RowShape:
    """How a row of some columns looks, and what its numbers are.

    Attributes:
        names: the printed columns.
        columns: those that hold numbers.
        sentence: the row is a sentence with whole numbers, of this pattern.
        is_row: matches one whole line.
    """

    def __init__(self, printed: Sequence[Column], sentence: str | None = None) -> None:
        pattern = sentence or "[ \t]+".join(column.pattern for column in printed)
        self.names = tuple(column.name for column in printed)
        self.columns = tuple(column.name for column in printed if column.read)
        self.sentence = sentence
        self.is_row = re.compile(f"[ \t]*{pattern}[ \t]*").fullmatch
        self._rows = re.compile(f"(?:[ \t]*{pattern}[ \t]*\n)*").match
        self._shows_cut = sentence is not None or printed[-1].read is not int
        self._readers = [(at, column.read) for at, column in enumerate(printed) if column.read]

    def leading(self, lines: Sequence[str]) -> int:
        """Return how many lines from the first on are rows: of many in one go."""
        text = "\n".join([*lines, ""])
        rows = self._rows(text)
        return text.count("\n", 0, rows.end()) if rows else 0

    def read(self, section: TextSection, found: Sequence[int]) -> tuple[tuple[float, ...], ...]:
        """Return the numbers of the lines of a section that are rows.

        Raises:
            ParseError: the last row may be cut: a whole number at the end of a text without
                newline could be the beginning of a longer one; two decimals are whole.
        """
        last = len(section.lines) - 1
        if section.ends_text and not self._shows_cut and found and found[-1] == last:
            raise section.error(last, "cut row", expected="a newline at its end")
        text = "\n".join([section.lines[index] for index in found])
        words = _NUMBER.findall(text) if self.sentence else text.split()
        width = len(self.names)
        return tuple(zip(*(map(read, words[at::width]) for at, read in self._readers), strict=True))

    def describe(self) -> str:
        """Return what a row should hold, for an error message."""
        return f"{len(self.names)} columns ({', '.join(self.names)})"


@lru_cache(maxsize=128)
def row_shape(
    names: tuple[str, ...], whole: frozenset[str] = WHOLE, sentence: str | None = None
) -> RowShape:
    """Return the shape of rows of these columns, of which ``whole`` are whole numbers."""

    def column(name: str) -> Column:
        if name == "validation":
            return Column(name, "(?:Pass|Fail)", None)
        if name in whole:
            return Column(name, COUNT if name in _COUNTS else _INTEGER, int)
        return Column(name, _DECIMAL, int if sentence else float)

    return RowShape([column(name) for name in names], sentence)


def check_sizes(
    section: TextSection,
    indexes: Sequence[int],
    sizes: Sequence[float] | None,
    *,
    first: int | None,
    doubling: bool = True,
) -> None:
    """Check that the sizes double, as where the tool chose them, or at least rise.

    Args:
        section: where they stand.
        indexes: the line of each.
        sizes: in bytes, in printed order; None if the table has none, and so one row.
        first: the largest size that may follow 0; None for any power of two.
        doubling: the tool chose them.

    Raises:
        ParseError: a size repeats, goes down, or skips one.
    """
    if sizes is None:
        if len(indexes) > 1:
            expected = "one row, as there are no sizes"
            raise section.error(indexes[1], "a second row", expected=expected)
        return
    for index, (before, size) in zip(indexes[1:], pairwise(map(int, sizes)), strict=True):
        if size <= before:
            expected = f"more than {before}"
            raise section.error(index, "message sizes out of order", expected=expected)
        follows = (
            size == 2 * before if before else size & (size - 1) == 0 and size <= (first or size)
        )
        if doubling and not follows:
            wanted = 2 * before or first or "a power of two"
            raise section.error(
                index,
                "a row is missing",
                expected=f"message size {wanted} (the tool doubles its sizes; a table of sizes "
                "picked by hand cannot be told from one that lost rows)",
            )


#: The job was killed or gave up.  Sources: Slurm's slurmstepd and srun messages, Open MPI's
#: help-mpirun/help-mpi-api texts, Hydra's "BAD TERMINATION" banner, bash's job messages, MPICH's
#: and Intel MPI's fatal error texts, the kernel's and cgroup's out-of-memory news, timeout(1) -v,
#: PBS ("job killed: walltime 3600 exceeded") and LSF ("job killed after reaching LSF run time").
_DEATH = re.compile(
    r"CANCELLED|DUE TO (?:TIME LIMIT|NODE FAILURE|PREEMPTION|JOB REQUEUE)"
    r"|srun: (?:error: .*task|Job step aborted|Force Terminated|First task exited)"
    r"|srun: error: .*(?:failed|Timed out|Unable|Aborting)"
    r"|^\s*(?:Killed|Terminated|Aborted|Segmentation fault|Bus error|Floating point exception)\b"
    r"|(?:mpirun|mpiexec|prterun|orterun|mpiexec\.hydra)\s+(?:noticed|detected|has exited)"
    r"|BAD TERMINATION|KILLED BY SIGNAL|APPLICATION TERMINATED WITH"
    r"|MPI_ABORT was invoked|MPI_Abort\(|MPI_ERRORS_ARE_FATAL|[Ff]atal error in|^Abort\(\d+\)"
    r"|Process received signal|Caught signal|[Ss]egmentation [Ff]ault|SIG(?:KILL|SEGV|TERM|BUS)\b"
    r"|(?:ORTE|PRTE) has lost communication|daemon .*unexpectedly"
    r"|oom[-_]kill|[Oo]ut [Oo]f [Mm]emory|OUT_OF_MEMORY|Transport retry count exceeded"
    r"|slurmstepd: error: .*(?:STEP|JOB|Exceeded)"
    r"|srun: (?:error: Node failure|forcing job termination)"
    r"|abort is already in progress|sending signal \w+ to command|[Jj]ob killed"
    r"|^\s*(?:Illegal instruction|Hangup|Alarm clock|User defined signal \d)\b"
)

#: The program ended with a status other than 0.  After a failed validation this is expected.
_EXITED = re.compile(
    r"[Ee]xited with exit code|non-zero (?:exit )?status|non-zero exit code|exited with status"
)

#: Chatter that begins with a digit: dates, clock times, sentences ("1 more process has sent ...").
#: In a row at least two blanks follow the size, so a cut row is no sentence.  No row holds a
#: percentage first ("0% [Working]" of apt), or an address followed by a name ("4deb78a flags=0x0)",
#: the second half of a line of UCX).
_DIGIT_CHATTER = re.compile(
    r"\s*(?:\d{1,3}% |(?:0x[0-9a-f]{1,16}|(?=[0-9]+[a-f])[0-9a-f]{6,16}),? [a-z]+=|"
    r"\d+(?:[-/]\d+){2}|\d+:\d\d|\d+(?:\.\d+)*\.? [A-Za-z(\[])"
)

#: Searching costs the square of a line's length; no row and no news is longer than this.
_LONG = 2000

_ROW_START = re.compile(r"\s*[-+.]?\d")
_ROW_INSIDE = re.compile(r"\d[ \t]{2,}\d+\.\d|\d[ \t]+\d+\.\d\d(?!\d)\s*$")


def death(line: str) -> bool:
    """Tell whether ``line`` says that the job was killed, crashed or ended badly."""
    line = line[:_LONG]
    return _DEATH.search(line) is not None or is_exit_status(line)


def is_exit_status(line: str) -> bool:
    """Tell whether ``line`` reports nothing worse than an exit status other than 0."""
    return _EXITED.search(line) is not None


def first_death(lines: Iterable[str]) -> int | None:
    """Return the index of the first line that says the job died, or None."""
    return next((index for index, line in enumerate(lines) if death(line)), None)


def check_chatter(section: TextSection, index: int, expected: str, *, rows: bool = True) -> None:
    """Accept the line at ``index`` as chatter.

    ``rows``: it may be a row, or hide one; not so within a plot.

    Raises:
        ParseError: the line could be a damaged row, or says that the job died.
    """
    line = section.lines[index]
    if not line.strip():
        return
    if len(line) > _LONG:
        line = f"{line[: _LONG // 2]} {line[1 - _LONG // 2 :]}"
    if death(line):
        raise section.error(index, "the job ended badly", expected="a run that ended well")
    begins = _ROW_START.match(line)
    if rows and (not _DIGIT_CHATTER.match(line) if begins else _ROW_INSIDE.search(line)):
        raise section.error(index, "damaged row", expected=expected)
