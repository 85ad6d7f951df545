"""Standard output: no text of a file steers the terminal; rich's console without its own status."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import IO, Any

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment

from fabricproof.cli.clean_output import CleanOutput
from fabricproof.core.errors import without_control_characters

#: a terminal that says it is narrower says nothing (``COLUMNS=0`` of a pty in CI)
_NARROWEST = 20


class HonestConsole(Console):
    """A console whose reader may go away, and on which a text moves no cursor.

    rich ends the process with status 1 where its reader is gone, which would say FAIL here.
    """

    def __init__(self, **options: Any) -> None:
        columns = os.environ.get("COLUMNS", "")
        if columns.isdigit() and int(columns) < _NARROWEST:
            kept = {name: value for name, value in os.environ.items() if name != "COLUMNS"}
            options.setdefault("_environ", kept)
        super().__init__(**options)

    @property
    def file(self) -> IO[str]:
        """Return the stream below :class:`CleanOutput`, where colours are not escaped."""
        stream = super().file
        return stream.stream if isinstance(stream, CleanOutput) else stream

    @file.setter
    def file(self, stream: IO[str]) -> None:
        self._file = stream

    def render(
        self, renderable: RenderableType, options: ConsoleOptions | None = None
    ) -> Iterable[Segment]:
        """Return the segments of ``renderable``; only rich's own may steer the terminal."""
        for text, style, control in super().render(renderable, options):
            clean = text if control else without_control_characters(text, kept="\n\t")
            yield Segment(clean, style, control)

    def on_broken_pipe(self) -> None:
        """Say so, as every other print of ours does."""
        raise BrokenPipeError
