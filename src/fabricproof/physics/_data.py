"""Read the reviewed data files beside this module, once per process.

The files are validated against their JSON schemas in the tests, not here: start-up time counts.
"""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

DATA_DIRECTORY = Path(__file__).parent / "data"


@cache
def load_data(name: str) -> dict[str, Any]:
    """Return the content of ``data/<name>.json``; callers must not change it."""
    text = (DATA_DIRECTORY / f"{name}.json").read_text(encoding="utf-8")
    content: dict[str, Any] = json.loads(text)
    return content


def nearest_names(text: str, names: list[str]) -> str:
    """Return the up to three of ``names`` that look most like ``text``, as a phrase."""
    from difflib import get_close_matches  # noqa: PLC0415 - only an error needs it

    lowered = {name.lower(): name for name in names}
    close = get_close_matches(text.lower(), list(lowered), n=3, cutoff=0.3)
    return ", ".join(repr(lowered[name]) for name in close)
