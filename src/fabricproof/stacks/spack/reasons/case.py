"""A failed call of Spack, as the reasons look at it."""

from __future__ import annotations

import re
import signal
from dataclasses import dataclass
from functools import cached_property

from fabricproof.core.errors import UnavailableError
from fabricproof.stacks.spack.complaints import BuildFailure, Complaint, complaints, package_in_hand
from fabricproof.stacks.spack.progress import plain

#: characters of Spack's own words in one message.
_WIDTH = 240


class BuildError(UnavailableError):
    """A package could not be built, or Spack failed in a way nobody knows.

    Status 69 is what ``sysexits.h`` has for work that could not be done: the stack is not there.

    Attributes:
        failure: the package, its log and the log's last lines; None where nothing was built.
    """

    def __init__(self, problem: str, *, failure: BuildFailure | None, **facts: str | None) -> None:
        source, line = (failure.log, failure.line) if failure else (None, None)
        super().__init__(
            problem,
            source=source,
            line=line if source else None,
            expected=facts.get("expected"),
            got=facts.get("got"),
            next_step=facts.get("next_step"),
        )
        self.failure = failure


@dataclass(frozen=True, kw_only=True)
class Case:
    """One failed call.

    Attributes:
        step: Spack's command.
        output: all it printed.
        status: its exit status, as the shell or :mod:`subprocess` gives it.
        log_tail: the end of the failed build's log.
    """

    step: str
    output: str
    status: int
    log_tail: str = ""

    @cached_property
    def text(self) -> str:
        """The output without colours."""
        return "\n".join(plain(line) for line in self.output.splitlines())

    @cached_property
    def complaints(self) -> tuple[Complaint, ...]:
        """Spack's errors, first to last."""
        return complaints(self.output)

    @cached_property
    def package(self) -> str | None:
        """What was worked on at the end."""
        return package_in_hand(self.output)

    @property
    def signal(self) -> int | None:
        """The signal that ended Spack itself, None where none did."""
        if self.status < 0:
            return -self.status
        return self.status - 128 if 128 < self.status < 128 + signal.NSIG else None

    @property
    def status_word(self) -> str:
        """The status in words."""
        return f"exit status {self.status} and no message"

    def line_with(self, *words: str) -> str | None:
        """Return the first line, of the output or the log, that has one of ``words``."""
        for text in (self.text, self.log_tail):
            for line in text.splitlines():
                if any(word in line for word in words):
                    return line.strip()
        return None

    def complaint(self, pattern: str) -> tuple[Complaint, re.Match[str]] | None:
        """Return the first complaint that ``pattern`` is found in, details counted."""
        for each in self.complaints:
            if found := re.search(pattern, each.whole, re.MULTILINE):
                return each, found
        return None


def short(text: str) -> str:
    """Return ``text`` in one line that fits into a message."""
    line = " ".join(text.split())
    return line if len(line) <= _WIDTH else f"{line[: _WIDTH - 3]}..."


def words_of(text: str) -> str:
    """Return the message in a line of Spack's, without its decoration."""
    line = re.sub(r"^(?:==> )?(?:Error: )?(?:>> +)?(?:\d+ {4,})?", "", text.strip())
    return short(re.sub(r"^\w+Error: (?=\[Errno)", "", line))
