"""Turn what a job printed into plain numbered lines: the ground that every parser stands on.

Launchers put a prefix before each line, terminals colour them and Windows editors end them with
a carriage return.  None of that is data, so it goes before any table is looked for.  Line numbers
stay those of the original text.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from fabricproof.errors import ParseError

#: ECMA-48 control sequences (colours, cursor movement) and the two-byte escapes.
_ANSI = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|[@-Z\\-_])")

#: Prefixes of launchers: Open MPI ``--tag-output`` (``[1,0]<stdout>:``; 5.x adds a blank and may
#: add host and process before it), ``srun --label`` (``0: ``), Hydra ``-prepend-rank``
#: (``[0] ``).  The last must not eat iperf3's ``[100]   0.00-1.00``.
_TAG = re.compile(
    r"^(?:\[[^\]\n]{0,80}\])?\[?[\w,.:\-]{0,120}\]?<std(?:out|err|diag)>: ?", re.MULTILINE
)
_LABEL = re.compile(r"^ *\d+: ", re.MULTILINE)
#: ``iperf3 --timestamps``, whose own format is ``%c `` (iperf3.1), as the C locale writes it
_STAMP = r"^[A-Z][a-z]{2} [A-Z][a-z]{2} [ 1-3]\d \d\d:\d\d:\d\d \d{4} "
_STAMPED = re.compile(_STAMP, re.MULTILINE)
_STAMPED_ROW = re.compile(_STAMP + r"\[ *(?:\d+|SUM|ID)\]", re.MULTILINE)
_RANK = re.compile(r"^\[\d+\] (?! *\d+\.\d+ ?-)", re.MULTILINE)


@dataclass(frozen=True, kw_only=True)
class Section:
    """Consecutive lines of one text that one tool printed.

    Attributes:
        lines: the lines without their ends and without launcher prefixes.
        first: number of the first line in the source, from 1.
        source: file or other origin.
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
    # The tables are printed by the first rank: without its label there is none to take off, and
    # looking at every line for one costs as much as reading them.
    if "0: " in text:
        text = _LABEL.sub("", text)
    if "bits/sec" in text and _STAMPED_ROW.search(text):
        text = _STAMPED.sub("", text)
    if "[0] " in text:
        text = _RANK.sub("", text)
    return text
