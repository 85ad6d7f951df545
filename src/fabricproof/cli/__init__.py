"""The ``fabricproof`` command.  Each subcommand lives in a module of its own, loaded on use."""

from __future__ import annotations

import sys

try:
    from fabricproof.cli.main import main
except KeyboardInterrupt:
    # Ctrl-C while the command is still being loaded, a third of a second on a busy machine: Python
    # would print a traceback.  The status is ExitStatus.INTERRUPTED, which may not be loaded yet.
    sys.stderr.write("fabricproof: interrupted\n")
    sys.exit(130)

__all__ = ["main"]

#: What other rooms may import: nothing.
FRONT: dict[str, str] = {}
