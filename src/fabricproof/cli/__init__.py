"""The ``fabricproof`` command.  Each subcommand lives in a module of its own, loaded on use."""

from __future__ import annotations

from fabricproof.cli.main import main

__all__ = ["main"]
