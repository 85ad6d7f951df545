"""What Spack complained of: its error messages, and the build that failed with its log.

Spack 1.1 prints every error as ``==> Error: `` with its details on the lines below
(``lib/spack/spack/error.py``); a failed build adds an excerpt of its log and where the log lies
(``ChildError`` of ``build_environment.py``, ``make_log_context`` of ``util/log_parse.py``).
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from fabricproof.stacks.spack.output.progress import Failed, Reader, plain

_BEGIN = re.compile(r"==> Error: (?P<text>.*)")
_END = re.compile(r"==> |\[\+\] ")
_KIND = re.compile(
    r"(?:Failed to install \S+ due to )?(?:\S+-[a-z0-9]{32}: )?"
    r"(?:[A-Z]\w+: )?(?P<text>.*)",
    re.DOTALL,
)
#: said at the end about what was said before, or about the command line after a broken file.
_ECHO = re.compile(
    r"\S+: Package was not installed$|Installation request failed\.|argument '--\w+' requires an"
)

#: a line of the excerpt: ``  >> 12    text``, ``>>`` where Spack takes it for the error.
_EXCERPT = re.compile(r"(?P<mark>  >> |     )(?P<line>\d+)\s{4,}(?P<text>.*)")

#: of compilers, linkers, configure scripts and make, best first.
_TELLING = (
    re.compile(r"fatal error: |configure: error: (?!in )|(?<!configure: )\berror: "),
    re.compile(r"undefined reference|cannot find -l|No space left|command not found"),
    re.compile(r"\*\*\* "),
)
#: ends a log that is read at all: enough for a parallel make's last words.
_TAIL_BYTES = 256 * 1024
_LAST_LINES = 20


@dataclass(frozen=True, kw_only=True)
class BuildFailure:
    """A package that could not be built.

    Attributes:
        log: its build log, which stays until the next try; None where it came not that far.
        line: of the first error in ``log``, from 1; None where only the end is known.
        first_error: what the compiler, linker or script said first; None where nothing tells.
        last_lines: the end of the log, or Spack's excerpt of it.
    """

    package: str
    log: str | None
    line: int | None
    first_error: str | None
    last_lines: tuple[str, ...]


def complaints(output: str) -> tuple[str, ...]:
    """Return the errors in ``output``, first to last, without repetitions and closing words.

    Of each the first line, without the package and the class of Python's that it names, and the
    lines below it.
    """
    found: dict[str, str] = {}
    lines = iter(plain(line) for line in output.splitlines())
    for block in _blocks(lines):
        first = _BEGIN.match(block[0])
        if first is None or _ECHO.match(first["text"]):
            continue
        parts = _KIND.fullmatch(first["text"])
        assert parts is not None
        text = parts["text"].strip()
        found.setdefault(text, "\n".join([text, *(line for line in block[1:] if line.strip())]))
    return tuple(found.values())


def _blocks(lines: Iterable[str]) -> Iterator[list[str]]:
    """Yield the lines from one message up to the next."""
    block: list[str] = [""]
    for line in lines:
        if _END.match(line):
            yield block
            block = [line]
        else:
            block.append(line)
    yield block


def _failed_build(output: str) -> Failed | None:
    """Return the first package that failed with a build log of its own."""
    reader = Reader()
    for line in output.splitlines():
        reader.feed(line)
    return next((each for each in reader.failed if each.log), None)


def build_failure(output: str, log_tail: str = "") -> BuildFailure | None:
    """Return the first package that failed while it was built, None where none did."""
    failed = _failed_build(output)
    if failed is None:
        return None
    excerpt = _excerpt(output, failed)
    tail = [plain(line) for line in log_tail.splitlines() if line.strip()]
    numbered = [(number, text) for number, text, _ in excerpt]
    marked = [(number, text) for number, text, mark in excerpt if mark]
    told = _telling([(None, text) for text in tail])
    line, first_error = next(iter([*_telling(numbered), *marked, *told]), (None, None))
    return BuildFailure(
        package=failed.package,
        log=failed.log,
        line=line,
        first_error=first_error.strip() if first_error else None,
        last_lines=tuple((tail or [text for _, text, _ in excerpt])[-_LAST_LINES:]),
    )


def _telling(lines: Iterable[tuple[int | None, str]]) -> list[tuple[int | None, str]]:
    """Return the lines that say why, the best kind only."""
    known = list(lines)
    for pattern in _TELLING:
        if found := [each for each in known if pattern.search(each[1])]:
            return found
    return []


def _excerpt(output: str, failed: Failed) -> list[tuple[int | None, str, bool]]:
    """Return Spack's excerpt of the log: line number, text, marked; what it wrapped is joined."""
    found: list[tuple[int | None, str, bool]] = []
    indent = ""
    for line in _before_log(output, failed):
        if start := _EXCERPT.match(line):
            indent = " " * start.start("text")
            found.append((int(start["line"]), start["text"], start["mark"].strip() == ">>"))
        elif found and indent and line.startswith(indent):
            number, text, marked = found[-1]
            found[-1] = (number, text + line[len(indent) :], marked)
    return found


def _before_log(output: str, failed: Failed) -> list[str]:
    lines = [plain(line) for line in output.splitlines()]
    end = lines.index(f"  {failed.log}") if f"  {failed.log}" in lines else len(lines)
    begin = max((number for number in range(end) if _BEGIN.match(lines[number])), default=0)
    return lines[begin:end]


def read_log_tail(output: str) -> str:
    """Return the end of the build log that ``output`` names; empty where none can be read."""
    failed = _failed_build(output)
    if failed is None or failed.log is None:
        return ""
    try:
        with Path(failed.log).open("rb") as file:
            file.seek(max(0, file.seek(0, os.SEEK_END) - _TAIL_BYTES))
            return file.read().decode(errors="replace")
    except OSError:
        return ""
