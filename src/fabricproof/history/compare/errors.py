"""The two ways in which a comparison ends before it has begun."""

from __future__ import annotations

from fabricproof.core.errors import ExitStatus, FabricproofError


class SideError(FabricproofError, ValueError):
    """What was asked for names no side, or sides that cannot stand against each other."""

    exit_status = ExitStatus.USAGE


class NothingComparedError(FabricproofError, ValueError):
    """A side is empty, or the sides have no quantity in common."""

    exit_status = ExitStatus.NOTHING_JUDGED
