"""Write a file whole or not at all: who reads it meanwhile sees the one before."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

from fabricproof.core.errors import OutputError


def write_text(path: Path, text: str) -> None:
    """Write ``text`` to ``path`` in one step, in UTF-8.

    The new file is made beside it under another name, which no ``*.prom`` or ``*.xml`` matches,
    and takes its place with one rename (what node_exporter's textfile collector asks for).

    Raises:
        OutputError: it could not be written; what was there before is unchanged.
    """
    new = path.with_name(f".{path.name}.{os.getpid()}.new")
    try:
        with new.open("w", encoding="utf-8", newline="\n") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        new.replace(path)
    except OSError as error:
        with contextlib.suppress(OSError):
            new.unlink(missing_ok=True)
        raise OutputError(
            f"cannot write: {error.strerror or error}",
            source=str(path),
            next_step="name a file in a folder that you can write, or make room",
        ) from None
