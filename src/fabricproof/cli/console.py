"""rich's console, without its own idea of an exit status."""

from __future__ import annotations

from rich.console import Console


class HonestConsole(Console):
    """A console whose reader may go away.

    rich ends the process with status 1 then, which would say FAIL here.
    """

    def on_broken_pipe(self) -> None:
        """Say so, as every other print of ours does."""
        raise BrokenPipeError
