"""Standard output on which the text of a file moves no cursor."""

from __future__ import annotations

from typing import IO, Any

from fabricproof.core.errors import without_control_characters


class CleanOutput:
    """A stream that writes control characters as their escapes; newlines and tabs stay.

    A carriage return in the name of a file or a node would overwrite the verdict on its line.

    Attributes:
        stream: the stream below, which writes all as it is.
    """

    def __init__(self, stream: IO[str]) -> None:
        self.stream = stream

    def write(self, text: str) -> int:
        """Write ``text``; return the number of characters written."""
        return self.stream.write(without_control_characters(text, kept="\n\t"))

    def __getattr__(self, name: str) -> Any:
        return getattr(self.stream, name)
