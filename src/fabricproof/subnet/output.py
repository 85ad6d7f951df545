"""What one tool of infiniband-diags printed: whole lines, and errors that name them.  Pure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from fabricproof.core.errors import ParseError


@dataclass(frozen=True, kw_only=True)
class Output:
    """What one tool printed.

    Attributes:
        text: as it was printed; it must end with a newline, or its end is lost.
        source: file or command it comes from.
        tool: the tool's name, for messages.
    """

    text: str
    source: str
    tool: str

    def lines(self) -> Iterator[tuple[int, str]]:
        """Yield number and content of each line.

        Raises:
            ParseError: nothing was printed, or the last line is cut.
        """
        if not self.text.strip():
            raise self.error(1, "empty", expected=f"what {self.tool} prints", got="nothing")
        *lines, rest = self.text.split("\n")
        if rest:
            raise self.cut(len(lines) + 1, "a newline at its end")
        yield from enumerate(lines, start=1)

    def error(
        self,
        number: int,
        problem: str,
        *,
        expected: str,
        line: str | None = None,
        got: str | None = None,
        next_step: str | None = None,
    ) -> ParseError:
        """Return the error for line ``number``; ``line`` is quoted where ``got`` is not given."""
        return ParseError(
            problem,
            source=self.source,
            line=number,
            expected=expected,
            got=got if got is not None or line is None else repr(line[:100]),
            next_step=next_step,
        )

    def unknown(
        self, number: int, line: str, expected: str, next_step: str | None = None
    ) -> ParseError:
        """Return the error for a line that this reader does not know."""
        problem = f"not a line of {self.tool}"
        return self.error(number, problem, expected=expected, line=line, next_step=next_step)

    def cut(self, number: int, expected: str) -> ParseError:
        """Return the error for an output whose end is lost."""
        return self.error(number, "the output is cut", expected=expected)
