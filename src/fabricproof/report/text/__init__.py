"""A report as text for a terminal: the table of verdicts, and one screen of what matters."""

from __future__ import annotations

from fabricproof.report.text.screen import LINES, WIDTH, summary
from fabricproof.report.text.terminal import STYLES, render

__all__ = [
    "LINES",
    "STYLES",
    "WIDTH",
    "render",
    "summary",
]
