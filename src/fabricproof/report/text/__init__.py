"""A report as text: the table of verdicts, one screen of what matters, lines to drain nodes."""

from __future__ import annotations

from fabricproof.report.text.drain import Blamed, render_drain
from fabricproof.report.text.screen import LINES, WIDTH, summary
from fabricproof.report.text.terminal import STYLES, render

__all__ = [
    "LINES",
    "STYLES",
    "WIDTH",
    "Blamed",
    "render",
    "render_drain",
    "summary",
]
