"""What a person sees while Spack works: one moving line on a terminal, plain lines elsewhere."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn, Self

import click
from rich.status import Status

from fabricproof.cli.console import HonestConsole
from fabricproof.core.errors import FabricproofError
from fabricproof.stacks.spack import Reader

#: what each step is, for people.
_STEPS = {
    "wait": "waiting",
    "lock": "solving",
    "install": "installing",
    "modules": "writing modules",
    "linkage": "checking which MPI is loaded",
    "smoke": "starting two ranks",
}


#: a cancelled job, a closed session.
_ENDS = (signal.SIGTERM, signal.SIGHUP)


def _interrupt(number: int, frame: object) -> NoReturn:  # noqa: ARG001 - the signal's own shape
    raise KeyboardInterrupt


class Display:
    """Shows the steps of one stack on the error stream, so that results stay alone on stdout."""

    def __init__(self, stack: str) -> None:
        self._stack = stack
        self._step = ""
        self._begin = time.monotonic()
        self._status: Status | None = None
        self._reader = Reader()
        self._log: Path | None = None

    def __enter__(self) -> Self:
        # They must end Spack too, not leave it building; but nohup is to be heeded.
        self._before = {
            sign: signal.signal(sign, _interrupt)
            for sign in _ENDS
            if signal.getsignal(sign) is not signal.SIG_IGN
        }

        console = HonestConsole(stderr=True)
        if console.is_terminal:
            self._status = console.status(self._stack)
            self._status.start()
        return self

    def __exit__(self, _kind: object, error: object, _trace: object) -> None:
        for sign, before in self._before.items():
            signal.signal(sign, before)
        if self._status is not None:
            self._status.stop()
        if isinstance(error, FabricproofError) and self._log is not None and self._log.is_file():
            self.say(f"all that Spack printed is in {self._log}")

    def say(self, text: str) -> None:
        """Show ``text`` once, whatever moves."""
        click.echo(f"{self._stack}: {text}", err=True)

    def on(self, step: str) -> Callable[[str], None]:
        """Return a listener for the lines of ``step``."""
        return lambda line: self.listen(step, line)

    def listen(self, step: str, line: str) -> None:
        """Take a line of ``step``; of step ``log`` it is the file that Spack's words go to."""
        if step == "log":
            self._log = Path(line)
            return
        if step != self._step:
            self._step = step
            if self._status is None or step == "wait":
                self.say(line if step == "wait" else _STEPS.get(step, step))
        self._show(self._progress(step, line))

    def _progress(self, step: str, line: str) -> str | None:
        """Return what to show for ``line``, None for nothing new."""
        if step != "install":
            return _STEPS.get(step, line)
        if not self._reader.feed(line):
            return None
        reader = self._reader
        of = f" of {reader.total}" if reader.total else ""
        doing = f"{reader.package or 'packages'}: {reader.phase or 'starting'}"
        return f"{doing} ({reader.done}{of} done)"

    def _show(self, text: str | None) -> None:
        if text is None:
            return
        if self._status is not None:
            seconds = time.monotonic() - self._begin
            self._status.update(f"{self._stack}: {text} ({seconds:.0f} s)")
        elif self._step == "install":
            self.say(text)
