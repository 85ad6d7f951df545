"""Call a program with a time limit, and say clearly what failed."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence
from pathlib import Path

from vcluster.errors import UnavailableError

#: daemons and tools of administrators live in the sbin folders, which users may not have.
SYSTEM_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


def clean_environment(**extra: str) -> dict[str, str]:
    """Return the environment of every daemon: nothing of the caller's shell in it."""
    return {"PATH": SYSTEM_PATH, "LANG": "C", "LC_ALL": "C", "HOME": "/root", **extra}


def run(
    argv: Sequence[str],
    *,
    stdin: str | None = None,
    timeout_s: float = 20.0,
    environment: dict[str, str] | None = None,
    check: bool = True,
    cwd: Path | None = None,
) -> subprocess.CompletedProcess[str]:
    """Run a program to its end and return its output.

    Args:
        argv: program and arguments.
        stdin: text for its standard input; nothing when None.
        timeout_s: it is killed after this time.
        environment: its environment; :func:`clean_environment` when None.
        check: refuse a failure.
        cwd: where it runs; here when None.

    Raises:
        UnavailableError: it is not there, failed or did not end in time.
    """
    try:
        done = subprocess.run(  # noqa: PLW1510 (checked below, with a better message)
            list(argv),
            input=stdin or "",
            capture_output=True,
            text=True,
            timeout=timeout_s,
            env=environment if environment is not None else clean_environment(),
            start_new_session=True,
            cwd=cwd,
        )
    except FileNotFoundError as error:
        raise UnavailableError(
            f"program {argv[0]!r} is not there", next_step="ci/bootstrap.sh packages"
        ) from error
    except subprocess.TimeoutExpired as error:
        raise UnavailableError(f"{' '.join(argv)!r} did not end within {timeout_s:g} s") from error
    if check and done.returncode != 0:
        says = (done.stderr or done.stdout).strip().splitlines()
        raise UnavailableError(
            f"{' '.join(argv)!r} failed with status {done.returncode}",
            got=" / ".join(says[-3:]) or "no message",
        )
    return done


def find_program(name: str) -> str | None:
    """Return the full path of a program in the system's folders."""
    for folder in SYSTEM_PATH.split(":"):
        path = Path(folder, name)
        if os.access(path, os.X_OK):
            return str(path)
    return None
