"""Write a file whole or not at all: a reader sees the old file or the new one, never a part."""

from __future__ import annotations

import contextlib
import errno
import os
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from fabricproof.core.errors import OutputError

#: what a file system answers that has no hard links
_NO_LINKS = frozenset({errno.EPERM, errno.ENOTSUP, errno.ENOSYS, errno.EMLINK})


@contextlib.contextmanager
def whole_file(path: Path, *, replace: bool = True) -> Iterator[BinaryIO]:
    """Give a file to write to, which becomes ``path`` in one step, or is gone if anything fails.

    It is made beside ``path`` under a hidden name that no ``*.prom`` or ``*.jsonl`` matches.

    Raises:
        FileExistsError: ``path`` is there and is not to be replaced.
        OSError: it could not be written; what was there before is unchanged.
    """
    new = path.with_name(f".{path.name}.{os.getpid()}.new")
    try:
        new.unlink(missing_ok=True)
        # "x" follows no link that a stranger laid in a folder that all may write to.
        with new.open("xb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        if replace:
            new.replace(path)
        elif not link_new(new, path):
            # Without hard links: between these two steps nobody else may take that name.
            if path.exists():
                raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(path))
            new.replace(path)
    finally:
        with contextlib.suppress(OSError):
            new.unlink(missing_ok=True)


def write_whole(path: Path, content: str | bytes) -> None:
    """Write ``content`` (text as UTF-8) in one step; OutputError leaves what was there before."""
    next_step = "name a file in a folder that you can write, or make room"
    with refusal_of("write", path, next_step), whole_file(path) as file:
        file.write(content if isinstance(content, bytes) else content.encode())


@contextlib.contextmanager
def refusal_of(what: str, path: Path, next_step: str | None = None) -> Iterator[None]:
    """Turn an OSError into an OutputError that says ``cannot <what>`` of ``path``."""
    try:
        yield
    except OSError as error:
        problem = f"cannot {what}: {error.strerror or error}"
        raise OutputError(problem, source=str(path), next_step=next_step) from None


def link_new(new: Path, path: Path) -> bool:
    """Give ``new`` the name ``path`` as well; False where the file system has no hard links.

    Raises:
        FileExistsError: something has that name already.
    """
    try:
        # A link fails where somebody was faster; a rename would overwrite theirs.
        os.link(new, path)
    except OSError as error:
        if error.errno not in _NO_LINKS:
            raise
        return False
    return True
