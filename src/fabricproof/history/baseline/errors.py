"""What keeps numbers from becoming a baseline."""

from __future__ import annotations

from fabricproof.core.errors import ExitStatus, FabricproofError


class NotKnownGoodError(FabricproofError, ValueError):
    """The runs hold too few numbers that are known to be good, or one that cannot be true."""

    exit_status = ExitStatus.DATA
