"""A tuning on trial: the environment that a second run measures with, read from a proposal."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from fabricproof.core.errors import ParseError

#: what a program reads of a proposal
TRIAL_FILE = "tuning.json"
FORMAT = 1


@dataclass(frozen=True, kw_only=True)
class Trial:
    """What ``fabricproof tune write`` proposed.

    Attributes:
        num_ranks: ranks that it was measured with.
    """

    stack: str
    collectives: tuple[str, ...]
    num_ranks: int
    environment: Mapping[str, str]


def read_trial(path: Path) -> Trial:
    """Read a proposal.

    Args:
        path: its ``tuning.json``, or the folder that holds it.

    Raises:
        ParseError: there is none, or it is damaged.
    """
    file = path / TRIAL_FILE if path.is_dir() else path
    try:
        record = json.loads(file.read_text(encoding="utf-8"))
        if record["format"] != FORMAT:
            raise ParseError(
                "tuning of another format",
                source=str(file),
                expected=str(FORMAT),
                got=str(record["format"]),
            )
        return Trial(
            stack=str(record["stack"]),
            collectives=tuple(map(str, record["collectives"])),
            num_ranks=int(record["num_ranks"]),
            environment={str(name): str(each) for name, each in record["environment"].items()},
        )
    except (OSError, KeyError, TypeError, ValueError, AttributeError) as error:
        if isinstance(error, ParseError):
            raise
        raise ParseError(
            f"no tuning that can be read: {error}",
            source=str(file),
            expected="what 'fabricproof tune write' left",
        ) from None
