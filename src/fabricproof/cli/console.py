"""rich's console, without its own idea of an exit status."""

from __future__ import annotations

import os
from typing import Any

from rich.console import Console

#: a terminal that says it is narrower says nothing (``COLUMNS=0`` of a pty in CI)
_NARROWEST = 20


class HonestConsole(Console):
    """A console whose reader may go away.

    rich ends the process with status 1 then, which would say FAIL here.
    """

    def __init__(self, **options: Any) -> None:
        columns = os.environ.get("COLUMNS", "")
        if columns.isdigit() and int(columns) < _NARROWEST:
            kept = {name: value for name, value in os.environ.items() if name != "COLUMNS"}
            options.setdefault("_environ", kept)
        super().__init__(**options)

    def on_broken_pipe(self) -> None:
        """Say so, as every other print of ours does."""
        raise BrokenPipeError
