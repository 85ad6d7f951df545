"""A library that is imported at its first use: it takes longer than all else of a command."""

from __future__ import annotations

import importlib
from typing import Any


class LateLibrary:
    """Stands for a module until something of it is needed.

    ``if TYPE_CHECKING: import polars as pl``, ``else: pl = LateLibrary("polars")``.
    """

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, name: str) -> Any:
        """Return what the library calls so; it is imported if it was not.

        Raises:
            AttributeError: it has no such thing.
        """
        return getattr(importlib.import_module(self._name), name)
