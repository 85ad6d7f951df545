"""The ``vcluster`` command: the one place where errors become a line and an exit status."""

from __future__ import annotations

import contextlib
import errno
import os
import subprocess
import sys
import traceback
from pathlib import Path
from typing import NoReturn

from vcluster.errors import ExitStatus, VclusterError, program, without_control

#: what a file system answers that will not take what we write
_UNWRITABLE = frozenset(
    (
        *(errno.ENOSPC, errno.EROFS, errno.EDQUOT, errno.EIO, errno.EFBIG),
        *(errno.EACCES, errno.EPERM, errno.ENOTDIR, errno.EEXIST),
    )
)
#: what it answers where a file went away, or is of another kind than one that can be read
_GONE = frozenset((errno.ENOENT, errno.EISDIR, errno.ELOOP, errno.ENAMETOOLONG, errno.ESTALE))
#: what only a program that mixes its own files up is answered
_OUR_OWN = frozenset((errno.EBADF, errno.EFAULT, errno.ENOTSOCK))


def _leave(message: str, status: ExitStatus) -> NoReturn:
    # Where standard error takes nothing (a full disk below a log), the status still speaks.
    with contextlib.suppress(OSError, ValueError):
        who = program().split()[0]
        sys.stderr.write(f"{who}: {without_control(message, kept=chr(10))}\n")
        sys.stderr.flush()
    sys.exit(int(status))


def _leave_with_bug() -> NoReturn:
    with contextlib.suppress(OSError, ValueError):
        traceback.print_exc()
    _leave("this is a bug in vcluster; the lines above say where", ExitStatus.SOFTWARE)


def _leave_with(error: OSError) -> NoReturn:
    """Leave with what the system refused: a file, a process, memory; a bug is none of them."""
    if error.errno in _OUR_OWN:
        _leave_with_bug()
    said = error.strerror or str(error) or type(error).__name__
    name = f"{error.filename}: " if error.filename else ""
    if error.errno in _UNWRITABLE:
        _leave(f"{error.filename or 'output'}: cannot write: {said}", ExitStatus.IO)
    last = traceback.extract_tb(error.__traceback__)[-1:]
    if isinstance(error, FileNotFoundError) and last and last[0].filename.endswith("subprocess.py"):
        _leave(f"{name}no such program, or no interpreter of it", ExitStatus.UNAVAILABLE)
    if error.errno in _GONE:
        _leave(f"{name}cannot read: {said}", ExitStatus.NO_INPUT)
    _leave(f"{name}the system refuses: {said}", ExitStatus.UNAVAILABLE)


def _run() -> int:
    """Run the command line; return its status, whatever way out it took but an error of ours."""
    import click  # noqa: PLC0415 - Ctrl-C while it is loaded ends as any other

    from vcluster.command.cli import whole_group  # noqa: PLC0415

    group = whole_group()
    try:
        # Not click's main(): it leaves with 1 where nobody reads.
        with group.make_context(program(), sys.argv[1:]) as context:
            status = group.invoke(context)
    except click.exceptions.Exit as leaving:
        return leaving.exit_code
    except click.Abort:
        raise KeyboardInterrupt from None
    except click.ClickException as error:
        with contextlib.suppress(OSError, ValueError):
            error.show()
        return error.exit_code
    return status if isinstance(status, int) else 0


def main() -> NoReturn:
    """Run the command line; every way out has a documented status."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:  # the shell closed it (``>&-``)
            setattr(sys, name, Path(os.devnull).open("w", encoding="utf-8"))  # noqa: SIM115
    try:
        sys.exit(_run())
    except KeyboardInterrupt:
        _leave("interrupted", ExitStatus.INTERRUPTED)
    except VclusterError as error:
        _leave(str(error), error.exit_status)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(int(ExitStatus.IO))
    except OSError as error:
        _leave_with(error)
    except MemoryError:
        _leave("the memory is not enough for this", ExitStatus.UNAVAILABLE)
    except subprocess.SubprocessError as error:
        _leave(f"a program that was started failed: {error}", ExitStatus.UNAVAILABLE)
    except Exception:
        _leave_with_bug()


if __name__ == "__main__":
    main()
