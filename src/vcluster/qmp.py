"""Tell QEMU to pull a guest's cable, or to plug it in again (QEMU Machine Protocol)."""

from __future__ import annotations

import json
import socket
from pathlib import Path
from typing import Any

from vcluster.errors import UnavailableError

_SECONDS = 10.0


def set_link(monitor: Path, card: str, *, up: bool) -> None:
    """Let a card of a guest have a carrier, or none.

    Args:
        monitor: QEMU's socket.
        card: identity of the card, as ``rail0``.
        up: whether it has a carrier.

    Raises:
        UnavailableError: QEMU does not answer, or refuses.
    """
    try:
        with socket.socket(socket.AF_UNIX) as line:
            line.settimeout(_SECONDS)
            line.connect(str(monitor))
            with line.makefile("rw") as stream:
                _read(stream)  # the greeting
                _ask(stream, "qmp_capabilities", {})
                _ask(stream, "set_link", {"name": card, "up": up})
    except (OSError, ValueError) as error:
        raise UnavailableError(
            f"QEMU does not take the command to {'plug in' if up else 'pull'} {card}",
            source=str(monitor),
            got=str(error),
        ) from error


def _ask(stream: Any, command: str, arguments: dict[str, Any]) -> None:
    stream.write(json.dumps({"execute": command, "arguments": arguments}) + "\n")
    stream.flush()
    answer = _read(stream)
    if "error" in answer:
        raise ValueError(f"{command}: {answer['error'].get('desc', answer['error'])}")


def _read(stream: Any) -> dict[str, Any]:
    """Return the next answer; events that come in between are left out."""
    while True:
        line = stream.readline()
        if not line:
            raise ValueError("the connection ended")
        answer = json.loads(line)
        if "event" not in answer:
            return dict(answer)
