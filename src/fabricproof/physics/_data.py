"""Read the reviewed data files beside this module, once per process; tests check them."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any


@cache
def load_data(name: str) -> dict[str, Any]:
    """Return the content of ``data/<name>.json``; callers must not change it."""
    content: dict[str, Any] = json.loads((Path(__file__).parent / f"data/{name}.json").read_bytes())
    return content


def nearest_names(text: str, names: list[str]) -> str:
    """Return the up to three of ``names`` that look most like ``text``, as a phrase."""
    from difflib import get_close_matches  # noqa: PLC0415 - only an error needs it

    lowered = {name.lower(): name for name in names}
    close = get_close_matches(text.lower(), list(lowered), n=3, cutoff=0.3)
    return ", ".join(repr(lowered[name]) for name in close)
